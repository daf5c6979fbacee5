"""How runs end, and what is said of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import unittest

from guest import wire
from guest_tests.host import PATIENCE, Frame, Guest, Ran, run

# Forks a process that the kernel sends SIGCONT when its pipe is read, and that floods the link.
LEFT_TO_ITSELF = """
import fcntl, os, signal, sys
link = max(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))
left = os.fork()
if left == 0:
    fcntl.fcntl(1, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(1, 10, signal.SIGCONT)  # F_SETSIG
    fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_ASYNC)
    while True:
        try: os.write(link, b'{}\\n' * 1000)
        except OSError: pass
"""


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie, which is its parent's to collect.

    In a namespace of its own its number says nothing here; but there nothing outlives the first
    process, whose end has been seen.
    """
    if os.environ.get("GUEST_UNDER"):
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Ending(unittest.TestCase):
    def test_statuses(self) -> None:
        for code, status in {
            "pass": 0,
            "import sys; sys.exit()": 0,
            "import sys; sys.exit(0)": 0,
            "import sys; sys.exit(3)": 3,
            "raise SystemExit(257)": 1,
            "import os; os._exit(4)": 4,
            "import sys, asyncio\nawait asyncio.sleep(0)\nsys.exit(5)": 5,
        }.items():
            with self.subTest(code):
                ran = run(code)
                self.assertEqual(ran.wait, {"exited": True, "status": status})
                self.assertEqual(ran.ok, status == 0)
                self.assertEqual(ran.error.get("type"), None)
                self.assertEqual("error" in ran.done, status != 0)

    def test_the_guest_ends_whether_the_host_hangs_up_or_not(self) -> None:
        """It waits a second for the host to do so, with whatever the host still says."""
        for still in (b"", b'{"type":"ping","n":7}\n', b"no frame\n"):
            with self.subTest(still), Guest() as guest:
                guest.execute("pass")
                guest.until("done")
                guest.raw(still)
                self.assertEqual(guest.process.wait(PATIENCE), wire.EXIT_OK)
        with Guest() as guest:
            guest.execute("pass")
            guest.until("done")
            guest.close()
            self.assertEqual(guest.status(), wire.EXIT_OK)

    def test_the_guest_lingers_until_the_host_hangs_up(self) -> None:
        """An engine may lose what a busy host has yet to read when the container ends."""
        with Guest({"loop": ("ALONE = 1.0", "ALONE = 20.0")}) as guest:
            guest.execute("pass")
            guest.until("done")
            with self.assertRaises(subprocess.TimeoutExpired):
                guest.process.wait(0.2)
            guest.close()
            self.assertEqual(guest.status(), wire.EXIT_OK)

    @unittest.skipIf(os.environ.get("GUEST_UNDER"), "looks at what is on this machine")
    def test_nothing_of_the_run_is_left_while_it_lingers(self) -> None:
        """Even what has itself continued: it would run without any limit."""
        code = LEFT_TO_ITSELF + "print('pid', left, file=sys.stderr, flush=True)\nprint('x' * 1000)"
        with Guest({"loop": ("ALONE = 1.0", "ALONE = 60.0")}) as guest:
            guest.execute(code)
            pid = int(Ran(guest.until("done")).stderr.split()[1])
            end = time.monotonic() + PATIENCE
            while _runs(pid) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(_runs(pid))
            self.assertIsNone(guest.process.poll(), "it doesn't linger")

    def test_what_is_left_running_is_stopped_before_the_end_is_told_and_killed_after(self) -> None:
        """Another program, which writes on and on: none of it comes behind done, and nothing of it
        is left.
        """
        code = (
            "import subprocess, sys\n"
            "left = subprocess.Popen([sys.executable, '-c', 'while True: print(1, flush=True)'], "
            "stderr=subprocess.DEVNULL)\n"
            "print('pid', left.pid, file=sys.stderr, flush=True)"
        )
        with Guest() as guest:
            guest.execute(code)
            frames = guest.until("done")
            self.assert_gone(guest, frames)

    def assert_gone(self, guest: Guest, frames: list[Frame]) -> None:
        pid = int(Ran(frames).stderr.split()[1])
        self.assertIsNone(guest.read())
        self.assertEqual(guest.status(), wire.EXIT_OK)
        end = time.monotonic() + PATIENCE
        while _runs(pid) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(_runs(pid))

    def test_what_has_itself_continued_is_killed_all_the_same(self) -> None:
        """The kernel sends it SIGCONT when the supervisor reads its pipe; it floods the link then,
        and is not listened to for long.
        """
        code = LEFT_TO_ITSELF + "print('pid', left, file=sys.stderr, flush=True)\nprint('x' * 1000)"
        for watch in ({}, {"memoryBytes": 1 << 30, "processes": 100}):
            with self.subTest(watch=watch), Guest() as guest:
                guest.execute(code, watch=watch)
                frames = guest.until("done")
                self.assertTrue(frames[-1]["ok"], frames[-1])
                self.assert_gone(guest, frames)

    def test_the_word_that_the_code_has_begun_needs_nothing_behind_it(self) -> None:
        with Guest() as guest:
            guest.execute("import time\ntime.sleep(1000)")
            self.assertEqual(guest.until("started")[-1]["type"], "started")

    def test_exit_with_text(self) -> None:
        ran = run("import sys; sys.exit('no such thing')")
        self.assertEqual((ran.wait["status"], ran.stderr), (1, "no such thing\n"))
        self.assertNotIn("type", ran.error)

    def test_signals(self) -> None:
        for code, number in {
            "import os; os.kill(os.getpid(), 9)": signal.SIGKILL,
            "import os; os.abort()": signal.SIGABRT,
            "print('before', end=''); import ctypes; ctypes.string_at(0)": signal.SIGSEGV,
        }.items():
            with self.subTest(code):
                ran = run(code)
                self.assertEqual(ran.wait, {"exited": False, "status": 0, "signal": number})
                self.assertFalse(ran.ok)
                self.assertIn(number.name, ran.error["message"])

    def test_what_was_printed_before_a_crash_is_kept(self) -> None:
        for end in (
            "import os; os._exit(0)",
            "import os; os.kill(os.getpid(), 9)",
            "import ctypes; ctypes.string_at(0)",
        ):
            with self.subTest(end):
                self.assertEqual(run(f"print('before', end='')\n{end}").stdout, "before")

    def test_threads_and_exit_handlers_end_first(self) -> None:
        ran = run(
            "import atexit, threading, time\n"
            "atexit.register(print, 'handler')\n"
            "def late():\n    time.sleep(0.2)\n    print('thread')\n"
            "threading.Thread(target=late).start()\n"
            "print('code')"
        )
        self.assertEqual(ran.stdout, "code\nthread\nhandler\n")

    def test_threads_do_not_hold_back_an_error(self) -> None:
        for code, names in (
            (
                "import threading\nthreading.Thread(target=time.sleep, args=(1000,), name='slow').start()\n"
                "1/0",
                "slow",
            ),
            (
                "ex = ThreadPoolExecutor(1, 'pool')\nfs = [ex.submit(time.sleep, 1000), ex.submit(int)]\n1/0",
                "pool_0",
            ),
            ("ex = ThreadPoolExecutor(2)\nfs = ex.submit(int)\n1/0", ""),
            (
                "import threading\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
                "1/0",
                "",
            ),
        ):
            with self.subTest(code):
                imports = "import time, atexit\nfrom concurrent.futures import ThreadPoolExecutor\n"
                ran = run(f"{imports}atexit.register(print, 'handler')\n{code}")
                said = f"[still running 0.5 s after the error, and ended: {names}]\n" if names else ""
                self.assertEqual(
                    (ran.error["type"], ran.stdout, ran.stderr), ("ZeroDivisionError", "handler\n", said)
                )

    def test_what_is_left_running_is_killed(self) -> None:
        ran = run("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('started')")
        self.assertEqual((ran.ok, ran.stdout), (True, "started\n"))

    def test_a_fork_that_goes_on_is_no_second_run(self) -> None:
        ran = run(
            "import os\nif os.fork():\n    os.wait()\nelse:\n    raise ValueError('in the fork')\n"
            "print('parent')"
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "parent\n"))


