# Leaves children that are stopped, and would be hard to wait for. The end doesn't wait for them.
# want: {"status":"ok","stdout":"gone on\n"}
# again: {"status":"ok|error","stdout":"*gone on\n*"}
# next: {"status":"ok|error","stdout":"*"}
import os
import signal

for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
print("gone on")
