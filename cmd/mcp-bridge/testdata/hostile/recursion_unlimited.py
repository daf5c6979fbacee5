# Takes Python's own bound of recursion away and exhausts the stack, in C.
# want: {"status":"exit|error","stdout":"before\n"}
import sys

print("before")
sys.setrecursionlimit(1 << 30)
x = []
for _ in range(3_000_000):
    x = [x]
repr(x)
