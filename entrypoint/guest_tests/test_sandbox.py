"""Runs that keep their variables: which process has them, and what survives when one ends badly."""

from __future__ import annotations

import os
import time
import unittest
from typing import Any

from guest_tests.host import Frame, Guest, Ran


here = unittest.skipIf(os.environ.get("GUEST_UNDER"), "looks at what is on this machine")


class Sandbox:
    """Calls of one guest. Use it in a with statement."""

    def __init__(self, changed: dict[str, tuple[str, str]] | None = None, **options: Any) -> None:
        self.guest = Guest(changed)
        self._options, self._calls = options, 0

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *error: Any) -> None:
        self.guest.__exit__(*error)

    def order(self, **frame: Any) -> Ran:
        """Sends a frame and takes what comes up to its done."""
        self._calls += 1
        self.guest.send({"id": f"run-{self._calls}", **frame})
        return Ran(self.guest.until("done"))

    def begin(self, code: str, **options: Any) -> str:
        """Sends an execute, and waits until the code runs."""
        self._calls += 1
        execute: Frame = {"type": "execute", "id": f"run-{self._calls}", "code": code, "keep": True}
        self.guest.send({**execute, "options": {**self._options, **options}, "providers": []})
        self.guest.until("started")
        return str(execute["id"])

    def call(self, code: str, **options: Any) -> Ran:
        self.begin(code, **options)
        return Ran(self.guest.until("done"))

    def bad(self) -> Ran:
        """A call that is taken back."""
        return self.call("import os; os._exit(9)")


def state(ran: Ran) -> str:
    return str(ran.done["sandbox"]["state"])


