# Uses ids of calls twice, downwards, and such as are no number. An id is used once: one result for each that counts.
# want: {"status":"ok","stdout":"['3', '9']\n","calls":2}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in ("3", "3", "1", "2", "0", "-4", "01", "1e3", "", "9" * 100, "9"):
    frame = {"type": "tool_call", "callId": call, "providerName": "shop", "safeToolName": "add", "input": {"a": 1, "b": 2}}
    os.write(link, json.dumps(frame).encode() + b"\n")
answers = b""
while answers.count(b"\n") < 2:
    answers += os.read(link, 1 << 16)
print(sorted(json.loads(line)["callId"] for line in answers.splitlines()))
