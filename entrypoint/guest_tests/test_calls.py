"""Tools as code calls them."""

from __future__ import annotations

import ast
import json
import sys
import unittest

from guest_tests.host import Frame, Guest, Ran, provider, run, text

SHOP = provider(
    "price",
    "buy",
    properties={"item": {"type": "string"}, "count": {"type": "integer"}, "from": {}},
    required=["count"],
)


def echo(frame: Frame) -> Frame:
    return {"ok": True, "result": text(json.dumps(frame["input"]))}


class Arguments(unittest.TestCase):
    def said(self, call: str) -> Ran:
        return run(f"print({call})", [SHOP], echo)

    def test_pass(self) -> None:
        for call, want in (
            ("mcp_shop.price(count=2)", {"count": 2}),
            ("mcp_shop.price(2, 'tea')", {"count": 2, "item": "tea"}),
            ("mcp_shop.price(2, from_='x')", {"count": 2, "from": "x"}),
            ("mcp_shop.price(2, **{'from': 'x'})", {"count": 2, "from": "x"}),
            ("mcp_servers.shop.price(count=2)", {"count": 2}),
            ("mcp_servers['shop']['price'](count=2**60 + 1)", {"count": 2**60 + 1}),
            ("runtime.call_tool('shop', 'price', {'count': 1})", {"count": 1}),
            ("__import__('mcp.servers.shop').servers.shop.price(1)", {"count": 1}),
        ):
            with self.subTest(call):
                ran = self.said(call)
                self.assertTrue(ran.ok, ran.error)
                self.assertEqual(ast.literal_eval(ran.stdout), want)

    def test_fail_before_anything_is_sent(self) -> None:
        for call, kind, words in (
            ("mcp_shop.price()", "TypeError", ["lacks 'count'", "item"]),
            ("mcp_shop.price(1, itme='x')", "TypeError", ["no parameter 'itme'", "did you mean item?"]),
            ("mcp_shop.price(1, 2, 3, 4)", "TypeError", ["at most 3", "count, from_, item"]),
            ("mcp_shop.price(1, count=2)", "TypeError", ["two values for 'count'"]),
            ("mcp_shop.prcie(1)", "AttributeError", ["no tool 'prcie'", "did you mean price?", "buy, price"]),
            ("mcp_shop['nothing']", "KeyError", ["no tool 'nothing'", "buy, price"]),
            ("mcp_servers['shpo']", "KeyError", ["no server 'shpo'", "did you mean shop?"]),
            ("mcp_servers.shpo", "AttributeError", ["no server 'shpo'", "did you mean shop?"]),
            ("mcp_shpo.price(1)", "NameError", ["did you mean mcp_shop?"]),
            ("__import__('mcp.servers.shpo')", "ModuleNotFoundError", ["did you mean mcp_shop?"]),
            ("mcp_shop.price({1})", "SerializationError", ["count", "set"]),
            ("mcp_shop.price(1, 'x' * (17 << 20))", "SerializationError", ["limit is 16777216"]),
            ("mcp_shop.price.options(timeout=-1)", "ValueError", ["positive"]),
        ):
            with self.subTest(call):
                ran = self.said(call)
                self.assertEqual((ran.error.get("type"), ran.error.get("line")), (kind, 1))
                for word in words:
                    self.assertIn(word, ran.error["message"])
                self.assertNotIn("tool_call", [frame["type"] for frame in ran.frames])
                self.assertNotIn("<guest>", ran.error["traceback"])
                self.assertLessEqual(ran.error["traceback"].lower().count("did you mean"), 1)

    def test_python_adds_no_second_suggestion(self) -> None:
        """It looks among the names of the error's obj, from 3.12 on also where tracebacks are made
        by the module of that name.
        """
        code = "try:\n    mcp_shop.prcie\nexcept AttributeError as e:\n    print(e.name, e.obj)"
        self.assertEqual(run(code, [provider("price")]).stdout, "prcie None\n")


