# Takes from the module os what the guest ends the process with. It ends all the same, and as what it is: a success.
# want: {"status":"ok","stdout":"before\nafter\n"}
import os

print("before")
os._exit = os.write = os.read = os.getpid = os.close = lambda *args: 1
print("after")
