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
    "file": {"id": str, "name": str, "data": str},
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
            self._file(frame["id"], frame["name"], frame["data"])
        elif kind != "execute" or frame.get("keep"):
            self._order(frame, line)
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
        sandbox = self._run.sandbox
        if not self._run.asked or (sandbox and run == self._run.id and sandbox.cancelled()):
            self._run.cancelled_id = run
        elif run == self._run.id:
            self._run.kill("cancel")

    def _file(self, run: str, name: str, data: str) -> None:
        from guest import files  # few runs have any

        if self._run.asked:
            raise Stop(wire.EXIT_PROTOCOL, "the host sent a file after the execute")
        self._files_are_of(run)
        if self._run.files_failed:
            return
        try:
            files.add(name, data, self._run.files)
        except (OSError, ValueError) as e:
            why = f"the file {name[:100]!r} can't be written: {e}"
            if not self._run.sandbox:
                raise Stop(wire.EXIT_INTERNAL, why) from None
            self._run.files_failed = why  # its code may have changed the directory: the execute is refused

    def _files_are_of(self, run: str) -> None:
        """Drops the files of a run that was given up before its execute."""
        if run != self._run.files_of:
            if self._run.files:
                from guest import files

                files.drop(self._run.files)
            self._run.files_of, self._run.files_failed = run, ""

    def _execute(self, frame: wire.Frame, line: bytes) -> None:
        if self._run.asked or self._run.sandbox:
            raise Stop(wire.EXIT_PROTOCOL, "the host sent a second execute; a guest is for one run")
        self._files_are_of(frame["id"])
        self._run.asked, self._run.id = True, frame["id"]
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

    def _order(self, frame: wire.Frame, line: bytes) -> None:
        """Takes what is to be done in a sandbox: code, or something without it."""
        if self._run.asked:
            raise Stop(wire.EXIT_PROTOCOL, f"the host sent {frame['type']} while something else runs")
        self._sandbox()
        if frame["type"] == "execute":
            self._files_are_of(frame["id"])
        self._run.asked, self._run.id, self._run.order, self._run.line = True, frame["id"], frame, line


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    """Like isinstance, but a bool is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
