# Ends, except for a thread that doesn't. Python waits for it; the time limit doesn't.
# want: {"status":"timeout","stdout":"main is over\n"}
# kept: {"status":"ok","stdout":"main is over\n"}
# timeout: 2
import threading


def loop():
    while True:
        pass


threading.Thread(target=loop).start()
print("main is over")
