"""The code's own text streams, over the real descriptors 1 and 2, which the supervisor reads."""

from __future__ import annotations

import io
import os
import sys

from guest.light_typing import TextIO
from guest.supervisor import PRIVATE, private

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    from guest.light_typing import Any as Buffer


_fstat, _frames = os.fstat, sys._current_frames
_write, _flush = io.BufferedWriter.write, io.BufferedWriter.flush  # looked up once, not for each print
_print, _begin = io.TextIOWrapper.write, io.BufferedWriter.__init__


class Unheld(io.BufferedWriter):
    """Writes all at once: nothing is lost at os._exit, a crash or a kill, and the order holds."""

    def write(self, data: Buffer, /) -> int:
        n = _write(self, data)
        _flush(self)
        return n

    def close(self) -> None:
        """Does nothing: a stream that code has put around this one closes it as it goes."""


def install() -> None:
    """Replaces sys.stdin, sys.stdout and sys.stderr. Text that UTF-8 can't hold is written with escapes."""
    made: dict[str, TextIO] = {
        "stdin": _input(),
        "stdout": _text(1, "<stdout>"),
        "stderr": _text(2, "<stderr>"),
    }
    for name, stream in made.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


class Kept:
    """The descriptors and streams of the first call, which later ones find again.

    Without that, what one call has closed or replaced would have all later ones print nothing.
    """

    def __init__(self) -> None:
        self._copies = [private(fd, PRIVATE - 3) for fd in range(3)]
        self._files = [_identity(fd) for fd in self._copies]
        self._printed: dict[str, TextIO] = {"stdout": sys.stdout, "stderr": sys.stderr}

    def unlock(self) -> None:
        """Gives streams a new lock, in a process that is new: others held the old one at the fork."""
        for stream in self._printed.values():
            _renew(stream)

    def touch(self) -> None:
        """Prints nothing."""
        for stream in self._printed.values():
            if isinstance(stream, io.TextIOWrapper) and not _closed(stream):
                _print(stream, "")

    def renew(self) -> list[str]:
        """Puts back what isn't there any more, and returns the names of it."""
        back: list[str] = []
        names: set[str] = set()
        for name, stream in self._printed.items():
            if getattr(sys, name, None) is not stream:
                setattr(sys, name, stream)  # what stood there may close its descriptor as it goes
                names.add(name)
        for fd, (copy, file) in enumerate(zip(self._copies, self._files, strict=True)):
            now = _identity(fd)
            if now != file and (fd or now is None) and _identity(copy) == file:  # another input may be meant
                os.dup2(copy, fd)
                back.append(f"descriptor {fd}")
                if fd and len(_frames()) == 1:  # no other thread is writing by it
                    _renew(self._printed["stdout" if fd == 1 else "stderr"])
        given = getattr(sys, "stdin", None)
        if given is None or type(given) is io.TextIOWrapper and _closed(given):  # as exit() leaves it
            sys.stdin = sys.__stdin__ = _input()
        for fd, (name, stream) in enumerate(list(self._printed.items()), 1):
            if _closed(stream):
                self._printed[name] = stream = _text(fd, f"<{name}>")
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
                names.add(name)
            if stream.encoding != "utf-8":
                names.add(name)
            if (stream.encoding, stream.errors, stream.write_through) != ("utf-8", "backslashreplace", True):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)
        return back + [f"sys.{name}" for name in self._printed if name in names]


def _renew(stream: TextIO) -> None:
    """Gives a stream of ours a new lock, and drops what a print could not write. For a process that
    has one thread: another one would write what is freed here.
    """
    if not _closed(stream) and type(stream.buffer) is Unheld:
        _begin(stream.buffer, stream.buffer.raw)


def _closed(stream: TextIO) -> bool:
    try:
        return stream.closed
    except ValueError:  # its buffer was detached
        return True


def _identity(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor is of; None if it is closed."""
    try:
        about = _fstat(fd)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _input() -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")


def _text(fd: int, name: str) -> TextIO:
    raw = io.FileIO(fd, "wb", closefd=False)
    raw.name = name
    return io.TextIOWrapper(
        Unheld(raw), encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
    )


def flush() -> None:
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except Exception:  # the code may have closed, replaced or deleted it
            pass
