# Sends calls whose fields have the wrong types. Those with an id are answered with validation_error, the rest dropped.
# want: {"status":"ok","stdout":"{'validation_error'}\n","calls":0}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
good = {"type": "tool_call", "providerName": "shop", "safeToolName": "add", "input": {}}
odd = [{"providerName": 7}, {"safeToolName": None}, {"input": [1]}, {"input": "x"}, {"providerName": "x" * 2000}, {"callId": 5}]
for call, more in enumerate(odd, 1):
    os.write(link, json.dumps({"callId": str(call), **good, **more}).encode() + b"\n")
answers = b""
while answers.count(b"\n") < 5:
    answers += os.read(link, 1 << 16)
print({json.loads(line)["error"]["code"] for line in answers.splitlines()})
