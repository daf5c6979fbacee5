# Kills all that it may kill, itself left out by the kernel: there is nothing else.
# want: {"status":"error","exitCode":1,"error":{"type":"ProcessLookupError","line":7}}
import os
import signal


os.kill(-1, signal.SIGKILL)
