# Reads a result of 10 MB byte by byte for a while, then the rest, while a second one waits.
# want: {"status":"ok","stdout":"True\n"}
# alone
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in (1, 2):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"big","input":{"bytes":10000000}}\n' % call)
size = sum(len(os.read(link, 1)) for _ in range(10_000))
lines = 0
while lines < 2:
    data = os.read(link, 1 << 18)
    size += len(data)
    lines += data.count(b"\n")
print(size > 20_000_000)
