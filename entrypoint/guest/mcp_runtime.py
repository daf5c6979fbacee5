"""The helpers: what the code sees as the module `mcp.runtime`, made for one run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any

from guest import values, wire
from guest.calls import Request
from guest.link import Link
from guest.results import SerializationError, ToolError, ToolImage, ToolText, ToolTimeout, failure
from guest.servers import RUNTIME, Server, Servers

ENV_MAX = 100_000  # characters of an environment variable: with more, the kernel lets no child process start


class _Ready:
    """A value that is there at once, and may be awaited all the same."""

    def __await__(self) -> Generator[Any, Any, Any]:
        return self
        yield


class ReadyList(_Ready, list[Any]):
    pass


class ReadyDict(_Ready, dict[str, Any]):
    pass


class ReadyText(_Ready, str):
    pass


class ServerModule(ModuleType):
    """`mcp.servers.<alias>`: its names are the server's tools."""

    def __init__(self, server: Server) -> None:
        super().__init__(f"mcp.servers.{server._alias}", server._description)
        self.__dict__["_server"] = server

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return dir(self._server)
        return getattr(self.__dict__["_server"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_server"])


class Runtime:
    """The functions of `mcp.runtime`. Each blocks or is awaited by the same rule as a tool."""

    def __init__(self, link: Link, execute: wire.Frame, namespace: dict[str, Any]) -> None:
        self._link, self._namespace = link, namespace
        self._servers = Servers()
        found = (execute.get("options") or {}).get("discovered") or []
        self._discovered = [entry for entry in found if isinstance(entry, dict)]
        self._modules = {name: ModuleType(name) for name in ("mcp", "mcp.runtime", "mcp.servers")}
        for provider in execute.get("providers") or []:
            self._add(Server(link, provider))

    def install(self) -> None:
        """Makes the names and modules of the run; later ones replace modules of the image with the same names."""
        mcp, runtime, servers = (self._modules[name] for name in ("mcp", "mcp.runtime", "mcp.servers"))
        for package in (mcp, servers):
            package.__path__ = []
        mcp.runtime, mcp.servers = runtime, servers  # type: ignore[attr-defined]
        for function in self.functions():
            setattr(runtime, function.__name__, function)
        for kind in (ToolError, ToolTimeout, SerializationError, ToolText, ToolImage):
            setattr(runtime, kind.__name__, kind)
            setattr(mcp, kind.__name__, kind)
        sys.modules.update(self._modules)
        self._namespace.update(mcp=mcp, runtime=runtime, mcp_servers=self._servers, ToolError=ToolError)
        names = [{"name": server._name, "alias": server._alias} for server in self._servers.values()]
        for variable, listed in (("AVAILABLE", names), ("DISCOVERED", self._discovered)):
            text = json.dumps(listed, ensure_ascii=True)
            if len(text) > ENV_MAX:
                text = json.dumps([{"name": entry.get("name")} for entry in listed])
            if len(text) <= ENV_MAX:
                os.environ[f"MCP_{variable}_SERVERS"] = text

    def functions(self) -> list[Callable[..., Any]]:
        return [
            self.call_tool,
            self.load_server,
            self.list_servers,
            self.list_tools,
            self.describe_server,
            self.discovered_servers,
            self.capability_summary,
        ]

    def _add(self, server: Server) -> Server:
        self._servers[server._name] = server
        if server._alias != "servers":  # mcp_servers is all of them
            self._namespace[f"mcp_{server._alias}"] = server
        module = ServerModule(server)
        self._modules[module.__name__] = sys.modules[module.__name__] = module
        setattr(self._modules["mcp.servers"], server._alias, module)
        return server

    def call_tool(self, server: str, tool: str, arguments: dict[str, Any] | None = None) -> Any:
        """Calls a tool by the real names (or aliases) of server and tool."""
        return self._servers[server][tool](**(arguments or {}))

    def load_server(self, name: str) -> Any:
        """Adds a server to the run, where policy allows, and gives its proxy."""
        if name in self._servers:
            server = self._servers[name]
            given = values.encode({"server": server._name})
        else:
            given = values.encode({"server": name})

        def loaded(frame: wire.Frame) -> Server:
            if not frame.get("ok"):
                failure(frame, name, "")
            return self._add(Server(self._link, frame["result"]))

        return Request(self._link, "runtime.load_server", RUNTIME, "load_server", given, loaded).now()

    def list_servers(self) -> ReadyList:
        """The real names of the servers of this run."""
        return ReadyList(sorted(self._servers))

    def list_tools(self, server: str) -> ReadyList:
        """The tools of a server: name, alias, description, inputSchema and, if it has one, outputSchema."""
        tools = []
        for safe, meta in sorted(self._servers[server]._load().items()):
            tool = {"name": meta["originalName"], "alias": safe, "description": meta.get("description") or ""}
            tools.append(tool | {key: meta[key] for key in ("inputSchema", "outputSchema") if key in meta})
        return ReadyList(tools)

    def describe_server(self, name: str) -> ReadyDict:
        """A server's name, alias and description, and the names of its tools."""
        server = self._servers[name]
        tools = sorted(server._load())
        return ReadyDict(name=server._name, alias=server._alias, description=server._description, tools=tools)

    def discovered_servers(self, detailed: bool = False) -> ReadyList:
        """All servers that the bridge found configured: names, or names and descriptions."""
        if detailed:
            return ReadyList({"name": e.get("name"), "description": e.get("description", "")} for e in self._discovered)
        return ReadyList(entry.get("name") for entry in self._discovered)

    def capability_summary(self) -> ReadyText:
        """What the code can use here, in a few lines."""
        names = ", ".join(f"mcp_{server._alias}" for server in self._servers.values()) or "none"
        return ReadyText(
            f"Servers of this run: {names}. Call a tool as mcp_<server>.<tool>(name=value): it gives the value, or with\n"
            "top-level await running, an awaitable; asyncio.gather and threads make calls at once. A failed call raises\n"
            "ToolError (.code, .content). runtime.list_servers(), list_tools(server), describe_server(name),\n"
            "discovered_servers(), load_server(name) and call_tool(server, tool, arguments) find and use what there is.\n"
            "Printed text and the value of a last expression come back. /workspace and /tmp can be written; there is no\n"
            "network, and nothing is kept after the run."
        )
