# Tries for namespaces, mounts, keys, BPF, io_uring and other people's kernels.
# want: {"status":"ok","stdout":"{-1}\n"}
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    "x86_64": (272, 165, 155, 161, 250, 321, 298, 323, 308, 169, 246, 319, 29),
    "aarch64": (97, 40, 41, 51, 219, 280, 241, 282, 268, 142, 104, 279, 194),
}[platform.machine()]
print({libc.syscall(number, 0x10000000, 0, 0, 0, 0) for number in (*numbers, 425, 428, 442)})
