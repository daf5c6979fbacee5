"""What a tool takes: its parameters, and the arguments of a call bound to them and checked."""

from __future__ import annotations

from guest import names, schemas, values, wire
from guest.checks import Checker, Problem
from guest.schemas import Schema
from guest.typed import Any

MAX_PARAMETERS = 500


class Parameter:
    """One argument: `name` as it is written before a "=", `property` as the server knows it."""

    def __init__(self, name: str, prop: str, schema: Any, required: bool) -> None:
        self.name, self.property, self.schema, self.required = name, prop, schema, required


class Shape:
    """The parameters of one tool, required ones first, both in the order of the schema."""

    def __init__(self, called: str, meta: wire.Frame) -> None:
        self.called = called  # the tool as code names it
        root = meta.get("inputSchema")
        self.root: Schema = root if isinstance(root, dict) else {}
        self.document = schemas.Document(self.root)
        schema = self.document.alternatives(self.document.effective(self.root))
        self._open = schemas.is_open(schema) or self.document.left < 0  # what wasn't read may have others
        self.properties = schemas.child(schema, "properties")
        self._required = dict.fromkeys(schemas.strings(schema, "required"))
        first = [name for name in self.properties if name in self._required]
        first += [name for name in self._required if name not in self.properties]
        order = first + [name for name in self.properties if name not in self._required]
        taken: set[str] = set()
        self.parameters = [
            Parameter(names.free(names.identifier(name), taken), name, self.properties.get(name, True), i < len(first))
            for i, name in enumerate(order[:MAX_PARAMETERS])
        ]
        rest = len(order) > MAX_PARAMETERS or self._open
        self.rest = names.free("kwargs", taken) if rest else ""
        self._by_name = {parameter.name: parameter for parameter in self.parameters}

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments of a call as a JSON object. What is wrong with them is raised as it would be for a function."""
        bound = self._bind(args, kwargs)
        plain = values.plain(bound)
        checker = Checker(self.root)
        for name, value in list(plain.items()):
            found = checker.problem(value, self.properties.get(name, True), self._written(name))
            if found and value is None and name not in self._required:
                del plain[name]  # an optional parameter that is None isn't sent, unless it may be null
            elif found:
                raise self._wrong(found, bound[name])
        return values.dumps(plain)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 1 and not kwargs and self._is_all(args[0]):
            args, kwargs = (), dict(*args)
        if len(args) > len(self.parameters):
            count = len(self.parameters)
            raise TypeError(f"{self.called}() takes at most {count} positional arguments, not {len(args)}; {self.listed()}")
        bound = {parameter.property: value for parameter, value in zip(self.parameters, args, strict=False)}
        for key, value in kwargs.items():
            parameter = None if key in self.properties else self._by_name.get(key)
            name = parameter.property if parameter else key
            if name in bound:
                raise TypeError(f"{self.called}() got two values for {name!r}")
            if not self._open and name not in self.properties and name not in self._required:
                raise TypeError(f"{self.called}() has no parameter {key!r}; {self.listed(key)}")
            bound[name] = value
        missing = [name for name in self._required if name not in bound]
        if missing:
            raise TypeError(f"{self.called}() lacks {', '.join(map(repr, map(self._written, missing)))}; {self.listed()}")
        return bound

    def _is_all(self, given: Any) -> bool:
        """Whether the one positional argument is a dict of all arguments: it can't be the first of them."""
        if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
            return False
        return not self.parameters or not schemas.takes_object(self.document, self.parameters[0].schema)

    def _written(self, name: str) -> str:
        return next((parameter.name for parameter in self.parameters if parameter.property == name), name)

    def _wrong(self, found: Problem, given: Any) -> Exception:
        text = f"{self.called}(): {found.path} {found.text}"
        if isinstance(given, (bytes, bytearray)):
            text += ", made of bytes; decode them, or send base64.b64encode(data).decode() where the tool says so"
        return found.kind(text)

    def listed(self, wrong: str = "") -> str:
        return names.choices([parameter.name for parameter in self.parameters], "parameters", wrong)
