"""Hearing how far a call is, and having it cancelled."""

from __future__ import annotations

import unittest

from guest_tests.host import Frame, Guest, Ran, provider, run, text

SHOP = [provider("price")]
SEEN = "def seen(*report): print(*report)\n"
LINK = (
    "import os, json\n"
    "link = max(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n))\n"
)
CANCELLED = {"ok": False, "error": {"code": "cancelled", "message": "the code has cancelled this call"}}


def report(call: Frame, progress: float, **more: object) -> Frame:
    return {"type": "progress", "callId": call["callId"], "progress": progress, **more}


def result(call: Frame, said: str = "end") -> Frame:
    return {"type": "tool_result", "callId": call["callId"], "ok": True, "result": text(said)}


class Progress(unittest.TestCase):
    def heard(self, code: str, *reports: Frame) -> Ran:
        """Runs code that makes one call, which gets these reports before its result."""
        with Guest() as guest:
            guest.execute(code, SHOP)
            frames = guest.until("tool_call")
            for more in reports:
                guest.send({"type": "progress", "callId": "1", **more})
            guest.send(result(frames[-1]))
            return Ran(frames + guest.until("done"))

    def test_in_order_and_before_the_value(self) -> None:
        reports: list[Frame] = [{"progress": n, "total": 3, "message": f"m{n}"} for n in range(3)]
        reports += [{"progress": 2.5}, {"progress": 2**53, "total": 1e300}]
        want = f"0 3 m0\n1 3 m1\n2 3 m2\n2.5 None None\n{2**53} 1e+300 None\nend\n"
        for call in (
            "print(mcp_shop.price.options(progress=seen)())",
            "print(await mcp_shop.price.options(timeout=5, progress=seen)())",
            "import asyncio\nprint(await asyncio.create_task(mcp_shop.price.options(progress=seen)()))",
            "import threading\n"
            "t = threading.Thread(target=lambda: print(mcp_shop.price.options(progress=seen)())); "
            "t.start(); t.join()",
        ):
            with self.subTest(call):
                ran = self.heard(SEEN + call, *reports)
                self.assertEqual((ran.stdout, ran.error, ran.stderr), (want, {}, ""))

    def test_where_the_call_was_made(self) -> None:
        for code, want in (
            ("here = threading.get_ident()\n_ = mcp_shop.price.options(progress=seen)()", "True False\n"),
            (
                "here = threading.get_ident()\n_ = await mcp_shop.price.options(progress=seen)()",
                "True True\n",
            ),
        ):
            seen = (
                "import threading, sys\n"
                "def seen(*report):\n"
                "    import asyncio\n"
                "    print(here == threading.get_ident(), asyncio._get_running_loop() is not None)\n"
            )
            self.assertEqual(self.heard(seen + code, {"progress": 1}).stdout, want)

    def test_only_when_asked_for(self) -> None:
        for call, asked in (
            ("price()", False),
            ("price.options(timeout=5)()", False),
            ("price.options(progress=print)()", True),
        ):
            calls = [frame for frame in self.heard(f"mcp_shop.{call}").frames if frame["type"] == "tool_call"]
            self.assertEqual(["progress" in call for call in calls], [asked])
        self.assertEqual(self.heard("print(mcp_shop.price())", {"progress": 1}).stdout, "end\n")

    def test_what_a_callback_raises_is_told_once(self) -> None:
        code = "def seen(progress, *rest):\n    print(progress)\n    raise KeyError('k')\n"
        for call in (
            "print(mcp_shop.price.options(progress=seen)())",
            "print(await mcp_shop.price.options(progress=seen)())",
        ):
            ran = self.heard(code + call, {"progress": 1}, {"progress": 2})
            self.assertEqual((ran.stdout, ran.ok), ("1\n2\nend\n", True))
            told = (
                "<run_python>:3: the progress callback of mcp_shop.price has raised KeyError: 'k'; the call "
                "goes on\n"
            )
            self.assertEqual(ran.stderr, told)

    def test_no_callback(self) -> None:
        for callback, words in (
            ("7", "must be a function"),
            ("later", "must be a plain function, not an async one"),
        ):
            ran = run(f"async def later(*report): pass\nmcp_shop.price.options(progress={callback})()", SHOP)
            self.assertEqual((ran.error["type"], ran.error["line"]), ("TypeError", 2))
            self.assertIn(words, ran.error["message"])

    def test_a_callback_may_call(self) -> None:
        code = "def seen(*report): print(mcp_shop.buy())\nprint(mcp_shop.price.options(progress=seen)())"
        with Guest() as guest:
            guest.execute(code, [provider("price", "buy")])
            outer = guest.until("tool_call")[-1]
            guest.send(report(outer, 1))
            guest.send(result(guest.until("tool_call")[-1], "inner"))
            guest.send(result(outer, "outer"))
            self.assertEqual(Ran(guest.until("done")).stdout, "inner\nouter\n")

    def test_busy_code_hears_the_latest(self) -> None:
        code = (
            "import asyncio, threading\nreports = []\n"
            "call = asyncio.ensure_future(mcp_shop.price.options(progress=lambda *report: "
            "reports.append(report[0]))())\n"
            "await asyncio.sleep(0)\nawait asyncio.sleep(0)\n"
            # The loop stands still meanwhile.
            "busy = threading.Thread(target=lambda: mcp_shop.buy())\nbusy.start()\nbusy.join()\n"
            "await call\nprint(len(reports), reports[-1], reports == sorted(reports))"
        )
        with Guest() as guest:
            guest.execute(code, [provider("price", "buy")])
            asked, other = guest.until("tool_call")[-1], guest.until("tool_call")[-1]
            for n in range(5000):
                guest.send(report(asked, n, message="x" * 100))
            guest.send(result(other))
            guest.send(result(asked))
            self.assertEqual(Ran(guest.until("done")).stdout, "100 4999 True\n")

    def test_reports_that_are_not_read_are_counted(self) -> None:
        with Guest() as guest:
            guest.execute("call = mcp_shop.price.options(progress=lambda *report: None)()", SHOP)
            call = guest.until("tool_call")[-1]
            for _ in range(1100):
                guest.send(report({"callId": "77"}, 1, message="x" * 1000))
            guest.send(result(call))
            frames = guest.until("done")
            self.assertTrue(
                [frame for frame in frames if frame["type"] == "taken" and frame["bytes"] >= 1 << 20]
            )

    def test_what_is_no_report_ends_the_guest(self) -> None:
        for wrong in (
            {"callId": 1, "progress": 1},
            {"callId": "1"},
            {"callId": "1", "progress": "1"},
            {"callId": "1", "progress": True},
        ):
            with self.subTest(str(wrong)[:100]), Guest() as guest:
                guest.execute("mcp_shop.price()", SHOP)
                guest.until("tool_call")
                guest.send({"type": "progress", **wrong})
                guest.drain()
                self.assertEqual(guest.status(), 65)


