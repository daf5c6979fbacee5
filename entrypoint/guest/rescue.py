"""Which process has the variables of a sandbox, and which takes its place when a call ends badly.

What decides is waitpid and what the supervisor itself can see, never a word of the code.
"""

from __future__ import annotations

import os
import select
import signal
import time

from guest import watch, wire
from guest.confine import adopt
from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guest.requests import Requests
    from guest.run import Run

PATIENCE = 1.0  # seconds that a process of the sandbox has to answer
LARGE = 0.4  # of the memory limit: with more, there is no room for a second copy of the variables
ENOUGH = 0.003  # seconds after which a call isn't held up by the end of a process that isn't needed


class Sandbox:
    """The processes of a sandbox, and what was said of its state."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.running = False  # processes run on between calls
        self.spare = 0  # has the variables of before this call
        self.older = 0  # has those of before the last call, until the next one
        self.awaits = False  # the process has been asked for a sign of life, and a spare
        self.until = 0.0  # it has until then
        self.sent: dict[str, tuple[int, ...]] = {}  # files that were handed over, as they were then
        self.lost = ""  # why there is no process any more
        self.used = False  # there was code
        self.revived = False  # another process has the variables since a command
        self.gone = False  # the process with the variables ended while something else was done
        self._before: frozenset[int] = frozenset()  # processes that were there before, and aren't the call's
        self._limit = 0  # bytes of memory
        self._unfit: list[str] = []
        self._why = ""  # no spare could be made
        self._note = ""
        self._key = ""
        self._took = False
        if os.getpid() != 1:
            adopt()

    def begin(self, options: wire.Frame) -> None:
        """Lets the processes run for a call."""
        self._limit = options.get("memoryLimitBytes") or 0
        self.running = self.running or options.get("running") is True
        self.used = True
        self._before = frozenset(self._others()) - {self._run.child} if self.running else frozenset()
        self.thaw()

    def begin_job(self, order: wire.Frame) -> None:
        """Lets the processes of earlier calls run for a command, but the one with the variables."""
        if order["type"] == "exec":
            self.running = self.running or order["options"].get("running") is True
            self._before = frozenset(self._others()) - {self._run.child}
            for pid in self._before:
                _send(pid, signal.SIGCONT)

    def thaw(self) -> None:
        if self.awaits:
            self.until = time.monotonic() + PATIENCE
        _signal_all(self._run.child, signal.SIGCONT)

    def freeze(self) -> None:
        """Stops all processes; of a sandbox whose processes run on, only the one with the variables."""
        if not self.running:
            _signal_all(self._run.child, signal.SIGSTOP)
        elif not self.gone:
            _send(self._run.child, signal.SIGSTOP)

    def drop_older(self, now: float) -> None:
        """Ends the process that undo would have needed, once a call is under way."""
        if self.older and now - self._run.began >= ENOUGH:
            _kill(self.older)
            self.older = 0

    def ended(self, unfit: list[str]) -> None:
        """Takes the process's word that its call is over. It changes nothing but who is asked next."""
        self._unfit = unfit

    @property
    def no_way_back(self) -> str:
        """Why the next call could not be taken back, for a person."""
        if self._unfit:
            return f"{' and '.join(self._unfit[:3])} doesn't survive it"
        if self._limit and (used := watch.used_by(self._run.child)) > LARGE * self._limit:
            return f"variables take {used >> 20} of {self._limit >> 20} MiB"
        return ""

    def settle(self, requests: Requests | None) -> wire.Frame:
        """Finds out which process has the variables after a call, and says so as done does."""
        if self._run.job:
            if self.gone and not self._replaced(self.spare, requests):
                return {"state": "lost", "reason": self.lost}
            state = {"state": "kept"}
            if self.gone:
                self.spare, self.gone, self.revived = 0, False, True
                self._note = "the command has ended the process of the variables; threads are gone"
        elif self._run.alive:
            self._drop(self.older)
            self.older, self.spare = self.spare, 0
            state = {"state": "kept"}
        elif self._replaced(self.spare, requests):
            self.older = self.spare = 0
            state = {"state": "before"}
        else:
            return {"state": "lost", "reason": self.lost}
        self.freeze()
        if self._note:
            state["reason"], self._note = self._note, ""
        if back := self.no_way_back:
            state["noWayBack"] = back
        return state

    def undo(self, requests: Requests | None) -> wire.Frame:
        """Goes back to the process with the variables of before the last call, if there is one.

        It gives what done says of that.
        """
        if not self.older:
            error = {"code": "validation_error", "message": "there is no call that could be undone"}
            return {"ok": False, "error": error, "sandbox": {"state": "kept"}}
        older, self.older = self.older, 0
        if not self._replaced(older, requests):
            return {"ok": False, "sandbox": {"state": "lost", "reason": self.lost}}
        self.spare, self.revived = 0, True
        self.freeze()
        return {"ok": True, "sandbox": {"state": "before"}}

    def ask(self) -> None:
        """Asks the process for a sign of life, and for a spare unless none would be of use.

        Nobody waits for that: the result of the call has been sent.
        """
        self.awaits, self.until = True, time.monotonic() + PATIENCE
        fork = not self.no_way_back
        self._why = "" if fork else self.no_way_back
        self._run.to_child.push(wire.encode({"type": "spare", "fork": fork}))
        _send(self._run.child, signal.SIGCONT)

    def answered(self, frame: wire.Frame) -> None:
        """Takes the answer to ask."""
        if not self.awaits:
            return
        self.awaits = False
        pid = frame.get("pid")
        # Its parent may have ended since, and then it is the supervisor's.
        if isinstance(pid, int) and pid > 1 and _parent(pid) in (self._run.child, os.getpid()):
            self.spare = pid
        elif not self._why:
            why = frame.get("why")
            self._why = why[:200] if isinstance(why, str) else "no spare was made"
        self._run.warm = True
        if self._run.job:
            _send(self._run.child, signal.SIGSTOP)
        elif not self._run.asked:
            self.freeze()
        if not self._run.job:
            self._run.begin()

    def overdue(self, now: float) -> None:
        """Gives up waiting for the answer: until there is a call, or for good."""
        if not self.awaits or now < self.until:
            return
        if self._run.asked and not self._run.job:
            self._run.kill("deaf")
        elif not self.running:
            self.freeze()
        self.until = now + PATIENCE

    def died(self, requests: Requests | None) -> bool:
        """Replaces a process that has ended between calls, and reports whether that could be done."""
        spare, self.spare = self.spare, 0
        if not self._replaced(spare, requests):
            return False
        killed, self._run.killed, self._run.because = self._run.killed, "", ""
        why = f"were ended between calls ({killed})" if killed else "ended between calls"
        self._note = f"its processes {why}; threads are gone"
        self.ask()
        return True

    def kill(self) -> None:
        """Ends all processes but the spare. None can be made meanwhile: all are stopped first."""
        _signal_all(self._run.child, signal.SIGSTOP)
        for pid in self._others():
            _kill(pid)

    def _others(self) -> list[int]:
        """All living processes of the container, or of the groups of child and job, but the copies."""
        groups = None if os.getpid() == 1 else {self._run.child, self._run.job or self._run.child}
        found = []
        left = {1, self.spare, self.older, *self._before, self._run.child if self._run.job else 1}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            fields = _stat(pid) if pid not in left else []
            if len(fields) > 2 and fields[0] not in "ZX" and (groups is None or int(fields[2]) in groups):
                found.append(pid)
        return found

    def end(self) -> None:
        """Ends all processes where that doesn't happen by itself."""
        for pid in (self.spare, self.older):
            self._drop(pid)

    def _drop(self, pid: int) -> None:
        if pid:
            _kill(pid)

    def took(self, frame: wire.Frame) -> None:
        self._took = frame.get("key") == self._key

    def _replaced(self, pid: int, requests: Requests | None) -> bool:
        """Has a spare take over. All other processes are ended before; False if it doesn't answer in time."""
        for other in {self.spare, self.older} - {pid}:
            self._drop(other)
        if not pid or requests is None:
            self.lost = "its process has ended, and there was no copy of it"
            self.lost += f": {self._why}" if self._why else ""
            return False
        until = time.monotonic() + PATIENCE
        self.spare, self.older = pid, 0
        while time.monotonic() < until:
            self.kill()
            _collect()
            if not self._others():
                break
        requests.forget()
        self._key, self._took = os.urandom(8).hex(), False
        link = self._run.to_child
        link.clear()
        link.push(b"\n" + wire.encode({"type": "take", "key": self._key}))
        poller = select.poll()
        try:
            os.kill(pid, wire.WAKE)
            os.kill(pid, signal.SIGCONT)
            while not self._took and (left := until - time.monotonic()) > 0 and _alive(pid):
                poller.register(link.fd, select.POLLIN | (select.POLLOUT if link.size else 0))
                poller.poll(min(left, 0.05) * 1000)
                link.flush()
                if not requests.take():
                    break
        except OSError:  # it is gone
            pass
        if not self._took:
            _kill(pid)
            self.lost = "the copy of its process didn't answer"
            return False
        self._run.child, self._run.status, self.awaits = pid, None, False
        return True


def _signal_all(child: int, number: int) -> None:
    """Signals all processes of the container, or the child's group if this isn't pid 1."""
    try:
        if os.getpid() == 1:
            os.kill(-1, number)
        else:
            os.killpg(child, number)
    except OSError:  # nothing left
        pass


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name: state, parent and so on."""
    return watch.read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _alive(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _kill(pid: int) -> None:
    _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _collect() -> None:
    """Collects dead processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
