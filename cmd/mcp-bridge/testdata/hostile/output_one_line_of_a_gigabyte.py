# Prints a line of a gigabyte. No part of the bridge holds a line of output.
# want: {"status":"ok","stdout":"xxx*xxx\nlast\n","truncated":true}
# alone
import os

piece = b"x" * (1 << 20)
for _ in range(1024):
    data = piece
    while data:
        data = data[os.write(1, data) :]
print("\nlast")
