"""JSON Schemas as servers send them: followed, and values held against them.

Nothing here raises, and what is not understood allows everything: the server has the last word.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

MAX_STEPS = 100_000  # comparisons of one check; what is beyond allows everything
MAX_NAMED = 4  # schemas in each other that describe says
MAX_LISTED = 20  # values and alternatives that it says

_TYPES: dict[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "object": dict, "array": list
}  # fmt: skip


def child(schema: Schema, key: str) -> Schema:
    value = schema.get(key)
    return value if isinstance(value, dict) else {}


def items(schema: Schema, key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def strings(schema: Schema, key: str) -> list[str]:
    return [value for value in items(schema, key) if isinstance(value, str)]


def resolve(root: Any, ref: str) -> Any:
    """What a reference means; True, which allows everything, for one that leads nowhere."""
    if not ref.startswith("#"):
        return True
    at, path = root, ref[1:]
    if "%" in path:
        from urllib.parse import unquote

        path = unquote(path)
    if path and not path.startswith("/"):
        return True
    for step in path.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and step in at:
            at = at[step]
        elif isinstance(at, list) and step in (known := [str(i) for i in range(len(at))]):
            at = at[known.index(step)]
        else:
            return True
    return at


def members(root: Any) -> Schema:
    """The schemas of an object's members and of its parts'; of several for one, any may fit."""
    found: dict[str, list[Any]] = {}
    waiting, seen = [root], set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        for key, schema in child(part, "properties").items():
            found.setdefault(key, []).append(schema)
        waiting += items(part, "allOf") + items(part, "anyOf") + items(part, "oneOf")
        if isinstance(ref := part.get("$ref"), str):
            waiting.append(resolve(root, ref))
    return {key: several[0] if len(several) == 1 else {"anyOf": several} for key, several in found.items()}


def described(root: Any, schema: Any, depth: int = 0) -> str:
    """A type in words, for an error."""
    if depth < MAX_NAMED and isinstance(schema, dict) and isinstance(ref := schema.get("$ref"), str):
        return described(root, resolve(root, ref), depth + 1)
    if depth > MAX_NAMED or not isinstance(schema, dict):
        return "Any"
    if allowed := [schema["const"]] if "const" in schema else items(schema, "enum"):
        return f"Literal[{', '.join(map(repr, allowed[:MAX_LISTED]))}]"
    words = [_word(kind) for kind in kinds(schema) if kind != "array"]
    if "array" in kinds(schema):
        words.append(f"list[{described(root, schema.get('items'), depth + 1)}]")
    if not words:
        branches = items(schema, "anyOf") + items(schema, "oneOf")
        words = [described(root, branch, depth + 1) for branch in branches[:MAX_LISTED]]
    if schema.get("nullable") is True:
        words.append("None")
    several = sorted(dict.fromkeys(words), key="None".__eq__)
    return "Any" if "Any" in several else " | ".join(several) or "Any"


def _word(kind: str) -> str:
    return "None" if kind == "null" else _TYPES[kind].__name__ if kind in _TYPES else "Any"


def kinds(schema: Schema) -> list[str]:
    """The JSON types that a schema allows or implies; none where it doesn't say."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return strings(schema, "type")
    if child(schema, "properties"):
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def is_kind(value: Any, kind: str) -> bool:
    """Whether a value as JSON has it is of a type; every one is of a type that there isn't."""
    if kind == "integer":
        return is_kind(value, "number") and (isinstance(value, int) or value.is_integer())
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None if kind == "null" else isinstance(value, _TYPES.get(kind, object))


def same(a: Any, b: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)
