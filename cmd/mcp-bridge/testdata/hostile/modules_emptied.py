# Empties sys.modules, meta_path and path, then ends.
# want: {"status":"ok","stdout":"before\nafter\n"}
# again: {"status":"error","stdout":"","calls":0}
# next: {"status":"error","stdout":"","calls":0}
import sys

print("before")
sys.meta_path.clear()
sys.path.clear()
sys.modules.clear()
print("after")
last = "no expression: Python itself shows the value of one with the help of sys.modules"
