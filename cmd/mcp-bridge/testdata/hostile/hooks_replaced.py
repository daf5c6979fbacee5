# Has every hook of Python's own end the process with 0, and raises: what the guest tells doesn't go through them.
# want: {"status":"error","error":{"type":"ZeroDivisionError","line":9}}
import os
import sys
import threading
import traceback

sys.excepthook = sys.unraisablehook = threading.excepthook = traceback.print_exc = lambda *args: os._exit(0)
1 / 0
