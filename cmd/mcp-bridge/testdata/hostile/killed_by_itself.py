# Kills itself. What was printed is kept, and no memory limit is made of it.
# want: {"status":"exit","exitCode":137,"signal":9,"stdout":"before\n"}
import os
import signal

print("before")
os.kill(os.getpid(), signal.SIGKILL)
