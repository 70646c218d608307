"""What is out of each record, joined by id: against a loop, in any partitioning, whatever numbers leaves have."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from naive_records import layouts
from pyspark.sql import SparkSession

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.chains import path_fingerprints
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.history import PARTS, EarlierRelease
from privrisk_spark.stages.deciding.history import remembered_part, write_history
from privrisk_spark.storage.locations import Location

PLACES = {"a": ("n", "w"), "b": ("n", "w"), "c": ("s", "w"), "d": ("e",)}
SEXES = {"u": ("v",), "x": ("v",)}


def hierarchy(name: str, of: dict[str, tuple[str, ...]], leaves: list[str]) -> Hierarchy:
    return Hierarchy.from_paths(name, [(leaf, *of[leaf]) for leaf in leaves])


def code(leaves: list[str], value: str | None) -> int:
    return len(leaves) if value is None else leaves.index(value)


def test_the_deepest_level_of_each_unchanged_value_is_joined(spark: SparkSession, tmp_path: Path) -> None:
    pick = random.Random(3)
    places, sexes = sorted(PLACES), sorted(SEXES)
    now = {f"r{i}": (pick.choice([*places, None]), pick.choice([*sexes, None])) for i in range(40)}
    hierarchies = {"place": hierarchy("place", PLACES, places), "sex": hierarchy("sex", SEXES, sexes)}

    def depth(of: dict[str, tuple[str, ...]], value: str | None) -> int:
        return 0 if value is None else 1 + len(of[value])

    earlier, past = [], []
    secrets = [b"\1" * 32, b"\2" * 32, b"\1" * 32]
    """Two vaults remember them, each under a key of its own."""
    # Leaves were fewer, and so had other numbers; one release did not have the second attribute.
    for number, (known, both) in enumerate([(["b", "c", "d"], True), (places, False), (["d", "b", "a", "c"], True)]):
        names = ["place", "sex"] if both else ["place"]
        levels: dict[str, tuple[tuple[str | None, int], ...]] = {}
        for identity in [*now, "gone"]:
            if identity != "gone" and pick.random() < 0.3:
                continue
            place, sex = now.get(identity, ("b", "u"))
            if place not in known or pick.random() < 0.2:
                place = pick.choice([*known, None])
            pair = ((place, PLACES), (sex, SEXES))[: len(names)]
            levels[identity] = tuple((value, pick.randint(0, depth(of, value))) for value, of in pair)
        # As from_paths numbers them: in the order given.
        then = [hierarchy("place", PLACES, known), hierarchies["sex"]][: len(names)]
        leaves = [known, sexes]
        table = pa.table(
            {schemas.RECORD_ID: list(levels)}
            | {
                f"q{i}": pa.array([code(leaves[i], row[i][0]) for row in levels.values()], pa.int32())
                for i in range(len(names))
            }
        )
        chosen = np.array([[level for _, level in row] for row in levels.values()], dtype=np.int8)
        place_of = tmp_path / f"release{number}"
        (place_of / PARTS).mkdir(parents=True)
        for half, rows in enumerate((slice(0, 10), slice(10, None))):
            part = remembered_part(
                table.slice(rows.start, None if rows.stop is None else rows.stop - rows.start),
                chosen[rows],
                [path_fingerprints(one) for one in then],
                secrets[number],
            )
            pq.write_table(part, place_of / PARTS / f"part-{half}.parquet")
        where = Location("file", "", str(place_of))
        earlier.append(
            EarlierRelease(
                f"run{number}",
                "2026-11-01",
                "name",
                "0",
                where,
                where.below(PARTS),
                "id",
                dict.fromkeys(names, "0"),
                secrets[number],
            )
        )
        past.append(levels)

    rows = [(i, code(places, place), code(sexes, sex), f"note {i}") for i, (place, sex) in now.items()]
    for number, frame in enumerate(layouts(spark, rows, "record_id string, q0 int, q1 int, r0 string")):
        scratch = Scratch(spark, tmp_path / f"scratch{number}")
        scratch.path.mkdir()
        found = write_history(scratch, Batches.of_frame(frame), earlier, hierarchies)
        assert found.schema.fieldNames() == ["record_id", "q0", "q1", "r0", "h0", "h1", "releases", "changed"]
        table = found.frame().toArrow().to_pylist()
        assert len(table) == len(now)
        for row in table:
            values = now[row["record_id"]]
            mine = [levels[row["record_id"]] for levels in past if row["record_id"] in levels]
            assert row["releases"] == len(mine)
            assert row["changed"] == any(then != values[i] for one in mine for i, (then, _) in enumerate(one))
            for i, of in enumerate((PLACES, SEXES)):
                out = [one[i][1] for one in mine if i < len(one) and one[i][0] == values[i]]
                assert row[f"h{i}"] == min([depth(of, values[i]), *out])
            assert row["r0"] == f"note {row['record_id']}"
    assert any(len({identity in levels for levels in past}) > 1 for identity in now), "some are new to some release"


def test_a_value_with_another_path_is_another_value() -> None:
    one = Hierarchy.from_paths("a", [("x", "north"), ("y", "south")])
    other = Hierarchy.from_paths("a", [("y", "north"), ("x", "north"), ("z", "north")])
    of_one, of_other = path_fingerprints(one), path_fingerprints(other)
    assert of_one[0] == of_other[1], "x under north, whatever its number"
    assert of_one[1] != of_other[0], "y has moved"
    assert of_one[2] == of_other[3], "a missing value is one"
    assert len(set(of_one.tolist())) == 3
