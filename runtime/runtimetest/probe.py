"""What a container looks like from inside, as one JSON object on stdout. Runs raw in a container and through the guest alike."""

import ctypes
import json
import os
import platform
import resource
import socket
import sys


def status() -> dict:
    with open("/proc/self/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def mounts() -> list:
    found = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            fields, (kind, source, options) = left.split(" "), right.split(" ", 2)
            found.append({
                "root": fields[3], "path": fields[4], "type": kind, "source": source,
                "options": fields[5].split(","), "super": options.split(","),
            })
    return found


def writable(places: list) -> list:
    """The directories among places in which a file could be made; it is removed again."""
    found = []
    for place in places:
        name = os.path.join(place, ".probe")
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(name)
            found.append(place)
        except OSError:
            pass
    return sorted(found)


def directories() -> list:
    found = ["/"]
    for root, names, _ in os.walk("/", onerror=lambda _: None):
        if root in ("/proc", "/sys"):
            names[:] = []
            continue
        found.extend(os.path.join(root, n) for n in names)
    return found


def executable(place: str) -> bool:
    """Whether a program that lies there can be run."""
    name = os.path.join(place, "probe-exec")
    try:
        with open(name, "w") as f:
            f.write("#!/bin/sh\nexit 0\n")
        os.chmod(name, 0o755)
        pid = os.fork()
        if pid == 0:
            try:
                os.execv(name, [name])
            finally:
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 99
    except OSError:
        return False
    finally:
        try:
            os.unlink(name)
        except OSError:
            pass


def reaches(family: int, address) -> str:
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(2)
        s.connect(address)
        return "connected"
    except OSError as e:
        return type(e).__name__


CALLS = {
    # name: (x86_64, aarch64, arguments)
    "ptrace": (101, 117, (0, 0, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
    "add_key": (248, 217, (0, 0, 0, 0, 0)),
    "request_key": (249, 218, (0, 0, 0, 0)),
    "keyctl": (250, 219, (0, -3, 0, 0, 0)),
    "bpf": (321, 280, (0, 0, 0)),
    "userfaultfd": (323, 282, (0,)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "umount2": (166, 39, (0, 0)),
    "unshare_user": (272, 97, (0x10000000,)),
    "unshare_net": (272, 97, (0x40000000,)),
    "unshare_mnt": (272, 97, (0x00020000,)),
    "setns": (308, 268, (-1, 0)),
    "clone_newuser": (56, 220, (0x10000000 | 17, 0, 0, 0, 0)),
    "io_uring_setup": (425, 425, (1, 0)),
    "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0, 0)),
    "io_uring_register": (427, 427, (-1, 0, 0, 0)),
}


def calls() -> dict:
    """The error of each call that SECURITY_BRIEF denies; None where it went through."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    which = 0 if platform.machine() == "x86_64" else 1
    found = {}
    for name, spec in CALLS.items():
        ctypes.set_errno(0)
        args = [ctypes.c_long(a) for a in spec[2]]
        got = libc.syscall(ctypes.c_long(spec[which]), *args)
        if name.startswith("clone") and got == 0:
            os._exit(0)  # the child that should not be
        if name.startswith("clone") and got > 0:
            os.waitpid(got, 0)
        found[name] = None if got >= 0 else os.strerror(ctypes.get_errno())
    return found


def probe(port: int, abstract: str) -> dict:
    s = status()
    places = writable(directories())
    with open("/proc/net/dev") as f:
        interfaces = [line.split(":")[0].strip() for line in f if ":" in line]
    return {
        "uid": [os.getuid(), os.geteuid()], "gid": [os.getgid(), os.getegid()],
        "groups": os.getgroups(),
        "caps": {k: s[k].strip() for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        "noNewPrivs": s["NoNewPrivs"].strip(), "seccomp": s["Seccomp"].strip(),
        "mounts": mounts(), "writable": places, "executable": [p for p in places if executable(p)],
        "namespaces": {n: os.readlink("/proc/self/ns/" + n) for n in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")},
        "interfaces": interfaces, "env": dict(os.environ), "hostname": socket.gethostname(),
        "tcp": reaches(socket.AF_INET, ("127.0.0.1", port)), "abstract": reaches(socket.AF_UNIX, "\0" + abstract),
        "devices": sorted(os.listdir("/dev")),
        "rlimits": {n: list(resource.getrlimit(getattr(resource, "RLIMIT_" + n.upper()))) for n in ("nofile", "core", "nproc", "as")},
        "sizes": {p: os.statvfs(p).f_frsize * os.statvfs(p).f_blocks for p in ("/dev/shm", "/tmp", "/workspace", "/ipc")},
        "calls": calls(),
    }


print(json.dumps(probe(int(os.environ.get("PROBE_PORT", "9")) if len(sys.argv) < 2 else int(sys.argv[1]),
                       "none" if len(sys.argv) < 3 else sys.argv[2])))
