"""What the child sets for itself before any code of others runs, and what nobody in it can take back."""

from __future__ import annotations

import resource
import threading
from collections.abc import Mapping

from guest import watch

THREAD_STACK = 2 << 20
M_ARENA_MAX = -8  # of mallopt(3)

_NAMES = {"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}


def apply(rlimits: Mapping[str, int]) -> None:
    """Sets hard and soft limits. "as" counts on top of what is mapped now; "core" and "memlock" are 0 whatever is asked."""
    if "as" in rlimits:
        thin_threads()
    for name, value in {**rlimits, "core": 0, "memlock": 0}.items():
        if name not in _NAMES:
            raise ValueError(f"no such limit: {name!r}; there are {', '.join(sorted(_NAMES))}")
        if name == "as":
            value += watch.mapped()
        number = getattr(resource, f"RLIMIT_{name.upper()}")
        hard = resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(number, (value, value))


def thin_threads() -> None:
    """Has a thread take 2 MiB of address space, not 72: glibc reserves 64 for a heap of its own and 8 for its stack.

    Else 512 MiB are used up by seven threads that do nothing.
    """
    threading.stack_size(THREAD_STACK)
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):  # another libc, which hasn't this habit
        pass


def first_for_oom() -> None:
    """When memory ends, the kernel is to end this process, not the supervisor."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:  # no such file in this sandbox, or it may not be written
        pass
