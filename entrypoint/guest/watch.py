"""What all processes of the container use, where the engine doesn't bound or count it."""

from __future__ import annotations

import os

INTERVAL = 0.1  # seconds between two looks
TMPFS = ("/tmp", "/workspace", "/ipc", "/dev/shm")  # where code may write
PID_MAX = 1 << 22  # processes that the kernel can have at the most
INODE = 1024  # bytes of the kernel's that a file of tmpfs takes, even an empty one
SMAPS_MAX = 4 << 20  # bytes of smaps that are read for one look, so that no number of mappings holds it up
FLOOR = 256 << 20  # bytes that are to stay available on the machine, or a twentieth of all when that is more

# What a process uses and no count of resident pages holds: code may have its pages swapped out, and
# map huge ones.
_APART = ("VmSwap", "HugetlbPages")
_RESIDENT = ("RssAnon", "RssShmem", "VmRSS", *_APART)
# The same in smaps_rollup. It tells no share of huge pages; one that several processes have counts for each.
_SHARES = ("Pss_Anon", "Pss_Shmem", "SwapPss", "Private_Hugetlb", "Shared_Hugetlb")

_OOM_FILES = (
    "/sys/fs/cgroup/memory.events",  # v2
    "/sys/fs/cgroup/memory/memory.oom_control",  # v1
)


def oom_kills() -> int:
    """Processes of this cgroup that the kernel killed when memory ended, as seen from inside."""
    for path in _OOM_FILES:
        for line in read(path).splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
    return 0


