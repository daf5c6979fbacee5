"""Arguments of a call against the tool's schema: what is sent, and what is said of what can't be."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import unittest
from typing import Any

from guest.arguments import Arguments
from guest.results import SerializationError
from guest.signatures import Declared
from guest_tests.host import declared

EDIT = {
    "type": "object",
    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
    "required": ["old", "new"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "default": 10},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "order": {"type": "string", "enum": ["name", "size", "Date"]},
        "level": {"enum": [1, 2, True, None]},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "note": {"type": ["string", "null"]},
        "when": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"$ref": "#/$defs/Edit"}]},
        "fixed": {"const": "v1"},
        "tree": {"$ref": "#/$defs/Tree"},
        "both": {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"b": {"type": "string"}}}]},
        "any": {},
        "class": {"type": "string", "nullable": True},
        "a-b": {"type": "string"},
        "loop": {"$ref": "#/$defs/loop"},
        "odd": {"type": "quaternion", "enum": "x", "required": 5, "items": 7, "$ref": 9},
    },
    "required": ["path"],
    "$defs": {
        "Edit": EDIT,
        "Tree": {
            "type": "object",
            "properties": {
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                "n": {"type": "integer"},
            },
        },
        "loop": {"$ref": "#/$defs/loop"},
    },
}


def taking(schema: Any, called: str = "f", **meta: Any) -> Arguments:
    described = declared({"safeName": "f", "inputSchema": schema}) | meta
    return Arguments(called, described, Declared(described))


class Colour(str, enum.Enum):
    NAME = "name"


class Checked(unittest.TestCase):
    def setUp(self) -> None:
        self.shape = taking(SCHEMA, "mcp_fs.find")

    def sent(self, *args: Any, **kwargs: Any) -> Any:
        return json.loads(self.shape.encode(args, kwargs))

    def test_sent(self) -> None:
        for args, kwargs, want in (
            (("a",), {}, {"path": "a"}),
            (
                ("a", 3, 0.5, True, "size"),
                {},
                {"path": "a", "count": 3, "ratio": 0.5, "deep": True, "order": "size"},
            ),
            ((), {"path": "a", "count": 2**63 + 1}, {"path": "a", "count": 2**63 + 1}),
            (("a",), {"ratio": 2, "count": 3.0}, {"path": "a", "ratio": 2, "count": 3.0}),
            (("a",), {"order": Colour.NAME}, {"path": "a", "order": "name"}),
            (
                ("a",),
                {"edits": ({"old": "x", "new": "y"},)},
                {"path": "a", "edits": [{"old": "x", "new": "y"}]},
            ),
            (("a",), {"labels": {"x": 1}}, {"path": "a", "labels": {"x": 1}}),
            (
                ("a",),
                {"note": None, "level": None, "class_": None},
                {"path": "a", "note": None, "level": None, "class": None},
            ),
            (("a", None), {"ratio": None, "edits": None}, {"path": "a"}),
            (("a",), {"when": 5}, {"path": "a", "when": 5}),
            (("a",), {"when": datetime.date(2026, 1, 2)}, {"path": "a", "when": "2026-01-02"}),
            (
                ("a",),
                {"tree": {"kids": [{"kids": []}, {"n": 1}]}},
                {"path": "a", "tree": {"kids": [{"kids": []}, {"n": 1}]}},
            ),
            (("a",), {"class_": "x", "a_b": "y"}, {"path": "a", "class": "x", "a-b": "y"}),
            (("a",), {"class": "x", "a-b": "y"}, {"path": "a", "class": "x", "a-b": "y"}),
            (
                ("a",),
                {"any": [{"x": None}], "loop": 1, "odd": b"\0"},
                {"path": "a", "any": [{"x": None}], "loop": 1, "odd": {"$base64": "AA=="}},
            ),
        ):
            with self.subTest(kwargs=kwargs):
                self.assertEqual(self.sent(*args, **kwargs), want)

    def test_refused(self) -> None:
        for kwargs, kind, said in (
            ({"path": 5}, TypeError, "mcp_fs.find(): path must be str, not int 5"),
            ({"path": None}, TypeError, "path must be str, not None"),
            (
                {"path": b"x"},
                TypeError,
                "path must be str, not dict, made of bytes; decode them, or send base64",
            ),
            ({"count": "3"}, TypeError, "count must be int, not '3'"),
            ({"count": True}, TypeError, "count must be int, not bool True"),
            ({"count": 3.5}, TypeError, "count must be int, not float 3.5"),
            ({"ratio": decimal.Decimal("1.5")}, TypeError, "ratio must be float, not '1.5'"),
            ({"deep": 1}, TypeError, "deep must be bool, not int 1"),
            (
                {"order": "nmae"},
                ValueError,
                "order must be one of 'name', 'size', 'Date', not 'nmae'; did you mean 'name'?",
            ),
            ({"order": "date"}, ValueError, "did you mean 'Date'?"),
            ({"level": 3}, ValueError, "level must be one of 1, 2, True, None, not int 3"),
            ({"level": False}, ValueError, "not bool False"),
            ({"edits": {"old": "x", "new": "y"}}, TypeError, "edits must be list[dict], not dict"),
            (
                {"edits": [{"old": "x", "new": "y"}, {"old": "x"}]},
                TypeError,
                "edits[1] lacks 'new'; the keys are new, old",
            ),
            ({"edits": [{"old": "x", "new": 1}]}, TypeError, "edits[0]['new'] must be str, not int 1"),
            (
                {"edits": [{"old": "x", "new": "", "nwe": ""}]},
                TypeError,
                "edits[0] has no key 'nwe'; did you mean new?",
            ),
            ({"labels": {"x": "1"}}, TypeError, "labels['x'] must be int, not '1'"),
            ({"when": 1.5}, TypeError, "when must be int | str | dict, not float 1.5"),
            ({"when": {"old": "x"}}, TypeError, "when must be int | str | dict, not dict"),
            ({"when": {"old": "x", "new": 5}}, TypeError, "when['new'] must be str, not int 5"),
            ({"fixed": "v2"}, ValueError, "fixed must be 'v1', not 'v2'"),
            (
                {"tree": {"kids": [{"kids": [{"n": "x"}]}]}},
                TypeError,
                "tree['kids'][0]['kids'][0]['n'] must be int, not 'x'",
            ),
            ({"both": {"b": "x"}}, TypeError, "both lacks 'a'"),
            ({"both": {"a": 1, "b": 2}}, TypeError, "both['b'] must be str, not int 2"),
            ({"class_": 5}, TypeError, "class_ must be str | None, not int 5"),
            ({"a-b": 5}, TypeError, "a_b must be str, not int 5"),
            ({"pth": "x"}, TypeError, "mcp_fs.find() has no parameter 'pth'; did you mean path?"),
            ({"count": 2**64}, SerializationError, "count: an integer of more than 64 bits"),
        ):
            with self.subTest(kwargs=kwargs), self.assertRaises(kind) as caught:
                self.sent(**{"path": "a", **kwargs})
            self.assertIn(said, str(caught.exception))
        with self.assertRaisesRegex(TypeError, r"^mcp_fs.find\(\) lacks 'path'; the parameters are "):
            self.sent(count=1)

    def test_an_object_that_is_one_of_several(self) -> None:
        one = {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]}
        two = {"properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]}
        stub = (
            "def f(kind: Literal['a', 'b'], x: str | None = None, y: int | None = None, **kwargs: Any) ->"
            " Any: ..."
        )
        shape = taking({"type": "object", "oneOf": [one, two]}, stub=stub)
        self.assertEqual(json.loads(shape.encode(("b",), {"y": 1})), {"kind": "b", "y": 1})
        with self.assertRaisesRegex(TypeError, "must be Literal"):
            shape.encode(("c",), {})
        with self.assertRaisesRegex(TypeError, "lacks 'kind'"):
            shape.encode((), {"x": "1"})

    def test_a_check_is_bounded(self) -> None:
        branch: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}
        schema = {
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {**branch, "items": branch, "minItems": 1}},
        }
        value: Any = 1
        for _ in range(60):
            value = [value]
        self.assertEqual(json.loads(taking(schema).encode((value,), {})), {"a": value})

    def test_a_megabyte_is_checked_quickly_enough_to_be_sent(self) -> None:
        values = list(range(100_000))
        shape = taking({"properties": {"a": {"type": "array", "items": {"type": "integer"}}}})
        self.assertEqual(json.loads(shape.encode((values,), {})), {"a": values})
        with self.assertRaisesRegex(TypeError, r"a\[5\] must be int"):
            shape.encode(([*range(5), "x"],), {})

    def test_what_is_not_described_is_taken(self) -> None:
        for schema in (
            None,
            True,
            {},
            {"type": "object"},
            {"additionalProperties": True, "properties": {"a": {}}},
            {"properties": 5},
        ):
            with self.subTest(schema=schema):
                self.assertEqual(json.loads(taking(schema).encode((), {"x y": 1})), {"x y": 1})
        with self.assertRaisesRegex(TypeError, "no parameter 'x'; there are no parameters"):
            taking({"type": "object", "properties": {}}).encode((), {"x": 1})


if __name__ == "__main__":
    unittest.main()
