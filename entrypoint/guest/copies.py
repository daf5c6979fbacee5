"""The copies that the process of a sandbox makes of itself: which are of use, and why there isn't one."""

from __future__ import annotations

import errno
import os

from guest import processes, watch, wire
from guest.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guest.run import Run

LARGE = 0.4  # of the memory limit: with more, there is no room for a second copy of the variables
AGAIN = "again: if the code waits for a library whose threads are gone, it waits forever; start a new sandbox"
FEW = 4  # calls after which another copy is tried where one didn't get ready, then twice as many


class Copies:
    """What the supervisor knows of them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.limit = 0  # bytes of memory
        self.unfit: list[str] = []  # libraries that don't survive a fork
        self.why = "no code had run"  # there is no copy, for a person
        self._without = 0  # calls until another one is made, since the last one didn't get ready
        self._rest = FEW  # how many they are
        self._stopped = 0  # calls in a row that didn't end by themselves

    def count(self) -> None:
        """Counts a call among those that have no copy since an earlier one didn't get ready."""
        self._without = max(0, self._without - 1)

    def forget(self) -> None:
        """Forgets what was true of the process that had the variables until now."""
        self.unfit, self._without = [], 0

    def stopped(self, run: Run) -> str:
        """Counts the calls in a row that were stopped, and returns what is to be said of more than one.

        A library that isn't among UNFIT may wait for its threads in each process that has taken over.
        The variables are kept all the same: the code of two such calls can be slow by itself.
        """
        if not run.job:
            self._stopped = self._stopped + 1 if run.killed == "cancel" else 0
        return AGAIN if self._stopped > 1 else ""

    def looked_at(self, frame: wire.Frame, others: tuple[int, ...]) -> int:
        """Returns the number of a copy that is one, as far as can be seen; otherwise 0, and has why.

        frame is what the process says of it, and others are copies that there are already.
        """
        pid, number = frame.get("pid"), frame.get("errno")
        if type(pid) is int and pid not in (self._run.child, *others):
            if processes.is_copy(pid, self._run.child):
                self.why, self._rest = "", FEW
                return pid
            self.drop(frame, others)
        if "pid" in frame:
            self.why = "what its process has made is no copy that waits"
        elif number == errno.EAGAIN:
            self.why = "its processes and threads are as many as there may be; end some, or join threads"
        elif type(number) is int and number in errno.errorcode:
            self.why = f"no copy of its process could be made: {os.strerror(number)}"
        else:
            self.why = self.no_use or "its process has made none"
        return 0

    def drop(self, frame: wire.Frame, others: tuple[int, ...]) -> None:
        """Ends a copy that no one waits for, unless it is one of the others."""
        pid = frame.get("pid")
        if type(pid) is int and pid not in others and processes.parent(pid) == self._run.child:
            processes.kill(pid)

    def late(self, frame: wire.Frame, others: tuple[int, ...]) -> None:
        """Ends a copy that doesn't come to wait. Some of the next calls have none: it would hold them up."""
        self.drop(frame, others)
        self._without, self._rest = self._rest, 2 * self._rest

    @property
    def no_use(self) -> str:
        """Why a copy would be of no use, for a person."""
        if self._without:
            return "the copies of its process don't get ready"
        if self.unfit:
            return f"{' and '.join(self.unfit[:3])} doesn't survive it"
        if self.limit and (used := watch.used_by(self._run.child)) > LARGE * self.limit:
            return f"variables take {used >> 20} of {self.limit >> 20} MiB"
        return ""
