# Fills both streams with 64 MiB each. The ends are kept, what is cut is counted, and nothing stops.
# want: {"status":"ok","stdout":"begin\n*end\n","stderr":"*yyy*","truncated":true}
import os

print("begin")
for _ in range(1024):
    for fd, data in ((1, b"x" * 65536), (2, b"y" * 65536)):
        while data:
            data = data[os.write(fd, data) :]
print("\nend")
