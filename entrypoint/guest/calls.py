"""One call: it blocks, or is awaited where an event loop runs in the thread."""

from __future__ import annotations

import sys
import time
from _weakref import ref  # as weakref gives it, which takes a millisecond to import
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import FrameType

try:
    from _queue import Empty, SimpleQueue
except ImportError:  # no CPython
    from queue import Empty, SimpleQueue

from guest import wire
from guest.light_typing import TYPE_CHECKING, Any
from guest.link import Link
from guest.results import SerializationError, ToolTimeout

if TYPE_CHECKING:
    import asyncio

Finish = Callable[[wire.Frame], Any]  # makes the value of a tool_result, or raises what it says
Callback = Callable[[float, "float | None", "str | None"], object]  # progress, total, message

KEPT = 100  # reports that wait while the code is busy with something else; the oldest go first


class Request:
    """What is sent, and what becomes of the answer."""

    def __init__(self, link: Link, name: str, provider: str, tool: str, given: bytes, finish: Finish) -> None:
        self.link, self.name, self.provider, self.tool = link, name, provider, tool
        self.given, self.finish = given, finish
        self.timeout: float | None = None
        self.progress: Callback | None = None

    def now(self) -> Any:
        """Blocks and gives the value where no event loop runs in this thread, else gives an awaitable."""
        return self.block() if running_loop() is None else Awaited(self)

    def block(self) -> Any:
        return self.begun()()

    def begun(self) -> Callable[[], Any]:
        """Sends it. What is returned blocks until the value is there."""
        answers: SimpleQueue[wire.Frame | None] = SimpleQueue()
        call, reports = self._send(answers.put, lambda: answers.put(None))
        end = None if self.timeout is None else time.monotonic() + self.timeout

        def wait() -> Any:
            try:
                while (frame := answers.get(timeout=end and max(0.0, end - time.monotonic()))) is None:
                    reports.tell()
            except Empty:
                raise self._late() from None
            finally:
                self.link.cancel(call)
            return self.finish(frame)

        return wait

    async def wait(self) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[wire.Frame] = loop.create_future()

        def soon(call: Callable[..., None], *given: Any) -> None:
            try:
                loop.call_soon_threadsafe(call, *given)
            except RuntimeError:  # the loop is closed, and nothing waits any more
                pass

        def tell() -> None:
            if not future.done():
                reports.tell()

        call, reports = self._send(lambda frame: soon(_settle, future, frame), lambda: soon(tell))
        try:
            frame = await asyncio.wait_for(future, self.timeout)
        except asyncio.TimeoutError:
            raise self._late() from None
        finally:
            self.link.cancel(call)
        return self.finish(frame)

    def _send(self, put: Callable[[wire.Frame], None], wake: Callable[[], None]) -> tuple[str, Reports]:
        """Sends it; in another thread, put gets the result, and wake is called for reports."""
        reports = Reports(self.name, self.progress, wake)

        def deliver(frame: wire.Frame) -> None:
            (reports.take if frame.get("type") == "progress" else put)(frame)

        asked = self.progress is not None
        try:
            return self.link.call(self.provider, self.tool, self.given, deliver, asked), reports
        except ValueError as e:
            raise SerializationError(f"{self.name}: {e}") from None

    def _late(self) -> ToolTimeout:
        text = f"{self.name} gave no result within {self.timeout:g} s"
        return ToolTimeout(text, server=self.provider, tool=self.tool, code="timeout")


def _settle(future: asyncio.Future[wire.Frame], frame: wire.Frame) -> None:
    if not future.done():
        future.set_result(frame)


class Reports:
    """The progress of a call, which is heard of in one thread and told in another, in order."""

    def __init__(self, name: str, callback: Callback | None, wake: Callable[[], None]) -> None:
        self._name, self._callback, self._wake = name, callback, wake
        self._heard: deque[wire.Frame] = deque(maxlen=KEPT)
        self._woken = self._warned = False

    def take(self, frame: wire.Frame) -> None:
        """Keeps a report until it is told."""
        self._heard.append(frame)
        if not self._woken:
            self._woken = True
            self._wake()

    def tell(self) -> None:
        """Calls the callback. What it raises is reported once, and the call goes on."""
        self._woken = False  # before anything is taken: what comes from here on wakes again
        while self._heard:
            frame = self._heard.popleft()
            try:
                assert self._callback is not None  # none is asked for then
                self._callback(frame["progress"], frame.get("total"), frame.get("message"))
            except Exception as e:
                self._warn(e)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            raised = f"has raised {type(error).__name__}: {error}; the call goes on"
            print(f"{_place(error)}: the progress callback of {self._name} {raised}", file=sys.stderr)


def _place(error: Exception) -> str:
    """File and line of the innermost frame that isn't the guest's own."""
    from guest.expressions import entries

    places = [(one.tb_frame.f_code.co_filename, one.tb_lineno) for one in entries(error)]
    own = [f"{file}:{line}" for file, line in places if not file.startswith(wire.GUEST_FILES)]
    return own[-1] if own else wire.USER_FILE


def running_loop() -> object | None:
    """The event loop that runs in this thread. asyncio isn't imported for this: without it, there isn't one."""
    events = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


class Awaited(Coroutine[Any, Any, Any]):
    """A call that is sent when it is first awaited. One that never is says so on stderr, with its line."""

    def __init__(self, request: Request) -> None:
        self._request, self._name = request, f"{request.name}(...)"
        self._inner: Coroutine[Any, Any, Any] | None = None
        self._line = user_line()
        _unawaited[id(self)] = ref(self)

    def send(self, value: Any) -> Any:
        return self._started().send(value)

    def throw(self, *error: Any) -> Any:
        return self._started().throw(*error)

    def close(self) -> None:
        _unawaited.pop(id(self), None)
        if self._inner is not None:
            self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._started().__await__()

    def _started(self) -> Coroutine[Any, Any, Any]:
        if self._inner is None:
            _unawaited.pop(id(self), None)
            self._inner = self._request.wait()
        return self._inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "cr_", "gi_", "ag_")):  # what asyncio and inspect look for
            raise AttributeError(name)
        raise AttributeError(f"{self._unready()}.{name}")

    def __getitem__(self, key: object) -> Any:
        raise TypeError(f"{self._unready()}[...]")

    def __iter__(self) -> Any:
        raise TypeError(f"{self._unready()}")

    def _unready(self) -> str:
        return (
            f"the call of {self._request.name} has no value before it is awaited; write: (await {self._name})"
        )

    def __repr__(self) -> str:
        return f"<call of {self._request.name}, {'not yet awaited' if self._inner is None else 'awaited'}>"

    def report(self) -> None:
        """Says that the call was never made."""
        if _unawaited.pop(id(self), None):
            said = f"{self._name} was never awaited, so it wasn't called; write: await {self._name}"
            print(f"{self._line}: {said}", file=sys.stderr)

    def __del__(self) -> None:
        if self._inner is None:
            self.report()


_unawaited: dict[int, ref[Awaited]] = {}  # by id: no WeakSet, which fails where the code breaks builtins


def report_unawaited() -> None:
    for one in list(_unawaited.values()):
        if call := one():
            call.report()


def user_line() -> str:
    """File and line of the innermost frame that isn't the guest's own."""
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(wire.GUEST_FILES):
        frame = frame.f_back
    return frame
