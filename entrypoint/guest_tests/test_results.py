"""What code has of a result: data, texts, images, and what it does with them."""

from __future__ import annotations

import base64
import json
import unittest
from typing import Any

from guest import attribute_hints, results
from guest_tests.host import Frame, Ran, provider, run, text

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"}
PDF = {"type": "resource", "resource": {"uri": "a:1", "blob": "AAE=", "mimeType": "application/pdf"}}
CAPTION = {"type": "text", "text": "caption"}


def value(*content: Frame, structured: Any = None, output: Any = None, wrapped: bool = False) -> Any:
    result = {"content": list(content)} | ({} if structured is None else {"structuredContent": structured})
    return results.value(result, "s", "t", output is not None, wrapped)


def sent(said: str) -> Frame:
    return {"type": "text", "text": said}


def ran(code: str, result: Frame, output: Any = None, wrapped: bool = False) -> Ran:
    """Runs code whose r is the result."""
    shop = provider("get")
    if output is not None:
        shop["tools"]["get"] |= {"outputSchema": output, "wrapped": wrapped}
    return run(f"r = mcp_shop.get()\n{code}", [shop], lambda frame: {"ok": True, "result": result})


def files(one: Ran) -> list[tuple[str, str]]:
    return [(frame["name"], frame["mime"]) for frame in one.frames if frame["type"] == "artifact"]


