"""JSON Schemas as servers send them: followed, folded, and values held against them. Whatever a schema is, nothing here raises,
and what is not understood allows everything: the server has the last word."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

MAX_DEPTH = 12  # of schemas in each other
MAX_STEPS = 100_000  # comparisons of one check; what is beyond isn't checked


def child(schema: Schema, key: str) -> Schema:
    value = schema.get(key)
    return value if isinstance(value, dict) else {}


def items(schema: Schema, key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def strings(schema: Schema, key: str) -> list[str]:
    return [value for value in items(schema, key) if isinstance(value, str)]


def resolve(root: Any, ref: str) -> Any:
    """What a reference into the schema means; True, which allows everything, for one that leads nowhere or elsewhere."""
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
        elif isinstance(at, list) and step.isascii() and step.isdigit() and len(step) < 9 and int(step) < len(at):
            at = at[int(step)]
        else:
            return True
    return at


def effective(root: Any, schema: Schema, depth: int = 0) -> Schema:
    """The schema with its reference followed and its allOf folded in."""
    ref, parts = schema.get("$ref"), items(schema, "allOf")
    if not isinstance(ref, str) and not parts:
        return schema
    folded = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
    if depth > MAX_DEPTH:
        return folded
    for part in [*([resolve(root, ref)] if isinstance(ref, str) else []), *parts]:
        if isinstance(part, dict):
            _fold(folded, effective(root, part, depth + 1))
    return folded


def _fold(into: Schema, other: Schema) -> None:
    for key, value in other.items():
        if key == "properties":
            into[key] = {**child(into, key), **{k: v for k, v in child(other, key).items() if k not in child(into, key)}}
        elif key == "required":
            into[key] = items(into, key) + items(other, key)
        else:
            into.setdefault(key, value)


def alternatives(root: Any, schema: Schema) -> Schema:
    """The schema of an object that is one of several: the properties of all, as any of them has it, and what all require."""
    branches = items(schema, "anyOf") + items(schema, "oneOf")
    if child(schema, "properties") or not branches or not all(isinstance(branch, dict) for branch in branches):
        return schema
    folded = [effective(root, branch, 1) for branch in branches]
    found: dict[str, list[Any]] = {}
    for branch in folded:
        for name, value in child(branch, "properties").items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    properties = {name: values[0] if len(values) == 1 else {"anyOf": values} for name, values in found.items()}
    named = sorted({name for branch in folded for name in strings(branch, "required")})
    required = [name for name in named if all(name in strings(branch, "required") for branch in folded)]
    return {**schema, "properties": properties, "required": items(schema, "required") + required}


def is_open(schema: Schema) -> bool:
    """Whether an object takes members that its properties don't name."""
    if "additionalProperties" in schema:
        return schema["additionalProperties"] is not False
    return not isinstance(schema.get("properties"), dict) or "patternProperties" in schema


def kinds(schema: Schema) -> list[str]:
    """The JSON types that a schema allows, by its own word or by the keywords that imply one; none where it doesn't say."""
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
    of: dict[str, Any] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
    return isinstance(value, of.get(kind, object))


def same(a: Any, b: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)