class Cancelling(unittest.TestCase):
    def cancelled(self, code: str) -> tuple[list[str], Ran]:
        """Runs code and answers what it cancels, and calls with n=0. Gives the ids that were cancelled."""
        ids: list[str] = []
        with Guest() as guest:
            guest.execute(code, SHOP)
            frames: list[Frame] = []
            while not frames or frames[-1]["type"] != "done":
                frame = guest.read()
                assert frame is not None, frames
                frames.append(frame)
                if frame["type"] == "tool_cancel":
                    ids.append(frame["callId"])
                    try:
                        guest.send({"type": "tool_result", "callId": frame["callId"], **CANCELLED})
                    except BrokenPipeError:  # the run is over already
                        pass
                elif frame["type"] == "tool_call" and frame["input"] == {"n": 0}:
                    guest.send(result(frame))
            self.assertEqual(guest.status(), 0, guest.errors())
        return ids, Ran(frames)

    def test_ways_to_give_up(self) -> None:
        aio = "import asyncio\n"
        for code, want in (
            (
                aio + "t = asyncio.ensure_future(mcp_shop.price(n=1))\nawait asyncio.sleep(0.1)\nt.cancel()\n"
                "try: await t\nexcept asyncio.CancelledError: print('over')",
                "over\n",
            ),
            (
                aio + "try: await asyncio.wait_for(mcp_shop.price(n=1), 0.1)\nexcept asyncio.TimeoutError:"
                " print('late')",
                "late\n",
            ),
            (
                "try: await mcp_shop.price.options(timeout=0.1)(n=1)\nexcept TimeoutError: print('late')",
                "late\n",
            ),
            ("try: mcp_shop.price.options(timeout=0.1)(n=1)\nexcept TimeoutError: print('late')", "late\n"),
            (
                "try: mcp_shop.price.options(timeout=0.1, progress=print)(n=1)\n"
                "except TimeoutError: print('late')",
                "late\n",
            ),
            (
                "import signal\ndef stop(*_): raise KeyboardInterrupt\nsignal.signal(signal.SIGALRM, stop)\n"
                "signal.setitimer(signal.ITIMER_REAL, 0.2)\ntry: mcp_shop.price(n=1)\n"
                "except KeyboardInterrupt: print('stopped')",
                "stopped\n",
            ),
            (
                aio + "if hasattr(asyncio, 'timeout'):\n"  # from 3.11 on
                "    try:\n        async with asyncio.timeout(0.1): await mcp_shop.price(n=1)\n"
                "    except TimeoutError: print('late')\nelse:\n"
                "    try: await asyncio.wait_for(mcp_shop.price(n=1), 0.1)\n"
                "    except asyncio.TimeoutError: print('late')",
                "late\n",
            ),
        ):
            with self.subTest(code):
                after = "\nx = mcp_shop.price(n=0)\nprint(await x if not isinstance(x, str) else x)"
                ids, ran = self.cancelled(
                    code + after if "await" in code else code + "\nprint(mcp_shop.price(n=0))"
                )
                self.assertEqual((ids, ran.stdout, ran.error, ran.stderr), (["1"], want + "end\n", {}, ""))

    def test_siblings(self) -> None:
        ids, ran = self.cancelled(
            "import asyncio\ncalls = [asyncio.ensure_future(mcp_shop.price(n=n)) for n in range(5)]\n"
            "done, rest = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)\n"
            "for call in rest: call.cancel()\n"
            "print(len(done), [type(r).__name__ for r in await asyncio.gather(*rest, "
            "return_exceptions=True)])"
        )
        self.assertEqual(sorted(ids), ["2", "3", "4", "5"])
        self.assertEqual(ran.stdout, f"1 {['CancelledError'] * 4}\n")

    def test_what_is_over_is_not_cancelled(self) -> None:
        for code in (
            "import asyncio\nt = asyncio.ensure_future(mcp_shop.price(n=0))\nawait t\nt.cancel()",
            (  # never sent
                "import asyncio\nt = asyncio.ensure_future(mcp_shop.price(n=1))\nt.cancel()\n"
                "await asyncio.sleep(0.1)"
            ),
            "mcp_shop.price.options(timeout=10)(n=0)",
            "try: mcp_shop.price(n={1})\nexcept Exception: pass",
        ):
            with self.subTest(code):
                ids, ran = self.cancelled(code)
                self.assertEqual((ids, ran.error), ([], {}))

    def test_garbage(self) -> None:
        ids, ran = self.cancelled(
            "import gc, asyncio\nawait asyncio.sleep(0)\ncall = mcp_shop.price(n=1)\ncall.send(None)\n"
            "del call\ngc.collect()\nprint(await mcp_shop.price(n=0))"
        )
        self.assertEqual((ids, ran.stdout, ran.stderr), (["1"], "end\n", ""))

    def test_an_answer_that_crosses(self) -> None:
        code = (
            "try: mcp_shop.price.options(timeout=0.1)(n=1)\nexcept TimeoutError: print('late')\n"
            "print(mcp_shop.price(n=2))"
        )
        with Guest() as guest:
            guest.execute(code, SHOP)
            first = guest.until("tool_call")[-1]
            guest.until("tool_cancel")
            second = guest.until("tool_call")[-1]
            guest.send(report(first, 1))  # nothing hears it
            guest.send(result(first, "too late"))
            guest.send(
                {"type": "tool_result", "callId": "1", **CANCELLED}
            )  # a second answer, which no host of ours sends
            guest.send(result(second, "other"))
            self.assertEqual(Ran(guest.until("done")).stdout, "other\n")

    def test_behind_all_the_calls_that_may_wait(self) -> None:
        code = (
            "import asyncio\n"
            "calls = [asyncio.ensure_future(mcp_shop.price(n=1)) for _ in range(1030)]\n"
            "done, rest = await asyncio.wait(calls, timeout=1)\n"
            "for call in reversed(calls[5:-2]): call.cancel()\n"
            "print(len(done), await calls[-1], await mcp_shop.price(n=2))\nimport os; os._exit(0)"
        )
        with Guest() as guest:
            guest.execute(code, SHOP)
            ids, cancelled, printed = [], [], ""
            while (frame := guest.read()) and frame["type"] != "done":
                if frame["type"] == "tool_call":
                    ids.append(int(frame["callId"]))
                    if ids[-1] > 1028:
                        guest.send(result(frame, frame["callId"]))
                elif frame["type"] == "tool_cancel":
                    cancelled.append(int(frame["callId"]))
                    guest.send({"type": "tool_result", "callId": frame["callId"], **CANCELLED})
                elif frame["type"] == "output":
                    printed += frame["text"]
            self.assertEqual(printed, "0 1030 1031\n")
            # Those that were held, and cancelled before their turn, were never sent.
            self.assertEqual(ids, [*range(1, 1025), 1029, 1030, 1031])
            self.assertEqual(cancelled, [*range(1024, 5, -1)])


