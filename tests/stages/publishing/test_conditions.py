"""Conditions besides k are held against the written rows, and classes that miss them are counted."""

from __future__ import annotations

import collections
import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.errors import CheckError, InputError, InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.anonymity import Besides, KAnonymityGuarantee
from privrisk_spark.stages.publishing.conditions import measure_conditions

Row = tuple[str | None, str, str | None, int | None]

ROWS: list[Row] = [
    *[("a", "x", sick, n) for sick, n in (("flu", 1), ("cold", 2), ("gout", 3), (None, 4))],
    *[("a", "y", "flu", 1)] * 3,
    *[(None, "x", sick, 9) for sick in ("flu", "cold")],
    # Of these nothing is promised.
    *[("*", "*", "flu", None)] * 2,
]
ROOTS = [Hierarchy.from_paths("a", [("a",), ("b",)], null_leaf=True), Hierarchy.from_paths("b", [("x",), ("y",)])]
SCHEMA = "a0 string, a1 string, r0 string, r1 int"


def asked(*also: dict[str, Any], **more: Any) -> KAnonymityGuarantee:
    return KAnonymityGuarantee(kind="k-anonymity", k=2, also=[Besides.model_validate(one) for one in also], **more)


def literal(rows: list[Row], column: int, fails: Any, *, apart: bool) -> int:
    """Classes whose values fail, one after the other."""
    held = collections.defaultdict(list)
    for row in rows:
        if not apart or row[:2] != ("*", "*"):
            held[row[:2]].append(row[column])
    return sum(bool(fails(values)) for values in held.values())


@pytest.mark.parametrize("apart", [True, False], ids=["keep", "drop"])
@pytest.mark.parametrize("parts", [1, 5])
def test_classes_that_miss_what_is_asked_are_counted(spark: SparkSession, parts: int, apart: bool) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA).repartition(parts)
    rows = Batches.of_frame(frame)
    everything = collections.Counter(row[3] for row in ROWS)

    def distance(values: list[Any]) -> float:
        own = collections.Counter(values)
        shares = {v: (own[v] / len(values), n / len(ROWS)) for v, n in everything.items()}
        return sum(max(q - p, 0) for q, p in shares.values())

    guarantee = asked(
        {"l_diversity": {"column": "sick", "l": 3}},
        {"t_closeness": {"column": "n", "t": 0.5}},
        {"alpha": {"column": "sick", "alpha": 0.4}},
        {"l_diversity": {"column": "sick", "l": 2.5, "kind": "entropy"}},
        suppressed="keep" if apart else "drop",
    )
    found = measure_conditions(guarantee, rows, rows, {"sick": "r0", "n": "r1"}, ROOTS, most=100)

    def entropy(values: list[Any]) -> float:
        return -sum(c / len(values) * math.log(c / len(values)) for c in collections.Counter(values).values())

    assert list(found.values()) == [
        literal(ROWS, 2, lambda values: len(set(values)) < 3, apart=apart),
        literal(ROWS, 3, lambda values: distance(values) > 0.5, apart=apart),
        literal(ROWS, 2, lambda values: max(collections.Counter(values).values()) / len(values) > 0.4, apart=apart),
        literal(ROWS, 2, lambda values: entropy(values) < math.log(2.5), apart=apart),
    ]
    assert 0 < min(found.values()) < 4, "some fail and some do not"


def test_values_that_the_table_does_not_have_are_not_published(spark: SparkSession) -> None:
    release = Batches.of_frame(
        spark.createDataFrame([("a", "x", "1.5"), ("a", "x", "2")], "a0 string, a1 string, r0 string")
    )
    table = Batches.of_frame(spark.createDataFrame([(1.5,), (2.25,)], "r0 double"))
    guarantee = asked({"p_sensitivity": {"column": "cost", "p": 2}})
    with pytest.raises(CheckError, match=r"columns\.cost: the files hold 1 values that the table has not"):
        measure_conditions(guarantee, release, table, {"cost": "r0"}, ROOTS, most=100)


def test_nothing_is_looked_at_where_nothing_is_asked(spark: SparkSession) -> None:
    rows = Batches.of_frame(spark.createDataFrame(ROWS, SCHEMA))
    assert measure_conditions(asked(), rows, rows, {}, ROOTS, most=100) == {}


def test_more_tuples_than_the_driver_may_hold_are_refused(spark: SparkSession) -> None:
    rows = Batches.of_frame(spark.createDataFrame(ROWS, SCHEMA))
    guarantee = asked({"p_sensitivity": {"column": "sick", "p": 2}})
    with pytest.raises(InputError, match=r"counting\.sorted_vectors: there are more than 7"):
        measure_conditions(guarantee, rows, rows, {"sick": "r0"}, ROOTS, most=7)


