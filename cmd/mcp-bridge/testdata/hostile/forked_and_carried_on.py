# Ends with 0 and leaves a fork that prints for ever and claims an error: the run has ended with the process it was given.
# want: {"status":"ok","stdout":"before\n"}
import os
import time

print("before")
if os.fork() == 0:
    time.sleep(0.2)
    while True:
        print("after")
os._exit(0)
