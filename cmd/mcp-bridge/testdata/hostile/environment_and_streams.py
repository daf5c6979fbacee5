# Empties the environment, closes and replaces the streams, changes directory to nowhere, and raises: what
# is imported for the traceback is not to be had.
# want: {"status":"error","exitCode":1,"stdout":"before\n","error":{"type":"ValueError"}}
# again: {"status":"error","stdout":"before\n","calls":0}
# next: {"status":"error","stdout":"","calls":0}
import os
import sys

print("before")
os.environ.clear()
os.mkdir("/tmp/gone")
os.chdir("/tmp/gone")
os.rmdir("/tmp/gone")
sys.stdout.close()
sys.stderr = sys.__stderr__ = None
sys.stdin.detach()
sys.argv = sys.path = None


raise ValueError
