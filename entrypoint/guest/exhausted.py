"""Which limit of the container it was that an error came from, in a sentence."""

from __future__ import annotations

import errno
import os
import resource

from guest.watch import TMPFS


def hint(error: BaseException) -> str:
    """A sentence without a period, or "" when no limit of the container explains the error."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return _space()
    if number == errno.EMFILE:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"a process may have {most} files, pipes and sockets open at a time: close those that aren't needed"
    return ""


def _space() -> str:
    """Names the directories that are full. Whoever got the error may have removed the file since: then there is none."""
    full = [told for told in map(_full, TMPFS) if told]
    return f"{' and '.join(full)}: remove what isn't needed there" if full else ""


def _full(directory: str) -> str:
    try:
        room = os.statvfs(directory)
    except OSError:
        return ""
    if room.f_blocks and room.f_bavail * 100 < room.f_blocks:
        return f"{directory} is full, with {room.f_blocks * room.f_frsize / (1 << 20):.4g} MiB"
    if room.f_files and not room.f_favail:
        return f"{directory} is full, with {room.f_files} files"
    return ""
