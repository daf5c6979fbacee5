# Reads from an empty stdin, writes to it, puts a pipe in its place.
# want: {"status":"ok","stdout":"b''\nEOFError\nown\n"}
import os
import sys

print(os.read(0, 100))
try:
    input()
except EOFError as e:
    print(type(e).__name__)
try:
    os.write(0, b'{"type":"cancel","id":"run"}\n')
except OSError:
    pass
read, write = os.pipe()
os.dup2(read, 0)
os.write(write, b"own\n")
os.close(write)
print(sys.stdin.readline().strip())
