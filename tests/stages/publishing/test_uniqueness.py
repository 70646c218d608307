"""Who has a value nobody else has is counted once, however rows lie in parts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.decided import Decided
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.results.facts import ReleaseFacts
from privrisk_spark.stages.deciding.decide import class_members
from privrisk_spark.stages.publishing import uniqueness
from privrisk_spark.stages.publishing.uniqueness import measure_unique_persons


def literal(rows: list[dict[str, Any]], of: Any) -> int:
    """Persons with a value that only they have; None and NaN alone are no values."""
    persons: dict[Any, set[str]] = {}
    for row in rows:
        value = of(row)
        if value is not None:
            persons.setdefault(value, set()).add(row["entity"])
    return len({person for who in persons.values() if len(who) == 1 for person in who})


def shown(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


@pytest.mark.parametrize("parts", [1, 4, 11])
@pytest.mark.parametrize("least", [4_000_000, 20])
def test_persons_are_those_of_a_literal_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int, least: int
) -> None:
    monkeypatch.setattr(uniqueness, "VALUES_PER_TASK", least)
    generator = np.random.default_rng(parts)
    rows = [
        {
            "n0": int(generator.integers(0, 6)),
            "entity": f"p{generator.integers(0, 70)}",
            "r0": [None, math.nan, -0.0, 0.0, *map(float, range(90))][int(generator.integers(0, 94))],
            "r1": [None, *map(str, range(60))][int(generator.integers(0, 61))],
        }
        for _ in range(200)
    ]
    # Every part holds the rows of nobody whole: rows are dealt in turn.
    chunks = []
    for i in range(parts):
        mine = rows[i::parts]
        table = pa.table(
            {
                "entity": pa.array([row["entity"] for row in mine]).dictionary_encode(),
                "r0": pa.array([row["r0"] for row in mine], pa.float64()),
                "r1": pa.array([row["r1"] for row in mine], pa.string()).dictionary_encode(),
            }
        )
        none = np.zeros(len(mine))
        decisions = Decisions(
            np.zeros((len(mine), 1), np.int8),
            np.array([[row["n0"]] for row in mine], np.int32),
            none,
            none,
            none,
            none.astype(np.int64),
            none.astype(np.int64),
            none == 0,
        )
        made = class_members(Decided(table, decisions, np.arange(len(mine)), none == 0), k=1)
        assert made is not None
        chunks.append(made)
    members = Batches.of_frame(spark.createDataFrame(pa.concat_tables(chunks)).repartition(parts))
    facts = ReleaseFacts(len(rows), 1, 1, {}, {})
    found = measure_unique_persons(Scratch(spark, tmp_path), members, facts, ["a", "b"], k=1)
    assert found.persons == len({row["entity"] for row in rows})
    assert found.unique_by_kept == {
        "a": literal(rows, lambda row: None if shown(row["r0"]) is None else str(row["r0"])),
        "b": literal(rows, lambda row: row["r1"]),
    }
    assert found.unique_by_cells == literal(rows, lambda row: row["n0"])
    assert found.unique_by_all == literal(rows, lambda row: (row["n0"], str(row["r0"]), row["r1"]))
    assert 0 < found.unique_by_kept["b"] < found.persons
    assert found.share(found.persons) == 1
