"""What is said of an uncaught exception: type, message, traceback, line, and a hint."""

from __future__ import annotations

import fcntl
import mmap
import os
import sys
from collections.abc import Callable

from guest import wire
from guest.light_typing import Any
from guest.results import ToolError


class Reserve:
    """Address space and descriptors that are held back for the report of their lack."""

    SIZE = 4 << 20
    FILES = 4
    ABOVE = 32  # their numbers, out of the way of what the code opens first

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Holds them back again, after a release."""
        self._held = mmap.mmap(-1, self.SIZE)
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._files = [fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, self.ABOVE) for _ in range(self.FILES)]
        os.close(null)

    def release(self) -> None:
        self._held.close()
        files, self._files = self._files, []
        for file in files:
            try:
                os.close(file)
            except OSError:  # the code has closed what wasn't its own
                pass


def each(*steps: Callable[[], object] | None) -> None:
    """Calls each, and shows what one raises."""
    for step in steps:
        try:
            if step is not None:
                step()
        except BaseException:
            show()


def show() -> None:
    """Shows what was raised, as far as the code lets it."""
    try:
        sys.excepthook(*sys.exc_info())
    except BaseException:
        pass


def told(error: BaseException, namespace: dict[str, Any], keep: bool = False) -> wire.Frame:
    """The fields of a claim. Unless the variables are to be kept, they make room where memory ended."""
    claim: wire.Frame = {"code": "runtime_error", "type": type(error).__name__, "message": _text(error)}
    if isinstance(error, SyntaxError) and error.filename == wire.USER_FILE:
        claim["message"] = str(error.msg)
    if isinstance(error, ToolError) and error.code != "internal_error":  # which is the guest's own to say
        claim["code"] = str(error.code)
    if isinstance(error, MemoryError):  # Python's own, not one of that name
        claim["code"] = "memory_limit"
        if not keep:
            namespace.clear()
    try:
        from guest import tracebacks  # most runs end well

        hint = "" if isinstance(error, MemoryError) else _hint(error, namespace)
        claim["traceback"], line = tracebacks.render(error)
        if line:
            claim["line"] = line
        if hint:
            claim["message"] += f" ({hint})"
            said = "Did you " in claim["traceback"].rpartition("\n  ")[2]  # by Python itself
            if not said or not hint.startswith(("did you mean", "write import")):
                claim["traceback"] += f"({hint})\n"
    except BaseException:  # memory ended, or the exception's own methods are of any kind
        claim.setdefault("traceback", f"{claim['type']}: {claim['message']}\n")
    return claim


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as e:
        return f"<no message: its __str__ raised {type(e).__name__}>"


def _hint(error: BaseException, namespace: dict[str, Any]) -> str:
    from guest import hints

    try:
        return hints.hint(error, namespace)
    except BaseException:  # what was raised may have attributes of any kind
        return ""
