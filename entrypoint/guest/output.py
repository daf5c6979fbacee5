"""What the code and all it started write to descriptors 1 and 2, on its way into output frames."""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable

from guest import wire

QUANTUM = 0.005  # seconds that text may wait for more, once some has just been sent
LINGER = 0.001  # seconds that it waits in any case: it goes with the end of the code if that is near
CHUNK = 1 << 16  # bytes of text from which on it doesn't wait
SMALL = 1 << 14  # bytes; a pipe that held less is left to fill for a moment
REST = 0.0004  # seconds of that moment; poll makes a millisecond of it

_decoder = codecs.getincrementaldecoder("utf-8")


class Output:
    """Reads both pipes and sends their text after a pause within 2 ms, else every few milliseconds.

    Each stream keeps its order; the two are in the order in which they were read.
    """

    def __init__(self, stdout: int, stderr: int, send: Callable[[str, str], None]) -> None:
        self._names = {stdout: "stdout", stderr: "stderr"}
        self._decoders = {stdout: _decoder("replace"), stderr: _decoder("replace")}
        self._send = send
        self._pending: list[tuple[str, str]] = []
        self._size = 0
        self._sent = self._first = 0.0
        self._resting, self.rests_until = -1, 0.0
        self._left_out = -1  # the pipe that is not waited for just now
        self.open = {stdout, stderr}

    @property
    def due(self) -> float | None:
        """When flush is to be called, by time.monotonic; None when nothing waits."""
        if not self._pending:
            return None
        return 0.0 if self._size >= CHUNK else max(self._first + LINGER, self._sent + QUANTUM)

    def awaited(self, now: float) -> set[int]:
        """The pipes to wait for. One that has just been read rests.

        That saves a quarter of the guest's processor time in a flood of lines, and delays nothing:
        text that follows other text waits longer (QUANTUM).
        """
        self._left_out = self._resting if now < self.rests_until else -1
        return self.open - {self._left_out}

    def take(self, fd: int) -> int:
        """Reads one pipe once, after the pipe at rest, and returns how many bytes it held."""
        if self._left_out != fd and self._left_out in self.open:
            self._take(self._left_out)
        self._left_out = -1
        n = self._take(fd)
        self._resting, self.rests_until = (fd, time.monotonic() + REST) if 0 < n < SMALL else (-1, 0.0)
        return n

    def _take(self, fd: int) -> int:
        data = wire.read_some(fd, CHUNK)
        if data is None:
            return 0
        text = self._decoders[fd].decode(data, final=not data)
        if text:
            if not self._pending:
                self._first = time.monotonic()
            self._pending.append((self._names[fd], text))
            self._size += len(data)
        if not data:
            self.open.discard(fd)
            os.close(fd)
        return len(data)

    def add(self, text: str) -> None:
        """Adds a sentence of the guest's own to stderr."""
        self._pending.append(("stderr", text))
        self._size += len(text)

    def take_all(self) -> None:
        """Reads both pipes once: that holds all that was written before a request."""
        for fd in sorted(self.open):
            self._take(fd)

    def flush(self) -> None:
        run: list[str] = []
        for i, (stream, text) in enumerate(self._pending):
            run.append(text)
            if i + 1 == len(self._pending) or self._pending[i + 1][0] != stream:
                self._send(stream, "".join(run))
                run = []
        self._pending, self._size, self._sent = [], 0, time.monotonic()

    def forget(self, limit: int) -> None:
        """Drops what waits, and up to limit bytes in each pipe."""
        for fd in sorted(self.open):
            left = limit
            while left > 0 and (data := wire.read_some(fd, CHUNK)):
                left -= len(data)
            self._decoders[fd].reset()
        self._pending, self._size = [], 0

    def finish(self, limit: int, keep: bool = False) -> None:
        """Reads up to limit bytes that are still in each pipe, and ends both streams unless keep."""
        for fd in sorted(self.open):
            left = limit
            while left > 0 and (n := self._take(fd)):
                left -= n
                if self._size >= CHUNK:
                    self.flush()
            if fd in self.open:
                rest = self._decoders[fd].decode(b"", final=True)
                self._pending += [(self._names[fd], rest)] if rest else []
                if keep:
                    self._decoders[fd].reset()
                else:
                    os.close(fd)
        if not keep:
            self.open.clear()
        self.flush()
