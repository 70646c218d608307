"""Classes of a subject against a literal count, however its rows lie and whatever the buckets."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import layouts, parts_of
from parts import at
from pyspark.sql import types as T

from privrisk_spark.engine import batches, schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.stages.assessing import classes as frames
from privrisk_spark.stages.assessing.classes import (
    Layout,
    buckets_of,
    classes_of,
    count_rows,
    counted_rows,
    each_bucket,
    kept_tables,
    read_bucket,
    renamed,
)
from privrisk_spark.stages.assessing.pairs import _above
from privrisk_spark.stages.assessing.sources import labels_of, totals
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Sensitive, Tallies

PATHS = [
    [("a", "far"), ("b", "far"), ("c", "near"), ("d", "near"), ("e", "near")],
    [("x",), ("y",), ("z",)],
    [("k", "left"), ("l", "left"), ("m", "right")],
]
HIERARCHIES = [Hierarchy.from_paths(name, paths) for name, paths in zip("pqr", PATHS, strict=True)]
VALUES = (4, 2)
SPARSE = 2**24

Row = tuple[Any, ...]


def layout(*, persons: bool = False, weighted: bool = False) -> Layout:
    return Layout(tuple(h.n_nodes for h in HIERARCHIES), VALUES, persons, weighted)


def rows_of(n: int, seed: int = 0, *, persons: bool = False, weighted: bool = False) -> list[Row]:
    """Leaves, roots where a value is missing, sensitive codes of which the last is a missing one, owners or none."""
    pick = random.Random(seed)
    rows: list[Row] = []
    for _ in range(n):
        nodes = [h.root if pick.random() < 0.2 else pick.randrange(h.n_leaves) // 2 for h in HIERARCHIES]
        held = [count if pick.random() < 0.2 else pick.randrange(count) for count in VALUES]
        person = [pick.choice([None, *[f"person {i}" for i in range(9)]])] if persons else []
        weight = [pick.choice([0, 0, 1_500_000, 333_333])] if weighted else []
        rows.append((*nodes, *held, *person, 1, *weight))
    return rows


def naive(rows: list[Row], of: Layout, positions: list[int]) -> dict[tuple[int, ...], dict[str, Any]]:
    """One entry a class."""
    found: dict[tuple[int, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        named = dict(zip(of.schema.fieldNames(), row, strict=True))
        found[tuple(named[f"n{i}"] for i in positions)].append(named)
    told = {}
    for key, held in found.items():
        values = []
        for j in range(len(VALUES)):
            if of.persons:
                owners = {(row[f"s{j}"], row[schemas.ENTITY]) for row in held}
                values.append(Counter(value for value, _ in owners))
            else:
                values.append(Counter(row[f"s{j}"] for row in held))
        told[key] = {
            "rows": len(held),
            "persons": len({row[schemas.ENTITY] for row in held}) if of.persons else None,
            "millionths": sum(row[schemas.MILLIONTHS] for row in held) if of.weighted else None,
            "held": values,
        }
    return told


def told(found: Classes) -> dict[tuple[int, ...], dict[str, Any]]:
    keys = [tuple(node) for node in found.nodes.tolist()]
    assert keys == sorted(set(keys)), "in lexicographic order, each once"
    return {
        key: {
            "rows": int(found.rows[i]),
            "persons": None if found.persons is None else int(found.persons[i]),
            "millionths": None if found.millionths is None else int(found.millionths[i]),
            "held": [
                Counter(
                    dict(
                        zip(
                            runs.value[runs.class_start[i] : runs.class_start[i + 1]].tolist(),
                            runs.count[runs.class_start[i] : runs.class_start[i + 1]].tolist(),
                            strict=True,
                        )
                    )
                )
                for runs in found.held
            ],
        }
        for i, key in enumerate(keys)
    }


def asked(of: Layout, tables: tuple[Any, ...], hierarchies: list[Hierarchy]) -> ClassMeasures:
    sensitive = tuple(Sensitive(name, "ordered", None, 3.0, 99) for name in ("disease", "pay"))
    return ClassMeasures(tuple(hierarchies), 3, 4, (0.2, 0.5), sensitive=sensitive, label=1, tables=tables, cells=True)


def measured(scratch: Scratch, subject: Batches, of: Layout, buckets: int, name: str, positions: list[int]) -> Tallies:
    """Count a subject, of it a set of its attributes, and tally that."""
    directory = scratch.directory(f"{name}-all")
    parts = parts_of(count_rows(subject, of, buckets, directory))
    names = [part["name"] for part in parts]
    if positions != list(range(len(HIERARCHIES))):
        rows = renamed(counted_rows(scratch.spark, directory, names, of), positions, of.others)
        of, directory = of.of_set(positions), scratch.directory(f"{name}-set")
        names = [part["name"] for part in parts_of(count_rows(rows, of, buckets, directory))]
    what = asked(of, totals(parts, of), [HIERARCHIES[i] for i in positions])

    def step(found: Classes) -> tuple[None, dict[str, Any]]:
        return None, {"tallies": as_json(Tallies.of(found, what))}

    found = parts_of(each_bucket(scratch, directory, names, buckets, of, step, ""))
    assert len(found) == buckets
    return folded(Tallies.empty(what, weighted=of.weighted), [from_json(Tallies, part["tallies"]) for part in found])


@pytest.mark.parametrize("kind", ["plain", "weighted", "persons", "both"])
def test_the_same_tallies_whatever_parts_and_buckets(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Chunks of a few rows; the histogram is dense for some and sparse, taken when full, for others."""
    monkeypatch.setattr(batches, "CHUNK_ROWS", 7)
    of = layout(persons=kind in ("persons", "both"), weighted=kind in ("weighted", "both"))
    rows = rows_of(90, persons=of.persons, weighted=of.weighted)
    positions = {"plain": [0, 1, 2], "weighted": [2, 0], "persons": [1, 2], "both": [0, 1, 2]}[kind]
    scratch = Scratch(spark, tmp_path)
    expected = naive(rows, of, positions)
    found = []
    for i, frame in enumerate(layouts(spark, rows, of.schema)):
        for buckets in (1, 5) if i == 1 else (3,):
            name = f"{i}-{buckets}"
            found.append(measured(scratch, Batches.of_frame(frame), of, buckets, name, positions))
    assert all(one == found[0] for one in found)
    assert {json.dumps(as_json(one)) for one in found} == {json.dumps(as_json(found[0]))}
    sizes = Counter(one["persons"] if of.persons else one["rows"] for one in expected.values())
    assert dict(zip(found[0].sizes.sizes, found[0].sizes.numbers, strict=True)) == sizes
    assert found[0].rows == len(rows)


