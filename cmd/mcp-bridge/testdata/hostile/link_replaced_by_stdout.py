# Puts stdout in the place of its socket to the supervisor, so that calls go into the output: they are text there, and fail.
# want: {"status":"exit","exitCode":1,"stdout":"{\"type\":\"tool_call\",*}\n{\"type\":\"claim\",*}\n*","calls":0}
# kept: {"status":"ok","stdout":"{\"type\":\"tool_call\",*}\n{\"type\":\"claim\",*}\n*","calls":0,"error":null}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.dup2(1, link)
mcp_shop.add(a=1, b=2)
