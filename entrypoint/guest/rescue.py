"""Which process has the variables of a sandbox, and which takes its place when a call ends badly.

What decides is waitpid and what the supervisor itself can see, never a word of the code.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from guest import outcome, processes, watch, wire
from guest.confine import adopt
from guest.copies import Copies
from guest.light_typing import TYPE_CHECKING
from guest.requests import names

if TYPE_CHECKING:
    from guest.requests import Requests
    from guest.run import Run

PATIENCE = 10.0  # seconds that a process of the sandbox has to answer, if the call has as many
READY = 5.0  # seconds that a copy has until it waits
SOON = 0.001  # seconds between two looks whether processes have ended
REST = 0.01  # seconds after done in which nothing is done that can wait, unless the host asks for something
LITTLE = 64 << 20  # bytes of a process whose copies needn't be ended for their memory
ENOUGH = 0.05  # seconds after which a call isn't held up by the end of a process that isn't needed

# What the process of the variables has been asked for.
_FIRST, _BEGUN, _AGAIN = "a copy before the first call", "code", "a copy of a copy"
_ENDED, _BETWEEN = "a copy before the call is over", "a copy between two calls"
_REHEARSAL = "a call without effect behind that copy"


class Sandbox:
    """The processes of a sandbox, and what was said of its state."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.running = False  # processes run on between calls
        self.spare = 0  # has the variables of before this call
        self.older = 0  # has those of before the last call, until the next one
        self._useless = 0  # had those of before that one
        self._stirring: list[int] = []  # copies that were to stop or to end
        self._drops = 0.0  # when drop_older looks again
        self.until = 0.0  # the process has until then to answer, if it was asked for anything
        self.tidies = 0.0  # when tidy is due, if it is
        self.sent: dict[str, tuple[int, ...]] = {}  # files that were handed over, as they were then
        self.lost = ""  # why there is no process any more
        self.gone = False  # the process with the variables ended while something else was done
        self._asked = ""
        self._key = ""  # of the call: what is said of another doesn't count
        self._line = b""  # the execute that waits for the first copy
        self._told: int | None = None  # what the process says that its status would be
        self._fresh = 0  # has the variables of after this call
        self._used = False  # there was code
        self._one = False  # the last call has left no thread and no other process
        self._reads = False  # the process has a thread that reads the answers of tools
        self._later = False  # a copy is made once the host has been told how the call ended
        self._rehearses = True  # until a rehearsal doesn't end
        self._unsaid = False  # that copy came to nothing, which the host has not been told
        self._before: frozenset[int] = frozenset()  # processes that were there before, and aren't the call's
        self._copies = Copies(run)
        self._note = ""
        self._made: wire.Frame | None = None  # what the process says of the copy that it has made
        self._waits = False  # what the copy says
        self._took = False
        if os.getpid() != 1:
            adopt()

    def begin(self, execute: wire.Frame, requests: Requests | None) -> str:
        """Has the process run the code, and returns why that can't be.

        What its processes have written since the call before is dropped: all of them are stopped.
        """
        options = execute["options"]
        self._copies.limit = options.get("memoryLimitBytes") or 0
        self._copies.count()
        self.running = self.running or options.get("running") is True
        if self._used and not self._there(requests):
            return f"the sandbox ended between calls: {self.lost}"
        if self._used and requests:
            requests.forget()
            self._run.to_child.forget()
        self._key, self._told, self.gone = os.urandom(8).hex(), None, False
        self._line = self._run.line.rstrip()[:-1]
        self._before = self._earlier() if self.running else frozenset()
        if self._used:
            self._execute()
        else:
            self._used = True
            self._ask(_FIRST, options=options)
        try:
            self._run.to_child.flush()  # it finds the code when it goes on, and doesn't go to sleep again
        except OSError:  # the loop closes the link then
            pass
        self.thaw()
        self._one = False
        return ""

    def begin_job(self, order: wire.Frame, requests: Requests | None) -> str:
        """Lets the processes of earlier calls run for a command, but the one with the variables."""
        if self._used and not self._there(requests):
            return f"the sandbox ended between calls: {self.lost}"
        if order["type"] == "exec":
            self._one = False
            self.running = self.running or order["options"].get("running") is True
            self._before = self._earlier()
            for pid in self._before:
                processes.send(pid, signal.SIGCONT)
        return ""

    def _earlier(self) -> frozenset[int]:
        """The processes of earlier calls, but the one with the variables."""
        self._before = frozenset()  # _others leaves them out
        return frozenset(self._others()) - {self._run.child}

    def thaw(self) -> None:
        """Has all processes go on but the copies, of which the code would have a SIGCHLD each.

        Those of their ends and stops are to come before: see Spares.collect.
        """
        if self.running:  # they aren't stopped
            self._stirring.clear()
        until = time.monotonic() + ENOUGH
        while self._stirring and time.monotonic() < until:
            self._stirring = [pid for pid in self._stirring if processes.stirs(pid)]
            if self._stirring:
                time.sleep(SOON / 10)
        for pid in [self._run.child] if self._one else self._others():
            processes.send(pid, signal.SIGCONT)

    def freeze(self) -> None:
        """Stops all processes; of a sandbox whose processes run on, only the one with the variables."""
        if not self.running:
            processes.signal_all(self._run.child, signal.SIGSTOP)
        elif not self.gone:
            processes.send(self._run.child, signal.SIGSTOP)

    def drop_older(self, now: float) -> None:
        """Ends the process that undo would have needed, once a call is under way, to have its memory.

        Where that is little, or the code has a handler of SIGCHLD, this waits for the end of the call.
        """
        if not self.older or self._unsaid or now < max(self._drops, self._run.began + ENOUGH):
            return
        self._drops, child = now + watch.INTERVAL, self._run.child
        if watch.used_by(child) > LITTLE and not processes.heeds(child, signal.SIGCHLD):
            processes.kill(self.older)
            self.older = 0

    def rest(self) -> None:
        """Ends the process that isn't needed, and puts off tidy, which would keep done from the client."""
        self.tidies = time.monotonic() + REST
        if self._useless:
            processes.kill(self._useless)
            self._stirring.append(self._useless)
        self._useless = 0

    def tidy(self) -> None:
        """Has the process with the variables copy itself."""
        self.tidies = 0.0
        if self._later and processes.alive(self._run.child):
            self._later, self._run.began = False, time.monotonic()
            self._ask(_BETWEEN)
            processes.send(self._run.child, signal.SIGCONT)

    def _execute(self) -> None:
        """Sends the code, with the key and whether the call can be taken back."""
        more = wire.encode({"key": self._key, "back": self.spare > 0})
        self._run.to_child.push(self._line + b"," + more[1:])
        self._line = b""
        self._waits, self._made = False, None
        self._asked, self.until = _BEGUN, time.monotonic() + PATIENCE

    def _ask(self, what: str, **more: object) -> None:
        """Asks the process for a copy of itself, or to rehearse a call."""
        self._waits, self._made = False, None
        self._asked = what
        soon, kind = what in (_ENDED, _BETWEEN, _REHEARSAL), "rehearse" if what == _REHEARSAL else "spare"
        self.until = time.monotonic() + (READY if soon else PATIENCE)
        self._run.to_child.push(wire.encode({"type": kind, "key": self._key, **more}))

    @property
    def copying(self) -> bool:
        """Whether the process copies itself between two calls: what is to be done next waits for that."""
        if self._asked not in (_BETWEEN, _REHEARSAL) or self._run.status is not None:
            return False
        return processes.alive(self._run.child)  # where it has died, status may be forgotten already

    def cancelled(self) -> bool:
        """Reports whether a cancel has come before the code began, so that nothing is to be killed."""
        return self._asked == _FIRST or self._run.order is not None

    def said(self, kind: str, frame: wire.Frame) -> None:
        """Takes what the process says of itself: begun, ended, made, rehearsed, took; and what its copy
        says: waits.

        It changes nothing but who is asked next, and counts only in the call it is about. But a copy
        that is made later than in READY is ended, or it would wait as long as the sandbox lasts.
        """
        asked = self._asked not in ("", _BEGUN, _REHEARSAL) and self.is_of_call(frame)
        if kind == "made" and not asked:
            self._copies.drop(frame, (self.spare, self.older, self._fresh, self._useless))
        if not self.is_of_call(frame) or self._run.killed or self._run.status is not None:
            return
        if kind == "took":
            self._took = True
            return
        if kind == "waits":
            self._waits = True
        elif kind == "begun":
            self.begun()
        elif kind == "rehearsed" and self._asked == _REHEARSAL:
            self._asked, self.until = "", 0.0
            self.freeze()
            self._one = self._others() == [self._run.child]
        elif kind == "made" and asked and self._made is None:
            self._made = frame
        elif kind == "ended" and self._run.running and self._asked in ("", _BEGUN):
            self._ended(frame)
        if self._made is not None and (self._waits or "pid" not in self._made):
            self._complete()

    def _ended(self, frame: wire.Frame) -> None:
        """Takes the word of the process that its call is over.

        Where nothing else of the code can run while the process copies itself, the host is told
        first: a copy takes milliseconds, and then nobody waits for it.
        """
        status = frame.get("status")
        if type(status) is not int or not 0 <= status <= 255:
            return
        self._told = status
        self._copies.unfit = [name for name in names(frame.get("unfit")) if name in wire.UNFIT]
        self._one = not self.running and self._is_one()
        if why := self._copies.no_use:
            self._copies.why = why
        elif self._one:
            self._later, self._copies.why = True, "it ended before it had copied itself"
        else:
            self._ask(_ENDED)
            return
        self._over()

    def _over(self) -> None:
        """Ends the call of a process that has said so."""
        self._asked, self.until = "", 0.0
        self.freeze()
        self._run.status, self._run.alive = (self._told or 0) << 8, True

    def _is_one(self) -> bool:
        """Reports whether there is one process beside the copies, and of threads in it no more than
        the one that runs code and the one that reads answers.
        """
        child = self._run.child
        return 0 < processes.threads(child) <= 1 + self._reads and self._others() == [child]

    def called(self) -> None:
        """Takes a call of a tool."""
        self._reads = True
        self.begun()

    def begun(self) -> None:
        """Takes it that the code runs: its process says so, or calls a tool."""
        if self._asked == _BEGUN:
            self._asked, self.until = "", 0.0

    def is_of_call(self, frame: wire.Frame) -> bool:
        """Reports whether the process that was sent the code says it, or one that has its memory."""
        return frame.get("key") == self._key

    def _complete(self) -> None:
        """Goes on once a copy was made, or can't be."""
        asked, made = self._asked, self._made or {}
        self._asked, self._made, self.until = "", None, 0.0
        if asked != _FIRST:
            self.freeze()
        copy = self._copies.looked_at(made, (self.spare, self.older))
        if copy and os.getpid() == 1:  # otherwise freeze stops none
            self._stirring.append(copy)
        if asked == _ENDED:
            self._fresh = copy
            self._over()
            return
        self.spare = copy
        if asked == _BETWEEN:
            self._unsaid = not copy
            self._one = self._others() == [self._run.child]
            if copy and self._rehearses and not self._run.order:
                self._ask(_REHEARSAL)
                processes.send(self._run.child, signal.SIGCONT)
        if asked == _FIRST and self._run.cancelled_id == self._run.id:
            self.freeze()
            outcome.cancelled(self._run)
        elif asked == _FIRST:
            self._execute()

    def looked(self) -> None:
        """Makes sure, with all stopped, that a process lives which has said that its call is over."""
        run = self._run
        if run.alive and not processes.alive(run.child):
            run.alive = self._later = False
            try:
                pid, status = os.waitpid(run.child, os.WNOHANG)
            except ChildProcessError:  # its status was taken before, which is then run.status
                return
            if pid:
                run.status = status

    def left(self, requests: Requests | None) -> wire.Frame:
        """Finds out which process has the variables after a call, and says so as done does."""
        state, again = "kept", self._copies.stopped(self._run)
        if self._run.job:
            if self.gone or not processes.alive(self._run.child):
                if not self._replaced(requests, self.spare, self.older):
                    return {"state": "lost", "reason": self.lost}
                said = "the command has ended the process of the variables; threads are gone"
                self._note = f"{said}; {self._note}" if self._note else said
        elif self._run.alive and requests:
            self._useless = self.older
            self.older, self.spare, self._fresh = self.spare, self._fresh, 0
        elif self._replaced(requests, self.spare, self.older):
            state, self._note = "before", "; ".join(filter(None, (self._note, again)))
        else:
            return {"state": "lost", "reason": self.lost}
        self.freeze()
        return self.stands(state)

    def stands(self, state: str = "kept") -> wire.Frame:
        """What done says of the sandbox."""
        told, self._unsaid = {"state": state}, False
        if self._note:
            told["reason"], self._note = self._note, ""
        if self._used and not self.spare and not self._later:
            told["noWayBack"] = self._copies.why
        return told

    def undo(self, requests: Requests | None) -> wire.Frame:
        """Goes back to the process with the variables of before the last call, if there is one.

        It gives what done says of that. Whether the process of now still lives doesn't matter.
        """
        if not self.older:
            self._there(requests)
            error = {"code": "validation_error", "message": "there is no call that could be undone"}
            told = {"state": "lost", "reason": self.lost} if self.lost else self.stands()
            return {"ok": False, "error": error, "sandbox": told}
        older = self.older
        took = self._replaced(requests, older, self.spare)
        self.freeze()
        if not took:
            return {"ok": False, "sandbox": {"state": "lost", "reason": self.lost}}
        if took != older:
            self._note = "threads are gone"
            error = {"code": "internal_error", "message": "the copy of before the last call didn't answer"}
            return {"ok": False, "error": error, "sandbox": self.stands()}
        return {"ok": True, "sandbox": self.stands("before")}

    def overdue(self, now: float, requests: Requests | None) -> None:
        """Ends a call whose process doesn't answer."""
        if self.until and now >= self.until:
            self.until = 0.0
            if self._asked in (_BETWEEN, _REHEARSAL) and not self.copying:  # it has ended: see _there
                return
            if self._made is None and self._asked in (_FIRST, _BEGUN, _AGAIN):
                self._run.kill("deaf")
            else:
                self._do_without(requests)

    def _do_without(self, requests: Requests | None) -> None:
        """Goes on without a copy that doesn't come to wait, or a rehearsal that doesn't end."""
        asked = self._asked
        if asked != _FIRST:
            self.freeze()
        if requests:  # the host may have kept it from being heard
            requests.take()
        if self._asked != asked:
            return
        if asked == _REHEARSAL:
            self._asked, self._one, self._rehearses = "", False, False
            return
        self._copies.late(self._made or {}, (self.spare, self.older))
        self._made = {}
        self._complete()

    def _there(self, requests: Requests | None) -> bool:
        """Replaces a process that has ended between calls, and reports whether there is one."""
        run = self._run
        if run.status is None and not run.killed and processes.alive(run.child):
            return True
        if not self._replaced(requests, self.spare, self.older):
            return False
        killed, run.killed, run.because = run.killed, "", ""
        why = f"were ended between calls ({killed})" if killed else "ended between calls"
        self._note = f"its processes {why}; threads are gone" + (f"; {self._note}" if self._note else "")
        self.freeze()
        return True

    def kill(self) -> None:
        """Ends all processes but the copies and those of earlier calls, once all are stopped.

        Where those run on they do so before any is ended: a stopped one whose parent ends is sent SIGHUP.
        At a limit none of them is left. In a command, the process of the variables isn't ended unless
        it takes more memory than all may.
        """
        run = self._run
        if run.killed in ("memory", "processes"):
            self._before = frozenset()
            if run.job and 0 < run.watch[0] < watch.used_by(run.child):
                self.gone = True
        processes.signal_all(run.child, signal.SIGSTOP)
        others = self._others()
        for pid in processes.trees(self._before) if self.running else ():
            processes.send(pid, signal.SIGCONT)
        for pid in others:
            processes.kill(pid)

    def _others(self) -> list[int]:
        """All living processes of the container, or of the groups of child and job, but the copies
        and those of earlier calls with what they have begun meanwhile.
        """
        child, job, own = self._run.child, self._run.job, os.getpid()
        left = {1, self.spare, self.older, *processes.trees(self._before)}
        if job and not self.gone:
            left.add(child)
        if own == 1:
            return processes.others(None, (), left)
        # Beside the groups, a copy of which the child has not told, and what it has left behind.
        return processes.others({child, job or child}, {own, *([] if job else [child])}, left)

    def end(self) -> None:
        """Ends all processes where that doesn't happen by itself."""
        for pid in (self.spare, self.older, self._fresh, self._useless, *self._others()):
            processes.kill(pid)

    def _replaced(self, requests: Requests | None, *copies: int) -> int:
        """Has the first of the copies take over that can, and returns its number, or 0.

        All other processes are ended before; the copies that aren't needed, after. Without a first
        one there isn't one. What has taken over is asked for a copy in turn.
        """
        run, until = self._run, time.monotonic() + PATIENCE
        processes.kill(self._fresh)
        uncopied = self._later or self._unsaid or self._asked == _BETWEEN
        self._fresh, self._note, self._later, self._asked, self.until = 0, "", False, "", 0.0
        while time.monotonic() < until:
            self.kill()
            processes.collect()
            if not self._others():
                break
            time.sleep(SOON)
        child, status, run.status = run.child, run.status, None
        there = any(processes.alive(pid) for pid in copies if pid)
        if not copies[0] and not uncopied:  # it was said that there is no way back
            processes.kill(self.older)
            self.older, copies = 0, (0,)
        for pid in copies:
            if pid and requests and self._takes_over(pid, requests, until):
                if pid != copies[0]:
                    self._note = "a copy of an earlier state has taken over: the latest one didn't answer"
                for other in copies:
                    processes.kill(other if other != pid else 0)
                self.gone = False
                return pid
            processes.kill(pid)
            self.spare, self.older = (0 if p == pid else p for p in (self.spare, self.older))
        run.child, run.status = child, status or 0  # it has been collected
        self.lost = "its process has ended, and "
        if not any(copies):
            self.lost += f"there was no copy of it: {self._copies.why}"
        elif not there:
            self.lost += "so had the copy of it"
        elif requests is None:
            self.lost += "all its processes have closed what they speak to the bridge by"
        else:
            self.lost += "the copy of it didn't answer"
        return 0

    def _takes_over(self, pid: int, requests: Requests, until: float) -> bool:
        """Has one copy take over, and make another one."""
        run, link = self._run, self._run.to_child
        requests.forget()
        self._key, self._took, killed, run.killed = os.urandom(8).hex(), False, run.killed, ""
        run.child, self._told, self._line, self._reads = pid, None, b"", False
        self._copies.forget()
        link.clear()
        link.push(b"\n" + wire.encode({"type": "take", "key": self._key}))
        try:
            os.kill(pid, wire.WAKE)
            os.kill(pid, signal.SIGCONT)
            if not self._heard(requests, until, lambda: self._took):
                return False
            keep = self.spare, self.older
            self.spare = 0
            if why := self._copies.no_use:
                self._copies.why, self.older = why, 0
                return True
            self._ask(_AGAIN)
            done = self._heard(requests, min(until, time.monotonic() + READY), lambda: not self._asked)
            if not done and self._made is not None:
                self._do_without(requests)
                done = True
            self._asked, self.until = "", 0.0
            self.spare, self.older = (self.spare, 0) if done else keep
            return done
        except OSError:  # it is gone
            return False
        finally:
            run.killed = killed

    def _heard(self, requests: Requests, until: float, over: Callable[[], bool]) -> bool:
        """Speaks with the child alone, until it has answered, and reports whether it has."""
        link, poller = self._run.to_child, select.poll()
        while not over() and (left := until - time.monotonic()) > 0 and processes.alive(self._run.child):
            poller.register(link.fd, select.POLLIN | (select.POLLOUT if link.size else 0))
            poller.poll(min(left, 0.05) * 1000)
            link.flush()
            if not requests.take():
                break
        return over()
