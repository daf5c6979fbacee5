# Sends every signal to pid 1, many times. The kernel keeps signals of its own namespace off an init that doesn't want them.
# want: {"status":"ok","stdout":"5\nstill here\n","calls":1}
import os

for number in [*range(1, 65)] * 20:
    try:
        os.kill(1, number)
    except OSError:
        pass
print(mcp_shop.add(a=2, b=3)["sum"])
print("still here")
