"""Hints for names and modules that aren't there."""

from __future__ import annotations

import builtins
import re
import sys
from collections import deque
from collections.abc import Iterator

from guest import expressions, names, not_python, wire
from guest.light_typing import Any

MAX_LISTED = 40  # installed packages that are named
_TOOLS = {"pip", "setuptools", "wheel", "pkg_resources", "ensurepip"}
CLIENTS = set("requests httpx aiohttp urllib3 urllib socket http httplib2 websockets botocore ssl".split())
_SDK = set(
    "client client.stdio client.session client.sse client.streamable_http server server.fastmcp types".split()
)
_SDK_NAMES = {"ClientSession", "StdioServerParameters", "stdio_client", "Client", "types"}
_LOCAL = (
    "what a function assigns anywhere is local in all of it: "
    "assign it before this line, or declare it global or nonlocal"
)
_SHORT = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "dt": "datetime", "sns": "seaborn"}


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """A sentence without a period, or "" when there is nothing to add."""
    return _module(error, namespace) or _name(error, namespace)


def proxies(namespace: dict[str, Any]) -> list[str]:
    return sorted(key for key in namespace if key.startswith("mcp_") and key != "mcp_servers")


def _module(error: BaseException, namespace: dict[str, Any]) -> str:
    if not isinstance(error, ImportError) or not isinstance(error.name, str):
        return ""
    if error.name.startswith("mcp.servers"):
        named = re.search("cannot import name '(.+?)' from", str(error))
        wrong = named[1] if named else error.name.rpartition("mcp.servers")[2].lstrip(".")
        return names.choices(proxies(namespace), "servers of this run", f"mcp_{wrong}")
    if said := _connected(error, namespace):
        return said
    if not isinstance(error, ModuleNotFoundError):
        return _imported(error)
    top = error.name.partition(".")[0]
    if top in namespace or top.removeprefix("mcp_") != top:
        known = names.choices(proxies(namespace), "servers of this run", top)
        return f"{top} is there without an import" if top in namespace else known
    if top in sys.modules or "." in error.name:
        return ""
    near = _near(top, [*(name for name in sys.stdlib_module_names if not name.startswith("_")), *installed()])
    meant = f"did you mean {near}? " if near else ""
    net = "; there is no network either: to reach a service, call a tool of its server"
    return f"{meant}{nothing_installed()}{net if top in CLIENTS else ''}"


def nothing_installed() -> str:
    if not (extra := installed()):
        return "nothing can be installed here; there is only Python's standard library"
    has = names.joined(extra, MAX_LISTED)
    return f"nothing can be installed here; beside the standard library there are: {has}"


def _connected(error: ImportError, namespace: dict[str, Any]) -> str:
    """An import of servers from where others keep them, or of the SDK that connects to them."""
    top, _, rest = str(error.name).partition(".")
    if isinstance(error, ModuleNotFoundError) and top == "servers":
        line = expressions.Place(error).line
        if not line.startswith(("from ", "import ")):
            return f"write: from mcp.servers.{rest} import ..."
        return "write: " + re.sub(r"\bservers\b", "mcp.servers", line, count=1)
    wrong = re.search("cannot import name '(.+?)' from", str(error))
    if error.name == "fastmcp" or (top == "mcp" and (rest in _SDK or (wrong and wrong[1] in _SDK_NAMES))):
        listed = ", ".join(f"{name}.TOOL(...)" for name in proxies(namespace)[:5] or ["mcp_SERVER"])
        return f"the servers are connected already: without a client, write {listed}"
    return ""


def _imported(error: ImportError) -> str:
    """The nearest name of a module to one that it hasn't."""
    wrong = re.search("cannot import name '(.+?)' from", str(error))
    if not wrong or error.name not in sys.modules:
        return ""
    known = [name for name in dir(sys.modules[error.name]) if not name.startswith("_")]
    near = names.nearest(wrong[1], known)
    return f"did you mean {near}?" if near else ""


def installed() -> list[str]:
    """The packages that came with the image beside the standard library, as they are imported."""
    import pkgutil

    folders = [path for path in sys.path if path.endswith(wire.SITES) or path == wire.PACKAGES]
    found = {module.name for module in pkgutil.iter_modules(folders)}
    own = (name for name in found - _TOOLS if name[0].isalpha() and "__" not in name)
    return sorted(own, key=str.casefold)


def _near(wrong: str, known: list[str]) -> str:
    """The nearest name, if it is nearer than those of two modules often are."""
    import difflib

    return next(iter(difflib.get_close_matches(wrong, known, n=1, cutoff=0.75)), "")


