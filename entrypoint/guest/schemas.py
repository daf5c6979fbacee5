"""JSON Schemas as servers send them: followed, folded, and values held against them. Whatever a schema is, nothing here raises,
and what is not understood allows everything: the server has the last word."""

from __future__ import annotations

import json
from typing import Any

Schema = dict[str, Any]

MAX_DEPTH = 12  # of schemas in each other
MAX_STEPS = 100_000  # comparisons of one check, and keys and items looked at in one schema; what is beyond allows everything
TEXT_STEP = 8  # characters of a schema's text that are a step


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


class Document:
    """A schema that its references lead into, read within a budget: a server's schema doesn't decide how long that takes, nor how
    much text comes of it. entrypoint/stubs/fold.go has the same rules."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.left = MAX_STEPS  # below zero once there were too few
        self._following: set[str] = set()

    def spend(self, steps: int) -> bool:
        """Takes steps from the budget and says whether they were there."""
        self.left -= steps
        return self.left >= 0

    def spend_text(self, length: int) -> bool:
        """spend for work on a text."""
        return self.spend(1 + length // TEXT_STEP)

    def effective(self, schema: Schema, depth: int = 0) -> Schema:
        """The schema with its reference followed and its allOf folded in."""
        ref, parts = schema.get("$ref"), items(schema, "allOf")
        if not isinstance(ref, str) and not parts:
            return schema
        if not self.spend(1 + len(schema)):
            return {}
        folded = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        if depth > MAX_DEPTH:
            return folded
        if isinstance(ref, str) and ref not in self._following and self.spend_text(len(ref)):
            self._following.add(ref)
            self._fold(folded, resolve(self.root, ref), depth)
            self._following.discard(ref)
        for part in parts:
            if not self.spend(1):
                break
            self._fold(folded, part, depth)
        return folded

    def _fold(self, into: Schema, part: Any, depth: int) -> None:
        """Adds what into doesn't have yet."""
        if not isinstance(part, dict):
            return
        other = self.effective(part, depth + 1)
        for key, value in other.items():
            if key == "properties":
                if self.spend(1 + len(child(into, key)) + len(child(other, key))):
                    into[key] = {**child(into, key), **{k: v for k, v in child(other, key).items() if k not in child(into, key)}}
            elif key == "required":
                if self.spend(1 + len(items(into, key)) + len(items(other, key))):
                    into[key] = items(into, key) + items(other, key)
            elif self.spend(1):
                into.setdefault(key, value)

    def alternatives(self, schema: Schema) -> Schema:
        """The schema of an object that is one of several: the properties of all, as any of them has it, and what all require."""
        branches = items(schema, "anyOf") + items(schema, "oneOf")
        if child(schema, "properties") or not branches or not all(isinstance(branch, dict) for branch in branches):
            return schema
        found: dict[str, dict[str, Any]] = {}  # by name and text
        count: dict[str, int] = {}
        for branch in branches:
            folded = self.effective(branch, 1)
            if not self._collect(found, child(folded, "properties")) or not self.spend(len(items(folded, "required"))):
                break
            for name in set(strings(folded, "required")):
                count[name] = count.get(name, 0) + 1
        properties = {name: _any_of(list(variants.values())) for name, variants in found.items()}
        required = sorted(name for name, n in count.items() if n == len(branches))
        return {**schema, "properties": properties, "required": items(schema, "required") + required}

    def _collect(self, found: dict[str, dict[str, Any]], properties: Schema) -> bool:
        for name, value in properties.items():
            text = json.dumps(value)
            if not self.spend_text(len(name) + len(text)):
                return False
            found.setdefault(name, {}).setdefault(text, value)
        return self.spend(1)

    def required(self, schema: Schema) -> set[str]:
        """The names that an object requires, as far as the budget goes."""
        return set(strings(schema, "required")) if self.spend(len(items(schema, "required"))) else set()


def _any_of(variants: list[Any]) -> Any:
    return variants[0] if len(variants) == 1 else {"anyOf": variants}


def wrapped(output: Any) -> Any:
    """The schema of the value that a server's library, such as FastMCP, sends as {"result": value}; None where it doesn't."""
    properties = child(output, "properties") if isinstance(output, dict) else {}
    if properties.keys() != {"result"} or kinds(output) != ["object"] or output.get("additionalProperties") not in (None, False):
        return None
    return properties["result"]


def takes_object(document: Document, schema: Any, depth: int = 0) -> bool:
    """Whether an object may be a value."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH or not document.spend(1):
        return schema is not False
    schema = document.effective(schema)
    if "const" in schema or "enum" in schema:
        return any(isinstance(value, dict) for value in [schema.get("const"), *items(schema, "enum")])
    if named := kinds(schema):
        return any(is_kind({}, kind) for kind in named)
    branches = items(schema, "anyOf") + items(schema, "oneOf")
    return not branches or any(takes_object(document, branch, depth + 1) for branch in branches)


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
