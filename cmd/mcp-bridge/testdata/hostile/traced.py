# Sets a trace and a profile function that raise at every step, the guest's own steps too.
# want: {"status":"error|exit","exitCode":"!0","stdout":"before\n"}
import sys


def raising(*args):
    raise RuntimeError("traced")


print("before")
sys.setprofile(raising)
sys.settrace(raising)
len("")
