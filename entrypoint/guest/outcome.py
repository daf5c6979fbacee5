"""The end of a run: everything is stopped, what was printed is sent, and `done` says what waitpid said."""

from __future__ import annotations

import os
import signal
import sys
import time

from guest import watch, wire
from guest.light_typing import TYPE_CHECKING
from guest.output import Output
from guest.requests import Requests
from guest.run import Run, Stop, kill_all

if TYPE_CHECKING:
    from guest.jobs import Answer

OUT = "/workspace/out"  # files that are left here are handed over
RAISED = 1  # the exit status of a child that claims an exception
PIPE_MAX = 4 << 20  # bytes that a pipe can hold at the most
LEFT_MAX = 1 << 20  # bytes of requests that are looked through for a claim; a socket holds less

_BROKEN = (
    "the code has changed or used up something that the Python program which runs it needs, such as a module"
    " of the standard library, and that program broke down; what it could say of that is at the end of stderr"
)
_WHY = {
    "cancel": ("cancelled", "the run was cancelled"),
    "memory": ("memory_limit", "the processes of the run used more memory than it may"),
    "processes": ("runtime_error", "the run had more processes and threads than it may"),
    "deaf": ("internal_error", "the process of the variables didn't say that it had begun the code"),
}


def finish(run: Run, requests: Requests | None, output: Output | Answer) -> None:
    """Sends the last output and done. Raises Stop when the child died before there was a run."""
    status = run.status
    assert status is not None
    # Not killed yet: freeing its memory would delay done. It can have itself continued, so nothing
    # that takes long is done before it is killed.
    kept = run.sandbox
    if kept:
        kept.freeze()
        kept.looked()
        status = run.status
        assert status is not None
    else:
        kill_all(run.child, collected=True, by=signal.SIGSTOP)
    if not run.asked:
        for fd in sorted(output.open):
            os.write(2, wire.read_some(fd) or b"")
        why = f"the child that is to run the code ended before there was any: {_told(status)}"
        raise Stop(wire.EXIT_INTERNAL, why)
    run.begin(regardless=True)
    output.take_all()
    output.finish(PIPE_MAX, bool(kept))
    if requests and not run.alive:
        requests.drain(LEFT_MAX)
    frame = done(run, status)
    if kept:
        told = frame["sandbox"] = kept.left(requests)
        if told["state"] == "before" and frame["ok"]:  # no error says why
            told["reason"] = f"{_SILENT}; {told['reason']}" if told.get("reason") else _SILENT
    if not isinstance(output, Output):
        from guest.jobs import tell  # few sandboxes are used so

        tell(run, output, frame)
    home, out = os.path.split(OUT)
    left = status == 0 and not kept and _holds_any(home, ("in", out))
    if run.id and not run.job and (left or _holds_any(OUT)):
        if not kept:
            kill_all(run.child, collected=True)
        from guest import files  # few runs leave files, and it takes longer than all the rest of a short run

        files.hand_over(run, OUT, output.add)
        if status == 0 and not run.claim and not run.room.used() and not kept:
            files.tell_lost(OUT, output.add)
        output.flush()
    sys.stderr.flush()
    run.send(frame)
    run.done = True


_SILENT = "the code has ended its process by os._exit, or closed the descriptors that the sandbox needs"


def refuse(run: Run, why: str) -> None:
    """Answers an execute whose code can't be begun. The sandbox is as it was."""
    _unbegun(run, {"error": {"code": "internal_error", "message": why}})


def cancelled(run: Run) -> None:
    """Answers an execute that was cancelled before its code was begun. Nothing had to be killed."""
    code, message = _WHY["cancel"]
    wait = {"exited": False, "status": 0, "killed": "cancel"}
    _unbegun(run, {"wait": wait, "error": {"code": code, "message": message}})


def _unbegun(run: Run, said: wire.Frame) -> None:
    assert run.sandbox
    if run.files:
        from guest import files

        files.drop(run.files)
    lost = run.sandbox.lost
    state = {"state": "lost", "reason": lost} if lost else run.sandbox.stands()
    run.begin(regardless=True)
    run.send({"type": "done", "id": run.id, "ok": False, "durationMs": 0, **said, "sandbox": state})
    run.done = True


def _holds_any(path: str, except_for: tuple[str, ...] = ()) -> bool:
    """Whether path is a directory with other entries than those."""
    try:
        with os.scandir(path) as entries:
            return any(entry.name not in except_for for entry in entries)
    except OSError:
        return False


def done(run: Run, status: int) -> wire.Frame:
    """The frame that says how the run ended, whose child has the status."""
    exited = os.WIFEXITED(status)
    code = os.WEXITSTATUS(status) if exited else 0
    number = 0 if exited else os.WTERMSIG(status)
    killed = run.killed if number == signal.SIGKILL else ""
    oom = max(0, watch.oom_kills() - run.oom_before) if status != 0 else 0
    # What the process of a sandbox says that its status would be is its own word.
    more = {"signal": number, "killed": killed, "oom": oom, "told": run.alive}
    wait = {"exited": exited, "status": code, **{name: value for name, value in more.items() if value}}
    frame: wire.Frame = {"type": "done", "id": run.id, "ok": exited and code == 0}
    frame["durationMs"] = round((time.monotonic() - run.began) * 1000, 3)
    frame["wait"] = wait
    if run.imported:
        frame["imported"] = run.imported
    if killed:
        frame["error"] = {"code": _WHY[killed][0], "message": run.because or _WHY[killed][1]}
    elif number == signal.SIGKILL and oom:
        frame["error"] = {"code": "memory_limit", "message": "the kernel killed the code when memory ended"}
    elif exited and code in (0, RAISED) and run.claim:
        # It can make a failure of a success, as when an exit handler ends the code with 0.
        frame["ok"] = False
        frame["error"] = run.claim
    elif not run.warm and not run.job:
        why = f"the guest failed before it ran the code: {_told(status)}"
        frame["error"] = {"code": "internal_error", "message": why}
    elif exited and run.broken:
        frame["error"] = {"code": "internal_error", "message": _BROKEN}
    elif not frame["ok"]:
        frame["error"] = {"code": "runtime_error", "message": f"the code ended with {_told(status)}"}
    return frame


def _told(status: int) -> str:
    if os.WIFEXITED(status):
        return f"exit status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
