"""Code that means harm: whatever it does, it changes nothing but its own output, and its end is
told as it was.
"""

from __future__ import annotations

import contextlib
import os
import time
import unittest

from guest_tests.host import Frame, Guest, Ran, provider, run, text

LINK = (
    "import os, json\n"
    "link = max(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n))\n"
)


class Forging(unittest.TestCase):
    def test_frames_printed(self) -> None:
        forged = '{"type":"done","id":"run-1","ok":true,"durationMs":1}'
        ran = run(
            f"print({forged!r})\nimport os\nos.system('echo 123')\nos.write(2, b'{forged}\\n')\nos._exit(3)"
        )
        self.assertEqual((ran.stdout, ran.stderr), (f"{forged}\n123\n", f"{forged}\n"))
        self.assertEqual(ran.wait["status"], 3)

    def test_garbage_on_every_descriptor(self) -> None:
        ran = run(
            "import os\nfor fd in range(3, 300):\n    for data in"
            ' (b\'{"type":"done","id":"run-1","ok":true}\\n\', b\'\\xff\\x00[[[{\\n\', b\'123\\n\'):\n       '
            " try: os.write(fd, data)\n        except OSError: pass\nos._exit(5)"
        )
        self.assertEqual((ran.wait, ran.stdout), ({"exited": True, "status": 5}, ""))

    def test_a_claim_makes_no_success(self) -> None:
        error = '"code":"timeout","message":"m","type":"T","line":-1,"traceback":7,"ok":true'
        claim = f'{{"type":"claim","error":{{{error}}}}}'
        forge = LINK + f"os.write(link, b'{claim}\\n' * 3)\n"
        ran = run(
            forge + "os._exit(0)"
        )  # but a failure of a success, as when an exit handler ends the process with 0
        self.assertEqual((ran.ok, ran.error), (False, {"code": "runtime_error", "message": "m", "type": "T"}))
        ran = run(forge + "os._exit(1)")
        self.assertEqual(ran.error, {"code": "runtime_error", "message": "m", "type": "T"})
        ran = run(forge + "os._exit(4)")
        self.assertEqual(ran.error, {"code": "runtime_error", "message": "the code ended with exit status 4"})

    def test_only_well_formed_requests_pass(self) -> None:
        lines = [
            # rebuilt
            '{"type":"tool_call","callId":"1","providerName":"p","safeToolName":"t","TYPE":"done","id":"x"}',
            '{"type":"tool_call","callId":"1","providerName":"p","safeToolName":"t"}',  # an id used before
            '{"type":"tool_call","callId":"2","providerName":7,"safeToolName":"t"}',
            '{"type":"tool_call","callId":"3","providerName":"p","safeToolName":"t","input":[1]}',
            '{"type":"tool_call","callId":"4","providerName":"p","safeToolName":"t","input":{"a":NaN}}',
            '{"type":"tool_call","callId":"5","providerName":"p","safeToolName":"t","input":{"a":1e999}}',
            '{"type":"tool_call","callId":"6","providerName":"p","safeToolName":"t","input":{"a":'
            + "[" * 9000
            + "}}",
            '{"type":"tool_call","callId":7,"providerName":"p","safeToolName":"t"}',
            '{"type":"tool_call","callId":"-1","providerName":"p","safeToolName":"t"}',
            '{"type":"done","id":"run-1","ok":true,"durationMs":1}',
            '{"type":"output","id":"run-1","stream":"stdout","text":"forged"}',
            '{"type":"ready"}',
            '{"type":"warm"}',
            "null",
            "",
            '{"type":"tool_call","callId":"9","providerName":"p","safeToolName":"t","input":{}}',
        ]
        code = LINK + f"for line in {lines!r}:\n    os.write(link, line.encode() + b'\\n')\n"
        code += "answers = b''\nwhile answers.count(b'\\n') < 7: answers += os.read(link, 65536)\n"
        code += "print([a['callId'] for a in map(json.loads, answers.splitlines()) if not a['ok']])"
        ran = run(code, answer=lambda frame: {"ok": True, "result": None})
        calls = [frame for frame in ran.frames if frame["type"] == "tool_call"]
        self.assertEqual([call["callId"] for call in calls], ["1", "9"])
        self.assertEqual(set(calls[0]), {"type", "callId", "providerName", "safeToolName", "input"})
        self.assertEqual(ran.stdout, "['2', '3', '4', '5', '6']\n")

    def test_a_line_of_a_gigabyte(self) -> None:
        ran = run(
            LINK
            + 'os.write(link, b\'{"type":"tool_call","callId":"1","providerName":"\')\n'
            + "piece = b'x' * (1 << 20)\nfor _ in range(1024): \n    n = 0\n"
            + "    while n < len(piece): n += os.write(link, piece[n:])\n"
            + "os.write(link, b'\\n')\n"
            + "print(os.read(link, 1000).decode(), end='')\n"
            + "status = open(f'/proc/{os.getppid()}/status').read()\n"
            + "print(int(status.split('VmHWM:')[1].split()[0]) < 120_000)"
        )
        self.assertIn("above the limit of 16777216 bytes", ran.stdout)
        self.assertTrue(ran.stdout.endswith("True\n"), ran.stdout)


