"""Hints for failed lookups, such as a missing key or text used as data, each with the corrected line."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
from collections import deque
from collections.abc import Callable

from guest import names, results, wire
from guest.attribute_hints import MAX_BEGINNING, MAX_KEY, attribute, beginning, is_short, listed, quoted
from guest.expressions import PLAIN, SCALARS, Place, Unknown, entries, is_a
from guest.light_typing import Any

MAX_JSON = 1_000_000  # characters of a text that is parsed
MAX_LITERAL = 20_000  # characters of a text that is parsed as Python

_ENVIRONMENT = (
    "secrets stay with the servers, and no variable of the user's machine is in here: "
    "call a tool of the server that needs it, which has its own login"
)
_ENVELOPE = ("content", "structuredContent", "result", "isError")
_METHODS = ("items", "keys", "values", "copy", "pop", "get", "update", "index", "count")


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """The sentence for an exception of Python's own, or "" where there is nothing to say."""
    text = error.args[0] if type(error) in _KINDS and error.args else ""
    for kind, pattern, rule in _RULES:
        if type(error) is kind and (not pattern or (type(text) is str and re.search(pattern, text))):
            try:
                if said := rule(error, Place(error)):
                    return said
            except Unknown:
                pass
    return ""


def _attribute(error: AttributeError, place: Place) -> str:
    value, name = error.obj, error.name
    if value is None and "'NoneType' object" not in str(error):  # the error says all itself
        return ""
    if found := attribute(value, name, place.line):
        error.obj = None  # Python's own "Did you mean" looks among its attributes
        return found
    if not is_a(value, results.ToolText):
        return ""
    owners = (node.value for node in place.nodes(ast.Attribute) if node.attr == name)
    return next((_text(place.text(owner)) for owner in owners), "")


def _method(error: BaseException, place: Place) -> str:
    """A method of a dict where a key of that name was meant."""
    for node in place.nodes(ast.Attribute):
        above = place.above(node)
        if node.attr in _METHODS and not (isinstance(above, ast.Call) and above.func is node):
            line = place.mended(node, f"{place.text(node.value)}[{quoted(node.attr)}]")
            return f"a dict has its keys in brackets; write {line}"
    return ""


def _sliced(error: BaseException, place: Place) -> str:
    for node in place.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Slice):
            line = place.mended(node.value, f"str({place.text(node.value)})")
            return f"a dict can't be sliced; for the beginning of its text write {line}"
    return ""


def _key(error: KeyError, place: Place) -> str:
    """A KeyError: the keys that there are, and the nearest, or where else the key is."""
    held, key = _subject(error), error.args[0] if error.args else None
    if held is os.environ:
        return _ENVIRONMENT
    if type(key) is slice:  # which has a hash from Python 3.12 on
        return _sliced(error, place)
    nodes = place.nodes(ast.Subscript)
    for node in nodes:
        value = place.value(node.value)
        if is_a(value, str):
            return _text(place.text(node.value))
        if is_a(value, dict) and not (type(key) in SCALARS and dict.__contains__(value, key)):
            return _keys(value, key, place.text(node.value), place.above(node))
    written = place.text(nodes[0].value) if len(nodes) == 1 else ""
    if is_a(held, dict):
        return _keys(held, key, written, place.above(nodes[0]) if nodes else None)
    return _text(written or "it") if is_a(held, str) else ""


def _subject(error: BaseException) -> Any:
    """The value whose own method raised it, if it is one of the guest's or os.environ."""
    last = deque(entries(error), 1)[0].tb_frame
    held = last.f_locals.get("self")
    guests = last.f_code.co_filename.startswith(wire.GUEST_FILES)
    return held if guests or held is os.environ else None


def _keys(held: dict[Any, Any], key: Any, written: str, above: ast.AST | None) -> str:
    named = written if re.fullmatch(r"[\w.\[\]\"']+", written) else ""
    if not dict.__len__(held):
        return f"{named or 'the dict'} is empty"
    said = f"the keys{f' of {named}' if named else ''} are {listed(held)}"
    if other := _elsewhere(held, key, above):
        return f"{said}; write: {written or 'r'}{other}"
    strings = [name for name, _ in beginning(held) if type(name) is str and is_short(name)]
    if type(key) is str and (near := names.nearest(key, strings, part=True)):
        return f"{said}; did you mean {written or 'r'}[{quoted(near)}]?"
    return said


