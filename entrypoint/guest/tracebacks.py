"""The text of an uncaught exception: the code's frames, and a line for those of libraries."""

from __future__ import annotations

import linecache
import os
import traceback
from types import TracebackType

from guest import wire

MAX_FRAMES = 30  # of one exception
FIRST, LAST = 6, 10  # frames of a longer one that are shown
MAX_CHARS = 20_000  # of all of it; of more, the middle is left out
LONG = 2_000  # entries of a traceback from which on it is shortened before it is looked at
_KEPT = 100  # entries of such a one that are looked at, at either end

_STDLIB = os.path.dirname(os.__file__) + "/"
_INSTALLED = ("/site-packages/", "/dist-packages/")
# the guest, and the stubs that stand for tools
_OWN = (wire.GUEST_FILES, "/ipc/servers/", "mcp.servers.", "<mcp")


def render(error: BaseException) -> tuple[str, int]:
    """The text, and the line where the code was left last or can't be parsed; 0 when unknown."""
    if isinstance(error, SyntaxError) and error.text is None and error.filename == wire.USER_FILE:
        # Errors that are found after parsing lack it.
        error.text = linecache.getline(wire.USER_FILE, error.lineno or 0) or None
    cut = _shorten(error, set())
    trace = error.__traceback__
    told = traceback.TracebackException(type(error), error, trace, lookup_lines=False, compact=True)
    line = _line(told)
    _reduce(told)
    text = "".join(told.format()) + (f"[{cut:,} entries of deep recursion were left out]\n" if cut else "")
    if len(text) > MAX_CHARS:
        half = MAX_CHARS // 2
        text = f"{text[:half]}\n[... {len(text) - MAX_CHARS:,} characters left out ...]\n{text[-half:]}"
    return text, line


def _shorten(error: BaseException | None, seen: set[int]) -> int:
    """Takes the middle out of very long tracebacks along the chain, and returns how many entries.

    Recursion without a limit has millions of them.
    """
    cut = 0
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        entries = _length(error.__traceback__)
        if entries > LONG:
            first, last = _entry(error.__traceback__, _KEPT), _entry(error.__traceback__, entries - _KEPT)
            if first is not None and last is not first:
                first.tb_next = last
                cut += entries - 2 * _KEPT
        for inner in getattr(error, "exceptions", ()) or ():
            if isinstance(inner, BaseException):
                cut += _shorten(inner, seen)
        cut += _shorten(error.__cause__, seen)
        error = error.__context__
    return cut


def _length(trace: TracebackType | None) -> int:
    n = 0
    while trace is not None:
        n, trace = n + 1, trace.tb_next
    return n


def _entry(trace: TracebackType | None, n: int) -> TracebackType | None:
    while trace is not None and n > 1:
        trace, n = trace.tb_next, n - 1
    return trace


class Stack(traceback.StackSummary):
    """Formats the code's frames as usual, each run of others as a line, and many with a gap."""

    def format(self, **options: object) -> list[str]:
        texts: list[str] = []
        run: list[traceback.FrameSummary] = []
        for i, frame in enumerate(self):
            run.append(frame)
            last = i + 1 == len(self)
            if last or is_library(self[i + 1].filename) != is_library(frame.filename):
                texts += [_library(run, last)] if is_library(frame.filename) else _plain(run, options)
                run = []
        if len(texts) > MAX_FRAMES:
            texts[FIRST:-LAST] = [f"  [... {len(texts) - FIRST - LAST:,} more frames ...]\n"]
        return texts


def _plain(frames: list[traceback.FrameSummary], options: dict[str, object]) -> list[str]:
    return traceback.StackSummary.format(traceback.StackSummary.from_list(frames), **options)


def _library(frames: list[traceback.FrameSummary], last: bool) -> str:
    names = list(dict.fromkeys(_package(frame.filename) for frame in frames))
    text = f"{len(frames)} frame{'s' if len(frames) > 1 else ''} of {', '.join(names[:3])}"
    if last:
        text += f", raised in {_short(frames[-1].filename)}, line {frames[-1].lineno}, in {frames[-1].name}"
    return f"  [{text}]\n"


def _reduce(told: traceback.TracebackException) -> None:
    """Takes out the frames above the code, and the guest's own wherever they are, all along the chain."""
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        frames = list(one.stack)
        first = next((i for i, frame in enumerate(frames) if frame.filename == wire.USER_FILE), -1)
        if first < 0:  # raised elsewhere: the guest's boot is above it then
            frames = [frame for frame in frames if frame.filename != "<string>"]
        one.stack = Stack(frame for frame in frames[max(first, 0) :] if not frame.filename.startswith(_OWN))
        waiting += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]


def _line(told: traceback.TracebackException) -> int:
    own = [frame.lineno for frame in told.stack if frame.filename == wire.USER_FILE and frame.lineno]
    place = getattr(told, "lineno", None) if getattr(told, "filename", None) == wire.USER_FILE else None
    return int(place or (own[-1] if own else 0))


def is_library(file: str) -> bool:
    return file.startswith((_STDLIB, "<frozen ")) or any(folder in file for folder in _installed())


def _installed() -> tuple[str, ...]:
    return (*_INSTALLED, wire.PACKAGES + "/") if wire.PACKAGES else _INSTALLED


def _short(file: str) -> str:
    for folder in _installed():
        if folder in file:
            return file.rpartition(folder)[2]
    return file.removeprefix(_STDLIB).removeprefix("<frozen ").removesuffix(">")


def _package(file: str) -> str:
    return _short(file).partition("/")[0].partition(".")[0]
