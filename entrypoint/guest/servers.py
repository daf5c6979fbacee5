"""The proxies: a server is an object, each of its tools a callable attribute."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from guest import names, results, values, wire
from guest.calls import Request
from guest.link import Link

RUNTIME = "runtime"  # the provider of the helpers that the host answers itself


class Tool:
    """One tool of a server. Call it with keyword arguments, or positional ones in the order of its parameters."""

    def __init__(self, link: Link, server: str, prefix: str, meta: wire.Frame, timeout: float | None = None) -> None:
        self._link, self._server, self._prefix, self._meta, self._timeout = link, server, prefix, meta, timeout
        self.__name__ = str(meta["safeName"])
        self.__qualname__ = f"{prefix}.{self.__name__}"
        self.__doc__ = str(meta.get("description") or "")
        schema = meta.get("inputSchema")
        self._schema: dict[str, Any] = schema if isinstance(schema, dict) else {}
        properties = self._schema.get("properties")
        self._properties: dict[str, Any] = properties if isinstance(properties, dict) else {}
        required = self._schema.get("required")
        self._required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        self._order = [*self._required, *(name for name in self._properties if name not in self._required)]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = values.encode(self._bind(args, kwargs))
        request = Request(self._link, self.__qualname__, self._server, self.__name__, given, self._finish)
        request.timeout = self._timeout
        return request.now()

    def options(self, *, timeout: float | None = None) -> Tool:
        """The same tool with another time limit, in seconds, for one result to come."""
        if timeout is not None and not 0 < timeout < 1e9:
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
        return Tool(self._link, self._server, self._prefix, self._meta, timeout)

    def _finish(self, frame: wire.Frame) -> Any:
        if not frame.get("ok"):
            results.failure(frame, self._server, self.__name__)
        declared = isinstance(self._meta.get("outputSchema"), dict)
        return results.value(frame.get("result"), self._server, self.__name__, declared)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Checks the names of the arguments against the tool's schema."""
        if len(args) > len(self._order):
            raise TypeError(f"{self.__qualname__}() takes at most {len(self._order)} positional arguments ({self._listed()})")
        bound = dict(zip(self._order, args, strict=False))
        by_identifier = {names.identifier(name): name for name in reversed(self._order)}
        for key, value in kwargs.items():
            name = key if key in self._properties else by_identifier.get(key, key)
            if name in bound:
                raise TypeError(f"{self.__qualname__}() got two values for {name!r}")
            if name not in self._order and not self._takes_any():
                raise TypeError(f"{self.__qualname__}() has no parameter {key!r}; {self._listed(key)}")
            bound[name] = value
        missing = [name for name in self._required if name not in bound]
        if missing:
            raise TypeError(f"{self.__qualname__}() lacks {', '.join(map(repr, missing))}; {self._listed()}")
        return bound

    def _takes_any(self) -> bool:
        if "additionalProperties" in self._schema:
            return self._schema["additionalProperties"] is not False
        return not self._properties or "patternProperties" in self._schema

    def _listed(self, wrong: str = "") -> str:
        return names.choices(self._order, "parameters", wrong)

    def __repr__(self) -> str:
        optional = [f"{name}=..." for name in self._order if name not in self._required]
        return f"<tool {self.__qualname__}({', '.join([*self._required, *optional])})>"


class Server:
    """A server of the run. Its tools are attributes by their alias and items by their real name too."""

    def __init__(self, link: Link, provider: wire.Frame) -> None:
        self._link = link
        self._name = str(provider.get("name", ""))
        self._alias = str(provider.get("alias", ""))
        self._description = str(provider.get("description") or "")
        self._lock = threading.Lock()
        self._known: dict[str, wire.Frame] | None = None
        if provider.get("tools") is not None:
            self._known = _tools(provider)
        self.__doc__ = self._description

    def _load(self) -> dict[str, wire.Frame]:
        """The tools by safe name. The first touch of a server that the host hasn't started yet waits for it."""
        if self._known is None:
            with self._lock:
                if self._known is None:
                    given = values.encode({"server": self._name})
                    request = Request(self._link, "load_server", RUNTIME, "load_server", given, self._loaded)
                    self._known = _tools(request.block())
        return self._known

    def _loaded(self, frame: wire.Frame) -> Any:
        if not frame.get("ok"):
            results.failure(frame, self._name, "")
        return frame.get("result")

    def _tool(self, name: str) -> Tool | None:
        known = self._load()
        meta = known.get(name) or next((meta for meta in known.values() if meta.get("originalName") == name), None)
        return None if meta is None else Tool(self._link, self._name, f"mcp_{self._alias}", meta)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        tool = self._tool(name)
        if tool is None:
            listed = names.choices(self._load(), "tools", name)
            raise AttributeError(f"mcp_{self._alias} has no tool {name!r}; {listed}")
        return tool

    def __getitem__(self, name: str) -> Tool:
        tool = self._tool(name)
        if tool is None:
            listed = names.choices((str(meta["originalName"]) for meta in self._load().values()), "tools", name)
            raise names.UnknownName(f"server {self._name!r} has no tool {name!r}; {listed}")
        return tool

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._load()))

    def __dir__(self) -> list[str]:
        return sorted(self._load())

    def __repr__(self) -> str:
        tools = "tools not asked for yet" if self._known is None else f"tools: {', '.join(sorted(self._known)) or 'none'}"
        return f"<server {self._name!r} as mcp_{self._alias}, {tools}>"


def _tools(provider: Any) -> dict[str, wire.Frame]:
    tools = provider.get("tools") if isinstance(provider, dict) else None
    known = {}
    for safe, meta in (tools if isinstance(tools, dict) else {}).items():
        if isinstance(meta, dict):
            known[safe] = {**meta, "safeName": safe, "originalName": meta.get("originalName") or safe}
    return known


class Servers(dict[str, Server]):
    """The servers of the run by real name."""

    def __missing__(self, name: str) -> Server:
        found = next((server for server in self.values() if name in (server._alias, f"mcp_{server._alias}")), None)
        if found is None:
            raise names.UnknownName(f"no server {name!r} in this run; {names.choices(self, 'servers', str(name))}")
        return found
