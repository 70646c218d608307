from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from typing import Any

import pytest
from naive_records import ROOT, generalized, layouts, leaves_of, path, policy_of, quasi, shuffled
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark import schemas
from privrisk_spark.measure import DecisionFacts, level_names, measure_decisions, measure_input, measure_release
from privrisk_spark.release import node_labels
from privrisk_spark.table import collect_hierarchies, column

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
        rows.append((f"i{i}", *levels, *numbers, after, before, utility, i, pick.random() < 0.9, True))
    return rows


def naive_levels(rows: list[tuple[Any, ...]]) -> list[list[int]]:
    found = []
    for i, hierarchy in enumerate(HIERARCHIES.values()):
        tally = Counter(hierarchy.height if row[3 + i] == hierarchy.root else row[1 + i] for row in rows)
        found.append([tally[level] for level in range(hierarchy.height + 1)])
    return found


def same_summary(summary: Any, values: list[float]) -> None:
    assert (summary.min, summary.max) == (min(values), max(values))
    assert summary.mean == pytest.approx(math.fsum(values) / len(values), rel=1e-12)


def same_histogram(histogram: Any, values: list[float]) -> None:
    edges = histogram.edges
    assert edges[0] == 0
    assert math.isinf(edges[-1])
    wanted = Counter(min(bisect_right(edges, value), len(edges) - 1) - 1 for value in values)
    assert histogram.counts == tuple(wanted[i] for i in range(len(edges) - 1))


RISKS = [0.0, 1.0, 0.5, 1 / 3, 1 / 7, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9, 3e-10, 1e-300, 2.5, 10.0, 1000.0, 12345.678]


def test_decision_facts_are_those_of_a_loop(spark):
    rows = decided_rows(90, 1, RISKS)
    facts = [measure_decisions(frame, HIERARCHIES) for frame in layouts(spark, rows, DECIDED)]
    assert facts[0] == facts[1] == facts[2]
    one = facts[0]
    assert one.rows == 90
    assert one.infeasible == sum(not row[9] for row in rows)
    roots = [h.root for h in HIERARCHIES.values()]
    assert one.verbatim == sum(row[1] == row[2] == 0 and [row[3], row[4]] != roots for row in rows) > 0
    assert [list(levels.rows) for levels in one.levels] == naive_levels(rows)
    assert [(levels.attribute, levels.height) for levels in one.levels] == [("place", 3), ("sex", 1)]
    assert one.levels[0].level_names == ("as it is", "level 1", "level 2", "suppressed")
    same_summary(one.risk_after, [row[5] for row in rows])
    same_summary(one.risk_before, [row[6] for row in rows])
    same_summary(one.utility, [row[7] for row in rows])
    same_histogram(one.after, [row[5] for row in rows])
    same_histogram(one.before, [row[6] for row in rows])


def test_the_bins_hold_round_numbers(spark):
    """A risk of 1/10, 1/100, … stands on an edge, and an edge belongs to the bin above it."""
    values = (
        [10.0**e for e in range(-9, 4)] + [1 / 10**e for e in range(1, 10)] + [10.0 ** (e / 2) for e in range(-18, 7)]
    )
    values += [v * (1 - 1e-12) for v in values] + [1 / n for n in range(1, 400)]
    rows = [(f"i{i}", 0, 0, 0, 0, value, value, 1.0, 1, True, True) for i, value in enumerate(values)]
    facts = measure_decisions(spark.createDataFrame(rows, DECIDED), HIERARCHIES)
    same_histogram(facts.after, values)


def test_infinite_and_extreme_risks_have_a_mean_that_no_order_changes(spark):
    def facts_of(rows: list[tuple[Any, ...]]) -> DecisionFacts:
        facts = [measure_decisions(frame, HIERARCHIES) for frame in layouts(spark, rows, DECIDED)[1:]]
        assert facts[0] == facts[1]
        return facts[0]

    infinite = facts_of(decided_rows(30, 2, [math.inf, 1.0, 0.0]))
    assert infinite.risk_after.mean == infinite.risk_after.max == math.inf
    assert infinite.risk_after.min == 0
    assert infinite.after.counts[-1] > 0
    for values in ([3e-13, 1.7e-20, 5e-9], [1e14 / 3, 7e8, 1 / 3], [1e21 / 7, 3e17, 2.0]):
        rows = decided_rows(40, 3, values)
        facts = facts_of(rows)
        same_summary(facts.risk_after, [row[5] for row in rows])
        assert facts.risk_after.min <= facts.risk_after.mean <= facts.risk_after.max


