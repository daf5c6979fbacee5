"""What a tool takes and gives, parsed from the declaration that the bridge writes."""

from __future__ import annotations

import ast
import inspect

from guest import wire

_NO_OBJECTS = {"str", "int", "float", "bool", "None", "list", "Literal"}


class Annotation(str):
    """A type as it is written. Its repr is without quotes, since inspect shows that."""

    __repr__ = str.__str__


class Parameter:
    """One argument: `name` as it is written before a "=", `key` as the server knows it."""

    def __init__(self, name: str, key: str, node: ast.expr | None, default: ast.expr | None) -> None:
        self.name, self.key, self.required = name, key, default is None
        self.takes_object = node is None or _takes_object(node)
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        value = empty if default is None else ast.literal_eval(default)
        self.shown = inspect.Parameter(name, kind, default=value, annotation=_text(node))


class Declared:
    """The declaration of one tool: its parameters, required ones first, and what help() shows."""

    def __init__(self, meta: wire.Frame) -> None:
        stub = str(meta.get("stub") or f"def {meta['safeName']}(**kwargs: Any) -> Any: ...")
        parsed = compile(stub, "<stub>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(parsed, ast.Module) and isinstance(parsed.body[-1], ast.FunctionDef)
        function, keys = parsed.body[-1], meta.get("keys") or {}
        given, defaults = function.args.args, function.args.defaults
        values = [None] * (len(given) - len(defaults)) + defaults
        self.parameters = [
            Parameter(one.arg, keys.get(one.arg, one.arg), one.annotation, value)
            for one, value in zip(given, values, strict=True)
        ]
        self.open = function.args.kwarg is not None
        shown = [parameter.shown for parameter in self.parameters]
        if function.args.kwarg is not None:
            rest = function.args.kwarg
            kind, annotation = inspect.Parameter.VAR_KEYWORD, _text(rest.annotation)
            shown.append(inspect.Parameter(rest.arg, kind, annotation=annotation))
        self.signature = inspect.Signature(shown, return_annotation=_text(function.returns))
        self.annotations = {one.name: one.annotation for one in shown} | {"return": _text(function.returns)}
        said = ast.get_docstring(function) or ("" if meta.get("stub") else str(meta.get("description") or ""))
        classes = stub[: stub.index(f"def {function.name}(")] if len(parsed.body) > 1 else ""
        self.doc = f"{said}\n\n{classes.strip()}".strip()


def _text(node: ast.expr | None) -> Annotation:
    return Annotation(ast.unparse(node) if node is not None else "Any")


def _takes_object(node: ast.expr) -> bool:
    """Whether a dict may be a value of a type: a dict[...], a TypedDict or Any, or one of several that is."""
    if isinstance(node, ast.BinOp):
        return _takes_object(node.left) or _takes_object(node.right)
    if isinstance(node, ast.Subscript):
        node = node.value
    return not (isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in _NO_OBJECTS))
