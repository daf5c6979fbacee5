# Installs a filter under which every call kills the process.
# want: {"status":"exit","exitCode":159,"signal":31,"stdout":"before\n"}
import ctypes
import struct

program = struct.pack("=HBBI", 0x06, 0, 0, 0x80000000)
memory = ctypes.create_string_buffer(program, len(program))
print("before")
ctypes.CDLL(None).prctl(22, 2, ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(memory)), 16))
print("never")
