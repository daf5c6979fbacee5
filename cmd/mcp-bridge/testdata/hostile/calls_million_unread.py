# Makes calls without end and reads no answer. It comes to stand before it costs the bridge anything, and its time runs out.
# want: {"status":"timeout","stdout":"before\n"}
# timeout: 3
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
print("before")
call = 0
while True:
    call += 1
    line = b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"add","input":{"a":1,"b":2}}\n' % call
    os.write(link, line)
