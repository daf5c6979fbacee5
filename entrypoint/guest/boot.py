"""Makes what came over stdin importable, then hands over to the supervisor.

Every module has a file name and a source, so a traceback reads as if the files were there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

PACKAGE = "guest"


class Sources:
    """Finds and loads `guest` and `guest.*`.

    sources is a compressed JSON object of module name to text. compiled is the code of all modules,
    each compressed by itself, or nothing. Each is unpacked when it is needed.
    """

    def __init__(self, sources: bytes, compiled: Mapping[str, bytes]) -> None:
        import marshal
        import zlib

        self._packed, self._compiled = sources, compiled
        # The code may put something else in their place.
        self._loads, self._decompress = marshal.loads, zlib.decompress
        self._builtins = {**vars(sys.modules["builtins"])}
        self._unpacked: dict[str, str] = {}

    @property
    def _sources(self) -> dict[str, str]:
        if not self._unpacked:
            import json

            self._unpacked = json.loads(self._decompress(self._packed))
        return self._unpacked

    def _key(self, name: str) -> str | None:
        key = "__init__" if name == PACKAGE else name.removeprefix(PACKAGE + ".")
        return key if (name == PACKAGE or key != name) and key in (self._compiled or self._sources) else None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        key = self._key(name)
        if key is None:
            return None
        # importlib.machinery's, without importing that.
        kind: Any = type(sys.__spec__)
        spec: ModuleSpec = kind(name, self, origin=file_name(key), is_package=name == PACKAGE)
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        key = self._key(name)
        if key is None:
            raise ImportError(f"no module {name!r} in the guest", name=name)
        if key in self._compiled:
            code: CodeType = self._loads(self._decompress(self._compiled[key]))
            return code
        return compile(self._sources[key], file_name(key), "exec", dont_inherit=True)

    def get_source(self, name: str) -> str | None:
        key = self._key(name)
        return None if key is None else self._sources[key]


def file_name(key: str) -> str:
    return f"<guest>/{key}.py"


def compiled(data: bytes) -> dict[str, bytes]:
    """The code of all modules in data, or none where it is for another release of Python."""
    # importlib.util's, which takes a millisecond to import.
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    if not data.startswith(magic):
        return {}
    import marshal

    code: dict[str, bytes] = marshal.loads(memoryview(data)[len(magic) :])
    return code


def start(sources: bytes, code: bytes) -> None:
    """Runs the guest on descriptors 0 and 1; it ends the process."""
    sys.meta_path.insert(0, Sources(sources, compiled(code)))
    from guest import supervisor

    status = supervisor.main(0, 1)
    sys.stderr.flush()
    os._exit(status)  # to take an interpreter apart takes longer than a short run
