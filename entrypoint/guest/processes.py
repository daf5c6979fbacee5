"""What /proc says of the processes of a sandbox."""

from __future__ import annotations

import os
import signal

from guest import watch
from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

_THREADS, _BLOCKED, _CAUGHT = 17, 29, 31  # of stat's fields
# The signals up to 31, of which alone stat tells, but the two that can't be blocked.
_ALL = sum(1 << number - 1 for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP))


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name: state, parent, group, session and so on."""
    return watch.read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def threads(pid: int) -> int:
    fields = stat(pid)
    return int(fields[_THREADS]) if len(fields) > _THREADS else 0


def alive(pid: int) -> bool:
    return _lives(stat(pid))


def _lives(fields: list[str]) -> bool:
    """Reports it by the fields of stat. A process whose first thread has ended is a zombie by its state."""
    return len(fields) > 2 and (fields[0] not in "ZX" or len(fields) > _THREADS and int(fields[_THREADS]) > 1)


def parent(pid: int) -> int:
    fields = stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def is_copy(pid: int, child: int) -> bool:
    """Whether a process is as a copy of child is that waits: in a group of its own, and deaf to signals.

    A kernel that tells nothing of signals (gVisor) doesn't tell that this process handles some either.
    """
    fields = stat(pid)
    if len(fields) <= _BLOCKED or fields[0] in "ZX" or fields[1:3] != [str(child), str(pid)]:
        return False
    blocked = int(fields[_BLOCKED])
    told = any(int(field) for field in stat(os.getpid())[_BLOCKED : _BLOCKED + 3])
    return int(fields[_THREADS]) <= 1 and (blocked | _ALL == blocked or not told)


def stirs(pid: int) -> bool:
    """Reports whether there is a process, and it isn't stopped."""
    fields = stat(pid) if pid else []
    return bool(fields) and fields[0] not in "TtZX"


def heeds(pid: int, number: int) -> bool:
    """Reports whether a process has a handler of a signal. No kernel but Linux tells."""
    fields = stat(pid)
    return len(fields) > _CAUGHT and bool(int(fields[_CAUGHT]) >> number - 1 & 1)


def others(groups: Container[int] | None, family: Container[int], left: Container[int]) -> list[int]:
    """All living processes of the container but those left.

    With groups, those of a group among them, or of a parent among the family.
    """
    found = []
    for pid in _all():
        fields = stat(pid) if pid not in left else []
        if not _lives(fields):
            continue
        if groups is None or int(fields[2]) in groups or int(fields[1]) in family:
            found.append(pid)
    return found


def trees(roots: frozenset[int]) -> set[int]:
    """The living processes among the roots, and those that they have begun, as far as parents tell."""
    if not roots:
        return set()
    parents = {pid: parent(pid) for pid in _all() if alive(pid)}
    found, more = set(), set(roots & parents.keys())
    while more:
        found |= more
        more = {pid for pid, above in parents.items() if above in found and pid not in found}
    return found


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def kill(pid: int) -> None:
    """Kills a process, if there is one: 0 stands for no process."""
    if pid:
        send(pid, signal.SIGKILL)


def signal_all(child: int, number: int) -> None:
    """Signals all processes of the container, or the child's group if this isn't pid 1."""
    try:
        if os.getpid() == 1:
            os.kill(-1, number)
        else:
            os.killpg(child, number)
    except OSError:  # nothing left
        pass


def collect() -> None:
    """Collects dead processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
