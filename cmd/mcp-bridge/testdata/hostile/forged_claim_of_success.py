# Claims on its own socket to have ended well, and ends with a code. What the code claims is text; the code counts.
# want: {"status":"exit","exitCode":4,"stdout":"","calls":0}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.write(link, b'{"type":"claim","ok":true,"error":{"code":"runtime_error","message":"all went well","ok":true}}\n')
os._exit(4)
