"""A directory as a tar archive in pieces, and back: how what a sandbox has is saved and woken.

Nothing is kept between two pieces. As long as nothing in the directory changes, they are parts of
one archive. No link is followed, and only regular files are opened.
"""

from __future__ import annotations

import os
import stat

from guest.light_typing import Any
from guest.refused import Refused

MAX_ENTRIES = 10_000
MAX_BYTES = 144 << 20  # of an archive: /workspace may hold 128 MiB
MAX_TOLD = 1000  # of what is left out

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADDED = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 512  # an archive consists of these


class _Window:
    """The bytes of an archive from an offset on, up to a limit."""

    def __init__(self, offset: int, limit: int) -> None:
        self.data, self.at = bytearray(), 0
        self._from, self._to = offset, offset + limit

    def add(self, piece: bytes) -> None:
        self.data += piece[max(self._from - self.at, 0) : max(self._to - self.at, 0)]
        self.at += len(piece)

    def add_file(self, fd: int, size: int) -> None:
        """Adds size bytes of a file, with zeros for those that it doesn't have any more."""
        begin, end = (min(max(edge - self.at, 0), size) for edge in (self._from, self._to))
        while begin < end:
            wanted = min(end - begin, 1 << 20)
            piece = os.pread(fd, wanted, begin) or bytes(wanted)
            self.data += piece
            begin += len(piece)
        self.at += size
        self.add(bytes(-size % _BLOCK))

    def beyond(self) -> bool:
        return self.at > self._to


def packed(path: str, offset: int, limit: int) -> tuple[bytes, list[dict[str, Any]], bool]:
    """A piece of the archive of a directory, what is left out of the whole, and whether there is more.

    The type of what is left out is why: too_large, too_many, denied, or other for what is no file.
    """
    import tarfile

    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise Refused("not_a_directory", "it is no directory")
    window, count = _Window(offset, limit), 0
    left: list[dict[str, Any]] = []

    def leave(whole: str, why: str, size: int = 0) -> None:
        if len(left) < MAX_TOLD:
            name = os.path.relpath(whole, path).encode("utf-8", "replace").decode()
            left.append({"name": name, "type": why, "size": size, "modified": 0})

    for folder, folders, names in os.walk(path, onerror=lambda e: leave(str(e.filename), "denied")):
        folders.sort()
        for name in sorted(folders + names):
            whole, fd = os.path.join(folder, name), -1
            count += 1
            if count > MAX_ENTRIES:
                leave(whole, "too_many")
                folders.clear()
                break
            try:
                about = os.lstat(whole)
                info = tarfile.TarInfo(os.path.relpath(whole, path))
                info.mode, info.mtime = about.st_mode & 0o777, max(0, int(about.st_mtime))
                if stat.S_ISDIR(about.st_mode):
                    info.type = tarfile.DIRTYPE
                elif stat.S_ISLNK(about.st_mode):
                    info.type, info.linkname = tarfile.SYMTYPE, os.readlink(whole)
                elif stat.S_ISREG(about.st_mode):
                    fd, info.size = os.open(whole, _FILE), about.st_size
                else:
                    leave(whole, "other")
                    continue
                header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
                if window.at + len(header) + info.size + _BLOCK > MAX_BYTES:
                    leave(whole, "too_large", info.size)
                    continue
                window.add(header)
                if fd >= 0:
                    window.add_file(fd, info.size)
            except OSError:
                leave(whole, "denied")
            finally:
                if fd >= 0:
                    os.close(fd)
    return bytes(window.data), left, window.beyond()


def unpack(path: str, data: bytes) -> None:
    """Adds what an archive has to a directory. A file that is there goes on where it ends, so that
    a large one can come in several archives."""
    import io
    import shutil
    import tarfile

    os.makedirs(path, exist_ok=True)
    os.chdir(path)
    source = io.BytesIO(data)
    with tarfile.open(fileobj=source, mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
        for info in archive:
            name = info.name
            if name.startswith("/") or ".." in name.split("/"):
                raise Refused("denied", "it has a file outside of the directory")
            os.makedirs(name if info.isdir() else os.path.dirname(name) or ".", exist_ok=True)
            if info.issym():
                os.symlink(info.linkname, name)
                os.utime(name, (info.mtime, info.mtime), follow_symlinks=False)
                continue
            if info.isreg():
                content = archive.extractfile(info)
                with os.fdopen(os.open(name, _ADDED, 0o600), "wb") as file:
                    if content:
                        shutil.copyfileobj(content, file, 1 << 20)
            elif not info.isdir():
                raise Refused("denied", "it has something that is no file, directory or link")
            os.utime(name, (info.mtime, info.mtime))
            os.chmod(name, info.mode & 0o777)
