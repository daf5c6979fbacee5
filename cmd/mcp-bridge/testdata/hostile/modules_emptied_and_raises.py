# Empties sys.modules and raises: what is imported for the traceback is not to be had.
# want: {"status":"error","exitCode":1,"stdout":"before\n","error":{"type":"ZeroDivisionError"}}
# again: {"status":"error","stdout":"","calls":0}
# next: {"status":"error","stdout":"","calls":0}
import sys

print("before")
sys.meta_path.clear()
sys.modules.clear()
1 / 0