class Parsed(unittest.TestCase):
    def test_which_texts_are_data(self) -> None:
        big = 2**63 + 2**80
        for said, want in (
            ('{"a": [1, null]}', {"a": [1, None]}),
            (f' \n[{{"n": {big}}}]\r\n', [{"n": big}]),
            ("[]", []),
            ("{}", {}),
            ('{"a": 1, "a": 2}', {"a": 2}),
            ('{"a": "\\ud800"}', {"a": "\ud800"}),
            ('{"a": -Infinity}', {"a": float("-inf")}),
            ("[" * 200 + "]" * 200, json.loads("[" * 200 + "]" * 200)),
            (json.dumps({str(n): n for n in range(10**6)}), {str(n): n for n in range(10**6)}),
        ):
            with self.subTest(said[:60]):
                made = value(sent(said))
                self.assertIn(type(made), (results.ToolData, results.ToolList))
                self.assertEqual(made, want)
                self.assertEqual((made.text, made.content, made.structured), (said, [sent(said)], None))

    def test_other_texts_stay_texts(self) -> None:
        for said in (
            "42", '"x"', "null", "true", "", "{not json", "{not json}", '{"a": 1} and more',
            '{"a": 1}\n{"a": 2}', "\ud800", " " * 2 * results.SPACE + "{}", '{"a": %s}' % ("9" * 5000),
            "[" * 10**5 + "]" * 10**5, "[" + "[]," * 3_000_000 + "[]]",
        ):  # fmt: skip
            with self.subTest(said[:60]):
                made = value(sent(said))
                self.assertEqual((type(made), made), (results.ToolText, said))
        self.assertEqual(value(sent("[1]"), sent("[2]")), "[1]\n[2]")
        self.assertEqual(value({"type": "resource", "resource": {"uri": "a:1", "text": "{}"}}), "{}")
        self.assertEqual(value(sent("[1]"), IMAGE), [1])

    def test_content_that_is_no_list(self) -> None:
        for wrong in ("nope", {"type": "text"}, 5):
            with self.assertRaisesRegex(results.ToolError, "its content is a .*, no list"):
                results.value({"content": wrong}, "s", "t", False)
        data = {"a": 1}
        self.assertEqual(results.value({"content": "nope", "structuredContent": data}, "s", "t", True), data)

    def test_null_is_none(self) -> None:
        for content, declared, want in (
            ([], True, None),
            ([sent("null")], True, None),
            ([sent("null")], False, "null"),
            ([sent("nothing")], True, "nothing"),
            ([sent('{"a": 1}')], True, {"a": 1}),  # a library that writes every member of a result
        ):
            with self.subTest(content):
                made = results.value({"content": content, "structuredContent": None}, "s", "t", declared)
                self.assertEqual(made, want)

    def test_as_the_plain_value(self) -> None:
        data = {"b": 1, "a": [{"c": "x" * 50, "d": "y" * 50}], "z": None}
        for plain in (data, [data, 2, "x"]):
            code = (
                f"import collections.abc, copy, json, pickle, pprint\np = {plain!r}\nsame = [type(p) in"
                " type(r).__mro__, repr(r) == repr(p), str(r) == str(p), f'{r}' == f'{p}', r == p, p =="
                " r,\n  json.dumps(r) == json.dumps(p), json.dumps(r, indent=1) == json.dumps(p,"
                " indent=1),\n  pprint.pformat(r) == pprint.pformat(p), list(r) == list(p), len(r) =="
                " len(p), bool(r),\n  *(f(r) == p and type(f(r)) is type(p) for f in (copy.copy,"
                " copy.deepcopy, type(p), type(p).copy,\n    lambda v: pickle.loads(pickle.dumps(v)),"
                " json.loads, lambda v: json.loads(v, object_hook=dict))),\n  not isinstance(r, str),"
                " r.json() == p, r['content'][0]['text'] == r.text == json.dumps(p), not r['isError']]\n"
            )
            if isinstance(plain, dict):
                code += (
                    "def f(**given): return given\n"
                    "same += [f(**r) == p, {**r} == p, r | {'q': 1} == p | {'q': 1}, r.get('q', 5) == 5, "
                    "'content' not in r]\n"
                )
            else:
                code += (
                    "first, *rest = r\n"
                    "same += [r[:2] == p[:2], r[-1] == 'x', first == p[0], r + [1] == p + [1]]\n"
                )
            with self.subTest(type(plain).__name__):
                one = ran(f"{code}print(same)", text(json.dumps(plain)))
                self.assertEqual(one.error, {})
                self.assertNotIn("False", one.stdout)
                self.assertEqual(one.stdout.count("True"), 28 if isinstance(plain, dict) else 27)

    def test_errors_as_of_the_plain_value(self) -> None:
        for code, said, want in (
            ("r['nothing']", "{}", "KeyError: 'nothing'"),
            ("r['nothing']", "[]", "TypeError: list indices must be integers or slices, not str"),
            ("r[7]", "[]", "IndexError: list index out of range"),
            (
                "import json; json.loads(2)",
                "[]",
                "TypeError: the JSON object must be str, bytes or bytearray, not int",
            ),
        ):
            with self.subTest(code):
                self.assertIn(want, ran(code, text(said)).error["traceback"])

    def test_a_last_expression(self) -> None:
        self.assertEqual(ran("r", text('{"a": 1}')).stdout, "{'a': 1}\n")
        self.assertEqual(ran("r", text("a\nb")).stdout, "'a\\nb'\n")


class Wrapped(unittest.TestCase):
    def test_values(self) -> None:
        for plain in ([1], {"a": 1}, "42", "x"):
            made = value(sent("ignored"), structured={"result": plain}, output={}, wrapped=True)
            self.assertEqual((made, made.structured, made["result"]), (plain, {"result": plain}, plain))
        for scalar in (1, 1.5, True, None):
            made = value(sent("ignored"), structured={"result": scalar}, output={}, wrapped=True)
            self.assertEqual((made, type(made)), (scalar, type(scalar)))

    def test_what_is_not_wrapped(self) -> None:
        for wrapped, structured in (
            (False, {"result": 1}),
            (True, {"result": 1, "more": 2}),
            (True, {"other": 2}),
        ):
            self.assertEqual(value(structured=structured, output={}, wrapped=wrapped), structured)
        self.assertEqual(value(sent("[1]"), output={}, wrapped=True), [1])  # the server breaks its word


