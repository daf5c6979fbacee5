# Leaves a hundred dead children that no one waits for.
# want: {"status":"ok","stdout":"100\n"}
# again: {"status":"error","stdout":"","calls":0}
# next: {"status":"ok|error"}
import os

for _ in range(100):
    if os.fork() == 0:
        os._exit(0)
print(100)
