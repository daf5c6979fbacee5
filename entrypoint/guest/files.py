"""Files for the code, which the supervisor writes, and files that the code leaves, which it hands over.

It reads them when nothing of the code runs any more. It follows no link, and opens only regular files.
"""

from __future__ import annotations

import os
import stat
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from itertools import islice

from guest import artifacts, mime
from guest.names import joined
from guest.run import Run

IN = "/workspace/in"  # files for the code
MAX_ENTRIES = 10_000  # of all directories together that are looked at
MAX_LOOKED = 1000  # entries beside the directory that are looked at
MAX_TOLD = 5  # names of files that were left behind

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ADDED = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def add(name: str, data: str, begun: set[str]) -> None:
    """Adds a piece in base64 to a file, or replaces one that isn't among those begun for the run.

    Raises OSError, or ValueError for a wrong name or data.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("it is no name of a file")
    piece = memoryview(a2b_base64(data))
    try:
        folder = os.open(IN, _FOLDER)
    except FileNotFoundError:
        os.makedirs(IN)
        folder = os.open(IN, _FOLDER)
    try:
        if name not in begun:
            _unlink(name, folder)
            begun.add(name)
        fd = os.open(name, _ADDED, 0o644, dir_fd=folder)
        try:
            while piece:
                piece = piece[os.write(fd, piece) :]
        finally:
            os.close(fd)
    finally:
        os.close(folder)


def drop(begun: set[str]) -> None:
    """Removes the files that were begun for a run which doesn't come."""
    try:
        folder = os.open(IN, _FOLDER)
    except OSError:  # the code has put something else in its place
        folder = -1
    for name in begun if folder >= 0 else ():
        try:
            _unlink(name, folder)
        except OSError:
            pass
    begun.clear()
    if folder >= 0:
        os.close(folder)


def _unlink(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def hand_over(run: Run, path: str, say: Callable[[str], None]) -> None:
    """Sends the files below path by name, and says which were left behind.

    Of a sandbox, those that it has sent already and that haven't changed since are left out.
    """
    behind: list[str] = []
    refused: list[str] = []
    renamed: list[str] = []
    for name, fd in _files(path, refused):
        try:
            about = os.fstat(fd)
            size, mark = about.st_size, (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
            if run.sandbox and run.sandbox.sent.get(name) == mark:
                continue
            try:
                given = run.room.take(name, size)
            except artifacts.LimitReached:
                behind.append(f"{_shown(name)} ({size:,} bytes)")
                continue
            if given != name:
                renamed.append(f"{_shown(name)} as {given}")
            if run.sandbox and len(run.sandbox.sent) < MAX_ENTRIES:
                run.sandbox.sent[name] = mark
            data = _read(fd, size)
            for frame in artifacts.frames(given, mime.guess(name, data), data):
                run.artifact(frame)
        except OSError as e:
            refused.append(_why(name, e))
        finally:
            os.close(fd)
    limit = f"since the files of one run may be {artifacts.MAX_FILES} with {run.room.limit:,} bytes together"
    said = {f"not handed over, {limit}": behind, "not handed over": refused, "handed over": renamed}
    for what, which in said.items():
        if which:
            say(f"[{path}: {what}: {joined(which, MAX_TOLD)}]\n")


def tell_lost(out: str, say: Callable[[str], None]) -> None:
    """Says which files lie beside the directory out, and how they are handed over."""
    home, found, left = os.path.dirname(out), [], MAX_LOOKED
    for folder, folders, names in os.walk(home):
        if folder == home:
            folders[:] = [name for name in folders if name not in ("in", os.path.basename(out))]
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        shown = (name for name in sorted(names) if not name.startswith("."))
        found += [os.path.relpath(os.path.join(folder, name), home) for name in shown]
        left -= len(folders) + len(names)
        if left < 0:
            break
    if found:
        listed = joined([_shown(name) for name in found], MAX_TOLD)
        way = f'save_artifact("{_shown(found[0])}") or write to {out}'
        say(f"[files in {home} are gone after the run: {listed}; {way}]\n")


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _why(name: str, error: OSError) -> str:
    return f"{_shown(name)} ({error.strerror})"


def _files(path: str, refused: list[str]) -> Iterator[tuple[str, int]]:
    """Relative names and open descriptors of the regular files below path.

    What is no such file, or can't be read, is added to refused.
    """
    left = MAX_ENTRIES
    try:
        folders = [("", os.open(path, _FOLDER))]
    except OSError as e:
        if os.path.lexists(path):
            refused.append(_why("all of it", e))
        return
    while folders:
        prefix, folder = folders.pop()
        below = []
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, left)]
            left -= len(names)
            for name in sorted(names):
                try:
                    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode):
                        if prefix.count("/") == artifacts.MAX_PARTS - 1:
                            refused.append(f"{_shown(prefix + name)} (too deep)")
                            continue
                        below.append((f"{prefix}{name}/", os.open(name, _FOLDER, dir_fd=folder)))
                    elif stat.S_ISREG(mode):
                        fd = os.open(name, _FILE, dir_fd=folder)
                        if not stat.S_ISREG(os.fstat(fd).st_mode):
                            os.close(fd)
                            continue
                        yield prefix + name, fd
                    else:
                        why = "a link" if stat.S_ISLNK(mode) else "no regular file"
                        refused.append(f"{_shown(prefix + name)} ({why})")
                except OSError as e:
                    refused.append(_why(prefix + name, e))
        finally:
            os.close(folder)
        folders += reversed(below)


def _read(fd: int, size: int) -> bytes:
    parts = []
    while size > 0 and (data := os.read(fd, min(size, 1 << 20))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
