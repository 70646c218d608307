from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import ROOT, generalized, layouts, leaves_of, parts_of, path, policy_of, quasi, shuffled
from parts import at
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.decided import Decided
from privrisk_spark.engine.schemas import node_labels
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.numeric.fingerprint import of_counts, of_tuples
from privrisk_spark.kernels.numeric.moments import risk_bins
from privrisk_spark.policy.policy import Table
from privrisk_spark.results.facts import DecisionFacts, InputFacts
from privrisk_spark.stages.deciding.decide import Conclusion, conclude
from privrisk_spark.stages.publishing import measure, uniqueness
from privrisk_spark.stages.publishing.files import with_labels
from privrisk_spark.stages.publishing.measure import decision_facts, measure_release
from privrisk_spark.tables.encode import duplicates, materialize
from privrisk_spark.tables.materialize import input_facts
from privrisk_spark.tables.opening import collect_hierarchies, read
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}
SEX = {"*": ["u", "v"]}
POLICY = policy_of({"place": quasi({"tree": PLACE}), "sex": quasi({"tree": SEX})})
HIERARCHIES = collect_hierarchies(POLICY, None, None)  # type: ignore[arg-type] - every leaf is declared
DECIDED = schemas.decided(T.StructType([T.StructField("record_id", T.StringType())]), 2)


