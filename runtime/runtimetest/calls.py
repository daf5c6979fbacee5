"""The system calls that a container must not have, tried with arguments that do no harm where one goes through."""

import ctypes
import mmap
import os
import platform

AT_FDCWD = -100
HIGH = 1 << 32  # a bit that the kernel doesn't see in an argument of 32 bits, and a careless filter does

# class: {name: (x86_64, aarch64, arguments)}; None where the machine has no such call
CALLS = {
    "namespaces": {
        "unshare_user": (272, 97, (0x10000000,)),
        "unshare_net": (272, 97, (0x40000000,)),
        "unshare_mnt": (272, 97, (0x00020000,)),
        "setns": (308, 268, (-1, 0)),
        "clone_newuser": (56, 220, (0x10000000 | 17, 0, 0, 0, 0)),
        "clone_newnet": (56, 220, (0x40000000 | 17, 0, 0, 0, 0)),
        "clone3": (435, 435, (0, 0)),
    },
    "mounts": {
        "mount": (165, 40, (0, 0, 0, 0, 0)),
        "umount2": (166, 39, (0, 0)),
        "pivot_root": (155, 41, (0, 0)),
        "chroot": (161, 51, (0,)),
        "open_tree": (428, 428, (-1, 0, 0)),
        "move_mount": (429, 429, (-1, 0, -1, 0, 0)),
        "fsopen": (430, 430, (0, 0)),
        "fsconfig": (431, 431, (-1, 0, 0, 0, 0)),
        "fsmount": (432, 432, (-1, 0, 0)),
        "fspick": (433, 433, (-1, 0, 0)),
        "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    },
    "other processes": {
        "ptrace": (101, 117, (0, 0, 0, 0)),
        "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
        "process_vm_writev": (311, 271, (1, 0, 0, 0, 0, 0)),
        "kcmp": (312, 272, (1, 1, 0, 0, 0)),
        "pidfd_getfd": (438, 438, (-1, 0, 0)),
        "process_madvise": (440, 440, (-1, 0, 0, 0, 0)),
        "process_mrelease": (448, 448, (-1, 0)),
    },
    "keys": {
        "add_key": (248, 217, (0, 0, 0, 0, 0)),
        "request_key": (249, 218, (0, 0, 0, 0)),
        "keyctl": (250, 219, (0, -3, 0, 0, 0)),
    },
    "programs for the kernel": {
        "bpf": (321, 280, (0, 0, 0)),
        "userfaultfd": (323, 282, (0,)),
        "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
        "io_uring_setup": (425, 425, (1, 0)),
        "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0, 0)),
        "io_uring_register": (427, 427, (-1, 0, 0, 0)),
    },
    "files by handle, notices of all files": {
        "name_to_handle_at": (303, 264, (-1, 0, 0, 0, 0)),
        "open_by_handle_at": (304, 265, (-1, 0, 0)),
        "fanotify_init": (300, 262, (0, 0)),
        "fanotify_mark": (301, 263, (-1, 0, 0, -1, 0)),
        "lookup_dcookie": (212, 18, (0, 0, 0)),
    },
    "memory that no limit counts": {
        "memfd_create": (319, 279, (0, 0)),
        "memfd_secret": (447, 447, (0,)),
        "shmget": (29, 194, (0, 4096, 0)),
        "semget": (64, 190, (0, 1, 0)),
        "msgget": (68, 186, (0, 0)),
        "mq_open": (240, 180, (0, 0, 0, 0)),
        "vmsplice": (278, 75, (-1, 0, 0, 0)),
    },
    "the machine": {
        "reboot": (169, 142, (0, 0, 0, 0)),
        "kexec_load": (246, 104, (0, 0, 0, 0)),
        "kexec_file_load": (320, 294, (-1, -1, 0, 0, 0)),
        "init_module": (175, 105, (0, 0, 0)),
        "finit_module": (313, 273, (-1, 0, 0)),
        "delete_module": (176, 106, (0, 0)),
        "swapon": (167, 224, (0, 0)),
        "swapoff": (168, 225, (0,)),
        "quotactl": (179, 60, (0, 0, 0, 0)),
        "quotactl_fd": (443, 443, (-1, 0, 0, 0)),
        "acct": (163, 89, (0,)),
        "vhangup": (153, 58, ()),
        "syslog": (103, 116, (10, 0, 0)),
        "personality": (135, 92, (0xFFFFFFFF,)),
        "iopl": (172, None, (0,)),
        "ioperm": (173, None, (0, 0, 0)),
        "modify_ldt": (154, None, (0, 0, 0)),
        "syncfs": (306, 267, (-1,)),
    },
    "names and the clock": {
        "sethostname": (170, 161, (0, 0)),
        "setdomainname": (171, 162, (0, 0)),
        "settimeofday": (164, 170, (0, 0)),
        "clock_settime": (227, 112, (0, 0)),
        "adjtimex": (159, 171, (0,)),
        "clock_adjtime": (305, 266, (0, 0)),
    },
    "where memory lies": {
        "mbind": (237, 235, (0, 0, 0, 0, 0, 0)),
        "set_mempolicy": (238, 237, (0, 0, 0)),
        "migrate_pages": (256, 238, (0, 0, 0, 0)),
        "move_pages": (279, 239, (0, 0, 0, 0, 0, 0)),
    },
    "sockets of other families": {
        "socket_packet": (41, 198, (17, 3, 0)),
        "socket_alg": (41, 198, (38, 5, 0)),
        "socket_vsock": (41, 198, (40, 1, 0)),
        "socket_can": (41, 198, (29, 3, 1)),
        "socket_key": (41, 198, (15, 3, 2)),
        "socket_alg_with_a_bit_above": (41, 198, (HIGH | 38, 5, 0)),
        "netlink_audit": (41, 198, (16, 3, 9)),
        "netlink_netfilter": (41, 198, (16, 3, 12)),
        "netlink_crypto": (41, 198, (16, 3, 21)),
        "socketpair_tipc": (53, 199, (30, 1, 0, 0)),
    },
    "devices": {
        "mknod_null": (259, 33, (AT_FDCWD, b"/tmp/null", 0o020666, 0x103)),
        "mknod_disk": (259, 33, (AT_FDCWD, b"/tmp/disk", 0o060666, 0x800)),
        "mknod_with_a_bit_above": (259, 33, (AT_FDCWD, b"/tmp/more", HIGH | 0o020666, 0x103)),
    },
    "typing into a terminal": {
        "tiocsti": (16, 29, (0, 0x5412, 0)),
        "tiocsti_with_a_bit_above": (16, 29, (0, HIGH | 0x5412, 0)),
        "tioclinux": (16, 29, (0, 0x541C, 0)),
        "ioctl_unknown": (16, 29, (0, 0xABCD, 0)),
    },
    "unneeded process settings": {
        "prctl_set_mm": (157, 167, (35, 0, 0, 0, 0)),
        "prctl_task_perf_events": (157, 167, (32, 0, 0, 0, 0)),
        "seccomp": (317, 277, (9, 0, 0)),
        "timer_create": (222, 107, (0, 0, 0)),
        "io_setup": (206, 0, (0, 0)),
        "splice": (275, 76, (-1, 0, -1, 0, 0, 0)),
        "inotify_init1": (294, 26, (-1,)),
    },
}


def calls():
    """What became of each call, by class: an error, or None where it went through."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    which = 0 if platform.machine() == "x86_64" else 1
    found = {}
    for kind, members in CALLS.items():
        found[kind] = {name: attempt(libc, one[which], one[2]) for name, one in members.items() if one[which] is not None}
    if platform.machine() == "x86_64":
        found["calls of other architectures"] = {
            "x32": ends(lambda: libc.syscall(ctypes.c_long(0x40000000 | 39))),
            "i386": ends(i386),
        }
    return found


def attempt(libc, number, arguments):
    """The error of a call, made by a process of its own: one that goes through may change who makes it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.set_errno(0)
        args = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
        got = libc.syscall(ctypes.c_long(number), *args)
        os.write(write, b"" if got >= 0 else os.strerror(ctypes.get_errno()).encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 200).decode()
    os.close(read)
    os.waitpid(pid, 0)
    return said or None


def ends(call):
    """How a process ends that makes a call; None where the call went through."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if call() >= 0 else 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if status == 0 else f"ended by signal {-status}" if status < 0 else "Function not implemented"


def i386():
    """getpid by int 0x80, which is numbered as on a machine of 32 bits."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
