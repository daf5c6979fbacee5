"""The proxies: a server is an object, each of its tools a function that is its attribute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from guest import names, results, values, wire
from guest.calls import Request
from guest.light_typing import TYPE_CHECKING, Any
from guest.link import Link
from guest.results import Ready, ReadyList

if TYPE_CHECKING:
    from guest.tools import Tool

RUNTIME = "runtime"  # the provider of the helpers that the host answers itself


def ask(
    link: Link, helper: str, given: wire.Frame, made: Callable[[Any], Any], server: str = "", called: str = ""
) -> Request:
    """A request to a helper of the host, whose answer made makes a value of.

    A failure is raised as the server's. called is the helper that the code called, if another.
    """

    def finish(frame: wire.Frame) -> Any:
        if not frame.get("ok"):
            results.failure(frame, server, "")
        return made(frame.get("result"))

    return Request(link, f"runtime.{called or helper}", RUNTIME, helper, values.encode(given), finish)


class Server:
    """A server of the run. Its tools are attributes by their alias and items by their real name too."""

    def __init__(self, link: Link, provider: wire.Frame) -> None:
        self._link = link
        self._name = str(provider.get("name", ""))
        self._alias = str(provider.get("alias", ""))
        self.__name__ = f"mcp_{self._alias}"  # of a module, which it is to an import
        self._description = str(provider.get("description") or "")
        self._lock = threading.Lock()
        self._made: dict[str, Tool] = {}
        self._known: dict[str, wire.Frame] | None = None
        self._on_load: list[Callable[[wire.Frame], None]] = []
        self._take(provider)

    def _take(self, provider: wire.Frame) -> None:
        """Takes what the host says of the tools: those there are, went away, or may not be called."""
        if (tools := provider.get("tools")) is not None:
            self._known = {
                safe: {**meta, "safeName": safe, "originalName": meta.get("originalName") or safe}
                for safe, meta in tools.items()
            }
        self._gone = set(provider.get("gone") or [])
        self._denied: dict[str, str] = provider.get("denied") or {}

    def _load(self) -> dict[str, wire.Frame]:
        """The tools by safe name. The first touch of a server waits until the host has started it."""
        if self._known is None:
            with self._lock:
                if self._known is None:
                    self._request(lambda: None).block()
        assert self._known is not None
        return self._known

    def _request(self, made: Callable[[], Any], called: str = "") -> Request:
        """Asks for the tools, and makes the value once they are known. called is as in ask."""

        def loaded(provider: Any) -> Any:
            self._take({"tools": {}, **provider})
            self._made = {}
            for listener in self._on_load:
                listener(provider)
            return made()

        return ask(self._link, "load_server", {"server": self._name}, loaded, self._name, called)

    def _then(self, made: Callable[[], Any], called: str) -> Request | Ready:
        """What made gives once the tools are known."""
        return self._request(made, called) if self._known is None else Ready(made())

    def _tool(self, name: str) -> Tool | None:
        known = self._load()
        meta = known.get(name)
        if meta is None:
            meta = next((one for one in known.values() if one["originalName"] == name), None)
        if meta is None:
            return None
        safe = meta["safeName"]
        if safe not in self._made:
            from guest.tools import Maker

            self._made[safe] = Maker(self._link, self._name, self._alias, meta).make()
        return self._made[safe]

    def _listed(self) -> ReadyList:
        return ReadyList(described(safe, meta) for safe, meta in sorted(self._load().items()))

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(self._load())
        if name.startswith("__") and name.endswith("__"):  # Python's own, which no alias is
            raise AttributeError(name)
        tool = self._tool(name) or self._extra(name)
        if tool is None:
            listed = names.choices(self._load(), "tools", "" if name in self._denied else name)
            if name in ("resource", "prompt") and not listed.startswith("did"):
                listed = f"did you mean {name}s? ({listed})"
            said = f"mcp_{self._alias} has no tool {name!r}{self._since(name)}; {listed}"
            raise AttributeError(said, name=name, obj=None)  # with an obj there is a "Did you mean" too
        return tool

    def _since(self, name: str) -> str:
        """What is to be said of a name that a search may have told of, or that may not be called."""
        if name in self._denied:
            return f" that may be called, by {self._denied[name]}"
        return " any more: what was known of its tools was out of date" if name in self._gone else ""

    def _extra(self, name: str) -> Any:
        """What every server has, unless a tool of it has that name."""
        if name == "list_tools":
            return self._listed
        if name in ("resources", "prompts"):
            from guest import resources

            return getattr(resources, name.capitalize())(self._link, self._name)
        if name == "TOOLS":  # as the original's modules have it
            return tuple(self._listed())
        if name == "TOOL_MAP":
            return {safe: meta["originalName"] for safe, meta in self._load().items()}
        return None

    def __getitem__(self, name: str) -> Tool:
        tool = self._tool(name)
        if tool is None:
            listed = names.choices((meta["originalName"] for meta in self._load().values()), "tools", name)
            said = f"server {self._name!r} has no tool {name!r}{self._since(name)}; {listed}"
            raise names.UnknownName(said)
        return tool

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._tool(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._load()))

    def __len__(self) -> int:
        return len(self._load())

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*self._load(), "prompts", "resources"})

    def __repr__(self) -> str:
        tools = "tools not asked for yet"
        if self._known is not None:
            tools = f"tools: {', '.join(sorted(self._known)) or 'none'}"
        return f"<server {self._name!r} as mcp_{self._alias}, {tools}>"

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What help() shows."""
        from inspect import signature

        lines = [self._description or f"The tools of the MCP server {self._name!r}.", ""]
        for safe in sorted(self._load()):
            tool: Any = self._tool(safe)
            lines.append(f"{tool.__qualname__}{signature(tool)}")
        return "\n".join([*lines, "", f"help(mcp_{self._alias}.<tool>) says more."])


def described(safe: str, meta: wire.Frame) -> dict[str, Any]:
    """A tool as list_tools gives it."""
    tool = {"name": meta["originalName"], "alias": safe, "description": meta.get("description") or ""}
    return tool | {key: meta[key] for key in ("inputSchema", "outputSchema") if key in meta}


class Servers(dict[str, Server]):
    """The servers of the run by real name."""

    def __missing__(self, name: str) -> Server:
        found = self.find(name)
        if found is None:
            for between in ("__", ".", "/", ":"):
                server, _, tool = str(name).removeprefix("mcp__").partition(between)
                if tool and self.find(server):
                    apart = f"name the server and its tool apart: {server!r}, {tool!r}"
                    raise names.UnknownName(f"no server {name!r} in this run; {apart}")
            listed = names.choices(self, "servers", str(name))
            raise names.UnknownName(f"no server {name!r} in this run; {listed}")
        return found

    def __getattr__(self, name: str) -> Server:
        if name.startswith("__"):  # what Python looks for
            raise AttributeError(name)
        try:
            return self[name]
        except names.UnknownName as e:
            raise AttributeError(str(e), name=name, obj=None) from None

    def find(self, name: str) -> Server | None:
        """A server by its real name, its alias or mcp_<alias>."""
        if name in self:
            return self[name]
        return next((one for one in self.values() if name in (one._alias, f"mcp_{one._alias}")), None)