def _name(error: BaseException, namespace: dict[str, Any]) -> str:
    wrong = getattr(error, "name", None)
    if isinstance(error, UnboundLocalError):
        return _LOCAL
    if not isinstance(error, NameError) or not isinstance(wrong, str):
        return ""
    if "mcp_servers" not in namespace and "__name__" not in namespace:  # as after globals().clear()
        return "the code has deleted the names that it began with, those of the servers too: leave that out"
    servers: dict[str, Any] = namespace.get("mcp_servers") or {}
    line = expressions.Place(error).line
    if tool := _spelled(wrong, list(servers.values())):
        return f"write: {_renamed(line, wrong, tool)}"
    if wrong.startswith("mcp_"):
        return names.choices(proxies(namespace), "servers of this run", wrong)
    if wrong in {"true", "false", "null", "none", "undefined"}:
        return f"in Python it is {wrong.title() if wrong in ('true', 'false') else None}"
    runtime = "search_tool_docs" if wrong in ("search_tools", "search_tool") else wrong
    helpers = getattr(namespace.get("runtime"), "__dict__", {})
    if runtime in helpers and not runtime.startswith("_") and runtime.islower():
        return f"write: {_renamed(line, wrong, f'runtime.{runtime}')}"
    used = rf"@{re.escape(wrong)}\b|\b{re.escape(wrong)}(\(|\.(now|utcnow|today|strptime|from\w+)\()"
    if wrong in names.STANDARD and (not wrong.islower() or re.search(used, line)):
        return f"write from {names.STANDARD[wrong]} import {wrong} first"
    if wrong in sys.stdlib_module_names or wrong in installed():
        return f"write import {wrong} first"
    if said := not_python.undefined(wrong, line, proxies(namespace), nothing_installed()):
        return said
    if wrong in names.KEPT:
        return names.nothing_kept()
    if wrong in _SHORT:
        top = _SHORT[wrong].partition(".")[0]
        if top in sys.stdlib_module_names or top in installed():
            return f"write import {_SHORT[wrong]} as {wrong} first"
        return f"{top} isn't in here: {nothing_installed()}"
    if f"mcp_{wrong}" in namespace:
        return f"did you mean mcp_{wrong}?"
    having = [f"mcp_{server._alias}.{wrong}" for server in servers.values() if wrong in (server._known or {})]
    if having:
        return f"a tool is called through its server: write {' or '.join(having)}"
    own = [name for name in _visible(error, namespace) if name != wrong]
    near = names.nearest(wrong, own)
    if not near:
        builtin = [name for name in dir(builtins) if not name.startswith("_")]
        near = next((name for name in builtin if len(wrong) > 2 and names.one_edit(wrong, name)), "")
    return f"did you mean {near}?" if near else _unset(wrong, line, list(servers.values()))


def _spelled(wrong: str, servers: list[Any]) -> str:
    """The call of a tool whose name has its server's in it, as other programs write it."""
    for server in servers:
        alias = server._alias
        for begin in (f"mcp__{server._name}__", f"mcp__{alias}__", f"{alias}_", f"{alias}__"):
            tool = wrong.removeprefix(begin)
            if tool != wrong and (begin.startswith("mcp__") or tool in (server._known or {})):
                return f"mcp_{alias}.{tool}"
    return ""


def _renamed(line: str, wrong: str, name: str) -> str:
    return re.sub(rf"(?<![.\w]){re.escape(wrong)}\b", name, line) or name


def _unset(wrong: str, line: str, servers: list[Any]) -> str:
    """A name like no other: what an earlier call has set, or a tool of a server not yet asked."""
    lost = f"nothing is kept between calls{names.with_sandbox()}"
    if wire.LASTS:
        lost = "this sandbox has no variable of that name now"
    if not re.search(rf"\b{re.escape(wrong)}\s*\(", line):
        return f"{lost}: fetch it again in this program"
    asked = (server for server in servers if server._known is None and "_" in wrong)
    unknown = [f"mcp_{server._alias}.{wrong}(...)" for server in asked]
    found = f"find its server: runtime.search_tool_docs({wrong!r})"
    where = f"write {' or '.join(unknown)}" if len(unknown) <= 3 else found
    tool = f"; if it is a tool, {where}" if unknown else ""
    return f"{lost}: define it in this program{tool}"


def _visible(error: BaseException, namespace: dict[str, Any]) -> Iterator[str]:
    for last in deque(expressions.entries(error), 1):
        yield from last.tb_frame.f_locals
    yield from (name for name in namespace if not name.startswith("__"))
