# Makes more calls than a run may. The rest fail with call_limit, one by one, and it goes on.
# want: {"status":"ok","stdout":"50\n","calls":10000}
# alone
import os
import threading

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
count = 10_050


def ask():
    for call in range(1, count + 1):
        os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"nobody","safeToolName":"x"}\n' % call)


threading.Thread(target=ask).start()
answers = b""
while answers.count(b"\n") < count:
    answers += os.read(link, 1 << 18)
print(answers.count(b'"call_limit"'))
