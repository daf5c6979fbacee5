"""Runs that keep their variables: which process has them, and what survives when one ends badly."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from typing import Any

from guest import processes
from guest_tests.host import PATIENCE, Frame, Guest, Ran, provider

here = unittest.skipIf(os.environ.get("GUEST_UNDER"), "looks at what is on this machine")


class Sandbox:
    """Calls of one guest. Use it in a with statement."""

    def __init__(
        self,
        changed: dict[str, tuple[str, str]] | None = None,
        python: str = sys.executable,
        order: Frame | None = None,
        **options: Any,
    ) -> None:
        self.guest = Guest(changed, python, order=order)
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

    def settle(self) -> None:
        """Waits until the process has copied itself: what is asked for next comes after that."""
        self.order(type="files", op="list", path="/")

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

    def test_processes_of_earlier_calls_run_in_each_command(self) -> None:
        with Sandbox() as box:
            pid = box.call("import subprocess\nsubprocess.Popen(['sleep', '600']).pid").stdout.strip()
            for _ in range(3):
                ran = box.order(type="exec", command=f"cat /proc/{pid}/stat", options={})
                self.assertNotIn(ran.stdout.rpartition(")")[2].split()[0], "ZXT")

    def test_processes_that_run_on_outlive_each_bad_call(self) -> None:
        begin = (
            "import os, subprocess\n"
            "one = subprocess.Popen(['sh', '-c', 'while :; do sleep 0.01; done']).pid\n"
            "two = subprocess.Popen(['sleep', '600'], preexec_fn=os.setpgrp).pid\n"
            "def look():\n"
            "    for pid in one, two: print(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0])"
        )
        with Sandbox(running=True) as box:
            box.call(begin)
            for _ in range(3):
                self.assertEqual(state(box.bad()), "before")
            self.assertRegex(box.call("look()").stdout, r"^[RSD]\n[RSD]\n$")
            run = box.begin("while True: pass")
            box.guest.send({"type": "cancel", "id": run})
            self.assertEqual(state(Ran(box.guest.until("done"))), "before")
            self.assertRegex(box.call("look()").stdout, r"^[RSD]\n[RSD]\n$")
            box.call("for pid in one, two: os.kill(pid, 9)")

    @here
    def test_processes_that_run_on_after_a_cancelled_command(self) -> None:
        with Sandbox(running=True) as box:
            pid = int(box.call("import subprocess; subprocess.Popen(['sleep', '600']).pid").stdout)
            self.addCleanup(processes.send, pid, signal.SIGKILL)
            command: Frame = {"type": "exec", "id": "a", "command": "exec sleep 600"}
            box.guest.send({**command, "options": {"running": True}})
            box.guest.until("started")
            box.guest.send({"type": "cancel", "id": "a"})
            self.assertEqual(state(Ran(box.guest.until("done"))), "kept")
            self.assertNotIn(_stat(pid)[0], "ZXT")

    @here
    def test_what_processes_that_run_on_begin(self) -> None:
        """A process that one of an earlier call begins isn't of the call under way."""
        begin = (
            "import os, subprocess\nr, w = os.pipe()\n"
            "p = subprocess.Popen(['sh', '-c', 'read line; sleep 600 & echo $! >&2; wait'], stdin=r)"
        )
        with Sandbox(running=True) as box:
            box.call(begin)
            run = box.begin("os.write(w, b'go\\n')\nwhile True: pass")
            pid = int(box.guest.until("output")[-1]["text"])
            self.addCleanup(processes.send, pid, signal.SIGKILL)
            box.guest.send({"type": "cancel", "id": run})
            self.assertEqual(state(Ran(box.guest.until("done"))), "before")
            self.assertNotIn(_stat(pid)[:1], ([], ["Z"], ["X"], ["T"]))

    @here
    def test_processes_that_run_on_at_a_limit(self) -> None:
        """It holds between calls and in a command, whichever call began the process that passes it."""
        bound: Frame = {"watch": {"memoryBytes": 150 << 20, "processes": 0}}
        grow = "import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)\nx = b'x' * (200 << 20)\n"
        for command in (False, True):
            with tempfile.TemporaryDirectory() as base:
                with self.subTest(command=command), Sandbox(running=True, **bound) as box:
                    code = f"import subprocess, sys\nx = {grow % (base + '/go') + 'time.sleep(600)'!r}\n"
                    pid = int(box.call(f"{code}subprocess.Popen([sys.executable, '-c', x]).pid").stdout)
                    self.addCleanup(processes.send, pid, signal.SIGKILL)
                    box.call("x = 1")
                    if command:
                        order: Frame = {"type": "exec", "id": "a", "command": "exec sleep 600"}
                        box.guest.send({**order, "options": {"running": True, **bound}})
                        box.guest.until("started")
                    os.mkdir(f"{base}/go")
                    if command:
                        ran = Ran(box.guest.until("done"))
                        self.assertEqual((ran.wait["killed"], state(ran)), ("memory", "kept"))
                    until(lambda pid=pid: not processes.alive(pid), box.guest)
                    ran = box.call("x")
                    self.assertEqual((ran.stdout, state(ran)), ("1\n", "kept"), ran.done)

    @here
    def test_what_processes_print_is_read_in_each_command(self) -> None:
        """Of earlier calls and commands, whether or not processes run on."""
        for running in (False, True):
            with self.subTest(running=running), Sandbox(running=running) as box:
                begin = "import subprocess, sys\nprint(subprocess.Popen(['yes']).pid, file=sys.stderr)"
                pids = [int(box.call(begin).stderr)]
                for _ in range(2):
                    ran = box.order(type="exec", command="yes & echo $! >&2", options={"running": running})
                    pids.append(int(ran.stderr))
                with tempfile.TemporaryDirectory() as base:
                    wait = f"while [ ! -e {base}/go ]; do sleep 0.05; done"
                    frame: Frame = {"type": "exec", "id": "a", "command": wait, "options": {}}
                    box.guest.send({**frame, "options": {"running": running}})
                    box.guest.until("started")
                    begun = [_written(pid) for pid in pids]
                    for pid, n in zip(pids, begun, strict=True):
                        until(lambda pid=pid, n=n: _written(pid) > n + (1 << 20), box.guest)
                    os.mkdir(f"{base}/go")
                    box.guest.until("done")
                box.call(f"import os\nfor pid in {pids}: os.kill(pid, 9)")

    @here
    def test_pipes_of_commands_are_bounded(self) -> None:
        with Sandbox(changed={"loop": ("MAX_LEFT = 64", "MAX_LEFT = 16")}, running=True) as box:
            box.call("pass")
            began, pids = _descriptors(box), []
            for _ in range(12):
                ran = box.order(type="exec", command="sleep 600 & echo $!", options={"running": True})
                pids.append(ran.stdout.strip())
                self.addCleanup(processes.send, int(ran.stdout), signal.SIGKILL)
            until(lambda: _descriptors(box) == began + 16, box.guest)
            box.order(type="exec", command=f"kill {' '.join(pids)}", options={"running": True})
            until(lambda: _descriptors(box) == began, box.guest)

    @here
    def test_pipes_that_all_processes_have_closed(self) -> None:
        """They are at their end for ever, and would keep the supervisor awake."""
        for running in (False, True):
            with self.subTest(running=running), Sandbox(running=running) as box:
                box.call("import gc, os\nfrom guest.streams import Kept")
                began = _descriptors(box)
                box.call("for one in gc.get_objects():\n    if type(one) is Kept: one._copies = [0, 1, 2]")
                for _ in range(2):  # what has copies of them has ended then, too
                    box.call("os.closerange(0, 64)")
                until(lambda box=box, began=began: _descriptors(box) == began - 2, box.guest)
                self.assertEqual(state(box.call("x = 1")), "kept")

    def test_a_process_that_cannot_be_started(self) -> None:
        fork = "        pid = os.fork()"
        fails = f"        if order['id'] != 'run-4': raise BlockingIOError(11, 'as many as it may')\n{fork}"
        with Sandbox(changed={"jobs": (fork, fails)}) as box:
            box.call("x = 1")
            for order in ({"type": "exec", "command": "true"}, {"type": "files", "op": "list", "path": "/"}):
                ran = box.order(**order, options={})
                self.assertEqual((ran.ok, ran.error["code"], state(ran)), (False, "internal_error", "kept"))
                self.assertIn("can't start a process (as many as it may)", ran.error["message"])
            self.assertEqual(box.order(type="exec", command="echo on", options={}).stdout, "on\n")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_variables_that_are_too_large_for_a_copy(self) -> None:
        with Sandbox(memoryLimitBytes=64 << 20) as box:
            ran = box.call("x = bytearray(40 << 20)")  # the copy of before has none of it
            self.assertRegex(ran.done["sandbox"]["noWayBack"], r"^variables take \d\d of 64 MiB$")
            self.assertEqual(state(box.bad()), "lost")
            self.assertEqual(box.guest.status(), 0)

    def test_a_copy_that_cannot_be_made(self) -> None:
        """It is tried again after some calls, which aren't held up."""
        with Sandbox(changed={"rescue": ("READY = 5.0", "READY = 1.0")}) as box:
            hang = "import os\nstuck, tries = True, 0\ndef hang():\n    while stuck: pass\n"
            count = "def count():\n    global tries\n    tries += 1\n"
            why = "the copies of its process don't get ready"
            begin = f"{hang}{count}os.register_at_fork(after_in_child=hang, after_in_parent=count)"
            self.assertEqual(box.call(begin).done["sandbox"], {"state": "kept"})
            for _ in range(3):
                ran = box.call("print(tries)")
                self.assertEqual((ran.stdout, ran.done["sandbox"]["noWayBack"]), ("1\n", why))
            box.call("stuck = False")
            ran = box.call("print(tries)")
            self.assertEqual((ran.stdout, ran.done["sandbox"]), ("2\n", {"state": "kept"}))
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("stuck").stdout, "False\n")

    def test_the_way_back_where_a_copy_hangs(self) -> None:
        """It leads to the copy before, since nobody was told that there would be none."""
        with Sandbox(changed={"rescue": ("READY = 5.0", "READY = 1.0")}) as box:
            box.call("import os\ndef hang():\n    while True: pass\nos.register_at_fork(after_in_child=hang)")
            ran = box.bad()
            self.assertEqual(state(ran), "before")
            self.assertIn("of an earlier state", ran.done["sandbox"]["reason"])

    def test_what_is_unfit_is_of_the_state(self) -> None:
        """Not of one that was taken back."""
        with Sandbox(memoryLimitBytes=1 << 30) as box:
            box.call("x = 1")
            ran = box.call("import sys\nsys.modules['polars'] = sys")
            self.assertIn("polars", ran.done["sandbox"]["noWayBack"])
            self.assertEqual(box.order(type="undo").done["sandbox"], {"state": "before"})
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_a_file_of_the_code_is_no_library(self) -> None:
        """A ray.py, or a folder jax, of the code's own takes no way back."""
        with Sandbox() as box:
            ran = box.call(
                "import os, sys, tempfile\nhere = tempfile.mkdtemp()\nsys.path.insert(0, here)\n"
                "os.mkdir(f'{here}/jax'); open(f'{here}/ray.py', 'w').close()\nimport jax, ray"
            )
            self.assertEqual((ran.error, ran.done["sandbox"]), ({}, {"state": "kept"}))
            ran = box.call(
                "os.makedirs(f'{here}/site-packages/torch'); sys.path[0] += '/site-packages'\nimport torch"
            )
            self.assertEqual(ran.done["sandbox"]["noWayBack"], "torch doesn't survive it")

    def test_calls_that_are_stopped_again_and_again(self) -> None:
        """The variables stay, and what may be wrong is said, unless a call between them has ended."""

        def stopped() -> str:
            run = box.begin("while True: pass")
            box.guest.send({"type": "cancel", "id": run})
            told = Ran(box.guest.until("done")).done["sandbox"]
            self.assertEqual(told["state"], "before")
            return str(told.get("reason", ""))

        with Sandbox() as box:
            box.call("x = 1")
            self.assertEqual(stopped(), "")
            self.assertIn("start a new sandbox", stopped())
            self.assertEqual(box.call("x").stdout, "1\n")
            self.assertEqual(stopped(), "")

    @here
    def test_a_command_that_ends_the_process_before_any_code(self) -> None:
        with Sandbox() as box:
            parent = box.guest.process.pid
            until(lambda: len(_children(parent)) == 1, box.guest)
            end = "kill -9 {0}; while kill -0 {0} 2>/dev/null; do :; done".format(*_children(parent))
            ran = box.order(type="exec", command=end, options={})
            reason = "its process has ended, and there was no copy of it: no code had run"
            self.assertEqual(ran.done["sandbox"], {"state": "lost", "reason": reason})

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
            "import os\nfor fd in range(64, 72):\n    try: os.write(fd, b'%s\\n')\n    except OSError: pass\n"
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

    def test_what_a_call_has_closed_or_replaced_is_put_back(self) -> None:
        """Later calls would print nothing, or fail, and none would say why."""
        for code, back in {
            "import os; os.close(1)": "descriptor 1",
            "import os; os.close(1)\ntry: print('lost')\nexcept OSError: pass": "descriptor 1",
            "import os; os.closerange(0, 3)": "descriptor 0, descriptor 1, descriptor 2",
            "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 1)": "descriptor 1",
            "import io, sys; sys.stdout = io.StringIO()": "sys.stdout",
            "import sys; sys.stdout = None": "sys.stdout",
            "import sys; del sys.stderr": "sys.stderr",
            "import sys; sys.stdout.detach()": "sys.stdout",
            "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.buffer)": "sys.stdout",
            "import io, sys; s = io.TextIOWrapper(sys.stdout.buffer); s.s = sys.stdout = s; s = 1": (
                "sys.stdout"
            ),
            "import sys; sys.stdout = open(1, 'w')": "descriptor 1, sys.stdout",
            "import sys; sys.stderr = open(2, 'w')": "descriptor 2, sys.stderr",
            "import sys; sys.stdout.reconfigure(encoding='utf-16')": "sys.stdout",
        }.items():
            with self.subTest(code), Sandbox() as box:
                box.call(f"x = 1\n{code}")
                if "print" not in code:  # the copy has an empty buffer
                    box.bad()  # the copy has what was there, too
                ran = box.call("print(x); print(0, file=__import__('sys').stderr); x")
                self.assertEqual((ran.ok, ran.stdout), (True, "1\n1\n"), ran.error)
                note = f"[put back, since earlier code had closed or replaced it: {back}]\n0\n"
                self.assertEqual(ran.stderr, note)
                ran = box.call("import gc; gc.collect(); f = open('/dev/null'); print(x, f.fileno() > 2)")
                self.assertEqual((ran.stdout, ran.stderr), ("1 True\n", ""))

    def test_names_that_a_call_has_deleted_are_there_again(self) -> None:
        """And a hint says of none what isn't so."""
        with Sandbox() as box:

            def call(code: str) -> Ran:
                shop = [provider("price")]
                return box.order(type="execute", code=code, keep=True, options={}, providers=shop)

            said = call("x = 1; globals().clear()\nmcp_shop").error["message"]
            self.assertIn("(the code has deleted the names that it began with", said)
            ran = call("print(mcp_shop, mcp_servers, runtime.list_servers(), ToolError, __name__)")
            server = "<server 'shop' as mcp_shop, tools: price>"
            shown = f"{server} {{'shop': {server}}} ['shop'] <class 'mcp.ToolError'> __main__\n"
            self.assertEqual(ran.stdout, shown, ran.error)
            self.assertIn("(this sandbox has no variable of that name now:", call("x").error["message"])

    def test_a_server_that_a_call_has_deleted_is_there_again(self) -> None:
        with Sandbox() as box:

            def call(code: str) -> Ran:
                shop = [provider("price")]
                return box.order(type="execute", code=code, keep=True, options={}, providers=shop)

            call("del mcp_shop, mcp_servers, __builtins__\nruntime = 3")
            ran = call("print(mcp_shop is mcp_servers.shop, runtime, __builtins__.__name__)")
            self.assertEqual(ran.stdout, "True 3 builtins\n", ran.error)

    def test_builtins_that_a_call_has_replaced(self) -> None:
        """The guest's own modules have those of the beginning."""
        with Sandbox() as box:
            box.call("import builtins; builtins.len = builtins.print = lambda *given: 0; del __builtins__")
            box.call("__builtins__['len' if type(__builtins__) is dict else 0] = builtins.len")
            ran = box.call("len('abc')")
            self.assertEqual((ran.stdout, state(ran)), ("0\n", "kept"), ran.error)
            box.call("builtins.type = builtins.int = None")
            self.assertEqual(state(box.call("0")), "kept")

    def test_what_is_still_there_is_not_put_back(self) -> None:
        for code in (
            "sys.stdout.close(); sys.stderr.close()",
            "sys.stdout.reconfigure(encoding='utf-8', line_buffering=True, write_through=False)",
        ):
            with self.subTest(code), Sandbox() as box:
                box.call(f"import sys\n{code}")
                ran = box.call(
                    "print('\\udc80'); import os; os.write(1, b'2\\n'); print('3', file=sys.stderr)"
                )
                self.assertEqual((ran.ok, ran.stdout, ran.stderr), (True, "\\udc80\n2\n", "3\n"))

    def test_a_stream_that_a_thread_writes_by_is_put_back(self) -> None:
        """Its buffer isn't freed meanwhile: the thread would write what is there then."""
        code = (
            "import gc, os, threading\nfrom guest.streams import Kept\n"
            "kept = next(o for o in gc.get_objects() if type(o) is Kept)\n"
            "r, w = os.pipe()\nos.set_blocking(w, False)\n"
            "try:\n    while True: os.write(w, b'x')\nexcept BlockingIOError: pass\n"
            "os.set_blocking(w, True)\nos.dup2(w, 1)\n"
            "t = threading.Thread(target=print, args=('y' * 1000,))\nt.start()\n"
            "def state():\n"
            "    with open(f'/proc/self/task/{t.native_id}/stat') as f: return f.read().split()[2]\n"
            "while state() != 'S': pass\n"  # it waits for the pipe
            "kept.renew()\njunk = [b'z' * 8000 for _ in range(200)]\ngot = b''\n"
            "os.set_blocking(r, False)\nalive = True\n"
            "while alive:\n    alive = t.is_alive()\n"
            "    try: got += os.read(r, 1 << 20)\n    except BlockingIOError: pass\n"
            "sorted(set(got))"
        )
        with Sandbox() as box:
            self.assertEqual(box.call(code).stdout.strip(), str([*b"xy"]))

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

    @here
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
            self.assertLess(len(_children(pid)), 6)  # two copies, and those that have just been ended


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and _stat(int(p))[1:2] == [str(pid)]]


def _descriptors(box: Sandbox) -> int:
    return len(os.listdir(f"/proc/{box.guest.process.pid}/fd"))


def until(true: Callable[[], bool], guest: Guest) -> None:
    """Waits for what happens while the guest is idle, and has it hear of its host meanwhile."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it doesn't come"
        guest.send({"type": "ping", "n": 1})
        guest.until("pong")


def _written(pid: int) -> int:
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return int(file.read().partition("wchar: ")[2].split()[0])


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
    return int(fields["Rss"].split()[0]) * 1024