class Results(unittest.TestCase):
    def value(self, code: str, result: object, **tool: object) -> Ran:
        shop = provider("price")
        shop["tools"]["price"].update(tool)
        return run(f"r = mcp_shop.price()\n{code}", [shop], lambda frame: {"ok": True, "result": result})

    def test_values(self) -> None:
        big = 2**63 - 25
        both = {"content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": big}}
        inner = [{"uri": "a:1", "text": "inner"}, {"uri": "a:2", "blob": "AAE=", "mimeType": "b/c"}]
        along = {"content": [{"type": "resource", "resource": one} for one in inner]}
        linked = {"content": [{"type": "resource_link", "uri": "x:1", "mimeType": "a/b", "size": big}]}
        image = {"type": "image", "data": "AAE=", "mimeType": "a/b"}
        drawn = {"content": [image], "structuredContent": {"content": "own"}}
        listed = {"structuredContent": [1, big], "content": []}
        shown = "['inner', <resource a:2, b/c, 2 bytes>] a:1 b/c\n"
        how = "\n[1 image: .images, shown by display(...)]"
        envelope = "r[0], r[-1:], r['isError'], r.get('x', 5), r['structuredContent'] if r.structured else 0"
        for code, result, tool, want in (
            ("r['n']", both, {"outputSchema": {"type": "object"}}, f"{big}\n"),
            ("r, r.json(), r.structured", both, {}, f"{{'n': 1}} {{'n': 1}} {{'n': {big}}}\n"),
            ("repr(r), r.resources, r.resources[0].uri, r.resources[1].mime", along, {}, f"'inner' {shown}"),
            (
                "r.links, r.links[0].uri, r.links[0].about['size']",
                linked,
                {},
                f"[<resource x:1, a/b>] x:1 {big}\n",
            ),
            ("r.audio[0].data", {"content": [{"type": "audio", "data": "AAE="}]}, {}, "b'\\x00\\x01'\n"),
            (
                "r, r.images, r['content']",
                drawn,
                {"outputSchema": {}},
                f"{{'content': 'own'}}{how} [<file a/b, 2 bytes>] own\n",
            ),
            ("r, type(r)", listed, {}, f"[1, {big}] <class 'mcp.ToolList'>\n"),
            (envelope, text("abc"), {}, "a c False 5 0\n"),
            ("r", None, {}, "None\n"),
        ):
            with self.subTest(code):
                ran = self.value(f"print({code})", result, **tool)
                self.assertEqual((ran.stdout, ran.error), (want, {}))

    def test_a_failure_is_raised(self) -> None:
        ran = run(
            "try: mcp_shop.price()\nexcept ToolError as e: print(e, e.server, e.tool, e.code, e.content)\n"
            "mcp_shop.price()",
            [provider("price")],
            lambda frame: {"ok": True, "result": {**text("sold out"), "isError": True}},
        )
        self.assertEqual(
            ran.stdout, "sold out shop price tool_error [{'type': 'text', 'text': 'sold out'}]\n"
        )
        self.assertEqual(
            (ran.error["type"], ran.error["code"], ran.error["line"]), ("ToolError", "tool_error", 3)
        )

    def test_an_answer_that_python_can_not_hold(self) -> None:
        for raw in ("9" * 5000, "[" * 100_000 + "]" * 100_000):
            with Guest() as guest:
                guest.execute(
                    "try: mcp_shop.price()\nexcept ToolError as e: print(e.code, e)", [provider("price")]
                )
                call = guest.until("tool_call")[-1]["callId"]
                guest.raw(
                    b'{"type":"tool_result","callId":"%s","ok":true,"result":%s}\n'
                    % (call.encode(), raw.encode())
                )
                self.assertTrue(
                    Ran(guest.until("done")).stdout.startswith(
                        "serialization_error the answer can't be read as JSON"
                    )
                )

    def test_a_denial_is_raised(self) -> None:
        ran = run(
            "mcp_shop.price()",
            [provider("price")],
            lambda frame: {"ok": False, "error": {"code": "denied", "message": "not allowed"}},
        )
        self.assertEqual(
            (ran.error["type"], ran.error["code"], ran.error["message"]),
            ("ToolError", "denied", "not allowed"),
        )

    def test_ten_megabytes(self) -> None:
        ran = self.value("print(len(r), r[-1])", text("ä" * 5_000_000 + "!"))
        self.assertEqual(ran.stdout, "5000001 !\n")


