# Writes into its own text through /proc/self/mem.
# want: {"status":"exit","stdout":"before\n"}
import ctypes

print("before")
address = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(address)
    memory.write(b"\x0f\x0b\x0f\x0b\x00\x00\x00\x00")
ctypes.CDLL(None).getppid()
