# Breaks the modules that the guest itself needs: json, os, threading, asyncio, queue. What it can't do any more fails here.
# want: {"status":"ok","stdout":"before\ncall failed\nafter\n"}
import asyncio
import json
import queue
import sys
import threading

print("before")
json.dumps = json.loads = json.JSONEncoder = json.JSONDecoder = None
asyncio.run = asyncio.get_running_loop = None
threading.Thread = threading.Lock = None
queue.SimpleQueue = None
for name in ("json", "threading", "queue", "asyncio"):
    sys.modules[name] = None
try:
    mcp_shop.add(a=1, b=2)
except Exception:
    print("call failed")
print("after")