class Shown(unittest.TestCase):
    def test_print_says_how(self) -> None:
        link, how = {"type": "resource_link", "uri": "x:1"}, ", shown by display(...)"
        two = "1 image, 1 audio file: .files"
        inner = {"type": "resource", "resource": {"uri": "a:1", "text": "inner"}}
        for content, printed, shown in (
            ([IMAGE], f"[1 image: .images{how}]", f"<1 image: .images{how}>"),
            ([IMAGE, SOUND], f"[{two}{how}]", f"<{two}{how}>"),
            ([PDF], f"[1 file: .files{how}]", f"<1 file: .files{how}>"),
            ([link], "[1 link: .links]", "<1 link: .links>"),
            ([CAPTION, IMAGE], "caption\n[1 image: .images, shown by display(...)]", "'caption'"),
            ([sent("[1]"), IMAGE], "[1]\n[1 image: .images, shown by display(...)]", "[1]"),
            ([CAPTION, inner, link], "caption\n[1 text: .resources; 1 link: .links]", "'caption'"),
            ([inner], "inner", "'inner'"),
            ([CAPTION], "caption", "'caption'"),
            ([], "", "''"),
            ([{"type": "unheard of"}, 5], "", "''"),
        ):  # fmt: skip
            with self.subTest(printed):
                made = value(*content)
                self.assertEqual((str(made), f"{made}", repr(made)), (printed, printed, shown))
                self.assertEqual(bool(made), printed != "")

    def test_what_is_handed_over(self) -> None:
        both, image = {"content": [CAPTION, IMAGE]}, {"content": [IMAGE]}
        several = {"content": [IMAGE, SOUND, IMAGE]}
        two = [("a-1.png", "image/png"), ("a-2.png", "image/png")]
        names, pdf = "['a-1.png', 'a-2.png']\n", {"content": [PDF]}
        three = [("image-1.png", "image/png"), ("audio-1.wav", "audio/wav"), ("image-1-2.png", "image/png")]
        data = {"content": [sent("[1]"), IMAGE]}
        for code, result, printed, want in (
            ("r", image, "", [("image-1.png", "image/png")]),
            ("display(r)", image, "", [("image-1.png", "image/png")]),
            ("display(r.images[0])", image, "", [("image-1.png", "image/png")]),
            ("r", both, "'caption'\n", [("image-1.png", "image/png")]),
            ("r", several, "", three),
            ("r", {"content": [PDF]}, "", [("file-1.pdf", "application/pdf")]),
            ("print(save_artifact('a.png', r))", image, "a.png\n", [("a.png", "image/png")]),
            ("print(save_artifact('a.jpg', r))", both, "a.jpg\n", [("a.jpg", "image/png")]),
            ("print(save_artifact('a', r))", both, "a\n", [("a", "image/png")]),
            ("print(save_artifact('a.txt', r))", both, "a.txt\n", [("a.txt", "text/plain")]),
            ("print(save_artifact('a.png', r))", several, names, two),
            ("print(save_artifact('a.wav', r))", several, "a.wav\n", [("a.wav", "audio/wav")]),
            ("print(save_artifact('a.png', r.images))", several, names, two),
            ("print(save_artifact('a.pdf', r))", pdf, "a.pdf\n", [("a.pdf", "application/pdf")]),
            ("save_artifact('a.json', r);", data, "", [("a.json", "application/json")]),
            ("save_artifact('a.json', r);", text("[1]"), "", [("a.json", "application/json")]),
        ):  # fmt: skip
            with self.subTest(code, result=result):
                one = ran(code, result)
                self.assertEqual((one.stdout, one.stderr, one.error, files(one)), (printed, "", {}, want))

    def test_what_else_there_is(self) -> None:
        link, png = {"type": "resource_link", "uri": "x:1"}, ("image-1.png", "image/png")
        inner = {"type": "resource", "resource": {"uri": "a:1", "text": "inner"}}
        image, mark = {"content": [IMAGE]}, "<1 image: .images, shown by display(...)>"
        second, both = ("image-1-2.png", "image/png"), "[1 text: .resources; 1 link: .links]"
        for code, result, printed, want in (
            ("r", {"content": [CAPTION, inner]}, "'caption'\n[1 text: .resources]\n", []),
            ("display(r)", {"content": [CAPTION, inner, link]}, f"'caption'\n{both}\n", []),
            ("r", {"content": [IMAGE, link]}, "[1 link: .links]\n", [png]),
            ("r", {"content": [link]}, "<1 link: .links>\n", []),
            ("[r, r]", image, f"[{mark}, {mark}]\n", [png, second]),
            ("r, 1", image, f"({mark}, 1)\n", [png]),
            ("{'a': r}", {"content": [CAPTION, IMAGE]}, "{'a': 'caption'}\n", [png]),
            ("{'a': r}", {"content": [CAPTION, inner]}, "{'a': 'caption'}\n['a': 1 text: .resources]\n", []),
            ("display([r])", image, f"[{mark}]\n", [png]),
            ("print([r])", image, f"[{mark}]\n", []),
            ("[r]", text("caption"), "['caption']\n", []),
        ):  # fmt: skip
            with self.subTest(code, result=result):
                one = ran(code, result)
                self.assertEqual((one.stdout, one.stderr, one.error, files(one)), (printed, "", {}, want))
        one = ran("[r] * 12", image)
        self.assertEqual(
            (len(files(one)), one.stdout.endswith("\n[2 more not shown: display them one by one]\n")),
            (10, True),
        )

    def test_base64_is_shortened(self) -> None:
        data = {"type": "image", "mimeType": "image/png", "data": "iVBORw0K" * 2000}
        blob = {"type": "resource", "resource": {"uri": "a:1", "mimeType": "x/y", "blob": "AAA="}}
        short = "{'content': [{'type': 'image', 'mimeType': 'image/png', 'data': <base64, 12,000 bytes>}]}"
        mark = "\n[1 image: .images, shown by display(...)]"
        for code, printed in (
            ("r", short),
            ("display(r)", short),
            ("print(r)", short + mark),
            ("print([r])", f"[{short}]"),
            (
                "print(len(r['content'][0]['data']), len(json.dumps(r)) > 16000, type(r).__name__)",
                "16000 True ToolData",
            ),
        ):
            with self.subTest(code):
                one = ran(
                    f"import json\n{code}", {"structuredContent": {"content": [data]}, "content": [data]}
                )
                self.assertEqual((one.stdout, one.stderr, one.error), (f"{printed}\n", "", {}))
                self.assertEqual(len(files(one)), "print" not in code)
        one = ran("r", text(json.dumps([data, {"data": data["data"][:200]}, blob])))
        self.assertIn(
            f"<base64, 12,000 bytes>}}, {{'data': '{data['data'][:200]}'}}, {{'type': 'resource'", one.stdout
        )

    def test_what_can_not_be(self) -> None:
        one = ran("r", {"content": [{**IMAGE, "data": "A"}]})
        self.assertIn("no base64", one.stderr)
        self.assertTrue(one.ok)
        one = ran("save_artifact('a.txt', r)", {"content": [{"type": "resource_link", "uri": "x:1"}]})
        self.assertIn("1 link: .links", one.error["message"])
        one = ran("import copy; print(copy.deepcopy([r])[0].images)", {"content": [IMAGE]})
        self.assertEqual(one.stdout, "[<image image/png, 8 bytes>]\n")


