"""What code of one call tries on the next: forged words, planted frames, copies that are none."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import unittest
from collections.abc import Callable

from guest import processes
from guest_tests.host import ENDS_THREAD, PATIENCE, Guest, Ran
from guest_tests.test_files import changed, piece
from guest_tests.test_sandbox import Sandbox, here, state

# Gives the code the link, the key of its call, and the copy that can take it back. The key of
# another call is of no use.
PREPARED = """
import gc, json, os, sys, time
from guest.link import Link
from guest.repeat import Repeat
link = next(one for one in gc.get_objects() if type(one) is Link)
repeat = next(one for one in gc.get_objects() if type(one) is Repeat)
def say(kind, **more):
    os.write(link.fd, json.dumps({"type": kind, "key": repeat._key, **more}).encode() + b"\\n")
def copies():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        except OSError: continue
        if fields[1] == str(os.getpid()) and fields[0] not in "ZX": found.append(int(pid))
    return found
"""

THREAD = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


class Forged(unittest.TestCase):
    """Code that has prepared for it, and finds the key of its own call."""

    def test_frames_that_are_planted_for_the_next_call(self) -> None:
        claim = '{"type":"claim","error":{"code":"memory_limit","message":"planted"}}'
        imported = '{"type":"imported","names":["planted"]}'
        unfinished = '{"type":"tool_call","callId":"9","providerName":"planted'
        with Sandbox() as box:
            box.call(PREPARED)
            for line in (claim, '{"type":"broken"}', imported, '{"type":"ended","status":7}', unfinished):
                # Behind the word that the call is over nothing of the call is left to count.
                box.call(
                    "import atexit, threading\nsend = repeat._link.send\n"
                    "def planted(frame):\n    send(frame)\n"
                    f"    if frame['type'] == 'ended': os.write(link.fd, {line!r}.encode())\n"
                    "repeat._link.send = planted"
                )
                ran = box.call("del repeat._link.send\nprint('code')")
                self.assertEqual((ran.stdout, ran.ok, ran.error), ("code\n", True, {}), line)
                self.assertNotIn("imported", ran.done)

    def test_a_sandbox_that_has_closed_its_link_is_lost(self) -> None:
        """Also when its process lives and says that the call has ended well."""
        with Sandbox(_quick()) as box:
            box.call(PREPARED)
            ran = box.call(
                "import subprocess\nfor pid in copies(): os.kill(pid, 9)\n"
                "p = subprocess.Popen(['sleep', '600'])\n"
                "say('ended', status=0, pid=p.pid)\nos.close(link.fd)\nwhile True: time.sleep(1)"
            )
            self.assertEqual(state(ran), "lost")
            self.assertIn("so had the copy of it", ran.done["sandbox"]["reason"])

    def test_the_key_of_another_call(self) -> None:
        with Sandbox() as box:
            box.call(PREPARED + "old = repeat._key")
            code = (
                "for kind in ('ended', 'made', 'waits', 'claim', 'took'):\n"
                "    for key in (old, '', None, 1):\n"
                "        frame = {'type': kind, 'key': key, 'status': 7, 'error': {'message': 'old'}}\n"
                "        os.write(link.fd, json.dumps(frame).encode() + b'\\n')\n"
                "print('code')"
            )
            ran = box.call(code)
            self.assertEqual((ran.stdout, ran.ok, state(ran)), ("code\n", True, "kept"), ran.error)

    @here
    def test_processes_that_are_no_copies(self) -> None:
        """None is taken for one, and only one of the code's own is ended for it."""
        mine = str(os.getpid())
        for forged in ("os.getpid()", "1", "0", "-1", mine, "1 << 70", "True", "'1'", "[1]", "p.pid"):
            with self.subTest(forged), Sandbox() as box:
                ran = box.call(
                    PREPARED + "import subprocess\n"
                    "p = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                    f"print(p.pid, flush=True)\nsay('ended', status=0); say('made', pid={forged}); say('waits')\n"
                    "while True: pass"
                )
                why = "what its process has made is no copy that waits"
                self.assertEqual(ran.done["sandbox"], {"state": "kept", "noWayBack": why})
                sleeps = int(ran.stdout)
                if forged == "p.pid":
                    _until(lambda pid=sleeps: not processes.alive(pid))
                else:
                    self.assertTrue(processes.alive(sleeps))
                    os.kill(sleeps, signal.SIGKILL)

    def test_a_process_that_goes_on_after_its_word(self) -> None:
        """Code that ends its own call in its process's name is in the way of the next, which is told."""
        begun = "_BEGUN, time.monotonic() + "
        quick = f"{begun}(1.0 if self._run.id == 'run-2' else PATIENCE) # "
        with Sandbox(changed={"rescue": (f"{begun}PATIENCE", quick)}) as box:
            said = "say('ended', status=0)"
            self.assertEqual(state(box.call(f"{PREPARED}{said}\nwhile True: pass")), "kept")
            ran = box.call("print('never')")
            self.assertEqual((ran.wait["killed"], ran.stdout, state(ran)), ("deaf", "", "before"))

    @here
    def test_code_that_calls_tools_has_begun(self) -> None:
        """Whether or not its process says so: it isn't ended for that."""
        with tempfile.TemporaryDirectory() as base:
            late = f"now >= self.until or self._asked == _BEGUN and os.path.exists({base + '/late'!r})"
            quick = {"rescue": ("if self.until and now >= self.until", f"if self.until and ({late})")}
            with Sandbox(changed=quick) as box:
                box.call(
                    PREPARED + "send = repeat._link.send\n"
                    "repeat._link.send = lambda frame: None if frame['type'] == 'begun' else send(frame)"
                )
                box.begin("try: runtime.load_server('x')\nexcept Exception as e: print('code')")
                call = box.guest.until("tool_call")[-1]["callId"]
                os.mkdir(f"{base}/late")
                box.guest.send({"type": "ping", "n": 1})
                box.guest.until("pong")
                error = {"code": "tool_error", "message": "none"}
                box.guest.send({"type": "tool_result", "callId": call, "ok": False, "error": error})
                ran = Ran(box.guest.until("done"))
                self.assertEqual((ran.stdout, ran.wait.get("killed"), state(ran)), ("code\n", None, "kept"))

    def test_a_signal_that_is_not_the_supervisors(self) -> None:
        with Sandbox() as box:
            box.call(PREPARED + "x = 1")
            box.call("[os.kill(pid, 42) for pid in copies() for _ in range(3)]; time.sleep(0.1)")
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    @unittest.skipIf(os.geteuid() == 0, "root may read any memory")
    def test_the_memory_of_a_copy_is_closed(self) -> None:
        with Sandbox() as box:
            ran = box.call(
                PREPARED + "for pid in copies():\n"
                "    for name in ('mem', 'environ', 'maps', 'fd'):\n"
                "        look = os.listdir if name == 'fd' else open\n"
                "        try: look(f'/proc/{pid}/{name}'); print('open', name)\n"
                "        except PermissionError: print('closed')"
            )
            self.assertEqual(ran.stdout, "closed\n" * 4)

    @here
    def test_a_copy_is_not_dumpable_until_it_takes_over(self) -> None:
        with Sandbox() as box:
            prctl = "import ctypes; ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)"
            self.assertEqual(box.call(prctl).stdout, "1\n")
            copies = box.call(PREPARED + "print(*copies())").stdout.split()
            self.assertGreater(len(copies), 0)
            # The kernel gives what isn't dumpable to root.
            if os.geteuid() != 0:
                self.assertEqual([os.stat(f"/proc/{pid}/mem").st_uid for pid in copies], [0] * len(copies))
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call(prctl).stdout, "1\n")


