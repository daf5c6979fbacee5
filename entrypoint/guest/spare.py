"""The spare: a fork that keeps the variables as they were before a call, in case the call ends badly.

It waits for a signal with all others blocked, so that nothing of the code runs in it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

from guest import confine, limits, wire
from guest.light_typing import Any
from guest.link import Link

_fork, _getpid, _exit, _setsid, _waitpid = os.fork, os.getpid, os._exit, os.setsid, os.waitpid
_sigmask, _sigwait, _sigpending = signal.pthread_sigmask, signal.sigwait, signal.sigpending

# Libraries whose threads a fork doesn't have, and which wait for them forever.
UNFIT = (
    "polars", "torch", "jax", "tensorflow", "grpc", "ray", "tokenizers", "duckdb", "sklearn",
    "xgboost", "lightgbm", "faiss", "cv2", "numba", "pyspark", "datafusion", "lance",
)  # fmt: skip


def unfit() -> list[str]:
    """The imported libraries that don't survive a fork."""
    return [name for name in UNFIT if name in sys.modules]


class Spares:
    """Makes them, in the process that has the variables."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.made = False  # there is one of before this call
        self._made: list[int] = []  # processes that are to be collected when they have ended

    def make(self, fork: bool) -> None:
        """Forks a spare where that is asked for, and tells the supervisor its number.

        It returns in the spare too, once that has taken over.
        """
        self.made = False
        self._made = [pid for pid in self._made if not _ended(pid)]
        if not fork:
            self._link.send({"type": "spare", "pid": 0})
            return
        state = _random_state()
        mask = _sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = _quiet_fork()
        except OSError as e:
            _sigmask(signal.SIG_SETMASK, mask)
            self._link.send({"type": "spare", "pid": 0, "why": f"no process could be made: {e.strerror}"})
            return
        if pid:
            _sigmask(signal.SIG_SETMASK, mask)
            self.made = True
            self._made.append(pid)
            self._link.send({"type": "spare", "pid": pid})
            return
        try:
            self._wait(mask, state)
        except BaseException:
            _exit(1)

    def _wait(self, mask: set[Any], state: object) -> None:
        _setsid()  # out of reach of signals to the group of the code
        limits.oom_score(limits.LATER)
        _sigwait({wire.WAKE})
        while pending := _sigpending():  # sent to a group, or to all
            _sigwait(pending)
        limits.oom_score(limits.FIRST)
        confine.be_the_child()
        _sigmask(signal.SIG_SETMASK, mask)
        self._made.clear()
        if state is not None:
            sys.modules["random"].setstate(state)
        _mend_pools()
        self._link.take_over()


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
    """The state of random's generator, which Python seeds anew in a fork."""
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
        if isinstance(pool, pools.ThreadPoolExecutor):
            pool._threads, pool._work_queue = set(), SimpleQueue()
            pool._idle_semaphore, pool._shutdown_lock = threading.Semaphore(0), threading.Lock()