class Sandboxes(unittest.TestCase):
    def test_what_goes_on_working_after_a_copy_has_taken_over(self) -> None:
        with Sandbox() as box:
            box.call(
                "import asyncio, random, threading\n"
                "from concurrent.futures import ThreadPoolExecutor\n"
                "pool = ThreadPoolExecutor(4)\n"
                "print(sum(pool.map(abs, range(-9, 0))))\n"
                "random.seed(7); first = random.random()\n"
                "lock = threading.Lock()\n"
                "loop = asyncio.new_event_loop(); loop.run_until_complete(asyncio.sleep(0))"
            )
            expected = box.call("import random as r; r.Random(7).random() == first").stdout
            self.assertEqual(expected, "True\n")
            self.assertEqual(state(box.bad()), "before")
            ran = box.call(
                "print(sum(pool.map(abs, range(-9, 0))), lock.acquire(timeout=5))\n"
                "other = random.Random(7); other.random()\n"
                "print(random.random() == other.random())\n"
                "import threading\n"
                "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
                "loop.run_until_complete(asyncio.sleep(0.01))\n"
                "async def all(*calls): return await asyncio.gather(*calls)\n"
                "asyncio.run(all(*[asyncio.to_thread(abs, -i) for i in range(3)]))"
            )
            self.assertEqual(ran.stdout, "45 True\nTrue\nthread\n[0, 1, 2]\n", ran.error)

    @here
    def test_nothing_runs_between_calls(self) -> None:
        spin = (
            "import os, threading\nn = 0\n"
            "def spin():\n    global n\n    while True: n += 1\n"
            "threading.Thread(target=spin, daemon=True).start()\n"
            "print(os.getpid())"
        )
        with Sandbox() as box:
            pid = int(box.call(spin).stdout)
            deadline = time.monotonic() + 20
            while _stat(pid)[0] != "T":  # until the copy is made
                self.assertLess(time.monotonic(), deadline, "it isn't stopped")
            before = _stat(pid)[11:13]
            time.sleep(0.5)  # the time in which nothing is to happen
            self.assertEqual(_stat(pid)[11:13], before)
            self.assertEqual(box.call("m = n\nimport time; time.sleep(0.05)\nn > m").stdout, "True\n")

    @here
    def test_processes_run_on_where_that_is_asked_for(self) -> None:
        with Sandbox(running=True) as box:
            code = "import subprocess, sys\np = subprocess.Popen(['yes'])\nprint(p.pid, file=sys.stderr)"
            pid = int(box.call(code).stderr)
            deadline = time.monotonic() + 60
            while _written(pid) < 1 << 20:  # a pipe that isn't read holds less
                self.assertLess(time.monotonic(), deadline, "it doesn't run")
                box.guest.send({"type": "ping", "n": 1})
                box.guest.until("pong")
            self.assertEqual(state(box.bad()), "before")
            self.assertNotIn(_stat(pid)[0], "ZXT")  # it is older than the bad call, and runs on

    def test_variables_that_are_too_large_for_a_copy(self) -> None:
        with Sandbox(memoryLimitBytes=64 << 20) as box:
            ran = box.call("x = bytearray(40 << 20)")  # the copy of before has none of it
            self.assertRegex(ran.done["sandbox"]["noWayBack"], r"^variables take \d\d of 64 MiB$")
            self.assertEqual(state(box.bad()), "lost")
            self.assertEqual(box.guest.status(), 0)

    def test_a_copy_that_cannot_be_made(self) -> None:
        with Sandbox() as box:
            hang = "def hang():\n    while True: pass\n"
            ran = box.call(f"import os\n{hang}os.register_at_fork(after_in_child=hang)")
            self.assertEqual(ran.done["sandbox"]["noWayBack"], "the copies of its process don't get ready")
            begun = time.monotonic()
            self.assertEqual(state(box.call("pass")), "kept")
            self.assertLess(time.monotonic() - begun, 5, "another copy was waited for")
            self.assertEqual(state(box.bad()), "lost")

    def test_a_copy_that_the_code_ends(self) -> None:
        with Sandbox() as box:
            box.call("x = 1")
            ran = box.call(
                "import os\nme = os.getpid()\n"
                "for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):\n"
                "    try:\n"
                "        parent = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
                "        if parent == me: os.kill(pid, 9)\n"
                "    except OSError: pass\n"
                "os._exit(1)"
            )
            self.assertEqual(state(ran), "lost")

    def test_signals_to_the_group_of_the_code(self) -> None:
        with Sandbox() as box:
            box.call("x = 1")
            self.assertEqual(state(box.call("import os; os.killpg(0, 15)")), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_forks_of_the_code_end_with_it(self) -> None:
        ends = {"pass": 0, "raise ValueError": 1, "raise SystemExit(3)": 3}
        ends["import atexit; atexit.register(os._exit, 4)"] = 4
        with Sandbox() as box:
            for how, status in ends.items():
                code = f"import os\npid = os.fork()\nif not pid: {how}\n"
                code += "else: print(os.waitpid(pid, 0)[1] >> 8)"
                ran = box.call(code)
                self.assertEqual((ran.stdout, state(ran), ran.error), (f"{status}\n", "kept", {}))
            self.assertEqual(box.call("how = 1; how").stdout, "1\n")
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("how").stdout, "1\n")

    def test_a_forged_copy(self) -> None:
        forge = (
            "import os\nfor fd in range(64, 72):\n"
            "    try: os.write(fd, b'%s\\n')\n    except OSError: pass\n"
        )
        with Sandbox() as box:
            box.call("x = 1")
            for line in ('{"type":"spare","pid":1}', '{"type":"took","key":""}', '{"type":"warm"}'):
                box.call(forge % line)
                self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_calls_without_an_answer_end_with_their_run(self) -> None:
        with Sandbox() as box:
            code = (
                "import threading\n"
                "def ask():\n    global error\n"
                "    try: runtime.load_server('x')\n    except Exception as e: error = e\n"
                "thread = threading.Thread(target=ask); thread.start()\n"
                "import time; time.sleep(0.1)"
            )
            box.call(code)
            self.assertIn("has ended", box.call("thread.join(); str(error)").stdout)

    def test_names_of_servers_are_of_a_call(self) -> None:
        with Sandbox() as box:
            box.begin("pass")
            box.guest.until("done")
            tea: Frame = {"name": "tea", "alias": "tea", "description": "", "tools": {}}
            frame = {"type": "execute", "code": "mcp_tea\nimport mcp_tea as m", "keep": True, "options": {}}
            self.assertEqual(box.order(**frame, providers=[tea]).error, {})
            self.assertEqual(box.call("mcp_tea").error["type"], "NameError")
            self.assertEqual(box.call("import mcp_tea").error["type"], "ModuleNotFoundError")

    @here
    def test_a_call_that_ends_its_process_without_an_error(self) -> None:
        with Sandbox() as box:
            for code in ("import os; os._exit(0)", "import os; os.closerange(3, 200)"):
                with self.subTest(code):
                    ran = box.call(code)
                    self.assertEqual((ran.done["ok"], state(ran)), (True, "before"))
                    self.assertRegex(ran.done["sandbox"]["reason"], "os._exit, or closed the descriptors")

    def test_input_after_exit(self) -> None:
        with Sandbox() as box:
            box.call("import sys; sys.stdin.close(); exit()")
            for _ in range(2):
                self.assertIn("write the value into the code", (box.call("input()").error or {})["message"])

    def test_hints_know_of_the_sandbox(self) -> None:
        names = ("zzzzqqqq", "zzzz_qqqq(1)", "save_tool(print)", "runtime.save_tool", "open('data.csv')")
        for code in names:
            plain, offered = Guest(), Guest()
            with self.subTest(code), Sandbox() as box, plain, offered:
                said = str((box.call(f"from mcp import runtime\n{code}").error or {})["message"])
                self.assertIn("sandbox", said)
                self.assertNotRegex(said, "nothing is kept|argument")
                for guest, options in ((plain, {}), (offered, {"sandboxes": True})):
                    guest.execute(f"from mcp import runtime\n{code}", **options)
                    said = str((Ran(guest.until("done")).error or {})["message"])
                    self.assertIn("nothing is kept between", said)
                    remedy = 'unless they have the argument sandbox ("new", or the id from a result)'
                    self.assertEqual(remedy in said, bool(options), said)

    def test_many_calls_leave_nothing(self) -> None:
        with Sandbox() as box:
            pid = int(box.call("import os; os.getpid()").stdout)
            for _ in range(200):
                box.call("1 + 1")
            before = _resident(pid)
            for _ in range(500):
                self.assertEqual(box.call("1 + 1").stdout, "2\n")
            self.assertLess(_resident(pid) - before, 1 << 20)
            self.assertLess(len(os.listdir(f"/proc/{pid}/fd")), 20)
            children = [p for p in os.listdir("/proc") if p.isdigit() and _stat(int(p))[1:2] == [str(pid)]]
            self.assertLess(len(children), 6)  # two copies, and those that have just been ended


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _written(pid: int) -> int:
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return int(file.read().partition("wchar: ")[2].split()[0])


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
    return int(fields["Rss"].split()[0]) * 1024
