# Has a timer raise an exception every half millisecond, wherever the process is, the guest's own steps at its end too.
# want: {"status":"error|exit","stdout":"before\n"}
import signal


def ring(number, frame):
    raise RuntimeError("ring")


print("before")
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while True:
    try:
        while True:
            pass
    except RuntimeError:
        1 / 0
