"""What hints cost, and what they leave alone."""

from __future__ import annotations

import tracemalloc
import unittest

from guest import execute, hints, names
from guest_tests.host import run


class Bounded(unittest.TestCase):
    """Hints take little memory and time, whatever the code holds, and call none of its methods."""

    WATCHED = """
watched = False
def called(*given):
    if watched: print("called")
    return 0
class W:
    member = property(called)
    __getattr__ = __str__ = __repr__ = __len__ = __bool__ = __contains__ = __iter__ = called
    __hash__ = lambda self: 0
class S(W, str): strip = lstrip = splitlines = startswith = called
class L(W, list): pass
class D(W, dict): items = keys = values = get = called
w, d = W(), {"key": 1}
d[w] = w
watched = True
"""

    def test_no_method_is_called(self) -> None:
        for line, said in (
            ("d['b']", "the keys of d are key and <__main__.W object at"),
            ("x = D(key=1)\nx['kye']", 'did you mean x["key"]?'),
            ("x = [w]\nx['a']", "is a list of 1"),
            ("x = {'a': None, w: w}\nx['a']['b']", "write: (x['a'] or {}).get('b')"),
            ("x = S('4')\nx + 1", "write: int(x) + 1"),
            ("x = L('4')\nx['a']", "x is a list"),
            ("W.membre", "did you mean member?"),
            ("s = W()\ns.x = {'key': 1}\ns.x['kye']", 'did you mean s.x["key"]?'),
            ("w.member['a']", ""),
        ):
            with self.subTest(line):
                ran = run(self.WATCHED + line)
                once = "called\n" if line.startswith("w.member") else ""  # by the code itself
                self.assertEqual((ran.stdout, ran.ok), (once, False))
                self.assertIn(said, ran.error["message"])

    def test_memory_of_a_large_dict(self) -> None:
        code = "tracemalloc.start()\nx['k']"
        namespace = {"x": {f"key {n}": [] for n in range(300_000)}, "tracemalloc": tracemalloc}
        try:
            execute.run(code, namespace)
        except KeyError as error:
            said = hints.hint(error, {})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertIn("and 299,980 more", said)
        self.assertLess(peak, 8 << 20)

    def test_long_keys(self) -> None:
        for key in ("'k' * 10**6", "10**4000", "(1,) * 10**6"):
            code = f"x = {{{key}: 1}}\nx['a']"
            with self.subTest(code):
                self.assertLess(len(run(code).error["message"]), 300)
        many = "x = {str(n) * 1000: n for n in range(100, 200)}\nx['a']"
        self.assertLess(len(run(many).error["message"]), 3000)

    def test_names_that_are_compared(self) -> None:
        left = iter(str(n) for n in range(10_000))
        names.nearest("a", left)
        self.assertEqual(next(left), str(names.MAX_NAMES))
        self.assertEqual(names.nearest("a" * 81, ["a" * 81]), "")

    def test_what_is_not_misled(self) -> None:
        begin = "async def g():\n    yield 1\n"
        for code, want in (
            (begin + "for x in g(): pass", "async for"),
            (begin + "await g()", "async for"),
            ("python\nprint(1)", "leave it out"),
            ("foo", "fetch it again"),  # "for" is no name
            ("''.id", "no attribute 'id'"),
            ("open('a,b\\n1,2')", "pass io.StringIO(text)"),
            ("open('[' + '1, ' * 9999 + '1]')", "pass io.StringIO(text)"),
            ("def f(list, n): return list(n)\nf(1, 2)", "give it another name"),
            (
                'x = \'{"a": 1, "b": 2}\\n{"a": 3, "b": 4}\'\nfor r in x: r[\'a\']',
                "in map(json.loads, x.splitlines())",
            ),
            (
                "x = '{\"n\": 0, \"rows\": [{}]}'\nfor r in x: r['a']",
                'in json.loads(x)["rows"]: with import json',
            ),
            ("list = [1]\nprint(list('a'))", "hides Python's own: give it another name"),
            ("x = 1\nx()", "'int' object is not callable"),
            ("import asyncio\nasyncio.create_task(None)", "await the coroutine"),
            (
                "rows = \"[{'id': 1}]\"\nrows[0]['id']",
                "write: ast.literal_eval(rows)[0]['id'], with import ast",
            ),
            (
                "rows = \"[{'id': 1}]\"\nfor r in rows: r['id']",
                "for r in ast.literal_eval(rows): with import ast",
            ),
            ("rows = '[{\"id\": 1}]'\nrows[0]['id']", "write: json.loads(rows)[0]['id'], with import json"),
            ("rows = '[' * 30\nrows[0]['id']", "write: print(rows[0])"),
        ):
            with self.subTest(code):
                self.assertIn(want, run(code).error["message"])

    def test_source(self) -> None:
        for code in (
            "console.log(" + "a" * 200_000 + ")",
            "x = {'a': 1}\nx['b'] " + "#" * 300_000,
            "x = {'a': 1}\n" + "x['a'], " * 20_000 + "x['b']",
            "x = []\nx.append(x)\nx" + "[0]" * 150 + "['a']",
        ):
            with self.subTest(code[:40]):
                self.assertLess(len(run(code).error["message"]), 300)
