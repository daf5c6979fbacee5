"""Python types of JSON Schemas, as objects: nothing of a schema becomes program text. The stubs that the bridge writes say the
same types (entrypoint/stubs); a test compares the two."""

from __future__ import annotations

import operator
import re
import typing
from functools import reduce
from typing import Any

from guest import schemas
from guest.schemas import MAX_DEPTH, Document, Schema

MAX_TYPES = 2000  # types made of one schema; what is beyond is Any
MAX_UNION = 100  # alternatives of one type; more are Any
MAX_NAME = 200  # characters of a TypedDict's name behind the tool's
MAX_MEMBERS = 500
MAX_LITERALS = 100

_typed_dict: Any = typing.TypedDict  # checkers want its call written out
_SCALARS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}


class Builder:
    """Makes the types of the schemas of one document. `records` are the TypedDicts that it made, with their schemas."""

    def __init__(self, document: Document, base: str) -> None:
        self.document, self._base = document, base
        self.records: dict[str, tuple[Any, Schema]] = {}
        self._names: dict[str, int] = {"True": 2, "False": 2, "None": 2}  # with the next number to set one apart
        self._refs: dict[str, Any] = {}
        self._active: set[str] = set()
        self._left = MAX_TYPES

    def type_of(self, schema: Any, hint: str, depth: int) -> Any:
        """The type of the values that a schema allows, or a wider one. hint is for the name of a TypedDict."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or depth > MAX_DEPTH or not self.document.spend(1):
            return Any
        if isinstance(ref := schema.get("$ref"), str):
            return self._reference(ref, hint, depth)
        schema = self.document.effective(schema)
        if "const" in schema:
            return _literal([schema["const"]], self.document)
        if values := schemas.items(schema, "enum"):
            return _literal(values, self.document)
        made = self._of_kinds(schema, hint, depth)
        return union([made, None]) if schema.get("nullable") is True else made

    def _reference(self, ref: str, hint: str, depth: int) -> Any:
        if ref in self._refs:
            return self._refs[ref]
        if ref in self._active or not self.document.spend_text(len(ref)):
            return Any
        target = schemas.resolve(self.document.root, ref)
        if not isinstance(target, dict):
            return Any
        hint = re.split("[/#]", ref)[-1] or ("Input" if ref == "#" else hint)
        if "$ref" not in target and is_record(folded := self.document.effective(target)):
            name = self._name(hint)
            self._refs[ref] = typing.ForwardRef(name)  # the name is made of letters and digits
            self._refs[ref] = self._record(folded, name, depth)
            return self._refs[ref]
        self._active.add(ref)
        try:
            return self.type_of(target, hint, depth + 1)
        finally:
            self._active.discard(ref)

    def _of_kinds(self, schema: Schema, hint: str, depth: int) -> Any:
        branches = schemas.items(schema, "anyOf") + schemas.items(schema, "oneOf")
        if not self.document.spend(len(schemas.items(schema, "type")) + len(branches)):
            return Any
        types = [self._of_kind(kind, schema, hint, depth) for kind in schemas.kinds(schema)]
        if not types:
            types = [self.type_of(branch, hint, depth + 1) for branch in branches]
        return union(types) if types else Any

    def _of_kind(self, kind: str, schema: Schema, hint: str, depth: int) -> Any:
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "array":
            inner = schema.get("items")
            plain = isinstance(inner, dict) and "prefixItems" not in schema
            return list[self.type_of(inner, hint, depth + 1) if plain else Any]  # type: ignore[misc]
        if kind != "object":
            return Any
        if is_record(schema):
            return self._record(schema, self._name(hint), depth)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and not schemas.child(schema, "properties"):
            return dict[str, self.type_of(extra, hint, depth + 1)]  # type: ignore[misc]
        return dict[str, Any]

    def _record(self, schema: Schema, name: str, depth: int) -> Any:
        hint = name[len(self._base) :]
        named = self.document.required(schema)
        types: dict[str, Any] = {}
        for key, value in schemas.child(schema, "properties").items():
            if len(types) == MAX_MEMBERS or not self.document.spend_text(len(key)):
                break
            types[key] = self.type_of(value, f"{hint} {key}", depth + 1)
        made = _typed_dict(name, types, total=False)
        required = named & set(types)
        made.__required_keys__, made.__optional_keys__ = frozenset(required), frozenset(types) - required
        made.__module__ = "builtins"  # signatures show it by its bare name
        self.records[name] = (made, schema)
        return made

    def _name(self, hint: str) -> str:
        base = self._base + class_name(hint)[:MAX_NAME]
        base = "T" + base if not base or base[0].isdigit() else base
        name = base
        while name in self._names:
            name = f"{base}_{self._names[base]}"
            self._names[base] += 1
        self._names[name] = 2
        return name


def class_name(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split("[^A-Za-z0-9]+", name))


def is_record(schema: Schema) -> bool:
    """Whether an object has members that are known by name, and no others of a type of their own."""
    if len(schemas.items(schema, "type")) > 1:
        return False
    if schemas.kinds(schema) != ["object"] or not schemas.child(schema, "properties") or "const" in schema or "enum" in schema:
        return False
    return not schemas.child(schema, "additionalProperties") and "patternProperties" not in schema


def union(types: list[Any]) -> Any:
    """Types joined: each once, Literals as one, None last, Any for all when it is among them."""
    found: dict[Any, None] = {}  # in their order
    exact: list[Any] = []
    for one in types:
        for part in typing.get_args(one) if is_union(one) else (one,):
            if is_literal(part):
                exact += typing.get_args(part)
                part = typing.Literal
            found[None if part is type(None) else part] = None
    if Any in found or len(found) > MAX_UNION:
        return Any
    flat = [typing.Literal[tuple(exact)] if part is typing.Literal else part for part in found if part is not None]
    if None in found:
        flat.append(None)
    try:
        return reduce(operator.or_, flat)
    except TypeError:  # a ForwardRef of Python 3.10
        return typing.Union[tuple(flat)]  # noqa: UP007


def is_literal(annotation: Any) -> bool:
    return typing.get_origin(annotation) is typing.Literal


def is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) is typing.Union or type(annotation).__name__ == "UnionType"


def _literal(values: list[Any], document: Document) -> Any:
    """The type of an enum's values: a Literal of those that one can hold."""
    exact: list[Any] = []
    types: list[Any] = []
    for value in values:
        if not document.spend_text(len(value) if isinstance(value, str) else 0):
            return Any
        if value is None:
            types.append(None)
        elif isinstance(value, (bool, str)) or (isinstance(value, int) and value.bit_length() < 3000):
            if len(values) > MAX_LITERALS:
                types.append(type(value))
            elif not any(type(value) is type(other) and value == other for other in exact):
                exact.append(value)
        else:
            types.append(float if isinstance(value, (int, float)) else list[Any] if isinstance(value, list) else dict[str, Any])
    return union([*([typing.Literal[tuple(exact)]] if exact else []), *types])


def text(annotation: Any, record: str = "") -> str:
    """A type as it is written; record, if given, stands for every TypedDict."""
    if annotation is None or annotation is type(None):
        return "None"
    if isinstance(annotation, typing.ForwardRef):
        return record or annotation.__forward_arg__
    if record and hasattr(annotation, "__required_keys__"):
        return record
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if is_union(annotation):
        parts = [text(arg, record) for arg in args]
        return " | ".join([part for part in parts if part != "None"] + [part for part in parts if part == "None"])
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if args:
        return f"{origin.__name__}[{', '.join(text(arg, record) for arg in args)}]"
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")
