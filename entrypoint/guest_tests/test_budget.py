"""A server's schema doesn't decide how long the guest reads it: steps are counted, and what is beyond allows everything."""

from __future__ import annotations

import inspect
import time
import unittest
from typing import Any

from guest.schemas import MAX_STEPS, TEXT_STEP, Document
from guest_tests.test_signatures import tool, written


def each(n: int, text: str, schema: Any) -> dict[str, Any]:
    return {text % i: schema for i in range(n)}


class Budget(unittest.TestCase):
    def test_steps(self) -> None:
        """Schemas that lead into themselves, or are long lists, cost what their size says, and lose nothing."""
        itself = {"properties": {"a": {"type": "string"}}, "required": ["a"], "allOf": [{"$ref": "#"}] * 100}
        a = {"properties": {"x": {}}, "allOf": [{"$ref": "#/$defs/b"}]}
        b = {"properties": {"y": {}}, "allOf": [{"$ref": "#/$defs/a"}]}
        cases: list[tuple[Any, list[str]]] = [
            (itself, ["a"]),
            ({"$ref": "#/$defs/a", "$defs": {"a": a, "b": b}}, ["x", "y"]),
            ({"anyOf": [{"properties": {"a": {"const": i}}} for i in range(4000)]}, ["a"]),
            ({"properties": each(4000, "p%d", {}), "required": [f"p{i}" for i in range(4000)]}, [f"p{i}" for i in range(4000)]),
        ]
        for schema, names in cases:
            with self.subTest(str(schema)[:80]):
                document = Document(schema)
                read = document.alternatives(document.effective(schema))
                self.assertEqual(list(read["properties"]), names)
                self.assertLess(MAX_STEPS - document.left, MAX_STEPS // 2)

    def test_spent(self) -> None:
        """A schema that was not read to its end is never taken for one that takes no more."""
        long = {"properties": {"b": {"description": "x" * TEXT_STEP * MAX_STEPS}}}
        made = tool({"anyOf": [{"properties": {"a": {"const": 1}}}, long, {"properties": {"c": {}}}]})
        self.assertEqual(written(made), "(a: Any = None, **kwargs: Any) -> Any")

    def test_no_schema_takes_long(self) -> None:
        """Steps are what bounds the time; the deadline is far from it, for a busy machine."""
        spelled = [{"$ref": f"#/%61llOf/{i}"} for i in range(900)] + [{"$ref": "#"}] * 300
        same = each(500, "p%d", {"$ref": "#/$defs/a"})
        long = {"properties": {"p": {"title": "x" * 500_000}}}
        hostile: dict[str, Any] = {
            "itself, spelled in many ways": {"allOf": spelled},
            "one long schema": {"anyOf": [{"$ref": "#/$defs/a"}] * 4000, "$defs": {"a": long}},
            "one long literal": {"properties": same, "$defs": {"a": {"enum": ["x" * 500_000]}}},
            "one long note": {"properties": same, "$defs": {"a": {"description": "x y " * 200_000}}},
            "one long default": {"properties": same, "$defs": {"a": {"default": ["x" * 500_000]}}},
            "many literals": {"properties": {"a": {"anyOf": [{"enum": [f"{i}.{j}" for j in range(90)]} for i in range(900)]}}},
            "many records": {
                "properties": {"a": {"anyOf": [{"properties": {f"a{i}": {"properties": {"b": {}}}}} for i in range(1500)]}}
            },
            "one name": {"properties": each(500, "-%d-", {"properties": each(9, "-" * 3 + "%d", {"properties": {"-": {}}})})},
            "all required": {"required": [f"p{i}" for i in range(60_000)], "properties": each(30_000, "p%d", {})},
        }
        for name, schema in hostile.items():
            with self.subTest(name):
                start = time.monotonic()
                made = tool(schema, output=schema)
                self.assertLess(len(str(inspect.signature(made))) + len(made.__doc__ or ""), 4_000_000)
                self.assertLess(time.monotonic() - start, 60)


if __name__ == "__main__":
    unittest.main()
