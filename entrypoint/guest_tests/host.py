"""A host for the guest: starts the real process as the bridge does, and speaks frames with it."""

from __future__ import annotations

import json
import keyword
import marshal
import os
import re
import select
import shlex
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import TracebackType
from typing import Any

from guest.schemas import described

HERE = Path(__file__).resolve().parent.parent
PATIENCE = 20.0  # seconds to wait for anything; only a failing test waits so long

Frame = dict[str, Any]


def sources() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "guest").glob("*.py"))}


def payload(modules: dict[str, str]) -> bytes:
    """What a guest is sent before any frame, with compiled code as the bridge sends it."""
    return _payload(tuple(modules.items()))


@cache
def _payload(modules: tuple[tuple[str, str], ...]) -> bytes:
    texts, boot = zlib.compress(json.dumps(dict(modules)).encode()), dict(modules)["boot"].encode()
    code = MAGIC_NUMBER + marshal.dumps({name: _code(name, text) for name, text in modules})
    return b"%d %d %d\n%s%s%s" % (len(boot), len(texts), len(code), boot, texts, code)


@cache
def _code(name: str, text: str) -> bytes:
    return zlib.compress(marshal.dumps(compile(text, f"<guest>/{name}.py", "exec", dont_inherit=True)))


class Guest:
    """One guest process. Use it in a with statement: it is gone at the end of that."""

    def __init__(
        self,
        changed: dict[str, tuple[str, str]] | None = None,
        python: str = sys.executable,
        cwd: str = "/",
        order: Frame | None = None,
    ) -> None:
        """changed gives, for a module, a text of its source and what is to stand there instead;
        python is the interpreter's path; order is what the container is started for.
        """
        modules = sources()
        for name, (old, new) in (changed or {}).items():
            assert old in modules[name], f"{name} has no {old!r}"
            modules[name] = modules[name].replace(old, new)
        python = "python3" if os.environ.get("GUEST_UNDER") else python
        command = [
            *shlex.split(os.environ.get("GUEST_UNDER", "")),
            python,
            "-I",
            "-B",
            "-c",
            (HERE / "boot.py").read_text(),
            *([json.dumps(order)] if order else []),
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._in, self._out, self._err = self.process.stdin, self.process.stdout.fileno(), self.process.stderr
        self._rest = b""
        self._done = False  # the last frame was one
        self.raw(payload(modules))

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            for stream in (self.process.stdout, self.process.stderr):
                assert stream
                stream.close()

    def raw(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def send(self, frame: Frame) -> None:
        self.raw(json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def execute(
        self, code: str, providers: list[Frame] | None = None, file: str = "", **options: Any
    ) -> None:
        named = {"file": file} if file else {}
        self.send(
            {
                "type": "execute",
                "id": "run-1",
                "code": code,
                **named,
                "options": options,
                "providers": providers or [],
            }
        )

    def close(self) -> None:
        try:
            self._in.close()
        except BrokenPipeError:
            pass

    def line(self, patience: float = PATIENCE) -> bytes | None:
        """The next line, None at the end."""
        end = time.monotonic() + patience
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            if not select.select([self._out], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the guest sends nothing")
            data = os.read(self._out, 1 << 20)
            if not data:
                assert not b"".join(parts), "the guest ended in the middle of a line"
                return None
            parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def read(self, patience: float = PATIENCE) -> Frame | None:
        """The next frame, None at the end. Every line must be one."""
        line = self.line(patience)
        if line is None:
            return None
        frame = json.loads(line)
        assert isinstance(frame, dict), line
        self._done = frame["type"] == "done"
        return frame

    def drain(self) -> None:
        """Reads to the end, whatever comes: a guest that stops at once may stop in the middle of a line."""
        while os.read(self._out, 1 << 20):
            pass

    def until(self, kind: str) -> list[Frame]:
        """All frames up to the first of a type."""
        frames: list[Frame] = []
        while True:
            frame = self.read()
            assert frame is not None, f"the guest ended without {kind}: {frames} {self.errors()}"
            frames.append(frame)
            if frame["type"] == kind:
                return frames

    def played(self, answer: Callable[[Frame], Frame]) -> list[Frame]:
        """All frames up to done. answer gives the fields of the tool_result for a tool_call."""
        frames: list[Frame] = []
        while not frames or frames[-1]["type"] != "done":
            frame = self.read()
            assert frame is not None, f"no done after {frames[-3:]}: {self.errors()}"
            assert len(frames) < 10_000, "the program doesn't end"
            frames.append(frame)
            if frame["type"] == "tool_call":
                self.send({"type": "tool_result", "callId": frame["callId"], **answer(frame)})
        self.close()
        assert self.read() is None, "a frame after done"
        assert self.status() == 0, self.errors()
        return frames

    def status(self) -> int:
        """Waits for the end of the process. A host that was told done hangs up first."""
        if self._done:
            self.close()
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        """What the supervisor wrote to its own stderr; to be asked once, at the end."""
        return self._err.read().decode()


# Ends the first thread of a process that has others.
ENDS_THREAD = "import ctypes, os; ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)"


class Ran:
    """What a finished run left."""

    def __init__(self, frames: list[Frame]) -> None:
        self.frames = frames
        self.done = frames[-1]
        self.ok: bool = self.done["ok"]
        self.wait: Frame = self.done.get("wait", {})
        self.error: Frame = self.done.get("error", {})
        self.stdout, self.stderr = (
            "".join(f["text"] for f in frames if f["type"] == "output" and f["stream"] == stream)
            for stream in ("stdout", "stderr")
        )
        if os.environ.get(
            "GUEST_UNDER"
        ):  # what a run leaves in /workspace is named there alone; test_display tests it
            self.stderr = re.sub(r"\[files in /workspace are gone after the run: .*\n", "", self.stderr)


def declared(tool: Frame) -> Frame:
    """A tool with a declaration of its parameters as the bridge adds it, in plain words: package
    stubs has the real ones.
    """
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    required: list[str] = schema.get("required", [])
    names = {
        re.sub("[^A-Za-z0-9_]", "_", key) + "_" * keyword.iskeyword(key): key
        for key in [*required, *properties]
    }
    given = []
    for name, key in names.items():
        given.append(f"{name}: {described(schema, properties.get(key))}" + " = None" * (key not in required))
    if schema.get("additionalProperties", not isinstance(schema.get("properties"), dict)) is not False:
        given.append("**kwargs: Any")
    doc = f"    {json.dumps(tool.get('description', ''))}\n"
    stub = f"\n\ndef {tool['safeName']}({', '.join(given)}) -> Any:\n{doc}    raise NotImplementedError\n"
    return {**tool, "stub": stub, "keys": {name: key for name, key in names.items() if name != key}}


def provider(*tools: str, name: str = "shop", **schema: Any) -> Frame:
    """A provider whose tools take any arguments, or those of a schema."""
    schema = {"type": "object", **schema}
    known = {
        tool: declared({"safeName": tool, "originalName": tool, "inputSchema": schema}) for tool in tools
    }
    return {"name": name, "alias": name, "description": "", "tools": known}


def text(said: str) -> Frame:
    """A result of a tool that says something."""
    return {"content": [{"type": "text", "text": said}]}


def run(
    code: str,
    providers: list[Frame] | None = None,
    answer: Any = None,
    python: str = sys.executable,
    changed: dict[str, tuple[str, str]] | None = None,
    order: Frame | None = None,
    **options: Any,
) -> Ran:
    """Runs code in a guest of its own. answer(frame) gives the tool_result's fields for a tool_call."""
    with Guest(changed, python, order=order) as guest:
        guest.execute(code, providers, **options)
        return Ran(guest.played(answer))