def decided_rows(n: int, seed: int, values: list[float]) -> list[tuple[Any, ...]]:
    pick = random.Random(seed)
    leaves = [leaves_of(PLACE["*"]), leaves_of(SEX["*"])]
    rows = []
    for i in range(n):
        records = [pick.choice([*of.values(), ROOT]) for of in leaves]
        levels = [pick.randint(0, len(node)) for node in records]
        disclosed = [generalized(node, level) for node, level in zip(records, levels, strict=True)]
        numbers = [
            next(j for j in range(h.n_nodes) if path(h, j) == node)
            for h, node in zip(HIERARCHIES.values(), disclosed, strict=True)
        ]
        before, after = pick.choice(values), pick.choice(values)
        utility = float(sum(len(node) for node in disclosed)) + pick.choice([0.0, 1 / 3])
        feasible, kept = pick.random() < 0.9, pick.random() < 0.8
        rows.append((f"i{i}", *levels, *numbers, after, before, utility, i, i // 2, feasible, kept))
    return rows


def facts_of(frame: Any, directory: Path) -> DecisionFacts:
    """Facts of DECIDED as its parts report them."""
    conclusion = Conclusion(
        decisions=at(directory / "decisions"),
        tuples=at(directory / "tuples"),
        members=at(directory / "members"),
        record_id="id",
        attributes=tuple(HIERARCHIES),
        roots=tuple(h.root for h in HIERARCHIES.values()),
        heights=tuple(h.height for h in HIERARCHIES.values()),
        method="exact",
    )
    parts = parts_of(conclude(Batches.of_frame(frame), partial(Decided.of_columns, k=2), conclusion))
    assert sorted(part["name"] for part in parts) == sorted(p.name for p in (directory / "decisions").iterdir())
    return decision_facts(parts, HIERARCHIES)


def input_of(frame: Any, attributes: list[str], weights: list[str], directory: Path) -> InputFacts:
    """Facts of ENCODED as its parts report them."""
    parts = parts_of(materialize(Batches.of_frame(frame), at(directory), k=len(attributes), n_weights=len(weights)))
    rows = sum(part["rows"] for part in parts)
    again = duplicates(frame.sparkSession, [part["name"] for part in parts], rows, at(directory)).frame().toArrow()
    return input_facts(parts, sum(again.column(0).to_pylist()), attributes, weights)


def naive_levels(rows: list[tuple[Any, ...]]) -> list[list[int]]:
    found = []
    for i, hierarchy in enumerate(HIERARCHIES.values()):
        tally = Counter(hierarchy.height if row[3 + i] == hierarchy.root else row[1 + i] for row in rows)
        found.append([tally[level] for level in range(hierarchy.height + 1)])
    return found


def same_summary(summary: Any, values: list[float]) -> None:
    assert (summary.min, summary.max) == (min(values), max(values))
    exact = sum(map(Fraction, values), Fraction()) / len(values)
    assert summary.mean == float(exact), "the float nearest to the true mean"


def same_histogram(histogram: Any, values: list[float]) -> None:
    edges = histogram.edges
    assert edges[0] == 0
    assert math.isinf(edges[-1])
    wanted = Counter(min(bisect_right(edges, value), len(edges) - 1) - 1 for value in values)
    assert histogram.counts == tuple(wanted[i] for i in range(len(edges) - 1))


RISKS = [0.0, 1.0, 0.5, 1 / 3, 1 / 7, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9, 3e-10, 1e-300, 2.5, 10.0, 1000.0, 12345.678]


def test_decision_facts_are_those_of_a_loop(spark, tmp_path):
    rows = decided_rows(90, 1, RISKS)
    facts = [facts_of(frame, tmp_path / str(i)) for i, frame in enumerate(layouts(spark, rows, DECIDED))]
    assert facts[0] == facts[1] == facts[2]
    one = facts[0]
    assert one.rows == 90
    assert 0 < one.sampled == sum(row[11] for row in rows) < 90
    assert one.infeasible == sum(not row[10] for row in rows)
    roots = [h.root for h in HIERARCHIES.values()]
    assert one.verbatim == sum(row[1] == row[2] == 0 and [row[3], row[4]] != roots for row in rows) > 0
    assert [list(levels.rows) for levels in one.levels] == naive_levels(rows)
    assert [(levels.attribute, levels.height) for levels in one.levels] == [("place", 3), ("sex", 1)]
    assert one.levels[0].level_names == ("as it is", "level 1", "level 2", "suppressed")
    same_summary(one.risk_after, [row[5] for row in rows])
    same_summary(one.risk_before, [row[6] for row in rows])
    same_summary(one.utility, [row[7] for row in rows])
    # One of ρ rows is the record; where none fits, nobody is found.
    for summary, rho in ((one.identified_after, 8), (one.identified_before, 9)):
        same_summary(summary, [1 / row[rho] if row[rho] else 0.0 for row in rows])
    same_histogram(one.after, [row[5] for row in rows])
    same_histogram(one.before, [row[6] for row in rows])


def test_the_bins_hold_round_numbers(spark, tmp_path):
    """A risk of 1/10, 1/100, … stands on an edge, and an edge belongs to the bin above it."""
    values = (
        [10.0**e for e in range(-9, 4)] + [1 / 10**e for e in range(1, 10)] + [10.0 ** (e / 2) for e in range(-18, 7)]
    )
    values += [v * (1 - 1e-12) for v in values] + [1 / n for n in range(1, 400)]
    rows = [(f"i{i}", 0, 0, 0, 0, value, value, 1.0, 1, 1, True, True) for i, value in enumerate(values)]
    facts = facts_of(spark.createDataFrame(rows, DECIDED), tmp_path)
    same_histogram(facts.after, values)
    same_histogram(facts.before, values)
    assert facts.after.edges == risk_bins()


def test_infinite_and_extreme_risks_have_a_mean_that_no_order_changes(spark, tmp_path):
    def at_two_layouts(rows: list[tuple[Any, ...]], name: str) -> DecisionFacts:
        frames = layouts(spark, rows, DECIDED)[1:]
        facts = [facts_of(frame, tmp_path / f"{name}-{i}") for i, frame in enumerate(frames)]
        assert facts[0] == facts[1]
        return facts[0]

    infinite = at_two_layouts(decided_rows(30, 2, [math.inf, 1.0, 0.0]), "infinite")
    assert infinite.risk_after.mean == infinite.risk_after.max == math.inf
    assert infinite.risk_after.min == 0
    assert infinite.after.counts[-1] > 0
    for number, values in enumerate(
        ([3e-13, 1.7e-20, 5e-9], [1e14 / 3, 7e8, 1 / 3], [1e21 / 7, 3e17, 2.0], [1e300, 5e-324, 0.1])
    ):
        rows = decided_rows(40, 3, values)
        facts = at_two_layouts(rows, str(number))
        same_summary(facts.risk_after, [row[5] for row in rows])
        assert facts.risk_after.min <= facts.risk_after.mean <= facts.risk_after.max


def test_many_large_risks_do_not_overflow(spark, tmp_path):
    frame = spark.range(200_001).select(
        F.col("id").cast("string").alias("record_id"),
        *[F.lit(0).cast("tinyint").alias(name) for name in schemas.levels(2)],
        *[F.lit(0).alias(name) for name in schemas.nodes(2)],
        F.lit(9e14).alias("risk"),
        F.lit(1e15).alias("risk_before"),
        F.lit(1.0).alias("utility"),
        F.lit(1).cast("long").alias("consistent"),
        F.lit(1).cast("long").alias("consistent_before"),
        F.lit(True).alias("feasible"),
        F.lit(True).alias("kept"),
    )
    facts = facts_of(frame, tmp_path)
    assert (facts.rows, sum(facts.after.counts)) == (200_001, 200_001)
    assert facts.risk_after.mean == 9e14
    assert facts.risk_before.mean == 1e15


def test_an_empty_frame_has_facts(spark, tmp_path):
    facts = facts_of(spark.createDataFrame([], DECIDED), tmp_path / "decided")
    assert (facts.rows, facts.sampled, facts.infeasible, facts.verbatim) == (0, 0, 0, 0)
    assert [sum(levels.rows) for levels in facts.levels] == [0, 0]
    assert sum(facts.before.counts) == sum(facts.after.counts) == 0
    assert facts.risk_after.mean == facts.utility.max == 0
    encoded = spark.createDataFrame([], "record_id string, block binary, w0 double, q0 int")
    found = input_of(encoded, ["x"], ["w"], tmp_path / "encoded")
    assert (found.rows, found.null_ids, found.duplicate_ids) == (0, 0, 0)
    assert (found.nulls, found.unknown, found.bad_weights) == ({"x": 0}, {"x": 0}, {"w": 0})


# ------------------------------------------------------------------------------------------ the input

ENCODED = "record_id string, block binary, w0 double, w1 double, r0 string, q0 int, q1 int"
NAN, INF = math.nan, math.inf
INPUT: list[tuple[Any, ...]] = [
    ("a", b"1", 1.0, 0.0, "x", 0, -1),
    ("b", b"2", NAN, -0.0, None, -2, -2),
    ("c", b"3", None, -1.0, "", -2, 4),
    ("d", b"4", INF, 1e-300, "y", -1, 0),
    ("e", b"5", -INF, None, "y", -1, 0),
]


def test_input_facts_are_those_of_a_loop(spark, tmp_path):
    facts = [
        input_of(frame, ["p", "q"], ["u", "v"], tmp_path / str(i))
        for i, frame in enumerate(layouts(spark, INPUT, ENCODED))
    ]
    assert facts[0] == facts[1] == facts[2]
    one = facts[0]
    assert (one.rows, one.null_ids, one.duplicate_ids) == (5, 0, 0)
    assert one.nulls == {"p": 2, "q": 1}
    assert one.unknown == {"p": 2, "q": 1}
    assert one.bad_weights == {"u": 3, "v": 2}, "an infinite weight is one"
    assert one.snapshot.startswith("5-")


@pytest.mark.parametrize(
    ("ids", "null_ids", "repeated"),
    [
        (["a", "a", "b"], 0, 1),
        (["a", "a", "a", "b", "b"], 0, 3),
        ([None, "a", "b"], 1, 0),
        ([None, None, "a"], 2, 0),
        ([None, "a", "a"], 1, 1),
        ([None, None, None], 3, 0),
        (["", None, ""], 1, 1),
    ],
)
def test_missing_and_repeated_ids_are_counted_apart(spark, tmp_path, ids, null_ids, repeated):
    frame = spark.createDataFrame([(identity, 0) for identity in ids], "record_id string, q0 int")
    facts = input_of(frame, ["x"], [], tmp_path / "ids")
    assert (facts.rows, facts.null_ids, facts.duplicate_ids) == (len(ids), null_ids, repeated)


def test_the_snapshot_identifies_the_content(spark, tmp_path):
    numbers = itertools.count()

    def snapshot(rows: list[tuple[Any, ...]]) -> str:
        frame = spark.createDataFrame(rows, ENCODED).repartition(2)
        return input_of(frame, ["p", "q"], ["u", "v"], tmp_path / str(next(numbers))).snapshot

    base = snapshot(INPUT)
    assert snapshot(shuffled(INPUT, 4)) == base
    changed = [list(INPUT) for _ in range(4)]
    changed[0][0] = ("a", b"1", 1.0, 0.0, "x", 0, 0)
    changed[1][0] = ("A", b"1", 1.0, 0.0, "x", 0, -1)
    changed[2][2] = ("c", b"3", None, -1.0, None, -2, 4)
    changed[3].pop()
    # Swapping two rows' values is another table, though every column holds the same values.
    changed.append([*INPUT[:3], (*INPUT[3][:5], *INPUT[0][5:]), INPUT[4]])
    snapshots = [base, *map(snapshot, changed)]
    assert len(set(snapshots)) == len(snapshots)


# ------------------------------------------------------------------------------------------ the release


LABELS: dict[str, list[str | None]] = {"a.b": ["x", "y", "*", None, "", "x"], "c": ["1", "*"]}


def label_rows(rows: list[tuple[str | None, ...]]) -> dict[str, int]:
    """How often the first node of each label stands, as a fingerprint, by looking at one row after the other."""
    found = {}
    for i, (attribute, labels) in enumerate(LABELS.items()):
        counts = np.zeros(len(labels), dtype=np.int64)
        for row in rows:
            if row[i] in labels:
                counts[labels.index(row[i])] += 1
        found[attribute] = of_counts(counts)
    nodes = [
        np.array([labels.index(row[i]) if row[i] in labels else -1 for row in rows])
        for i, labels in enumerate(LABELS.values())
    ]
    return {**found, "": of_tuples(nodes, np.ones(len(rows), dtype=np.int64))}


def released_facts(spark: Any, release: Batches, directory: Path) -> Any:
    directory.mkdir()
    return measure_release(Scratch(spark, directory), release, LABELS)


def test_release_facts_are_those_of_a_loop(spark, tmp_path, monkeypatch):
    pick = random.Random(8)
    rows = [(pick.choice(["x", "y", "*", None, "", "??"]), pick.choice(["1", "*", "1 ", None])) for _ in range(60)]
    wanted = Counter(rows)
    frames = layouts(spark, rows, T.StructType([T.StructField(f"a{i}", T.StringType()) for i in range(2)]))
    facts = [released_facts(spark, Batches.of_frame(frame), tmp_path / str(i)) for i, frame in enumerate(frames)]
    # The same rows in files, read by tasks or by Spark.
    where = [Wanted(f"a{i}", name, "text") for i, name in enumerate(LABELS)]
    content = pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(LABELS)})
    (tmp_path / "p").mkdir()
    pq.write_table(content.slice(0, 35), tmp_path / "p" / "0.parquet", row_group_size=10)
    pq.write_table(content.slice(35), tmp_path / "p" / "1.parquet", use_dictionary=False)
    for options, steps in (({}, 1), ({"mergeSchema": False}, 0)):
        table = Table(path=str(tmp_path / "p"), options=options)
        release = scan(table, read(spark, table, key="table"), where)
        assert len(release.steps) == steps
        facts.append(released_facts(spark, release, tmp_path / f"files-{steps}"))
    # Merged by tasks, each a range of fingerprints.
    monkeypatch.setattr(measure, "CLASSES_PER_TASK", 7)
    facts.append(released_facts(spark, Batches.of_frame(frames[2]), tmp_path / "ranges"))
    assert all(other == facts[0] for other in facts[1:])
    one = facts[0]
    assert (one.rows, one.classes, one.min_class_size) == (60, len(wanted), min(wanted.values()))
    assert one.label_rows == label_rows(rows)
    assert one.label_rows != label_rows([({"x": "y", "y": "x"}.get(row[0], row[0]), row[1]) for row in rows])
    # Each label as often, and beside others.
    others = label_rows([(a, c) for (a, _), (_, c) in zip(rows, [*rows[1:], rows[0]], strict=True)])
    assert {name for name in others if others[name] != one.label_rows[name]} == {""}
    assert one.off_hierarchy == {
        "a.b": sum(row[0] == "??" for row in rows),
        "c": sum(row[1] in ("1 ", None) for row in rows),
    }
    assert min(one.off_hierarchy.values()) > 0
    # Texts that are no label count as one: here '??' and '!!'.
    other = [("!!" if i % 2 and row[0] == "??" else row[0], row[1]) for i, row in enumerate(rows)]
    assert len(set(other)) > len(wanted)
    again = spark.createDataFrame(other, "a0 string, a1 string")
    assert released_facts(spark, Batches.of_frame(again), tmp_path / "again") == one
    empty = released_facts(spark, Batches.of_frame(frames[0].limit(0)), tmp_path / "empty")
    assert (empty.rows, empty.classes, empty.min_class_size) == (0, 0, 0)
    assert empty.off_hierarchy == {"a.b": 0, "c": 0}


