"""The arguments of a call: bound to the tool's parameters, checked, and encoded."""

from __future__ import annotations

from guest import names, schemas, values, wire
from guest.checks import Checker, Problem
from guest.light_typing import Any
from guest.signatures import Declared


class Arguments:
    """What one tool takes."""

    def __init__(self, called: str, meta: wire.Frame, declared: Declared) -> None:
        self.called, self._root, self._parameters = called, meta.get("inputSchema"), declared.parameters
        self._open = declared.open
        self._by_name = {parameter.name: parameter for parameter in self._parameters}
        self._by_key = {parameter.key: parameter for parameter in self._parameters}
        self._schemas = schemas.members(self._root)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments of a call as a JSON object; wrong ones are raised as those of a function."""
        bound = self._bind(args, kwargs)
        plain = values.plain(bound)
        checker = Checker(self._root)
        for key, value in list(plain.items()):
            found = checker.problem(value, self._schemas.get(key, True), self._written(key))
            parameter = self._by_key.get(key)
            if found and value is None and not (parameter and parameter.required):
                del plain[key]  # an optional parameter that is None isn't sent, unless it may be null
            elif found:
                raise self._wrong(found, bound[key])
        return values.dumps(plain)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 1 and not kwargs and self._is_all(args[0]):
            args, kwargs = (), dict(*args)
        if len(args) > len(self._parameters):
            most = f"{len(self._parameters)} positional arguments, not {len(args)}"
            raise TypeError(f"{self.called}() takes at most {most}; {self._listed()}")
        bound = {parameter.key: value for parameter, value in zip(self._parameters, args, strict=False)}
        for name, value in kwargs.items():
            parameter = self._by_key.get(name) or self._by_name.get(name)
            key = parameter.key if parameter else name
            if key in bound:
                raise TypeError(f"{self.called}() got two values for {key!r}")
            if parameter is None and not self._open:
                raise TypeError(f"{self.called}() has no parameter {name!r}; {self._listed(name)}")
            bound[key] = value
        missing = [repr(one.name) for one in self._parameters if one.required and one.key not in bound]
        if missing:
            raise TypeError(f"{self.called}() lacks {', '.join(missing)}; {self._listed()}")
        return bound

    def _is_all(self, given: Any) -> bool:
        """Whether the one positional argument is a dict of all arguments: it can't be the first of them."""
        if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
            return False
        return not self._parameters or not self._parameters[0].takes_object

    def _written(self, key: str) -> str:
        return self._by_key[key].name if key in self._by_key else key

    def _wrong(self, found: Problem, given: Any) -> Exception:
        text = f"{self.called}(): {found.path} {found.text}"
        if isinstance(given, (bytes, bytearray)):
            text += (
                ", made of bytes; decode them, or send base64.b64encode(data).decode() if the tool says so"
            )
        return found.kind(text)

    def _listed(self, wrong: str = "") -> str:
        return names.choices(self._by_name, "parameters", wrong)
