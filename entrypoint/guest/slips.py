"""Hints for slips with the value of a tool: data taken for text, a key for an attribute. They hold the mended line."""

from __future__ import annotations

import linecache
import re
import sys
from itertools import islice
from types import TracebackType

from guest import names, wire
from guest.typed import Any

MAX_KEYS = 20  # that are named
MAX_LINE = 200  # characters of a line that is shown

_PARTS = ("content", "structured", "structuredContent", "text", "json", "images", "result", "isError")
_METHODS = re.compile(r"\.(items|keys|values|copy|pop|get|update|index|count)\b(?!\()")
_NO_ITEMS = re.compile("builtin_function_or_method' object is not (?:iterable|subscriptable)")
_NUMBER = re.compile("'(?:int|float|bool|NoneType)' object is not subscriptable")
_PART = re.compile(r"""\[(["'])(content|structuredContent|result|isError)\1\]""")
_PIECE = re.compile(r"([\w.]+)(\[[^\[\]]*:[^\[\]]*\])")
_SLICE = re.compile(r"unhashable type: 'slice'|^slice\(")
_NOT_TEXT = re.compile(
    r'can only concatenate str \(not "(?:ToolData|ToolList)"\)|must be str, not (?:ToolData|ToolList)'
    r"|expected string or bytes-like object, got '(?:ToolData|ToolList)'|expected str instance, (?:ToolData|ToolList) found"
)


def attribute(value: Any, name: str, line: str) -> str:
    """What an AttributeError says whose object is a value of a tool, or a part of one; "" where that is no help."""
    if isinstance(value, dict):
        return _of_dict(value, name, line)
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, dict) and (name in first or hasattr(dict, name)):
            own = _key(name) if name in first else f".{name}"
            return f"this is a list of {len(value):,}; of its first item write {mended(line, name, f'[0]{own}')}"
        return _as_text(name, line) if hasattr(str, name) else ""
    if name in _PARTS and (value is None or isinstance(value, (bool, int, float))):
        return f"the value is this {type(value).__name__} itself; write {mended(line, name, '')}"
    return ""


def _of_dict(value: dict[Any, Any], name: str, line: str) -> str:
    if name in value:
        return f"a dict has its keys in brackets; write {mended(line, name, _key(name))}"
    if hasattr(str, name):
        return _as_text(name, line)
    keys = [str(key) for key in islice(value, MAX_KEYS)]
    if near := names.nearest(name, keys):
        return f"this dict has no key {name!r}; did you mean {mended(line, name, _key(near))}?"
    if not keys or names.nearest(name, dir(dict)):
        return ""
    more = f" and {len(value) - MAX_KEYS:,} more" if len(value) > MAX_KEYS else ""
    return f"this dict has no key {name!r}; its keys are {', '.join(keys)}{more}"


def _as_text(name: str, line: str) -> str:
    return f"the JSON text of a result is data already; for the text write {mended(line, name, f'.text.{name}')}"


def _key(name: str) -> str:
    return '["' + name.replace("\\", "\\\\").replace('"', '\\"') + '"]'


def mended(line: str, name: str, to: str) -> str:
    """The line with every .name of it changed, or the change alone where the line isn't known or has none."""
    call = "" if to else r"(?:\(\))?"
    changed = re.sub(rf"(?<=[\w\])])\.{re.escape(name)}\b{call}", lambda _: to, line)
    return changed if changed != line and len(changed) <= MAX_LINE else f"value{to}"


def line_here() -> str:
    """The line of the code that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(wire.GUEST_FILES):
        frame = frame.f_back
    return _line(frame.f_code.co_filename, frame.f_lineno)


def _line(file: str, number: int) -> str:
    return linecache.getline(file, number).strip() if file == wire.USER_FILE else ""


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """The sentence behind an error that tells nothing of its own."""
    line, text = _raised_at(error.__traceback__), str(error)
    if isinstance(error, AttributeError):
        value = getattr(error, "obj", None)
        if value is None and "'NoneType' object" not in text:  # the error says all itself
            return ""
        found = attribute(value, str(error.name), line)
        if found:
            error.obj = None  # Python's own "Did you mean" looks among its attributes
        return found
    if not isinstance(error, (TypeError, KeyError)):
        return ""
    if _NO_ITEMS.search(text) and (method := _METHODS.search(line)):
        return f"a dict has its keys in brackets; write {mended(line, method[1], _key(method[1]))}"
    if _SLICE.search(text):
        beginning = _PIECE.sub(r"str(\1)\2", line)
        return f"a dict can't be sliced; for the beginning of its text write {beginning or 'str(value)[:500]'}"
    if _NOT_TEXT.search(text):
        return "the JSON text of this result is data already: write value.text for the text, or json.dumps(value)"
    if _NUMBER.search(text) and (part := _PART.search(line)):
        return f"the value is not wrapped in anything; write {line.replace(part[0], '', 1)}"
    return ""


def _raised_at(trace: TracebackType | None) -> str:
    """The innermost line of the code."""
    line = ""
    while trace is not None:
        line = _line(trace.tb_frame.f_code.co_filename, trace.tb_lineno) or line
        trace = trace.tb_next
    return line
