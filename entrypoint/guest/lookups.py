"""What is said of a value that hasn't what was looked for in it: a key, an item, data. The mended line is in it."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable

from guest import names, results
from guest.expressions import Place, Unknown, is_call_of, subject
from guest.typed import Any

MAX_KEYS = 20  # that are named

_ENVIRONMENT = (
    "secrets stay with the servers, and no variable of the user's machine is in here: "
    "call a tool of the server that needs it, which has its own login"
)


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    if isinstance(error, KeyError) and _of_environment(error):
        return _ENVIRONMENT
    text = str(error)
    for kind, pattern, rule in _RULES:
        if isinstance(error, kind) and re.search(pattern, text):
            try:
                return rule(error, Place(error))
            except Unknown:
                return ""
    return ""


def _of_environment(error: KeyError) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_locals.get("self") is os.environ:
            return True
        trace = trace.tb_next
    return False


def _key(error: BaseException, place: Place) -> str:
    """A KeyError: the keys that there are, and the nearest, or where else the key is."""
    if type(error) is not KeyError or len(error.args) != 1:
        return ""  # one of ours, which says all itself
    key = error.args[0]
    for node in place.nodes(ast.Subscript):
        try:
            held = place.value(node.value)
        except Unknown:
            continue
        if isinstance(held, str):
            return _text(place.text(node.value))
        if isinstance(held, dict) and key not in held:
            return _keys(held, key, place.text(node.value), place.above(node))
    held = subject(error)
    nodes = place.nodes(ast.Subscript)
    written = place.text(nodes[0].value) if len(nodes) == 1 else ""
    if isinstance(held, dict):
        return _keys(held, key, written, place.above(nodes[0]) if nodes else None)
    return _text(written or "it") if isinstance(held, str) else ""


def _keys(held: dict[Any, Any], key: Any, written: str, above: ast.AST | None) -> str:
    listed = [str(name) for name in held][:MAX_KEYS]
    named = written if re.fullmatch(r"[\w.\[\]\"']+", written) else ""
    if not listed:
        return f"{named or 'the dict'} is empty"
    said = f"the keys{f' of {named}' if named else ''} are {_and(listed, len(held))}"
    if other := _elsewhere(held, key, above):
        return f"{said}; write: {written or 'r'}{other}"
    return said


def _elsewhere(held: dict[Any, Any], key: Any, above: ast.AST | None) -> str:
    """Where in a dict the code may find what it looked for with a key that isn't there."""
    lists = [name for name, value in held.items() if isinstance(value, list)]
    if isinstance(key, int):
        return f"[{_quoted(lists[0])}][{key}]" if len(lists) == 1 else ""
    if near := names.nearest(str(key), [name for name in held if isinstance(name, str)], part=True):
        return f"[{_quoted(near)}]"
    for name, value in held.items():
        if isinstance(value, dict) and key in value:
            return f"[{_quoted(name)}][{_quoted(key)}]"
    if isinstance(above, ast.Subscript) and isinstance(above.slice, ast.Constant) and above.slice.value in held:
        return f"[{_quoted(above.slice.value)}]"  # the key is one layer too many
    return ""


def _text_index(error: BaseException, place: Place) -> str:
    """A key of what is a text: a key or a letter that a loop gave, JSON inside JSON, or the text of a tool."""
    for node in place.nodes(ast.Subscript):
        loop = place.loop(node.value)
        if loop is not None and (said := _loop(loop, place)):
            return said
        try:
            held = place.value(node.value)
        except Unknown:
            continue
        if not isinstance(held, str):
            continue
        written = place.text(node.value)
        if held.lstrip().startswith(("{", "[")) and isinstance(results.parsed(held), (dict, list)):
            return f"{written} is JSON as text; write: json.loads({written})[{place.text(node.slice)}], with import json"
        return _text(written)
    return ""


def _loop(loop: ast.For | ast.AsyncFor | ast.comprehension, place: Place) -> str:
    """A loop whose variable is a text: it goes through the keys of a dict, or the letters of a text."""
    through, target = place.text(loop.iter), place.text(loop.target)
    try:
        value = place.value(loop.iter)
    except Unknown:
        value = _seen(loop.iter, place)
    end = "" if isinstance(loop, ast.comprehension) else ":"
    if isinstance(value, dict):
        lists = [name for name, held in value.items() if isinstance(held, list)]
        rather = f"{through}[{_quoted(lists[0])}]" if lists else f"{through}.values()"
        return f"the loop goes through the keys of a dict; write: for {target} in {rather}{end}"
    if isinstance(value, str):
        lines = value.splitlines()
        if len(lines) > 1 and 0 < lines[0].count(",") == lines[1].count(","):
            return f"this is CSV as text; write: for {target} in csv.DictReader({through}.splitlines()){end} with import csv"
        return f"the loop goes through the letters of a text; write: for {target} in {through}.splitlines(){end}"
    return ""