# The process that has the variables kills itself once it has said that its call is over, after something.
DIES = """\
send = repeat._link.send
def die(frame):
    send(frame)
    if frame['type'] == 'ended':
        while not {after}: pass
        os.kill(os.getpid(), 9)
repeat._link.send = die
"""


@here
class Racing(unittest.TestCase):
    """The word that a call is over, and the end of its process at the same time."""

    def test_ended_and_a_cancel_at_once(self) -> None:
        with Sandbox() as box:
            box.call(PREPARED + "x = 1")
            with tempfile.TemporaryDirectory() as base:
                run = box.begin(
                    "import os\nx = 2; print('on', flush=True)\n"
                    f"while not os.path.exists({base!r} + '/go'): pass\n"
                    f"say('ended', status=0); os.mkdir({base!r} + '/said')\nwhile True: pass"
                )
                box.guest.until("output")
                os.kill(box.guest.process.pid, signal.SIGSTOP)  # so that it hears of both together
                _until(lambda: _is_stopped(box.guest.process.pid))
                os.mkdir(f"{base}/go")
                _until(lambda: os.path.exists(f"{base}/said"))
            box.guest.send({"type": "cancel", "id": run})
            os.kill(box.guest.process.pid, signal.SIGCONT)
            ran = Ran(box.guest.until("done"))
            self.assertEqual((ran.wait.get("killed"), state(ran)), ("cancel", "before"))
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_a_process_that_dies_after_its_word_before_that_is_heard(self) -> None:
        """It is dead when all is stopped, so its word doesn't count."""
        reap = "            wire.read_some(fd)\n            self._reap()"
        held = {"loop": (reap, reap.replace("self._reap()", "self._run.id == 'run-2' or self._reap()"))}
        with Sandbox(changed=held) as box, tempfile.TemporaryDirectory() as base:
            pid = int(box.call(PREPARED + "import os; x = 1; os.getpid()").stdout)
            box.begin(
                "x = 2; print('on', flush=True)\n"
                f"while not os.path.exists({base!r} + '/go'): pass\n" + DIES.format(after="True")
            )
            box.guest.until("output")
            os.kill(box.guest.process.pid, signal.SIGSTOP)
            _until(lambda: _is_stopped(box.guest.process.pid))
            os.mkdir(f"{base}/go")
            _until(lambda: not processes.alive(pid))
            os.kill(box.guest.process.pid, signal.SIGCONT)
            ran = Ran(box.guest.until("done"))
            self.assertEqual((ran.wait, state(ran)), ({"exited": False, "status": 0, "signal": 9}, "before"))
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_a_process_that_dies_while_it_copies_itself(self) -> None:
        """Its call has ended as it said; the copy of before that call takes over, and that is said."""
        with Sandbox() as box:
            box.call("import os; x = 1")
            ran = box.call("x = 2; os.register_at_fork(before=lambda: os.kill(os.getpid(), 9))")
            self.assertEqual((ran.wait, state(ran)), ({"exited": True, "status": 0, "told": True}, "kept"))
            ran = box.call("x")
            self.assertEqual((ran.stdout, state(ran)), ("1\n", "kept"))
            self.assertRegex(ran.done["sandbox"]["reason"], "ended between calls.*of an earlier state")
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_what_is_rehearsed_behind_a_copy(self) -> None:
        """It runs code, calls neither print nor displayhook, and passes over a stream that is closed."""
        always = {"rescue": ("if copy and self._rehearses and not self._run.order:", "if copy:")}
        shown = "import builtins, sys; seen, ran = [], []"
        for code in (
            "builtins.print = sys.displayhook = lambda *a, **k: seen.append(a)",
            "sys.stdout.close(); sys.excepthook = lambda *a: seen.append(a)",
        ):
            hook = "sys.addaudithook(lambda event, args: ran.append(event) if event == 'exec' else None)"
            with self.subTest(code), Sandbox(always) as box:
                box.call(f"{shown}; {hook}; {code}; before = len(ran)")
                box.settle()
                ran = box.call("sys.stdout.write(f'{len(ran) - before} {seen}')")
                self.assertEqual(ran.stdout[:4], "2 []", ran)  # the rehearsal's, and this call's
                self.assertEqual(state(box.bad()), "before")

    def test_a_rehearsal_that_does_not_end(self) -> None:
        """The copy behind which it was is there all the same, and what is asked for waits for READY."""
        for does, stdout in (("os.kill(os.getpid(), 9)", "1\n"), ("pass", "2\n")):
            with self.subTest(does), tempfile.TemporaryDirectory() as base, Sandbox(_quick()) as box:
                hook = (
                    "import os, sys, time; x, armed = 1, False\ndef hook(event, args):\n"
                    f"    if event != 'exec' or not armed or os.path.exists({base!r} + '/in'): return\n"
                    f"    os.mkdir({base!r} + '/in'); {does}; globals().update(x=2)\n"
                    f"    while not os.path.exists({base!r} + '/go'): time.sleep(0.01)\n"
                    "sys.addaudithook(hook); armed = True"
                )
                box.call(hook)
                _until(lambda base=base: os.path.exists(f"{base}/in"))
                box.settle()
                os.mkdir(f"{base}/go")
                self.assertEqual(box.call("x").stdout, stdout)
                self.assertEqual(state(box.bad()), "before")
                self.assertEqual(box.call("x").stdout, stdout)

    def test_a_process_that_is_started_in_a_rehearsal(self) -> None:
        """It goes on in the next call."""
        always = {"rescue": ("if copy and self._rehearses and not self._run.order:", "if copy:")}
        with Sandbox(always) as box:
            box.call(
                "import os, subprocess, sys; p, armed = None, False\ndef hook(event, args):\n"
                "    global p, armed\n    if event == 'exec' and armed:\n"
                "        armed = False; p = subprocess.Popen(['sleep', '0.2'])\n"
                "sys.addaudithook(hook); armed = True"
            )
            box.settle()
            self.assertEqual(box.call("p.wait()", watch={"processes": 20}).stdout, "0\n")

    def test_a_copy_of_a_process_that_was_printing(self) -> None:
        """The lock of a stream that another thread held isn't held in it."""
        prints = "import sys, threading\ndef go():\n    while True: sys.stderr.write('x' * 100 + '\\n')\n"
        with Sandbox() as box:
            box.call(f"{prints}threading.Thread(target=go, daemon=True).start()")
            for _ in range(9):  # any one may find it unlocked
                self.assertEqual(state(box.bad()), "before")
                ran = box.call("print('on', file=sys.stderr); x = 1")
                self.assertEqual((ran.stderr[-3:], ran.ok), ("on\n", True))
                box.call("threading.Thread(target=go, daemon=True).start()")

    def test_a_first_copy_that_does_not_come_to_wait(self) -> None:
        """The code runs all the same."""
        dies = {
            "spare": ("_write(self._link.fd, waits)", "_exit(1)"),
            "rescue": ("PATIENCE = 10.0", "PATIENCE = 1.0"),
        }
        with Sandbox(dies) as box:
            ran = box.call("print('code')")
            self.assertEqual((ran.stdout, state(ran)), ("code\n", "kept"), ran.error)
            self.assertIn("don't get ready", ran.done["sandbox"]["noWayBack"])

    def test_a_copy_that_is_made_too_late(self) -> None:
        """It is ended, and doesn't make the sandbox one of several processes."""
        with Sandbox(_quick()) as box, tempfile.TemporaryDirectory() as base:
            box.call("import os, time; x = 1")
            pid = int(
                box.call(
                    "first = True\ndef held():\n    global first\n"
                    f"    while first and not os.path.exists({base!r} + '/go'): time.sleep(0.01)\n"
                    "    first = False\nos.register_at_fork(before=held)\nx = 2\nos.getpid()"
                ).stdout
            )
            box.settle()
            os.mkdir(f"{base}/go")
            ran = box.call("x")
            self.assertEqual(ran.stdout, "2\n")
            self.assertIn("don't get ready", ran.done["sandbox"]["noWayBack"])
            _until(lambda: not _children(pid))

    def test_memory_that_is_taken_while_it_copies_itself(self) -> None:
        """The guest looks at it then too, where no cgroup bounds it."""
        hook = (
            "import os; x = b''\ndef before():\n    global x\n"
            "    x = b'1' * (200 << 20)\n    while True: pass\n"
        )
        options = {"watch": {"memoryBytes": 100 << 20, "processes": 50}}
        with Sandbox() as box:
            box.call("y = 1", **options)
            box.call(f"{hook}os.register_at_fork(before=before)\ny = 2", **options)
            told = box.order(type="files", op="list", path="/")  # which bounds nothing itself
            self.assertIn("ended between calls (memory)", told.done["sandbox"]["reason"])
            self.assertEqual(box.call("y", **options).stdout, "1\n")

    def test_an_order_that_is_not_begun_when_it_has_died_so(self) -> None:
        """Nothing waits for the copy any more."""
        with Sandbox(changed={"rescue": ("READY = 5.0", "READY = 600.0")}) as box:
            box.call("import os; x = 1")
            box.call("x = 2; os.register_at_fork(before=lambda: os.kill(os.getpid(), 9))")
            box.guest.send({"type": "cancel", "id": "run-c"})
            execute = {"type": "execute", "code": "x = 3", "keep": True, "options": {}, "providers": []}
            box.guest.send({**execute, "id": "run-c"})
            self.assertEqual(Ran(box.guest.until("done")).error["code"], "cancelled")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_what_is_asked_for_while_it_copies_itself(self) -> None:
        """It waits, and can be cancelled meanwhile."""
        with Sandbox() as box, tempfile.TemporaryDirectory() as base:
            box.call("import os, time; x = 1")
            box.call(
                "first = True\ndef held():\n    global first\n"
                f"    while first and not os.path.exists({base!r} + '/go'): time.sleep(0.01)\n"
                "    first = False\nos.register_at_fork(before=held)\nx = 2"
            )
            execute = {"type": "execute", "code": "x = 3", "keep": True, "options": {}, "providers": []}
            box.guest.send({**execute, "id": "run-c"})
            box.guest.send({"type": "cancel", "id": "run-c"})
            box.guest.send({"type": "ping", "n": 7})
            self.assertEqual(box.guest.until("pong")[-1]["n"], 7)
            os.mkdir(f"{base}/go")
            ran = Ran(box.guest.until("done"))
            self.assertEqual((ran.error["code"], state(ran)), ("cancelled", "kept"))
            self.assertEqual(box.call("x").stdout, "2\n")
            self.assertEqual(state(box.order(type="undo")), "before")

    def test_what_else_may_run_has_the_copy_made_before_done(self) -> None:
        """A thread, or another process: none of them runs between calls for the sake of a copy."""
        thread = f"import threading; {THREAD}"
        other = "import subprocess; subprocess.Popen(['sleep', '600'])"
        never = {"rescue": ("        if self._later and ", "        if False and ")}  # a copy behind done
        for code, began in (("pass", 1), (thread, 2), (other, 3)):  # one of them is of before the call
            with self.subTest(code), Sandbox(changed=never) as box:
                pid = int(box.call(f"{code}\nimport os; os.getpid()").stdout)
                self.assertEqual(len(_children(pid)), began)
        with Sandbox(changed=never) as box:  # the thread that reads answers of tools is left out
            box.begin("try: runtime.load_server('x')\nexcept ToolError: pass\nimport os; print(os.getpid())")
            self.assertEqual(len(_children(int(answer(box).stdout))), 1)

    @here
    def test_code_whose_first_thread_has_ended(self) -> None:
        """The process is a zombie by its state, and can be ended and taken back all the same."""
        with Sandbox() as box:
            box.call("x = 1")
            run = box.begin(
                f"import threading; x = 2\n{THREAD.replace(', daemon=True', '')}\n"
                f"print('up', flush=True)\n{ENDS_THREAD}"
            )
            box.guest.until("output")
            box.guest.send({"type": "cancel", "id": run})
            self.assertEqual(state(Ran(box.guest.until("done"))), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_a_process_that_ends_between_calls(self) -> None:
        with Sandbox() as box:
            pid = int(box.call("import os; x = 1; os.getpid()").stdout)
            box.call("x = 2")
            box.settle()
            _end(pid)
            ran = box.call("x")
            self.assertEqual((ran.stdout, state(ran)), ("2\n", "kept"))
            self.assertIn("ended between calls", ran.done["sandbox"]["reason"])
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("x").stdout, "2\n")

    def test_a_process_and_its_copy_that_end_between_calls(self) -> None:
        """The copy of before the last call takes over, and that is said."""
        with Sandbox() as box:
            pid = int(box.call(PREPARED + "x = 1; os.getpid()").stdout)
            first = box.call("x = 2; print(*copies())").stdout.split()
            box.settle()
            newest = [p for p in _children(pid) if str(p) not in first]
            self.assertEqual(len(newest), 1)
            _end(*newest, pid)
            ran = box.call("x")
            self.assertEqual(ran.stdout, "1\n")
            self.assertIn("ended between calls", ran.done["sandbox"]["reason"])

    def test_undo_after_a_process_has_ended(self) -> None:
        with Sandbox() as box:
            pid = int(box.call("import os; x = 1; os.getpid()").stdout)
            box.call("x = 2")
            _end(pid)
            self.assertEqual(state(box.order(type="undo")), "before")
            self.assertEqual(box.call("x").stdout, "1\n")

    def test_undo_of_nothing_after_a_process_has_ended(self) -> None:
        with Sandbox() as box:
            pid = int(box.call("import os; x = 1; os.getpid()").stdout)
            box.call("x = 2")
            box.settle()
            _end(pid)
            box.call("x = 3")  # a copy has taken over, and there is one of before this call
            self.assertEqual(state(box.order(type="undo")), "before")
            _end(int(box.call("import os; os.getpid()").stdout))
            box.order(type="undo")
            ran = box.order(type="undo")
            self.assertEqual((ran.error["code"], state(ran)), ("validation_error", "kept"))
            self.assertEqual(box.call("x").stdout, "2\n")

    def test_all_that_end_between_calls(self) -> None:
        with Sandbox() as box:
            pid = int(box.call("import os; os.getpid()").stdout)
            box.settle()
            _end(*_children(pid), pid)
            ran = box.call("print('never')")
            self.assertEqual((ran.ok, ran.stdout, state(ran)), (False, "", "lost"))
            self.assertEqual(ran.error["code"], "internal_error")
            self.assertEqual(box.guest.status(), 0)


