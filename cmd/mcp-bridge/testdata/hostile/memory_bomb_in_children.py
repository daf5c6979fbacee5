# Takes memory in many processes, each within its own bound.
# want: {"status":"memory_limit","stdout":"before\n"}
# alone
import os
import time

print("before")
for _ in range(12):
    if os.fork() == 0:
        hoard = b"x" * (100 << 20)
        time.sleep(1000)
    time.sleep(0.05)
time.sleep(1000)
