"""The files that the code left in its directory for them, read by the supervisor when nothing of the code runs any more.

So they are handed over however the run ended. No link is followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from guest import artifacts, mime
from guest.run import Run

MAX_ENTRIES = 10_000  # of all directories together that are looked at
MAX_TOLD = 5  # names of files that were left behind

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def hand_over(run: Run, path: str, say: Callable[[str], None]) -> None:
    """Sends the files below path, in order of their names, as far as they have room. What was left behind is said."""
    behind: list[str] = []
    count = 0
    for name, fd in _files(path):
        try:
            size = os.fstat(fd).st_size
            try:
                given = run.room.take(name, size)
            except artifacts.LimitReached:
                count += 1
                behind.append(f"{name} ({size:,} bytes)")
                continue
            data = _read(fd, size)
            for frame in artifacts.frames(given, mime.guess(name, data), data):
                run.artifact(frame)
        except OSError:
            continue
        finally:
            os.close(fd)
    if behind:
        more = f" and {count - MAX_TOLD} more" if count > MAX_TOLD else ""
        say(
            f"[{path}: not handed over, since the files of one run may be {artifacts.MAX_FILES} with {run.room.limit:,} bytes "
            f"together: {', '.join(behind[:MAX_TOLD])}{more}]\n"
        )


def _files(path: str) -> Iterator[tuple[str, int]]:
    """Relative names and descriptors of the regular files below path; the descriptors are the caller's to close."""
    left = MAX_ENTRIES
    try:
        folders = [("", os.open(path, _FOLDER))]
    except OSError:
        return
    while folders:
        prefix, folder = folders.pop()
        below = []
        try:
            names = []
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        break
                    names.append(entry.name)
            for name in sorted(names):
                try:
                    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode) and prefix.count("/") < artifacts.MAX_PARTS - 1:
                        below.append((f"{prefix}{name}/", os.open(name, _FOLDER, dir_fd=folder)))
                    elif stat.S_ISREG(mode):
                        fd = os.open(name, _FILE, dir_fd=folder)
                        if not stat.S_ISREG(os.fstat(fd).st_mode):
                            os.close(fd)
                            continue
                        yield prefix + name, fd
                except OSError:
                    continue
        finally:
            os.close(folder)
        folders += reversed(below)


def _read(fd: int, size: int) -> bytes:
    parts = []
    while size > 0 and (data := os.read(fd, min(size, 1 << 20))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
