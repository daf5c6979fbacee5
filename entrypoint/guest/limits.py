"""Limits that the child sets for itself before the code runs, and that can't be taken back."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Mapping

from guest import confine, watch
from guest.light_typing import Any

_open, _write, _close = os.open, os.write, os.close  # the code may put something else in their place

THREAD_STACK = 2 << 20
M_ARENA_MAX = -8  # of mallopt(3)

NICENESS = 10  # a tenth of the supervisor's share of a core

# 0: no dumps; no memory that isn't counted; no way back from NICENESS
_ALWAYS = ("core", "memlock", "msgqueue", "nice")


def prepare() -> None:
    """Sets the limits that are the same for every run."""
    for name in _ALWAYS:
        try:
            _set(name, 0)
        except ValueError:  # gVisor hasn't all that Linux has
            pass


def of(options: Mapping[str, Any]) -> tuple[Mapping[str, int], int, bool]:
    """The arguments of apply that options ask for."""
    watched = any((options.get("watch") or {}).values())
    return options.get("rlimits") or {}, options.get("cores") or 0, watched


def apply(rlimits: Mapping[str, int], cores: int = 0, watched: bool = False) -> None:
    """Sets hard and soft limits, and binds the process to some cores, before there is a second thread.

    "as" counts on top of what is mapped already. A supervisor that watches the run gets more
    processor time than the run.
    """
    if watched:
        os.nice(NICENESS)
    if cores:
        keep_to(cores)
    if "as" in rlimits:
        thin_threads()
    for name, value in rlimits.items():
        if name not in _ALWAYS:
            _set(name, value + watch.mapped() if name == "as" else value)


def _set(name: str, value: int) -> None:
    """Sets a limit, or as much of it as may be."""
    number = getattr(resource, f"RLIMIT_{name.upper()}")
    hard = resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(number, (value, value))


def keep_to(cores: int) -> None:
    """Binds this process, and what it will start, to some of the cores that it may use.

    They are chosen at random, so runs spread over the machine. This stands for a cgroup's share of time.
    """
    allowed = os.sched_getaffinity(0)
    if cores < len(allowed):
        os.sched_setaffinity(0, sorted(allowed, key=lambda core: os.urandom(4))[:cores])
        confine.keep_cores()


def thin_threads() -> None:
    """Makes a thread take 2 MiB of address space, not the 72 of glibc for its heap and stack.

    Otherwise seven threads that do nothing use up 512 MiB.
    """
    threading.stack_size(THREAD_STACK)
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):  # a libc that reserves less
        pass


FIRST, LATER = b"1000", b"0"  # of oom_score


def oom_score(value: bytes) -> None:
    """Says when the kernel is to end this process, as memory ends: before the supervisor, which has 0."""
    try:
        fd = _open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            _write(fd, value)
        finally:
            _close(fd)
    except OSError:  # no such file in this sandbox, or it may not be written
        pass
