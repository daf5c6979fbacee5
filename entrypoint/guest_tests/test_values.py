"""Arguments that cross, and those that don't."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import unittest
import uuid
from typing import Any

from guest import values
from guest.results import SerializationError


@dataclasses.dataclass
class Point:
    x: int
    y: decimal.Decimal


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


Pair = collections.namedtuple("Pair", "a b")
numpy_number = type("float64", (), {"__module__": "numpy", "ndim": 0, "item": lambda self: 2.5})()
numpy_array = type("ndarray", (), {"__module__": "numpy", "ndim": 1, "tolist": lambda self: []})()
cycle: list[Any] = []
cycle.append({"again": cycle})
deep: list[Any] = []
for _ in range(1000):
    deep = [deep]


class Values(unittest.TestCase):
    def test_cross(self) -> None:
        shared = [1]
        for value, want in (
            (None, None),
            (True, True),
            (2**64 - 1, 2**64 - 1),
            (-(2**63), -(2**63)),
            (1.5, 1.5),
            ("é\n😀", "é\n😀"),
            ((1, [2]), [1, [2]]),
            ([shared, shared], [[1], [1]]),
            (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc), "2026-01-02T03:04:00+00:00"),
            (datetime.date(2026, 1, 2), "2026-01-02"),
            (decimal.Decimal("0.10"), "0.10"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (pathlib.PurePosixPath("/a/b"), "/a/b"),
            (Point(1, decimal.Decimal("2")), {"x": 1, "y": "2"}),
            (Pair(1, 2), [1, 2]),
            (Colour.RED, "red"),
            (Level.HIGH, 3),
            ({Colour.RED: 1}, {"red": 1}),
            (b"\x00\xff", {"$base64": "AP8="}),
            (numpy_number, 2.5),
            (collections.OrderedDict(a=1), {"a": 1}),
        ):
            with self.subTest(value=value):
                self.assertEqual(json.loads(values.encode({"v": value})), {"v": want})

    def test_refused_with_their_path(self) -> None:
        for value, path, word in (
            (2**64, "v", "64 bits"),
            ([1, float("nan")], "v[1]", "nan"),
            ({"a": [0, {"b": float("-inf")}]}, "v.a[1].b", "inf"),
            ({1, 2}, "v", "list"),
            ({1: 2}, "v", "keys"),
            (object(), "v", "object"),
            (numpy_array, "v", "tolist"),
            (cycle, "v[0].again", "contains itself"),
            (deep, "v" + "[0]" * 200, "deep"),
            ("\ud800", "v", "surrogate"),
            ({"\ud800": 1}, "v", "surrogate"),
            (Point, "v", "type"),
        ):
            with self.subTest(path=path, word=word), self.assertRaises(SerializationError) as caught:
                values.encode({"v": value})
            self.assertEqual(caught.exception.path, path)
            self.assertIn(word, str(caught.exception))
            self.assertIn(path, str(caught.exception))
            self.assertEqual(caught.exception.code, "serialization_error")
