# Sends a call of 15 MB whose JSON takes half a gigabyte as objects. It may cost this run its memory, and no one else.
# want: {"status":"ok|memory_limit|exit","stdout":"before\n*"}
# alone
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
print("before")
data = b'{"type":"tool_call","callId":"1","providerName":"shop","safeToolName":"add","input":{"a":[' + b"{}," * 5_000_000 + b"{}]}}\n"
while data:
    data = data[os.write(link, data) :]
print(os.read(link, 1000)[:20])