class Forging(unittest.TestCase):
    def test_only_calls_that_wait_are_cancelled_and_once(self) -> None:
        call = '{"type":"tool_call","callId":"%d","providerName":"p","safeToolName":"t","progress":%s}'
        lines = [
            '{"type":"tool_cancel","callId":"1"}',  # before it is made
            call % (1, "true"),
            call % (2, '"yes"'),
            *(['{"type":"tool_cancel","callId":"2","TYPE":"done","id":"x"}'] * 3),  # rebuilt
            '{"type":"tool_cancel","callId":"9"}',
            '{"type":"tool_cancel","callId":1}',
            '{"type":"tool_cancel","callId":["1"]}',
            '{"type":"tool_cancel"}',
            '{"type":"progress","callId":"1","progress":1}',
            call % (3, 1),
        ]
        code = LINK + f"for line in {lines!r}:\n    os.write(link, line.encode() + b'\\n')\n"
        code += "answers = b''\nwhile answers.count(b'\\n') < 2: answers += os.read(link, 65536)\n"
        code += 'os.write(link, b\'{"type":"tool_cancel","callId":"3"}\\n\')\nos._exit(0)'
        with Guest() as guest:
            guest.execute(code)
            frames = guest.until("tool_call") + guest.until("tool_call") + guest.until("tool_call")
            for call_id in ("2", "3"):
                guest.send({"type": "tool_result", "callId": call_id, "ok": True})
            frames += guest.until("done")
        asked = [(f["callId"], f.get("progress")) for f in frames if f["type"] == "tool_call"]
        self.assertEqual(asked, [("1", True), ("2", None), ("3", None)])
        self.assertEqual(
            [f for f in frames if f["type"] == "tool_cancel"], [{"type": "tool_cancel", "callId": "2"}]
        )

    def test_a_forged_cancel_of_ones_own_call(self) -> None:
        forge = 'os.write(link, b\'{"type":"tool_cancel","callId":"1"}\\n\')'
        code = f"{LINK}import threading\nover = threading.Event()\ndef forge():\n"
        code += f"    while not over.wait(0.05): {forge}\n"  # one that comes before the call has no effect
        code += "threading.Thread(target=forge).start()\n"
        code += "try: mcp_shop.price()\nexcept ToolError as e: print(e.code, e)\nfinally: over.set()"
        with Guest() as guest:
            guest.execute(code, SHOP)
            guest.until("tool_cancel")
            guest.send({"type": "tool_result", "callId": "1", **CANCELLED})
            self.assertEqual(Ran(guest.until("done")).stdout, "cancelled the code has cancelled this call\n")

    def test_a_flood_of_cancels(self) -> None:
        code = (
            LINK + "os.write(link,"
            ' b\'{"type":"tool_call","callId":"1","providerName":"p","safeToolName":"t"}\\n\')\none ='
            ' b\'{"type":"tool_cancel","callId":"%d"}\\n\'\nflood = memoryview((one % 1 + one % 7) *'
            " 50_000)\nwhile flood: flood = flood[os.write(link, flood):]\nstatus ="
            " open(f'/proc/{os.getppid()}/status').read()\nprint(int(status.split('VmHWM:')[1].split()[0])"
            " < 60_000)"
        )
        with Guest() as guest:
            guest.execute(code)
            ran = Ran(guest.until("done"))
        self.assertEqual(
            ([f["callId"] for f in ran.frames if f["type"] == "tool_cancel"], ran.stdout), (["1"], "True\n")
        )