def test_rows_that_a_kept_value_points_out_are_those_of_a_loop(spark, tmp_path, monkeypatch):
    """Of any type; a missing value and NaN point out nobody, but tell rows apart."""
    pick = random.Random(3)
    kinds = "a0 string, a1 string, r0 double, r1 string, r2 timestamp, r3 array<int>"
    rows = []
    for i in range(90):
        number = pick.choice([math.nan, None, 0.5, float(i), float(i // 2)])
        text = pick.choice([None, "", "x", f"t{i // 3}", f"ü{i}"])
        day = dt.datetime(2020, 1, 1 + i % 28, pick.choice([0, 1]), tzinfo=dt.UTC)
        rows.append((pick.choice(["x", "y"]), pick.choice(["1", "*"]), number, text, day, [i % 60] if i % 5 else None))
    kept = ["cost", "note", "when", "list"]
    wanted = {}
    for j, name in enumerate(kept):
        there = [str(row[2 + j]) for row in rows if str(row[2 + j]) not in ("nan", "None")]
        wanted[name] = sum(count == 1 for count in Counter(there).values())
    whole = sum(count == 1 for count in Counter(map(str, rows)).values())
    found = []
    for name, frame, least in (
        ("one", spark.createDataFrame(rows, kinds).coalesce(1), 4_000_000),
        ("many", spark.createDataFrame(shuffled(rows, 2), kinds).repartition(5), 4_000_000),
        ("tasks", spark.createDataFrame(rows, kinds).repartition(3), 20),
    ):
        monkeypatch.setattr(uniqueness, "VALUES_PER_TASK", least)
        (tmp_path / name).mkdir()
        found.append(measure_release(Scratch(spark, tmp_path / name), Batches.of_frame(frame), LABELS, kept))
    assert found[0] == found[1] == found[2]
    assert found[0].unique_by_kept == wanted
    assert min(wanted.values()) > 0
    assert found[0].unique_by_all == whole
    assert found[0].unique_by_cells == sum(count == 1 for count in Counter(row[:2] for row in rows).values())
    (tmp_path / "none").mkdir()
    empty = measure_release(Scratch(spark, tmp_path / "none"), Batches.of_frame(frame.limit(0)), LABELS, kept)
    assert (empty.unique_by_kept, empty.unique_by_all) == (dict.fromkeys(kept, 0), 0)
    assert empty.share(0) == 0


def test_node_labels_hold_every_node_once(spark):
    for hierarchy in HIERARCHIES.values():
        rows = node_labels(spark, hierarchy).toArrow().to_pylist()
        assert [(row["node"], row["label"]) for row in rows] == list(enumerate(hierarchy.labels))


def test_with_labels_of_attributes_named_as_other_columns_keeps_both(spark):
    frame = spark.createDataFrame([(0, 7, 2.5)], "n0 int, rows long, population double")
    named = with_labels(frame, {"rows": Hierarchy.from_paths("rows", [("a", "b")])})
    assert named.columns == ["rows", "rows_", "population"]
    assert named.toArrow().to_pylist() == [{"rows": "a", "rows_": 7, "population": 2.5}]
