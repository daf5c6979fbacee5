"""The progress of one call, from the thread that hears of it to the callback of the code."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

from guest import wire

Callback = Callable[[float, "float | None", "str | None"], object]

KEPT = 100  # reports that wait while the code is busy with something else; the oldest go first

_ASYNC = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR; inspect takes long to import


def check(callback: Callback) -> None:
    """Raises TypeError for what can't be a callback."""
    if not callable(callback):
        kind = type(callback).__name__
        raise TypeError(f"progress must be a function of progress, total and message, not {kind}")
    if getattr(getattr(callback, "__code__", None), "co_flags", 0) & _ASYNC:
        raise TypeError(
            "progress must be a plain function, not an async one: it is called while the call is awaited"
        )


class Observed:
    """The reports on a call, which come in one thread and are told in another, in order."""

    def __init__(self, name: str, callback: Callback, wake: Callable[[], None]) -> None:
        self._name, self._callback, self._wake = name, callback, wake
        self._heard: deque[wire.Frame] = deque(maxlen=KEPT)
        self._woken = False
        self._warned = False

    def take(self, frame: wire.Frame) -> None:
        """Keeps a report until it is told."""
        self._heard.append(frame)
        if not self._woken:
            self._woken = True
            self._wake()

    def tell(self) -> None:
        """Calls the callback. What it raises is reported once, and the call goes on."""
        self._woken = False  # before anything is taken: what comes from here on wakes again
        while self._heard:
            frame = self._heard.popleft()
            try:
                self._callback(frame["progress"], frame.get("total"), frame.get("message"))
            except Exception as e:
                self._warn(e)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            raised = f"has raised {type(error).__name__}: {error}; the call goes on"
            print(f"{_place(error)}: the progress callback of {self._name} {raised}", file=sys.stderr)


def _place(error: Exception) -> str:
    """File and line of the innermost frame that isn't the guest's own."""
    from guest.expressions import entries

    places = [(one.tb_frame.f_code.co_filename, one.tb_lineno) for one in entries(error)]
    own = [f"{file}:{line}" for file, line in places if not file.startswith(wire.GUEST_FILES)]
    return own[-1] if own else wire.USER_FILE
