# Leaves processes in sessions of their own, whose parents are gone. They end with the run, which doesn't wait for them.
# want: {"status":"ok","stdout":"before\n"}
import os

print("before")
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execvp("sleep", ["sleep", "1000"])
