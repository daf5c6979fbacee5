"""Hints for what a container hasn't: room, network, the user's files, programs."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterable

from guest import expressions, names, results, wire
from guest.light_typing import Any
from guest.name_hints import CLIENTS, nothing_installed, proxies
from guest.watch import TMPFS

_UNREACHED = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL}
_WRITABLE = ("/workspace", "/tmp")
_USERS = ("/home", "/Users", "/mnt", "/root", "~", "C:\\", "c:\\")
_FILES = "code can write below /workspace and /tmp only; what is left in /workspace/out is handed over"


def limit(error: BaseException) -> str:
    """A sentence without a period, or "" when no limit of the container explains the error."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return _space()
    if number == errno.EMFILE:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"a process may have {most} files, pipes and sockets open: close those that aren't needed"
    return ""


def _space() -> str:
    """Names the directories that are full; there isn't one if the code has removed the file since."""
    full = [told for told in map(_full, TMPFS) if told]
    return f"{' and '.join(full)}: remove what isn't needed there" if full else ""


def _full(directory: str) -> str:
    try:
        room = os.statvfs(directory)
    except OSError:
        return ""
    if room.f_blocks and room.f_bavail * 100 < room.f_blocks:
        return f"{directory} is full, with {room.f_blocks * room.f_frsize / (1 << 20):.4g} MiB"
    if room.f_files and not room.f_favail:
        return f"{directory} is full, with {room.f_files} files"
    return ""


def hint(error: BaseException, namespace: dict[str, Any]) -> str:
    """A sentence without a period, or "" when there is nothing to add."""
    return _files(error, namespace) or _process(error) or _network(error, namespace)


def _files(error: BaseException, namespace: dict[str, Any]) -> str:
    if not isinstance(error, OSError):
        return ""
    path = error.filename if isinstance(error.filename, str) else ""
    is_text = "\n" in path.strip() or results.parsed(path) is not path
    if is_text and error.errno in (errno.ENOENT, errno.ENAMETOOLONG) and not _of_process(error):
        return "this is a text, not the name of a file: pass io.StringIO(text), with import io"
    outside = path.startswith("/") and not path.startswith(_WRITABLE)
    if error.errno == errno.EROFS or (isinstance(error, PermissionError) and outside):
        return _FILES
    if isinstance(error, FileNotFoundError) and path.startswith(_USERS):
        return "the user's files aren't in here: read them with a tool of a server that has them"
    if isinstance(error, FileNotFoundError) and path:
        return _relative(path, error, namespace)
    return ""


def _relative(path: str, error: OSError, namespace: dict[str, Any]) -> str:
    """A file that isn't there: it lies elsewhere in here, has a name like this one, or is the user's."""
    if _of_process(error):
        return f"there is no program {path} in here; {nothing_installed()}"
    given = os.path.join("/workspace/in", os.path.basename(path))
    if not os.path.isabs(path) and os.path.exists(given):
        return f'write: "{given}"'
    folder = os.path.dirname(path) or "."
    if near := names.nearest(os.path.basename(path), os.listdir(folder) if os.path.isdir(folder) else []):
        return f'did you mean "{os.path.join(os.path.dirname(path), near)}"?'
    if os.path.isabs(path):
        return ""
    known = proxies(namespace)
    way = (
        f"fetch it with a tool of {names.joined(known, 10)}" if known else "write what it holds into the code"
    )
    if wire.LASTS:
        return f"/workspace of this sandbox has no such file: {way}"
    why = f"nothing is kept between calls{names.with_sandbox()}"
    return f"/workspace is empty when a program starts, since {why}: {way}"


def _of_process(error: BaseException) -> bool:
    return any("subprocess" in one.tb_frame.f_code.co_filename for one in expressions.entries(error))


def _process(error: BaseException) -> str:
    """A program that failed since it wants what isn't here."""
    command = getattr(error, "cmd", None) if type(error).__name__ == "CalledProcessError" else None
    if command is None:
        return ""
    line = command if isinstance(command, str) else " ".join(os.path.basename(str(word)) for word in command)
    installs = re.search(r"\b(pip3?|conda|uv|apt|apt-get|npm) (\w+ )*?(install|add)\b", line)
    return nothing_installed() if installs else ""


def _network(error: BaseException, namespace: dict[str, Any]) -> str:
    if not any(_is_network(one) for one in _chain(error)):
        return ""
    known = proxies(namespace)
    way = "this run has no server whose tools could be called instead"
    if known:
        way = f"call a tool of a server instead: {names.joined(known, 10)}"
    return f"there is no network in here; {way}"


def _is_network(error: BaseException) -> bool:
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    if ("socket", "gaierror") in kinds or (isinstance(error, OSError) and error.errno in _UNREACHED):
        return True
    failures = {"URLError", "ConnectionError", "ConnectError", "ClientConnectorError"}
    return any(module in CLIENTS and name in failures for module, name in kinds)


def _chain(error: BaseException) -> Iterable[BaseException]:
    one: BaseException | None = error
    for _ in range(20):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__
