"""Tools as functions: what inspect.signature, help() and __doc__ say, held to the stubs that the bridge writes."""

from __future__ import annotations

import ast
import inspect
import json
import re
import unittest
from pathlib import Path
from typing import Any, get_type_hints

from guest import pytypes, schemas
from guest.link import Link
from guest.servers import Server
from guest_tests.host import HERE, run

TESTDATA = HERE / "stubs" / "testdata"
RECORDED = sorted((TESTDATA / "servers").glob("*.json"))


def tool(schema: Any, output: Any = None, **meta: Any) -> Any:
    """The function of a tool with a schema. It can't be called."""
    described = {"originalName": "do-it", "description": "Does it.", "inputSchema": schema, **meta}
    if output is not None:
        described["outputSchema"] = output
    server = Server(Link(-1), {"name": "x", "alias": "x", "tools": {"do_it": described}})
    return server["do-it"]


def written(function: Any) -> str:
    """Its signature as a stub writes it."""
    parts = []
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{star}{parameter.name}: {pytypes.text(parameter.annotation)}{default}")
    return f"({', '.join(parts)}) -> {pytypes.text(signature.return_annotation)}"


def recorded(path: Path) -> Server:
    listed = json.loads(path.read_text(encoding="utf-8"))["tools"]
    tools = {re.sub("[^a-z0-9_]+", "_", one["name"].lower()): {**one, "originalName": one["name"]} for one in listed}
    return Server(Link(-1), {"name": path.stem, "alias": path.stem, "tools": tools})


class Recorded(unittest.TestCase):
    """The tools of real servers."""

    def test_same_as_the_stubs(self) -> None:
        self.assertGreaterEqual(len(RECORDED), 8)
        for path in [*RECORDED, TESTDATA / "odd.json"]:
            server = recorded(path)
            stub = ast.parse((TESTDATA / "stubs" / f"{path.stem}.py").read_text(encoding="utf-8"))
            functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
            self.assertEqual(sorted(functions), list(server))
            for name, node in functions.items():
                with self.subTest(server=path.stem, tool=name):
                    want = f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns or ast.Constant(None))}"
                    plain = re.sub(r"(?<=\w)=(?=\S)", " = ", want)
                    self.assertEqual(
                        ast.dump(ast.parse(f"def f{plain}: 0")), ast.dump(ast.parse(f"def f{written(server[name])}: 0"))
                    )
                    doc = (ast.get_docstring(node) or "").split("\n")
                    self.assertEqual(inspect.getdoc(server[name]), server[name].__doc__)
                    for line in doc:
                        self.assertIn(line.strip(), str(server[name].__doc__ or ""))

    def test_the_same_classes(self) -> None:
        server = recorded(next(path for path in RECORDED if path.stem == "filesystem"))
        edits = get_type_hints(server["edit_file"])["edits"].__args__[0]
        self.assertEqual(edits.__annotations__, {"oldText": str, "newText": str})
        self.assertEqual(edits.__required_keys__, {"oldText", "newText"})

    def test_help_as_it_is_documented(self) -> None:
        path = next(path for path in RECORDED if path.stem == "filesystem")
        one = next(one for one in json.loads(path.read_text())["tools"] if one["name"] == "read_text_file")
        ran = run("help(mcp_filesystem.read_text_file)", [provider_of(one)])
        want = (HERE / "testdata" / "help_read_text_file.txt").read_text(encoding="utf-8")
        self.assertEqual([line.rstrip() for line in ran.stdout.splitlines()], want.splitlines(), ran.error)


def provider_of(one: dict[str, Any]) -> dict[str, Any]:
    return {"name": "filesystem", "alias": "filesystem", "tools": {one["name"]: {**one, "originalName": one["name"]}}}


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "value": {"type": "integer"}}, "required": ["value"]}