class Breaking(unittest.TestCase):
    def test_descriptors_closed_or_replaced(self) -> None:
        for code in (
            "import os; os.closerange(0, 1000); os._exit(6)",
            "import os\nn = os.open('/dev/null', 2)\nfor fd in range(3, 200):\n    os.dup2(n, fd)\n"
            "os._exit(6)",
            "import os\nfor fd in range(200):\n    if fd != 1: os.dup2(1, fd)\nos._exit(6)",
        ):
            with self.subTest(code):
                self.assertEqual(run(code).wait, {"exited": True, "status": 6})

    def test_calls_without_an_answer_coming_fail(self) -> None:
        shut = LINK + "import socket\n"
        for code in (
            shut + "os.close(link)",
            shut + "os.dup2(1, link)",
            shut + "os.dup2(os.open('/dev/null', 2), link)",
            shut + "socket.socket(fileno=os.dup(link)).shutdown(socket.SHUT_RDWR)",
        ):
            call = "\ntry: mcp_shop.price()\nexcept Exception as e: print(e.code)"
            with self.subTest(code):
                self.assertEqual(
                    run(code + call * 3, [provider("price")]).stdout.count("internal_error\n"), 3
                )

    def test_the_module_os_replaced(self) -> None:
        code = (
            "import os\nprint('a')\nos._exit = os.write = os.read = os.getpid = os.close = lambda *args: 1\n"
        )
        self.assertTrue(run(code).ok)
        self.assertEqual(run(code + "raise KeyError").error["type"], "KeyError")

    def test_streams_closed(self) -> None:
        ran = run("import sys\nprint('a')\nsys.stdout.close()\nsys.stderr = None\n1/0")
        self.assertEqual((ran.stdout, ran.error["type"]), ("a\n", "ZeroDivisionError"))

    def test_streams_deleted(self) -> None:
        ran = run("import sys\nprint('a')\ndel sys.stdout, sys.stderr")
        self.assertEqual((ran.ok, ran.stdout, ran.stderr), (True, "a\n", ""))

    def test_json_replaced(self) -> None:
        ran = run("import json, sys\njson.dumps = json.loads = None\nsys.modules['json'] = None\nprint('x')")
        self.assertEqual((ran.ok, ran.stdout), (True, "x\n"))

    def test_garbage_collection(self) -> None:
        ran = run(
            "import gc\nfor _ in range(5): gc.collect()\nx = mcp_shop.price()\ngc.collect()\nx",
            [provider("price")],
            one,
        )
        self.assertEqual(ran.stdout, "'1'\n")

    def test_the_supervisor_is_out_of_reach(self) -> None:
        ran = run(
            "import os\n"
            "for name in ('fd', 'mem', 'environ', 'maps', 'auxv'):\n"
            "    try:\n"
            "        path = f'/proc/{os.getppid()}/{name}'\n"
            "        print(os.listdir(path) if name == 'fd' else open(path, 'rb').read(1))\n"
            "    except OSError as e: print(name, type(e).__name__)"
        )
        if os.getuid() == 0 and not os.environ.get("GUEST_UNDER"):
            self.skipTest("root with every capability may look anywhere")
        names = ("fd", "mem", "environ", "maps", "auxv")
        self.assertEqual(ran.stdout, "".join(f"{name} PermissionError\n" for name in names))

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "only as pid 1 can the kernel keep signals off")
    def test_signals_to_pid_1(self) -> None:
        ran = run(
            "import os\n"
            "for number in [*range(1, 65)] * 20:\n"
            "    try: os.kill(1, number)\n"
            "    except OSError: pass\n"
            "print('still here')"
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "still here\n"))

    @unittest.skipUnless(os.environ.get("GUEST_UNDER"), "needs the bounds of a container")
    def test_fork_bomb(self) -> None:
        with Guest() as guest:
            guest.execute(
                "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
                watch={"processes": 64},
            )
            ran = Ran(guest.until("done"))
            self.assertEqual(ran.wait.get("killed"), "processes")

    @unittest.skipUnless(
        os.environ.get("GUEST_UNDER"), "processes that leave the session are pid 1's to collect"
    )
    def test_processes_left_to_pid_1(self) -> None:
        ran = run(
            "import os, time\n"
            "for _ in range(300):\n"
            "    if os.fork() == 0:\n"
            "        if os.fork() == 0: os.setsid()\n"
            "        os._exit(0)\n"
            "    os.wait()\n"
            "for _ in range(100):\n"
            "    left = [p for p in os.listdir('/proc') if p.isdigit()]\n"
            "    if len(left) == 2: break\n"
            "    time.sleep(0.02)\n"
            "print(len(left))\n"
            "if os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['sleep', '1000'])"
        )
        self.assertEqual((ran.ok, ran.stdout), (True, "2\n"))


