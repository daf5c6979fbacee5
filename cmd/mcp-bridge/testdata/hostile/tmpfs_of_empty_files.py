# Makes files without content until something says no.
# want: {"status":"memory_limit|ok","stdout":"before\n*"}
# again: {"status":"error|memory_limit|ok","stdout":"before\n*"}
# next: {"status":"ok|memory_limit|error","stdout":"*"}
# alone
import os

print("before")
os.mkdir("/tmp/d")
try:
    for n in range(2_000_000):
        os.symlink("x", f"/tmp/d/{n}")
except OSError as e:
    print("refused", e.errno)
