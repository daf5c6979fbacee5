"""What the guest makes of the container it finds itself in."""

from __future__ import annotations

import unittest

from guest import mounts

PLAIN = """\
600 500 0:60 / / ro,nodev,relatime - overlay overlay rw,lowerdir=/home/u/.local/share
601 600 0:61 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
602 600 0:62 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k
603 602 0:63 / /dev/shm rw,nosuid,nodev,noexec - tmpfs shm rw,size=32768k
604 600 0:64 / /tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=65536k
605 600 0:65 /containers/etc/hosts /etc/hosts rw - tmpfs tmpfs rw
606 602 0:5 /null /dev/null rw - devtmpfs devtmpfs rw
607 601 0:61 /sys /proc/sys ro - proc proc rw
608 600 0:66 / /sys ro - sysfs sysfs ro
609 608 0:67 / /sys/fs/cgroup ro - cgroup2 cgroup rw
610 602 0:68 / /dev/mqueue rw - mqueue mqueue rw
"""
DEVICES = [
    "core",
    "fd",
    "full",
    "mqueue",
    "null",
    "ptmx",
    "pts",
    "random",
    "shm",
    "stderr",
    "stdin",
    "stdout",
    "tty",
    "urandom",
    "zero",
]


class TestExtra(unittest.TestCase):
    def test_a_container_as_asked_for(self) -> None:
        self.assertEqual(mounts.extra(PLAIN, DEVICES), [])

    def test_what_was_not_asked_for(self) -> None:
        for line, path in (
            ("620 600 8:1 /home/u /hostdir rw - ext4 /dev/sda1 rw", "/hostdir"),
            ("620 600 8:1 /usr/share/rhel/secrets /run/secrets rw - ext4 /dev/sda1 rw", "/run/secrets"),
            ("620 600 0:70 / /run/user/1000 rw - tmpfs tmpfs rw", "/run/user/1000"),
            ("620 600 0:70 /of/the/host /tmp rw - tmpfs tmpfs rw", "/tmp"),
            ("620 600 8:1 / /workspace rw - ext4 /dev/sda1 rw", "/workspace"),
            ("620 602 0:5 /kvm /dev/kvm rw - devtmpfs devtmpfs rw", "/dev/kvm"),
            ("620 600 0:71 / /etc/localtime ro - ext4 /dev/sda1 rw", "/etc/localtime"),
            ("620 600 0:5 / /dev rw - devtmpfs devtmpfs rw", "/dev"),
            ("620 600 0:72 / /srv rw,nosuid - tmpfs tmpfs rw,size=4k,mode=555", "/srv"),
            ("620 600 0:72 / /srv ro,nosuid - tmpfs tmpfs ro,size=64k,mode=555", "/srv"),
            ("620 600 0:72 /of/the/host /srv ro,nosuid - tmpfs tmpfs ro,size=4k", "/srv"),
            ("620 600 8:1 / /srv ro,nosuid - ext4 /dev/sda1 ro,size=4k", "/srv"),
        ):
            with self.subTest(path):
                self.assertEqual(mounts.extra(PLAIN + line + "\n", DEVICES), [path])

    def test_what_covers_a_volume_of_the_image(self) -> None:
        line = "620 600 0:72 / /srv ro,nosuid,nodev,noexec,relatime - tmpfs tmpfs ro,size=4k,mode=555\n"
        self.assertEqual(mounts.extra(PLAIN + line, DEVICES), [])

    def test_a_device_that_is_no_mount(self) -> None:
        self.assertEqual(mounts.extra(PLAIN, [*DEVICES, "kvm"]), ["/dev/kvm"])

    def test_lines_of_another_form(self) -> None:
        self.assertEqual(mounts.extra("\n \nnonsense - \n", []), [])
