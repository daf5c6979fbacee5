"""Forbids dumps and a list of system calls to the guest and the code, before any code runs.

That adds to the engine's own profile, which may be off, and can't be taken back.
"""

from __future__ import annotations

import os
import signal
import struct

from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

EPERM, ENOSYS = 1, 38
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
KILL = 0x80000000

ENGINE_OFF = "the engine's own seccomp profile is off"
_NO_FILTER = "no seccomp filter of the guest's own"

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. (NEWTIME can't be said to clone.)
NEW_NAMESPACE = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# AF_UNIX, AF_INET, AF_INET6. AF_VSOCK, say, reaches the machine around a VM from any network namespace.
FAMILIES = (1, 2, 10)
# getaddrinfo and if_nameindex ask for interfaces by it; netfilter's has a past
AF_NETLINK, NETLINK_ROUTE = 16, 0
SUPERVISOR = 1  # its process id in a container
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1

X32 = 0x40000000  # on x86_64: the bit of the x32 calls, which would get around the numbers below

# Numbers from 424 on are the same on every architecture.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "process_mrelease": 448, "set_mempolicy_home_node": 450, "open_tree_attr": 467,
}  # fmt: skip
_X86_64 = {
    "shmget": 29, "shmat": 30, "semget": 64, "msgget": 68, "modify_ldt": 154, "vmsplice": 278,
    "fanotify_init": 300, "name_to_handle_at": 303, "memfd_create": 319, "sync": 162, "mbind": 237,
    "set_mempolicy": 238, "mq_open": 240, "fanotify_mark": 301, "syncfs": 306, "ptrace": 101,
    "syslog": 103, "personality": 135, "vhangup": 153, "pivot_root": 155, "_sysctl": 156,
    "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172,
    "ioperm": 173, "create_module": 174, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249,
    "keyctl": 250, "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
    "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "vmsplice": 75, "msgget": 186, "semget": 190, "shmget": 194, "shmat": 196, "fanotify_init": 262,
    "name_to_handle_at": 264, "memfd_create": 279, "sync": 81, "mq_open": 180, "mbind": 235,
    "set_mempolicy": 237, "fanotify_mark": 263, "syncfs": 267, "lookup_dcookie": 18, "umount2": 39,
    "mount": 40, "pivot_root": 41, "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89,
    "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161,
    "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218,
    "keyctl": 219, "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239,
    "perf_event_open": 241, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
    "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
_CLONE3 = 435

# Calls that are denied with some arguments.
_X86_64_SOME = {
    "clone": 56, "socket": 41, "socketpair": 53, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "sched_setaffinity": 203, "ioprio_set": 251, "prlimit64": 302,
    "sched_setattr": 314,
}  # fmt: skip
_AARCH64_SOME = {
    "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "socket": 198, "socketpair": 199, "clone": 220, "prlimit64": 261,
    "sched_setattr": 274,
}  # fmt: skip

# machine → AUDIT_ARCH, denied calls, calls denied in part
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _X86_64, _X86_64_SOME),
    "aarch64": (0xC00000B7, _AARCH64, _AARCH64_SOME),
}


_EQUAL, _AT_LEAST, _ANY_BIT = 0x10, 0x30, 0x40


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", 0x20, 0, 0, offset)  # A = 32 bits of the call's data


def _jump(op: int, value: int, yes: int, no: int) -> bytes:
    return struct.pack("=HBBI", 0x05 | op, yes, no, value)


def _leave(action: int) -> bytes:
    return struct.pack("=HBBI", 0x06, 0, 0, action)


def _start(machine: str, arch: int) -> list[bytes]:
    """Ends who calls by another architecture's numbers, then loads the number of the call."""
    code = [_load(4), _jump(_EQUAL, arch, 1, 0), _leave(KILL), _load(0)]
    if machine == "x86_64":
        code += [_jump(_AT_LEAST, X32, 0, 1), _leave(KILL)]
    return code