def _seen(node: ast.AST, place: Place) -> Any:
    """The beginning of what a call of a tool gave, by what its function remembers."""
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        made = getattr(place.value(node.func.value), "_made", {}).get(node.func.attr)
        return getattr(made, "seen", lambda: None)()
    raise Unknown


def _list_index(error: BaseException, place: Place) -> str:
    """A key of what is a list."""
    for node in place.nodes(ast.Subscript):
        loop = place.above(node)
        written, index = place.text(node.value), place.text(node.slice)
        try:
            held = place.value(node.value)
        except Unknown:
            held = []
        if not isinstance(held, list):
            continue
        if isinstance(loop, (ast.For, ast.comprehension)) and loop.iter is node:
            end = ":" if isinstance(loop, ast.For) else ""
            return f"{written} is the list itself; write: for {place.text(loop.target)} in {written}{end}"
        count = f" of {len(held):,}" if held else ""
        return f"{written} is a list{count}; write: {written}[0][{index}], or for x in {written}: x[{index}]"
    return ""


def _none(error: BaseException, place: Place) -> str:
    """An index of None: a member that may be null, or what print gives."""
    for node in place.nodes(ast.Subscript):
        if is_call_of(node.value, "print") and node.value.args:
            inner = place.text(node.value.args[0])
            index = place.text(node)[len(place.text(node.value)) :]
            return f"print gives None; write: print(str({inner}){index})"
        try:
            if place.value(node.value) is not None:
                continue
        except Unknown:
            pass
        written, index = place.text(node.value), place.text(node.slice)
        return f"{written} is None here; write: ({written} or {{}}).get({index})"
    return ""


def _range(error: BaseException, place: Place) -> str:
    for node in place.nodes(ast.Subscript):
        try:
            held = place.value(node.value)
        except Unknown:
            continue
        if isinstance(held, (list, tuple, str)):
            written = place.text(node.value)
            if not held:
                return f"{written} is empty; write: if {written}: before its items are used"
            return f"{written} has {len(held):,} items; the last one is {written}[-1]"
    return ""


def _added(error: BaseException, place: Place) -> str:
    """A text and a number."""
    for node in place.nodes(ast.BinOp):
        left, right = place.text(node.left), place.text(node.right)
        if not isinstance(node.op, ast.Add):
            continue
        try:
            number = str(place.value(node.left)).strip().lstrip("-").isdigit()
        except Unknown:
            number = left.startswith("mcp_")
        return f"write: int({left}) + {right}" if number else f"write: {left} + str({right})"
    return ""


def _no_json(error: BaseException, place: Place) -> str:
    """A text that was parsed as JSON and is none."""
    for node in place.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("loads", "json"):
            continue
        parsed = node.args[0] if node.args else node.func.value
        written = place.text(parsed)
        try:
            value = place.value(parsed)
        except Unknown:
            value = _seen(parsed, place)
        if isinstance(value, str) and not str.__str__(value):
            return f"{written} holds no text, and no JSON; write: display({written})"
        return f"{written} is no JSON, but text; write: print({written})"
    return ""


def _attribute(error: BaseException, place: Place) -> str:
    if not isinstance(getattr(error, "obj", None), results.ToolText):
        return ""
    for node in place.nodes(ast.Attribute):
        if node.attr == getattr(error, "name", None):
            return _text(place.text(node.value))
    return ""


def _text(written: str) -> str:
    return f"{written} is text, not data; write: print({written})"


def _quoted(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)


def _and(listed: list[str], count: int) -> str:
    if count > len(listed):
        return f"{', '.join(listed)} and {count - len(listed):,} more"
    return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


_RULES: tuple[tuple[type[BaseException], str, Callable[[Any, Place], str]], ...] = (
    (KeyError, "", _key),
    (TypeError, "string ind(ex|ices) must be integers", _text_index),
    (TypeError, "list indices must be integers or slices, not str", _list_index),
    (TypeError, "'NoneType' object is not subscriptable", _none),
    (IndexError, "index out of range", _range),
    (TypeError, 'can only concatenate str .not "(int|float)"', _added),
    (json.JSONDecodeError, "", _no_json),
    (AttributeError, "", _attribute),
)
