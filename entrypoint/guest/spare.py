"""The spare: a fork that keeps the variables as they are between two calls, in case the next ends badly.

It waits for a signal of the supervisor's with all others blocked. Code that has prepared for it can
have a fork do something else: what waits is for accidents.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import sys
import threading

from guest import confine, limits, wire
from guest.light_typing import Any
from guest.link import Link

_fork, _getpid, _exit, _setsid, _waitpid, _kill = os.fork, os.getpid, os._exit, os.setsid, os.waitpid, os.kill
_pipe, _read, _write, _close, _poll = os.pipe, os.read, os.write, os.close, select.poll
_sigmask, _sigwait, _sigpending = signal.pthread_sigmask, signal.sigwait, signal.sigpending
_sigwaitinfo = signal.sigwaitinfo

SI_USER = 0  # the code of a signal that kill has sent
SECONDS = 5.0  # that a copy has until it waits


def unfit() -> list[str]:
    """The imported libraries that don't survive a fork."""
    return [name for name in wire.UNFIT if name in sys.modules]


class Spares:
    """Makes them, in the process that has the variables, while that has all signals blocked."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._supervisor = os.getppid()
        self._made: list[int] = []  # processes that are to be collected when they have ended

    def make(self, key: object) -> None:
        """Forks a spare, and tells the supervisor its number once it waits.

        It returns in the spare too, once that has taken over.
        """
        self._made = [pid for pid in self._made if not _ended(pid)]
        state = _random_state()
        try:
            ready, told = _pipe()
            try:
                pid = _quiet_fork()
            except BaseException:
                _close(ready)
                _close(told)
                raise
        except Exception as e:
            number = e.errno if isinstance(e, OSError) else errno.ENOMEM
            self._link.send({"type": "spare", "key": key, "errno": number})
            return
        if pid == 0:
            try:
                _close(ready)
                self._wait(told, state)
            except BaseException:
                _exit(1)
            return
        _close(told)
        self._made.append(pid)
        if _comes(ready):
            self._link.send({"type": "spare", "key": key, "pid": pid})
        else:
            _kill(pid, signal.SIGKILL)
            self._link.send({"type": "spare", "key": key, "errno": errno.ETIMEDOUT})

    def _wait(self, told: int, state: object) -> None:
        _setsid()  # out of reach of signals to the group of the code
        limits.oom_score(limits.LATER)
        confine.be_a_copy()
        _write(told, b".")
        _close(told)
        while True:
            info = _sigwaitinfo({wire.WAKE})
            if info.si_code == SI_USER and info.si_pid == self._supervisor:
                break
        while pending := _sigpending():  # sent to a group, or to all
            _sigwait(pending)
        confine.be_the_child()
        limits.oom_score(limits.FIRST)
        self._made.clear()
        if state is not None:
            sys.modules["random"].setstate(state)
        _mend_pools()
        self._link.take_over()


def _comes(fd: int) -> bool:
    """Whether a byte comes in time."""
    try:
        poller = _poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(SECONDS * 1000)) and _read(fd, 1) == b"."
    finally:
        _close(fd)


def _ended(pid: int) -> bool:
    try:
        return _waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:  # not this process's, or collected by the code
        return True


def _quiet_fork() -> int:
    """Forks without the warning that Python 3.12 gives beside threads."""
    if sys.version_info < (3, 12):
        return _fork()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _fork()


def _random_state() -> object:
    """The state of random's generator, which Python seeds again in a fork."""
    random = sys.modules.get("random")
    try:
        return random.getstate() if random else None
    except Exception:  # the code has put something else in its place
        return None


def _mend_pools() -> None:
    """Makes thread pools start threads again: those that they had are not in a fork."""
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is None or not getattr(pools, "_threads_queues", None):
        return
    from queue import SimpleQueue

    pools._threads_queues.clear()
    for pool in gc.get_objects():
        if issubclass(type(pool), pools.ThreadPoolExecutor):  # isinstance runs code of a proxy object
            pool._threads, pool._work_queue = set(), SimpleQueue()
            pool._idle_semaphore, pool._shutdown_lock = threading.Semaphore(0), threading.Lock()
