"""What is in the container and was not asked for.

An engine's settings can add files and devices of the host to every container, and its API can't
refuse them. So the guest looks, and the host gives it no code then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

_OURS = {"/ipc", "/tmp", "/workspace", "/dev/shm"}
_KERNEL = {"/": "", "/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs"}
_KERNEL |= {"/dev/pts": "devpts", "/dev/mqueue": "mqueue"}
_ENGINE = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/.dockerenv"}
_TERMINATION = "/root/.termination"  # a kubelet's file in each container, put where code can't get at it
_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "console"}
_IN_DEV = _DEVICES | {"core", "fd", "mqueue", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"}
# What a machine's files lie on.
_DISKS = {"bcachefs", "btrfs", "cifs", "exfat", "ext2", "ext3", "ext4", "f2fs", "nfs", "nfs4", "overlay", "vfat"}
_DISKS |= {"xfs", "zfs"}


def extra(mountinfo: str, devices: list[str], is_device: Callable[[str], bool]) -> list[str]:
    """The mounts of a /proc/self/mountinfo, proc(5), and the names in /dev that have no business here."""
    found: list[str] = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        root, path, kind = fields[3], fields[4], right.split(" ")[0]
        covers = kind == "tmpfs" and root == "/" and _covers(fields[5:6], right.split(" ")[-1])
        if not covers and not _expected(root, path, kind, is_device):
            found.append(path)
    return found + [f"/dev/{name}" for name in devices if name not in _IN_DEV and f"/dev/{name}" not in found]


def _expected(root: str, path: str, kind: str, is_device: Callable[[str], bool]) -> bool:
    if path in _KERNEL:
        return _KERNEL[path] in ("", kind)
    if path in _OURS:
        return kind == "tmpfs" and root == "/"
    if path.startswith("/dev/"):
        return path.startswith("/dev/pts/") or path[len("/dev/") :] in _DEVICES and is_device(path)
    if path in _ENGINE:
        return _generated(root)
    if path == _TERMINATION:
        return _last_words(root, kind)
    # Control groups, what engines make read-only there, and what they mask: directories by an empty
    # tmpfs, or crun's empty directory, and files by /dev/null, wherever that is.
    from_host = kind in _DISKS or kind == "tmpfs" and root != "/"
    return path.startswith(("/proc/", "/sys/")) and (
        not from_host or root.endswith("/.empty-directory") or is_device(path)
    )


def _generated(root: str) -> bool:
    """Whether a mount is of a file that an engine makes for one container, below the container's id,
    or a kubelet for one pod, below the pod's UUID. gVisor calls the root of each mount "/", which
    elsewhere no file's mount has."""
    parts = root.split("/")
    pod = parts[parts.index("pods") + 1 :][:1] if "pods" in parts else []
    return (
        root == "/"
        or any(len(part) == 64 and not part.strip("0123456789abcdef") for part in parts)
        or any(len(part) == 36 and not part.strip("0123456789abcdef-") for part in pod)
    )


def _last_words(root: str, kind: str) -> bool:
    """Whether a mount is of the file for a container's last words, which a kubelet makes below the
    pod's directory as containers/NAME/ID. A directory's isn't: a volume lies elsewhere there, and one
    with a file system of its own is that file system's root, as each mount is under gVisor."""
    if root == "/":
        return kind not in _DISKS and kind != "tmpfs"
    parts = root.split("/")
    return _generated(root) and parts[-3:-2] == ["containers"] and _is_id(parts[-1])


def _is_id(name: str) -> bool:
    return len(name) == 8 and not name.strip("0123456789abcdef")


def _covers(options: list[str], filesystem: str) -> bool:
    """Whether it is a read-only tmpfs of one page, by which the host covers an image's volumes."""
    return "ro" in "".join(options).split(",") and "size=4k" in filesystem.split(",")


def look() -> list[str]:
    """extra, of this container."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return extra(f.read(), sorted(os.listdir("/dev")), _is_device)


def _is_device(path: str) -> bool:
    """Whether it is a character device, or can't be looked at."""
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return True