class Styles(unittest.TestCase):
    def test_one_name_both_styles(self) -> None:
        ran = run(
            "import asyncio, threading\n"
            "def blocking(): return mcp_shop.price(n='plain')\n"
            "print(blocking())\n"
            "async def main():\n"
            "    print(await mcp_shop.price(n='awaited'))\n"
            "    print(await asyncio.create_task(mcp_shop.price(n='task')))\n"
            "    print(await asyncio.to_thread(blocking))\n"
            "    print(await asyncio.wait_for(mcp_shop.price(n='timed'), 5))\n"
            "asyncio.run(main())\n"
            "t = threading.Thread(target=lambda: print(mcp_shop.price(n='thread'))); t.start(); t.join()",
            [provider("price")],
            echo,
        )
        said = [ast.literal_eval(line)["n"] for line in ran.stdout.splitlines()]
        self.assertEqual(said, ["plain", "awaited", "task", "plain", "timed", "thread"])

    def test_wherever_a_call_stands(self) -> None:
        for code, want in (
            (
                "def outer():\n    def inner(): return mcp_shop.price(n=1)\n    return inner()\n"
                "print(outer())",
                "{'n': 1}\n",
            ),
            ("print([mcp_shop.price(n=n).json()['n'] for n in range(3)])", "[0, 1, 2]\n"),
            ("print([(await mcp_shop.price(n=n)).json()['n'] for n in range(3)])", "[0, 1, 2]\n"),
            (
                "def each():\n    for n in range(3): yield mcp_shop.price(n=n)\nprint(list(each()))",
                "[{'n': 0}, {'n': 1}, {'n': 2}]\n",
            ),
            (
                "async def each():\n    for n in range(2): yield await mcp_shop.price(n=n)\n"
                "print([v async for v in each()])",
                "[{'n': 0}, {'n': 1}]\n",
            ),
            ("class A:\n    value = mcp_shop.price(n=1)\nprint(A.value)", "{'n': 1}\n"),
            (
                "print((lambda n: mcp_shop.price(n=n))(4), sorted([2, 1], key=lambda n:"
                " mcp_shop.price(n=n)['n']))",
                "{'n': 4} [1, 2]\n",
            ),
            (
                "import asyncio\nf = lambda n: mcp_shop.price(n=n)\nprint(await asyncio.gather(f(1), f(2)))",
                "[{'n': 1}, {'n': 2}]\n",
            ),
            (
                "import asyncio\n"
                "made = [mcp_shop.price(n=n) for n in range(2)]\n"
                "async def main(): return [await v for v in made]\n"
                "print(asyncio.run(main()))",
                "[{'n': 0}, {'n': 1}]\n",
            ),
            (
                "import asyncio, threading\n"
                "async def main(): print(await mcp_shop.price(n=1))\n"
                "t = threading.Thread(target=lambda: asyncio.run(main())); t.start(); t.join()",
                "{'n': 1}\n",
            ),
            (
                "import asyncio\n"
                "async def main(): return await mcp_shop.price(n=1)\n"
                "print(await asyncio.to_thread(lambda: asyncio.run(main())))",
                "{'n': 1}\n",
            ),
            (
                "import asyncio\nloop = asyncio.get_running_loop()\ndone = loop.create_future()\n"
                "loop.call_soon(lambda: asyncio.ensure_future(mcp_shop.price(n=1)).add_done_callback(lambda "
                "t: done.set_result(t.result())))\n"
                "print(await done)",
                "{'n': 1}\n",
            ),
            (
                "import functools\n"
                "print(functools.partial(mcp_shop.price, n=1)(), list(map(mcp_shop.price, [])))",
                "{'n': 1} []\n",
            ),
            (
                "import asyncio\n"
                "if hasattr(asyncio, 'TaskGroup'):\n"
                "    async with asyncio.TaskGroup() as g: t = g.create_task(mcp_shop.price(n=1))\n"
                "    print(t.result())\n"
                "else: print(await mcp_shop.price(n=1))",
                "{'n': 1}\n",
            ),
            (
                "import asyncio\n"
                "async def main():\n"
                "    return await asyncio.wait_for(asyncio.shield(mcp_shop.price(n=1)), 5)\n"
                "print(asyncio.run(main()))",
                "{'n': 1}\n",
            ),
        ):
            with self.subTest(code):
                ran = run(code, [provider("price")], echo)
                self.assertEqual((ran.stdout, ran.error, ran.stderr), (want, {}, ""))

    def test_a_value_that_was_not_awaited(self) -> None:
        for use, kind in (
            ("['n']", "TypeError"),
            (".json()", "AttributeError"),
            (".upper", "AttributeError"),
        ):
            ran = run(
                f"import asyncio\nawait asyncio.sleep(0)\nmcp_shop.price(n=1){use}", [provider("price")], echo
            )
            self.assertEqual((ran.error["type"], ran.error["line"]), (kind, 3))
            self.assertIn("write: (await mcp_shop.price(...))", ran.error["message"])

    def test_at_once(self) -> None:
        for code in (
            "import asyncio\nprint(await asyncio.gather(*(mcp_shop.price(n=n) for n in range(50))))",
            "from concurrent.futures import ThreadPoolExecutor as T\n"
            "with T(50) as t: print(list(t.map(lambda n: mcp_shop.price(n=n), range(50))))",
        ):
            with self.subTest(code), Guest() as guest:
                guest.execute(code, [provider("price")])
                calls = [guest.until("tool_call")[-1] for _ in range(50)]
                for call in sorted(calls, key=lambda call: -call["input"]["n"]):
                    result = {"content": [], "structuredContent": call["input"]["n"]}
                    guest.send(
                        {"type": "tool_result", "callId": call["callId"], "ok": True, "result": result}
                    )
                self.assertEqual(Ran(guest.until("done")).stdout, f"{list(range(50))}\n")

    def test_a_forgotten_await_is_told(self) -> None:
        ran = run(
            "import asyncio\nawait asyncio.sleep(0)\nmcp_shop.price(n=1)\nx = mcp_shop.price(n=2)\n"
            "print('end')",
            [provider("price")],
        )
        self.assertEqual(ran.stdout, "end\n")
        self.assertEqual(
            [line.split(" was")[0] for line in ran.stderr.splitlines()],
            ["<run_python>:3: mcp_shop.price(...)", "<run_python>:4: mcp_shop.price(...)"],
        )

    def test_a_coroutine_that_was_never_awaited_is_told(self) -> None:
        """Python itself tells of those that aren't in variables at the end."""
        begin = "import asyncio\nasync def main(n=0): print(n)\n"
        held = "<run_python>: {} has main(...), which was never awaited, so none of it has run; write: "
        held += "await {}\n"
        for code, told in (
            ("r = main()", held.format("r", "r")),
            ("r = s = main()\nprint(end='')", held.format("r", "r")),
            ("r = main()\nawait asyncio.sleep(0)", held.format("r", "r")),
            ("all = [main(n) for n in range(3)]", held.format("all", "asyncio.gather(*all)")),
            ("r = main()\nr.close()", ""),
            ("r = main()\nraise SystemExit(3)\nawait r", ""),
            (
                "class Odd(type):\n    def __eq__(a, b): print('asked')\n    __hash__ = type.__hash__\n"
                "class Kind(metaclass=Odd): pass\nr = Kind()\nglobals()[type('s', (str,), {})('n')] = main()",
                "",
            ),
            ("r = main()\nasyncio.run(r)", ""),
            ("r = main()\nawait r", ""),
            (
                "r = asyncio.sleep(9)\nt = asyncio.ensure_future(r)\nawait asyncio.sleep(0)\nt.cancel()",
                "",
            ),
            (
                "import threading, time\nr = main()\n"
                "threading.Thread(target=lambda: (time.sleep(0.1), asyncio.run(r))).start()",
                "",
            ),
        ):
            with self.subTest(code):
                self.assertEqual(run(begin + code).stderr, told)

    @unittest.skipIf(sys.version_info < (3, 11), "which doesn't say what the code has cancelled itself")
    def test_tasks_that_the_end_cancels_are_told(self) -> None:
        begin = "import asyncio\nasync def f(n=9): await asyncio.sleep(n)\n"
        two = "2 tasks weren't done when the event loop ended, which cancelled them: {}; await them"
        one = "a task wasn't done when the event loop ended, which cancelled it: f(...); await it"
        many = "7 tasks weren't done when the event loop ended, which cancelled them: " + "f(...), " * 4
        for code, said in (
            ("asyncio.gather(f(), f());", two.format("f(...), f(...)")),
            ("asyncio.gather(mcp_shop.price(n=1), f());", two.format("f(...), mcp_shop.price(...)")),
            ("t = asyncio.create_task(f())", one),
            (
                "all = [asyncio.ensure_future(f()) for n in range(7)]\nawait asyncio.sleep(0)",
                many + "f(...) and 2 more; await them",
            ),
            ("await asyncio.gather(f(0), f(0))", ""),
            ("t = asyncio.create_task(f(0))\nawait asyncio.sleep(0)", ""),  # it ends by itself
            ("t = asyncio.create_task(f())\nt.cancel()", ""),
            (
                "done, pending = await asyncio.wait([asyncio.create_task(f(n)) for n in (0, 9)],"
                " return_when='FIRST_COMPLETED')\nfor one in pending: one.cancel()",
                "",
            ),
            ("t = asyncio.create_task(f())\nraise SystemExit(0)", ""),
            ("async def g():\n    yield 1\n    yield 2\nasync for n in g(): break", ""),
            ("asyncio.all_tasks = None\nt = asyncio.create_task(f(0))\nawait t", ""),
        ):
            with self.subTest(code):
                ran = run(
                    f"{begin}await asyncio.sleep(0)\n{code}",
                    [provider("price")],
                    lambda frame: {"ok": True, "result": {}},
                )
                # Of a gather that is gone, asyncio itself says more.
                about = [line for line in ran.stderr.splitlines() if "event loop" in line]
                self.assertTrue(ran.ok, ran.error)
                self.assertTrue(
                    ("".join(about) + "; ").startswith(f"<run_python>: {said}" if said else "; "), about
                )
        for code in (
            "async def main():\n    t = asyncio.create_task(f())\nasyncio.run(main())",
            "async def main(): asyncio.create_task(f())\nasyncio.run(main())",
        ):
            with self.subTest(code):
                self.assertIn(one, run(begin + code).stderr)
        failing = "async def main():\n    t = asyncio.create_task(f())\n    1 / 0\nasyncio.run(main())"
        self.assertNotIn("event loop", run(begin + failing).stderr)

    def test_tasks_in_variables_that_failed_or_never_ran_are_told(self) -> None:
        begin = "import asyncio, warnings\nwarnings.simplefilter('ignore')\nasync def f(n=0): return 1 / n\n"
        named = "a task" if sys.version_info[:2] == (3, 12) else "f(...)"
        failed = f"{named}, which failed, and nothing awaited it: ZeroDivisionError: division by zero; write: await "
        for code, said in (
            ("t = asyncio.create_task(f())\nawait asyncio.sleep(0)", f"t has {failed}t\n"),
            (
                "ts = [asyncio.create_task(f(n)) for n in (1, 0)]\nawait asyncio.wait(ts)",
                f"ts has {failed}asyncio.gather(*ts)\n",
            ),
            (
                "ts = [asyncio.create_task(f(n)) for n in range(20, -1, -1)]\nawait asyncio.wait(ts)",
                f"ts has {failed}asyncio.gather(*ts)\n",
            ),
            (
                "a = asyncio.new_event_loop().create_future()\nt = asyncio.create_task(f())\n"
                "await asyncio.sleep(0)",
                f"t has {failed}t\n",
            ),
            ("t = asyncio.create_task(f())\nawait asyncio.wait([t])\nt.exception()", ""),
            ("t = asyncio.create_task(f(1))\nawait asyncio.sleep(0)", ""),
            ("t = asyncio.create_task(f())\ntry: await t\nexcept ArithmeticError: pass", ""),
            (
                "loop = asyncio.new_event_loop()\nt = loop.create_task(f(1))",
                "t has f(...), which no event loop has run; write: await t\n",
            ),
        ):
            with self.subTest(code):
                self.assertEqual(run(begin + code).stderr, f"<run_python>: {said}" if said else "")

    def test_nothing_that_is_told_is_an_error(self) -> None:
        begin = "import asyncio, sys\nasync def f(): await asyncio.sleep(9)\n"
        broken = "class Bad:\n    def write(self, text): raise OSError\n    def flush(self): pass\n"
        left = "c = f()\nawait asyncio.sleep(0)\nt = asyncio.create_task(f())\nprint('ok')\n"
        for code in (
            "del sys.stderr",
            "sys.stderr = None",
            f"{broken}sys.stderr = Bad()",
            f"{broken}sys.stderr = Bad()\ndef hook(*given): sys.stderr.write('')\nsys.excepthook = hook",
            "sys.excepthook = None\ndel sys.modules['__main__']",
            "del sys.modules['asyncio']",
            "asyncio.Future = None",
        ):
            with self.subTest(code):
                ran = run(begin + left + code)
                self.assertEqual((ran.ok, ran.stdout), (True, "ok\n"), ran.error)

    def test_timeout(self) -> None:
        for call in ("mcp_shop.price.options(timeout=0.1)()", "await mcp_shop.price.options(timeout=0.1)()"):
            with self.subTest(call), Guest() as guest:
                guest.execute(
                    f"try: {call}\nexcept TimeoutError as e: print(type(e).__name__, e.code, e)",
                    [provider("price")],
                )
                self.assertEqual(
                    Ran(guest.until("done")).stdout,
                    "ToolTimeout timeout mcp_shop.price gave no result within 0.1 s\n",
                )

    def test_not_from_a_fork(self) -> None:
        ran = run(
            "import os\nif os.fork(): os.wait()\nelse:\n"
            "    try: mcp_shop.price()\n    except RuntimeError as e: print(e)\n    os._exit(0)",
            [provider("price")],
        )
        self.assertIn("not by a fork", ran.stdout)


