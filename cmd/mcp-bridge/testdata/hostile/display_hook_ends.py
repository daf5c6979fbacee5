# Replaces the hook that shows a last value.
# want: {"status":"exit","exitCode":3,"stdout":"before\n"}
import os
import sys

print("before")
sys.displayhook = lambda value: os._exit(3)
"shown"