@pytest.mark.parametrize("kind", ["plain", "weighted", "persons", "both"])
def test_buckets_hold_whole_classes(spark: Any, tmp_path: Path, kind: str) -> None:
    of = layout(persons=kind in ("persons", "both"), weighted=kind in ("weighted", "both"))
    rows = rows_of(70, 1, persons=of.persons, weighted=of.weighted)
    (_, frame, _) = layouts(spark, rows, of.schema)
    directory = at(tmp_path)
    parts = parts_of(count_rows(Batches.of_frame(frame), of, 4, directory))
    names = [part["name"] for part in parts]
    of_bucket = [told(read_bucket(directory, names, bucket, of)) for bucket in range(4)]
    assert sum(len(one) > 0 for one in of_bucket) > 1
    together: dict[Any, Any] = {}
    for one in of_bucket:
        assert not together.keys() & one.keys()
        together |= one
    assert together == naive(rows, of, [0, 1, 2])
    # Facts of the parts: rows, and how often each value occurs.
    assert sum(part["rows"] for part in parts) == len(rows)
    for j, total in enumerate(totals(parts, of)):
        assert dict(enumerate(total.tolist())) == {
            v: Counter(row[3 + j] for row in rows)[v] for v in range(VALUES[j] + 1)
        }


def test_a_task_writes_a_part_a_chunk(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of zero are no rows of the sum: they must not shift those of others."""
    monkeypatch.setattr(batches, "CHUNK_ROWS", 5)
    of = layout(weighted=True)
    rows = rows_of(80, 2, weighted=True)
    frame = spark.createDataFrame(rows, of.schema).coalesce(1).toArrow()
    step = count_rows(Batches.of_frame(spark.createDataFrame(rows[:1], of.schema)), of, 2, at(tmp_path)).steps[-1]
    written = list(step(frame.slice(i, 5) for i in range(0, 80, 5)))
    names = [table.column("name")[0].as_py() for table in written]
    assert len(names) > 2
    found: dict[Any, Any] = {}
    for bucket in range(2):
        found |= told(read_bucket(at(tmp_path), names, bucket, of))
    assert found == naive(rows, of, [0, 1, 2])


@pytest.mark.parametrize(("persons", "weighted"), [(False, False), (True, True)])
def test_nothing_to_count(spark: Any, tmp_path: Path, persons: bool, weighted: bool) -> None:
    of = layout(persons=persons, weighted=weighted)
    frame = spark.createDataFrame([], of.schema)
    (tmp_path / "kept").mkdir()
    parts = parts_of(count_rows(Batches.of_frame(frame), of, 2, at(tmp_path)))
    names = [part["name"] for part in parts]
    for bucket in range(2):
        none = read_bucket(at(tmp_path), names, bucket, of)
        assert len(none) == 0
        assert none.nodes.shape == (0, 3)
        assert (none.persons is None, none.millionths is None) == (not persons, not weighted)
        tables = tuple(np.ones(count + 1, dtype=np.int64) for count in VALUES)
        empty = Tallies.of(none, asked(of, tables, HIERARCHIES))
        full = Tallies.of(classes_of(None, of), asked(of, tables, HIERARCHIES))
        assert empty.plus(full) == empty == from_json(Tallies, json.loads(json.dumps(as_json(empty))))


def test_buckets_and_kept_tables(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ROWS_PER_BUCKET", 10)
    assert [buckets_of(rows) for rows in (0, 1, 10, 11, 95)] == [1, 1, 1, 2, 10]
    of = layout()
    rows = rows_of(40, 3)
    scratch = Scratch(spark, tmp_path)
    directory, target = scratch.directory("counted"), scratch.directory("kept")
    names = [
        part["name"]
        for part in parts_of(count_rows(Batches.of_frame(layouts(spark, rows, of.schema)[2]), of, 4, directory))
    ]

    def step(found: Classes) -> Any:
        import pyarrow as pa

        columns = {f"n{i}": pa.array(np.ascontiguousarray(found.nodes[:, i])) for i in range(3)}
        return pa.table(columns | {"rows": pa.array(found.rows)}), {"classes": len(found)}

    written = parts_of(each_bucket(scratch, directory, names, 4, of, step, target))
    kept = kept_tables(target, written)
    assert kept.num_rows == sum(part["classes"] for part in written)
    expected = naive(rows, of, [0, 1, 2])
    assert {tuple(row.values()) for row in kept.to_pylist()} == {(*key, one["rows"]) for key, one in expected.items()}
    assert T.StructType(of.schema.fields) == of.schema


def test_a_label_of_several_nodes_means_the_one_above_the_record() -> None:
    """``mixed`` is on two branches, and ``only`` is a chain on one."""
    paths = [("a", "mixed", "north"), ("b", "mixed", "south"), ("c", "only", "only"), ("d", "east")]
    tree = Hierarchy.from_paths("place", paths)
    lookup, missing = labels_of(tree)
    assert missing == tree.root
    nodes = dict(zip(lookup.texts.to_pylist(), lookup.codes.tolist(), strict=True))
    original = np.arange(4)

    def above(label: str) -> list[str | None]:
        found = _above(tree, original, np.full(4, nodes[label])).tolist()
        assert all(node < 0 or tree.first_leaf[node] <= leaf < tree.last_leaf[node] for leaf, node in enumerate(found))
        return [None if node < 0 else tree.labels[node] for node in found]

    assert above("mixed") == ["mixed", "mixed", None, None]
    assert above("only") == [None, None, "only", None]
    assert above("*") == ["*"] * 4
    assert above("d") == [None, None, None, "d"]
    assert tree.depth[_above(tree, original, np.full(4, nodes["only"]))[2]] == 2, "the most specific"
