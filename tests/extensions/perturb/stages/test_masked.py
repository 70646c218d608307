"""A table masked in tasks, against the same masks on arrays in one place, whatever the partitions."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import SchemaError
from privrisk_spark.extensions.perturb import planning as masking
from privrisk_spark.extensions.perturb.kernels.microaggregation import centroids, mdav, univariate_optimal
from privrisk_spark.extensions.perturb.kernels.noise import correlated
from privrisk_spark.extensions.perturb.kernels.rank_swapping import swapped
from privrisk_spark.extensions.perturb.kernels.shuffling import shuffled
from privrisk_spark.extensions.perturb.planning import mask_plan
from privrisk_spark.extensions.perturb.results import MaskingFacts
from privrisk_spark.extensions.perturb.stages import arranging
from privrisk_spark.extensions.perturb.stages.arranging import collect_arrangement
from privrisk_spark.extensions.perturb.stages.held import Held, _counts, collect_held
from privrisk_spark.extensions.perturb.stages.keys import MaskKeys
from privrisk_spark.extensions.perturb.stages.masked import MaskedRows, bounds_of, collect_masked, masking_facts
from privrisk_spark.extensions.perturb.stages.solving import collect_solved, measure_block_loss
from privrisk_spark.kernels.numeric.covariance import CrossMoments
from privrisk_spark.kernels.random import keyed
from privrisk_spark.kernels.random.normals import normals
from privrisk_spark.policy.masking import Pram, TopBottom
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = MaskKeys(bytes(range(32)), ("r1", "snapshot"))
N = 240
COLUMNS = ("age", "income", "born", "sex", "pay", "stay", "cost", "days")
AGGREGATED = {"method": "microaggregation", "k": 3}
POLICY = parse(
    {
        "version": 1,
        "run": {"name": "t"},
        "table": {"path": "in/t"},
        "columns": {
            "age": {"role": "quasi-identifier", "mask": AGGREGATED},
            "income": {"role": "quasi-identifier", "mask": AGGREGATED},
            "born": {"role": "quasi-identifier", "mask": {"method": "rank-swapping", "percent": 10}},
            "sex": {"role": "quasi-identifier", "mask": {"method": "pram", "invariant": {"keep": 0.5}}},
            "pay": {"role": "sensitive", "mask": {"method": "noise", "share": 0.1}},
            "stay": {"role": "sensitive", "mask": {"method": "shuffle", "known": ["age", "income"]}},
            "cost": {"role": "sensitive", "mask": {"method": "top-bottom", "low": 10, "high": 90}},
            "days": {"role": "sensitive", "mask": {"method": "rounding", "base": 7}},
        },
        "guarantee": {"kind": "masked"},
        "output": {"path": "out", "vault": "vault"},
    }
)
TOGETHER = POLICY.model_copy(
    update={
        "columns": {
            name: column if i < 2 else column.model_copy(update={"mask": None})
            for i, (name, column) in enumerate(POLICY.columns.items())
        }
    }
)
"""The columns that are aggregated alone."""

TYPES = [T.DoubleType(), T.DoubleType(), T.LongType(), T.StringType(), *[T.DoubleType()] * 3, T.IntegerType()]
SCHEMA = T.StructType(
    [
        T.StructField("record_id", T.StringType()),
        T.StructField("block", T.BinaryType()),
        *(T.StructField(f"r{i}", kind) for i, kind in enumerate(TYPES)),
    ]
)


def records() -> list[tuple[Any, ...]]:
    """Correlated numbers with ties and missing values; ids that are in no order."""
    pick = random.Random(3)
    rows: list[tuple[Any, ...]] = []
    for i in range(N):
        age = float(pick.randint(18, 60))
        values: list[Any] = [
            None if i % 40 == 7 else age,
            None if i % 40 in (7, 9) or i in (1, 2) else 100 * age + pick.randint(0, 500),
            pick.randint(0, 30),
            pick.choices(["f", "m", "d", None], [10, 9, 2, 1])[0],
            math.nan if i == 5 else pick.gauss(1000, 50),
            None if i == 11 else float(pick.randint(0, 9)),
            pick.uniform(0, 100),
            pick.randint(0, 99),
        ]
        name = f"p{(i * 77) % N}"
        rows.append((name, hashlib.sha256(name.encode()).digest()[:16], *values))
    return rows


ROWS = records()


def encoded(spark: SparkSession, rows: list[tuple[Any, ...]], partitions: int) -> Batches:
    return Batches.of_frame(spark.createDataFrame(rows, SCHEMA).repartition(partitions))


def masked(
    spark: SparkSession, place: Path, rows: list[tuple[Any, ...]], partitions: int, policy: Policy = POLICY
) -> tuple[dict[str, dict[str, Any]], MaskingFacts, Held, MaskedRows]:
    """Everything that is written of each record, by id, and what is told of it."""
    place.mkdir()
    scratch, plan = Scratch(spark, place), mask_plan(policy)
    held = collect_held(scratch, encoded(spark, rows, partitions), COLUMNS, plan)
    solved = []
    for i, one in enumerate(plan.arranged):
        order = collect_arrangement(scratch, held, one, KEYS.of(one.label), store=f"order{i}")
        solved.append(collect_solved(scratch, held, order, store=f"solved{i}"))
    bounds = {name: bounds_of(mask) for name, mask in plan.masks.items() if isinstance(mask, TopBottom)}
    done = collect_masked(scratch, held, solved, KEYS, bounds, record_id="who", files=1)
    done.decisions.take(done.decision_names, place / "vault")
    found = pq.read_table(place / "vault").to_pylist()
    return {row.pop("who"): row for row in found}, masking_facts(held, done, solved, [], {}), held, done


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return masked(spark, tmp_path_factory.mktemp("whole") / "scratch", ROWS, 1)


def words(label: str) -> np.ndarray:
    blocks = np.frombuffer(b"".join(row[1] for row in ROWS), dtype=np.uint8).reshape(-1, 16)
    return keyed.prf(KEYS.of(label), keyed.record_messages(blocks))


def column(name: str) -> np.ndarray:
    values = [row[2 + COLUMNS.index(name)] for row in ROWS]
    return np.array([math.nan if value is None else value for value in values])


def of(found: dict[str, dict[str, Any]], name: str) -> np.ndarray:
    return np.array([math.nan if found[row[0]][name] is None else found[row[0]][name] for row in ROWS])


@pytest.mark.parametrize("partitions", [4, 11])
def test_partitions_order_and_ranges_change_nothing(
    spark: SparkSession, tmp_path: Path, whole: Any, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranging, "ROWS_PER_RANGE", 50)
    monkeypatch.setattr(batches, "CHUNK_ROWS", 30)
    another = random.Random(partitions).sample(ROWS, N)
    found, facts, _, done = masked(spark, tmp_path / "scratch", another, partitions)
    assert found == whole[0]
    assert facts == whole[1]
    tuples = Counter(tuple(row) for row in done.tuples.frame(spark).collect())
    assert tuples == Counter(tuple(row) for row in whole[3].tuples.frame(spark).collect())
    assert done.tuples.schema == T.StructType([*SCHEMA.fields[2:], T.StructField("n_rows", T.LongType(), False)])


def test_records_are_aggregated_by_what_they_have(whole: Any) -> None:
    found, facts, _, _ = whole
    age, income = column("age"), column("income")
    both, age_only = ~np.isnan(age) & ~np.isnan(income), ~np.isnan(age) & np.isnan(income)
    assert [int(np.count_nonzero(some)) for some in (both, age_only)] == [226, 8]
    points = np.column_stack([(x - np.nanmean(x)) / np.nanstd(x) for x in (age, income)])[both]
    values = np.column_stack([age, income])[both]
    # In another order the groups may differ by ties, their loss hardly.
    groups = mdav(points, 3)
    lost = ((centroids(values, groups)[groups] - values) ** 2 / np.nanvar(np.column_stack([age, income]), axis=0)).sum()
    after = np.column_stack([of(found, "age"), of(found, "income")])
    mine = ((after[both] - values) ** 2 / np.nanvar(np.column_stack([age, income]), axis=0)).sum()
    assert mine == pytest.approx(lost, rel=0.1)
    np.testing.assert_allclose(after[both].mean(axis=0), values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(after[age_only, 0].mean(), age[age_only].mean(), rtol=1e-12)
    sizes = Counter((row["age"], row["income"]) for row in found.values())
    sizes.pop((None, None))
    assert min(sizes.values()) >= 3
    assert facts.suppressed == 0
    assert [one.missing_after for one in facts.columns[:2]] == [6, 14]


def test_a_pattern_of_too_few_records_is_suppressed(spark: SparkSession, tmp_path: Path) -> None:
    alone = [row for row in ROWS if row[2] is not None and row[3] is None]
    few, kept = alone[:2], [row for row in ROWS if row not in alone[2:]]
    found, facts, _, _ = masked(spark, tmp_path / "scratch", kept, 2, TOGETHER)
    assert all(found[row[0]]["age"] is None and found[row[0]]["income"] is None for row in few)
    assert facts.suppressed == 2
    sizes = Counter((row["age"], row["income"]) for row in found.values())
    sizes.pop((None, None))
    assert min(sizes.values()) >= 3


def test_ranks_are_swapped_as_on_arrays(whole: Any) -> None:
    found = whole[0]
    drawn, values = words("rank swapping born"), column("born")
    order = np.lexsort((drawn[:, 1], drawn[:, 0], values))
    wanted = np.empty(N)
    wanted[order] = swapped(values[order], 10, drawn[order, 1])
    assert of(found, "born").tolist() == wanted.tolist()
    assert sorted(of(found, "born")) == sorted(values)
    assert not np.array_equal(wanted, values)


def test_noise_is_drawn_for_each_record(whole: Any) -> None:
    found, facts, _, _ = whole
    values = column("pay")
    deviation = math.sqrt(0.1) * np.nanstd(values)
    wanted = values + deviation * normals(words("noise pay")[:, 0])
    np.testing.assert_allclose(of(found, "pay"), wanted, rtol=1e-12)
    pay = facts.columns[4]
    assert (pay.missing_before, pay.missing_after, pay.changed) == (1, 1, N - 1)
    assert pay.before is not None
    assert pay.after is not None
    assert pay.before.mean == pytest.approx(np.nanmean(values), rel=1e-14)
    assert pay.after.deviation == pytest.approx(np.nanstd(wanted), rel=1e-12)
    apart = np.nanmean(np.abs(wanted - values))
    assert pay.il1s == pytest.approx(apart / (math.sqrt(2) * np.nanstd(values)), rel=1e-12)
    near = np.abs(wanted - values) <= 0.1 * np.nanstd(values)
    assert pay.disclosed_by_deviation == pytest.approx(np.count_nonzero(near) / (N - 1))


def test_values_are_shuffled_as_on_arrays(whole: Any) -> None:
    drawn, stay = words("shuffle stay"), column("stay")
    known = np.column_stack([column("age"), column("income")])
    known = np.where(np.isnan(known), np.nanmean(known, axis=0), known)
    order = np.lexsort((drawn[:, 1], drawn[:, 0]))
    order = order[~np.isnan(stay[order])]
    wanted = np.full(N, math.nan)
    wanted[order] = shuffled(stay[order, None], known[order], normals(drawn[order, 1])[:, None])[:, 0]
    np.testing.assert_array_equal(of(whole[0], "stay"), wanted)


def test_groups_of_noise_and_other_groups_are_those_on_arrays(spark: SparkSession, tmp_path: Path) -> None:
    noise = {"method": "noise", "share": 0.2, "group": "together"}
    variable = {"method": "microaggregation", "k": 4, "algorithm": "v-mdav"}
    masks = {
        "age": noise,
        "income": noise,
        "pay": variable,
        "cost": variable,
        "born": {"method": "microaggregation", "k": 5, "algorithm": "univariate"},
    }
    columns = {
        name: {"role": "quasi-identifier" if name in ("pay", "cost") else "sensitive", "mask": masks.get(name)}
        for name in COLUMNS
        if name in masks
    }
    columns |= {name: {"role": "sensitive"} for name in COLUMNS if name not in masks}
    document = {
        "version": 1,
        "run": {"name": "t"},
        "table": {"path": "in/t"},
        "columns": {name: columns[name] for name in COLUMNS},
        "guarantee": {"kind": "masked"},
        "output": {"path": "out", "vault": "vault"},
    }
    found, facts, _, _ = masked(spark, tmp_path / "scratch", ROWS, 3, parse(document))
    values = np.column_stack([column("age"), column("income")])
    normal = np.column_stack([normals(words(f"noise {name}")[:, 0]) for name in ("age", "income")])
    wanted = correlated(values, normal, CrossMoments.of(values).covariance, 0.2)
    np.testing.assert_array_equal(np.column_stack([of(found, "age"), of(found, "income")]), wanted)
    drawn, born = words("microaggregation of born"), column("born")
    order = np.lexsort((drawn[:, 1], drawn[:, 0], born))
    groups = univariate_optimal(born[order], 5)
    np.testing.assert_array_equal(of(found, "born")[order], np.rint(centroids(born[order], groups)[groups]))
    sizes = Counter((row["pay"], row["cost"]) for row in found.values())
    assert all(size >= 4 or pay is None for (pay, _), size in sizes.items())
    assert facts.suppressed == 1, "the one without pay has a cost that is its own"


def test_other_methods_do_what_they_say(whole: Any) -> None:
    found, facts, held, _ = whole
    np.testing.assert_array_equal(of(found, "cost"), np.clip(column("cost"), 10, 90))
    np.testing.assert_array_equal(of(found, "days"), np.rint(column("days") / 7) * 7)
    stay = of(found, "stay")
    assert sorted(stay[~np.isnan(stay)]) == sorted(column("stay")[~np.isnan(column("stay"))])
    assert np.flatnonzero(np.isnan(stay)).tolist() == [11]
    before, after = ([row[5] for row in ROWS], [found[row[0]]["sex"] for row in ROWS])
    assert [one is None for one in before] == [one is None for one in after]
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert facts.columns[3].changed == changed
    assert 0.15 * N < changed < 0.4 * N
    assert held.categories["sex"] == Counter(one for one in before if one is not None)
    numbers = np.array([column(name) for name in facts.numbers])
    complete = numbers[:, ~np.isnan(numbers).any(axis=0)]
    np.testing.assert_allclose(facts.correlations_before, np.corrcoef(complete), rtol=1e-9, atol=1e-12)


def test_another_key_draws_otherwise_and_another_table_too() -> None:
    other = MaskKeys(bytes(32), KEYS.bound)
    assert len({KEYS.of("a"), KEYS.of("b"), other.of("a"), MaskKeys(KEYS.release_key, ("r1", "x")).of("a")}) == 4
    assert "release_key" not in repr(KEYS)


def test_blocks_are_compared_with_all_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "EXACT_ROWS", 100)
    monkeypatch.setattr(masking, "BLOCK_ROWS", 40)
    losses = []
    for partitions in (1, 4):
        place = tmp_path / str(partitions)
        found, _, held, _ = masked(spark, place, ROWS, partitions, TOGETHER)
        sizes = Counter((row["age"], row["income"]) for row in found.values())
        sizes.pop((None, None))
        assert min(sizes.values()) >= 3
        one = mask_plan(POLICY).arranged[0]
        of_ids = {name: (row["age"], row["income"]) for name, row in found.items()}
        losses.append((of_ids, measure_block_loss(Scratch(spark, place), held, one, KEYS.of("sample"))))
    assert losses[0] == losses[1]
    loss = losses[0][1]
    assert loss.sampled == 226
    assert 0 < loss.exact < 1.1 * loss.blocks
    assert loss.blocks < 0.2


def test_blocks_of_records_that_lack_a_column_are_compared_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has an income: there is no record with all columns, and the loss is that of ages."""
    monkeypatch.setattr(masking, "EXACT_ROWS", 100)
    monkeypatch.setattr(masking, "BLOCK_ROWS", 40)
    _, _, held, _ = masked(spark, tmp_path / "s", [(*row[:3], None, *row[4:]) for row in ROWS], 2, TOGETHER)
    one = mask_plan(POLICY).arranged[0]
    assert masking.in_blocks(one, held.patterns[one.label])
    loss = measure_block_loss(Scratch(spark, tmp_path / "s"), held, one, KEYS.of("sample"))
    assert loss.sampled == sum(row[2] is not None for row in ROWS)
    assert 0 <= loss.exact < 0.1
    assert 0 <= loss.blocks < 0.1


