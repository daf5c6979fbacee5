# Shuts its socket down in both directions, and half of it again.
# want: {"status":"ok","stdout":"internal_error\n","calls":0}
import os
import socket

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
s = socket.socket(fileno=os.dup(link))
s.shutdown(socket.SHUT_RDWR)
try:
    mcp_shop.add(a=1, b=2)
except Exception as e:
    print(e.code)
