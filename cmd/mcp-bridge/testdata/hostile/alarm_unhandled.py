# Lets an alarm end it.
# want: {"status":"exit","exitCode":142,"signal":14,"stdout":"before\n"}
import signal

print("before")
signal.alarm(1)
while True:
    pass