class First(unittest.TestCase):
    def test_the_first_call_can_be_taken_back(self) -> None:
        with Sandbox() as box:
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("print('on')").stdout, "on\n")

    def test_a_cancel_before_the_code_ends_nothing(self) -> None:
        with Sandbox() as box:
            pid = box.call(
                "import os, threading\n"
                "thread = threading.Thread(target=threading.Event().wait, daemon=True)\n"
                "thread.start(); x = 1; os.getpid()"
            ).stdout
            box.guest.send({"type": "cancel", "id": "run-c"})
            execute = {"type": "execute", "code": "x = 2", "keep": True, "options": {}, "providers": []}
            box.guest.send({**execute, "id": "run-c"})
            done = box.guest.until("done")[-1]
            self.assertEqual(done["wait"], {"exited": False, "status": 0, "killed": "cancel"})
            self.assertEqual((done["error"]["code"], done["sandbox"]), ("cancelled", {"state": "kept"}))
            ran = box.call("print(x, thread.is_alive(), os.getpid())")
            self.assertEqual(ran.stdout, f"1 True {pid}")

    def test_a_cancel_before_the_first_code(self) -> None:
        with Guest() as guest:
            guest.until("ready")
            execute = {"type": "execute", "code": "print(1)", "keep": True, "options": {}, "providers": []}
            guest.send({"type": "cancel", "id": "a"})
            guest.send({**execute, "id": "a"})
            self.assertEqual(guest.until("done")[-1]["sandbox"], {"state": "kept"})
            guest.send({**execute, "id": "b"})
            self.assertEqual(Ran(guest.until("done")).stdout, "1\n")

    def test_a_cancel_while_the_first_copy_is_made(self) -> None:
        fork = "            pid = self._fork()"
        slow = {"spare": (fork, f"            __import__('time').sleep(0.5)\n{fork}")}
        with Guest(slow) as guest:
            guest.until("ready")
            execute = {"type": "execute", "code": "print(1)", "keep": True, "options": {}, "providers": []}
            guest.send({**execute, "id": "a"})
            guest.until("started")
            guest.send({"type": "cancel", "id": "a"})
            ran = Ran(guest.until("done"))
            self.assertEqual((ran.stdout, ran.error["code"], state(ran)), ("", "cancelled", "kept"))
            guest.send({**execute, "id": "b"})
            self.assertEqual(Ran(guest.until("done")).stdout, "1\n")


