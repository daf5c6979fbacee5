# Hands its socket to a process of another program, which makes a call of its own there. The run may make it, and it counts.
# want: {"status":"ok","stdout":"True\n","calls":1}
import os
import subprocess
import sys

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
code = f"""
import json, os
frame = {{"type": "tool_call", "callId": "1", "providerName": "shop", "safeToolName": "add", "input": {{"a": 1, "b": 2}}}}
os.write({link}, json.dumps(frame).encode() + b"\\n")
print(json.loads(os.read({link}, 1 << 16))["ok"])
"""
done = subprocess.run([sys.executable, "-c", code], pass_fds=[link], check=True)
