"""Frames from the host. The host is trusted to be right: what it should not have sent stops the guest."""

from __future__ import annotations

from guest import wire
from guest.light_typing import TYPE_CHECKING
from guest.run import Run, Stop

if TYPE_CHECKING:
    from guest.rescue import Sandbox

_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {  # what each type of frame must have
    "ping": {"n": int},
    "tool_result": {"callId": str, "ok": bool},
    "progress": {"callId": str, "progress": (int, float)},
    "cancel": {"id": str},
    "file": {"name": str, "data": str},
    "execute": {"id": str, "code": str, "options": dict},
    "exec": {"id": str, "command": str, "options": dict},
    "files": {"id": str, "op": str, "path": str},
    "undo": {"id": str},
}


class Host:
    """Takes the bytes that come from the host."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lines = wire.Lines(wire.MAX_FRAME)

    def feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._take(line)

    def _take(self, line: bytes) -> None:
        if isinstance(line, wire.Overlong):
            raise Stop(wire.EXIT_PROTOCOL, f"the host sent a frame above the limit of {wire.MAX_FRAME} bytes")
        if call := wire.call_id(line, wire.RESULT):  # a result of megabytes is the child's to parse, once
            self._result(call, line)
            return
        frame = wire.decode(line)
        if frame is None:
            raise Stop(wire.EXIT_PROTOCOL, "the host sent a line that is no JSON object")
        kind = str(frame.get("type"))
        if kind not in _FIELDS or any(not _is(frame.get(name), of) for name, of in _FIELDS[kind].items()):
            said = f"the host sent a frame that this guest doesn't take: type {kind[:100]!r}"
            raise Stop(wire.EXIT_PROTOCOL, said)
        if kind == "ping":
            self._run.send({"type": "pong", "n": frame["n"]})
        elif kind == "tool_result":
            self._result(frame["callId"], line)
        elif kind == "progress":
            self._progress(frame["callId"], line)
        elif kind == "cancel":
            self._cancel(frame["id"])
        elif kind == "file":
            self._file(frame["name"], frame["data"])
        elif kind != "execute":
            self._order(frame)
        else:
            self._execute(frame, line)

    def _result(self, call: str, line: bytes) -> None:
        self._run.received += len(line) + 1
        if self._run.settle(call):
            self._run.to_child.push(line + b"\n")

    def _progress(self, call: str, line: bytes) -> None:
        self._run.received += len(line) + 1
        if self._run.calls.get(call) is False:
            self._run.to_child.push(line + b"\n")

    def _cancel(self, run: str) -> None:
        if not self._run.asked:
            self._run.cancelled_id = run
        elif run == self._run.id:
            self._run.kill("cancel")

    def _file(self, name: str, data: str) -> None:
        from guest import files  # few runs have any

        if self._run.asked:
            raise Stop(wire.EXIT_PROTOCOL, "the host sent a file after the execute")
        try:
            files.add(name, data, self._run.files if self._run.sandbox else None)
        except (OSError, ValueError) as e:
            raise Stop(wire.EXIT_INTERNAL, f"the file {name[:100]!r} can't be written: {e}") from None

    def _execute(self, frame: wire.Frame, line: bytes) -> None:
        if self._run.asked or (self._run.sandbox and not frame.get("keep")):
            said = "while one runs" if self._run.sandbox else "a guest is for one run"
            raise Stop(wire.EXIT_PROTOCOL, f"the host sent a second execute; {said}")
        self._run.asked = True
        if frame.get("keep"):
            self._sandbox().begin(frame["options"])
        self._run.id, self._run.code = frame["id"], True
        limit = frame["options"].get("maxArtifactBytes")
        self._run.file_limit = limit if isinstance(limit, int) and limit > 0 else 0
        self._run.bound(frame["options"])
        if self._run.cancelled_id == self._run.id:
            self._run.kill("cancel")
        else:
            self._run.to_child.push(line + b"\n")
        self._run.begin()


    def _sandbox(self) -> Sandbox:
        if not self._run.sandbox:
            from guest.rescue import Sandbox  # most guests are for one run

            self._run.sandbox = Sandbox(self._run)
        return self._run.sandbox

    def _order(self, frame: wire.Frame) -> None:
        """Takes what is to be done in a sandbox without its code."""
        if self._run.asked:
            raise Stop(wire.EXIT_PROTOCOL, f"the host sent {frame['type']} while something else runs")
        self._sandbox()
        self._run.asked, self._run.id, self._run.order = True, frame["id"], frame
        self._run.bound(frame.get("options") or {})


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    """Like isinstance, but a bool is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
