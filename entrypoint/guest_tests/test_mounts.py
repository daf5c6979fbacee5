"""What the guest makes of the container it finds itself in."""

from __future__ import annotations

import unittest

from guest import mounts

ID = "0123456789abcdef" * 4
PLAIN = """\
600 500 0:60 / / ro,nodev,relatime - overlay overlay rw,lowerdir=/home/u/.local/share
601 600 0:61 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
602 600 0:62 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k
603 602 0:63 / /dev/shm rw,nosuid,nodev,noexec - tmpfs shm rw,size=32768k
604 600 0:64 / /tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=65536k
605 600 0:65 /containers/overlay-containers/IDENT/userdata/hosts /etc/hosts rw - tmpfs tmpfs rw
606 602 0:5 /null /dev/null rw - devtmpfs devtmpfs rw
607 601 0:61 /sys /proc/sys ro - proc proc rw
608 600 0:66 / /sys ro - sysfs sysfs ro
609 608 0:67 / /sys/fs/cgroup ro - cgroup2 cgroup rw
610 602 0:68 / /dev/mqueue rw - mqueue mqueue rw
""".replace("IDENT", ID)
# As other engines have it: docker, crun, a control group of version 1, gVisor, an engine in a container.
OTHERS = """\
700 600 8:1 /@/var/lib/docker/containers/IDENT/resolv.conf /etc/resolv.conf rw - btrfs /dev/sda1 rw
701 600 0:24 /containers/overlay-containers/IDENT/userdata/.containerenv /run/.containerenv rw - tmpfs tmpfs rw
702 601 0:27 /crun/.empty-directory /proc/acpi ro - tmpfs tmpfs rw
703 601 8:1 /var/tmp/run/crun/.empty-directory /sys/firmware ro - xfs /dev/sda1 rw
704 601 0:70 / /proc/scsi ro - tmpfs tmpfs ro,size=0k
705 601 0:62 /null /proc/kcore rw - tmpfs tmpfs rw,size=65536k
706 601 0:60 /dev/null /proc/keys rw - overlay overlay rw
707 601 0:61 /bus /proc/bus ro - proc proc rw
708 608 0:71 /user.slice/libpod-IDENT.scope /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
709 600 0:72 / /etc/hosts rw - 9p none rw
723 600 0:72 / /root/.termination rw - 9p none rw
720 600 8:1 /var/lib/kubelet/pods/POD/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw
721 600 8:1 /var/lib/kubelet/pods/POD/containers/code/1b2c3d4e /root/.termination rw - ext4 /dev/sda1 rw
722 600 0:80 / /workspace rw - tmpfs tmpfs rw,size=131072k
710 601 0:73 /proc/cpuinfo /proc/cpuinfo rw - fuse.lxcfs lxcfs rw
711 602 0:60 /dev/zero /dev/zero rw - overlay overlay rw
712 602 0:74 /0 /dev/console rw - devpts devpts rw
""".replace("IDENT", ID).replace("POD", "f980dc44-8fdd-4476-aced-de2ac8b50ae0")
VOLUME = "/var/lib/kubelet/pods/f980dc44-8fdd-4476-aced-de2ac8b50ae0/volumes/kubernetes.io~empty-dir/v"
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


NODES = {"/dev/null", "/dev/zero", "/dev/console", "/proc/kcore", "/proc/keys"}


def extra(mountinfo: str, devices: list[str]) -> list[str]:
    return mounts.extra(mountinfo, devices, NODES.__contains__)


class TestExtra(unittest.TestCase):
    def test_a_container_as_asked_for(self) -> None:
        self.assertEqual(extra(PLAIN, DEVICES), [])
        self.assertEqual(extra(OTHERS, DEVICES), [])

    def test_what_was_not_asked_for(self) -> None:
        for line, path in (
            ("620 600 8:1 /home/u /hostdir rw - ext4 /dev/sda1 rw", "/hostdir"),
            ("620 600 8:1 /usr/share/rhel/secrets /run/secrets rw - ext4 /dev/sda1 rw", "/run/secrets"),
            ("620 600 0:70 / /run/user/1000 rw - tmpfs tmpfs rw", "/run/user/1000"),
            ("620 600 0:70 /of/the/host /tmp rw - tmpfs tmpfs rw", "/tmp"),
            ("620 600 8:1 / /workspace rw - ext4 /dev/sda1 rw", "/workspace"),
            ("620 602 0:5 /kvm /dev/kvm rw - devtmpfs devtmpfs rw", "/dev/kvm"),
            ("620 600 0:71 / /etc/localtime ro - ext4 /dev/sda1 rw", "/etc/localtime"),
            ("620 600 8:1 /home/u/.ssh/id /etc/hosts rw - ext4 /dev/sda1 rw", "/etc/hosts"),
            ("620 600 8:1 /var/lib/kubelet/pods/config /etc/hosts rw - ext4 /dev/sda1 rw", "/etc/hosts"),
            ("620 600 8:1 /pods/home/u/.ssh/id /root/.termination rw - ext4 /dev/sda1 rw", "/root/.termination"),
            (f"620 600 8:1 {VOLUME} /root/.termination rw - ext4 /dev/sda1 rw", "/root/.termination"),
            (f"620 600 8:1 {VOLUME}/1b2c3d4e /root/.termination rw - ext4 /dev/sda1 rw", "/root/.termination"),
            ("620 600 8:1 / /root/.termination rw - ext4 /dev/sda1 rw", "/root/.termination"),
            ("620 600 0:80 / /root/.termination rw - tmpfs tmpfs rw", "/root/.termination"),
            ("620 600 0:24 /user/secret /run/.containerenv rw - tmpfs tmpfs rw", "/run/.containerenv"),
            ("620 601 8:1 /home/u/.ssh/id /proc/cpuinfo rw - ext4 /dev/sda1 rw", "/proc/cpuinfo"),
            ("620 601 0:24 /user/secret /proc/version rw - tmpfs tmpfs rw", "/proc/version"),
            ("620 601 0:30 /home/u /sys/firmware rw - nfs4 server:/home rw", "/sys/firmware"),
            ("620 602 8:1 /home/u/.ssh/id /dev/random rw - ext4 /dev/sda1 rw", "/dev/random"),
            ("620 600 0:5 / /dev rw - devtmpfs devtmpfs rw", "/dev"),
            ("620 600 0:72 / /srv rw,nosuid - tmpfs tmpfs rw,size=4k,mode=555", "/srv"),
            ("620 600 0:72 / /srv ro,nosuid - tmpfs tmpfs ro,size=64k,mode=555", "/srv"),
            ("620 600 0:72 /of/the/host /srv ro,nosuid - tmpfs tmpfs ro,size=4k", "/srv"),
            ("620 600 8:1 / /srv ro,nosuid - ext4 /dev/sda1 ro,size=4k", "/srv"),
        ):
            with self.subTest(path):
                self.assertEqual(extra(PLAIN + line + "\n", DEVICES), [path])

    def test_what_covers_a_volume_of_the_image(self) -> None:
        line = "620 600 0:72 / /srv ro,nosuid,nodev,noexec,relatime - tmpfs tmpfs ro,size=4k,mode=555\n"
        self.assertEqual(extra(PLAIN + line, DEVICES), [])

    def test_a_device_that_is_no_mount(self) -> None:
        self.assertEqual(extra(PLAIN, [*DEVICES, "kvm"]), ["/dev/kvm"])

    def test_lines_of_another_form(self) -> None:
        self.assertEqual(extra("\n \nnonsense - \n", []), [])
