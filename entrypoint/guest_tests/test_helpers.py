"""The helpers of mcp.runtime: ours, and every call that the original documents, as code for it is written."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from guest_tests.host import Frame, Ran, run, text

PRICE: Frame = {
    "safeName": "get_price",
    "originalName": "get-price",
    "description": "The price of an item.",
    "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    "stub": "def get_price(item: str) -> Any: ...\n",
}
SHOP: Frame = {
    "name": "Shop 1",
    "alias": "shop_1",
    "description": "A shop.",
    "tools": {"get_price": PRICE},
    "stub": "",
}
DOC: Frame = {
    "server": "Shop 1",
    "serverAlias": "shop_1",
    "tool": "get-price",
    "toolAlias": "get_price",
    "description": "The price.",
}


class Host:
    """Answers as the bridge does, for one configured server, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Frame]] = []

    def __call__(self, frame: Frame) -> Frame:
        provider, tool, given = frame["providerName"], frame["safeToolName"], frame["input"]
        self.asked.append((provider, tool, given))
        if provider != "runtime":
            return {"ok": True, "result": text(json.dumps(given))}
        results: dict[str, Any] = {
            "load_server": SHOP,
            "query_tool_docs": [{**DOC, "inputSchema": {}} if given.get("detail") == "full" else DOC],
            "search_tool_docs": {
                "results": [{**DOC, "score": 1.5}],
                "unknown": [{"server": "x", "reason": "why"}],
            },
            "describe_server": {"name": "other", "allowed": False},
            "list_resources": [{"uri": "a:1", "name": "one"}],
            "list_resource_templates": [],
            "read_resource": {
                "contents": (
                    [{"uri": "a:1", "text": "hello", "mimeType": "text/plain"}]
                    if given.get("uri") == "a:1"
                    else [{"uri": "a:2", "blob": "AAH/", "mimeType": "image/png"}]
                )
            },
            "list_prompts": [{"name": "greet"}],
            "complete": {
                "completion": {
                    "values": [
                        str(given.get("uri") or given.get("name")),
                        given.get("argument"),
                        given.get("value"),
                    ]
                }
            },
            "get_prompt": {
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": str(given.get("arguments"))}}
                ]
            },
        }
        if given.get("server") == "bad":
            return {
                "ok": False,
                "error": {"code": "denied", "message": "server 'bad' is not part of this call"},
            }
        return {"ok": True, "result": results[tool]}


def ran(code: str, loaded: bool = False, host: Host | None = None) -> Ran:
    provider = SHOP if loaded else {**SHOP, "tools": None, "stub": ""}
    discovered = [{"name": "Shop 1", "description": "A shop."}, {"name": "other"}]
    return run(code, [provider], host or Host(), discovered=discovered)


