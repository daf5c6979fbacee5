# Sends a million tiny lines that are no requests, then makes a call.
# want: {"status":"ok","stdout":"5\n","calls":1}
# alone
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for line in (b"\n", b"1\n", b"{}\n", b'{"type":"x"}\n'):
    block = line * 10_000
    for _ in range(25):
        data = block
        while data:
            data = data[os.write(link, data) :]
print(mcp_shop.add(a=2, b=3)["sum"])
