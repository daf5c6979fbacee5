"""Hints for an attribute that a tool's value hasn't, and the words that hints for its keys share."""

from __future__ import annotations

import json
import re
from itertools import islice

from guest import names
from guest.expressions import PLAIN, SCALARS, is_a
from guest.light_typing import Any

MAX_KEYS = 20  # that are named
MAX_KEY = 80  # characters of a key that are shown
MAX_BEGINNING = 2_000  # items of a dict, or characters of a text, that are looked at
_PARTS = "content structured structuredContent text json images result isError".split()
_GET = re.compile(r"""\.get\(\s*(["'])([^"']*)\1\s*(?:,[^()]*)?\)""")


def attribute(value: Any, name: Any, line: str) -> str:
    """What an AttributeError says of a tool's value, or of a part of one, or ""."""
    if type(value) not in PLAIN + SCALARS or type(name) is not str:
        return ""
    if isinstance(value, dict):
        return _attribute_of_dict(value, name, line)
    if isinstance(value, list):
        return _attribute_of_list(value, name, line)
    if name in _PARTS and not isinstance(value, (str, tuple)):
        return f"the value is this {type(value).__name__} itself; write {mended(line, name, '')}"
    return ""


def _attribute_of_list(value: list[Any], name: str, line: str) -> str:
    first = value[0] if value else None
    held: Any = first if is_a(first, dict) else {}
    said = f"this is a list of {len(value):,}"
    asked = _GET.findall(line) if name == "get" else []
    if len(asked) == 1 and not dict.__contains__(held, asked[0][1]):
        return f"{said}, without keys of its own; write {_GET.sub('', line)}"
    if is_a(first, dict) and (dict.__contains__(held, name) or hasattr(dict, name)):
        own = f"[{quoted(name)}]" if dict.__contains__(held, name) else f".{name}"
        return f"{said}; of its first item write {mended(line, name, f'[0]{own}')}"
    return _as_text(name, line) if hasattr(str, name) else ""


def _attribute_of_dict(value: dict[Any, Any], name: str, line: str) -> str:
    if dict.__contains__(value, name):
        write = mended(line, name, f"[{quoted(name)}]")
        for owner in set(re.findall(rf"\b(\w+)\.{re.escape(name)}\b", line)):
            write = re.sub(rf"\b{owner}\.(\w+)\b(?!\s*\()", lambda found: _item(found, value), write)
        return f"a dict has its keys in brackets; write {write}"
    if hasattr(str, name):
        return _as_text(name, line)
    if near := names.nearest(name, [key for key, _ in beginning(value) if type(key) is str]):
        write = mended(line, name, f"[{quoted(near)}]")
        return f"this dict has no key {name!r}; did you mean {write}?"
    if not value or names.nearest(name, dir(dict)):
        return ""
    return f"this dict has no key {_shown(name)!r}; its keys are {listed(value)}"


def _item(found: re.Match[str], value: dict[Any, Any]) -> str:
    """An attribute as the item of that key, where there is one."""
    owner, _, name = found[0].rpartition(".")
    return f"{owner}[{quoted(name)}]" if dict.__contains__(value, name) else found[0]


def _as_text(name: str, line: str) -> str:
    write = mended(line, name, f".text.{name}")
    return f"the JSON text of a result is data already; for the text write {write}"


def mended(line: str, name: str, to: str) -> str:
    """The line with every .name of it changed, or the change alone where it has none."""
    call = "" if to else r"(?:\(\))?"
    changed = re.sub(rf"(?<=[\w\])])\.{re.escape(name)}\b{call}", lambda _: to, line)
    return changed if changed != line and len(changed) <= 200 else f"value{to}"


def beginning(held: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(islice(dict.items(held), MAX_BEGINNING))


def listed(held: dict[Any, Any]) -> str:
    """The first keys of a dict, and how many more there are."""
    listed = [_shown(key) for key in islice(dict.keys(held), MAX_KEYS)]
    if (more := dict.__len__(held) - MAX_KEYS) > 0:
        return f"{', '.join(listed)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))


def _shown(key: Any) -> str:
    """The beginning of a key's text; of an object, its class and address."""
    if type(key) is str:
        return key if len(key) <= MAX_KEY else f"{key[:MAX_KEY]}…"
    return str(key) if is_short(key) else object.__repr__(key)[:MAX_KEY]


def is_short(key: Any) -> bool:
    """Whether a key can be written into a line of code."""
    if type(key) is int:
        return key.bit_length() <= 2 * MAX_KEY
    return type(key) in SCALARS and (type(key) is not str or len(key) <= MAX_KEY)


def quoted(key: Any) -> str:
    return json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)
