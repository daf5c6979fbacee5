"""Running one piece of code after the other in one interpreter, as a notebook does."""

from __future__ import annotations

import atexit
import gc
import linecache
import os
import signal
import sys
import threading

from guest import errors, execute, spare, streams, wire
from guest.calls import report_unawaited
from guest.displayhook import Display
from guest.errors import each, show
from guest.forgotten import report_variables
from guest.light_typing import TYPE_CHECKING, Any
from guest.link import Link
from guest.mcp_runtime import Runtime

if TYPE_CHECKING:
    from guest.environment import Environment

# The code may put something else in their place.
_exit, _setitimer = os._exit, signal.setitimer
_collects, _collect, _collect_none = gc.isenabled, gc.enable, gc.disable
# The module's own, which make no enum of each signal: that takes a call 0.3 ms, and Python that the
# code may have broken.
_own = sys.modules.get("_signal", signal)
_sigmask, _sigpending, _sigtimedwait = _own.pthread_sigmask, _own.sigpending, _own.sigtimedwait
_SIGNALS = {int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}}
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_RUNG = {signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF}  # by those

_CALL = {"type": "execute", "code": "n = 0\nif n:\n    print(n)\n", "options": {}}

SHOWN = 100  # calls whose lines tracebacks can show


class Repeat:
    """The calls of one sandbox."""

    def __init__(
        self,
        link: Link,
        namespace: dict[str, Any],
        runtime: Runtime,
        display: Display,
        packages: Environment | None,
        reserve: errors.Reserve,
    ) -> None:
        self._link, self._namespace, self._runtime, self._display = link, namespace, runtime, display
        self._packages, self._reserve = packages, reserve
        wire.LASTS = True
        self._spares = spare.Spares(link)
        self._streams = streams.Kept()
        self._key: object = None  # of the call, which the supervisor has made for it
        self._mask: set[int] = set()  # signals that the code has blocked
        self._files: list[str] = []  # names of the code of the last calls
        self._variables = False  # those of the environment are set

    def serve(self, frame: wire.Frame) -> None:
        """Does what a frame asks for, and all that follow; never returns.

        What the code has left armed, a handler of a signal say, is not to end the process: all
        signals are blocked but while its code runs, and what is raised all the same is passed over.
        """
        self._shut()
        while True:
            try:
                kind, key = frame.get("type"), frame.get("key")
                if kind == "execute":
                    self._call(frame)
                elif kind == "rehearse":
                    self._rehearse()
                    if not self._link.mine():
                        self._leave(0)
                    self._link.send({"type": "rehearsed", "key": key})
                else:
                    self._link.send({"type": "made", "key": key, **self._spares.make(key)})
            except spare.TookOver:
                each(self._streams.unlock)
            except BaseException:
                show()
            frame = self._next()

    def _rehearse(self) -> None:
        """Does what every call does, for no one to see: no garbage is collected, whose finalizers may print.

        The first write to each page that a copy shares takes time: half of that which a call would
        take is spent here, where no one waits. It gains 0.3 to 0.6 ms of a call's p50.
        """
        collects = _collects()
        _collect_none()
        try:
            frame = wire.decode(wire.encode(_CALL)) or {}
            for part in execute.compiled(frame["code"], [frame["code"]]):
                exec(part, {})
            each(self._streams.touch, self._runtime.export, report_unawaited, streams.flush)
            each(self._link.abandon, spare.unfit)
        except BaseException:  # the code has put something else in the place of a function
            pass
        finally:
            if collects:
                _collect()

    def _next(self) -> wire.Frame:
        """Waits for a frame."""
        while True:
            try:
                return self._link.order()
            except EOFError:
                _exit(0)
            except BaseException:
                show()

    def _call(self, frame: wire.Frame) -> None:
        """Runs one piece of code, and says what the status of a process would be."""
        self._key = frame.get("key")
        self._link.send({"type": "begun", "key": self._key})
        try:
            status = self._run(frame)
        except BaseException as e:
            status = self._raised(e, frame.get("back") is True)
        if not self._link.mine():
            self._leave(status)
        self._shut()
        self._end(status)

    def _run(self, frame: wire.Frame) -> int:
        try:
            self._prepare(frame, frame["options"])
        except Exception as e:
            kind = type(e).__name__
            told = f"the guest could not prepare the run: {kind}: {e}"
            self._claim({"code": "internal_error", "type": kind, "message": told})
            return 1
        self._spares.collect()
        try:
            _sigmask(signal.SIG_SETMASK, self._mask)
            execute.run(str(frame.get("code")), self._namespace, self._packages)
            return 0
        finally:
            self._shut()

    def _raised(self, error: BaseException, back: bool) -> int:
        """Says what the code has raised."""
        try:
            if isinstance(error, SystemExit):
                from guest.child import exit_status

                return exit_status(error.code)
            self._reserve.release()
            claim = errors.told(error, self._namespace, keep=True)
            self._claim(claim)
            if claim["code"] == "memory_limit" and back:  # what it has filled goes with it
                _exit(1)
            self._reserve.renew()
        except BaseException:
            show()
        return 1

    def _claim(self, error: wire.Frame) -> None:
        self._link.send({"type": "claim", "key": self._key, "error": error})

    def _shut(self) -> None:
        """Blocks all signals, and ends the timers of the code."""
        mask = _sigmask(signal.SIG_BLOCK, _SIGNALS)
        if mask != _SIGNALS:
            self._mask = mask
        for timer in _TIMERS:
            _setitimer(timer, 0)
        while rung := _sigpending() & _RUNG:
            _sigtimedwait(rung, 0)  # another thread may have taken it meanwhile

    def _prepare(self, frame: wire.Frame, options: wire.Frame) -> None:
        if not self._variables:
            os.environ.update(options.get("variables") or {})
            self._variables = True
        if back := self._streams.renew():
            sys.stderr.write(f"[put back, since earlier code had closed or replaced it: {', '.join(back)}]\n")
        self._runtime.install(frame)
        self._display.renew(options.get("maxArtifactBytes") or 0)
        wire.USER_FILE = str(frame.get("file") or wire.USER_FILE)
        if wire.USER_FILE not in self._files:
            self._files.append(wire.USER_FILE)
        for name in self._files[:-SHOWN]:
            linecache.cache.pop(name, None)
        del self._files[:-SHOWN]

    def _leave(self, status: int) -> None:
        """Ends a fork that has come to the end of the code, as an interpreter would.

        It has no call to end, and the next frame isn't for it.
        """
        _sigmask(signal.SIG_SETMASK, self._mask)
        each(getattr(threading, "_shutdown", None), getattr(atexit, "_run_exitfuncs", None), streams.flush)
        _exit(status)

    def _end(self, status: int) -> None:
        """Ends a call: what is shown at the end, and the word."""
        report = [lambda: packages.report(self._link)] if (packages := self._packages) else []
        variables = None if status else report_variables
        each(report_unawaited, variables, self._display.finish, streams.flush, *report, self._link.abandon)
        told = {"status": status, "unfit": spare.unfit()}
        try:
            self._link.send({"type": "ended", "key": self._key, **told})
        except BaseException:  # the code has closed the descriptor
            _exit(status)