class Runtime(unittest.TestCase):
    def lazy(self, frame: Frame) -> Frame:
        if (frame["providerName"], frame["safeToolName"]) == ("runtime", "load_server"):
            name = frame["input"]["server"]
            return (
                {"ok": True, "result": provider("price", name=name)}
                if name != "bad"
                else {"ok": False, "error": {"code": "tool_error", "message": "it does not start"}}
            )
        return echo(frame)

    def test_tools_are_asked_for_at_the_first_touch(self) -> None:
        shop = {"name": "shop", "alias": "shop", "tools": None}
        ran = run(
            "print(mcp_shop)\nprint(mcp_shop.price(n=1))\nprint(mcp_shop.price(n=2), dir(mcp_shop))",
            [shop],
            self.lazy,
        )
        calls = [
            (f["providerName"], f["safeToolName"], f["input"]) for f in ran.frames if f["type"] == "tool_call"
        ]
        self.assertEqual(
            calls,
            [
                ("runtime", "load_server", {"server": "shop"}),
                ("shop", "price", {"n": 1}),
                ("shop", "price", {"n": 2}),
            ],
        )

    def test_a_tool_that_is_gone(self) -> None:
        def host(frame: Frame) -> Frame:
            return {"ok": True, "result": {**provider("price"), "gone": ["cost", "total-cost", 7]}}

        for code, want in (
            (
                "mcp_shop.cost",
                "mcp_shop has no tool 'cost' any more: what was known of its tools was out of date; ",
            ),
            (
                "mcp_shop['total-cost']",
                "server 'shop' has no tool 'total-cost' any more: what was known of its tools was out of"
                " date; ",
            ),
            ("mcp_shop.other", "mcp_shop has no tool 'other'; "),
        ):
            ran = run(code, [{"name": "shop", "alias": "shop", "tools": None}], host)
            self.assertIn(want, ran.error["message"])

    def test_a_tool_that_is_denied(self) -> None:
        def host(frame: Frame) -> Frame:
            return {
                "ok": True,
                "result": {**provider("price"), "denied": {"cost": 'rule "*.cost"', "all-costs": 7}},
            }

        for code, want in (
            ("mcp_shop.cost", "mcp_shop has no tool 'cost' that may be called, by rule \"*.cost\"; "),
            ("mcp_shop['all-costs']", "server 'shop' has no tool 'all-costs' that may be called, by 7; "),
            (
                "print('cost' in mcp_shop, 'cost' in dir(mcp_shop)); mcp_shop.other",
                "mcp_shop has no tool 'other'; ",
            ),
        ):
            ran = run(code, [{"name": "shop", "alias": "shop", "tools": None}], host)
            self.assertIn(want, ran.error["message"])
            self.assertNotIn("True", ran.stdout)

    def test_a_server_that_does_not_start(self) -> None:
        ran = run("mcp_bad.price()", [{"name": "bad", "alias": "bad", "tools": None}], self.lazy)
        self.assertEqual((ran.error["type"], ran.error["message"]), ("ToolError", "it does not start"))

    def test_load_server(self) -> None:
        for prefix in ("", "await "):
            ran = run(
                f"s = {prefix}runtime.load_server('more')\n"
                f"print({prefix}s.price(n=1), mcp_more is s, {prefix}runtime.list_servers())",
                [],
                self.lazy,
            )
            self.assertEqual(ran.stdout, "{'n': 1} True ['more']\n", ran.error)
