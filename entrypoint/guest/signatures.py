"""How a tool presents itself: inspect.signature, help() and __doc__. Imported at the first touch of a tool."""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal, get_args, get_origin

from guest import schemas, wire
from guest.pytypes import Builder, class_name, is_union, text, union
from guest.shapes import Parameter, Shape

_BOUNDS = (
    *("format", "pattern", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
)
MAX_NOTE = 300  # characters
MAX_DESCRIPTION = 8 << 10


class Presented:
    """The signature of a tool and its documentation."""

    def __init__(self, shape: Shape, meta: wire.Frame) -> None:
        self._shape, self._meta = shape, meta
        builder = Builder(shape.document, class_name(str(meta["safeName"])))
        self._notes: list[tuple[Parameter, str]] = []
        parameters = [self._parameter(parameter, builder) for parameter in shape.parameters]
        if shape.rest:
            parameters.append(inspect.Parameter(shape.rest, inspect.Parameter.VAR_KEYWORD, annotation=Any))
        output = meta.get("outputSchema")
        returns: Any = Any
        builders = [builder]
        if isinstance(output, dict):
            builders.append(Builder(schemas.Document(output), class_name(str(meta["safeName"]))))
            inner = schemas.wrapped(output)
            returns = builders[1].type_of(output if inner is None else inner, "Result", 0)
        self.signature = inspect.Signature(parameters, return_annotation=returns)
        self.annotations = {p.name: p.annotation for p in parameters} | {"return": returns}
        self.doc = self._documentation(builders)

    def _parameter(self, parameter: Parameter, builder: Builder) -> inspect.Parameter:
        annotation = builder.type_of(parameter.schema, parameter.property, 0)
        note, default = remark(self._shape.document, parameter.schema), inspect.Parameter.empty
        if not parameter.required:
            default, note = _default(self._shape.document, parameter.schema, annotation, note)
            if default is None:
                annotation = union([annotation, None])
        self._notes.append((parameter, note))
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(parameter.name, kind, default=default, annotation=annotation)

    def _documentation(self, builders: list[Builder]) -> str:
        meta = self._meta
        said = str(meta.get("description") or "").strip()
        if len(said) > MAX_DESCRIPTION:
            said = said[:MAX_DESCRIPTION] + " […]"
        if meta["originalName"] != meta["safeName"]:
            said += f"\n\nThe server's own name of it is {_quoted(str(meta['originalName']))}."
        lines = []
        for parameter, note in self._notes:
            name = parameter.name if parameter.name == parameter.property else f"{parameter.name} ({_quoted(parameter.property)})"
            if note or name != parameter.name:
                lines.append(f"    {name}: {note}".rstrip())
        if lines:
            said += "\n\nParameters:\n" + "\n".join(lines)
        for builder in builders:
            for made, schema in builder.records.values():
                said += f"\n\n{made.__name__} is a dict:\n" + "\n".join(_members(builder.document, made, schema))
        return said.strip()


def _members(document: schemas.Document, made: Any, schema: schemas.Schema) -> list[str]:
    lines = []
    for key, annotation in made.__annotations__.items():
        note = remark(document, schemas.child(schema, "properties").get(key))
        optional = "" if key in made.__required_keys__ else ", optional"
        lines.append(f"    {key}: {text(annotation)}{optional}" + (f"; {note}" if note else ""))
    return lines


def _default(document: schemas.Document, schema: Any, annotation: Any, note: str) -> tuple[Any, str]:
    """The default that the schema names, where it is a scalar of the type; None for every other, which the note tells."""
    default = document.effective(schema).get("default") if isinstance(schema, dict) else None
    if default is None:
        return None, note
    if isinstance(default, (str, int, float)) and _fits(default, annotation):
        return default, note
    if not (shown := compact(document, default)):
        return None, note
    return None, f"{note} (default {shown})" if note else f"default {shown}"


def _fits(value: Any, annotation: Any) -> bool:
    parts = get_args(annotation) if is_union(annotation) else (annotation,)
    if type(value) in parts or Any in parts or (type(value) is int and float in parts):
        return True
    exact = [other for part in parts if get_origin(part) is Literal for other in get_args(part)]
    return any(type(value) is type(other) and value == other for other in exact)


def remark(document: schemas.Document, schema: Any) -> str:
    """What a schema says besides its type, on one line: its description and bounds."""
    if not isinstance(schema, dict):
        return ""
    schema = document.effective(schema)
    said = schema.get("description")
    if not document.spend_text(len(said) if isinstance(said, str) else 0):
        return ""
    said = one_line(said, MAX_NOTE) if isinstance(said, str) else ""
    also = []
    for key in _BOUNDS:
        value = schema.get(key)
        if isinstance(value, (str, int, float)) and value is not False and (shown := compact(document, value)):
            also.append(f"{key} {shown}")
    return f"{said} ({', '.join(also)})" if said and also else said + ", ".join(also)


def compact(document: schemas.Document, value: Any) -> str:
    """A JSON value on one line; empty once the budget is spent."""
    if document.left < 0:
        return ""
    said = json.dumps(value, ensure_ascii=False)
    return one_line(said, 100) if document.spend_text(len(said)) else ""


def _quoted(name: str) -> str:
    return f'"{one_line(name, MAX_NOTE)}"'


def one_line(said: str, limit: int) -> str:
    said = " ".join(said.split())
    return said if len(said) <= limit else said[: limit - 1] + "…"
