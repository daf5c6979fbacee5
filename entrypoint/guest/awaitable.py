"""Values that are there at once, and may be awaited all the same."""

from __future__ import annotations

from collections.abc import Generator

from guest.light_typing import Any


class There:
    """Awaiting it gives itself, so code may await a value that was made without an event loop."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self
        yield


class ReadyList(There, list[Any]):
    """A list that may be awaited."""


class ReadyDict(There, dict[str, Any]):
    """A dict that may be awaited."""


class ReadyText(There, str):
    """A str that may be awaited."""


class Ready:
    """A value with the two methods of a request, for what needs no asking."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def now(self) -> Any:
        return self._value

    def block(self) -> Any:
        return self._value
