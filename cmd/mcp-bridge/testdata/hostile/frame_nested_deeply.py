# Sends calls whose input is nested a million deep, or a number of a million digits.
# want: {"status":"ok","stdout":"['validation_error', 'validation_error']\n","calls":0}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call, value in enumerate((b"[" * 1_000_000 + b"]" * 1_000_000, b"9" * 1_000_000), 1):
    data = b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"add","input":{"a":%s}}\n' % (call, value)
    while data:
        data = data[os.write(link, data) :]
answers = b""
while answers.count(b"\n") < 2:
    answers += os.read(link, 1 << 16)
print([json.loads(line)["error"]["code"] for line in answers.splitlines()])
