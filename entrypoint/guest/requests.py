"""Lines from the child.

It runs hostile code: a line is dropped, answered here, or rebuilt field by field for the host.
"""

from __future__ import annotations

from guest import wire
from guest.output import Output
from guest.run import Run

_CODES = {
    "runtime_error", "tool_error", "validation_error", "serialization_error", "internal_error",
    "denied", "call_limit",
    "memory_limit",  # of Python's own MemoryError
}  # fmt: skip
_NAME = 1000  # characters of a name


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
        for line in self._lines.feed(data):
            if self._run.running and not told:  # what was printed before a call goes out before it
                self._output.take_all()
                self._output.flush()
                told = True
            self._one(line)
            # the word that the child is warm may come together with what the code sends, and
            # begins the run
        return True

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
            self._call(
                {"callId": wire.call_id(line, wire.CALL)},
                f"above the limit of {wire.MAX_FRAME} bytes a frame",
            )
            return
        frame = wire.decode(line)
        if frame is None:
            self._call({"callId": wire.call_id(line, wire.CALL)}, "no JSON")
        elif frame.get("type") == "tool_call":
            self._call(frame, "")
        elif frame.get("type") == "tool_cancel":
            self._cancel(frame.get("callId"))
        else:
            self._word(frame)

    def _word(self, frame: wire.Frame) -> None:
        """Takes what asks for no answer."""
        kind = frame.get("type")
        if kind == "warm":
            self._run.warmed()
        elif kind == "claim":
            self._run.claim = claim(frame)
        elif kind == "broken":
            self._run.broken = True
        elif (
            kind == "artifact"
            and self._run.running
            and (piece := artifact(frame))
            and self._run.room.taken(*cost(piece))
        ):
            self._run.artifact(piece)

    def _call(self, frame: wire.Frame, wrong: str) -> None:
        call = frame.get("callId")
        if not self._run.running or not isinstance(call, str) or not _is_id(call):
            return
        if int(call) <= self._run.last_call:
            return
        self._run.last_call = int(call)
        provider, tool, given = frame.get("providerName"), frame.get("safeToolName"), frame.get("input", {})
        if not wrong:
            if (
                not isinstance(provider, str)
                or not isinstance(tool, str)
                or len(provider) > _NAME
                or len(tool) > _NAME
            ):
                wrong = f"without the names of a provider and a tool of up to {_NAME} characters each"
            elif not isinstance(given, dict):
                wrong = "whose input is no object"
            elif (
                len(line := self._encoded(call, provider, tool, given, frame.get("progress")))
                > wire.MAX_FRAME
                or not line
            ):
                wrong = (
                    f"above the limit of {wire.MAX_FRAME} bytes a frame"
                    if line
                    else "whose input JSON can't hold"
                )
            else:
                self._run.call(call, line)
                return
        error = {"code": "validation_error", "message": f"a call {wrong} was not sent"}
        self._run.to_child.push(
            wire.encode({"type": "tool_result", "callId": call, "ok": False, "error": error})
        )

    def _cancel(self, call: object) -> None:
        if self._run.running and isinstance(call, str):
            self._run.cancel(call)

    def _encoded(self, call: str, provider: str, tool: str, given: wire.Frame, progress: object) -> bytes:
        frame = {"type": "tool_call", "callId": call, "providerName": provider, "safeToolName": tool}
        asked = {"progress": True} if progress is True else {}
        try:
            return wire.encode({**frame, **asked, "input": given})
        except (ValueError, RecursionError, MemoryError):
            return b""


def _is_id(call: str) -> bool:
    return len(call) <= 18 and call.isascii() and call.isdigit() and not call.startswith("0")


OVERHEAD = 256  # bytes that a piece of a file counts beside its data


def cost(piece: wire.Frame) -> tuple[str, int]:
    """The name of a file, and what a piece of it takes of the room that a run has for files."""
    return piece["name"], len(piece["data"]) * 3 // 4 + OVERHEAD


def artifact(frame: wire.Frame) -> wire.Frame | None:
    """A piece of a file, rebuilt field by field; None when it is none."""
    from guest.artifacts import BASE64, MAX_NAME, MIME, safe  # few runs hand anything over

    name, mime, data, chunk, of = (frame.get(key) for key in ("name", "mime", "data", "chunk", "of"))
    if not (isinstance(name, str) and len(name) <= MAX_NAME and safe(name) == name):
        return None
    if not (isinstance(mime, str) and len(mime) <= 100 and MIME.fullmatch(mime)):
        return None
    if not (isinstance(data, str) and BASE64.fullmatch(data)):
        return None
    if type(chunk) is not int or type(of) is not int or not 1 <= chunk <= of < 1 << 20:
        return None
    return {"type": "artifact", "name": name, "mime": mime, "data": data, "chunk": chunk, "of": of}


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
            error[name] = (
                value
                if len(value) <= limit
                else f"{value[: limit // 2]}\n[... cut ...]\n{value[-(limit // 2) :]}"
            )
    error.setdefault("message", "")
    line = said.get("line")
    if isinstance(line, int) and 0 < line < 1 << 31:
        error["line"] = line
    return error
