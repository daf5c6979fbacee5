# Hands over files on its own socket: with names that lead elsewhere, with pieces out of order, of other sizes than said, never
# finished, and more than is kept of all files. What isn't whole or is too much is named; nothing leaves its name.
# want: {"status":"ok","stdout":"before\nafter\n*"}
import json
import os

link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))


def send(name, data, chunk=1, of=1, mime="text/plain"):
    frame = {"type": "artifact", "name": name, "mime": mime, "data": data, "chunk": chunk, "of": of}
    line = json.dumps(frame).encode() + b"\n"
    while line:
        line = line[os.write(link, line) :]


print("before")
for name in ("../../etc/passwd", "/etc/passwd", "a/../../b", "", ".", "..", "a\0b", "x" * 10_000, "\u202etxt.exe", "a\nb"):
    send(name, "eA==")
send("pieces", "eA==", 2, 3)
send("pieces", "eA==", 1, 3)
send("pieces", "eA==", 3, 2)
send("endless", "eA==", 1, 1_000_000)
send("odd", "not base64!")
send("odd", "eA==", -1, 0)
send("odd", "eA==", mime="text/html\r\nX: y")
for n in range(40):
    send(f"flood{n}", "eHh4" * 300_000)
print("after")
