# Opens files until there is no descriptor left, then calls a tool that it has called before, and prints.
# want: {"status":"ok","stdout":"24\n5\n","calls":2}
import os

mcp_shop.add(a=1, b=1)
try:
    while True:
        os.dup(1)
except OSError as e:
    print(e.errno)
print(mcp_shop.add(a=2, b=3)["sum"])