class Flooding(unittest.TestCase):
    def test_a_flood_waits_for_the_host(self) -> None:
        with Guest() as guest:
            guest.execute(
                "import os\nn = 0\nwhile True: n += os.write(1, b'x' * 65536); os.write(2, b'%d\\n' % n)"
            )
            guest.until("output")
            guest.send(
                {"type": "ping", "n": 1}
            )  # while nothing is read, what the supervisor holds stays bounded
            frames = guest.until("pong")
            self.assertLess(sum(len(frame.get("text", "")) for frame in frames), 8 << 20)
            guest.send({"type": "cancel", "id": "run-1"})
            self.assertEqual(Ran(guest.until("done")).wait["killed"], "cancel")

    def test_a_million_small_writes(self) -> None:
        ran = run("import os\nfor _ in range(300_000): os.write(1, b'y\\n')")
        self.assertEqual(len(ran.stdout), 600_000)
        self.assertLess(len(ran.frames), 3000)

    def test_calls_without_end(self) -> None:
        line = '{"type":"tool_call","callId":"%d","providerName":"p","safeToolName":"t"}\\n'
        with Guest() as guest:
            guest.execute(LINK + f"n = 0\nwhile True:\n    n += 1\n    os.write(link, b'{line}' % n)")
            calls = 0
            with self.assertRaises(TimeoutError):
                while frame := guest.read(1.0):
                    calls += frame["type"] == "tool_call"
            self.assertLess(calls, 3000)
            guest.send({"type": "cancel", "id": "run-1"})
            self.assertEqual(Ran(guest.until("done")).wait["killed"], "cancel")

    def test_results_that_are_not_read(self) -> None:
        line = '{"type":"tool_call","callId":"%d","providerName":"p","safeToolName":"t"}\\n'
        with Guest() as guest:
            guest.execute(
                LINK + f"for n in range(1, 9): os.write(link, b'{line}' % n)\nimport time\ntime.sleep(1000)"
            )
            for n in range(1, 4):
                guest.until("tool_call")
                guest.send({"type": "tool_result", "callId": str(n), "ok": True, "result": "x" * (15 << 20)})
            guest.close()
            guest.drain()
            self.assertEqual(guest.status(), 66)

    def test_unread_results_end_the_run(self) -> None:
        with Guest() as guest:
            leave_unread(guest, "time.sleep(1000)", 5)
            ran = Ran(guest.until("done"))
            self.assertEqual(ran.wait, {"exited": False, "status": 0, "signal": 9, "killed": "memory"})
            self.assertEqual(ran.error["code"], "memory_limit")
            self.assertIn("left unread took more than 64 MiB", ran.error["message"])
            self.assertEqual(guest.status(), 0)

    def test_unread_results_switch_no_rule_off(self) -> None:
        with Guest({"wire": ("SILENCE = 20.0", "SILENCE = 0.5")}) as guest:
            with contextlib.suppress(
                BrokenPipeError
            ):  # on a busy machine we may be the silent ones before all is sent
                leave_unread(guest, "time.sleep(1000)", 3)
            guest.drain()
            self.assertEqual(guest.status(), 67)

    def test_unread_results_are_no_failure(self) -> None:
        with Guest({"wire": ("SILENCE = 20.0", "SILENCE = 3.0")}) as guest:
            leave_unread(guest, "time.sleep(4)\nos._exit(0)", 3)
            frame: Frame = {"type": "pong"}
            while frame["type"] != "done":
                if frame["type"] == "pong":
                    time.sleep(0.2)  # a host pings now and then
                    with contextlib.suppress(BrokenPipeError):  # done is under way
                        guest.send({"type": "ping", "n": 1})
                frame = guest.read() or {"type": "no done"}
                self.assertIn(frame["type"], ("pong", "taken", "done"))
            self.assertTrue(frame["ok"])
            self.assertEqual(guest.status(), 0)

    def test_results_for_a_closed_link_are_dropped(self) -> None:
        with Guest() as guest:
            line = '{"type":"tool_call","callId":"%d","providerName":"p","safeToolName":"t"}\\n'
            code = (
                f"for n in range(1, 7): os.write(link, b'{line}' % n)\nos.close(link)\nprint('closed')\n"
                "import time\ntime.sleep(1000)"
            )
            guest.execute(LINK + code)
            kinds = [frame["type"] for _ in range(9) if (frame := guest.read())]
            self.assertEqual(sorted(kinds), ["output", "ready", "started"] + ["tool_call"] * 6)
            for n in range(1, 7):
                guest.send({"type": "tool_result", "callId": str(n), "ok": True, "result": "x" * (15 << 20)})
            guest.send({"type": "cancel", "id": "run-1"})
            self.assertEqual(Ran(guest.until("done")).wait["killed"], "cancel")

    def test_refusals_that_are_not_read(self) -> None:
        line = '{"type":"tool_call","callId":"%d"}\\n'
        with Guest() as guest:
            guest.execute(
                LINK
                + "import threading, time\nn = 0\n"
                + "def tell():\n    time.sleep(2)\n    status = open(f'/proc/{os.getppid()}/status').read()\n"
                + "    os.write(1, b'%a %a' % (n < 100_000, int(status.split('VmHWM:')[1].split()[0]) <"
                " 60_000))\n"
                + "threading.Thread(target=tell).start()\nwhile n < 320_000:\n    n += 1\n    os.write(link,"
                f" b'{line}' % n)"
            )
            self.assertEqual(guest.until("output")[-1]["text"], "True True")
            guest.close()
            guest.drain()
            self.assertEqual(guest.status(), 66)


def leave_unread(guest: Guest, then: str, results: int) -> None:
    """Runs code that makes eight calls and never reads, and sends results of 15 MiB."""
    line = '{"type":"tool_call","callId":"%d","providerName":"p","safeToolName":"t"}\\n'
    guest.execute(LINK + f"import time\nfor n in range(1, 9): os.write(link, b'{line}' % n)\n{then}")
    for _ in range(8):
        guest.until("tool_call")
    for n in range(1, results + 1):
        guest.send({"type": "tool_result", "callId": str(n), "ok": True, "result": "x" * (15 << 20)})


def one(frame: dict[str, object]) -> dict[str, object]:
    return {"ok": True, "result": text("1")}
