"""Running one piece of code after the other in one interpreter, as a notebook does."""

from __future__ import annotations

import atexit
import linecache
import os
import sys
import threading
from collections.abc import Callable

from guest import errors, execute, spare, streams, wire
from guest.calls import report_unawaited
from guest.displayhook import Display
from guest.light_typing import TYPE_CHECKING, Any
from guest.link import Link
from guest.mcp_runtime import Runtime

if TYPE_CHECKING:
    from guest.environment import Environment

_exit = os._exit  # the code may put something else in its place

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
        self._spares = spare.Spares(link)
        self._files: list[str] = []  # names of the code of the last calls
        self._variables = False  # those of the environment are set

    def serve(self, frame: wire.Frame) -> None:
        """Runs the code of a frame, and of all that follow; never returns."""
        while True:
            status = self._call(frame)
            if not self._link.mine():  # a fork that the code has made has come to the code's end
                self._leave(status)
            self._end(status)
            frame = self._order()

    def _order(self) -> wire.Frame:
        """Waits for the next execute."""
        while True:
            frame = self._link.order()
            if frame.get("type") == "execute":
                return frame
            if frame.get("type") == "spare":
                self._spares.make(bool(frame.get("fork")))

    def _call(self, frame: wire.Frame) -> int:
        """Runs one piece of code, and returns what the status of a process would be."""
        options = frame["options"]
        try:
            self._prepare(frame, options)
        except Exception as e:
            kind = type(e).__name__
            told = f"the guest could not prepare the run: {kind}: {e}"
            error = {"code": "internal_error", "type": kind, "message": told}
            self._link.send({"type": "claim", "error": error})
            return 1
        try:
            execute.run(str(frame.get("code")), self._namespace, self._packages)
            return 0
        except SystemExit as e:
            from guest.child import exit_status

            return exit_status(e.code)
        except BaseException as e:
            self._reserve.release()
            claim = errors.told(e, self._namespace, keep=True)
            self._link.send({"type": "claim", "error": claim})
            if claim["code"] == "memory_limit" and self._spares.made:  # what it has filled goes with it
                _exit(1)
            self._reserve.renew()
            return 1

    def _prepare(self, frame: wire.Frame, options: wire.Frame) -> None:
        if not self._variables:
            os.environ.update(options.get("variables") or {})
            self._variables = True
        self._runtime.install(frame)
        self._display.renew(options.get("maxArtifactBytes") or 0)
        wire.USER_FILE = str(frame.get("file") or wire.USER_FILE)
        if wire.USER_FILE not in self._files:
            self._files.append(wire.USER_FILE)
        for name in self._files[:-SHOWN]:
            linecache.cache.pop(name, None)
        del self._files[:-SHOWN]

    def _leave(self, status: int) -> None:
        """Ends a process as an interpreter would."""
        _each(getattr(threading, "_shutdown", None), getattr(atexit, "_run_exitfuncs", None))
        streams.flush()
        _exit(status)

    def _end(self, status: int) -> None:
        """Ends a call: what is shown at the end, and then the word that it is over."""
        _each(report_unawaited, self._display.finish)
        streams.flush()
        if self._packages:
            self._packages.report(self._link)
        self._link.abandon()
        try:
            self._link.send({"type": "ended", "status": status, "unfit": spare.unfit()})
        except BaseException:  # the code has closed the descriptor
            _exit(status)


def _each(*steps: Callable[[], object] | None) -> None:
    for step in steps:
        try:
            if step is not None:
                step()
        except BaseException:
            sys.excepthook(*sys.exc_info())