def _elsewhere(held: dict[Any, Any], key: Any, above: ast.AST | None) -> str:
    """Where in a dict the code finds what it looked for with a key that isn't there."""
    if not is_short(key):
        return ""
    known = [(name, value) for name, value in beginning(held) if is_short(name)]
    lists = [name for name, value in known if is_a(value, list)]
    if is_a(key, int):
        return f"[{quoted(lists[0])}][{key}]" if len(lists) == 1 else ""
    for name, value in known:
        if is_a(value, dict) and dict.__contains__(value, key):
            return f"[{quoted(name)}][{quoted(key)}]"
    if isinstance(above, ast.Subscript) and isinstance(above.slice, ast.Constant):
        outer = above.slice.value  # the key is one layer too many
        return f"[{quoted(outer)}]" if dict.__contains__(held, outer) else ""
    return ""


def _text_index(error: BaseException, place: Place) -> str:
    """A key of a text: what a loop gave, JSON inside JSON, or the text of a tool."""
    for node in place.nodes(ast.Subscript):
        loop = place.loop(node.value)
        if loop is not None and (said := _loop(loop, place)):
            return said
        if not is_a(place.value(node.value), str):
            continue
        whole, part = place.text(node), node.value
        while True:
            written = place.text(part)
            parse, _ = _parse(place.value(part))
            if parse and whole.startswith(written):
                write = f"{parse}({written}){whole[len(written) :]}"
                return f"{written} is data as text; write: {write}, with import {parse.partition('.')[0]}"
            if not isinstance(part, ast.Subscript):
                return _text(place.text(node.value))
            part = part.value
    return ""


def _parse(held: Any) -> tuple[str, Any]:
    """The function that makes data of a text, and the data; or ""."""
    if not is_a(held, str) or str.__len__(held) > MAX_JSON:
        return "", None
    text = str.__str__(held)
    if is_a(data := results.parsed(text), dict, list):
        return "json.loads", data
    if text[:1] in ("[", "{") and len(text) <= MAX_LITERAL:
        try:
            if is_a(data := ast.literal_eval(text), dict, list):  # as a server in Python prints its rows
                return "ast.literal_eval", data
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
    return "", None


def _loop(loop: ast.For | ast.AsyncFor | ast.comprehension, place: Place) -> str:
    """A loop whose variable is a text: a key of a dict, or a letter of a text."""
    through, target = place.text(loop.iter), place.text(loop.target)
    value = _seen(loop.iter, place)
    end = "" if isinstance(loop, ast.comprehension) else ":"
    parse, data = _parse(value)
    lines = str.__getitem__(value, slice(MAX_BEGINNING)).splitlines() if is_a(value, str) else []
    if parse:
        through, what = f"{parse}({through})", f" with import {parse.partition('.')[0]}"
        rather, said = (_rather(data, through) if is_a(data, dict) else through), "this is data as text"
    elif is_a(value, dict):
        rather, said, what = _rather(value, through), "the loop goes through the keys of a dict", ""
    elif not is_a(value, str):
        return ""
    elif lines and is_a(results.parsed(lines[0]), dict):
        rather = f"map(json.loads, {through}.splitlines())"
        said, what = "this text has JSON by lines", " with import json"
    elif len(lines) > 1 and 0 < lines[0].count(",") == lines[1].count(","):
        rather, said = f"csv.DictReader({through}.splitlines())", "this is CSV as text"
        what = " with import csv"
    else:
        rather, said = f"{through}.splitlines()", "the loop goes through the letters of a text"
        what = f" and use {target} without a key"
    return f"{said}; write: for {target} in {rather}{end}{what}"


def _rather(value: dict[Any, Any], written: str) -> str:
    """What a loop over a dict is to go through."""
    lists = [name for name, held in beginning(value) if is_a(held, list) and is_short(name)]
    return f"{written}[{quoted(lists[0])}]" if lists else f"{written}.values()"


def _seen(node: ast.AST, place: Place) -> Any:
    """The value of an expression, or the beginning of what a tool gave."""
    from guest.servers import Server

    if (value := place.value(node)) is not Unknown:
        return value
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        server = place.value(node.func.value)
        made: Any = server._made.get(node.func.attr) if type(server) is Server else None
        return made.seen() if made is not None else None
    return None