class Helpers(unittest.TestCase):
    def test_all_of_them_in_both_styles(self) -> None:
        calls: list[tuple[str, Any]] = [
            ("~runtime.list_servers()", ["Shop 1"]),
            ("~runtime.discovered_servers()", ["Shop 1", "other"]),
            ("(~runtime.discovered_servers(detailed=True))[1]", {"name": "other", "description": ""}),
            ("[t['alias'] for t in (~runtime.describe_server('mcp_shop_1'))['tools']]", ["get_price"]),
            ("~runtime.describe_server('other')", {"name": "other", "allowed": False}),
            ("(~runtime.list_tools('Shop 1'))[0]['alias']", "get_price"),
            ("(~runtime.list_tools('other'))[0]['alias']", "get_price"),
            ("(~runtime.call_tool('Shop 1', 'get-price', item='tea')).json()", {"item": "tea"}),
            ("(~runtime.call_tool('Shop 1', 'get-price', {'item': 'tea'})).json()", {"item": "tea"}),
            ("(~(~runtime.load_server('Shop 1')).get_price('tea')).json()", {"item": "tea"}),
            ("~runtime.query_tool_docs('Shop 1')", [DOC]),
            ("(~runtime.query_tool_docs('Shop 1', 'get-price', detail='full'))['inputSchema']", {}),
            ("(~runtime.search_tool_docs('price', limit=3))[0]['score']", 1.5),
            ("(~runtime.search_tool_docs('price')).unknown", [{"server": "x", "reason": "why"}]),
            ("~runtime.list_resources('Shop 1')", [{"uri": "a:1", "name": "one"}]),
            ("~runtime.read_resource('Shop 1', 'a:1')", "hello"),
            ("~runtime.list_prompts('Shop 1')", [{"name": "greet"}]),
            (
                "(~runtime.get_prompt('Shop 1', 'greet', {'n': 1}))['messages'][0]['content']['text']",
                "{'n': '1'}",
            ),
            ("~mcp_shop_1.resources.list()", [{"uri": "a:1", "name": "one"}]),
            ("~mcp_shop_1.resources.templates()", []),
            ("(~mcp_shop_1.resources.read('a:1')).mime", "text/plain"),
            ("list(~mcp_shop_1.resources.read('a:2'))", [0, 1, 255]),
            ("~mcp_shop_1.prompts.complete('greet', 'who', 'A', other=1)", ["greet", "who", "A"]),
            ("~mcp_shop_1.resources.complete('a:{n}', 'n')", ["a:{n}", "n", ""]),
            ("~mcp_shop_1.prompts.list()", [{"name": "greet"}]),
            ("(~mcp_shop_1.prompts.get('greet', who='Ada'))['messages'][0]['role']", "user"),
            ("'mcp_shop_1' in ~runtime.capability_summary()", True),
            ("[t['name'] for t in (~runtime.list_loaded_server_metadata())[0]['tools']]", ["get-price"]),
        ]
        for wait in ("", "await "):
            code = "import json\n" + "\n".join(
                f"print(json.dumps({call.replace('~', wait)}))" for call, _ in calls
            )
            done = ran(code)
            self.assertEqual((done.error, done.stderr), ({}, ""))
            for (call, want), said in zip(calls, done.stdout.splitlines(), strict=True):
                with self.subTest(call, wait=wait):
                    self.assertEqual(json.loads(said), want)

    def test_what_the_host_is_asked(self) -> None:
        host = Host()
        ran(
            "runtime.search_tool_docs('a b', limit=3, detail='full'); runtime.query_tool_docs('x', tool='y')",
            host=host,
        )
        self.assertEqual(
            host.asked,
            [
                ("runtime", "search_tool_docs", {"query": "a b", "limit": 3, "detail": "full"}),
                ("runtime", "query_tool_docs", {"server": "x", "detail": "summary", "tool": "y"}),
            ],
        )

    def test_failures_are_raised(self) -> None:
        for call in (
            "runtime.load_server('bad')",
            "runtime.list_tools('bad')",
            "runtime.query_tool_docs('bad')",
            "runtime.describe_server('bad')",
        ):
            for prefix in ("", "await "):
                with self.subTest(prefix + call):
                    error = ran(prefix + call).error
                    self.assertEqual((error["type"], error["code"]), ("ToolError", "denied"))
        self.assertIn("nothing is kept between runs", ran("runtime.save_memory('a', 1)").error["message"])
        self.assertIn("has no attribute 'nonsense'", ran("runtime.nonsense").error["message"])
        self.assertIn("(did you mean list_tools?)", ran("runtime.list_tols('x')").error["message"])

    def test_a_coroutine_as_the_last_value(self) -> None:
        error = ran("async def main(): print('ran')\nmain()").error
        said = "main(...) was not awaited, so none of it has run; write: await main(...)"
        self.assertIn(said, error["message"])
        self.assertEqual(ran("async def main(): print('ran')\nawait main()").stdout, "ran\n")

    def test_wrong_arguments_and_names(self) -> None:
        for call, said in (
            ("runtime.call_tool()", "runtime.call_tool() missing 2 required"),
            ("runtime.list_tools_sync(1, 2)", "runtime.list_tools_sync() takes"),
            ("mcp_shop_1.resources.read()", "resources.read() missing 1 required"),
            ("mcp_shop_1.prompts.get()", "prompts.get() missing 1 required"),
            ("mcp_shop_1.get_price.options(timeout='3')", "timeout must be a positive number"),
            ("mcp_shop_1.get_price.options(timeot=3)", "get_price.options() got an unexpected keyword"),
            ("display(png=1)", "display() got an unexpected keyword argument 'png'"),
            ("save_artifact()", "save_artifact() missing 1 required"),
            ("mcp_shop_1.resource.list()", "no tool 'resource'; did you mean resources? (the tools are"),
            ("mcp_shop_1.prompt", "no tool 'prompt'; did you mean prompts? (the tools are get_price)"),
        ):
            with self.subTest(call):
                message = ran(call, loaded=True).error["message"]
                self.assertIn(said, message)
                self.assertFalse(message[0].isupper(), message)

    def test_metadata_of_a_server_that_cannot_be_asked(self) -> None:
        providers = [{**SHOP, "tools": None, "name": name, "alias": name} for name in ("bad", "good")]
        code = (
            "print([(m['name'], len(m['tools']), m.get('error')) for m in"
            " runtime.list_loaded_server_metadata()])"
        )
        done = run(code, providers, Host())
        self.assertEqual(
            done.stdout,
            "[('bad', 0, \"server 'bad' is not part of this call\"), ('good', 1, None)]\n",
            done.error,
        )

    def test_what_was_not_awaited_names_itself(self) -> None:
        for call, said in (
            ("runtime.list_tools('Shop 1')", "runtime.list_tools(...) was never awaited"),
            ("runtime.load_server('Shop 1')", "runtime.load_server(...) was never awaited"),
            ("runtime.query_tool_docs('Shop 1')", "runtime.query_tool_docs(...) was never awaited"),
        ):
            with self.subTest(call):
                done = ran(f"import asyncio\nawait asyncio.sleep(0)\n{call}\npass")
                self.assertIn(said, done.stderr)

    def test_two_servers_start_side_by_side_when_they_are_loaded_so(self) -> None:
        done = ran(
            "import asyncio\n"
            "a, b = await asyncio.gather(runtime.load_server('Shop 1'), runtime.list_tools('Shop 1'))\n"
            "print(a, b)"
        )
        self.assertIn("<server 'Shop 1' as mcp_shop_1, tools: get_price>", done.stdout)