class OnlyText(unittest.TestCase):
    """A text in an object of that one property, as the reference server for files has it."""

    def test_it_is_the_text(self) -> None:
        result = {**text("a\nb"), "structuredContent": {"content": "a\nb"}}
        schema = {"type": "object", "properties": {"content": {"type": "string"}}}
        for code, want in (
            ("r", "'a\\nb'"),
            (
                "r['content'], r.get('content'), r.get('x', 1), r['structuredContent']",
                "('a\\nb', 'a\\nb', 1, {",
            ),
            ("r.splitlines(), len(r), 'a' in r, r[:1]", "(['a', 'b'], 3, True, 'a')"),
            ("r.content[0]['text'], r.text", "('a\\nb', 'a\\nb')"),
            ("r['x']", "KeyError"),
        ):
            with self.subTest(code):
                one = ran(code, result, schema, wrapped=True)
                self.assertIn(want, one.stdout + one.error.get("type", ""))
        more = {**text("a"), "structuredContent": {"content": "a", "n": 1}}
        self.assertIn("'n': 1", ran("r", more, schema, wrapped=True).stdout)


class Slips(unittest.TestCase):
    def test_the_mended_line(self) -> None:
        data = text('{"entities": [{"name": "x"}], "items": [], "total_count": 1}')
        for code, result, want in (
            ("for e in r.entities: print(e)", data, 'write for e in r["entities"]: print(e)'),
            ("print(r['entities'][0].name)", data, "write print(r['entities'][0][\"name\"])"),
            ("print(r.total_cuont)", data, 'did you mean print(r["total_count"])?'),
            ("print(r.zzzzzz)", data, "its keys are entities, items and total_count"),
            ("for i in r.items: print(i)", data, 'write for i in r["items"]: print(i)'),
            ("print(r['entities'].name)", data, "write print(r['entities'][0][\"name\"])"),
            ("print(r.splitlines())", data, "write print(r.text.splitlines())"),
            ("print(r[:100])", data, "write print(str(r)[:100])"),
            ("print('got ' + r)", data, "value.text"),
            ("open('x', 'w').write(r)", data, "value.text"),
            ("r.title", text('[{"title": 1}]'), 'write r[0]["title"]'),
            (
                "r['issues']",
                text('[{"title": 1}]'),
                "r is the list itself of 1: leave out ['issues']; the keys",
            ),
            (
                "(r or 1)['issues']",
                text('[{"title": 1}]'),
                "leave out ['issues']; the keys of its items are title",
            ),
            (
                "print(r.a, r.b, r.c, r.get('a'))",
                text('{"a": 1, "b": 2}'),
                'write print(r["a"], r["b"], r.c, r.get',
            ),
            ("r.get('title')", text('[{"title": 1}]'), "write r[0].get('title')"),
            (
                "for x in r: x['a']",
                text('{"a": 1}\n{"a": 2}'),
                "write: for x in map(json.loads, r.splitlines()): with import json",
            ),
            ("for x in r: x['a']", text("a\nb"), "write: for x in r.splitlines(): and use x without a key"),
        ):
            with self.subTest(code):
                message = ran(code, result).error["message"]
                self.assertIn(want, message)
                self.assertNotIn("did you mean items", message)
        number = {"content": [], "structuredContent": {"result": 5}}
        for code, want in (("print(r.text)", "write print(r)"), ("print(r['result'])", "write print(r)")):
            self.assertIn(want, ran(code, number, {}, wrapped=True).error["message"])

    def test_only_where_it_helps(self) -> None:
        for code in (
            "import os; os.text",
            "print(None.text2)",
            "(5).foo",
            "r.apend",
            "x = {}\nx.foo",
            "[][{}:]",
            "{}[()]",
        ):
            with self.subTest(code):
                message = ran(code, text("[]")).error["message"]
                self.assertNotIn("write ", message)
        self.assertIn("did you mean append?", ran("r.apend", text("[]")).error["message"])
        self.assertEqual(
            ran("print(hasattr(r, 'x'), getattr(r, 'a', 2))", text('{"a": 1}')).stdout, "False 2\n"
        )
        self.assertEqual(attribute_hints.mended("x = y", "a", '["a"]'), 'value["a"]')


