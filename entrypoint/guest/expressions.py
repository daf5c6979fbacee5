"""The expression that failed, and what its parts are worth. Nothing of the code is run again for this."""

from __future__ import annotations

import ast
import linecache
from types import FrameType

from guest import wire
from guest.typed import Any

MAX_SOURCE = 200_000  # characters of code that is looked at


class Unknown(Exception):
    """What the expression is worth can't be said without running it."""


class Place:
    """Where an exception left the code."""

    def __init__(self, error: BaseException) -> None:
        """Raises Unknown where the code isn't there, or is too long."""
        entries = []
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == wire.USER_FILE:
                entries.append(trace)
            trace = trace.tb_next
        lines = linecache.getlines(wire.USER_FILE)
        self._source = "".join(lines)
        if not entries or not self._source or len(self._source) > MAX_SOURCE:
            raise Unknown
        last = entries[-1]
        self._frames: list[FrameType] = [last.tb_frame]
        if last.tb_frame.f_code.co_name.startswith("<") and len(entries) > 1:  # of a comprehension, before Python 3.12
            self._frames.append(entries[-2].tb_frame)
        self._line, self._columns = last.tb_lineno, _columns(last.tb_frame, last.tb_lasti)
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._tree: Any = compile(self._source, wire.USER_FILE, "exec", flags)
        self._above = {below: node for node in ast.walk(self._tree) for below in ast.iter_child_nodes(node)}

    def nodes(self, kind: type[ast.AST]) -> list[Any]:
        """The expressions of a kind that may have failed: the one at the place, or those of the line."""
        found: list[Any] = [node for node in ast.walk(self._tree) if isinstance(node, kind)]
        exact = [node for node in found if _span(node) == self._columns]
        return exact or [node for node in found if node.lineno <= self._line <= (node.end_lineno or node.lineno)]

    def above(self, node: ast.AST) -> ast.AST | None:
        return self._above.get(node)

    def text(self, node: ast.AST) -> str:
        """The source of an expression; in one line, or it raises Unknown."""
        text = ast.get_source_segment(self._source, node)
        if not text or "\n" in text or len(text) > 200:
            raise Unknown
        return text

    def loop(self, name: ast.AST) -> Any:
        """The innermost loop around a name whose variable it is."""
        if not isinstance(name, ast.Name):
            return None
        node: Any = name
        while (node := self._above.get(node)) is not None:
            loops: list[Any] = [node] if isinstance(node, (ast.For, ast.AsyncFor)) else getattr(node, "generators", [])
            for loop in loops:
                if isinstance(loop.target, ast.Name) and loop.target.id == name.id:
                    return loop
        return None

    def value(self, node: ast.AST) -> Any:
        """What an expression of names, indices and constants was worth. Raises Unknown for any other."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.Subscript):
            return _item(self.value(node.value), self.value(node.slice))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            held, key = self.value(node.func.value), self.value(node.args[0])
            if isinstance(held, dict) and _plain(held):
                return dict.get(held, key)
        raise Unknown

    def _named(self, node: ast.Name) -> Any:
        for frame in self._frames:
            for names in (frame.f_locals, frame.f_globals):
                if node.id in names:
                    return names[node.id]
        loop = self.loop(node)  # of a comprehension, whose variables are gone in newer Pythons
        if loop is not None and _plain(through := self.value(loop.iter)):
            for first in through:
                return first
        raise Unknown


def subject(error: BaseException) -> Any:
    """The value whose own method raised the exception. Raises Unknown where it is none of the guest's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if (
        trace is None
        or not trace.tb_frame.f_code.co_filename.startswith(wire.GUEST_FILES)
        or "self" not in trace.tb_frame.f_locals
    ):
        raise Unknown
    return trace.tb_frame.f_locals["self"]


def _columns(frame: FrameType, instruction: int) -> tuple[int, int, int, int] | None:
    positions = getattr(frame.f_code, "co_positions", None)  # from Python 3.11 on
    if positions is None:
        return None
    for number, (line, end, column, end_column) in enumerate(positions()):
        if number == instruction // 2:
            return (line, column, end, end_column)
    return None


def _span(node: Any) -> tuple[int, int, int, int]:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _plain(value: Any) -> bool:
    """Whether to index or go through a value runs no code but Python's own and the guest's."""
    return isinstance(value, (dict, list, tuple, str)) and type(value).__module__ in ("builtins", "mcp")


def _item(held: Any, key: Any) -> Any:
    if not _plain(held) or type(key) not in (str, int):
        raise Unknown
    try:
        return next(kind for kind in (dict, list, tuple, str) if isinstance(held, kind)).__getitem__(held, key)
    except (LookupError, TypeError):
        raise Unknown from None


def is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
