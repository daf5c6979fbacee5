"""The supervisor's one loop.

It never blocks but in poll, holds bounded buffers, and believes nothing the child says.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from guest import confine, outcome, wire
from guest.host import Host
from guest.light_typing import TYPE_CHECKING
from guest.output import Output
from guest.requests import Requests
from guest.run import Run, Stop, kill_all
from guest.watch import INTERVAL, Watch

if TYPE_CHECKING:
    from guest.jobs import Answer
    from guest.rescue import Sandbox

SOON = 0.003  # seconds after which code is watched: most has ended by then
PARTING = 0.01  # seconds that the host has to hang up; what is left of the run isn't watched then
PARTING_ALONE = 1.0  # seconds that it has then, when nothing of the run is left
MAX_LEFT = 64  # pipes of commands that have ended; processes that write to an older one die of SIGPIPE
ENDING = 5  # milliseconds that a child which is just ending has before it is killed for its memory


class Loop:
    """Moves frames, requests and output until `done` is sent or the host fails."""

    def __init__(
        self,
        host_in: int,
        host_out: int,
        link: int,
        pipes: tuple[int, int],
        child: int,
        own: confine.Confined,
        order: wire.Frame | None = None,
    ) -> None:
        self._in = host_in
        self._run = Run(child, own, wire.Outbox(host_out), wire.Outbox(link))
        self._ahead = bool(order and order.get("imports"))  # others' code runs before there is a run
        if self._ahead and order:
            self._run.bound(order)
        self._printed = Output(*pipes, self._run.output)
        self._left: list[int] = []  # pipes that processes of earlier commands may still write to
        self._output: Output | Answer = self._printed  # or what a job writes
        self._requests = Requests(self._run, self._printed)
        self._host = Host(self._run)
        self._heard = time.monotonic()
        self._looked = 0.0
        self._watch: Watch | None = None
        self._watches = True  # but while files are read or written, which takes memory of this process's
        self._link_open = True
        self._wake = os.pipe()

    def run(self) -> int:
        """Returns the exit status of the process."""
        for fd in self._wake:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._reap()
        try:
            while True:
                while not (self._run.done and self._run.to_host.size == 0):
                    self._step()
                if not self._next():
                    break
            sandbox = self._run.sandbox
            if sandbox and not sandbox.lost:  # after a done that says that it lives
                raise Stop(wire.EXIT_INTERNAL, "its processes have closed what they speak to the bridge by")
            if not self._hung_up(PARTING):  # an engine may lose what a busy host has yet to read
                kill_all(self._run.child, self._run.status is not None)
                self._hung_up(PARTING_ALONE)
            return wire.EXIT_OK
        except Stop as stop:
            print(f"mcp-bridge guest: {stop}", file=sys.stderr)
            return stop.status
        except Exception:
            import traceback  # as late as this: it takes 2 ms

            traceback.print_exc()
            return wire.EXIT_INTERNAL
        finally:
            kill_all(self._run.child, self._run.status is not None)
            if self._run.sandbox:
                self._run.sandbox.end()

    def _next(self) -> bool:
        """Gets ready for another run, if there can be one."""
        sandbox = self._run.sandbox
        if not sandbox or sandbox.lost or not self._link_open:
            return False
        self._run.again()
        sandbox.rest()
        if self._output is not self._printed:
            self._left += sorted(self._output.open)
            for fd in self._left[:-MAX_LEFT]:
                os.close(fd)
            del self._left[:-MAX_LEFT]
        self._watch, self._watches, self._output = None, True, self._printed
        self._run.warm = self._run.ready
        return True

    def _begin(self, sandbox: Sandbox, order: wire.Frame) -> None:
        """Does what the host asks for."""
        run, requests = self._run, self._requests if self._link_open else None
        execute, run.order = order["type"] == "execute", None
        self._watch, self._watches = None, "options" in order
        if self._watches:
            run.bound(order["options"])
        if order["type"] == "undo":
            frame = sandbox.undo(requests)
            run.send({"type": "done", "id": run.id, "durationMs": 0, **frame})
            run.done = True
            return
        if run.cancelled_id == run.id:
            outcome.cancelled(run)
        elif execute and run.files_failed:
            outcome.refuse(run, run.files_failed)
        elif why := (sandbox.begin if execute else sandbox.begin_job)(order, requests):
            outcome.refuse(run, why)
        elif execute:
            run.files.clear()
            run.begin()
        else:
            from guest import jobs  # few sandboxes are used so

            try:
                self._output = jobs.start(run, order)
            except OSError as e:  # the code's own processes are as many as there may be, say
                sandbox.freeze()
                why = f"the sandbox can't start a process ({e.strerror})"
                outcome.refuse(run, f"{why}; end some of its processes or threads")
            else:
                run.begin(regardless=True)
        run.line = b""

    def _step(self) -> None:
        now = time.monotonic()
        events = self._poller(now).poll(self._timeout(now))
        for fd, event in events:
            self._handle(fd, event)
        now = time.monotonic()
        if now - self._heard > wire.SILENCE:
            raise Stop(wire.EXIT_SILENT, f"nothing heard from the host for {wire.SILENCE:g} s")
        sandbox = self._run.sandbox
        if self._watch and not self._awaits_watch():
            self._watch = None
        if self._watch and now - self._looked >= INTERVAL and not self._run.done:
            self._looked = now
            reason, because = self._watch.exceeded()
            if reason:
                self._let_end()
                self._run.kill(reason, because)
        if self._output.due is not None and self._output.due <= now:
            self._output.flush()
        if sandbox:
            sandbox.overdue(now, self._requests if self._link_open else None)
            if self._run.running and not self._run.job:
                sandbox.drop_older(now)
            if sandbox.tidies and (sandbox.tidies <= now or self._run.order):
                sandbox.tidy()
            if self._run.order and not sandbox.copying:
                self._begin(sandbox, self._run.order)
        # A process that ends between calls is replaced when there is another call.
        if self._run.status is not None and not self._run.done and (self._run.asked or not sandbox):
            outcome.finish(self._run, self._requests if self._link_open else None, self._output)
            if self._link_open and not sandbox:
                self._close_link()  # nothing comes behind done
        self._flush_link()
        self._run.tell_taken()
        if not self._holds_back(now):
            try:
                self._run.to_host.flush()
            except OSError as e:
                raise Stop(wire.EXIT_HOST_GONE, f"the host reads no more: {e}") from None
        if self._run.done and self._run.to_host.size and not sandbox:  # the host takes its time; see finish
            kill_all(self._run.child, collected=True)
        if self._run.to_child.size > wire.UNREAD_MAX:
            unread = f"results that the code left unread took more than {wire.UNREAD_MAX >> 20} MiB"
            self._run.kill("memory", unread)
            self._run.to_child.clear()
        if self._watch is None and self._awaits_watch() and now - self._run.began >= self._soon:
            self._watch = Watch(*self._run.watch, None if os.getpid() == 1 else self._run.child)
            self._looked = now

    def _awaits_watch(self) -> bool:
        """Reports whether anything runs that is to be watched."""
        if not self._watches or not any(self._run.watch):
            return False
        sandbox = self._run.sandbox
        return self._run.running or self._ahead or bool(sandbox and (sandbox.running or sandbox.copying))

    def _let_end(self) -> None:
        """Waits for a child that is ending: until it has ended its memory counts twice (fastexit.py)."""
        poller = select.poll()
        poller.register(self._wake[0], select.POLLIN)
        poller.poll(ENDING)
        self._reap()

    @property
    def _soon(self) -> float:
        """Seconds after which it is watched what code takes, or a process that copies itself.

        Most of either has ended by then, and a look takes time.
        """
        return SOON if self._run.running else INTERVAL

    def _holds_back(self, now: float) -> bool:
        """Reports whether the word that the code has begun waits for what comes next.

        The engine passes the two on for the price of one: 2 ms of a warm call's p10 on a busy machine.
        """
        begun = self._run.running and self._run.status is None and now - self._run.began < SOON
        return begun and self._run.to_host.size == self._run.quiet

    def _hung_up(self, limit: float) -> bool:
        """Waits for the host to hang up, and reports whether it did. It gets `done` 0.4 ms sooner (p50)."""
        until = time.monotonic() + limit
        poller = select.poll()
        poller.register(self._in, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if poller.poll(left * 1000) and wire.read_some(self._in) == b"":
                return True
        return False

    def _poller(self, now: float) -> select.poll:
        poller = select.poll()
        poller.register(self._in, select.POLLIN)
        writes = self._run.to_host.size and not self._holds_back(now)
        poller.register(self._run.to_host.fd, select.POLLOUT if writes else 0)
        poller.register(self._wake[0], select.POLLIN)
        room = self._run.to_host.size < wire.HIGH_WATER
        if room and self._run.running and not self._run.done:
            for fd in self._output.awaited(now):
                poller.register(fd, select.POLLIN)
        for fd in self._unheard():
            poller.register(fd, select.POLLIN)
        takes = room and self._run.held_size < wire.HELD_MAX and self._run.to_child.size <= wire.LINK_WATER
        link = select.POLLIN if takes else 0
        link |= select.POLLOUT if self._run.to_child.size else 0
        sandbox = self._run.sandbox
        idle = sandbox and self._run.ready and (not self._run.running or self._run.done or self._run.job)
        idle = idle and not (sandbox and sandbox.copying)
        if self._link_open and link and not idle:
            poller.register(self._run.to_child.fd, link)
        return poller

    def _unheard(self) -> set[int]:
        """The pipes that no code of now prints to: what comes is dropped, so that no process waits."""
        if not self._run.sandbox:
            return set()
        between = not self._run.running or self._run.done or self._run.job
        return {*self._left, *(self._printed.open if between else ())}

    def _drop(self, fd: int) -> None:
        """Reads what is heard by no one, and closes a pipe at its end."""
        if wire.read_some(fd) == b"":
            os.close(fd)
            self._printed.open.discard(fd)
            if fd in self._left:
                self._left.remove(fd)

    def _timeout(self, now: float) -> float:
        """Milliseconds until the next thing is due. poll rounds up."""
        times = [self._heard + wire.SILENCE]
        sandbox = self._run.sandbox
        if sandbox and sandbox.until:
            times.append(sandbox.until)
        if sandbox and sandbox.tidies:
            times.append(sandbox.tidies)
        if not sandbox or self._run.running:
            times.append(now + 1.0)
        if self._output.rests_until > now:
            times.append(self._output.rests_until)
        if self._output.due is not None:
            times.append(self._output.due)
        if self._run.done:
            pass
        elif self._watch:
            times.append(self._looked + INTERVAL)
        elif self._awaits_watch() or self._run.running and now - self._run.began < SOON:
            times.append(self._run.began + self._soon)
        return max(0.0, min(times) - now) * 1000

    def _handle(self, fd: int, event: int) -> None:
        if fd == self._in:
            self._hear()
        elif fd == self._run.to_host.fd:
            if event & select.POLLERR:
                raise Stop(wire.EXIT_HOST_GONE, "the host reads no more")
        elif fd == self._wake[0]:
            wire.read_some(fd)
            self._reap()
        elif fd == self._run.to_child.fd:
            if event & ~select.POLLOUT and not self._requests.take():
                self._close_link()
        elif fd in self._unheard():
            self._drop(fd)
        elif fd in self._output.open:
            self._output.take(fd)

    def _hear(self) -> None:
        data = wire.read_some(self._in)
        if data == b"":
            raise Stop(wire.EXIT_HOST_GONE, "the host is gone: stdin ended")
        if data:
            self._heard = time.monotonic()
            self._host.feed(data)

    def _flush_link(self) -> None:
        if self._link_open:
            try:
                self._run.to_child.flush()
            except OSError:
                self._close_link()
        else:
            self._run.to_child.clear()  # results of calls that were under way

    def _close_link(self) -> None:
        self._link_open = False
        self._run.to_child.clear()
        os.close(self._run.to_child.fd)

    def _reap(self) -> None:
        """Collects every dead process: as pid 1 also those that their own parents left behind."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._run.child and self._run.job and self._run.sandbox:
                    self._run.sandbox.gone = True
                elif pid == (self._run.job or self._run.child):
                    self._run.status, self._run.alive = status, False
        except ChildProcessError:
            return
