"""Makes the sources that came over stdin importable, then hands over to the supervisor.

Every module is compiled under a file name of its own, and its loader can give its source, so that a traceback reads as if
the files were there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

PACKAGE = "guest"


class Sources:
    """Finds and loads `guest` and `guest.*` from a dict of module name to source text."""

    def __init__(self, sources: dict[str, str], compiled: dict[str, CodeType]) -> None:
        self._sources, self._compiled = sources, compiled

    def _key(self, name: str) -> str | None:
        key = "__init__" if name == PACKAGE else name.removeprefix(PACKAGE + ".")
        return key if (name == PACKAGE or key != name) and key in self._sources else None

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        key = self._key(name)
        if key is None:
            return None
        spec = ModuleSpec(name, self, origin=file_name(key), is_package=name == PACKAGE)  # type: ignore[arg-type]
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        key = self._key(name)
        if key is None:
            raise ImportError(f"no module {name!r} in the guest", name=name)
        return self._compiled.get(key) or compile(self._sources[key], file_name(key), "exec", dont_inherit=True)

    def get_source(self, name: str) -> str | None:
        key = self._key(name)
        return None if key is None else self._sources[key]


def file_name(key: str) -> str:
    return f"<guest>/{key}.py"


def compiled(text: str) -> dict[str, CodeType]:
    """The code of all modules, where it came along and is for this very Python: see Compiler in entrypoint.go."""
    if not text:
        return {}
    import marshal
    from binascii import a2b_base64
    from importlib.util import MAGIC_NUMBER
    from zlib import decompress

    data = a2b_base64(text)
    if not data.startswith(MAGIC_NUMBER):
        return {}
    code: dict[str, CodeType] = marshal.loads(decompress(data[len(MAGIC_NUMBER) :]))
    return code


def start(sources: dict[str, str]) -> None:
    """Runs the guest on descriptors 0 and 1; it ends the process."""
    sys.meta_path.insert(0, Sources(sources, compiled(sources.pop("", ""))))
    from guest import supervisor

    status = supervisor.main(0, 1)
    sys.stderr.flush()
    os._exit(status)  # to take an interpreter apart takes longer than a short run
