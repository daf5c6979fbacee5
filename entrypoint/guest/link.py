"""The child's end of its tie to the supervisor: requests out, results in."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable

try:
    from _queue import SimpleQueue
except ImportError:  # no CPython
    from queue import SimpleQueue

from guest import wire

ORDERS = ("execute", "spare", "rehearse")  # what is for the thread that runs the code
Deliver = Callable[[wire.Frame], None]

# The code may put something else in their place.
_getpid, _write, _sigmask = os.getpid, os.write, signal.pthread_sigmask

_WHY = "the answer can't be read as JSON here: it is nested too deeply, or has a number of too many digits"
_UNREADABLE: wire.Frame = {"ok": False, "error": {"code": "serialization_error", "message": _WHY}}

_ENDED = "the supervisor takes no more calls"
_GONE: wire.Frame = {"ok": False, "error": {"code": "internal_error", "message": _ENDED}}
_OVER: wire.Frame = {
    "ok": False,
    "error": {"code": "cancelled", "message": "the run that made the call has ended"},
}


class Link:
    """Sends calls and delivers their results. Any thread of the process that made it may use it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = _getpid()
        self._lines = wire.Lines(wire.MAX_FRAME)
        self._early: list[bytes] = []
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # held by the thread that reads, once there may be two
        self._orders: SimpleQueue[wire.Frame] = SimpleQueue()  # for order
        self._waiting: dict[str, Deliver] = {}
        self._cancelled: deque[str] = deque()  # ids that the host has yet to be told of
        self._last = 0
        self._reader: threading.Thread | None = None
        self._ended = False  # no result will come any more

    @property
    def fd(self) -> int:
        return self._fd

    def mine(self) -> bool:
        """Whether this is the process that was made to run the code, not a fork of it."""
        return _getpid() == self._pid

    def has_more(self) -> bool:
        """Whether first returns a frame without reading."""
        return bool(self._early)

    def first(self) -> wire.Frame:
        """Waits for the next frame, before any call is made. Raises EOFError when none will come."""
        while not self._early:
            data = wire.read_some(self._fd)
            if not data:
                raise EOFError("the supervisor is gone")
            self._early += self._lines.feed(data)
        return wire.decode(self._early.pop(0)) or {}

    def order(self) -> wire.Frame:
        """Waits for the next frame that is no answer to a call. For one thread.

        Where another thread reads answers, that one finds it. Raises EOFError when none will come.
        """
        while self._orders.empty():
            if not self._reading.acquire(blocking=False):
                frame = self._orders.get()
                if not frame:
                    raise EOFError("the supervisor is gone")
                return frame
            try:
                lines, self._early = self._early, []
                if not lines:
                    data = wire.read_some(self._fd, 1 << 18)
                    if not data:
                        raise EOFError("the supervisor is gone")
                    lines = self._lines.feed(data)
                for line in lines:
                    self._settle(line)
            finally:
                self._reading.release()
        return self._orders.get()

    def abandon(self) -> None:
        """Ends the waiting for answers: those of a run that is over don't come."""
        while self._waiting:
            try:
                self._waiting.popitem()[1](_OVER)
            except KeyError:
                break

    def take_over(self) -> None:
        """Makes a fork the process that the supervisor speaks with, once that says so.

        What was meant for the process before is passed over.
        """
        self._pid, self._ended, self._reader = _getpid(), False, None
        self._lock, self._reading, self._orders = threading.Lock(), threading.Lock(), SimpleQueue()
        self._waiting, self._early, self._lines = {}, [], wire.Lines(wire.MAX_FRAME)
        self._cancelled.clear()
        while data := wire.read_some(self._fd, 1 << 18):
            frames = [wire.decode(line) or {} for line in self._lines.feed(data)]
            takes = [frame.get("key") for frame in frames if frame.get("type") == "take"]
            for key in takes:
                self.send({"type": "took", "key": key})
            if takes:
                return
        raise EOFError("the supervisor is gone")

    def send(self, frame: wire.Frame) -> None:
        if self.mine():
            with self._lock:
                self._write(wire.encode(frame))
            self._tell_cancelled()

    def call(self, provider: str, tool: str, given: bytes, deliver: Deliver, progress: bool = False) -> str:
        """Sends a call whose input is a JSON object already, and returns its id.

        deliver is called in another thread: with each report where progress is asked for, and then
        with the result. Raises RuntimeError in a fork, ValueError when the frame is too long.
        """
        if not self.mine():
            raise RuntimeError(
                "tools are called by the process that runs the code, not by a fork of it; use threads"
            )
        names = wire.encode({"providerName": provider, "safeToolName": tool})[1:-2]
        with self._lock:
            call = str(self._last + 1)
            asked = b',"progress":true' if progress else b""
            line = wire.CALL + b'%s",%s%s,"input":%s}\n' % (call.encode(), names, asked, given)
            if len(line) > wire.MAX_FRAME:
                raise ValueError(
                    f"the call takes {len(line)} bytes as a frame; the limit is {wire.MAX_FRAME}"
                )
            self._last += 1
            if self._reader is None:
                reader = threading.Thread(target=self._read, name="mcp-results", daemon=True)
                mask = _sigmask(signal.SIG_BLOCK, signal.valid_signals())  # for the code's own threads
                try:
                    reader.start()  # may raise: then the next call tries again
                finally:
                    _sigmask(signal.SIG_SETMASK, mask)
                self._reader = reader
            self._waiting[call] = deliver
            try:
                self._write(line)
                gone = self._ended
            except OSError:
                gone = True
            if gone and self._waiting.pop(call, None) is not None:
                deliver(_GONE)
        self._tell_cancelled()
        return call

    def cancel(self, call: str) -> None:
        """The result of a call isn't wanted any more. The host is told so, unless it is here already."""
        if self._waiting.pop(call, None) is not None and self.mine():
            self._cancelled.append(call)
            self._tell_cancelled()

    def _tell_cancelled(self) -> None:
        """Leaves it to the holder of the lock, which may be this thread: garbage is cancelled too."""
        while self._cancelled and self._lock.acquire(blocking=False):
            try:
                while self._cancelled:
                    call = self._cancelled.popleft().encode()
                    self._write(b'{"type":"tool_cancel","callId":"%s"}\n' % call)
            except OSError:  # nothing of the run is heard any more
                self._cancelled.clear()
            finally:
                self._lock.release()

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[_write(self._fd, view) :]

    def _read(self) -> None:
        while True:
            with self._reading:
                lines, self._early = self._early, []
                if not lines:
                    data = wire.read_some(self._fd, 1 << 18)
                    if not data:
                        break
                    lines = self._lines.feed(data)
                for line in lines:
                    self._settle(line)
        self._orders.put({})
        self._ended = True  # before the rest is told: a call that is added now sees it
        while self._waiting:
            try:
                self._waiting.popitem()[1](_GONE)
            except KeyError:
                break

    def _settle(self, line: bytes) -> None:
        frame = wire.decode(line)
        if frame is None:  # an answer that Python can't hold is still the answer of its call
            frame = {"callId": wire.call_id(line, wire.RESULT), **_UNREADABLE}
        if frame.get("type") == "take":  # asked again: an answer to another copy, which is no more
            self.send({"type": "took", "key": frame.get("key")})
            return
        if frame.get("type") in ORDERS:
            self._orders.put(frame)
            return
        if frame.get("type") == "progress":
            if observe := self._waiting.get(str(frame.get("callId"))):
                observe(frame)
            return
        if deliver := self._waiting.pop(str(frame.get("callId")), None):
            deliver(frame)
