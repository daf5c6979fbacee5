# Takes memory that belongs to no process alone: an anonymous shared mapping.
# want: {"status":"memory_limit","stdout":"before\n"}
# alone
import mmap
import os
import time

print("before")
held = []
for _ in range(12):
    if os.fork() == 0:
        held.append(mmap.mmap(-1, 100 << 20))
        held[0].write(b"x" * (100 << 20))
        time.sleep(1000)
    time.sleep(0.05)
time.sleep(1000)
