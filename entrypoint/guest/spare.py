"""The spare: a fork that keeps the variables as they are between two calls, in case the next ends badly.

It waits for a signal of the supervisor's with all others blocked. Code that has prepared for it can
have a fork do something else: what waits is for accidents.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import threading

from guest import confine, limits, wire
from guest.light_typing import Any
from guest.link import Link

_fork, _exit, _setpgid, _waitpid, _write = os.fork, os._exit, os.setpgid, os.waitpid, os.write
_own = sys.modules.get("_signal", signal)  # as in repeat
_sigmask, _sigwait, _sigpending = _own.pthread_sigmask, _own.sigwait, _own.sigpending
_sigwaitinfo, _sigtimedwait, _waitid = signal.sigwaitinfo, _own.sigtimedwait, os.waitid

SI_USER = 0  # the code of a signal that kill has sent


def unfit() -> list[str]:
    """The imported libraries that don't survive a fork. A file of the code's own with such a name doesn't count."""
    return [name for name in wire.UNFIT if name in sys.modules and _installed(sys.modules[name])]


def _installed(module: Any) -> bool:
    """Reports whether a module comes from a folder of packages, or doesn't say where it comes from."""
    folders = [f"/{site}/" for site in wire.SITES] + ([f"{wire.PACKAGES}/"] if wire.PACKAGES else [])
    try:
        file = module.__file__ or next(iter(module.__path__))
        return any(folder in file for folder in folders)
    except Exception:
        return True


class Spares:
    """Makes them, in the process that has the variables, while that has all signals blocked."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._supervisor = os.getppid()
        self._close_memory = confine.memory_closer()
        import warnings  # while code can't have got in the way of that

        self._warnings = warnings
        self._made: list[int] = []  # processes that are to be collected when they have ended

    def make(self, key: object) -> wire.Frame:
        """Forks a spare, and returns what the supervisor is to be told: pid or errno.

        The spare itself tells it when it waits. It doesn't return in that; once that has taken over,
        it raises TookOver there.
        """
        self.collect()
        state, waits = _random_state(), wire.encode({"type": "waits", "key": key})
        try:
            pid = self._fork()
        except Exception as e:
            return {"errno": e.errno if isinstance(e, OSError) else errno.ENOMEM}
        if pid:
            self._made.append(pid)
            return {"pid": pid}
        try:
            self._wait(waits, state)
        except BaseException:
            _exit(1)
        raise TookOver

    def collect(self) -> None:
        """Collects copies that have ended, and the SIGCHLD of copies: the code has no part in them.

        All signals are blocked. The signal stays where a process of the code's own has ended.
        """
        self._made = [pid for pid in self._made if not _ended(pid)]
        if signal.SIGCHLD in _sigpending() and not _any_ended():
            _sigtimedwait({signal.SIGCHLD}, 0)  # another thread may have taken it meanwhile

    def _fork(self) -> int:
        """Forks without the warning that Python 3.12 gives beside threads."""
        if sys.version_info < (3, 12):
            return _fork()
        with self._warnings.catch_warnings():
            self._warnings.simplefilter("ignore", DeprecationWarning)
            return _fork()

    def _wait(self, waits: bytes, state: object) -> None:
        _setpgid(0, 0)  # out of reach of signals to the group of the code; setsid takes a millisecond
        limits.oom_score(limits.LATER)
        self._close_memory()
        _write(self._link.fd, waits)  # made before the fork, whose every write copies a page
        while True:
            info = _sigwaitinfo({wire.WAKE})
            if info.si_code == SI_USER and info.si_pid == self._supervisor:
                break
        while pending := _sigpending():  # sent to a group, or to all
            _sigwait(pending)
        confine.be_the_child()
        limits.oom_score(limits.FIRST)
        self._made.clear()
        for mend in (lambda: _seed(state), _mend_pools):
            try:
                mend()
            except Exception:  # the code has put something else in the place of a module's
                pass
        self._link.take_over()


class TookOver(BaseException):
    """The process was a spare, and has taken over: it is to wait for the next frame."""


def _ended(pid: int) -> bool:
    try:
        return _waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:  # not this process's, or collected by the code
        return True


def _any_ended() -> bool:
    """Reports whether a child has ended, and collects none."""
    try:
        return _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:
        return False


def _random_state() -> object:
    """The state of random's generator, which Python seeds again in a fork."""
    random = sys.modules.get("random")
    try:
        return random.getstate() if random else None
    except Exception:  # the code has put something else in its place
        return None


def _seed(state: object) -> None:
    if state is not None:
        sys.modules["random"].setstate(state)


def _mend_pools() -> None:
    """Makes thread pools start threads again: those that they had are not in a fork."""
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is None:
        return
    from queue import SimpleQueue

    pools._threads_queues.clear()  # which newer Pythons do in each fork
    for pool in gc.get_objects():
        if issubclass(type(pool), pools.ThreadPoolExecutor):  # isinstance runs code of a proxy object
            pool._threads, pool._work_queue = set(), SimpleQueue()
            pool._idle_semaphore, pool._shutdown_lock = threading.Semaphore(0), threading.Lock()
