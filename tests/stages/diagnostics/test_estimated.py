from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import (
    ROOT,
    best,
    count,
    generalized,
    layouts,
    leaves_of,
    levels_above,
    node_of,
    path,
    policy_of,
    quasi,
    together,
    under,
)
from parts import at
from pyspark.sql import functions as F

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.counts import SpreadVectors, StoredAttacker, StoredCounts, own_vectors
from privrisk_spark.engine.decided import WeightColumns
from privrisk_spark.engine.value_codes import resolve
from privrisk_spark.engine.vectors import vectors_of_table
from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import nested_counts
from privrisk_spark.pipelines.release.diagnosed import bound_facts
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import true_dictionary
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.policy.dictionaries import OneDictionary, TableDictionary, TrueDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import Guarantee, Report
from privrisk_spark.stages.counting.dense_sorted import collect_held, count_and_store
from privrisk_spark.stages.deciding.decide import decided, deciding
from privrisk_spark.stages.diagnostics.bound import BoundFacts, assumed_bound
from privrisk_spark.stages.diagnostics.estimated import (
    Containment,
    DictionaryOrder,
    collect_share_vectors,
    gaps,
    measure_containment,
    measure_dictionary_order,
    measure_tightness,
    share_vectors,
)
from privrisk_spark.tables.encode import dictionary_rows, encode, identities
from privrisk_spark.tables.opening import collect_hierarchies

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": [{"deep": ["d", "e"]}, "f"]}]}
SEX = {"*": ["u", "v"]}
POLICY = policy_of({"place": quasi({"tree": PLACE}), "sex": quasi({"tree": SEX})})
HIERARCHIES = collect_hierarchies(POLICY, None, None)  # type: ignore[arg-type] - every leaf is declared
AXES = tuple(Axis(h.at_depth, h.ancestor, "compatible") for h in HIERARCHIES.values())
TREES = list(HIERARCHIES.values())
LEAVES = [leaves_of(PLACE["*"]), leaves_of(SEX["*"])]


def ancestors(i: int, node: int) -> list[int]:
    """The node and those above it, by the literal reading of paths."""
    return [v for v in range(TREES[i].n_nodes) if under(path(TREES[i], node), path(TREES[i], v))]


# -------------------------------------------------------------------------------------------- the order