OWNED: list[tuple[str, str, float | None, str]] = [
    # One person has three of the four rows: by rows half of the class hold 1.0, by persons all do.
    *[("a", "x", 1.0, who) for who in ("ann", "bea")],
    *[("a", "x", value, "ann") for value in (2.0, -0.0)],
    # NaN and none are two values, as they are in the files; 0.0 and -0.0 are one.
    ("a", "y", math.nan, "cy"),
    # A person with a known value and a missing one counts among those with a known value.
    *[("a", "y", None, who) for who in ("cy", "dee")],
    ("a", "y", 0.0, "cy"),
    ("a", "y", 3.0, "gil"),
    *[("b", "y", value, who) for value, who in ((2.0, "hal"), (None, "ian"))],
    *[("b", "x", -0.0, who) for who in ("eve", "eve", "fay")],
    *[("*", "*", 2.0, "ann")] * 3,
]


def of_owned(
    spark: SparkSession, rows: list[tuple[str, str, float | None, str]], parts: int, kind: str = "double"
) -> dict[str, int]:
    """Failing classes of the files of all that is owned, where MEMBERS are of ``rows``."""
    held = [(*row[:2], row[2] if kind == "double" or row[2] is None else str(row[2])) for row in OWNED]
    files = spark.createDataFrame(held, f"a0 string, a1 string, r0 {kind}").repartition(parts)
    table = spark.createDataFrame([row[2:] for row in OWNED], f"r0 double, {schemas.ENTITY} string")
    nodes = [{label: node for node, label in enumerate(tree.labels)} for tree in ROOTS]
    numbers = [(nodes[0][a], nodes[1][b], who, value, 1) for a, b, value, who in rows]
    fields = f"n0 int, n1 int, {schemas.ENTITY} string, r0 double, {schemas.N_ROWS} long"
    members = spark.createDataFrame(numbers, fields).repartition(parts)
    guarantee = asked(
        {"alpha": {"column": "cost", "alpha": 0.9}},
        {"alpha": {"column": "cost", "alpha": 0.9, "count_missing": True}},
        {"l_diversity": {"column": "cost", "l": 2, "kind": "recursive", "c": 1.5}},
        {"l_diversity": {"column": "cost", "l": 2.9, "kind": "entropy"}},
        {"delta_disclosure": {"column": "cost", "delta": 50}},
    )
    batches = (Batches.of_frame(of) for of in (files, table))
    return measure_conditions(guarantee, *batches, {"cost": "r0"}, ROOTS, None, Batches.of_frame(members), most=100)


@pytest.mark.parametrize(("parts", "kind"), [(1, "double"), (4, "string")])
def test_shares_are_of_the_persons_whose_the_released_rows_are(spark: SparkSession, parts: int, kind: str) -> None:
    """Files of lines hold texts: NaN, -0.0 and 0.0 among them."""
    found = of_owned(spark, OWNED, parts, kind)
    assert list(found.values()) == [
        3,  # all persons of (a, x) hold 1.0, of (b, x) 0, and of (b, y) 2.0, where known; half of (a, y) hold 3.0
        2,  # half of the persons of (b, y) hold 2.0
        3,  # (a, x): two of two hold 1.0, so nobody certainly does not; (b, x), (b, y): one value
        3,  # of (a, x) the pairs are 2, 1 and 1, and exp(H) is 2.83; of (a, y) three of one each, and 3
        4,  # no class has all six values of the table
    ]
    assert "no value of 'cost' in more than a share of 0.9 of its persons (missing ones do not count)" in found


def test_persons_of_other_rows_than_those_of_the_files_are_an_error(spark: SparkSession) -> None:
    moved = [*OWNED[1:], ("a", "y", *OWNED[0][2:])]
    for rows in (moved, OWNED[1:], [*OWNED, OWNED[0]]):
        with pytest.raises(InternalError, match="not those of the files"):
            of_owned(spark, rows, 1)


def test_values_that_lines_round_to_others_of_the_table_are_not_published(spark: SparkSession) -> None:
    """No bug of the package, unlike where the files hold values as they are."""
    members = spark.createDataFrame(
        [(ROOTS[0].root, ROOTS[1].root, who, value, 1) for who, value in (("ann", 1.5), ("bea", 1.25))],
        f"n0 int, n1 int, {schemas.ENTITY} string, r0 double, {schemas.N_ROWS} long",
    )
    table = spark.createDataFrame([(1.5, "ann"), (1.25, "bea")], f"r0 double, {schemas.ENTITY} string")
    guarantee = asked({"alpha": {"column": "cost", "alpha": 1}})
    for kind, value, raised in (("string", "1.5", CheckError), ("double", 1.5, InternalError)):
        files = spark.createDataFrame([("*", "*", value)] * 2, f"a0 string, a1 string, r0 {kind}")
        release, whole, whose = (Batches.of_frame(one) for one in (files, table, members))
        with pytest.raises(raised, match=r"the files hold other values|not those of the files"):
            measure_conditions(guarantee, release, whole, {"cost": "r0"}, ROOTS, None, whose, most=100)
