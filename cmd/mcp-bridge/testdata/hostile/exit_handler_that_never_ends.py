# Registers an exit handler that never ends.
# want: {"status":"timeout","stdout":"main is over\n"}
# kept: {"status":"ok","stdout":"main is over\n"}
# timeout: 2
import atexit
import time

atexit.register(time.sleep, 1000)
print("main is over")
