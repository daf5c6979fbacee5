# Installs a filter of its own under which every call but exit_group fails.
# want: {"status":"exit","exitCode":3,"stdout":"before\n"}
import ctypes
import os
import platform
import struct

number = {"x86_64": 231, "aarch64": 94}[platform.machine()]
program = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, 0x7FFF0000, 0x06, 0, 0, 0x00050001)
memory = ctypes.create_string_buffer(program, len(program))
libc = ctypes.CDLL(None)
print("before")
libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(memory)), 16))
os._exit(3)
