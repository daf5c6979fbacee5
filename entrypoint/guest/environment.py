"""The packages of the image that the code has beside the standard library.

They lie in one folder, which only the child has on its path. It is no place for site: no .pth file
and no sitecustomize in it is run.
"""

from __future__ import annotations

import _ast as ast
import os
import sys
import time
from collections.abc import Mapping

from guest import limits, wire
from guest.light_typing import Any
from guest.link import Link

SECONDS = 5.0  # after which no further import is begun ahead
MAX_LOOKED_AT = 10_000  # statements of the code


class Environment:
    """What a container was started for, as its command says."""

    def __init__(self, order: wire.Frame) -> None:
        self.path = str(order["path"])
        self.ahead = [str(name) for name in order.get("imports") or ()]
        self._limits = limits.of(order)
        self._asked: list[str] = []  # modules that the code's statements import, in their order
        self._before: dict[str, None] = {}  # packages that were imported before the code
        self._found: dict[str, None] = {}  # packages that are imported
        self._looked_at: set[str] = set()  # names of modules
        self._seen: tuple[int, str] = (0, "")  # how many there were, and the last of them

    def enter(self) -> list[str]:
        """Puts the folder behind the standard library, imports ahead, and returns what of that failed.

        The imports have the limits of a run. What they print goes nowhere.
        """
        sites = (i for i, path in enumerate(sys.path) if path.endswith(wire.SITES))
        sys.path.insert(next(sites, len(sys.path)), self.path)
        wire.PACKAGES = self.path
        if not self.ahead:
            return []
        rlimits, cores, watched = self._limits
        limits.apply({name: most for name, most in rlimits.items() if name != "as"}, cores, watched)
        kept = _silence()
        until = time.monotonic() + SECONDS
        failed = [name for name in self.ahead if time.monotonic() > until or not _imported(name)]
        _speak(kept)
        self._before = dict(self._packages())
        return failed

    def limit(self, rlimits: Mapping[str, int], cores: int, watched: bool) -> None:
        """Sets the limits of the run that the imports ahead have not had already."""
        if not self.ahead:
            limits.apply(rlimits, cores, watched)
        elif "as" in rlimits:
            limits.apply({"as": rlimits["as"]})

    def note(self, tree: ast.Module) -> None:
        """Notes the modules that the code's statements import."""
        left: list[Any] = [tree]
        for _ in range(MAX_LOOKED_AT):
            if not left:
                return
            node = left.pop()
            if isinstance(node, ast.Import):
                self._asked += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._asked += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for field in ("cases", "finalbody", "orelse", "handlers", "body"):
                below = getattr(node, field, None)
                if isinstance(below, list):  # of a lambda it is an expression
                    left += reversed(below)

    def report(self, link: Link) -> None:
        """Sends the names of the folder's modules that the run has imported."""
        try:
            packages = self._packages()
        except Exception:  # the code may have put anything in the place of a module
            return
        asked = [name for name in self._asked if name.partition(".")[0] in packages and name in sys.modules]
        new = [name for name in packages if name not in self._before]
        self._asked.clear()
        if names := [*dict.fromkeys(asked + new)][: wire.MAX_NAMES]:
            link.send({"type": "imported", "names": names})

    def _packages(self) -> dict[str, None]:
        """The packages of the folder that are imported, without the modules below them.

        Only those that are new are looked at, and no name where there is none: in a sandbox a look
        has the kernel copy what is shared with the spare, milliseconds for a thousand of them.
        """
        folder, seen = self.path + "/", (len(sys.modules), next(reversed(sys.modules), ""))
        if seen == self._seen:
            return self._found
        self._seen = seen
        for name in [name for name in [*sys.modules] if name not in self._looked_at]:
            self._looked_at.add(name)
            file = getattr(sys.modules.get(name), "__file__", None)
            if "." not in name and isinstance(file, str) and file.startswith(folder):
                self._found[name] = None
        return self._found


def _imported(name: str) -> bool:
    try:
        __import__(name)
    except BaseException:  # a module is the work of others, and may raise anything
        return False
    return True


def _silence() -> tuple[int, int]:
    """Points 1 and 2 at nothing, and returns copies of what they were."""
    kept = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for number in (1, 2):
        os.dup2(null, number)
    os.close(null)
    return kept


def _speak(kept: tuple[int, int]) -> None:
    """Undoes it."""
    for number, fd in enumerate(kept, 1):
        os.dup2(fd, number)
        os.close(fd)