class Calls(unittest.TestCase):
    def said(self, code: str, **schema: Any) -> Ran:
        return run(
            code,
            [provider("find", **schema)],
            lambda frame: {"ok": True, "result": text(json.dumps(frame["input"]))},
        )

    def test_one_dict_of_all_arguments(self) -> None:
        text_first = {"properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}
        for schema, given, want in (
            (text_first, {"q": "x", "n": 2}, {"q": "x", "n": 2}),
            (
                {"properties": {"q": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
                {"q": "x"},
                {"q": "x"},
            ),
            ({"properties": {"q": {"enum": ["x"]}}}, {"q": "x"}, {"q": "x"}),
            (
                {"properties": {"q": {"$ref": "#/$defs/q"}}, "$defs": {"q": {"type": "string"}}},
                {"q": "x"},
                {"q": "x"},
            ),
            ({}, {"a": 1}, {"a": 1}),
            ({"properties": {"o": {"type": "object"}}}, {"o": 1}, {"o": {"o": 1}}),
            ({"properties": {"o": {}}}, {"o": 1}, {"o": {"o": 1}}),
            (
                {"properties": {"o": {"anyOf": [{"type": "string"}, {"type": "object"}]}}},
                {"o": 1},
                {"o": {"o": 1}},
            ),
        ):
            with self.subTest(given=given, schema=schema):
                one = self.said(f"print(mcp_shop.find({given!r}))", **schema)
                self.assertEqual((one.error, one.stdout), ({}, f"{want}\n"))
        wrong: list[tuple[Any, str]] = [({"n": 2}, "lacks 'q'"), ({"q": "x", "m": 1}, "no parameter 'm'")]
        for given, message in [*wrong, ({1: 2}, "keys must be str")]:
            with self.subTest(given=given):
                one = self.said(f"mcp_shop.find({given!r})", **text_first, additionalProperties=False)
                self.assertIn(message, one.error["message"])
                self.assertNotIn("tool_call", [frame["type"] for frame in one.frames])

    def test_imports(self) -> None:
        for code in (
            "import mcp_shop\nprint(mcp_shop.find(q=1))",
            "import mcp_shop as s\nprint(s['find'](q=1))",
            "from mcp_shop import find\nprint(find(q=1))",
            "from mcp_shop import *\nprint(find(q=1))",
            "from mcp import shop\nprint(shop.find(q=1))",
            "import mcp\nprint(mcp.shop.find(q=1))",
            "import mcp.shop\nprint(mcp.shop.find(q=1))",
            "from mcp.shop import find\nprint(find(q=1))",
            "from mcp.servers import shop\nprint(shop.find(q=1))",
            "from mcp.servers.shop import find\nprint(find(q=1))",
            "import importlib\nprint(importlib.import_module('mcp.servers.shop').find(q=1))",
            "print(mcp.call_tool('shop', 'find', {'q': 1}))",
            "from mcp import call_tool\nprint(call_tool('mcp_shop', 'find', arguments={'q': 1}))",
            "from mcp import ToolImage, ToolList\nprint(mcp_shop.find(q=1))",
        ):
            with self.subTest(code):
                one = self.said(code)
                self.assertEqual((one.error, one.stdout), ({}, "{'q': 1}\n"))
        for code, want in (
            ("from mcp_shop import fnid", "did you mean find?"),
            ("import mcp_shpo", "did you mean mcp_shop?"),
            ("from mcp.servers import nothing", "location) (the servers of this run are mcp_shop)"),
            ("from mcp import shpo", "did you mean shop?"),
        ):
            self.assertIn(want, self.said(code).error["message"])

    def test_an_import_asks_no_server(self) -> None:
        """The server isn't started before a tool of it is wanted."""
        cold = {"name": "shop", "alias": "shop", "description": "", "tools": None}
        imports = (
            "import mcp_shop, mcp.shop\nfrom mcp import shop\nfrom mcp.servers import shop\n"
            "import mcp.servers.shop as s\n"
        )
        one = run(f"{imports}print(s)", [cold])
        self.assertEqual(
            (one.stdout, one.error), ("<server 'shop' as mcp_shop, tools not asked for yet>\n", {})
        )

    def test_servers_named_as_what_is_there(self) -> None:
        one = run(
            "import mcp\nfrom mcp import runtime, call_tool\n"
            "print(callable(runtime.list_servers), mcp.servers.runtime, callable(call_tool))",
            [provider("a", name="runtime"), provider("b", name="call_tool"), provider("c", name="servers")],
        )
        self.assertEqual(
            (one.stdout, one.error), ("True <server 'runtime' as mcp_runtime, tools: a> True\n", {})
        )
