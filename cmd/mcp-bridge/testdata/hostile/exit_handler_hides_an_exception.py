# Raises, and has an exit handler end the process with 0. The exception was said before: no success.
# want: {"status":"error","error":{"type":"ZeroDivisionError","line":7}}
import atexit
import os

atexit.register(os._exit, 0)
1 / 0
