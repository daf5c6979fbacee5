"""What a container looks like from inside, as one JSON object on stdout. Runs raw in a container and through the guest alike.

calls.py stands before it.
"""

import json
import os
import resource
import socket
import stat
import subprocess
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


def reads(path: str):
    """How much can be read of a file, or the names in a directory; None where that is refused or it isn't there."""
    try:
        if os.path.isdir(path):
            return len(os.listdir(path))
        with open(path, "rb") as f:
            return len(f.read(64))
    except OSError:
        return None


def opens(path: str) -> str:
    """What comes of opening a file to write to it, which changes nothing yet."""
    try:
        os.close(os.open(path, os.O_WRONLY))
        return "opened"
    except OSError as e:
        return type(e).__name__


def disk() -> str:
    """What comes of making the device of the first disk and opening it."""
    name = "/tmp/.disk"
    try:
        os.mknod(name, stat.S_IFBLK | 0o666, os.makedev(8, 0))
    except OSError as e:
        return type(e).__name__
    try:
        return opens(name)
    finally:
        os.unlink(name)


def makes(path: str) -> str:
    """What comes of making a directory."""
    try:
        os.mkdir(path)
        os.rmdir(path)
        return "made"
    except OSError as e:
        return type(e).__name__


def scan() -> dict:
    """Sockets and setuid programs among all files."""
    sockets, privileged = [], []
    for root, names, files in os.walk("/", onerror=lambda _: None):
        if root in ("/proc", "/sys"):
            names[:] = []
            continue
        for name in files:
            path = os.path.join(root, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISSOCK(mode):
                sockets.append(path)
            elif stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID) and mode & 0o111:
                privileged.append(path)
    return {"sockets": sockets, "setuid": {path: powers(path) for path in privileged if os.access(path, os.X_OK)}}


def powers(path: str) -> dict:
    """What the kernel tells a setuid program of itself. The loader shows it only to a program that has no more than its caller."""
    try:
        told = subprocess.run([path, "--help"], env={"LD_SHOW_AUXV": "1"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=0.5).stdout
    except subprocess.TimeoutExpired as e:  # some wait when they are asked for nothing sensible
        told = e.stdout or b""
    except OSError as e:
        return {"error": type(e).__name__}
    fields = (line.partition(":") for line in told.decode(errors="replace").splitlines() if line.startswith("AT_"))
    return {name: value.strip() for name, _, value in fields if name in ("AT_EUID", "AT_EGID", "AT_SECURE")}


def lowers_oom() -> bool:
    """Whether this process can have the kernel rather kill the container's first process. A fork tries it."""
    pid = os.fork()
    if pid == 0:
        try:
            with open("/proc/1/oom_score_adj") as f:
                first = int(f.read())
            with open("/proc/self/oom_score_adj", "w") as f:
                f.write(str(first - 1))
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def text(path: str):
    try:
        with open(path, errors="replace") as f:
            return f.read(4096).strip().rstrip("\0")
    except OSError:
        return None


def link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def resolves() -> str:
    try:
        return str(socket.getaddrinfo("example.org", 80)[0][4])
    except OSError as e:
        return type(e).__name__


MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
    "/proc/sched_debug", "/proc/scsi", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/vmallocinfo", "/proc/slabinfo",
    "/sys/firmware", "/sys/dev/block", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/fs/selinux", "/sys/fs/pstore",
)  # fmt: skip
FIXED = (
    "/proc/sysrq-trigger", "/proc/mtrr", "/proc/irq/default_smp_affinity", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register",
    "/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/sys/power/state",
    "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/usr/bin/python3", "/dev/kmsg", "/dev/mem", "/dev/port",
)  # fmt: skip
CGROUP = (
    "cgroup.procs", "cgroup.subtree_control", "memory.max", "pids.max", "memory/memory.limit_in_bytes", "memory/cgroup.procs",
    "pids/pids.max", "cpu/cpu.cfs_quota_us", "memory/release_agent", "devices/devices.allow",
)  # fmt: skip
CGROUP_DIRS = ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd")
SWAP = {
    "v2": ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.swap.max"),
    "v1": ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"),
}


def probe(port: int, abstract: str) -> dict:
    s = status()
    places = writable(directories())
    with open("/proc/net/dev") as f:
        interfaces = [line.split(":")[0].strip() for line in f if ":" in line]
    return {
        "uid": [os.getuid(), os.geteuid()], "gid": [os.getgid(), os.getegid()],
        "groups": os.getgroups(),
        "caps": {k: s[k].strip() for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if k in s},
        "noNewPrivs": s.get("NoNewPrivs", "").strip(), "seccomp": s.get("Seccomp", "").strip(),
        "mounts": mounts(), "writable": places, "executable": [p for p in places if executable(p)],
        "namespaces": {n: link("/proc/self/ns/" + n) for n in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")},
        "interfaces": interfaces, "env": dict(os.environ), "hostname": socket.gethostname(),
        "tcp": reaches(socket.AF_INET, ("127.0.0.1", port)), "abstract": reaches(socket.AF_UNIX, "\0" + abstract),
        "devices": sorted(os.listdir("/dev")),
        "rlimits": {n: list(resource.getrlimit(getattr(resource, "RLIMIT_" + n.upper()))) for n in ("nofile", "core", "nproc", "as")},
        "sizes": {p: os.statvfs(p).f_frsize * os.statvfs(p).f_blocks for p in ("/dev/shm", "/tmp", "/workspace", "/ipc")},
        "masked": {p: reads(p) for p in MASKED}, "fixed": {p: opens(p) for p in FIXED},
        "cgroups": {p: opens("/sys/fs/cgroup/" + p) for p in CGROUP} | {p: makes(p + "/probe") for p in CGROUP_DIRS if os.path.isdir(p)},
        "cgroupPaths": [line.split(":", 2)[2] for line in (text("/proc/self/cgroup") or "").splitlines()],
        "memory": {k: [text(p) for p in paths] for k, paths in SWAP.items()}, "swaps": text("/proc/swaps"),
        "uidMap": text("/proc/self/uid_map"), "label": text("/proc/self/attr/current"), "lowersOOM": lowers_oom(), "resolves": resolves(),
        "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()), "ipc": text("/proc/sysvipc/shm"),
        "disk": disk(), **scan(), "calls": calls(),
    }


print(json.dumps(probe(int(os.environ.get("PROBE_PORT", "9")) if len(sys.argv) < 2 else int(sys.argv[1]),
                       "none" if len(sys.argv) < 3 else sys.argv[2])))
