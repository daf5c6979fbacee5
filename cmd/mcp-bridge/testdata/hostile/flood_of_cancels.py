# Cancels a hundred thousand calls that were never made, and those it is about to make. Only a call that waits can be cancelled.
# want: {"status":"ok","stdout":"5\n7\n","calls":2}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for _ in range(1000):
    flood = memoryview(b"".join(b'{"type":"tool_cancel","callId":"%d"}\n' % call for call in range(100)))
    while flood:
        flood = flood[os.write(link, flood) :]
print(mcp_shop.add(a=2, b=3)["sum"])
print(mcp_shop.add(a=3, b=4)["sum"])
