# Leaves where files are handed over what is no file, or not its own: a pipe that no one writes to, a socket, links to devices, to
# the supervisor's memory and out of the directory, a loop, a file of a terabyte. Only the one real file is handed over.
# want: {"status":"ok","stdout":"before\nafter\n*","artifacts":1}
# again: {"status":"error","stdout":"before\n","error":{"type":"FileExistsError"}}
# next: {"status":"ok","stdout":"42 9007199254740994\n","calls":1}
import os
import socket

print("before")
os.makedirs("/workspace/out/deep", exist_ok=True)
os.chdir("/workspace/out")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
for name, target in (
    ("zero", "/dev/zero"), ("memory", "/proc/1/mem"), ("environ", "/proc/self/environ"), ("passwd", "/etc/passwd"),
    ("loop", "loop"), ("up", ".."), ("deep/out", "/workspace/out"), ("stdin", "/proc/1/fd/64"),
):
    os.symlink(target, name)
with open("sparse", "wb") as file:
    try:
        file.truncate(1 << 40)
    except OSError:
        pass
os.unlink("sparse")
with open("good.txt", "w") as file:
    file.write("good")
print("after")