class Original(unittest.TestCase):
    """Each call that the original's manual has, in code as it was written for it: it runs unchanged."""

    def test_documented_calls(self) -> None:
        programs = [
            ("from mcp import runtime\nprint(runtime.discovered_servers())", "['Shop 1', 'other']"),
            (
                "import mcp.runtime as r\nprint([s['name'] for s in r.discovered_servers(detailed=True)])",
                "['Shop 1', 'other']",
            ),
            ("print(await runtime.list_servers())", "['Shop 1']"),
            ("print(runtime.list_servers_sync())", "['Shop 1']"),
            (
                "tools = await runtime.list_tools('Shop 1')\n"
                "print(tools[0]['name'], tools[0]['inputSchema']['required'])",
                "get-price ['item']",
            ),
            (
                "t = runtime.list_tools_sync('Shop 1')[0]\n"
                "print(t['name'], t['alias'], t['input_schema']['type'])",
                "get-price get_price object",
            ),
            (
                "from mcp.runtime import MCPError\ntry: runtime.list_tools_sync()\n"
                "except MCPError as e: print('no', e)",
                "no list_tools_sync needs the name of a server; the servers are Shop 1",
            ),
            (
                "r = await runtime.call_tool('Shop 1', 'get-price', {'item': 'a'})\n"
                "print(r['content'][0]['text'], r['isError'])",
                '{"item": "a"} False',
            ),
            (
                "r = await runtime.call_tool('Shop 1', 'get-price', arguments={'item': 'a'})\n"
                "print(r.get('structuredContent'))",
                "None",
            ),
            (
                "d = runtime.describe_server('Shop 1')\nprint(d['name'], d['alias'], len(d['tools']))",
                "Shop 1 shop_1 1",
            ),
            (
                "import asyncio\nawait asyncio.sleep(0)\nd = runtime.describe_server('Shop 1')\n"
                "print(d['cwd'], d['tools'][0]['name'], 'input_schema' in d['tools'][0])",
                "None get-price True",
            ),
            (
                "m = runtime.list_loaded_server_metadata()\nawait mcp_shop_1.get_price(item='a')\n"
                "print(len(m), m[0]['name'], m[0]['tools'][0]['alias'])",
                "1 Shop 1 get_price",
            ),
            ("print((await runtime.query_tool_docs('Shop 1', tool='get-price'))['toolAlias'])", "get_price"),
            ("print((await runtime.query_tool_docs('Shop 1', detail='full'))[0]['inputSchema'])", "{}"),
            ("print(runtime.query_tool_docs_sync('Shop 1', tool='get-price')[0]['server'])", "Shop 1"),
            (
                "print((await runtime.search_tool_docs('price', limit=5, detail='summary'))[0]['tool'])",
                "get-price",
            ),
            ("print(runtime.search_tool_docs_sync('price')[0]['tool'])", "get-price"),
            ("print('ToolError' in runtime.capability_summary())", "True"),
            ("r = await mcp_shop_1.get_price(item='a')\nprint(r['content'][0]['type'])", "text"),
            ("r = await mcp_servers['Shop 1'].get_price(item='a')\nprint(r)", "{'item': 'a'}"),
            (
                "import mcp.servers.shop_1 as s\n"
                "print(await s.get_price(item='a'), s.__all__, s.TOOL_MAP, s.TOOLS[0]['name'])",
                "{'item': 'a'} ['get_price'] {'get_price': 'get-price'} get-price",
            ),
            ("from mcp.servers.shop_1 import get_price\nprint(await get_price(item='a'))", "{'item': 'a'}"),
            ("from mcp.servers.shop_1 import *\nprint(await get_price(item='a'))", "{'item': 'a'}"),
            ("print((await mcp_shop_1.list_tools())[0]['name'])", "get-price"),
            ("print(LOADED_MCP_SERVERS, mcp.runtime is runtime)", "('Shop 1',) True"),
            ("import os, json\nprint(json.loads(os.environ['MCP_AVAILABLE_SERVERS'])[0]['alias'])", "shop_1"),
            ("import os, json\nprint(json.loads(os.environ['MCP_DISCOVERED_SERVERS'])[1]['name'])", "other"),
            (
                "try: await runtime.call_tool('none', 'x')\nexcept Exception as e: print(type(e).__name__)",
                "KeyError",
            ),
            (
                "try: runtime.query_tool_docs_sync('bad')\nexcept RuntimeError as e: print(e)",
                "server 'bad' is not part of this call",
            ),
        ]
        for loaded in (False, True):
            done = ran("\nprint('--')\n".join(code for code, _ in programs), loaded)
            self.assertEqual((done.error, done.stderr), ({}, ""))
            for (code, want), said in zip(programs, done.stdout.split("--\n"), strict=True):
                with self.subTest(code, loaded=loaded):
                    self.assertEqual(said, want + "\n")

    def test_twins_block_where_a_loop_runs(self) -> None:
        done = ran(
            "import asyncio\nawait asyncio.sleep(0)\n"
            "print(runtime.list_tools_sync('Shop 1')[0]['name'], "
            "runtime.search_tool_docs_sync('x')[0]['tool'])"
        )
        self.assertEqual((done.stdout, done.error), ("get-price get-price\n", {}))


