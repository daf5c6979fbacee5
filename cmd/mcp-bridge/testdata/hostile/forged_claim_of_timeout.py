# Claims reasons that only the host can know. They are not believed: it is an error like any other.
# want: {"status":"error","error":{"type":"Late","message":"over"}}
# kept: {"status":"exit","exitCode":1,"error":null}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for code in ("timeout", "cancelled", "output_limit", "internal"):
    os.write(link, b'{"type":"claim","error":{"code":"%s","type":"Late","message":"over"}}\n' % code.encode())
os._exit(1)
