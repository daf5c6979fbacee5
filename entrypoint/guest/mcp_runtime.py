"""The names of a run: bare ones, the modules of mcp, the environment, and files of stubs."""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType

from guest import names, results, stubs, wire
from guest.helpers import Helpers
from guest.light_typing import Any
from guest.link import Link
from guest.servers import Server, Servers

ENV_MAX = 100_000  # characters of an environment variable: with more, the kernel lets no child process start

_KINDS = "ToolError ToolTimeout SerializationError ToolText ToolFiles ToolData ToolList".split()
_KINDS_OF_CONTENT = ("ToolImage", "ToolLink", "ResourceText", "ResourceBytes")


class RuntimeModule(ModuleType):
    """`mcp` and `mcp.runtime`."""

    def __getattr__(self, name: str) -> Any:
        if name in _KINDS_OF_CONTENT:
            from guest import content

            return getattr(content, name)
        if name in names.KEPT:
            raise AttributeError(f"{self.__name__} has no {name}: {names.nothing_kept()}")
        near = names.nearest(name, (known for known in self.__dict__ if not known.startswith("_")))
        meant = f" (did you mean {near}?)" if near else ""
        said = f"module {self.__name__!r} has no attribute {name!r}{meant}"
        raise AttributeError(said, name=name, obj=None)  # to None Python knows nothing similar


class Runtime:
    """Makes the names of one run, and those of a server that is added to it."""

    def __init__(self, link: Link, namespace: dict[str, Any]) -> None:
        """Makes ahead what every run has. Modules of the image with the same names are not found any more."""
        self._link, self._namespace = link, namespace
        self._servers = Servers()
        self._files = stubs.Files()
        self._discovered: list[dict[str, Any]] = []
        self._given: dict[str, wire.Frame] = {}  # what the last execute said of each server
        self._mcp = RuntimeModule("mcp", "The servers of the run, and what finds and calls their tools.")
        self._package = ModuleType("mcp.servers")
        self._runtime = RuntimeModule("mcp.runtime", "Finding tools, and calling them by name.")
        helpers = Helpers(link, self._servers, self._discovered, self._add)
        functions = helpers.functions()
        self._runtime.__dict__.update(functions, __all__=sorted(functions))
        for package in (self._mcp, self._package):
            package.__path__ = []
        self._mcp.__dict__.update(functions, runtime=self._runtime, servers=self._package)
        for module in (self._mcp, self._runtime):
            module.__dict__.update({kind: getattr(results, kind) for kind in _KINDS})
            module.__dict__["MCPError"] = results.ToolError  # the original's name of it
        sys.modules.update({"mcp": self._mcp, "mcp.runtime": self._runtime, "mcp.servers": self._package})
        json.loads = results.loads
        self._names = {"mcp": self._mcp, "runtime": self._runtime, "mcp_servers": self._servers}
        self._names.update(ToolError=results.ToolError, ToolTimeout=results.ToolTimeout)
        self._names.update(__name__="__main__")
        namespace.update(self._names)

    def install(self, execute: wire.Frame) -> None:
        """Makes known what an execute names, and nothing that one before it did."""
        for name, value in self._names.items():  # earlier code may have deleted them
            self._namespace.setdefault(name, value)
        wire.OFFERED = execute["options"].get("sandboxes") is True
        self._discovered[:] = execute["options"].get("discovered") or []
        providers = {str(one.get("name")): one for one in execute.get("providers") or []}
        for name in [name for name in self._servers if name not in providers]:
            self._remove(self._servers.pop(name))
        for name, provider in providers.items():
            if self._given.get(name) != provider:
                self._add(Server(self._link, provider), provider)
            elif (server := self._servers.find(name)) and server._alias != "servers":
                self._namespace.setdefault(f"mcp_{server._alias}", server)
        self._given = providers
        self._namespace["LOADED_MCP_SERVERS"] = tuple(sorted(self._servers))
        self.export()

    def _add(self, server: Server, provider: wire.Frame | None = None) -> Server:
        self._servers[server._name] = server
        if server._alias != "servers":  # mcp_servers is all of them
            self._namespace[f"mcp_{server._alias}"] = server
        for name in _modules(server):
            sys.modules[name] = server  # type: ignore[assignment]  # it has what import needs
        setattr(self._package, server._alias, server)
        if server._alias not in self._mcp.__dict__:
            setattr(self._mcp, server._alias, server)
        self._files.add(server, provider)
        return server

    def _remove(self, server: Server) -> None:
        if self._namespace.get(f"mcp_{server._alias}") is server:
            del self._namespace[f"mcp_{server._alias}"]
        for name in _modules(server):
            if sys.modules.get(name) is server:  # type: ignore[comparison-overlap]
                del sys.modules[name]
        for module in (self._package, self._mcp):
            if module.__dict__.get(server._alias) is server:
                delattr(module, server._alias)

    def export(self) -> None:
        """Sets the variables that name the servers."""
        listed = [{"name": server._name, "alias": server._alias} for server in self._servers.values()]
        for variable, entries in (("AVAILABLE", listed), ("DISCOVERED", self._discovered)):
            text = json.dumps(entries)
            if len(text) > ENV_MAX:
                text = json.dumps([{"name": entry.get("name")} for entry in entries])
            if len(text) <= ENV_MAX:
                os.environ[f"MCP_{variable}_SERVERS"] = text
            else:
                os.environ.pop(f"MCP_{variable}_SERVERS", None)


def _modules(server: Server) -> list[str]:
    """The names under which a server can be imported."""
    names = [f"mcp.servers.{server._alias}"]
    if server._alias != "servers":
        names.append(f"mcp_{server._alias}")
    if server._alias not in ("runtime", "servers"):
        names.append(f"mcp.{server._alias}")
    return names
