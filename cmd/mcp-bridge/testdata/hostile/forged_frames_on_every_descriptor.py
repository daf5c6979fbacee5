# Writes frames of every type, and rubbish, to every descriptor but its own two. None of them is the frames' own; in a sandbox copies of its two are among them.
# want: {"status":"exit","exitCode":6,"stdout":"before\n","stderr":"","calls":0}
# kept: {"status":"exit","exitCode":6,"stdout":"before\n*","stderr":"*","calls":0}
import os

print("before")
lines = [b'{"type":"%s","id":"run","callId":"1","ok":true,"protocol":1,"pid":1,"wait":{"exited":true,"status":0}}\n' % kind
         for kind in (b"done", b"ready", b"started", b"output", b"artifact", b"tool_result", b"execute", b"cancel", b"ping", b"pong")]
for fd in [0, *range(3, 1024)]:
    for data in (*lines, b"\xff\x00[[[{\n", b"null\n", b"\n"):
        try:
            os.write(fd, data)
        except OSError:
            pass
os._exit(6)
