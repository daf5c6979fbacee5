# Tries for memory that nothing counts: memfd, System V segments, secret memory, locked pages.
# want: {"status":"ok","stdout":"refused\n-1\n-1\n-1\n"}
import ctypes
import os

try:
    os.memfd_create("hoard")
except PermissionError:
    print("refused")
libc = ctypes.CDLL(None)
print(libc.shmget(0, 1 << 20, 0o1600))
print(libc.syscall(447, 0))
print(libc.mlockall(3))