class Cancelling(unittest.TestCase):
    def test_while_it_runs(self) -> None:
        for code in (
            "while True: pass",
            "import time; time.sleep(1000)",
            "import signal\nsignal.pthread_sigmask(0, range(1, 65))\nwhile 1: pass",
        ):
            with self.subTest(code), Guest() as guest:
                guest.execute("print('begun', flush=True)\n" + code)
                guest.until("output")
                guest.send({"type": "cancel", "id": "another"})
                guest.send({"type": "cancel", "id": "run-1"})
                ran = Ran(guest.until("done"))
                self.assertEqual(ran.wait, {"exited": False, "status": 0, "signal": 9, "killed": "cancel"})
                self.assertEqual(ran.error["code"], "cancelled")
                self.assertEqual(guest.status(), 0)

    def test_before_it_runs(self) -> None:
        with Guest() as guest:
            guest.send({"type": "cancel", "id": "run-1"})
            guest.execute("print('never')")
            ran = Ran(guest.until("done"))
            self.assertEqual([f["type"] for f in ran.frames if f["type"] != "ready"], ["started", "done"])
            self.assertEqual(ran.wait["killed"], "cancel")


class Failing(unittest.TestCase):
    """What is said when the guest itself fails."""

    def test_while_it_waits(self) -> None:
        with Guest({"child": ("    streams.install()", "    raise OSError('no streams')")}) as guest:
            self.assertIsNone(guest.read())
            self.assertEqual(guest.status(), 70)
            errors = guest.errors()
            self.assertIn('File "<guest>/child.py"', errors)
            self.assertIn("raise OSError('no streams')", errors)
            self.assertIn("ended before there was any: exit status 70", errors)

    def test_with_code_to_run(self) -> None:
        with Guest({"child": ("    streams.install()", "    import time; time.sleep(0.3); 1/0")}) as guest:
            guest.execute("print('never')")
            ran = Ran(guest.until("done"))
            self.assertEqual([frame["type"] for frame in ran.frames], ["started", "output", "done"])
            self.assertEqual((ran.error["code"], ran.stdout), ("internal_error", ""))
            self.assertIn("ZeroDivisionError", ran.stderr)

    @unittest.skipIf(os.environ.get("GUEST_UNDER"), "kills by a number of this machine's")
    def test_a_supervisor_that_is_killed_takes_the_code_along(self) -> None:
        with Guest() as guest:
            guest.execute("import os\nprint(os.getpid())\nwhile True: pass")
            child = int(guest.until("output")[-1]["text"])
            guest.process.kill()
            guest.drain()
            end = time.monotonic() + 30
            while os.path.exists(f"/proc/{child}") and time.monotonic() < end:
                time.sleep(0.01)  # between two looks
            self.assertFalse(os.path.exists(f"/proc/{child}"))

    def test_the_supervisor(self) -> None:
        with Guest({"host": ("def feed(self", "def fed(self")}) as guest:
            guest.execute("while True: pass")
            guest.drain()
            self.assertEqual(guest.status(), 70)
            self.assertIn("AttributeError", guest.errors())


