# Ends the process in a __del__, while an exception is on its way out.
# want: {"status":"exit","exitCode":9,"stdout":"before\n"}
import os


class Last:
    def __del__(self):
        os._exit(9)


def fail():
    last = Last()
    del last
    raise ValueError


print("before")
fail()