def mapped() -> int:
    """Bytes of address space that this process has mapped."""
    pages = read("/proc/self/statm").partition(" ")[0]
    return int(pages or 0) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Bounds memory (anonymous, shared, swapped, huge, in tmpfs) and the number of threads.

    0 is no bound. With a session only its processes count, and no tmpfs.
    """

    def __init__(self, memory: int, processes: int, session: int | None) -> None:
        self._memory, self._processes, self._session = memory, processes, session
        self._mounts = tmpfs_mounts(read("/proc/self/mountinfo")) if session is None else []
        self._floor = floor(memory, _fields(read("/proc/meminfo")))

    def exceeded(self) -> tuple[str, str]:
        """The bound that is passed, "memory", "processes" or "", and what else is to be said."""
        if self._memory and 1024 * _fields(read("/proc/meminfo")).get("MemAvailable", 1 << 60) < self._floor:
            return "memory", f"the machine had less than {self._floor >> 20} MiB of memory left"
        threads = used = 0
        members = self._members()
        bound = self._processes or PID_MAX
        if len(members) > bound:  # before any is looked at: a fork bomb is faster than that
            return "processes", ""
        for at, pid in enumerate(members):
            fields = _some(read(f"/proc/{pid}/status"), "Threads", *_RESIDENT)
            if "VmRSS" not in fields and fields.get("Threads", 0) > 1:
                members[at] = pid = _thread_of(pid)
                fields = {**fields, **_some(read(f"/proc/{pid}/status"), *_RESIDENT)}
            threads += fields.get("Threads", 0)
            used += _resident(fields)
            if threads > bound:
                return "processes", ""
        if self._memory:
            filed = sum(map(_used, self._mounts))
            if used + filed > self._memory and self._counted_once(members, filed) > self._memory:
                return "memory", ""
        return "", ""

    def _counted_once(self, members: list[str], filed: int) -> int:
        """Bytes in use, with what processes share with each other or with a file of tmpfs counted once."""
        used = _shares(members) + filed
        if not filed or used <= self._memory:
            return used
        mapped, budget = 0, SMAPS_MAX
        for pid in members:
            if budget > 0 and _some(read(f"/proc/{pid}/status"), "RssShmem").get("RssShmem", 0) >= 1024:
                text = read(f"/proc/{pid}/smaps", budget)
                budget -= len(text)
                mapped += _mapped_from(text, self._mounts)
        return used - min(mapped, filed)

    def _members(self) -> list[str]:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
        if self._session is None:
            return pids
        return [pid for pid in pids if _session(pid) == self._session]


def _thread_of(pid: str) -> str:
    """A thread of a process whose first one has ended, and with it what /proc/<pid> says of memory.

    /proc/<tid>, which isn't listed, says it of the same process.
    """
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            if "VmRSS:" in read(f"/proc/{thread}/status"):
                return thread
    except OSError:  # it has ended
        pass
    return pid


def used_by(pid: int) -> int:
    """Bytes of one process in memory or swap, without files."""
    return _resident(_some(read(f"/proc/{pid}/status"), *_RESIDENT))


def _shares(members: list[str]) -> int:
    """Bytes of processes, with pages that they share (after a fork, say) counted once.

    Of those whose memory is closed, the copies of a sandbox, what they may share with another is
    taken for shared, and counts with the other.
    """
    used, shared, closed = 0, 0, []
    for pid in members:
        fields = _fields(read(f"/proc/{pid}/smaps_rollup"))
        if "Pss_Anon" in fields:
            used += 1024 * sum(fields.get(name, 0) for name in _SHARES)
            shared = max(shared, 1024 * fields.get("Shared_Dirty", 0))
        else:
            closed.append(used_by(int(pid)))
    if not closed:
        return used
    once = min(shared, max(closed))  # of which used has one part of len(closed) + 1 or fewer
    return used + once * len(closed) // (len(closed) + 1) + sum(max(0, size - shared) for size in closed)


def _resident(status: dict[str, int]) -> int:
    """Bytes of a process in memory or swap, without files; gVisor tells only all of them."""
    parts = [status[name] for name in ("RssAnon", "RssShmem") if name in status]
    apart = sum(status.get(name, 0) for name in _APART)
    return 1024 * (apart + (sum(parts) if parts else status.get("VmRSS", 0)))


def tmpfs_mounts(mountinfo: str) -> list[str]:
    """Those of TMPFS that are mounts of one."""
    mounts = set()
    for line in mountinfo.splitlines():
        fields, _, source = line.partition(" - ")
        if source.startswith("tmpfs ") and len(fields.split()) > 4:
            mounts.add(fields.split()[4])
    return [path for path in TMPFS if path in mounts]


def floor(memory: int, machine: dict[str, int]) -> int:
    """Bytes of memory that must stay available on a machine, by its /proc/meminfo.

    On a small or busy machine they are fewer, so that the run has the memory that it may use.
    """
    available = 1024 * machine.get("MemAvailable", 0)
    return min(max(FLOOR, 1024 * machine.get("MemTotal", 0) // 20), max(available - memory, available // 8))


def _used(mount: str) -> int:
    """Bytes that the files of a tmpfs take."""
    try:
        told = os.statvfs(mount)
    except OSError:
        return 0
    return max(0, told.f_blocks - told.f_bfree) * told.f_frsize + max(0, told.f_files - told.f_ffree) * INODE


def _mapped_from(smaps: str, mounts: list[str]) -> int:
    """Bytes of a process that are shared mappings of files below mounts."""
    size, ours, below = 0, False, tuple(f"{mount}/" for mount in mounts)
    for line in smaps.splitlines():
        fields = line.split(None, 5)
        if fields and not fields[0].endswith(":"):  # a mapping begins; a private one may be a copy
            ours = len(fields) == 6 and fields[1].endswith("s") and fields[5].startswith(below)
        elif ours and len(fields) > 1 and fields[0] == "Pss:":
            size += 1024 * int(fields[1])
    return size


def _session(pid: str) -> int:
    after_name = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(after_name[3]) if len(after_name) > 3 else -1


def _some(text: str, *names: str) -> dict[str, int]:
    """What _fields has of some names, in a fraction of its time."""
    fields: dict[str, int] = {}
    lines = f"\n{text}"
    for name in names:
        found = lines.find(f"\n{name}:")
        value = lines[found + len(name) + 2 :][:32].split(None, 1) if found >= 0 else []
        if value and value[0].isdigit():
            fields[name] = int(value[0])
    return fields


def _fields(text: str) -> dict[str, int]:
    fields = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        value = rest.split()
        if value and value[0].isdigit():
            fields[name] = int(value[0])
    return fields


def read(path: str, limit: int = 1 << 30) -> str:
    """Up to limit bytes of a file. open takes three times as long, for each process and look."""
    parts = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while limit > 0 and (data := os.read(fd, min(limit, 1 << 16))):
                parts.append(data)
                limit -= len(data)
        finally:
            os.close(fd)
    except OSError:
        return ""
    return b"".join(parts).decode("utf-8", "replace")
