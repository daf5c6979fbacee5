"""Tools as functions: what inspect.signature, help() and __doc__ say of the declarations that the
bridge writes.
"""

from __future__ import annotations

import ast
import inspect
import re
import unittest
from pathlib import Path
from typing import Any

from guest import signatures
from guest.link import Link
from guest.servers import Server
from guest_tests.host import HERE, Frame, run

STUBS = sorted((HERE / "stubs" / "testdata" / "stubs").glob("*.py"))


def tools(path: Path) -> dict[str, Frame]:
    """The tools of a module of declarations, each with its own."""
    pieces = re.findall(r".*?    raise NotImplementedError\n", path.read_text(encoding="utf-8"), re.DOTALL)
    pieces[0] = re.sub(r'^""".*?\n"""\n.*?(?=\n\n\n)', "", pieces[0], flags=re.DOTALL)
    found = {}
    for piece in pieces:
        name = re.findall(r"^def (\w+)\(", piece, re.MULTILINE)[0]
        found[name] = {"safeName": name, "originalName": name, "stub": piece}
    return found


def server(known: dict[str, Frame]) -> Server:
    return Server(Link(-1), {"name": "x", "alias": "x", "tools": known})


class Declarations(unittest.TestCase):
    def test_recorded(self) -> None:
        self.assertGreaterEqual(len(STUBS), 8)
        for path in STUBS:
            known = tools(path)
            made = server(known)
            for name, meta in known.items():
                with self.subTest(server=path.stem, tool=name):
                    node = ast.parse(meta["stub"]).body[-1]
                    assert isinstance(node, ast.FunctionDef)
                    shown = f"def {name}{inspect.signature(made[name])}: 0"
                    want = ast.dump(node.args) + ast.dump(node.returns or ast.Constant(None))
                    got = ast.parse(shown).body[0]
                    assert isinstance(got, ast.FunctionDef)
                    self.assertEqual(ast.dump(got.args) + ast.dump(got.returns or ast.Constant(None)), want)
                    doc = str(made[name].__doc__)
                    self.assertTrue(doc.startswith(ast.get_docstring(node) or ""), doc)
                    self.assertEqual(doc.count("TypedDict"), meta["stub"].count("TypedDict"))

    def test_help_as_it_is_documented(self) -> None:
        known = tools(next(path for path in STUBS if path.stem == "filesystem"))
        ran = run(
            "help(mcp_filesystem.read_text_file)",
            [{"name": "filesystem", "alias": "filesystem", "tools": known}],
        )
        want = (HERE / "testdata" / "help_read_text_file.txt").read_text(encoding="utf-8")
        self.assertEqual([line.rstrip() for line in ran.stdout.splitlines()], want.splitlines(), ran.error)

    def test_a_tool_without_a_declaration(self) -> None:
        made: Any = server({"big": {"description": "Does it."}})["big"]
        self.assertEqual((str(inspect.signature(made)), made.__doc__), ("(**kwargs: Any) -> Any", "Does it."))
        self.assertEqual(
            (made.__name__, made.__module__, made.__qualname__), ("big", "mcp.servers.x", "mcp_x.big")
        )

    def test_nothing_is_run(self) -> None:
        text = Path(str(signatures.__file__)).read_text(encoding="utf-8")
        self.assertNotRegex(text, r"\b(exec|eval)\(")
        self.assertEqual(re.findall(r"compile\(.*", text), re.findall(r"compile\(.*PyCF_ONLY_AST.*", text))


if __name__ == "__main__":
    unittest.main()
