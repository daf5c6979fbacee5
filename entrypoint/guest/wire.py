"""Lines of JSON and what bounds them: the part that both processes of the guest share."""

from __future__ import annotations

import json
import os
from collections import deque
from itertools import islice

from guest.light_typing import Any

PROTOCOL = 2

_read = os.read  # the code may put something else in its place

MAX_FRAME = 16 << 20  # bytes of one frame, line end included, each way
HIGH_WATER = 1 << 20  # bytes waiting for the host above which nothing more is read from the child
LINK_WATER = 1 << 20  # bytes waiting for the child above which nothing more is read from it
TAKEN = 1 << 20  # bytes of results that the child has taken after which the host is told
UNREAD_MAX = 64 << 20  # bytes waiting for the child that end the run; `taken` keeps a host from it
MAX_CALLS = 1024  # calls that may wait for their result at a time; the next ones are held
HELD_MAX = 1 << 20  # bytes of those, to see a tool_cancel behind them; more wait in the socket
MAX_NAMES = 32  # of modules that the host is told of
AT_ONCE = 64  # lines that are written in one go; the kernel takes up to 1,024
SILENCE = 20.0  # seconds without a frame of the host after which the guest ends itself

EXIT_OK = 0  # `done` was sent
EXIT_PROTOCOL = 65  # the host sent a frame that this guest doesn't take
EXIT_HOST_GONE = 66  # stdin ended, or stdout was closed
EXIT_SILENT = 67  # nothing was heard from the host for SILENCE
EXIT_INTERNAL = 70  # the supervisor failed, or the child died before there was anything to run

WAKE = 42  # the real-time signal that has a spare take over

# Libraries whose threads a fork doesn't have, and which wait for them forever.
UNFIT = (
    "polars", "torch", "jax", "tensorflow", "grpc", "ray", "tokenizers", "duckdb", "sklearn",
    "xgboost", "lightgbm", "faiss", "cv2", "numba", "pyspark", "datafusion", "lance",
)  # fmt: skip

USER_FILE = "<run_python>"  # the file name under which the code is compiled
LASTS = False  # the code runs in a sandbox, which keeps what it leaves
OFFERED = False  # it could have run in one
SITES = ("site-packages", "dist-packages")  # the ends of the image's own folders of packages
PACKAGES = ""  # the folder of the environment's, where there is one
GUEST_FILES = "<guest>/"  # the beginning of the file names of the guest's own modules

CALL = b'{"type":"tool_call","callId":"'  # how the guest begins one
RESULT = b'{"type":"tool_result","callId":"'  # how the bridge does

Frame = dict[str, Any]


def encode(frame: object) -> bytes:
    """One line. Raises ValueError for a number that JSON hasn't, TypeError for a value that it hasn't."""
    try:
        text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: JSON can escape it, UTF-8 can't hold it
        return json.dumps(frame, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Frame | None:
    """The object on a line; None when there isn't one, or one that can't be held."""
    try:
        text = line.decode().strip(" \t\r\n")
        value, end = _parse(text)
    except (ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def call_id(line: bytes, beginning: bytes) -> str | None:
    """The id of a call on a line that begins as CALL or RESULT does; the rest may be megabytes."""
    if not line.startswith(beginning):
        return None
    found, end, _ = line[len(beginning) : len(beginning) + 20].partition(b'",')
    return found.decode() if end and len(found) <= 18 and found.isdigit() else None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


# With less Python of json's own, and no decoder for each line.
_parse = json.JSONDecoder(parse_constant=_refuse).raw_decode


class Overlong(bytes):
    """The beginning of a line that was longer than the limit; the rest of it was dropped unread."""


class Lines:
    """Cuts a stream into lines without their ends. One above the limit comes out as Overlong."""

    KEPT = 256  # bytes kept of an overlong line

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._cut = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that data completes, in order."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            if self._begun or len(end) >= self._limit:
                self._add(end)
                end = Overlong(self._begun) if self._cut else bytes(self._begun)
                self._begun, self._cut = bytearray(), False
            lines.append(end)
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if not self._cut:
            self._begun += part  # one buffer: a line may come in pieces of a byte
            if len(self._begun) >= self._limit:
                self._cut = True
                del self._begun[self.KEPT :]


class Outbox:
    """What waits to be written to a descriptor that doesn't block."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = 0
        self._queue: deque[memoryview] = deque()

    def push(self, line: bytes | memoryview) -> None:
        self._queue.append(memoryview(line))
        self.size += len(line)

    def flush(self) -> None:
        """Writes what can be written now. Raises OSError when the other end is gone."""
        while self._queue:
            try:
                n = os.writev(self.fd, [*islice(self._queue, AT_ONCE)])
            except BlockingIOError:
                return
            self.size -= n
            while self._queue and n >= len(self._queue[0]):
                n -= len(self._queue.popleft())
            if n:
                self._queue[0] = self._queue[0][n:]

    def forget(self) -> None:
        """Drops what hasn't been begun, so that the next line stands by itself."""
        begun = self._queue[0] if self._queue and len(self._queue[0]) < len(self._queue[0].obj) else None
        self.clear()
        if begun:
            self.push(begun)

    def clear(self) -> None:
        self._queue.clear()
        self.size = 0


def read_some(fd: int, size: int = 1 << 16) -> bytes | None:
    """What is there to read, b"" at the end, None when there is nothing now."""
    try:
        return _read(fd, size)
    except BlockingIOError:
        return None
    except OSError:
        return b""
