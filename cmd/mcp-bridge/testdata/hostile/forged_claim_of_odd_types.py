# Claims an error whose fields are of no type that they can have, and one that is larger than what is kept.
# want: {"status":"error","exitCode":1,"error":{"type":"T","message":"xxx*left out here*xxx","line":0}}
# kept: {"status":"exit","exitCode":1,"error":null}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.write(link, b'{"type":"claim","error":[1,2]}\n{"type":"claim"}\n{"type":"claim","error":null}\n')
line = b'{"type":"claim","error":{"code":7,"type":"T","line":-1,"traceback":[],"message":"%s"}}\n' % (b"x" * 2_000_000)
while line:
    line = line[os.write(link, line) :]
os._exit(1)
