"""What is said of an uncaught exception: type, message, traceback without the guest's own frames, and line."""

from __future__ import annotations

import mmap
import traceback
from typing import Any

from guest import names, wire
from guest.results import ToolError


class Reserve:
    """Address space held back, so that there is some to tell of a MemoryError with. It takes no memory while it is held."""

    SIZE = 4 << 20

    def __init__(self) -> None:
        self._held = mmap.mmap(-1, self.SIZE)

    def release(self) -> None:
        self._held.close()


def told(error: BaseException, namespace: dict[str, Any]) -> wire.Frame:
    """The fields of a claim."""
    claim: wire.Frame = {"code": "runtime_error", "type": type(error).__name__, "message": _text(error)}
    if isinstance(error, SyntaxError) and error.filename == wire.USER_FILE:
        claim["message"] = str(error.msg)
    if isinstance(error, ToolError):
        claim["code"] = str(error.code)
    if isinstance(error, MemoryError):
        namespace.clear()
    try:
        told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
        _strip(told, set())
        line = _line(told)
        hint = _hint(error, namespace)
        if hint:
            claim["message"] += f" ({hint})"
        claim["traceback"] = "".join(told.format()) + (f"({hint})\n" if hint else "")
        if line:
            claim["line"] = line
    except (MemoryError, RecursionError, Exception):  # the exception's own methods may be of any kind
        claim.setdefault("traceback", f"{claim['type']}: {claim['message']}\n")
    return claim


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as e:
        return f"<no message: its __str__ raised {type(e).__name__}>"


def _strip(told: traceback.TracebackException, seen: set[int]) -> None:
    """Takes out the frames above the code, and the guest's own wherever they are, all along the chain."""
    if id(told) in seen:
        return
    seen.add(id(told))
    frames = list(told.stack)
    first = next((i for i, frame in enumerate(frames) if frame.filename == wire.USER_FILE), 0)
    kept = [frame for frame in frames[first:] if not frame.filename.startswith((wire.GUEST_FILES, "<string>"))]
    told.stack[:] = kept
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            _strip(other, seen)


def _line(told: traceback.TracebackException) -> int:
    """The line of the code where it was left for the last time, or where it can't be parsed."""
    own = [frame.lineno for frame in told.stack if frame.filename == wire.USER_FILE and frame.lineno]
    if own:
        return own[-1]
    place = getattr(told, "lineno", None) if getattr(told, "filename", None) == wire.USER_FILE else None
    return int(place) if place else 0


def _hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """Which servers there are, for a wrong name of one."""
    name = getattr(error, "name", None)
    if not isinstance(error, (NameError, ImportError)) or not isinstance(name, str):
        return ""
    wrong = name.rpartition("mcp.servers.")[2] if isinstance(error, ImportError) else name.removeprefix("mcp_")
    if wrong == name and not (isinstance(error, ImportError) and name == "mcp.servers"):
        return ""
    known = [key for key in namespace if key.startswith("mcp_") and key != "mcp_servers"]
    return names.choices(known, "servers of this run", f"mcp_{wrong}")
