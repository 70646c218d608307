"""Values as JSON can hold them, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privrisk_spark.json_values import JsonDocument, as_json, from_json
from privrisk_spark.kernels.arrays import FloatArray


@dataclass(frozen=True)
class Point:
    x: int
    y: float = math.inf


@dataclass(frozen=True)
class Shape(JsonDocument):
    points: tuple[Point, ...]
    title: str = "a"

    json_keys = ("name:title", "first:points", "area", "corners:count", "text:title.upper")

    @property
    def area(self) -> float:
        return 2.5

    def count(self) -> int:
        return len(self.points)


@dataclass(frozen=True, eq=False)
class Stored:
    kind: str = field(init=False, default="stored")
    numbers: FloatArray
    pairs: tuple[tuple[int, float], ...]
    by_name: Mapping[str, Point]
    maybe: Point | None
    doubled: int = field(metadata={"from_json": lambda given: 2 * given})


def test_as_json_of_every_type_returns_what_json_holds() -> None:
    value = {
        "a": np.int64(3),
        "b": np.float32(0.5),
        "c": Decimal("0.10"),
        "d": Fraction(1, 3),
        "e": {2, 1},
        3: (True, None),
        "f": -math.inf,
        "g": math.nan,
        "h": Point(1),
        "i": np.array([[1, 2]]),
        "j": np.bool_(True),
        "k": Path("a", "b"),
        "l": date(2026, 1, 2),
    }
    assert as_json(value) == {
        "a": 3,
        "b": 0.5,
        "c": "0.10",
        "d": "1/3",
        "e": [1, 2],
        "3": [True, None],
        "f": "-Infinity",
        "g": "NaN",
        "h": {"x": 1, "y": "Infinity"},
        "i": [[1, 2]],
        "j": True,
        "k": "a/b",
        "l": "2026-01-02",
    }


@pytest.mark.parametrize("value", [object(), Point, 1j])
def test_as_json_of_another_type_raises(value: object) -> None:
    with pytest.raises(TypeError, match="cannot hold a"):
        as_json(value)


def test_as_json_with_json_keys_writes_them_in_their_order() -> None:
    first = [{"x": 1, "y": "Infinity"}]
    found = Shape((Point(1),)).to_dict()
    assert list(found.items()) == [("name", "a"), ("first", first), ("area", 2.5), ("corners", 1), ("text", "A")]


def test_from_json_reads_what_as_json_wrote() -> None:
    one = Stored(np.array([0.5, -0.0]), ((1, math.inf),), {"p": Point(2**80, 0.1)}, None, 3)
    text = json.dumps(as_json(one), allow_nan=False)
    again = from_json(Stored, json.loads(text))
    assert (again.pairs, again.by_name, again.maybe, again.doubled) == (one.pairs, one.by_name, None, 6)
    assert again.numbers.tobytes() == one.numbers.tobytes()
    with pytest.raises(KeyError):
        from_json(Point, {"x": 1})
