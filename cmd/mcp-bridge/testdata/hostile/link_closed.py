# Closes its socket to the supervisor. Calls fail, the rest goes on, and the end is told as it was.
# want: {"status":"ok","stdout":"ToolError internal_error\nstill here\n","calls":0}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.close(link)
try:
    mcp_shop.add(a=1, b=2)
except Exception as e:
    print(type(e).__name__, e.code)
print("still here")
