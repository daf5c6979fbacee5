"""The expression that failed, and the values of its parts. No method of the code is called.

The one exception: a dict may compare a key with an object of the code that has the same hash.
"""

from __future__ import annotations

import ast
import linecache
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FrameType, GetSetDescriptorType, MemberDescriptorType, TracebackType

from guest import results, wire
from guest.calls import user_frame
from guest.light_typing import Any

MAX_SOURCE = 200_000  # characters of code that is parsed
MAX_LINE = 1_000  # characters of a line that is looked at
MAX_TEXT = 200  # characters of an expression that is shown
MAX_NODES = 50  # expressions of a line that are looked at
MAX_DEPTH = 50  # parts of an expression within each other

_OF_TOOLS = (results.ToolData, results.ToolList, results.ToolText, results.ToolFiles)
PLAIN = (dict, list, tuple, str, *_OF_TOOLS, *results.SHORTENED.values())
SCALARS = (str, int, float, bool, type(None))


class Unknown(Exception):
    """What the expression was worth can't be said without running it."""


class Place:
    """Place is where an exception left the code: the innermost line, and its expressions."""

    def __init__(self, error: BaseException) -> None:
        inside = (one for one in entries(error) if one.tb_frame.f_code.co_filename == wire.USER_FILE)
        self._entries = list(deque(inside, 2))
        self.line = line_of(self._entries[-1].tb_frame, self._entries[-1].tb_lineno) if self._entries else ""
        self._tree: Any = None

    def _parse(self) -> None:
        """Raises Unknown where the code isn't there, or is too long."""
        self._lines = linecache.getlines(wire.USER_FILE)
        if not self._entries or not self._lines or sum(map(len, self._lines)) > MAX_SOURCE:
            raise Unknown
        last = self._entries[-1]
        self._frames: list[FrameType] = [last.tb_frame]
        if last.tb_frame.f_code.co_name.startswith("<") and len(self._entries) > 1:
            self._frames.append(self._entries[-2].tb_frame)  # around a comprehension, before Python 3.12
        self._number, self._columns = last.tb_lineno, _columns(last.tb_frame, last.tb_lasti)
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._tree = compile("".join(self._lines), wire.USER_FILE, "exec", flags)
        self._above = {below: node for node in ast.walk(self._tree) for below in ast.iter_child_nodes(node)}

    def nodes(self, kind: type[ast.AST]) -> list[Any]:
        """The expressions of a kind that may have failed: at the place, or in the line."""
        if self._tree is None:
            self._parse()
        found: list[Any] = [node for node in ast.walk(self._tree) if isinstance(node, kind)]
        exact = [node for node in found if _span(node) == self._columns]
        rest = [node for node in found if node.lineno <= self._number <= (node.end_lineno or node.lineno)]
        return (exact or rest)[:MAX_NODES]

    def above(self, node: ast.AST) -> ast.AST | None:
        return self._above.get(node)

    def text(self, node: Any) -> str:
        """The source of an expression; in one line, or it raises Unknown."""
        text = self._split(node)[1]
        if not text or len(text) > MAX_TEXT:
            raise Unknown
        return text

    def mended(self, node: Any, text: str) -> str:
        """The line of an expression with another text in its place. Raises Unknown as text does."""
        before, _, behind = self._split(node)
        return f"{before}{text}{behind}".strip()

    def _split(self, node: Any) -> tuple[str, str, str]:
        line = self._lines[node.lineno - 1]
        if node.lineno != node.end_lineno or len(line) > MAX_LINE:
            raise Unknown
        data = line.encode()
        start, end = node.col_offset, node.end_col_offset
        return data[:start].decode(), data[start:end].decode(), data[end:].decode()

    def loop(self, name: ast.AST) -> Any:
        """The innermost loop around a name whose variable it is."""
        if not isinstance(name, ast.Name):
            return None
        node: Any = name
        while (node := self._above.get(node)) is not None:
            is_loop = isinstance(node, (ast.For, ast.AsyncFor))
            loops: list[Any] = [node] if is_loop else getattr(node, "generators", [])
            for loop in loops:
                if isinstance(loop.target, ast.Name) and loop.target.id == name.id:
                    return loop
        return None

    def value(self, node: ast.AST) -> Any:
        """The value of an expression of names, members and indices; Unknown for others."""
        try:
            return self._value(node, MAX_DEPTH)
        except Unknown:
            return Unknown

    def _value(self, node: ast.AST, depth: int) -> Any:
        if depth == 0:
            raise Unknown
        depth -= 1
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node, depth)
        if isinstance(node, ast.Attribute):
            return _member(self._value(node.value, depth), node.attr)
        if isinstance(node, ast.Subscript):
            return _item(self._value(node.value, depth), self._value(node.slice, depth))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            held, key = self._value(node.func.value, depth), self._value(node.args[0], depth)
            if node.func.attr == "get" and is_a(held, dict) and type(held) in PLAIN and type(key) in SCALARS:
                return dict.get(held, key)
        raise Unknown

    def _named(self, node: ast.Name, depth: int) -> Any:
        for frame in self._frames:
            for names in (frame.f_locals, frame.f_globals):
                if node.id in names:
                    return names[node.id]
        loop = self.loop(node)  # of a comprehension, whose variables are gone in newer Pythons
        if loop is not None and type(through := self._value(loop.iter, depth)) in PLAIN:
            for first in through:
                return first
        raise Unknown