class Schemas(unittest.TestCase):
    def test_types(self) -> None:
        for schema, want in (
            ({"type": "string"}, "str"),
            ({"type": "integer"}, "int"),
            ({"type": "number"}, "float"),
            ({"type": ["string", "null"]}, "str | None"),
            ({"type": "string", "nullable": True}, "str | None"),
            ({"type": "array"}, "list[Any]"),
            ({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}}, "list[list[bool]]"),
            ({"items": {"type": "string"}}, "list[str]"),
            ({"type": "array", "prefixItems": [{"type": "string"}]}, "list[Any]"),
            ({"type": "object"}, "dict[str, Any]"),
            ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
            ({"properties": {"a": {}}}, "DoItA"),
            ({"enum": ["a", 1, None, True]}, "Literal['a', 1, True] | None"),
            ({"enum": [1.5, "a", [1]]}, "Literal['a'] | float | list[Any]"),
            ({"enum": [str(i) for i in range(101)]}, "str"),
            ({"const": "x"}, "Literal['x']"),
            ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}]}, "str | int | None"),
            ({"oneOf": [{"const": "a"}, {"type": "array", "items": {"const": 1}}]}, "Literal['a'] | list[Literal[1]]"),
            ({"anyOf": [{"type": "string"}, True]}, "Any"),
            ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "str"),
            ({"$ref": "#/$defs/Node"}, "DoItNode"),
            ({"$ref": "#/$defs/loop"}, "Any"),
            ({"$ref": "#/$defs/a~1b%20c"}, "int"),
            ({"$ref": "https://example.com/other.json"}, "Any"),
            ({"$ref": "#/nowhere/9"}, "Any"),
            ({"$ref": 5}, "Any"),
            ({"type": "quaternion"}, "Any"),
            ({"type": 5}, "Any"),
            ({"enum": "a"}, "Any"),
            ({"anyOf": 3, "properties": [], "required": {}}, "Any"),
            (True, "Any"),
            (False, "Any"),
            ("string", "Any"),
            (None, "Any"),
        ):
            with self.subTest(schema=schema):
                defs = {"Node": NODE, "loop": {"$ref": "#/$defs/loop"}, "a/b c": {"type": "integer"}}
                root = {"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": defs}
                self.assertEqual(written(tool(root)), f"(a: {want}) -> Any")

    def test_a_recursive_one_names_itself(self) -> None:
        root = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": NODE}}
        made = inspect.signature(tool(root)).parameters["a"].annotation.__args__[0]
        self.assertEqual(
            {key: pytypes.text(value) for key, value in made.__annotations__.items()}, {"next": "DoItNode", "value": "int"}
        )
        self.assertEqual(made.__required_keys__, {"value"})
        whole = {"type": "object", "properties": {"child": {"$ref": "#"}}}
        self.assertEqual(written(tool(whole)), "(child: DoItInput | None = None) -> Any")

    def test_parameters(self) -> None:
        properties = {
            "class": {"type": "string"},
            "a-b": {"type": "integer", "default": 3},
            "a.b": {"type": "integer", "default": "three"},
            "1st": {"type": "number", "default": 1},
            "__x": {"enum": ["a", "b"], "default": "b"},
            "näme": {"type": "boolean", "default": False},
            "": {},
            "kwargs": {"type": "array", "default": []},
            "last": {"type": ["string", "null"], "default": None},
        }
        made = tool(
            {"type": "object", "properties": properties, "required": ["last", "undescribed"], "additionalProperties": True}
        )
        self.assertEqual(
            written(made),
            "(last: str | None, undescribed: Any, class_: str | None = None, a_b: int = 3, a_b__2: int | None = None, "
            "_1st: float = 1, _x: Literal['a', 'b'] = 'b', n_me: bool = False, _: Any = None, "
            "kwargs: list[Any] | None = None, **kwargs__2: Any) -> Any",
        )
        for line in ('class_ ("class"):', 'a_b__2 ("a.b"): default "three"', "kwargs: default []"):
            self.assertIn(line, made.__doc__)

    def test_whatever_the_schema_there_is_a_tool(self) -> None:
        deep: Any = {"type": "string"}
        for _ in range(300):
            deep = {"type": "array", "items": {"anyOf": [{"type": "null"}, {"allOf": [deep]}]}}
        wide = {"type": "object", "properties": {f"p{i}": {"type": "string", "description": "x" * 1000} for i in range(10_000)}}
        odd: list[Any] = [
            None, True, False, "", 5, [], {}, {"type": "string"}, {"properties": None}, {"properties": {"a": deep}}, wide,
            {"$ref": "#"}, {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {"properties": {"": None}, "required": [None, 1, ""]},
            {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {"properties": {"\ud800": {"description": "\ud800\0"}, "x\n": {"enum": ["\n\"\"\"\\"]}}},
        ]  # fmt: skip
        for i, schema in enumerate(odd):
            with self.subTest(i):
                made = tool(schema, output=schema)
                self.assertTrue(str(inspect.signature(made)).startswith("("))
                self.assertIn("Does it.", made.__doc__)
                self.assertEqual((made.__name__, made.__module__, made.__qualname__), ("do_it", "mcp.servers.x", "mcp_x.do_it"))

    def test_nothing_is_compiled(self) -> None:
        for module in (pytypes, schemas):
            self.assertNotRegex(Path(str(module.__file__)).read_text(encoding="utf-8"), r"\b(exec|eval|compile)\(")


if __name__ == "__main__":
    unittest.main()
