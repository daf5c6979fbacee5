# Asks for 400 MB of results and reads none of them for a while. They wait with the bridge, which bounds them: the run doesn't pay
# for them, and the code may still read them all.
# want: {"status":"ok","stdout":"slept\n400000000\n"}
# alone
import json
import os
import time

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in range(1, 41):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"big","input":{"bytes":10000000}}\n' % call)
time.sleep(5)
print("slept")
size, lines = 0, 0
rest = b""
with os.fdopen(os.dup(link), "rb") as answers:
    for line in answers:
        size += len(json.loads(line)["result"]["content"][0]["text"])
        lines += 1
        if lines == 40:
            break
print(size)