def entries(error: BaseException) -> Iterator[TracebackType]:
    """The entries of an exception's traceback, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def line_of(frame: FrameType, number: int) -> str:
    """A line of the code; "" for other files, and for a long one."""
    line = linecache.getline(wire.USER_FILE, number) if frame.f_code.co_filename == wire.USER_FILE else ""
    return line.strip() if len(line) <= MAX_LINE else ""


def line_here() -> str:
    """The line of the code that is being run."""
    frame = user_frame()
    return line_of(frame, frame.f_lineno)


def is_a(value: Any, *kinds: type) -> bool:
    """isinstance without a look at __class__, which the code may have made a property."""
    return issubclass(type(value), kinds)


def classes(kind: type) -> list[dict[str, Any]]:
    """The members of a class and of those it is made of, by name."""
    return [type.__dict__["__dict__"].__get__(one) for one in type.__dict__["__mro__"].__get__(kind)]


def own(value: Any) -> dict[str, Any]:
    """An object's __dict__, or an empty one."""
    found = next((names["__dict__"] for names in classes(type(value)) if "__dict__" in names), None)
    if not isinstance(found, (GetSetDescriptorType, MemberDescriptorType)):
        return {}
    held: dict[str, Any] | None = found.__get__(value)
    return held or {}


def members(value: Any) -> Iterator[str]:
    """The names of an object's attributes. dir may call methods of the code."""
    yield from own(value)
    for names in [*classes(type(value)), *(classes(value) if is_a(value, type) else [])]:
        yield from names


def _member(value: Any, name: str) -> Any:
    """An attribute that lies in an object itself, and that no property of its class hides."""
    held = own(value)
    hidden = [names[name] for names in classes(type(value)) if name in names]
    if name not in held or any(type(one) not in PLAIN + SCALARS for one in hidden):
        raise Unknown
    return held[name]


def _columns(frame: FrameType, instruction: int) -> tuple[int, int, int, int] | None:
    positions = getattr(frame.f_code, "co_positions", None)  # from Python 3.11 on
    if positions is None or instruction < 0:
        return None
    line, end, column, end_column = next(islice(positions(), instruction // 2, None))
    return (line, column, end, end_column)


def _span(node: Any) -> tuple[int, int, int, int]:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _item(held: Any, key: Any) -> Any:
    if type(held) not in PLAIN or type(key) not in (str, int):
        raise Unknown
    kind: Any = next(kind for kind in (dict, list, tuple, str) if isinstance(held, kind))
    try:
        return kind.__getitem__(held, key)
    except (LookupError, TypeError):
        raise Unknown from None
