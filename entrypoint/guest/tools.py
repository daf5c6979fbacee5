"""A tool as a function of Python: it has a signature and a docstring, and calling it asks the host."""

from __future__ import annotations

from typing import Any, Protocol

from guest import results, wire
from guest.calls import Callback, Request
from guest.link import Link

_ASYNC = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR


class Tool(Protocol):
    """A tool of a server, called with keyword arguments, or with positional ones in order."""

    __name__: str
    __doc__: str | None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def options(self, *, timeout: float | None = None, progress: Callback | None = None) -> Tool: ...


class Maker:
    """Makes the function of one tool. Metadata becomes attributes of it, never text that is compiled."""

    def __init__(self, link: Link, server: str, alias: str, meta: wire.Frame) -> None:
        from guest.arguments import Arguments
        from guest.signatures import Declared

        self._link, self._server = link, server
        self._name = str(meta["safeName"])
        self._module = f"mcp.servers.{alias}"
        self._declared = Declared(meta)
        self._takes = Arguments(f"mcp_{alias}.{self._name}", meta, self._declared)
        self._typed, self._wrapped = isinstance(meta.get("outputSchema"), dict), bool(meta.get("wrapped"))
        self._seen: Any = None  # of the last value, for what is said of an error

    def make(self, limit: float | None = None, observer: Callback | None = None) -> Tool:
        """The function, with a time limit for one result to come, and with who hears how far a call is."""

        def call(*args: Any, **kwargs: Any) -> Any:
            given = self._takes.encode(args, kwargs)
            request = Request(self._link, self._takes.called, self._server, self._name, given, self._finish)
            request.timeout, request.progress = limit, observer
            return request.now()

        def options(*, timeout: float | None = None, progress: Callback | None = None) -> Tool:
            """The same tool with other options.

            timeout: seconds for one result to come; then the call is cancelled and ToolTimeout raised.
            progress: progress(done, total, message) is called in order, before the call returns,
            when the server reports how far it is, in the thread or event loop of the call. total
            and message may be None. What it raises is told on stderr, and the call goes on.
            """
            number = isinstance(timeout, (int, float))
            if timeout is not None and not (number and 0 < timeout < 1e9):
                raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
            if progress is not None:
                _check(progress)
            return self.make(timeout, progress)

        made: Any = call
        made.options, made.seen = options, lambda: self._seen
        options.__qualname__ = f"{self._takes.called}.options"
        made.__name__, made.__qualname__, made.__module__ = self._name, self._takes.called, self._module
        made.__doc__ = self._declared.doc or None
        made.__signature__, made.__annotations__ = self._declared.signature, dict(self._declared.annotations)
        tool: Tool = made
        return tool

    def _finish(self, frame: wire.Frame) -> Any:
        if not frame.get("ok"):
            results.failure(frame, self._server, self._name)
        value = results.value(frame.get("result"), self._server, self._name, self._typed, self._wrapped)
        self._seen = results.outline(value)
        return value


def _check(callback: Callback) -> None:
    """Raises TypeError for what can't be a callback."""
    if not callable(callback):
        kind = type(callback).__name__
        raise TypeError(f"progress must be a function of progress, total and message, not {kind}")
    if getattr(getattr(callback, "__code__", None), "co_flags", 0) & _ASYNC:
        raise TypeError(
            "progress must be a plain function, not an async one: it is called while the call is awaited"
        )