def _list_index(error: BaseException, place: Place) -> str:
    """A key of what is a list."""
    for node in place.nodes(ast.Subscript):
        loop = place.above(node)
        written, index = place.text(node.value), place.text(node.slice)
        held = place.value(node.value)
        if held is Unknown:
            held = made if is_a(made := _subject(error), list) else Unknown
        if held is not Unknown and not is_a(held, list):
            continue
        if isinstance(loop, (ast.For, ast.comprehension)) and loop.iter is node:
            end = ":" if isinstance(loop, ast.For) else ""
            write = f"for {place.text(loop.target)} in {written}{end}"
            return f"{written} is the list itself; write: {write}"
        length = list.__len__(held) if is_a(held, list) else 0
        count = f" of {length:,}" if length else ""
        first: Any = list.__getitem__(held, 0) if length else None
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if is_a(first, dict) and type(key) is str and not dict.__contains__(first, key):
            said = f"{written} is the list itself{count}: leave out [{index}]"
            return f"{said}; the keys of its items are {listed(first)}"
        write = f"{written}[0][{index}], or for x in {written}: x[{index}]"
        return f"{written} is a list{count}; write: {write}"
    return ""


def _wrapped(error: BaseException, place: Place) -> str:
    """An index of a number or of None that the code took for a part of a result as MCP has it."""
    for node in place.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Constant) and node.slice.value in _ENVELOPE:
            write = place.mended(node, place.text(node.value))
            return f"the value is not wrapped in anything; write {write}"
    return ""


def _none(error: BaseException, place: Place) -> str:
    """An index of None: a member that may be null, or what print gives."""
    for node in place.nodes(ast.Subscript):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
            if call.func.id == "print":
                index = place.text(node)[len(place.text(call)) :]
                return f"print gives None; write: print(str({place.text(call.args[0])}){index})"
        value = place.value(node.value)
        if value is not None and value is not Unknown:
            continue
        written, index = place.text(node.value), place.text(node.slice)
        return f"{written} is None here; write: ({written} or {{}}).get({index})"
    return ""


def _range(error: BaseException, place: Place) -> str:
    for node in place.nodes(ast.Subscript):
        held = place.value(node.value)
        if type(held) in PLAIN and not isinstance(held, dict):
            written = place.text(node.value)
            if not len(held):
                return f"{written} is empty; write: if {written}: before its items are used"
            items = "1 item" if len(held) == 1 else f"{len(held):,} items"
            return f"{written} has {items}; the last one is {written}[-1]"
    return ""


def _added(error: BaseException, place: Place) -> str:
    """A text and a number."""
    for node in place.nodes(ast.BinOp):
        left, right = place.text(node.left), place.text(node.right)
        if not isinstance(node.op, ast.Add):
            continue
        value = place.value(node.left)
        number = left.startswith("mcp_") if value is Unknown else _is_number(value)
        return f"write: int({left}) + {right}" if number else f"write: {left} + str({right})"
    return ""


def _is_number(value: Any) -> bool:
    beginning = str.__getitem__(value, slice(MAX_KEY)) if is_a(value, str) else ""
    return beginning.strip().lstrip("-").isdigit()


def _no_json(error: BaseException, place: Place) -> str:
    """A text that was parsed as JSON and isn't JSON."""
    for node in place.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("loads", "json"):
            continue
        parsed = node.args[0] if node.args else node.func.value
        written = place.text(parsed)
        value = _seen(parsed, place)
        if is_a(value, str) and not str.__len__(value):
            return f"{written} holds no text, and no JSON; write: display({written})"
        return f"{written} is no JSON, but text; write: print({written})"
    return ""


def _hidden(error: BaseException, place: Place) -> str:
    """A function of Python's whose name the code has given to something else."""
    for node in place.nodes(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        held = place.value(node.func) if hasattr(builtins, name) else Unknown
        if held is not Unknown and not callable(held):
            kept = f", and write: del {name}" if wire.LASTS else ""
            return f"{name} is a variable of the code's, which hides Python's own: give it another name{kept}"
    return ""


def _text(written: str) -> str:
    return f"{written} is text, not data; write: print({written})"


_KINDS = (KeyError, IndexError, TypeError, AttributeError, json.JSONDecodeError)
_RULES: tuple[tuple[type[BaseException], str, Callable[[Any, Place], str]], ...] = (
    (AttributeError, "", _attribute),
    (TypeError, "builtin_function_or_method' object is not (iterable|subscriptable)", _method),
    (TypeError, "unhashable type: 'slice'", _sliced),
    (TypeError, "object is not callable", _hidden),
    (TypeError, "'(int|float|bool|NoneType)' object is not subscriptable", _wrapped),
    (KeyError, "", _key),
    (TypeError, "string ind(ex|ices) must be integers", _text_index),
    (TypeError, "list indices must be integers or slices, not str", _list_index),
    (TypeError, "'NoneType' object is not subscriptable", _none),
    (IndexError, "index out of range", _range),
    (TypeError, 'can only concatenate str .not "(int|float)"', _added),
    (json.JSONDecodeError, "", _no_json),
)
