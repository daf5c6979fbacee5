# Sends the supervisor frames that are the supervisor's to send. It passes on calls, and nothing else of the code's making.
# want: {"status":"ok","stdout":"own\n","stderr":"","calls":0,"artifacts":0}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for line in (
    b'{"type":"artifact","id":"run","name":"../../etc/passwd","mime":"text/html","data":"eA=="}',
    b'{"type":"output","id":"run","stream":"stdout","seq":1,"text":"forged"}',
    b'{"type":"pong","n":1}',
    b'{"type":"ready","protocol":1,"python":"x","seccomp":true,"pid":1,"extra":["/x"]}',
    b'{"type":"done","id":"run","ok":true,"durationMs":1}',
):
    os.write(link, line + b"\n")
print("own")
