"""The code's own text streams, over the real descriptors 1 and 2, which the supervisor reads."""

from __future__ import annotations

import io
import sys

from guest.light_typing import TextIO

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    from guest.light_typing import Any as Buffer


_write, _flush = io.BufferedWriter.write, io.BufferedWriter.flush  # looked up once, not for each print


class Unheld(io.BufferedWriter):
    """Writes all at once: nothing is lost at os._exit, a crash or a kill, and the order holds."""

    def write(self, data: Buffer, /) -> int:
        n = _write(self, data)
        _flush(self)
        return n


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


def renew_input() -> None:
    """Replaces a sys.stdin that was closed, as exit() does."""
    if type(sys.stdin) is io.TextIOWrapper and sys.stdin.closed:
        sys.stdin = sys.__stdin__ = _input()


def _input() -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")


def _text(fd: int, name: str) -> TextIO:
    raw = io.FileIO(fd, "wb", closefd=False)
    raw.name = name
    return io.TextIOWrapper(
        Unheld(raw), encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
    )


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the code may have closed or replaced it
            pass
