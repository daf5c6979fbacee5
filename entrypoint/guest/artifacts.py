"""Files that the code hands over: named safely, within the run's limits, and sent in pieces."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator

from guest import wire

PIECE = 3 << 19  # bytes of data in a frame, which carries them as 2 MiB of base64
MAX_FILES = 100  # of one run
OVERHEAD = 256  # bytes that a piece counts beside its data
DEFAULT_LIMIT = 16 << 20  # bytes of all files of a run, where the host says nothing
MAX_NAME = 200  # bytes
MIME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*/[A-Za-z0-9][A-Za-z0-9.+;=_-]*")
BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
MAX_PARTS = 8  # directories of a name, the file's own name included


class LimitReached(ValueError):
    """A file would pass what one run may hand over."""


class Room:
    """What may still be handed over, and the names that are taken. Safe for use by several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._left = limit
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def take(self, name: str, size: int) -> str:
        """Takes room for a file and returns its name. Raises LimitReached."""
        with self._lock:
            cost = cost_of(size)
            if len(self._names) >= MAX_FILES:
                raise LimitReached(f"{name} was not handed over: a run may hand over {MAX_FILES} files")
            if cost > self._left:
                raise LimitReached(
                    f"{name} of {size:,} bytes was not handed over: the files of one run may have"
                    f" {self.limit:,} bytes together, of which {max(0, self._left - OVERHEAD):,} are left;"
                    " hand over less, or give it to a tool"
                )
            name = free(safe(name), self._names)
            self._names.add(name.casefold())
            self._left -= cost
            return name

    def used(self) -> bool:
        """Whether any file has been handed over."""
        return bool(self._names)

    def note(self, name: str, size: int) -> None:
        """Notes a piece that the child hands over."""
        self._names.add(name.casefold())
        self._left -= cost_of(size)


def cost_of(size: int) -> int:
    return size + OVERHEAD * max(1, -(-size // PIECE))


def frames(name: str, mime: str, data: bytes) -> Iterator[wire.Frame]:
    """The frames that carry a file, without the id of the run."""
    of = max(1, -(-len(data) // PIECE))
    for i in range(of):
        piece = base64.b64encode(data[i * PIECE : (i + 1) * PIECE]).decode()
        yield {"type": "artifact", "name": name, "mime": mime, "data": piece, "chunk": i + 1, "of": of}


def safe(name: str) -> str:
    """A relative name of letters, digits, "-", "_" and "."; no part of it is ".." or hidden."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        parts = parts[-1:]
    kept = [part for part in map(_part, parts) if part]
    text = "/".join(kept[-MAX_PARTS:])
    while len(text.encode()) > MAX_NAME and "/" in text:
        text = text.partition("/")[2]
    return text or "file"


def _part(part: str) -> str:
    text = "".join(c if c.isalnum() or c in "-_." else "_" for c in part).lstrip(".")
    stem, dot, end = text.rpartition(".")
    if not stem or len(end.encode()) > 20:
        stem, dot, end = text, "", ""
    while len(stem.encode()) > MAX_NAME - 60:
        stem = stem[:-1]
    return f"{stem}{dot}{end}"


def free(name: str, names: set[str]) -> str:
    """name, or with a number behind its stem when it is among names, which are case-folded."""
    folder, slash, last = name.rpartition("/")
    stem, dot, end = last.rpartition(".") if "." in last else (last, "", "")
    number = 2
    while name.casefold() in names:
        name = f"{folder}{slash}{stem}-{number}{dot}{end}"
        number += 1
    return name
