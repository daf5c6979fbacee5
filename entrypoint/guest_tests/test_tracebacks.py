"""What is said of uncaught exceptions: places, chains, and the next step for usual slips."""

from __future__ import annotations

import sys
import unittest

from guest import name_hints
from guest_tests.host import Ran, provider, run, text

COLUMNS = sys.version_info >= (3, 11)  # Python marks them from this version on


class Places(unittest.TestCase):
    def test_lines(self) -> None:
        for code, line, source in (
            ("1\r\n2\r\n1/0\r\n", 3, "1/0"),
            ("1\r2\r1/0", 3, "1/0"),
            ("1\n\f\nx = '\x0b\x1c\u2028'\n1/0", 4, "1/0"),
            ("# -*- coding: latin-1 -*-\nx = 'é'; 1/0", 2, "x = 'é'; 1/0"),
            ("\ufeff1/0", 1, "1/0"),
            ("\ufeff# coding: utf-8\n1/0", 2, "1/0"),
            ("x = (1 +\n    2 *\n    (3 / 0))", 3, "(3 / 0))"),
            ("def f(g): 1/0\n\n@f\n# what it decorates\ndef h():\n    pass", 1, "def f(g): 1/0"),
            ("f'''\na\n{1/0}'''", None, None),  # older Pythons place it at the beginning
        ):
            with self.subTest(code):
                error = run(code).error
                self.assertEqual(error["type"], "ZeroDivisionError")
                if line:
                    self.assertEqual(error["line"], line)
                    self.assertIn(f"line {line}, in", error["traceback"])
                    self.assertIn(f"    {source}\n", error["traceback"])

    @unittest.skipUnless(COLUMNS, "Python 3.10 places it at what is decorated")
    def test_decorated(self) -> None:
        traceback = run("def f(g): 1/0\n\n@f\ndef h():\n    pass").error["traceback"]
        self.assertIn("line 3, in <module>\n    @f\n", traceback)

    @unittest.skipUnless(COLUMNS, "Python 3.10 has no columns")
    def test_columns(self) -> None:
        for code, mark in (
            ("x = 1\ny = x + (2 / 0)", "    y = x + (2 / 0)\n             ~~^~~\n"),
            (
                "é = [1]; é[0].real.nothing",
                "    é = [1]; é[0].real.nothing\n             ^^^^^^^^^^^^^^^^^\n",
            ),
        ):
            with self.subTest(code):
                self.assertIn(mark, run(code).error["traceback"])

    def test_syntax(self) -> None:
        for code, kind, line, part in (
            ("x = 1\ny = (\n", "SyntaxError", 2, "line 2\n    y = (\n        ^\n"),
            ("def f(:\n    pass", "SyntaxError", 1, "line 1\n    def f(:\n          ^\nSyntaxError"),
            ("if 1:\nx = 1", "IndentationError", 2, "line 2\n    x = 1\n"),
            ("def f():\n    await g()", "SyntaxError", 2, "    await g()\n"),
            ("x\n\0y", "SyntaxError", 2, "holds a NUL character"),
            ("return 1", "SyntaxError", 1, "    return 1\n"),
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((ran.error["type"], ran.error["line"]), (kind, line), ran.error)
                self.assertIn(part, ran.error["traceback"])
                self.assertTrue(
                    ran.error["traceback"].startswith('  File "<run_python>", '), ran.error["traceback"]
                )
                self.assertEqual((ran.stdout, ran.wait), ("", {"exited": True, "status": 1}))

    def test_frames_of_libraries_are_one_line(self) -> None:
        ran = run("import json\njson.loads('{')")
        lines = ran.error["traceback"].splitlines()
        self.assertEqual(
            [line for line in lines if "File" in line], ['  File "<run_python>", line 2, in <module>']
        )
        self.assertRegex(
            ran.error["traceback"],
            r"\n  \[\d frames of json, raised in json/decoder.py, line \d+, in raw_decode\]\n",
        )

    def test_frames_of_libraries_in_the_middle(self) -> None:
        traceback = run("import re\ndef f(m):\n    1/0\nre.sub('a', f, 'a')").error["traceback"]
        self.assertRegex(
            traceback,
            r"line 4, in <module>\n    re.sub.*\n(?: +[~^]+\n)?  \[1 frame of re\]\n.*line 3, in f\n",
        )

    def test_code_of_exec_is_the_users(self) -> None:
        self.assertIn('File "<string>", line 1, in <module>', run("exec('1/0')").error["traceback"])


class Chains(unittest.TestCase):
    def test_context(self) -> None:
        ran = run("try:\n    1/0\nexcept Exception:\n    {}['a']")
        self.assertRegex(
            ran.error["traceback"], r"(?s)line 2.*1/0.*During handling.*line 4.*KeyError: 'a'\n$"
        )
        self.assertEqual(ran.error["line"], 4)
        ran = run("def f(): 1/0\ntry: f()\nexcept Exception as e:\n    raise ValueError('worse') from e")
        self.assertRegex(
            ran.error["traceback"], r"(?s)line 2.*ZeroDivisionError.*direct cause.*line 4.*worse\n$"
        )
        self.assertNotIn("<guest>", ran.error["traceback"])

    @unittest.skipUnless(sys.version_info >= (3, 11), "Python 3.10 has no groups")
    def test_group(self) -> None:
        code = (
            "import asyncio\nasync def f(n):\n    1/n\n"
            "async with asyncio.TaskGroup() as g:\n    g.create_task(f(0))\n    g.create_task(f('a'))"
        )
        ran = run(code)
        self.assertEqual(ran.error["type"], "ExceptionGroup")
        for part in ("ZeroDivisionError", "TypeError", "line 3, in f", "2 sub-exceptions"):
            self.assertIn(part, ran.error["traceback"])
        self.assertNotIn("<guest>", ran.error["traceback"])

    def test_cycle(self) -> None:
        ran = run("a, b = ValueError('a'), ValueError('b')\na.__cause__, b.__cause__ = b, a\nraise a")
        self.assertEqual((ran.error["type"], ran.error["line"]), ("ValueError", 3))
        self.assertIn("ValueError: b", ran.error["traceback"])

    def test_recursion(self) -> None:
        for code in ("def f(): f()\nf()", "def f(): g()\ndef g(): h()\ndef h(): f()\nf()"):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual(ran.error["type"], "RecursionError")
                self.assertLess(len(ran.error["traceback"]), 3000)
                self.assertRegex(ran.error["traceback"], "more (times|frames)")

    @unittest.skipUnless(
        sys.version_info >= (3, 11), "in Python 3.10 so deep a recursion takes the stack of C"
    )
    def test_very_deep(self) -> None:
        ran = run(
            "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n    if n: f(n - 1)\n    1/0\nf(20_000)"
        )
        self.assertEqual((ran.error["type"], ran.error["line"]), ("ZeroDivisionError", 5))
        self.assertIn("entries of deep recursion were left out", ran.error["traceback"])
        self.assertLess(len(ran.error["traceback"]), 3000)

    def test_long_chain(self) -> None:
        ran = run(
            "e = None\nfor n in range(400):\n    try:\n        raise ValueError('x' * 200) from e\n"
            "    except ValueError as f:\n        e = f\nraise e"
        )
        self.assertEqual(ran.error["type"], "ValueError")
        self.assertLess(len(ran.error["traceback"]), 21_000)
        self.assertIn("characters left out", ran.error["traceback"])

    def test_hostile_exceptions(self) -> None:
        for code in (
            "class E(Exception):\n    name = property(lambda s: 1/0)\nraise E",
            "class E(NameError):\n    name = property(lambda s: 1/0)\nraise E('x')",
            "class E(AttributeError):\n    obj = property(lambda s: 1/0)\nraise E('x', name='y')",
            "class O:\n    def __dir__(self): raise SystemExit(0)\nO().x",
            "class E(OSError):\n    errno = filename = object()\nraise E",
            "class E(ModuleNotFoundError):\n    pass\nraise E('x', name=['y'])",
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertFalse(ran.ok)
                self.assertEqual(ran.wait, {"exited": True, "status": 1}, ran.done)


class Hints(unittest.TestCase):
    def check(self, code: str, *parts: str, providers: bool = True) -> Ran:
        ran = run(
            code,
            [provider("echo", "add")] if providers else [],
            lambda call: {"ok": True, "result": {"content": []}},
        )
        for part in parts:
            self.assertIn(part, ran.error["message"])
            if "Did you " not in ran.error["traceback"]:  # newer Pythons say the same
                self.assertIn(part, ran.error["traceback"])
        return ran

    def test_names(self) -> None:
        self.check("pritn(1)", "did you mean print?")
        self.check("total = 1\nprint(totl)", "did you mean total?")
        self.check("def f():\n    count = 1\n    return cuont\nf()", "did you mean count?")
        self.check("json.loads('1')", "write import json first")
        self.check("true", "in Python it is True")
        self.check("x = null", "in Python it is None")
        self.check("mcp_shp.echo()", "did you mean mcp_shop?")
        self.check("def f():\n    print(n)\n    n = 1\nf()", "local in all of it")
        self.check("from os import pth", "did you mean path?")
        self.check("'a'.uper()", "did you mean upper?")

    def test_no_hint_where_there_is_none(self) -> None:
        for code in ("1/0", "raise ValueError('coroutine')", "import os; os.nothing_like_it"):
            self.assertNotIn("(", self.check(code).error["message"])

    def test_gather_of_values(self) -> None:
        for code, said in (
            (
                "r = asyncio.gather(mcp_shop.add(), mcp_shop.add())",
                "write: r = await asyncio.gather(mcp_shop.add(), mcp_shop.add())",
            ),
            (
                "asyncio.run(asyncio.gather(*[mcp_shop.add()]))",
                "write: await asyncio.gather(*[mcp_shop.add()])",
            ),
            (
                "from asyncio import gather\nprint(gather(mcp_shop.add()))",
                "write: print(await asyncio.gather(mcp_shop.add()))",
            ),
        ):
            ran = run(
                f"import asyncio\n{code}",
                [provider("add")],
                lambda call: {"ok": True, "result": text('{"a": 1}')},
            )
            self.assertIn(f"({said})", ran.error["message"])

    def test_modules(self) -> None:
        ran = self.check("import nosuchmodule1", "nothing can be installed here")
        self.assertIn("there", ran.error["message"])
        self.check("import dataclases", "did you mean dataclasses?")
        self.check("import httpx_nosuch, sys", "nothing can be installed here")
        self.check("import sys; sys.modules['requests'] = None\nimport requests.nosuch", "")
        self.check("import mcp_servers", "mcp_servers is there without an import")
        self.check("import mcp_shp", "did you mean mcp_shop?")

    def test_mended_lines(self) -> None:
        """Each hint holds the line as it should be."""
        for code, said in (
            ("zzzzqqqq", "fetch it again in this program"),
            ("zzzzqqqq(1)", "(nothing is kept between calls: define it in this program)"),
            ("zzzz_qqqq(1)", "(nothing is kept between calls: define it in this program)"),
            ("d = defaultdict(list)", "write from collections import defaultdict first"),
            ("Path('x')", "write from pathlib import Path first"),
            ("reduce(max, [1])", "write from functools import reduce first"),
            ("sleep(1)", "write from time import sleep first"),
            ("print(datetime.now())", "write from datetime import datetime first"),
            ("datetime.date(1, 1, 1)", "write import datetime first"),
            ("call_tool('shop', 'echo')", "write: runtime.call_tool('shop', 'echo')"),
            ("x = search_tools('a')", "write: x = runtime.search_tool_docs('a')"),
            ("list_tools('shop')", "write: runtime.list_tools('shop')"),
            ("print(mcp__shop__echo(a=1))", "write: print(mcp_shop.echo(a=1))"),
            ("shop_echo(a=1)", "write: mcp_shop.echo(a=1)"),
            ("product", "nothing is kept between calls"),
            ("result", "nothing is kept between calls"),
            ("issues", "nothing is kept between calls"),
            ("lenn([])", "did you mean len?"),
            ("mcp_shop.echo()\nadd(a=1)", "write mcp_shop.add"),
            ("shop.echo()", "did you mean mcp_shop?"),
            ("pd.DataFrame([])", "pandas isn't in here: nothing can be installed"),
            ("dt.date.today()", "write import datetime as dt first"),
            ("save_tool(print)", "nothing is kept between runs"),
            ("x = {}\nx['a']", "x is empty"),
            ("x = {'total': 1}\nx['totals']", 'did you mean x["total"]?'),
            ("x = {'a': {'b': 1}}\nx['b']", 'write: x["a"]["b"]'),
            ("x = {'result': [1]}\nx['data']['result']", 'write: x["result"]'),
            ("x = {str(n): n for n in range(50)}\nx['a']", "18, 19 and 30 more"),
            ("x = [{'a': 1}]\nx['a']", "write: x[0]['a'], or for x in x: x['a']"),
            (
                "x = [{'a': 1}]\nx['b']",
                "x is the list itself of 1: leave out ['b']; the keys of its items are a",
            ),
            ("x = [{'a': 1}]\nfor i in x['items']: pass", "write: for i in x:"),
            ("x = {'items': [{'a': 1}], 'n': 1}\nprint([i['a'] for i in x])", 'write: for i in x["items"]'),
            ("x = {'a': {'id': 1}}\nfor i in x:\n    i['id']", "write: for i in x.values():"),
            ("x = {'user': None}\nx['user']['name']", "write: (x['user'] or {}).get('name')"),
            (
                "x = [{'user': None}]\nprint([i['user']['name'] for i in x])",
                "write: (i['user'] or {}).get('name')",
            ),
            ("print([1])[:5]", "write: print(str([1])[:5])"),
            ("x = []\nx[0]", "write: if x:"),
            ("x = [1]\nx[3]", "x has 1 item; the last one is x[-1]"),
            ("x = '4'\nx + 1", "write: int(x) + 1"),
            ("x = 'n: '\nx + 1", "write: x + str(1)"),
            ("import json\nx = 'no'\njson.loads(x)", "write: print(x)"),
            ("import os\nos.environ['TOKEN']", "secrets stay with the servers"),
            ("open('data.csv')", "fetch it with a tool of mcp_shop"),
            ("open('/etc/passwdd')", 'did you mean "/etc/passwd"?'),
            ("from servers.shop import echo", "write: from mcp.servers.shop import echo"),
            ("import servers.shop as s", "write: import mcp.servers.shop as s"),
            ("from mcp import ClientSession", "write mcp_shop.TOOL(...)"),
            ("from mcp.client.stdio import stdio_client", "write mcp_shop.TOOL(...)"),
            ("return x + 1", "write x + 1 in place of return x + 1"),
            ("!pip install rich", "nothing can be installed here"),
            ("!ls -l", 'subprocess.run("ls -l", shell=True)'),
            ("%time x", "leave the line out"),
            (
                "const n = await mcp_shop.add({a: 1, b: [2]});",
                'write: n = await mcp_shop.add({"a": 1, "b": [2]})',
            ),
            (
                "const n: number = 1;\nlet m = n;",
                "this is TypeScript, and run_python runs Python; write: n = 1",
            ),
            ("for (const x of xs) {\n}", "write: for x in xs:"),
            ("function f() {\n  return 1;\n}", "this is JavaScript"),
            ("console.log(`a ${x}`)", "this is JavaScript"),
            ("console.log(x)", "write: print(x)"),
            ("git log --oneline", "there is no network in here; call a tool of a server instead: mcp_shop"),
            ("pip install rich", "nothing can be installed here"),
            ("echo hi", 'subprocess.run("echo hi", shell=True)'),
            (
                "import subprocess\n"
                "subprocess.run('pip install x', shell=True, check=True, capture_output=True)",
                "nothing can be",
            ),
            (
                "import subprocess\nsubprocess.run(['nosuchprogram'])",
                "there is no program nosuchprogram in here",
            ),
        ):
            with self.subTest(code):
                self.check(code, said)

    def test_no_mended_line_where_none_is_known(self) -> None:
        for code in (
            "def f(): return {}\nf()['a']",  # it would have to be called again
            "class D(dict):\n    def __getitem__(self, key): raise KeyError(key)\nD()['a']",
            "class D(dict):\n    def __getitem__(self, key): raise KeyError(key)\n    __iter__ = 1\n"
            "x = [D()]\nx[0]['a']",
            "raise KeyError('a')",
            "x = (\n",
            "x = 'a'['b':'c']",
        ):
            with self.subTest(code):
                self.assertNotIn("write:", self.check(code).error["message"])

    def test_network(self) -> None:
        for code in (
            "import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')",
            "import errno\nraise OSError(errno.ENETUNREACH, 'Network is unreachable')",
            "import errno\ntry:\n    raise OSError(errno.ENETUNREACH, 'Network is unreachable')\n"
            "except OSError as e:\n    raise RuntimeError('failed') from e",
            "import urllib.error\nraise urllib.error.URLError('no')",
            "class ConnectError(Exception): pass\nConnectError.__module__ = 'httpx'\n"
            "raise ConnectError('no')",
        ):
            with self.subTest(code):
                self.check(code, "there is no network in here; call a tool of a server instead: mcp_shop")
        self.check(
            "import socket\nraise socket.gaierror(-3, 'no')", "this run has no server", providers=False
        )

    def test_files(self) -> None:
        self.check("raise OSError(30, 'Read-only file system', '/etc/x')", "below /workspace and /tmp only")
        self.check(
            "raise PermissionError(13, 'Permission denied', '/opt/x')", "below /workspace and /tmp only"
        )
        self.check(
            "raise FileNotFoundError(2, 'No such file', '/home/me/data.csv')",
            "the user's files aren't in here",
        )
        self.assertNotIn(
            "below", self.check("raise PermissionError(13, 'Permission denied', '/tmp/x')").error["message"]
        )

    def test_await(self) -> None:
        for code in (
            "async def f(): return [1]\nawait f()\nx = f()\nx[0]",
            "import asyncio\nawait asyncio.sleep(0)\nmcp_shop.echo()[0]",
            "import asyncio\nawait asyncio.sleep(0)\nfor x in mcp_shop.echo(): pass",
            "import asyncio\nawait asyncio.sleep(0)\nlen(mcp_shop.echo())",
        ):
            with self.subTest(code):
                self.check(code, "await ")  # a call of a tool says it itself, with its name
        self.check(
            "import asyncio\nawait asyncio.sleep(0)\nasyncio.run(asyncio.sleep(0))",
            "await the coroutine instead",
        )
        self.check("def f():\n    await g()", "make the function async def")

    def test_value_where_a_coroutine_was_meant(self) -> None:
        codes = [
            "import asyncio\nasyncio.run([mcp_shop.echo()])",
            "import asyncio\nasyncio.new_event_loop().run_until_complete([mcp_shop.echo()])",
        ]
        if sys.version_info < (3, 14):  # newer ones take any awaitable, which a result is
            codes.append("import asyncio\nasyncio.run(mcp_shop.echo())")
        for code in codes:
            with self.subTest(code):
                self.check(code, "write it without asyncio.run", "has done its work already")
        ran = self.check("import asyncio\nasyncio.run(1)", providers=False)
        self.assertNotIn("tool", ran.error["message"])

    def test_data_that_is_parsed_again(self) -> None:
        for value in ("mcp_shop.echo()", "[1]", "{}", "2"):
            with self.subTest(value):
                ran = run(
                    f"import json\njson.loads({value})",
                    [provider("echo")],
                    lambda call: {"ok": True, "result": {"content": [], "structuredContent": 1}},
                )
                self.assertIn("it is data already: use it without json.loads", ran.error["message"])
        self.assertNotIn("data already", self.check("import json\njson.loads(None)").error["message"])

    def test_markdown(self) -> None:
        for code in ("```python\nprint(1)\n```", "```\nprint(1)\n```\n", "print(1)\n```"):
            with self.subTest(code):
                self.check(code, "leave out the lines with ```")
        self.assertNotIn("Markdown", self.check('x = """\n```\n"""\n1 +').error["message"])

    def test_tools(self) -> None:
        self.check("mcp_shop.ecko(text='a')", "echo")

    def test_a_tool_of_servers_that_were_not_asked(self) -> None:
        for n, said in (
            (2, "if it is a tool, write mcp_s0.list_orders(...) or mcp_s1.list_orders(...)"),
            (4, "if it is a tool, find its server: runtime.search_tool_docs('list_orders')"),
        ):
            servers = [{"name": f"s{i}", "alias": f"s{i}", "description": ""} for i in range(n)]
            self.assertIn(said, run("list_orders(page=1)", servers).error["message"])

    def test_input(self) -> None:
        self.check("input()", "write the value into the code")

    def test_installed_names_no_tool_of_packaging(self) -> None:
        self.assertFalse({"pip", "setuptools"} & set(name_hints.installed()))


class Broken(unittest.TestCase):
    def test_the_guests_own_modules(self) -> None:
        """Code that breaks what the guest needs gets a sentence that says so, not an exit status
        that it never chose.
        """
        for code in (
            "import json\njson.dumps = None\n1/0",
            "import guest.errors\nguest.errors.told = None\n1/0",
        ):
            with self.subTest(code):
                ran = run(code)
                self.assertEqual((ran.wait["status"], ran.error["code"]), (70, "internal_error"))
                self.assertIn("that program broke down", ran.error["message"])
                self.assertIn("Traceback", ran.stderr)

    def test_an_exit_status_of_the_codes_own(self) -> None:
        ran = run("import sys; sys.exit(70)")
        self.assertEqual((ran.wait["status"], ran.error["code"]), (70, "runtime_error"))
