# Puts another program in its place that still has the socket, and claims an error there; it ends with 0.
# want: {"status":"error","exitCode":0,"error":{"type":"Own","message":"said by sh"}}
# kept: {"status":"ok","exitCode":0,"error":null}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
os.set_inheritable(link, True)
os.dup2(link, 9)
os.execvp("sh", ["sh", "-c", """echo '{"type":"claim","error":{"code":"runtime_error","type":"Own","message":"said by sh"}}' >&9; exit 0"""])
