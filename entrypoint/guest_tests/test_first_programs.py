"""What models write first for servers without output schemas. testdata/programs/README.md says what
the files hold.
"""

from __future__ import annotations

import json
import re
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from guest_tests.host import HERE, Frame, Guest, Ran, declared

FOLDER = HERE / "testdata" / "programs"
SCRIPTS = {path.stem: path for path in FOLDER.glob("*.json")} | {
    "github": HERE.parent / "bridge" / "fixture" / "github.json"
}
SHOWN = re.compile(
    r"^(image|display|figure|audio)-\d+(-\d+)?\.\w+$"
)  # names of files that are shown and were given none


class Server:
    """Answers as bridge/fixture/script.go does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.script: Frame = json.loads(SCRIPTS[name].read_text(encoding="utf-8"))
        self.tools = {
            tool["name"]: declared({"safeName": tool["name"], "originalName": tool["name"], **tool})
            for tool in self.script["tools"]
        }

    def __call__(self, call: Frame) -> Frame:
        tool, given = call["safeToolName"], call["input"]
        if call["providerName"] == "runtime":
            return {"ok": True, "result": self._helper(tool)}
        return {"ok": True, "result": self._answer(tool, given)}

    def _helper(self, name: str) -> Any:
        provider = {"name": self.name, "alias": self.name, "description": "", "tools": self.tools}
        docs = [
            {
                "server": self.name,
                "serverAlias": self.name,
                "tool": tool["name"],
                "toolAlias": tool["name"],
                **tool,
            }
            for tool in self.tools.values()
        ]
        return {"load_server": provider, "query_tool_docs": docs}[name]

    def _answer(self, tool: str, given: Frame) -> Frame:
        answer = next(
            (a for a in self.script["answers"][tool] if (a.get("when") or {}).items() <= given.items()), None
        )
        if answer is None or "error" in answer:
            said = answer["error"] if answer else "there is no answer for these arguments"
            return {"content": [{"type": "text", "text": said}], "isError": True}
        if "content" in answer:
            return {"content": answer["content"]}
        text = (
            answer["text"] if "text" in answer else json.dumps(selected(answer, given), separators=(",", ":"))
        )
        return {"content": [{"type": "text", "text": text}]}


def selected(answer: Frame, given: Frame) -> Any:
    """The JSON of an answer; of a list the members and the page that the arguments ask for."""
    if "page" not in answer:
        return answer["json"]
    want, size, page = (
        given.get(answer.get("filter", "")),
        given.get("perPage") or answer["page"],
        given.get("page") or 1,
    )
    kept = [
        member for member in answer["json"] if want in (None, "all", member.get(answer.get("filter", "")))
    ]
    return kept[(page - 1) * size : page * size]


def programs(server: str) -> dict[str, dict[str, str]]:
    """The files of each program by their ending."""
    parts = re.split(
        r"^-- (\w+)\.(\w+) --\n", (FOLDER / f"{server}.txtar").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    found: dict[str, dict[str, str]] = {}
    for name, kind, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found.setdefault(name, {})[kind] = text
    return found


def ran(code: str, server: Server) -> Ran:
    """Runs code with a server whose tools aren't known before it is touched."""
    with tempfile.TemporaryDirectory() as folder, Guest(cwd=folder) as guest:
        guest.execute(code, [{"name": server.name, "alias": server.name, "description": "", "tools": None}])
        return Ran(guest.played(server))


def handed_over(done: Ran) -> str:
    """A line for each file."""
    files = dict.fromkeys((f["name"], f["mime"]) for f in done.frames if f["type"] == "artifact")
    return "".join(f"[{mime}]\n" if SHOWN.match(name) else f"[{name} {mime}]\n" for name, mime in files)


class FirstPrograms(unittest.TestCase):
    maxDiff = None

    def test_each(self) -> None:
        each = [
            (Server(name), title, files)
            for name in sorted(SCRIPTS)
            for title, files in programs(name).items()
        ]
        self.assertGreater(len(each), 60)
        with ThreadPoolExecutor(3) as pool:
            results = pool.map(lambda one: ran(one[2]["py"], one[0]), each)
            for (server, title, files), done in zip(each, results, strict=True):
                with self.subTest(f"{server.name}/{title}"):
                    self.check(done, files)

    def check(self, done: Ran, files: dict[str, str]) -> None:
        if "out" in files:
            self.assertEqual((done.error, done.stderr), ({}, ""))
            self.assertEqual(done.stdout + handed_over(done), files["out"])
            return
        kind, *parts = files["says"].splitlines()
        self.assertEqual(done.error.get("type"), kind, done.error)
        for part in parts:
            self.assertIn(part, done.error["message"])
