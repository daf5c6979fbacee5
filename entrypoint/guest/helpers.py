"""The helpers: the functions of the module `mcp.runtime`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from guest import names, results, wire
from guest.calls import Request
from guest.light_typing import Any
from guest.link import Link
from guest.results import Ready, ReadyDict, ReadyList, ReadyText
from guest.servers import Server, Servers, ask

_SUMMARY = """\
Servers of this run: {names}.
Call a tool as mcp_<server>.<tool>(name=value); help(mcp_<server>.<tool>) shows how, dir(mcp_<server>) which
there are. A JSON text comes as a dict or list, any other as a str; display(r) shows the images of a result.
Plain code gets the value. Where an event loop runs, as in code with a top-level await, write: await
mcp_x.f(...). asyncio.gather and threads make calls at once. A failed call raises ToolError (.server, .tool,
.code, .content). Find tools with runtime.search_tool_docs(query), query_tool_docs(server, tool=None,
detail="summary"), list_tools(server), list_servers(), discovered_servers(), describe_server(name);
load_server(name) adds a server that policy allows. Typed stubs lie in /ipc/servers/<alias>.py.
mcp_x.resources and mcp_x.prompts have list() and read(uri) or get(name). Printed text and the value of a
last expression come back. /workspace and /tmp can be written; there is no network, and {kept}."""

_SYNC = ("list_servers", "list_tools", "query_tool_docs", "search_tool_docs")


class Helpers:
    """The functions of `mcp.runtime`. Each blocks or is awaited by the same rule as a tool."""

    def __init__(
        self, link: Link, servers: Servers, discovered: list[dict[str, Any]], add: Callable[[Server], Server]
    ) -> None:
        self._link, self._servers, self._discovered, self._add = link, servers, discovered, add

    def functions(self) -> dict[str, Callable[..., Any]]:
        """All of them by name."""
        own = [name for name in dir(type(self)) if not name.startswith("_") and name != "functions"]
        sync = {f"{name}_sync": getattr(self, f"_{name}_sync") for name in _SYNC}
        functions = {name: getattr(self, name) for name in own} | sync
        for name, method in functions.items():
            method.__func__.__qualname__ = f"runtime.{name}"  # which a TypeError names
        return functions

    def call_tool(self, server: str, tool: str, arguments: dict[str, Any] | None = None, **named: Any) -> Any:
        """Calls a tool by the real names (or aliases) of server and tool."""
        return self._servers[server][tool](**(arguments or {}), **named)

    def load_server(self, name: str) -> Any:
        """Adds a server to the run, where policy allows, or asks one again for its tools."""
        known = self._servers.find(name)
        if known is not None:
            return known._request(lambda: known).now()
        return ask(self._link, "load_server", {"server": name}, self._loaded, name).now()

    def list_servers(self) -> Any:
        """The real names of the servers of this run."""
        return ReadyList(sorted(self._servers))

    def discovered_servers(self, detailed: bool = False) -> Any:
        """All servers that the bridge found configured: names, or dicts with name and description."""
        named = [(entry.get("name"), entry.get("description", "")) for entry in self._discovered]
        return ReadyList({"name": name, "description": said} if detailed else name for name, said in named)

    def describe_server(self, name: str) -> Any:
        """A server's name, alias, description and tools, and whether this run may call it.

        The value is there at once, also where an event loop runs, and may be awaited. A server
        whose tools are known isn't started for this. cwd is None, since code isn't told it.
        """
        server = self._servers.find(name)
        if server is None:
            return ask(self._link, "describe_server", {"server": name}, ReadyDict, name).block()
        return self._described(server)()

    def list_loaded_server_metadata(self) -> Any:
        """describe_server of each server of this run. Where one can't be asked, "error" says why."""
        waiting = [(server, self._described(server)) for server in self._servers.values()]
        found: list[dict[str, Any]] = []
        for server, described in waiting:
            try:
                found.append(described())
            except results.ToolError as e:
                found.append(_description(server, []) | {"error": str(e)})
        return ReadyList(found)

    def list_tools(self, server: str) -> Any:
        """The tools of a server: dicts with name, alias, description and schemas."""
        return self._tools(server).now()

    def query_tool_docs(self, server: str, tool: str | None = None, detail: str = "summary") -> Any:
        """What a server's tools, or one of them, do: dicts with server, tool, signature and more.

        detail="full" adds the schemas.
        """
        made = ReadyList if tool is None else lambda docs: ReadyDict(docs[0])
        return self._query(server, tool, detail, made).now()

    def search_tool_docs(self, query: str, limit: int = 5, detail: str = "summary") -> Any:
        """The tools that fit words best, first: dicts as those of query_tool_docs, with a score.

        The list's attribute `unknown` names servers that were left out, and why.
        """
        return self._search(query, limit, detail).now()

    def capability_summary(self) -> Any:
        """What the code can use here, in a few lines."""
        listed = ", ".join(f"mcp_{server._alias}" for server in self._servers.values()) or "none"
        kept = "variables are kept for the next call" if wire.LASTS else "nothing is kept\nafter the run"
        return ReadyText(_SUMMARY.format(names=listed, kept=kept))

    def list_resources(self, server: str) -> Any:
        """The resources of a server; see mcp_x.resources."""
        return self._offers(server, "Resources").list()

    def read_resource(self, server: str, uri: str) -> Any:
        """One resource of a server; see mcp_x.resources."""
        return self._offers(server, "Resources").read(uri)

    def list_prompts(self, server: str) -> Any:
        """The prompts of a server; see mcp_x.prompts."""
        return self._offers(server, "Prompts").list()

    def get_prompt(self, server: str, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """One prompt of a server, filled in; see mcp_x.prompts."""
        return self._offers(server, "Prompts").get(name, **(arguments or {}))

    # The original's twins, which block even where an event loop runs.

    def _list_servers_sync(self) -> Any:
        return self.list_servers()

    def _list_tools_sync(self, server: str | None = None) -> Any:
        if server is None:
            listed = names.choices(self._servers, "servers")
            raise results.ToolError(f"list_tools_sync needs the name of a server; {listed}")
        tools = self._tools(server).block()
        return ReadyList(map(_as_the_original, tools))

    def _query_tool_docs_sync(self, server: str, tool: str | None = None, detail: str = "summary") -> Any:
        return self._query(server, tool, detail, ReadyList).block()

    def _search_tool_docs_sync(self, query: str, limit: int = 5, detail: str = "summary") -> Any:
        return self._search(query, limit, detail).block()

    def _described(self, server: Server) -> Callable[[], ReadyDict]:
        """Asks for what is known of a server's tools. What is returned blocks until that is there."""
        if server._known is not None:
            return lambda: _description(server, server._listed())
        given = {"server": server._name, "detail": "full"}
        made = lambda docs: _description(server, map(_documented, docs))  # noqa: E731
        return ask(self._link, "query_tool_docs", given, made, server._name).begun()

    def _tools(self, name: str) -> Request | Ready:
        server = self._servers.find(name)
        if server is not None:
            return server._then(server._listed, "list_tools")
        made = lambda provider: self._loaded(provider)._listed()  # noqa: E731
        return ask(self._link, "load_server", {"server": name}, made, name, "list_tools")

    def _loaded(self, provider: Any) -> Server:
        return self._add(Server(self._link, provider))

    def _query(self, server: str, tool: str | None, detail: str, made: Callable[[Any], Any]) -> Request:
        given = {"server": server, "detail": detail} | ({"tool": tool} if tool is not None else {})
        return ask(self._link, "query_tool_docs", given, made, server)

    def _search(self, query: str, limit: int, detail: str) -> Request:
        return ask(self._link, "search_tool_docs", {"query": query, "limit": limit, "detail": detail}, Found)

    def _offers(self, name: str, kind: str) -> Any:
        from guest import resources

        return getattr(resources, kind)(self._link, self._servers[name]._name)


class Found(ReadyList):
    """The tools that a search found, best first, and in `unknown` the servers not searched."""

    def __init__(self, answer: Any) -> None:
        answer = answer if isinstance(answer, dict) else {}
        super().__init__(answer.get("results") or [])
        self.unknown: list[Any] = answer.get("unknown") or []


def _description(server: Server, tools: Iterable[Any]) -> ReadyDict:
    about = {"name": server._name, "alias": server._alias, "description": server._description, "cwd": None}
    return ReadyDict(about | {"allowed": True, "tools": [_as_the_original(tool) for tool in tools]})


def _documented(doc: dict[str, Any]) -> dict[str, Any]:
    """A tool as list_tools gives it, of what query_tool_docs says."""
    said = doc.get("description") or ""
    tool = {"name": doc.get("tool"), "alias": doc.get("toolAlias"), "description": said}
    return tool | {key: doc[key] for key in ("inputSchema", "outputSchema") if key in doc}


def _as_the_original(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool with its schema by the original's name too."""
    return {**tool, "input_schema": tool.get("inputSchema")}
