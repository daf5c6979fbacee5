"""What the supervisor knows of the one run it is for, and the frames that follow from that alone."""

from __future__ import annotations

import os
import signal
import time

from guest import mounts, watch, wire
from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guest.artifacts import Room
    from guest.confine import Confined
    from guest.rescue import Sandbox


class Stop(Exception):
    """The guest is to end now, with an exit status and a sentence for stderr."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Run:
    """The state of the run. Only the supervisor's loop changes it."""

    def __init__(self, child: int, own: Confined, to_host: wire.Outbox, to_child: wire.Outbox) -> None:
        self.child = child
        self.to_host = to_host
        self.to_child = to_child
        self.ready = False  # that was sent
        self.sandbox: Sandbox | None = None  # of a guest whose variables are kept for further runs
        self.files: set[str] = set()  # names of those that came before the execute
        self.files_of = ""  # the id of the run that they are for
        self.files_failed = ""  # why they couldn't be written
        self.watch = (0, 0)  # bounds of Watch: bytes, processes
        self._filtered, self._note = own  # what confine says of it
        self.again()

    def again(self) -> None:
        """Begins with what the first run begins with, or one that comes after another."""
        self.id = ""
        self.cancelled_id: str | None = None  # of a cancel that came before its execute
        self.asked = False  # execute came
        self.warm = False  # the child is ready to run code
        self.running = False  # started was sent
        self.done = False  # done was sent
        # of the child, as waitpid gave it; of one whose variables are kept, what it says
        self.status: int | None = None
        self.alive = False  # the run is over, and the child is not
        self.order: wire.Frame | None = None  # what is to be done in a sandbox, until it is begun
        self.line = b""  # the order as it came
        self.job = 0  # the process that does it
        self.killed = ""  # why the supervisor killed the child
        self.because = ""  # the same for a person, where killed alone doesn't say it
        self.claim: wire.Frame | None = None  # what the child says of its own error
        self.imported: list[str] = []  # packages of the environment, as the child says
        self.broken = False  # the child says that the guest's own part of it has failed
        # ids that wait for a result: whether the code has cancelled the call
        self.calls: dict[str, bool] = {}
        self.held: dict[str, bytes] = {}  # calls that wait until there are fewer of those
        self.held_size = 0
        self.received = 0  # bytes of results and progress from the host
        self.told_taken = 0  # of them, those the host knows to be taken
        self.last_call = 0  # the highest id so far: ids only rise, so none is used twice
        self.began = 0.0
        self.quiet = 0  # bytes that wait for the host with the word that the code has begun
        self.file_limit = 0  # bytes of all files that are handed over
        self._room: Room | None = None
        self.oom_before = watch.oom_kills()

    def send(self, frame: wire.Frame) -> None:
        self.to_host.push(wire.encode(frame))

    def call(self, call: str, line: bytes) -> None:
        """Sends a call, or holds it until fewer wait for their result."""
        if len(self.calls) < wire.MAX_CALLS and not self.held:
            self.calls[call] = False
            self.to_host.push(line)
        else:
            self.held[call] = line
            self.held_size += len(line)

    def settle(self, call: str) -> bool:
        """Sends a held call in the place of an answered one, and returns whether call was waiting."""
        if self.calls.pop(call, None) is None:
            return False
        if self.held and self.running and self.status is None:
            following = next(iter(self.held))
            self.calls[following] = False
            self.to_host.push(self._release(following))
        return True

    def cancel(self, call: str) -> None:
        """Tells the host once, if it knows the call, that its result isn't wanted any more."""
        if call in self.held:
            self._release(call)
        elif self.calls.get(call) is False:
            self.calls[call] = True
            self.send({"type": "tool_cancel", "callId": call})

    def _release(self, call: str) -> bytes:
        line = self.held.pop(call)
        self.held_size -= len(line)
        return line

    def output(self, stream: str, text: str) -> None:
        self.send({"type": "output", "id": self.id, "stream": stream, "text": text})

    @property
    def room(self) -> Room:
        """What the run may still hand over."""
        if self._room is None:
            from guest.artifacts import DEFAULT_LIMIT, Room  # few runs hand anything over

            self._room = Room(self.file_limit or DEFAULT_LIMIT)
        return self._room

    def artifact(self, frame: wire.Frame) -> None:
        self.send({"type": "artifact", "id": self.id, **frame})

    def tell_taken(self) -> None:
        """Tells the host what the child has taken of its results, so that it may send more."""
        taken = self.received - self.to_child.size  # or less, when there are answers of our own among them
        if taken - self.told_taken >= wire.TAKEN and not self.done:
            self.told_taken = taken
            self.send({"type": "taken", "id": self.id, "bytes": taken})

    def warmed(self, failed: list[str]) -> None:
        """Sends ready, with the names of what could not be imported ahead."""
        if not self.ready:
            self.ready = self.warm = True
            ready: wire.Frame = {"type": "ready", "protocol": wire.PROTOCOL, "seccomp": self._filtered}
            if self._note:
                ready["note"] = self._note
            if failed:
                ready["failed"] = failed
            if extra := mounts.look() if os.getpid() == 1 else []:
                ready["extra"] = extra
            self.send(ready)
            self.begin()

    def begin(self, regardless: bool = False) -> None:
        """Sends started once there is an execute and a warm child, or regardless one that is dead."""
        if self.asked and (self.warm or regardless) and not self.running:
            self.running = True
            self.began = time.monotonic()
            self.send({"type": "started", "id": self.id})
            self.quiet = self.to_host.size

    def bound(self, options: wire.Frame) -> None:
        """Takes the bounds of files and of Watch from options."""
        limit = options.get("maxArtifactBytes")
        self.file_limit = limit if isinstance(limit, int) and limit > 0 else 0
        bounds = options.get("watch") or {}
        self.watch = (bounds.get("memoryBytes", 0), bounds.get("processes", 0))

    def kill(self, reason: str, because: str = "") -> None:
        """Ends the child and all that it started, if there is a reason; the first one counts."""
        if reason and self.status is None and not self.killed:
            self.killed, self.because = reason, because
            if self.sandbox:
                self.sandbox.kill()
            else:
                kill_all(self.child)


def kill_all(child: int, collected: bool = False, by: int = signal.SIGKILL) -> None:
    """Kills, or stops, all other processes of the container; the child's group if this isn't pid 1.

    A child that waitpid has collected isn't killed again: its number may be another's by now.
    """
    try:
        if os.getpid() == 1:
            os.kill(-1, by)
        else:
            os.killpg(child, by)
    except OSError:  # nothing left, or the child has no group of its own yet
        if not collected:
            os.kill(child, by)
