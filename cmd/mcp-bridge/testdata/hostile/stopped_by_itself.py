# Stops itself for good. Its time runs on.
# want: {"status":"timeout","stdout":"before\n"}
# timeout: 2
import os
import signal

print("before")
os.kill(os.getpid(), signal.SIGSTOP)
