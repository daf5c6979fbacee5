# Kills all that it may kill, itself left out by the kernel: there is nothing else.
# want: {"status":"error","exitCode":1,"error":{"type":"ProcessLookupError","line":8}}
# kept: {"status":"ok","stdout":""}
import os
import signal


os.kill(-1, signal.SIGKILL)
