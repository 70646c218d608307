from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.membership import membership
from privrisk_spark.extensions.attack.stages.presence import (
    PLACED,
    collect_histories,
    collect_presence,
    placed,
    store_classes,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples

MONDAY = Tuples(np.array([[0, 2], [1, 1], [1, 2]], dtype=np.int32), np.array([2, 1, 1]))
TUESDAY = Tuples(np.array([[4], [7]], dtype=np.int32), np.array([2, 1]))


def frame_of(spark: Any, names: list[str], rows: list[tuple[Any, ...]], parts: int) -> Batches:
    shuffled = random.Random(parts).sample(rows, len(rows))
    columns = list(zip(*shuffled, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array(c, pa.string() if n == "record_id" else pa.int32()) for n, c in zip(names, columns, strict=True)]
    table = pa.table(arrays, names)
    return Batches.of_frame(spark.createDataFrame(table, from_arrow_schema(table.schema)).repartition(parts))


def releases_of(spark: Any, scratch: Scratch, parts: int) -> list[Batches]:
    """Two releases: d is in neither, c in the first alone, z in none of the tables; y shows what no class has."""
    monday = [("a", 0, 2), ("b", 0, 2), ("c", 1, 1), ("d", -1, -1), ("y", 1, 0), ("z", 1, 2), (None, None, 2)]
    tuesday = [("a", 4), ("b", 7), ("z", 4)]
    stored = [store_classes(scratch.directory(name), of) for name, of in (("m", MONDAY), ("t", TUESDAY))]
    return [
        placed(frame_of(spark, ["record_id", "n0", "n1"], monday, parts), stored[0], ["n0", "n1"]),
        placed(frame_of(spark, ["record_id", "n0"], tuesday, parts), stored[1], ["n0"]),
    ]


PEOPLE = [("a", 5, 0), ("b", 5, 1), ("c", 6, 0), ("d", 5, 0), ("y", 6, 2), (None, 7, 2)]
"""Record id, what is known, code of the sensitive value; somebody without an id is in no release."""


@pytest.mark.parametrize("parts", [1, 4, 11])
def test_people_by_their_classes(spark: Any, tmp_path: Any, parts: int) -> None:
    releases = releases_of(spark, Scratch(spark, tmp_path), parts)
    assert releases[0].frame().schema == PLACED
    assert sorted((row["record_id"] or "", row["place"]) for row in releases[0].frame().collect()) == [
        ("", -1), ("a", 0), ("b", 0), ("c", 1), ("d", -1), ("y", -1), ("z", 2)
    ]  # fmt: skip
    people = frame_of(spark, ["record_id", "q0", "s0"], PEOPLE, parts)
    found = collect_histories(people, releases, "s0", most=9, key="table")
    assert found.places.tolist() == [[-1, -1], [-1, -1], [0, 0], [0, 1], [1, -1]]
    assert found.own.tolist() == [0, 2, 0, 1, 0]
    assert found.people.tolist() == [1, 2, 1, 1, 1]
    alone = collect_histories(people, [], "s0", most=9, key="table")
    assert (alone.places.shape, alone.people.tolist()) == ((3, 0), [3, 1, 2])


@pytest.mark.parametrize("parts", [1, 4, 11])
def test_members_of_those_who_are_alike(spark: Any, tmp_path: Any, parts: int) -> None:
    """Of 5 three, a and b in the first class, of whom 0.75 is there each; of 6 c, and y whose row no class has."""
    monday, _ = releases_of(spark, Scratch(spark, tmp_path), parts)
    people = frame_of(spark, ["record_id", "q0", "s0"], PEOPLE, parts)
    found = collect_presence(people, monday, np.array([0.75, 1.0, 1.0]), 1, seed=3, most=9, key="table")
    assert found.known.nodes.tolist() == [[5], [6], [7]]
    assert found.known.rows.tolist() == [3, 2, 1]
    assert found.members.tolist() == [1.5, 1, 0]
    assert found.others.tolist() == [1.5, 1, 1]
    assert membership(found.members, found.others).score.tolist() == [0.5, 0]
    surely = collect_presence(people, monday, np.ones(3), 1, seed=3, most=9, key="table")
    assert surely.members.tolist() == [2, 1, 0]
    # A half that the ids draw, the same however the people lie.
    assert (surely.half.tolist(), surely.half_members.tolist()) == ([0.0, 0.0, 1.0], [0.0, 0.0, 0.0])
    other = collect_presence(people, monday, np.ones(3), 1, seed=4, most=9, key="table")
    assert other.half.tolist() != surely.half.tolist()
    assert (other.half_members <= np.minimum(other.half, surely.members)).all()


def test_what_is_too_much_or_nobody_is_refused(spark: Any, tmp_path: Any) -> None:
    releases = releases_of(spark, Scratch(spark, tmp_path), 2)
    names = ["record_id", "q0", "s0"]
    for rows, rule in ((PEOPLE, "table has more than 2 distinct rows"), ([], "table: there are no rows")):
        people = frame_of(spark, names, rows, 2)
        with pytest.raises(InputError, match=rule):
            collect_histories(people, releases, "s0", most=2, key="table")
        with pytest.raises(InputError, match=rule):
            collect_presence(people, releases[0], np.ones(3), 1, seed=3, most=2, key="table")
    stored = store_classes(Scratch(spark, tmp_path).directory("x"), TUESDAY)
    assert placed(frame_of(spark, ["record_id", "n0"], [], 1), stored, ["n0"]).frame().count() == 0