class LeftBehind(unittest.TestCase):
    """What a call leaves armed isn't to end the process of the variables."""

    def test_an_alarm(self) -> None:
        with Sandbox() as box:
            code = "import os, signal; signal.setitimer(signal.ITIMER_REAL, 0.05); os.getpid()"
            pid = box.call(code).stdout
            time.sleep(0.2)
            self.assertEqual(box.call("os.getpid()").stdout, pid)
            box.call(
                "def raises(*rung): raise TimeoutError\n"
                "signal.signal(signal.SIGALRM, raises); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)"
            )
            time.sleep(0.2)
            self.assertEqual(box.call("os.getpid()").stdout, pid)
            ran = box.call("import time\nsignal.alarm(1); time.sleep(10)")
            self.assertEqual((ran.error["type"], state(ran)), ("TimeoutError", "kept"))

    def test_the_copies_give_the_code_no_signal(self) -> None:
        """A handler of SIGCHLD hears of the code's own processes alone."""
        with Sandbox() as box:
            box.call("import os, signal, time\ngot = []\nsignal.signal(17, lambda *a: got.append(1))")
            slow = "for _ in range(9): print(0); time.sleep(0.03)"  # the loop of the supervisor goes round
            for does in ("pass", "pass", slow, "pass"):
                box.settle()
                self.assertEqual(box.call(f"{does}\nlen(got)").stdout[-2:], "0\n", does)
            box.begin("try: runtime.load_server('x')\nexcept ToolError: pass")  # a thread reads its answer
            answer(box)
            for does in ("pass", slow):
                box.settle()
                self.assertEqual(box.call(f"{does}\nlen(got)").stdout[-2:], "0\n", does)
            fork = "p = os.fork()\nif p == 0: os._exit(0)\n"
            self.assertEqual(box.call(f"{fork}os.waitpid(p, 0)\nlen(got)").stdout, "1\n")

    @here
    def test_a_signal_between_calls(self) -> None:
        with Sandbox() as box:
            code = (
                "import os, signal\ndef raises(*rung): raise KeyError('rung')\n"
                "signal.signal(signal.SIGUSR1, raises)\nx = 1; os.getpid()"
            )
            pid = int(box.call(code).stdout)
            os.kill(pid, signal.SIGUSR1)
            ran = box.call("x = 2")
            self.assertEqual((ran.error["type"], state(ran)), ("KeyError", "kept"))
            self.assertEqual(box.call("print(x, os.getpid())").stdout, f"1 {pid}\n")

    def test_the_module_os_replaced(self) -> None:
        with Sandbox() as box:
            box.call(
                "import ctypes, os; x = 1\n"
                "os._exit = os.write = os.read = os.getpid = os.close = os.open = os.listdir = lambda *args: 1"
            )
            self.assertEqual(box.call("x += 1; print(x)").stdout, "2\n")
            self.assertEqual(state(box.call("x = 3; ctypes.string_at(0)")), "before")
            self.assertEqual(box.call("print(x)").stdout, "2\n")

    def test_failures_outside_the_code(self) -> None:
        with Sandbox() as box:
            pid = box.call("import os; os.getpid()").stdout
            for code in (
                "import sys\nclass Bad:\n    def write(self, text): raise KeyError\n    flush = write\n"
                "sys.stderr = Bad()\nraise SystemExit('text')",
                "def hook(*error): raise KeyError\nsys.excepthook = hook\nsys.stdout = Bad()",
                "raise KeyboardInterrupt",
                "raise GeneratorExit",
            ):
                self.assertEqual(state(box.call(code)), "kept", code)
            ran = box.call("sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__\nprint(os.getpid())")
            self.assertEqual(ran.stdout, pid)

    def test_objects_that_run_code_when_looked_at(self) -> None:
        with Sandbox() as box:
            box.call(
                "from concurrent.futures import ThreadPoolExecutor\n"
                "class Lazy:\n    @property\n    def __class__(self): raise RuntimeError('loaded')\n"
                "lazy, kept = Lazy(), [Lazy()]\npool = ThreadPoolExecutor(2)\npool.submit(abs, -1).result()"
            )
            self.assertEqual(state(box.bad()), "before")
            self.assertEqual(box.call("pool.submit(abs, -2).result()").stdout, "2\n")

    @here
    def test_a_directory_for_files_that_the_code_has_changed(self) -> None:
        with tempfile.TemporaryDirectory() as base, Sandbox(changed=changed(f"{base}/in")) as box:
            pid = box.call(f"import os; os.symlink('/etc', {base!r} + '/in'); os.getpid()").stdout
            box.guest.send({**piece("a", b"x"), "id": "run-2"})
            ran = box.call("print('never')")
            self.assertEqual((ran.stdout, ran.error["code"], state(ran)), ("", "internal_error", "kept"))
            self.assertIn("can't be written", ran.error["message"])
            self.assertEqual(box.call("os.getpid()").stdout, pid)
            self.assertFalse(os.path.exists("/etc/a"))