def two_dictionaries(n: int, seed: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """An estimate and a dictionary above it, with further rows, some of the same values and one without an id."""
    pick = random.Random(seed)
    estimate = [(f"i{i}", pick.randrange(TREES[0].n_nodes), pick.randrange(TREES[1].n_nodes + 1)) for i in range(n)]
    true: list[tuple[Any, ...]] = []
    for identity, place, sex in estimate:
        above = pick.choice(ancestors(1, sex)) if sex < TREES[1].n_nodes else TREES[1].root
        true.append((identity, pick.choice(ancestors(0, place)), above))
    true += [(f"j{i}", pick.randrange(TREES[0].n_nodes + 1), 0) for i in range(n)]
    return estimate, [*true, (None, 0, 0), ("j0", 1, 1)]


SCHEMA = "id string, t0 int, t1 int"


def test_the_order_of_two_dictionaries_does_not_depend_on_the_layout(spark):
    estimate, true = two_dictionaries(25, 3)
    coarser = sum(e[1:] != t[1:] for e, t in zip(estimate, true, strict=False))
    wanted = DictionaryOrder(25, 52, 0, 1, 0, 1, 0, 0, 0, coarser, {"place": 0, "sex": 0})
    assert wanted.holds, "a repeated id that no row of the estimate has does no harm"
    assert 0 < coarser < 25
    low, high = layouts(spark, estimate, SCHEMA), layouts(spark, true, SCHEMA)
    for e, t in ((low[1], high[2]), (low[0].withColumn("other", F.lit("x")), high[1])):
        assert measure_dictionary_order(e, t, HIERARCHIES) == wanted


def test_everything_against_the_order_is_counted(spark):
    a, far_c, north, outside = 1, 3, TREES[0].find("north"), TREES[0].n_nodes
    root, sex = TREES[0].root, TREES[1].root
    estimate = [("1", a, 0), ("2", north, 0), ("3", outside, 0), ("4", a, 0), ("5", a, 0), ("5", a, 0), (None, a, 0),
                ("6", a, 0), ("7", a, None), ("8", far_c, 1), (None, a, 0)]  # fmt: skip
    true = [("1", north, 1), ("2", a, sex), ("3", outside, sex), ("5", root, sex), ("6", root, sex), ("6", root, sex),
            ("7", a, None), ("8", north, 1), (None, root, sex), ("9", None, None)]  # fmt: skip
    found = measure_dictionary_order(
        spark.createDataFrame(estimate, SCHEMA), spark.createDataFrame(true, SCHEMA), HIERARCHIES
    )
    # 1 errs on sex, 2 on place, 3 on place, 7 on sex (values nobody resolved); 4 is unmatched; 5 and 6 are repeated.
    assert found == DictionaryOrder(11, 10, 2, 1, 1, 1, 1, 3, 4, 4, {"place": 2, "sex": 2})
    assert not found.holds
    for field in ("estimate_null_ids", "estimate_duplicate_ids", "unmatched", "ambiguous", "not_more_general"):
        one = replace(DictionaryOrder(5, 5, 0, 2, 0, 2, 0, 0, 0, 3, {}), **{field: 1})
        assert not one.holds
        assert replace(one, **{field: 0}).holds
    nothing = spark.createDataFrame([], SCHEMA)
    assert measure_dictionary_order(nothing, nothing, HIERARCHIES) == DictionaryOrder(*[0] * 10, {"place": 0, "sex": 0})


def test_an_attribute_a_dictionary_lacks_is_suppressed(spark):
    full = spark.createDataFrame([("1", 0, 0), ("2", 1, TREES[1].root)], SCHEMA)
    only_place = full.drop("t1")
    assert measure_dictionary_order(full, only_place, HIERARCHIES).holds
    found = measure_dictionary_order(only_place, full, HIERARCHIES)
    assert (found.not_more_general, found.of_attribute) == (1, {"place": 0, "sex": 1})


def test_what_keeps_the_bound_from_being_proved():
    holds = DictionaryOrder(3, 4, 0, 0, 0, 0, 0, 0, 0, 1, {})
    inside = Containment(5, 0)
    loose = [replace(axis, consistency="subsumes") for axis in AXES]

    def found(order=holds, containment=inside, model="I", low=AXES, high=AXES) -> str:
        return " | ".join(gaps(order, containment, model=model, estimate_axes=low, true_axes=high))

    assert found() == found(model="II") == found(low=loose) == ""
    assert "model III" in found(model="III")
    assert "row of its own" in found(order=replace(holds, unmatched=1))
    assert "lacks 2 of 5 records" in found(containment=Containment(5, 2))
    assert "takes the consistency 'compatible'" in found(low=loose, high=loose)
    assert found(order=replace(holds, coarser=0), low=loose, high=loose) == "", "equal rows are consistent alike"
    assert "different meanings" in found(high=loose)
    lacking = [replace(loose[0], known=False), loose[1]]
    assert found(order=replace(holds, coarser=0), low=lacking, high=loose) != ""


# -------------------------------------------------------------------------------------------- tightness

DECIDED = "q0 int, q1 int, l0 tinyint, l1 tinyint, w0 double, risk double"


def test_tightness_is_that_of_a_loop(spark, tmp_path):
    """Two dictionaries by node paths; weights of place are personal; an infinite risk is one record's."""
    pick = random.Random(7)
    policy = policy_of(
        {
            "place": quasi({"tree": PLACE}),
            "sex": quasi({"tree": SEX}),
            "w": {"role": "weight"},
        },
        risk={"model": "I", "sensitivity": {"form": "linear", "personal": {"columns": {"place": "w"}}}},
    )
    disclosure = disclosure_of(policy, HIERARCHIES, AXES)
    weights = WeightColumns.of_policy(policy, list(HIERARCHIES))
    theta = np.array([[pick.randrange(TREES[0].n_nodes), pick.randrange(TREES[1].n_nodes)] for _ in range(12)])
    vectors, n = np.unique(theta, axis=0, return_counts=True)
    counts = count_and_store("sorted", AXES, vectors.astype(np.int32), n, at(tmp_path / "true"))
    known = [tuple(path(h, int(v)) for h, v in zip(TREES, row, strict=True)) for row in theta]
    rows, true_risks, absent = [], [], 0
    for _ in range(40):
        codes = [pick.randrange(h.n_leaves + 1) for h in TREES]
        nodes = [ROOT if c == h.n_leaves else path(h, c) for h, c in zip(TREES, codes, strict=True)]
        levels = [pick.randrange(h.height + 1) for h in TREES]
        weight, estimated = pick.choice([0.0, 0.5, 8.0]), pick.choice([0.0, 0.01, 0.5, math.inf, 1 / 3])
        shown = [generalized(node, level) for node, level in zip(nodes, levels, strict=True)]
        alone = count(nodes, known, "compatible", ["suppress"] * 2) == 0
        rho = count(shown, known, "compatible", ["suppress"] * 2) + alone
        # Leaves weigh 1, an inner node 1 over the leaves under it; weight w scales place.
        phi = 0.0
        for i, node in enumerate(shown):
            if node != ROOT:
                phi += (weight if i == 0 else 1.0) / sum(under(leaf, node) for leaf in LEAVES[i].values())
        absent += alone
        true_risks.append(phi / rho)
        rows.append((*codes, *levels, weight, estimated))
    ratios = [
        1.0 if e == t else math.inf if t == 0 else e / t for e, t in zip([r[-1] for r in rows], true_risks, strict=True)
    ]
    found = [
        measure_tightness(Batches.of_frame(frame), disclosure, counts, k=2, weights=weights)
        for frame in layouts(spark, rows, DECIDED)[1:]
    ]
    assert found[0] == found[1]
    one = found[0]
    assert (one.rows, one.absent, one.broken) == (40, absent, sum(r < 1 - 1e-12 for r in ratios))
    assert absent > 0
    assert one.broken > 0
    assert one.true.mean == pytest.approx(math.fsum(true_risks) / 40, rel=1e-12)
    assert (one.true.max, one.true.min) == pytest.approx((max(true_risks), min(true_risks)), rel=1e-12)
    assert one.estimated.mean == one.ratio == one.greatest_ratio == math.inf
    finite = [r for r in rows if math.isfinite(r[-1])]
    tight = measure_tightness(
        Batches.of_frame(spark.createDataFrame(finite, DECIDED)), disclosure, counts, k=2, weights=weights
    )
    mean = math.fsum(t for r, t in zip(rows, true_risks, strict=True) if math.isfinite(r[-1])) / len(finite)
    assert tight.estimated.mean == pytest.approx(math.fsum(r[-1] for r in finite) / len(finite))
    assert tight.ratio == pytest.approx(tight.estimated.mean / mean)
    records = spark.createDataFrame(rows, DECIDED)
    assert measure_containment(Batches.of_frame(records), counts, k=2) == Containment(40, absent)
    nothing = Batches.of_frame(records.limit(0))
    assert measure_tightness(nothing, disclosure, counts, k=2, weights=weights).ratio == 1.0
    assert measure_containment(nothing, counts, k=2) == Containment(0, 0)


# -------------------------------------------------------------------------------------------- nested samples


def test_nested_samples_are_the_same_in_any_layout(spark):
    pick = random.Random(2)
    rows = [(pick.choice([f"i{i}", None]), pick.choice([0, 4]), pick.randrange(2)) for i in range(400)]
    own = [(f"i{i}",) for i in range(0, 400, 4)] * 2 + [(None,)]
    frames = layouts(spark, rows, SCHEMA)
    ids = spark.createDataFrame(own, "id string")
    drawn = [frames[1], frames[2], frames[0].drop("id"), frames[2].drop("id")]
    split = [share_vectors(frame, own=ids if i < 2 else None) for i, frame in enumerate(drawn)]
    by_id, again, by_content, once_more = together(split)

    def table(found: list[dict[str, Any]]) -> dict[tuple[int, int], list[int]]:
        return {(row["t0"], row["t1"]): [row[f"b{s}"] for s in range(1, 11)] for row in found}

    assert table(by_id) == table(again)
    assert table(by_content) == table(once_more)
    wanted = Counter((t0, t1) for _, t0, t1 in rows)
    for found in (by_id, by_content):
        assert {vector: sum(buckets) for vector, buckets in table(found).items()} == wanted
    sizes = np.sum(list(table(by_content).values()), axis=0)
    assert all(20 <= size <= 65 for size in sizes), "400 rows in 10 buckets; standard deviation 6"
    forced = Counter((t0, t1) for i, t0, t1 in rows if (i,) in own and i is not None)
    for vector, buckets in table(by_id).items():
        assert buckets[0] >= forced[vector] > 0
    assert max(np.sum(list(table(by_id).values()), axis=0)[1:]) < 60
    # An identity keeps its bucket whatever its values become.
    moved = share_vectors(frames[1].where("id is not null").withColumn("t0", F.lit(1)).withColumn("t1", F.lit(0)))
    stayed = share_vectors(frames[1].where("id is not null"))
    one, several = together([moved, stayed])
    assert next(iter(table(one).values())) == np.sum(list(table(several).values()), axis=0).tolist()

    vectors, of_bucket = collect_share_vectors(split[0].drop("t1"), ["t0", "t1"], most=4)
    assert vectors.tolist() == [[0, 0], [0, 0], [4, 0], [4, 0]]
    vectors, of_bucket = collect_share_vectors(split[0], ["t0", "t1"], most=4)
    assert {tuple(v): b for v, b in zip(vectors.tolist(), of_bucket.tolist(), strict=True)} == table(by_id)
    assert vectors.tolist() == sorted(vectors.tolist())
    grown = [counts.dictionary_rows for counts in nested_counts(AXES, vectors, of_bucket, plan="dense")]
    assert grown == np.cumsum(of_bucket.sum(axis=0)).tolist()
    assert grown[-1] == 400
    with pytest.raises(InputError, match="more than 3 distinct"):
        collect_share_vectors(split[0], ["t0", "t1"], most=3)


def test_any_number_of_samples_and_rows_for_several_people(spark):
    pick = random.Random(5)
    rows = [(pick.randrange(3), pick.randrange(2), float(pick.choice([0, 1, 5]))) for _ in range(90)]
    frames = layouts(spark, rows, "t0 int, t1 int, people double")
    found, again = together([share_vectors(frame, shares=3) for frame in frames[1:]])
    assert sorted(map(str, found)) == sorted(map(str, again))
    people = Counter()
    for t0, t1, n in rows:
        people[t0, t1] += int(n)
    assert {(row["t0"], row["t1"]): row["b1"] + row["b2"] + row["b3"] for row in found} == people
    assert min(sum(row[f"b{s}"] for row in found) for s in (1, 2, 3)) > 0
    split = share_vectors(frames[1], shares=12)
    vectors, of_bucket = collect_share_vectors(split, ["t0", "t1"], most=10)
    assert of_bucket.shape == (len(people), 12)
    by_vector = {(row["t0"], row["t1"]): [row[f"b{s}"] for s in range(1, 13)] for row in split.toArrow().to_pylist()}
    assert {tuple(v): b for v, b in zip(vectors.tolist(), of_bucket.tolist(), strict=True)} == by_vector, (
        "buckets in their order, not in that of their names"
    )


# -------------------------------------------------------------------------------------------- the bound


def test_ids_are_texts_and_missing_ones_match_nothing(spark):
    """Ids of two dictionaries may have different types; an empty text is an id, NULL and NaN are none."""
    columns = {"place": "where", "sex": "gender"}
    given = TrueDictionary(path="x", columns=columns, id="who", weight="n")
    one = OneDictionary("true", given, "dictionary.against")
    by_number = spark.createDataFrame(
        [(7, "a", None, 2), (8, "nowhere", "u", 1), (None, None, "v", 1)], "who int, where string, gender string, n int"
    )
    root, outside = TREES[0].root, TREES[0].n_nodes
    a, u, v = TREES[0].code_of["a"], TREES[1].code_of["u"], TREES[1].code_of["v"]
    found = {row["id"]: row for row in identities(by_number, one, POLICY, HIERARCHIES).toArrow().to_pylist()}
    assert found == {
        "7": {"id": "7", "t0": a, "t1": TREES[1].root, "people": 2.0},
        "8": {"id": "8", "t0": outside, "t1": u, "people": 1.0},
        None: {"id": None, "t0": root, "t1": v, "people": 1.0},
    }
    doubles = by_number.selectExpr("double('NaN') AS who", "where", "gender", "n").limit(1)
    assert [row["id"] for row in identities(doubles, one, POLICY, HIERARCHIES).toArrow().to_pylist()] == [None]
    by_text = by_number.selectExpr("CASE WHEN who = 8 THEN '' ELSE string(who) END AS who", "where", "gender", "n")
    ids = [row["id"] for row in identities(by_text, one, POLICY, HIERARCHIES).toArrow().to_pylist()]
    assert sorted(ids, key=str) == ["", "7", None]
    decimals = by_number.selectExpr("string(double(who)) AS who", "where", "gender", "n")
    ids = [row["id"] for row in identities(decimals, one, POLICY, HIERARCHIES, numbers=True).toArrow().to_pylist()]
    assert sorted(ids, key=str) == ["7", "8", None]
    plain = OneDictionary("dictionary", TableDictionary(kind="table", path="x", columns=columns), "dictionary")
    assert identities(by_number, plain, POLICY, HIERARCHIES).columns == ["t0", "t1"]
    with pytest.raises(
        SchemaError, match=r"dictionary.against.id: the dictionary has no column 'who' \(did you mean 'whom"
    ):
        identities(by_number.withColumnRenamed("who", "whom"), one, POLICY, HIERARCHIES)


def test_rows_that_stand_for_fewer_people_break_the_order(spark):
    weighted = "id string, t0 int, t1 int, people double"
    low = spark.createDataFrame([("1", 0, 0, 2.0), ("2", 0, 0, 3.0), ("3", 0, 0, 0.0)], weighted)
    high = spark.createDataFrame([("1", 0, 0, 2.0), ("2", 0, 0, 2.0), ("3", 0, 0, 0.0), ("4", 0, 0, 0.0)], weighted)
    assert measure_dictionary_order(low, high, HIERARCHIES).fewer_people == 1
    assert not measure_dictionary_order(low, high, HIERARCHIES).holds
    assert measure_dictionary_order(high.where("id <> 4"), low, HIERARCHIES).holds
    found = measure_dictionary_order(low, high.drop("people"), HIERARCHIES)
    assert found.fewer_people == 2, "a row without people stands for one"


PEOPLE = [("a", "u"), ("b", "u"), ("b", "v"), ("c", "u"), ("d", "v"), ("e", None), ("f", "v"), (None, "u"), ("b", "u")]
"""The table, whose ids are the positions."""


def bound_policy(estimate: dict[str, Any], model: str) -> Any:
    true = {"path": "in/true", "columns": {"place": {"column": "place", "level": 1}, "sex": "sex"}, "id": "who"}
    return policy_of(
        {"place": quasi({"tree": PLACE}), "sex": quasi({"tree": SEX}), "id": {"role": "identifier"}},
        table={"path": "in/table", "record_id": "id"},
        dictionary={"kind": "estimated", "estimate": estimate, "against": true},
        risk={"model": model},
        decision={"utility_at_least": 2},
    )


@dataclass(frozen=True)
class Stage:
    """What :func:`bound_facts` takes, for the table above."""

    policy: Policy
    disclosure: Disclosure
    scratch: Scratch
    table: Any
    encoded: Batches
    counts: StoredCounts
    decided: Batches

    @classmethod
    def of(cls, spark: Any, directory: Path, *, model: str = "I", estimate: Any = None) -> Stage:
        policy = bound_policy({"kind": "self"} if estimate is None else ESTIMATE, model)
        table = spark.createDataFrame(
            [(str(i), *row) for i, row in enumerate(PEOPLE)], "id string, place string, sex string"
        )
        directory.mkdir()
        scratch = Scratch(spark, directory)
        coded = encode(table, policy, HIERARCHIES, blocks=False)
        encoded = resolve(coded, HIERARCHIES, policy.quasi_identifiers, dictionary=False)
        disclosure = disclosure_of(policy, HIERARCHIES, AXES)
        (one,) = policy.dictionaries
        counts = collect_held(scratch, dictionary_rows(encoded, estimate, one, HIERARCHIES), policy, HIERARCHIES, one)
        weights = WeightColumns.of_policy(policy, list(HIERARCHIES))
        records = Batches.of_frame(vectors_of_table(encoded, 2, 0))
        found = decided(
            records,
            deciding(
                disclosure,
                decision_of(policy).procedure(HIERARCHIES),
                StoredAttacker.of(policy, [counts]),
                k=2,
                weights=weights,
            ),
            k=2,
        )
        return cls(policy, disclosure, scratch, table, encoded, counts, found)

    def bound(self, true: Any, *, estimate: Any = None) -> BoundFacts:
        return bound_facts(
            self.scratch, self.decided, self.encoded, self.disclosure, self.counts, self.policy, HIERARCHIES,
            table=self.table, estimate=estimate, true=true,
        )  # fmt: skip


ESTIMATE = {"kind": "table", "path": "in/estimate", "columns": {"place": "place", "sex": "sex"}, "id": "who"}
TRUE = "who string, place string, sex string"


def literal_risks(theta: list[tuple[Any, ...]], against: list[tuple[Any, ...]]) -> tuple[list[float], list[float]]:
    """Risks of the best decisions against ``theta``: there, and against another dictionary."""
    here, there = [], []
    for place, sex in PEOPLE:
        record = (node_of(place, LEAVES[0], "suppress"), node_of(sex, LEAVES[1], "suppress"))
        absent = [count(record, known, "compatible", ["suppress"] * 2) == 0 for known in (theta, against)]
        options, other = [], {}
        for levels in levels_above(record):
            shown = [generalized(node, level) for node, level in zip(record, levels, strict=True)]
            if sum(map(len, shown)) < 2:
                continue
            # Leaves weigh 1, an inner node 1 over the leaves under it.
            phi = sum(1 / sum(under(x, n) for x in LEAVES[i].values()) for i, n in enumerate(shown) if n != ROOT)
            rho = [count(shown, known, "compatible", ["suppress"] * 2) for known in (theta, against)]
            options.append((levels, phi / (rho[0] + absent[0]), float(sum(map(len, shown)))))
            other[levels] = phi / (rho[1] + absent[1])
        if not options:
            here.append(0.0)  # suppressed
            there.append(0.0)
            continue
        chosen = best(options)
        here.append(next(risk for levels, risk, _ in options if levels == chosen))
        there.append(other[chosen])
    return here, there


def nodes(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows ``(who, place, sex)`` of the true dictionary as paths; its places are labels of level 1."""
    named = {path(TREES[0], v)[-1]: path(TREES[0], v) for v in range(TREES[0].n_nodes) if v != TREES[0].root}
    return [(ROOT if place is None else named[place], node_of(sex, LEAVES[1], "suppress")) for _, place, sex in rows]


def above(place: str | None) -> str | None:
    if place is None:
        return None
    node = path(TREES[0], TREES[0].code_of[place])[:-1]
    return node[-1] if node else None


def test_the_bound_of_a_table_by_a_coarser_dictionary(spark, tmp_path):
    """θ̂ is the table; θ has each of its people one level higher and without sex, and others."""
    true = [(str(i), above(place), None) for i, (place, _) in enumerate(PEOPLE)]
    true += [(f"x{i}", "north", "u") for i in range(3)] + [(None, "deep", None)]
    stage = Stage.of(spark, tmp_path / "one")
    found = stage.bound(spark.createDataFrame(true, TRUE))
    table = [(node_of(place, LEAVES[0], "suppress"), node_of(sex, LEAVES[1], "suppress")) for place, sex in PEOPLE]
    estimated, against = literal_risks(table, nodes(true))
    assert found.order.holds
    assert (found.order.estimate_rows, found.order.true_rows, found.order.true_null_ids) == (9, 13, 1)
    assert found.order.coarser > 0
    assert (found.containment.rows, found.containment.missing) == (9, 0)
    assert (found.gaps, found.status, found.holds) == ((), "proved", True)
    assert found.tightness.estimated.mean == pytest.approx(math.fsum(estimated) / 9, rel=1e-12)
    assert found.tightness.true.mean == pytest.approx(math.fsum(against) / 9, rel=1e-12)
    assert found.tightness.ratio == pytest.approx(math.fsum(estimated) / math.fsum(against), rel=1e-12)
    assert found.tightness.ratio > 1.5
    assert (found.tightness.rows, found.tightness.broken, found.tightness.absent) == (9, 0, 0)
    document = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert document["risk_against_true"]["mean"] == found.tightness.true.mean
    assert document["order"]["of_attribute"] == {"place": 0, "sex": 0}
    section = found.section()
    assert section.status == "proved"
    assert section.figures == as_json(found)
    assert "no disclosure rule has a higher risk" in section.paragraph
    assert "the bound holds." in section.paragraph
    assert section.remarks == ()
    low = own_vectors(stage.encoded.frame(), AXES, F.col("record_id").alias("id"))
    own = {row["id"]: [row["t0"], row["t1"]] for row in low.toArrow().to_pylist()}
    assert own == {
        str(i): [tree.root if x is None else tree.code_of[x] for tree, x in zip(TREES, row, strict=True)]
        for i, row in enumerate(PEOPLE)
    }
    # Model III has no bound, whatever the dictionaries.
    third = Stage.of(spark, tmp_path / "three", model="III").bound(spark.createDataFrame(true, TRUE))
    assert third.status == "heuristic"
    assert "risk model III" in " ".join(third.gaps)


def test_a_bound_that_does_not_hold(spark, tmp_path):
    """θ̂ has far more people than θ, which lacks some, repeats one and knows another more exactly."""
    low = [(f"e{i}", place, sex) for i, (place, sex) in enumerate(PEOPLE[:4] * 3)] + [("e12", None, None)]
    true = [("e0", above("a"), "u"), ("e1", above("b"), "u"), ("e1", above("b"), "u"), ("e2", "deep", "v"),
            ("e3", above("c"), "v")]  # fmt: skip
    stage = Stage.of(spark, tmp_path / "one", estimate=spark.createDataFrame(low, TRUE))
    found = stage.bound(spark.createDataFrame(true, TRUE), estimate=spark.createDataFrame(low, TRUE))
    theta = [(node_of(place, LEAVES[0], "suppress"), node_of(sex, LEAVES[1], "suppress")) for _, place, sex in low]
    estimated, against = literal_risks(theta, nodes(true))
    order = found.order
    assert not order.holds
    assert (order.estimate_rows, order.unmatched, order.ambiguous, order.not_more_general) == (13, 9, 1, 2)
    assert order.of_attribute == {"place": 1, "sex": 1}
    missing = sum(
        count(
            [node_of(p, LEAVES[0], "suppress"), node_of(s, LEAVES[1], "suppress")],
            theta,
            "compatible",
            ["suppress"] * 2,
        )
        == 0
        for p, s in PEOPLE
    )
    assert found.containment.missing == missing
    assert found.tightness.estimated.mean == pytest.approx(math.fsum(estimated) / 9, rel=1e-12)
    assert found.tightness.true.mean == pytest.approx(math.fsum(against) / 9, rel=1e-12)
    assert found.tightness.broken == sum(t > e * (1 + 1e-12) for e, t in zip(estimated, against, strict=True)) > 0
    assert (found.status, found.holds) == ("heuristic", False)
    assert "row of its own" in found.gaps[0]
    section = found.section()
    assert "not proved" in section.paragraph
    assert "does not hold, and " in section.paragraph
    assert section.remarks == found.gaps


def test_the_bound_takes_counts_the_driver_holds(spark, tmp_path):
    stage = Stage.of(spark, tmp_path / "one")
    true = spark.createDataFrame([("1", "north", "u")], TRUE)
    forced = stage.policy.model_copy(update={"counting": stage.policy.counting.model_copy(update={"plan": "shuffle"})})
    with pytest.raises(InputError, match=r"counting\.plan: 'shuffle' takes one dictionary"):
        replace(stage, policy=forced).bound(true)
    spread = SpreadVectors("shuffle", AXES, true, 1)
    with pytest.raises(InputError, match=r"counting\.plan: dictionary\.estimate takes 'shuffle'"):
        replace(stage, counts=spread).bound(true)  # type: ignore[arg-type]
    assert assumed_bound().status == "heuristic"
    assert "assumption" in assumed_bound().paragraph
    assert true_dictionary(POLICY) is None
    with pytest.raises(ValueError, match="public edition cannot hold sections"):
        Report("public", "t", "r", "d", "v", Guarantee("risk", "s", "proved", {}), (), (), {}, None, None, None, None,
               None, None, (), sections=(assumed_bound(),))  # fmt: skip
