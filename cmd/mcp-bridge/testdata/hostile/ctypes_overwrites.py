# Overwrites objects of the interpreter through ctypes.
# want: {"status":"exit","signal":11,"stdout":"before\n"}
import ctypes

print("before")
ctypes.memset(id(ctypes), 0xFF, 64)
ctypes.string_at(1)