class Host(unittest.TestCase):
    def test_gone(self) -> None:
        for code in (None, "while True: pass", "while True: print('x' * 1000)"):
            with self.subTest(code), Guest() as guest:
                if code:
                    guest.execute(code)
                    guest.until("started")
                guest.close()
                guest.drain()
                self.assertEqual(guest.status(), 66)

    @unittest.skipIf(os.environ.get("GUEST_UNDER"), "the status is the engine's own then")
    def test_reads_no_more(self) -> None:
        with Guest() as guest:
            guest.execute("while True: print('x' * 1000)")
            guest.until("output")
            assert guest.process.stdout
            guest.process.stdout.close()
            self.assertEqual(guest.status(), 66)

    def test_silent(self) -> None:
        with Guest({"wire": ("SILENCE = 20.0", "SILENCE = 0.5")}) as guest:
            guest.until("ready")
            self.assertIsNone(guest.read())
            self.assertEqual(guest.status(), 67)
            self.assertIn("nothing heard", guest.errors())

    def test_a_ping_is_answered_before_the_execute_behind_it(self) -> None:
        with Guest() as guest:
            guest.until("ready")
            guest.raw(b'{"type":"ping","n":7}\n{"type":"execute","id":"run-1","code":"","options":{}}\n')
            self.assertEqual([frame["type"] for frame in guest.until("started")], ["pong", "started"])
            guest.until("done")

    def test_pings_are_answered_while_the_code_is_busy(self) -> None:
        with Guest({"wire": ("SILENCE = 20.0", "SILENCE = 0.5")}) as guest:
            guest.execute("import re; re.match('(a*)*b', 'a' * 28)")
            for n in range(4):
                guest.send({"type": "ping", "n": n})
                self.assertEqual(guest.until("pong")[-1], {"type": "pong", "n": n})
                with self.assertRaises(TimeoutError):
                    while True:
                        guest.read(0.3)

    def test_frames_that_stop_the_guest(self) -> None:
        execute = b'{"type":"execute","id":"run-1","code":"while 1: pass","options":{},"providers":[]}\n'
        for name, data in {
            "unknown type": b'{"type":"grease-4f2a"}\n',
            "no type": b"{}\n",
            "no JSON": b"hello\n",
            "no object": b"[1]\n",
            "NaN": b'{"type":"ping","n":NaN}\n',
            "bad UTF-8": b'{"type":"cancel","id":"\xff"}\n',
            "deeply nested": b'{"type":' + b"[" * 100_000 + b"\n",
            "too long": b'{"type":"cancel","id":"' + b"x" * (16 << 20) + b'"}\n',
            "second execute": execute + execute,
            "no code": b'{"type":"execute","id":"run-1","options":{},"providers":[]}\n',
        }.items():
            with self.subTest(name), Guest() as guest:
                guest.until("ready")
                try:
                    guest.raw(data)
                except BrokenPipeError:
                    pass
                guest.drain()
                self.assertEqual(guest.status(), 65)
                self.assertIn("mcp-bridge guest: the host sent", guest.errors())