def test_what_cannot_be_masked_is_refused_by_name_and_number(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    rows = [(*row[:6], math.inf if i < 3 else row[6], *row[7:]) for i, row in enumerate(ROWS)]
    with pytest.raises(SchemaError, match=r"columns\.pay\.mask: 3 values are infinite or beyond 2\^53"):
        collect_held(Scratch(spark, tmp_path / "a"), encoded(spark, rows, 2), COLUMNS, mask_plan(POLICY))
    (tmp_path / "b").mkdir()
    rows = [(*row[:5], f"category {i}", *row[6:]) for i, row in enumerate(ROWS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privrisk_spark.extensions.perturb.stages.held.MOST_CATEGORIES", 100)
        with pytest.raises(SchemaError, match=r"columns\.sex\.mask: 'pram' takes a column of at most 100 categories"):
            collect_held(Scratch(spark, tmp_path / "b"), encoded(spark, rows, 2), COLUMNS, mask_plan(POLICY))


SWAPPED: list[tuple[T.DataType, list[Any], list[str]]] = [
    (T.LongType(), [34, 7], ["34.0", "7e0"]),
    (T.DoubleType(), [34.0, -math.inf], ["34", "-inf"]),
    (T.FloatType(), [34.0, 0.5], ["34", ".50"]),
    (T.DecimalType(6, 2), [Decimal("34.00"), Decimal("0.50")], ["34", "5e-1"]),
    (T.BooleanType(), [True, False], ["True", "FALSE"]),
    (T.StringType(), ["34.0", "True"], ["34.0", "True"]),
    (T.DateType(), [dt.date(2020, 1, 2), dt.date(1999, 1, 2)], ["2020-01-02", "1999-01-02"]),
]


def with_matrix(matrix: dict[str, dict[str, float]], **more: Any) -> Policy:
    mask = {"method": "pram", "matrix": matrix, **more}
    return POLICY.model_copy(
        update={"columns": {"x": POLICY.columns["sex"].model_copy(update={"mask": Pram.model_validate(mask)})}}
    )


def by_chance(spark: SparkSession, place: Path, kind: T.DataType, values: list[Any], policy: Policy) -> list[Any]:
    """The values with which records are written whose values are given."""
    fields = [*SCHEMA.fields[:2], T.StructField("r0", kind)]
    rows = [(f"p{i}", bytes([i]) * 16, value) for i, value in enumerate(values)]
    scratch = Scratch(spark, place)
    batches = Batches.of_frame(spark.createDataFrame(rows, T.StructType(fields)).coalesce(1))
    held = collect_held(scratch, batches, ("x",), mask_plan(policy))
    done = collect_masked(scratch, held, [], KEYS, {}, record_id="who", files=1)
    done.decisions.take(done.decision_names, place / "vault")
    return pq.read_table(place / "vault").sort_by("who").column("x").to_pylist()


@pytest.mark.parametrize(("kind", "values", "names"), SWAPPED, ids=lambda of: str(of)[:12])
@pytest.mark.parametrize("two_stage", [False, True])
def test_pram_matrix_keys_of_equal_values_match_columns_of_any_type(
    spark: SparkSession, tmp_path: Path, kind: T.DataType, values: list[Any], names: list[str], two_stage: bool
) -> None:
    one, other = names
    policy = with_matrix({one: {other: 1.0}, other: {one: 1.0}}, **({"two_stage": True} if two_stage else {}))
    found = by_chance(spark, tmp_path, kind, [*values, None], policy)
    assert found == [*(values if two_stage else values[::-1]), None]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["34", "34.0", "7"], r"columns\.x\.mask\.matrix: two rows are of one value, such as 1 and 1\.0"),
        (["34", "7", "7.5"], r"columns\.x\.mask\.matrix: a row is of a value that a column of int cannot hold"),
        (["34", "7", "many"], r"columns\.x\.mask\.matrix: a row is of a value that a column of int cannot hold"),
    ],
)
def test_pram_matrix_keys_that_are_no_values_of_the_column_are_refused(
    spark: SparkSession, tmp_path: Path, names: list[str], said: str
) -> None:
    policy = with_matrix({name: {name: 1.0} for name in names})
    with pytest.raises(SchemaError, match=said):
        by_chance(spark, tmp_path, T.IntegerType(), [34, 7], policy)


def test_columns_without_any_value_stay_so(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(*row[:2], *[None] * len(COLUMNS)) for row in ROWS[:5]]
    found, facts, _, _ = masked(spark, tmp_path / "scratch", rows, 2)
    assert all(value is None for row in found.values() for value in row.values())
    assert [one.missing_after for one in facts.columns] == [5] * len(COLUMNS)


def test_counts_of_zeros_of_both_signs_are_added() -> None:
    assert _counts(pa.chunked_array([[0.0] * 5 + [-0.0] * 2 + [1.0]])) == {"0": 7, "1": 1}
