"""Makes bad calls in a plain Jupyter kernel, for a line of JSON each, and says what was left.

An interrupt is all that a notebook has against code that doesn't end, and a restart all that it has
against a kernel that has died or doesn't answer.
"""

import json
import os
import resource
import signal
import sys
import time

from jupyter_client.manager import KernelManager

STATE = "state = {'rows': list(range(1000))}"
ROWS = "len(state['rows'])"
SILENT = 5.0  # seconds without an answer after which the kernel is restarted
MEMORY = 1 << 29  # bytes of data
PROCESSES = 200  # and threads, more than the user has


class Kernel:
    def __init__(self):
        self.start()

    def start(self):
        """Starts a kernel, again where it has died of the bound: others of the user start processes too."""
        for tries in range(5, 0, -1):
            most = PROCESSES + sum(threads(pid) for pid in os.listdir("/proc") if pid.isdigit())
            self.manager = KernelManager()
            self.manager.start_kernel(preexec_fn=lambda: bound(most), stdout=-3, stderr=-3)
            self.client = self.manager.client()
            self.client.start_channels()
            try:
                return self.client.wait_for_ready(timeout=60)
            except RuntimeError:
                self.end()
                if tries == 1:
                    raise

    def end(self):
        group = self.manager.provisioner.pgid
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        try:
            os.killpg(group, signal.SIGKILL)  # forks of the code
        except ProcessLookupError:
            pass

    def restart(self):
        self.end()
        self.start()

    def run(self, code, rows="", limit=None):
        """Returns what the kernel says of rows then; None means that it doesn't answer."""
        asked = self.client.execute(code, user_expressions={"rows": rows} if rows else {})
        begin, interrupted = time.monotonic(), False
        while self.manager.is_alive():
            try:
                answer = self.client.get_shell_msg(timeout=0.01)
            except Exception:  # none yet
                answer = {"parent_header": {}}
            if answer["parent_header"].get("msg_id") == asked:
                said = answer["content"].get("user_expressions", {}).get("rows", {})
                return said.get("data", {}).get("text/plain", "")
            passed = time.monotonic() - begin
            if passed > (limit or 0) + SILENT:
                return None
            if limit and passed > limit and not interrupted:
                self.manager.interrupt_kernel()
                interrupted = True
        return None

    def bad(self, code, limit):
        """Returns the seconds until the next answer but those of the limit, and what has become of the state."""
        if self.run(STATE, ROWS) != "1000":
            self.restart()
            self.run(STATE)
        begin, lost = time.monotonic(), False
        if self.run("state['rows'].clear()\n" + code, limit=limit) is None:
            self.restart()
            lost = True
        rows = self.run("1", ROWS)
        if rows is None:
            self.restart()
            rows, lost = self.run("1", ROWS), True
        took = time.monotonic() - begin - (limit or 0)
        left = {"1000": "as before", "0": "as the code left them"}.get(rows, "lost")
        return took, "lost" if lost else left


def bound(processes):
    """Gives the kernel the limits that a sandbox has too."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def threads(pid):
    """How many a process has, if it is the user's."""
    try:
        own = os.stat(f"/proc/{pid}").st_uid == os.getuid()
        return len(os.listdir(f"/proc/{pid}/task")) if own else 0
    except OSError:  # it has ended
        return 0


kernel = Kernel()
try:
    print("{}", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        took, left = kernel.bad(asked["code"], asked["limit"])
        print(json.dumps({"ms": took * 1000, "left": left}), flush=True)
finally:
    kernel.end()
