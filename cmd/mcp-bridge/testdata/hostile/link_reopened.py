# Opens its socket and the pipe of its output a second time, through /proc, to read there. The first can't be; from the second it
# takes its own text away.
# want: {"status":"ok","stdout":"*OSError\nend\n","calls":0}
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
mine = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
print("perhaps its own")
try:
    os.read(mine, 16)
except BlockingIOError:
    pass
os.close(mine)
try:
    os.open(f"/proc/self/fd/{link}", os.O_RDWR)
except OSError as e:
    print(type(e).__name__)
print("end")
