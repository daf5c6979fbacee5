"""What all processes of the container use together, where the engine bounds it not or the kernel's own count is wanted."""

from __future__ import annotations

import os

INTERVAL = 0.1  # seconds between two looks

_OOM_FILES = (
    "/sys/fs/cgroup/memory.events",  # v2
    "/sys/fs/cgroup/memory/memory.oom_control",  # v1
)


def oom_kills() -> int:
    """Processes of this cgroup that the kernel killed for want of memory, as far as that can be seen from inside."""
    for path in _OOM_FILES:
        for line in _read(path).splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
    return 0


def mapped() -> int:
    """Bytes of address space that this process has mapped."""
    pages = _read("/proc/self/statm").partition(" ")[0]
    return int(pages or 0) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Bounds memory (bytes, anonymous and shared) and the number of processes and threads; 0 is no bound.

    With a session only its processes count, else all that /proc shows.
    """

    def __init__(self, memory: int, processes: int, session: int | None) -> None:
        self._memory, self._processes, self._session = memory, processes, session

    def exceeded(self) -> str:
        """Which bound is passed just now: "memory", "processes" or ""."""
        threads = used = 0
        members = self._members()
        for pid in members:
            fields = _fields(_read(f"/proc/{pid}/status"))
            threads += fields.get("Threads", 0)
            used += 1024 * (fields.get("RssAnon", 0) + fields.get("RssShmem", 0))
        if self._processes and threads > self._processes:
            return "processes"
        if self._memory and used > self._memory and sum(map(_share, members)) > self._memory:
            return "memory"
        return ""

    def _members(self) -> list[str]:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
        if self._session is None:
            return pids
        return [pid for pid in pids if _session(pid) == self._session]


def _share(pid: str) -> int:
    """Bytes of one process, pages that it shares with others (after a fork, say) counted in parts."""
    fields = _fields(_read(f"/proc/{pid}/smaps_rollup"))
    if "Pss_Anon" not in fields:
        fields = _fields(_read(f"/proc/{pid}/status"))
        return 1024 * (fields.get("RssAnon", 0) + fields.get("RssShmem", 0))
    return 1024 * (fields["Pss_Anon"] + fields.get("Pss_Shmem", 0))


def _session(pid: str) -> int:
    after_name = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(after_name[3]) if len(after_name) > 3 else -1


def _fields(text: str) -> dict[str, int]:
    fields = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        value = rest.split()
        if value and value[0].isdigit():
            fields[name] = int(value[0])
    return fields


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
