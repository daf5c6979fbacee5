# Calls a tool from a fork, whose answers would be mixed with its parent's. It is told why it may not.
# want: {"status":"ok","stdout":"RuntimeError\n5\n","calls":1}
import os

if os.fork() == 0:
    try:
        mcp_shop.add(a=1, b=1)
    except RuntimeError as e:
        print(type(e).__name__)
    os._exit(0)
os.wait()
print(mcp_shop.add(a=2, b=3)["sum"])
