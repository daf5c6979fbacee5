"""What /proc says of the processes of a sandbox."""

from __future__ import annotations

import os
import signal

from guest import watch, wire
from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

_UNBLOCKED = {signal.SIGKILL, signal.SIGSTOP, wire.WAKE}  # the first two can't be blocked; it waits for the third


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name: state, parent, group, session and so on."""
    return watch.read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def alive(pid: int) -> bool:
    fields = stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def parent(pid: int) -> int:
    fields = stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def is_copy(pid: int, child: int) -> bool:
    """Whether a process is as a copy of child is that waits: in no other's session, and deaf to signals.

    What a kernel doesn't tell (gVisor has no SigBlk) is passed over.
    """
    fields = stat(pid)
    if len(fields) < 4 or fields[0] in "ZX" or fields[1:4] != [str(child), str(pid), str(pid)]:
        return False
    told = dict(line.split(":\t", 1) for line in watch.read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    if told.get("Threads", "1").strip() != "1":
        return False
    all_of_them = sum(1 << number - 1 for number in signal.valid_signals() if number not in _UNBLOCKED)
    return int(told.get("SigBlk", "f" * 16), 16) & all_of_them == all_of_them


def others(groups: Container[int] | None, family: Container[int], left: Container[int]) -> list[int]:
    """All living processes of the container but those left.

    With groups, those of a group among them, or of a parent among the family.
    """
    found = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        fields = stat(pid) if pid not in left else []
        if len(fields) < 3 or fields[0] in "ZX":
            continue
        if groups is None or int(fields[2]) in groups or int(fields[1]) in family:
            found.append(pid)
    return found


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


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
