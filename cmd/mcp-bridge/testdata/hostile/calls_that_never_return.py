# Leaves forty calls under way that no server will answer, and ends.
# want: {"status":"ok","stdout":"after\n"}
import asyncio
import os

tasks = [asyncio.ensure_future(mcp_shop.hang()) for _ in range(40)]
await asyncio.sleep(0.3)
print("after", flush=True)
os._exit(0)
