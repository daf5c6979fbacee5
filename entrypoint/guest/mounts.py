"""What is in the container and was not asked for.

An engine's settings can add files and devices of the host to every container, and its API can't
refuse them. So the guest looks, and the host gives it no code then.
"""

from __future__ import annotations

import os

_OURS = {"/ipc", "/tmp", "/workspace", "/dev/shm"}
_KERNEL = {"/": "", "/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs"}
_KERNEL |= {"/dev/pts": "devpts", "/dev/mqueue": "mqueue"}
_ENGINE = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/.dockerenv"}
_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "console"}
_IN_DEV = _DEVICES | {"core", "fd", "mqueue", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"}


def extra(mountinfo: str, devices: list[str]) -> list[str]:
    """The mounts of a /proc/self/mountinfo, proc(5), and the names in /dev that have no business here."""
    found: list[str] = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        root, path, kind = fields[3], fields[4], right.split(" ")[0]
        covers = kind == "tmpfs" and root == "/" and _covers(fields[5:6], right.split(" ")[-1])
        if not covers and not _expected(root, path, kind):
            found.append(path)
    return found + [f"/dev/{name}" for name in devices if name not in _IN_DEV and f"/dev/{name}" not in found]


def _expected(root: str, path: str, kind: str) -> bool:
    if path in _KERNEL:
        return _KERNEL[path] in ("", kind)
    if path in _OURS:
        return kind == "tmpfs" and root == "/"
    if path.startswith("/dev/"):
        return path[len("/dev/") :] in _DEVICES or path.startswith("/dev/pts/")
    # What engines mask or make read-only there; control groups.
    return path in _ENGINE or path.startswith(("/proc/", "/sys/"))


def _covers(options: list[str], filesystem: str) -> bool:
    """Whether it is a read-only tmpfs of one page, by which the host covers an image's volumes."""
    return "ro" in "".join(options).split(",") and "size=4k" in filesystem.split(",")


def look() -> list[str]:
    """extra, of this container."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return extra(f.read(), sorted(os.listdir("/dev")))
