"""Ending before the memory is freed."""

from __future__ import annotations

import os
import select
import signal
import unittest
from collections.abc import Callable

from guest.fastexit import FastExit
from guest_tests.host import PATIENCE, run

MIB = 1 << 20


class Ending(unittest.TestCase):
    def ended(self, body: Callable[[], object]) -> tuple[int, int]:
        """Runs body in a fork until it has ended.

        Gives its process group and a pipe that ends when no process has its open files.
        """
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.close(reads)
                body()
            finally:
                os._exit(7)
        os.close(writes)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
        return pid, reads

    def assert_ends(self, reads: int) -> None:
        self.assertTrue(select.select([reads], [], [], PATIENCE)[0])
        self.assertEqual(os.read(reads, 1), b"")
        os.close(reads)

    def test_the_other_process_is_there_when_the_process_has_ended_and_can_be_killed(self) -> None:
        group, reads = self.ended(lambda: FastExit().prepare())
        os.killpg(group, signal.SIGKILL)  # fails if there isn't one
        self.assert_ends(reads)

    def test_the_other_process_ends_by_itself(self) -> None:
        self.assert_ends(self.ended(lambda: FastExit().prepare())[1])

    def test_a_fork_starts_none(self) -> None:
        fast = FastExit()
        group, reads = self.ended(fast.prepare)
        with self.assertRaises(ProcessLookupError):
            os.killpg(group, 0)
        self.assert_ends(reads)

    def test_the_code_sees_none(self) -> None:
        ran = run(
            "import atexit, os\n"
            "def children():\n"
            "    try: os.waitpid(-1, os.WNOHANG)\n"
            "    except ChildProcessError: print('none')\n"
            "atexit.register(children)\nchildren()"
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "none\nnone\n"))


class Watched(unittest.TestCase):
    def test_what_is_inherited_counts_once(self) -> None:
        """The child is held up just then, for the look at its memory to come; it would be above the
        bound with the other process.
        """
        held_up = ("fast.prepare()\n", "fast.prepare()\n        import time\n        time.sleep(0.5)\n")
        changed = {"child": held_up, "loop": ("ENDING = 5", f"ENDING = {PATIENCE * 1000:.0f}")}
        ran = run("x = b'x' * (100 << 20)", changed=changed, watch={"memoryBytes": 200 * MIB})
        self.assertEqual((ran.ok, ran.wait), (True, {"exited": True, "status": 0}))


if __name__ == "__main__":
    unittest.main()
