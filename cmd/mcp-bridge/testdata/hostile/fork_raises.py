# Has a fork raise and end first. Its exception is not the run's.
# want: {"status":"ok","stdout":"parent\n"}
import os

if os.fork() == 0:
    raise ValueError("in the fork")
os.wait()
print("parent")