def test_many_large_risks_do_not_overflow(spark):
    frame = spark.range(200_001).select(
        F.col("id").cast("string").alias("record_id"),
        *[F.lit(0).cast("tinyint").alias(name) for name in schemas.levels(2)],
        *[F.lit(0).alias(name) for name in schemas.nodes(2)],
        F.lit(9e14).alias("risk"),
        F.lit(1e15).alias("risk_before"),
        F.lit(1.0).alias("utility"),
        F.lit(1).cast("long").alias("consistent"),
        F.lit(True).alias("feasible"),
        F.lit(True).alias("kept"),
    )
    facts = measure_decisions(frame, HIERARCHIES)
    assert facts.risk_after.mean == pytest.approx(9e14, rel=1e-12)
    assert facts.risk_before.mean == pytest.approx(1e15, rel=1e-12)


def test_an_empty_frame_has_facts(spark):
    facts = measure_decisions(spark.createDataFrame([], DECIDED), HIERARCHIES)
    assert (facts.rows, facts.infeasible, facts.verbatim) == (0, 0, 0)
    assert [sum(levels.rows) for levels in facts.levels] == [0, 0]
    assert sum(facts.before.counts) == sum(facts.after.counts) == 0
    assert facts.risk_after.mean == facts.utility.max == 0
    encoded = spark.createDataFrame([], "record_id string, block binary, w0 double, q0 int")
    found = measure_input(encoded, ["x"], ["w"])
    assert (found.rows, found.null_ids, found.duplicate_ids) == (0, 0, 0)
    assert (found.nulls, found.unknown, found.bad_weights) == ({"x": 0}, {"x": 0}, {"w": 0})


def test_level_names():
    assert level_names(0) == ("suppressed",)
    assert level_names(1) == ("as it is", "suppressed")


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


def test_input_facts_are_those_of_a_loop(spark):
    facts = [measure_input(frame, ["p", "q"], ["u", "v"]) for frame in layouts(spark, INPUT, ENCODED)]
    assert facts[0] == facts[1] == facts[2]
    one = facts[0]
    assert (one.rows, one.null_ids, one.duplicate_ids) == (5, 0, 0)
    assert one.nulls == {"p": 2, "q": 1}
    assert one.unknown == {"p": 2, "q": 1}
    assert one.bad_weights == {"u": 3, "v": 2}, "an infinite weight is one"
    assert one.snapshot.startswith("5-")


@pytest.mark.parametrize(
    ("ids", "null_ids", "duplicates"),
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
def test_missing_and_repeated_ids_are_counted_apart(spark, ids, null_ids, duplicates):
    frame = spark.createDataFrame([(identity, 0) for identity in ids], "record_id string, q0 int")
    facts = measure_input(frame, ["x"], [])
    assert (facts.rows, facts.null_ids, facts.duplicate_ids) == (len(ids), null_ids, duplicates)


def test_the_snapshot_identifies_the_content(spark):
    def snapshot(rows: list[tuple[Any, ...]]) -> str:
        return measure_input(spark.createDataFrame(rows, ENCODED).repartition(2), ["p", "q"], ["u", "v"]).snapshot

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


def test_release_facts_are_those_of_a_loop(spark):
    pick = random.Random(8)
    labels = {"a.b": ["x", "y", "*", None, ""], "c": ["1", "*"]}
    rows = [(pick.choice(["x", "y", "*", None, "", "??"]), pick.choice(["1", "*", "1 ", None])) for _ in range(60)]
    wanted = Counter(rows)
    frames = layouts(spark, rows, T.StructType([T.StructField(name, T.StringType()) for name in labels]))
    known = {name: spark.createDataFrame([(label,) for label in of], "label string") for name, of in labels.items()}
    facts = [measure_release(frame, known, {name: column(name) for name in labels}) for frame in frames]
    assert facts[0] == facts[1] == facts[2]
    one = facts[0]
    assert (one.rows, one.classes, one.min_class_size) == (60, len(wanted), min(wanted.values()))
    assert one.off_hierarchy == {
        "a.b": sum(row[0] == "??" for row in rows),
        "c": sum(row[1] in ("1 ", None) for row in rows),
    }
    empty = measure_release(frames[0].limit(0), known, {name: column(name) for name in labels})
    assert (empty.rows, empty.classes, empty.min_class_size) == (0, 0, 0)
    assert empty.off_hierarchy == {"a.b": 0, "c": 0}


def test_node_labels_hold_every_node_once(spark):
    for hierarchy in HIERARCHIES.values():
        rows = node_labels(spark, hierarchy).toArrow().to_pylist()
        assert [(row["node"], row["label"]) for row in rows] == list(enumerate(hierarchy.labels))