class Files(unittest.TestCase):
    """The stubs in /ipc/servers; outside of a container in a directory of the test's own."""

    def setUp(self) -> None:
        self.host = Host()
        if os.environ.get("GUEST_UNDER"):
            self.dir = Path("/ipc/servers")
            return
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.dir = Path(made.name) / "servers"

    def ran(self, code: str, provider: Frame) -> Ran:
        changed = {"stubs": ('DIR = "/ipc/servers"', f"DIR = {str(self.dir)!r}")}
        return run(f"D = {str(self.dir)!r}\n{code}", [provider], self.host, changed=changed)

    def test_there_from_the_start(self) -> None:
        done = self.ran("import os\nprint(os.listdir(D))\nprint(open(D + '/shop_1.py').read())", SHOP)
        self.assertEqual(
            (done.stdout, self.host.asked), ("['shop_1.py']\ndef get_price(item: str) -> Any: ...\n\n", [])
        )

    def test_opening_one_loads_its_server(self) -> None:
        for read in (
            "open(D + '/shop_1.py').read()",
            "__import__('pathlib').Path(D, 'shop_1.py').read_text()",
        ):
            with self.subTest(read):
                self.host.asked.clear()
                done = self.ran(f"print({read})\nprint({read}, mcp_shop_1)", {**SHOP, "tools": None})
                self.assertEqual(done.stdout.count("def get_price(item: str) -> Any: ...\n"), 2)
                self.assertEqual(self.host.asked, [("runtime", "load_server", {"server": "Shop 1"})])

    def test_not_known_yet(self) -> None:
        look = "import os\nprint(os.read(os.open(D + '/shop_1.py', os.O_RDONLY), 9999).decode())\n"
        done = self.ran(
            look + "mcp_shop_1.get_price('a')\n" + look, {**SHOP, "tools": None, "name": 'evil\n"""'}
        )
        before, _, after = done.stdout.partition("\n\n")
        self.assertIn('MCP server "evil\\n\\"\\"\\"", mcp_shop_1 in code, are not known', before)
        self.assertEqual([line for line in before.splitlines() if not line.startswith("#")], [])
        self.assertEqual(after, "def get_price(item: str) -> Any: ...\n\n")

    def test_a_server_that_does_not_start(self) -> None:
        done = self.ran(
            "print(open(D + '/x.py').read())\nprint(open(D + '/x.py').read())",
            {"name": "bad", "alias": "x", "tools": None},
        )
        self.assertIn("ToolError: server 'bad' is not part of this call", done.stdout)
        self.assertEqual(len(self.host.asked), 2)

    def test_open_is_as_it_was(self) -> None:
        done = self.ran(
            "import io, inspect, builtins\n"
            "print(open is io.open is builtins.open, open.__name__, open.__module__)\n"
            "open('/dev/null', 'rb', buffering=0).close()\nfor bad in (D + '/none.py', b'/nowhere', 7.5):\n"
            "    try: open(bad)\n    except Exception as e: print(type(e).__name__)\n"
            "class Holder: open = open\nHolder().open('/dev/null').close()\n"
            "import pathlib, tokenize, shutil\npathlib.Path('/dev/null').read_text()\n"
            "open(1, 'w', closefd=False).write('fd')",
            {**SHOP, "tools": None},
        )
        self.assertEqual(
            done.stdout.splitlines()[:4],
            ["True open io", "FileNotFoundError", "FileNotFoundError", "TypeError"],
        )
        self.assertEqual((done.error, self.host.asked), ({}, []))

    def test_no_place_for_them(self) -> None:
        self.dir = Path("/proc/none/servers")
        done = self.ran("print(mcp_shop_1.get_price('a'), open.__class__.__name__)", {**SHOP, "tools": None})
        self.assertEqual(done.stdout, "{'item': 'a'} builtin_function_or_method\n")


if __name__ == "__main__":
    unittest.main()
