# Forks without end. The bound of processes ends it, engine's or guest's.
# want: {"status":"exit|timeout","stdout":"before\n","message":"*"}
# timeout: 5
import os

print("before")
while True:
    try:
        os.fork()
    except OSError:
        pass
