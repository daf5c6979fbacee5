# Blocks and ignores every signal, and loops. SIGKILL can't be.
# want: {"status":"timeout","stdout":"before\n"}
# timeout: 2
import signal

print("before")
for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    pass
