"""Ending a process before the kernel has freed its memory.

A parent hears of its child's end only when the memory is freed. Another process that shares the memory
leaves that work to itself: 1.4 ms of a warm call's p50.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

CLONE_VM, CLONE_FS, CLONE_FILES = 0x100, 0x200, 0x400
STACK = 1 << 16  # bytes; nothing but a system call happens on it
SECONDS = 1  # that the other process lives unless it is killed

_getpid = os.getpid  # the code may put something else in its place


class FastExit:
    """Makes that other process. To be made before any code of others runs."""

    def __init__(self) -> None:
        self._pid = _getpid()
        self._clone: Callable[[], object] | None = None
        try:
            import ctypes

            libc = ctypes.PyDLL(None)  # no other thread of Python's gets a turn
            stack = ctypes.create_string_buffer(STACK)
            top = (ctypes.addressof(stack) + STACK) & ~0xF
            clone, pointer = libc.clone, ctypes.c_void_p
            clone.argtypes = [pointer, pointer, ctypes.c_int, pointer]
            flags = CLONE_VM | CLONE_FS | CLONE_FILES | signal.SIGCHLD
            sleep = ctypes.cast(libc.sleep, pointer)
        except (ImportError, OSError, AttributeError):  # no ctypes, or a libc without one of them
            return
        self._stack = stack
        self._clone = lambda: clone(sleep, top, flags, SECONDS)

    def prepare(self) -> None:
        """Starts the other process. To be called last; where it can't be started, the end takes longer."""
        try:
            if self._clone is not None and _getpid() == self._pid:  # not a fork that the code has made
                self._clone()
        except BaseException:  # no memory for the call, say
            pass
