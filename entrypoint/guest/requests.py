"""Lines from the child, which are hostile: each is dropped, answered here, or rebuilt."""

from __future__ import annotations

from guest import wire
from guest.output import Output
from guest.run import Run

_CODES = {
    "runtime_error", "tool_error", "validation_error", "serialization_error", "internal_error",
    "denied", "call_limit",
    "memory_limit",  # of Python's own MemoryError
}  # fmt: skip
_TOO_LONG = f"above the limit of {wire.MAX_FRAME} bytes a frame"
_NAME = 1000  # characters of a name
_MODULE = 100  # and of a module's
_OF_A_CALL = ("begun", "ended", "made", "waits", "rehearsed", "took")  # of a sandbox
LEFT_MAX = 4 << 20  # bytes that are read to be dropped; a pipe or socket holds less
_PIECE = {"name": str, "mime": str, "data": str, "chunk": int, "of": int}


class Requests:
    """Takes what the child sends and passes on the calls among it."""

    def __init__(self, run: Run, output: Output) -> None:
        self._run, self._output = run, output
        self._lines = wire.Lines(wire.MAX_FRAME)

    def take(self) -> bool:
        """Reads once. False means that there is nothing more to come."""
        data = wire.read_some(self._run.to_child.fd)
        if not data:
            return data is None
        told = False
        for line in self._lines.feed(data):  # which may hold the child's word that it is warm
            if self._run.running and not told:  # what was printed before a call goes out before it
                self._output.take_all()
                self._output.flush()
                told = True
            self._one(line)
        return True

    def forget(self) -> None:
        """Drops all that has come, and what was printed: it is of what was before."""
        limit = LEFT_MAX  # where processes run on, there may be more at any time
        while limit > 0 and (data := wire.read_some(self._run.to_child.fd)):
            limit -= len(data)
        self._lines = wire.Lines(wire.MAX_FRAME)
        self._output.forget(LEFT_MAX)

    def drain(self, limit: int) -> None:
        """Reads what a dead child left, for its claim; calls are too late."""
        while limit > 0 and (data := wire.read_some(self._run.to_child.fd)):
            limit -= len(data)
            for line in self._lines.feed(data):
                frame = wire.decode(line)
                if frame and frame.get("type") not in ("tool_call", "warm"):
                    self._word(frame)

    def _one(self, line: bytes) -> None:
        if isinstance(line, wire.Overlong):
            self._call({"callId": wire.call_id(line, wire.CALL)}, _TOO_LONG)
            return
        frame = wire.decode(line)
        if frame is None:
            self._call({"callId": wire.call_id(line, wire.CALL)}, "no JSON")
        elif frame.get("type") == "tool_call":
            self._call(frame, "")
        elif frame.get("type") == "tool_cancel":
            if self._run.running and isinstance(call := frame.get("callId"), str):
                self._run.cancel(call)
        else:
            self._word(frame)

    def _word(self, frame: wire.Frame) -> None:
        """Takes what asks for no answer."""
        kind, sandbox = frame.get("type"), self._run.sandbox
        if sandbox and kind in _OF_A_CALL:
            sandbox.said(kind, frame)
        elif kind == "warm":
            self._run.warmed(names(frame.get("failed")))
        elif not self._run.running or self._run.job:
            pass
        elif kind == "imported":
            self._run.imported = names(frame.get("names"))
        elif kind == "claim":
            if not sandbox or sandbox.is_of_call(frame):
                self._run.claim = claim(frame)
        elif kind == "broken":
            self._run.broken = True
        elif kind == "artifact" and (piece := artifact(frame)):
            self._run.room.note(piece["name"], len(piece["data"]) * 3 // 4)
            self._run.artifact(piece)

    def _call(self, frame: wire.Frame, wrong: str) -> None:
        call = frame.get("callId")
        if not self._run.running or self._run.job or not isinstance(call, str) or not _is_id(call):
            return
        if int(call) <= self._run.last_call:
            return
        self._run.last_call = int(call)
        if self._run.sandbox:
            self._run.sandbox.called()
        provider, tool, given = frame.get("providerName"), frame.get("safeToolName"), frame.get("input", {})
        named = all(isinstance(name, str) and len(name) <= _NAME for name in (provider, tool))
        if not wrong and not named:
            wrong = f"without the names of a provider and a tool of up to {_NAME} characters each"
        elif not wrong and not isinstance(given, dict):
            wrong = "whose input is no object"
        elif not wrong:
            asked = {"progress": True} if frame.get("progress") is True else {}
            names = {"type": "tool_call", "callId": call, "providerName": provider, "safeToolName": tool}
            try:
                line = wire.encode({**names, **asked, "input": given})
            except (ValueError, RecursionError, MemoryError):
                wrong = "whose input JSON can't hold"
            else:
                if len(line) <= wire.MAX_FRAME:
                    self._run.call(call, line)
                    return
                wrong = _TOO_LONG
        error = {"code": "validation_error", "message": f"a call {wrong} was not sent"}
        refusal = {"type": "tool_result", "callId": call, "ok": False, "error": error}
        self._run.to_child.push(wire.encode(refusal))


def _is_id(call: str) -> bool:
    return len(call) <= 18 and call.isascii() and call.isdigit() and not call.startswith("0")


def artifact(frame: wire.Frame) -> wire.Frame | None:
    """A piece of a file, rebuilt field by field, or None. The host checks what is in them."""
    piece = {name: frame.get(name) for name in _PIECE}
    return piece if all(type(piece[name]) is kind for name, kind in _PIECE.items()) else None


def names(said: object) -> list[str]:
    """The names of modules in a list, or none where it is another thing."""
    if not isinstance(said, list) or len(said) > wire.MAX_NAMES:
        return []
    return [name for name in said if isinstance(name, str) and 0 < len(name) <= _MODULE]


def claim(frame: wire.Frame) -> wire.Frame:
    """What the child says of its error, cut to the fields and sizes that done has for it."""
    said = frame.get("error")
    said = said if isinstance(said, dict) else {}
    error: wire.Frame = {"code": "runtime_error"}
    if said.get("code") in _CODES:
        error["code"] = said["code"]
    for name, limit in (("message", 1 << 16), ("type", 200), ("traceback", 1 << 18)):
        value = said.get(name)
        if isinstance(value, str) and (value or name == "message"):
            half = limit // 2
            error[name] = value if len(value) <= limit else f"{value[:half]}\n[... cut ...]\n{value[-half:]}"
    error.setdefault("message", "")
    line = said.get("line")
    if isinstance(line, int) and 0 < line < 1 << 31:
        error["line"] = line
    return error
