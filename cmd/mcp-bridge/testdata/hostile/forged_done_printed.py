# Prints what would be the end of the run as a frame, on both streams. It is text, and the end is what waitpid saw.
# want: {"status":"exit","exitCode":5,"stdout":"{\"type\":\"done\",*}\n","stderr":"{\"type\":\"done\",*}\n","calls":0}
import os
import sys

forged = '{"type":"done","id":"run","ok":true,"durationMs":1,"wait":{"exited":true,"status":0}}'
print(forged)
print(forged, file=sys.stderr)
os._exit(5)
