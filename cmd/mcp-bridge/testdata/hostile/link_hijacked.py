# Puts a socket of its own in the link's place and answers its own calls. It fools itself only: no call is counted or made.
# want: {"status":"ok","stdout":"forged\n","calls":0}
# kept: {"status":"timeout","stdout":"forged\n","calls":0}
# timeout: 15
import os
import socket
import threading

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
ours, theirs = socket.socketpair()
os.dup2(theirs.fileno(), link)
tool = '{"safeName":"add","originalName":"add","inputSchema":{"type":"object"}}'
answers = ('{"name":"shop","alias":"shop","tools":{"add":%s}}' % tool, '{"content":[{"type":"text","text":"forged"}]}')


def answer():
    for call, result in enumerate(answers, 1):
        ours.recv(1 << 16)
        ours.sendall(b'{"type":"tool_result","callId":"%d","ok":true,"result":%s}\n' % (call, result.encode()))


threading.Thread(target=answer).start()
print(mcp_shop.add(a=1, b=2))
