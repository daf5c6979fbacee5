# Sends the supervisor a line of a gigabyte that begins as a call. It is dropped as it comes, and the call refused.
# want: {"status":"ok","stdout":"validation_error\nTrue\n","calls":0}
# alone
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.write(link, b'{"type":"tool_call","callId":"1","providerName":"')
piece = b"x" * (1 << 20)
for _ in range(1024):
    data = piece
    while data:
        data = data[os.write(link, data) :]
os.write(link, b"\n")
print(json.loads(os.read(link, 1 << 16))["error"]["code"])
status = open("/proc/1/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) < 150_000)
