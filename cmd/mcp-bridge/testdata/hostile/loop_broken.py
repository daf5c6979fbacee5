# Stops, closes and replaces the event loop under its own top-level await.
# want: {"status":"error|ok","stdout":"before\n*"}
import asyncio

print("before")
loop = asyncio.get_running_loop()
for task in asyncio.all_tasks():
    task.cancel()
loop.call_soon(loop.stop)
await asyncio.sleep(1)
