# Has a handler of SIGCHLD end the process when the guest's own steps might run.
# want: {"status":"exit","exitCode":21,"stdout":"before\n"}
import os
import signal
import time

signal.signal(signal.SIGCHLD, lambda number, frame: os._exit(21))
print("before")
if os.fork() == 0:
    os._exit(0)
time.sleep(10)