class Words(unittest.TestCase):
    def test_only_what_the_supervisor_knows_is_said(self) -> None:
        """The names of libraries and the number of an error come from the code."""
        with Sandbox() as box:
            box.call(PREPARED)
            said = "unfit=['call 555-0100'], errno=11, why='call 555-0100'"
            ran = box.call(
                f"import threading\n{THREAD}\n"  # the copy is made before the call is over
                f"say('ended', status=0, {said}); say('made', {said})\nwhile True: pass"
            )
            self.assertEqual(
                ran.done["sandbox"]["noWayBack"],
                "its processes and threads are as many as there may be; end some, or join threads",
            )
            box.guest.close()

    def test_credit_begins_again_with_each_call(self) -> None:
        with Sandbox() as box:
            for _ in range(2):
                box.begin("try: runtime.load_server('x')\nexcept Exception as e: print(len(str(e)))")
                call = box.guest.until("tool_call")[-1]["callId"]
                error = {"code": "tool_error", "message": "x" * (3 << 20)}
                box.guest.send({"type": "tool_result", "callId": call, "ok": False, "error": error})
                frames = box.guest.until("done")
                taken = [frame["bytes"] for frame in frames if frame["type"] == "taken"]
                self.assertTrue(all(0 < told < 4 << 20 for told in taken), taken)


def answer(box: Sandbox) -> Ran:
    """Answers the call of a tool."""
    call = box.guest.until("tool_call")[-1]["callId"]
    error = {"code": "tool_error", "message": "x"}
    box.guest.send({"type": "tool_result", "callId": call, "ok": False, "error": error})
    return Ran(box.guest.until("done"))


def _quick() -> dict[str, tuple[str, str]]:
    return {"rescue": ("READY = 5.0", "READY = 0.5")}


def _children(pid: int) -> list[int]:
    found = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [one for one in found if processes.parent(one) == pid and processes.alive(one)]


def _end(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        _until(lambda pid=pid: not processes.alive(pid))


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it doesn't come"
        time.sleep(0.01)


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"