def program(machine: str, internet: bool = True) -> bytes | None:
    """The filter for a machine as os.uname() names it, or None where its numbers aren't known.

    internet says whether code may have sockets of the internet, which elsewhere reach lo alone.
    """
    if machine not in _ARCHITECTURES:
        return None
    arch, own, some = _ARCHITECTURES[machine]
    load, jump, leave, equal = _load, _jump, _leave, _EQUAL
    code = _start(machine, arch)
    for number in sorted({*own.values(), *_COMMON.values()}):
        code += [jump(equal, number, 0, 1), leave(ERRNO | EPERM)]
    # Its flags are in memory; without it libc uses clone.
    code += [jump(equal, _CLONE3, 0, 1), leave(ERRNO | ENOSYS)]
    deny, allow = leave(ERRNO | EPERM), leave(ALLOW)
    first, second, third = load(16), load(24), load(32)  # the lower halves, all that the kernel reads
    rules = {"clone": [first, jump(_ANY_BIT, NEW_NAMESPACE, 0, 1), deny, allow]}
    allowed = FAMILIES if internet else FAMILIES[:1]
    families = [jump(equal, family, len(allowed) - i + 3, 0) for i, family in enumerate(allowed)]
    netlink = [jump(equal, AF_NETLINK, 0, 2), third, jump(equal, NETLINK_ROUTE, 1, 0)]
    for name in ("socket", "socketpair"):
        rules[name] = [first, *families, *netlink, deny, allow]
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        rules[name] = [first, jump(equal, SUPERVISOR, 0, 1), deny, allow]
    for name, which in (("setpriority", PRIO_PROCESS), ("ioprio_set", IOPRIO_WHO_PROCESS)):
        rules[name] = [first, jump(equal, which, 0, 2), second, jump(equal, SUPERVISOR, 0, 1), deny, allow]
    for name, number in some.items():
        code += [jump(equal, number, 0, len(rules[name])), *rules[name]]
    return b"".join([*code, allow])


Confined = tuple[bool, str]  # whether the guest's own filter is in force and, for a person, what is amiss


def confine() -> Confined:
    """Makes this process undumpable and filters its system calls and those of all it will start."""
    engine = ENGINE_OFF if os.getpid() == SUPERVISOR and _unfiltered() else ""
    own = _confine()
    return not own, "; ".join(filter(None, (own, engine)))


def _unfiltered() -> bool:
    """Whether nothing filters the system calls of this process yet, as far as can be seen."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            return "\nSeccomp:\t0\n" in file.read()
    except OSError:
        return False


def _confine() -> str:
    """Returns "" or, for a person, why one of the two could not be had."""
    try:
        _prctl(PR_SET_DUMPABLE, 0)
        code = program(os.uname().machine, internet=os.getpid() != SUPERVISOR or alone())
        if code is None:
            return f"{_NO_FILTER}: the numbers of {os.uname().machine} calls aren't known"
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        _install(code)
    except ImportError as e:
        return f"{_NO_FILTER}: the image's Python has no ctypes ({e})"
    except OSError as e:
        return f"{_NO_FILTER}: {e}"
    return ""


# lo, and ends of tunnels that a kernel with their modules puts into every network namespace: they are down.
_EVERYWHERE = {"lo", "tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6tnl0", "ip6gre0"}
_EVERYWHERE.add("ip6_vti0")


def alone(path: str = "/proc/net/dev") -> bool:
    """Whether lo is the only network interface: a pod of a cluster has another, whatever that leads to."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            names = {line.partition(":")[0].strip() for line in file if ":" in line}
    except OSError:
        return False
    return names <= _EVERYWHERE


def _install(code: bytes) -> None:
    import ctypes

    memory = ctypes.create_string_buffer(code, len(code))
    fprog = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(memory)))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(fprog))


def cores_program(machine: str) -> bytes | None:
    """A filter that denies to choose one's cores, and nothing else."""
    if machine not in _ARCHITECTURES:
        return None
    arch, _, some = _ARCHITECTURES[machine]
    deny = [_jump(_EQUAL, some["sched_setaffinity"], 0, 1), _leave(ERRNO | EPERM)]
    return b"".join([*_start(machine, arch), *deny, _leave(ALLOW)])


def keep_cores() -> None:
    """Keeps this thread, and what it starts, on the cores it is bound to, where there is ctypes."""
    try:
        code = cores_program(os.uname().machine)
        if code is not None:
            _install(code)
    except (ImportError, OSError):
        pass


def be_the_child() -> None:
    """Makes the child dumpable, to read its own /proc/self; it is killed when the supervisor ends."""
    try:
        _prctl(PR_SET_DUMPABLE, 1)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (ImportError, OSError):
        pass


def memory_closer() -> Callable[[], object]:
    """What closes the memory of a process to others of its user, until it is the child: a call made ready."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda: None
    args = [ctypes.c_int(PR_SET_DUMPABLE), *(ctypes.c_ulong(0) for _ in range(4))]
    return lambda: prctl(*args)


def adopt() -> None:
    """Makes this process the parent of what its children leave behind, as pid 1 is in any case."""
    try:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    except (ImportError, OSError):
        pass


def _prctl(option: int, value: int, more: int = 0) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    args = [ctypes.c_ulong(n) for n in (value, more, 0, 0)]
    if libc.prctl(ctypes.c_int(option), *args) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}): {os.strerror(error)}")
