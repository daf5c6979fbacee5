"""Ending without having to wait for the kernel to take this process's memory apart.

A parent is told of its child's end only when the memory is freed, which takes longer than all else at the end of a short run.
Whoever shares the memory inherits that work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

CLONE_VM, CLONE_FS, CLONE_FILES = 0x100, 0x200, 0x400
STACK = 1 << 16  # bytes; nothing but a system call happens on it
SECONDS = 1  # that the other process waits to be killed, if nobody does

_getpid = os.getpid  # the code may put something else in its place


class Heir:
    """Makes that other process. To be made before any code of others runs, and called as the last thing before the end."""

    def __init__(self) -> None:
        self._pid = _getpid()
        self._make: Callable[[], object] | None = None
        try:
            import ctypes

            libc = ctypes.PyDLL(None)  # no other thread of Python's gets a turn
            stack = ctypes.create_string_buffer(STACK)
            top = (ctypes.addressof(stack) + STACK) & ~0xF
            clone, pointer = libc.clone, ctypes.c_void_p
            clone.argtypes = [pointer, pointer, ctypes.c_int, pointer]
            flags = CLONE_VM | CLONE_FS | CLONE_FILES | signal.SIGCHLD
            sleep = ctypes.cast(libc.sleep, pointer)
        except (ImportError, OSError, AttributeError):  # no ctypes, or a libc without one of them: the end takes longer then
            return
        self._stack = stack
        self._make = lambda: clone(sleep, top, flags, SECONDS)

    def take_over(self) -> None:
        """Leaves the memory, and the open files, to the other process. Where it can't be made nothing is different."""
        try:
            if self._make is not None and _getpid() == self._pid:  # not a fork that the code has made
                self._make()
        except BaseException:  # no memory for the call, say
            pass
