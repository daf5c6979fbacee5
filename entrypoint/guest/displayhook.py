"""`display`, `save_artifact` and the value of a last expression; their work is imported late."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable
from itertools import islice
from types import CoroutineType

from guest.light_typing import TYPE_CHECKING, Any
from guest.link import Link
from guest.results import Content

if TYPE_CHECKING:
    from guest.display import Screen

_PLAIN = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None)}
PYPLOT = "matplotlib.pyplot"
LOOKED_AT = 1000  # members of a list, tuple or dict that may be results with images


class Display:
    """The builtins `display` and `save_artifact` of one run, and its displayhook."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.limit = 0  # bytes of all files that the run may hand over
        self._made: Screen | None = None

    def install(self) -> None:
        """Makes them what code and interpreter use."""
        builtins.display = self.display  # type: ignore[attr-defined]
        builtins.save_artifact = self.save_artifact  # type: ignore[attr-defined]
        sys.displayhook = self.last_value
        sys.meta_path.insert(0, Pyplot())

    def renew(self, limit: int) -> None:
        """Begins another run, which may hand over files up to a number of bytes."""
        self.limit, self._made = limit, None

    def screen(self) -> Screen:
        if self._made is None:
            from guest.display import Screen

            self._made = Screen(self._link, self.limit)
        return self._made

    def display(self, *values: Any, mime: str | None = None) -> None:
        """Shows values: figures as images, tables as text, bytes as `mime` says, others by repr."""
        for value in values:
            self.screen().show(value, mime)

    def save_artifact(self, name: str, data: Any = ..., mime: str | None = None) -> str | list[str]:
        """Hands a file over to the caller and gives the name that it has there.

        data: bytes, str (a text, or the path of a file that the code wrote), a path, a figure, an
        image, a DataFrame, a dict or list (as JSON), or the result of a tool (its image or other
        file, unless the name is of a text or of data). A path alone hands over that file. Several
        files of a result get numbers behind the name, and a list of names is given.
        Raises ValueError when the files of the run have too many bytes together.
        """
        return self.screen().save(name, data, mime)

    def last_value(self, value: Any) -> None:
        """Shows the value of a last expression. As in a notebook, None isn't shown."""
        if isinstance(value, CoroutineType):
            value.close()
            call = f"{value.__qualname__}(...)"
            raise RuntimeError(f"{call} was not awaited, so none of it has run; write: await {call}")
        more = any(isinstance(one, Content) and one.note() for one in members(value))
        if not more and (type(value) in _PLAIN or isinstance(value, Content)):
            sys.__displayhook__(value)
        else:
            builtins._ = value  # type: ignore[attr-defined]
            self.screen().show(value)

    def finish(self) -> None:
        """Shows the figures that are still open."""
        pyplot = sys.modules.get(PYPLOT)  # it may have been imported ahead, and never used
        if pyplot is not None and pyplot.get_fignums():
            self.screen().figures()


for _shown in (Display.display, Display.save_artifact):
    _shown.__qualname__ = _shown.__name__  # which a TypeError names


def members(value: Any) -> Iterable[Any]:
    """The first values in a list, tuple or dict, or the value itself where it isn't one of these."""
    if type(value) not in (list, tuple, dict):
        return (value,)
    return islice(value.values() if type(value) is dict else value, LOOKED_AT)


class Pyplot:
    """Has pyplot, when it is imported, draw with the guest's own backend, whose show() shows the figures."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == PYPLOT and (matplotlib := sys.modules.get("matplotlib")) is not None:
            try:
                matplotlib.rcParams["backend"] = "module://guest.pyplot_backend"
            except Exception:  # not the matplotlib that it seems to be
                pass
