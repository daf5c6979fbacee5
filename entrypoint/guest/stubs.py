"""The files in /ipc/servers: each server's tools as Python declarations that code can read.

The bridge writes them (entrypoint/stubs). The file of a server that hasn't been started is a note,
until it is opened. That is noticed by a wrapper of open: an audit hook makes id() four times as slow.
"""

from __future__ import annotations

import builtins
import io
import json
import os

from guest import wire
from guest.light_typing import Any
from guest.servers import Server

DIR = "/ipc/servers"

_NOT_YET = "# The tools of the MCP server %s, mcp_%s in code, are not known: it hasn't been asked yet.\n"
_HOW = (
    "# runtime.load_server(%s) asks it, and so does open() with this file's whole path; their declarations"
    " are here then.\n"
)
_TOO_LONG = "\n\n# The declaration of %s is too long to be sent here; help(mcp_%s.%s) says what it does.\n"


class Files:
    """One file for each server of the run, where there is a place for them."""

    def __init__(self) -> None:
        self._unknown: dict[str, Server] = {}  # by path: those whose tools aren't known yet
        try:
            os.mkdir(DIR)
        except OSError:  # it is there, or there is no place for it
            pass
        self._room = os.path.isdir(DIR)

    def add(self, server: Server, provider: wire.Frame | None) -> None:
        """Takes a server up; provider is what the host said of it, with its tools or without."""
        if not self._room:
            return
        server._on_load.append(lambda loaded: self._put(server._alias, _text(server, loaded)))
        if server._known is None:
            self._unknown[f"{DIR}/{server._alias}.py"] = server
            builtins.open = io.open = _Open(self)
            said = json.dumps(server._name)
            self._put(server._alias, _NOT_YET % (said, server._alias) + _HOW % said)
        else:
            self._put(server._alias, _text(server, provider))

    def _put(self, alias: str, text: str) -> None:
        try:
            _write(f"{DIR}/{alias}.py", text.encode("utf-8", "backslashreplace"))
        except OSError:  # no room, or the code took the place: the tools work all the same
            pass

    def load(self, path: str) -> None:
        """Asks for the tools of the server whose file this is, if it is one and they aren't known yet."""
        server = self._unknown.pop(path, None)
        if server is None:
            return
        try:
            server._load()
        except Exception as e:
            why = json.dumps(f"{type(e).__name__}: {e}"[:2000])
            said = _NOT_YET % (json.dumps(server._name), server._alias)
            self._put(server._alias, f"{said}# It could not be asked: {why}\n")
            self._unknown[path] = server


_open = builtins.open
_os_open, _os_write, _os_close = os.open, os.write, os.close  # the code may put something else in their place
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def _write(path: str, data: bytes) -> None:
    """Writes a file as quickly as can be: it is done for each server before the code runs."""
    fd = _os_open(path, _WRITING, 0o666)
    try:
        while data:
            data = data[_os_write(fd, data) :]
    finally:
        _os_close(fd)


class _Open:
    """Stands for open. No function: as an attribute of a class, a function would be bound, and open isn't."""

    __module__, __name__, __qualname__, __doc__ = "io", "open", "open", _open.__doc__

    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(file) if hasattr(file, "__fspath__") else file
        if type(path) is str and path.startswith(DIR):
            self._files.load(path)
        return _open(file, mode, *args, **kwargs)

    def __repr__(self) -> str:
        return repr(_open)


def _text(server: Server, provider: wire.Frame | None) -> str:
    tools = sorted((server._known or {}).items())
    stubs = [str(tool.get("stub") or _TOO_LONG % (name, server._alias, name)) for name, tool in tools]
    return str((provider or {}).get("stub") or "") + "".join(stubs)
