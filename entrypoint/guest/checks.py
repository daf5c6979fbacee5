"""Arguments held against a tool's schema before anything is sent.

Bounds and patterns are left to the servers, which read them in ways of their own.
"""

from __future__ import annotations

from guest import names, schemas
from guest.light_typing import Any
from guest.schemas import Schema


class Problem:
    """What is wrong with a value, and where."""

    def __init__(self, path: str, text: str, kind: type[Exception] = TypeError) -> None:
        self.path, self.text, self.kind = path, text, kind


class Checker:
    """Checks values against the schemas of one root."""

    def __init__(self, root: Any) -> None:
        self._root, self._left = root, schemas.MAX_STEPS

    def problem(self, value: Any, schema: Any, path: str, depth: int = 0) -> Problem | None:
        """The first thing that is wrong with a value as JSON has it, None when there is nothing."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or depth > 100:
            return None
        if isinstance(ref := schema.get("$ref"), str) and (
            found := self.problem(value, schemas.resolve(self._root, ref), path, depth + 1)
        ):
            return found
        if value is None and schema.get("nullable") is True:
            return None
        return (
            self._listed(value, schema, path)
            or self._kind(value, schema, path)
            or self._members(value, schema, path, depth)
            or self._combined(value, schema, path, depth)
        )

    def _listed(self, value: Any, schema: Schema, path: str) -> Problem | None:
        allowed = [schema["const"]] if "const" in schema else schemas.items(schema, "enum")
        if not allowed or any(schemas.same(value, item) for item in allowed):
            return None
        listed = names.joined([repr(item) for item in allowed], 20)
        text = f"must be {'one of ' if len(allowed) > 1 else ''}{listed}, not {shown(value)}"
        texts = [item for item in allowed if isinstance(item, str)]
        if isinstance(value, str) and (near := names.nearest(value, texts)):
            text += f"; did you mean {near!r}?"
        return Problem(path, text, ValueError)

    def _kind(self, value: Any, schema: Schema, path: str) -> Problem | None:
        kinds = schemas.kinds(schema)
        if not kinds or any(schemas.is_kind(value, kind) for kind in kinds):
            return None
        return Problem(path, f"must be {schemas.described(self._root, schema)}, not {shown(value)}")

    def _members(self, value: Any, schema: Schema, path: str, depth: int) -> Problem | None:
        if isinstance(value, list):
            return self._items(value, schema, path, depth)
        if not isinstance(value, dict):
            return None
        properties = schemas.child(schema, "properties")
        missing = [name for name in schemas.strings(schema, "required") if name not in value]
        if missing:
            listed = ", ".join(map(repr, missing))
            return Problem(path, f"lacks {listed}; {names.choices(properties, 'keys')}")
        extra = schema.get("additionalProperties")
        for key, item in value.items():
            if key in properties:
                found = self.problem(item, properties[key], f"{path}[{key!r}]", depth + 1)
            elif extra is False and "patternProperties" not in schema:
                found = Problem(path, f"has no key {key!r}; {names.choices(properties, 'keys', key)}")
            else:
                found = self.problem(item, extra, f"{path}[{key!r}]", depth + 1)
            if found:
                return found
        return None

    def _items(self, value: list[Any], schema: Schema, path: str, depth: int) -> Problem | None:
        if not isinstance(schema.get("items"), dict) or "prefixItems" in schema:
            return None
        for i, item in enumerate(value):
            if found := self.problem(item, schema["items"], f"{path}[{i}]", depth + 1):
                return found
        return None

    def _combined(self, value: Any, schema: Schema, path: str, depth: int) -> Problem | None:
        for part in schemas.items(schema, "allOf"):
            if found := self.problem(value, part, path, depth + 1):
                return found
        for key in ("anyOf", "oneOf"):
            branches = schemas.items(schema, key)
            found_all = [self.problem(value, branch, path, depth + 1) for branch in branches]
            if branches and all(found_all):
                deeper = [found for found in found_all if found and found.path != path]
                if len(deeper) == 1:  # one of them was meant
                    return deeper[0]
                kinds = schemas.described(self._root, {key: branches})
                return Problem(path, f"must be {kinds}, not {shown(value)}")
        return None


def shown(value: Any) -> str:
    kind = "None" if value is None else type(value).__name__
    if isinstance(value, (dict, list)) or value is None:
        return kind
    said = repr(value) if not isinstance(value, str) or len(value) <= 60 else repr(value[:60]) + "..."
    return said if isinstance(value, str) else f"{kind} {said:.60}"
