# Puts another Python in its own place, which prints and ends with a code. It is the same process: its end is the run's.
# want: {"status":"exit","exitCode":9,"stdout":"first\nsecond\n"}
import os
import sys

print("first")
os.execv(sys.executable, [sys.executable, "-c", "print('second'); raise SystemExit(9)"])
