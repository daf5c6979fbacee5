# Crashes.
# want: {"status":"exit","exitCode":139,"signal":11,"stdout":"before\n"}
import ctypes

print("before")
ctypes.string_at(0)
