from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.stages.distance import (
    OUTCOMES,
    Comparison,
    collect_links,
    collect_outcomes,
    drawn,
    linked,
    store_file,
)
from privrisk_spark.extensions.attack.stages.number_ends import (
    ends_by_each_file,
    number_ends,
    numbers_of,
    rows_of_nodes,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples, collect_tuples, forms, named_forms
from privrisk_spark.hierarchies.hierarchy import Hierarchy

TREE = Hierarchy.from_paths("age", [("1", "low"), ("2", "low"), ("8", "high"), ("9", "high")], null_leaf=True)
ONE, TWO, EIGHT, NINE = range(4)
LOW, HIGH, ROOT = (TREE.labels.index(label) for label in ("low", "high", "*"))


def people_of(spark: Any, rows: list[tuple[str | None, int, int, int | None]], parts: int) -> Batches:
    """Id, what is known, what is shown, consistent rows."""
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    kinds = (pa.string(), pa.int32(), pa.int32(), pa.int64())
    table = pa.table(
        [pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], ["record_id", "q0", "n0", "consistent"]
    )
    return Batches.of_frame(spark.createDataFrame(table, forms(1)).repartition(parts))


ROWS = [("a", ONE, LOW, 2), ("b", TWO, LOW, 2), ("c", EIGHT, EIGHT, 1), ("d", ROOT, ROOT, 4), (None, NINE, -1, None)]


@pytest.mark.parametrize("parts", [1, 4, 11])
def test_links_do_not_depend_on_partitions(spark: Any, tmp_path: Any, parts: int) -> None:
    scratch = Scratch(spark, tmp_path)
    tuples = Tuples(np.array([[EIGHT], [LOW], [ROOT]], dtype=np.int32), np.array([1, 2, 1]))
    compared = Comparison((TREE,), (1.0,), (None,))
    stored = store_file(scratch.directory("rows"), tuples, compared, np.array([1.0, 0.5, 1.0]), reading="nearest")
    everybody = Tuples(np.array([[ONE], [TWO], [EIGHT], [NINE], [ROOT]], dtype=np.int32), np.ones(5, dtype=np.int64))
    links = collect_links(scratch, stored, everybody, "person")
    found = linked(people_of(spark, ROWS, parts), links, known=["q0"], own=["n0"]).frame()
    assert found.schema == OUTCOMES
    told = sorted((tuple(row) for row in found.collect()), key=lambda row: row[0] or "")
    assert told == [
        (None, 0.0, 1, False, 0, 0.0, 1.0, None),  # 9: the suppressed row covers it; its own is not there
        ("a", 0.0, 3, True, 2, 0.5, 1.0, 2),
        ("b", 0.0, 3, True, 2, 0.5, 1.0, 2),
        ("c", 0.0, 2, True, 1, 1.0, 1.0, 1),
        ("d", 0.0, 4, True, 1, 1.0, 1.0, 4),  # nothing is known
    ]
    outcomes = collect_outcomes(linked(people_of(spark, ROWS, parts), links, known=["q0"], own=["n0"]))
    assert outcomes.people.tolist() == [1, 1, 2, 1]
    assert outcomes.probability.tolist() == [0.0, 1 / 2, 0.5 / 3, 1 / 4]
    assert outcomes.consistent.tolist() == [-1, 1, 2, 4]


def test_what_is_not_released_is_not_begun_with(spark: Any, tmp_path: Any) -> None:
    scratch = Scratch(spark, tmp_path)
    compared = Comparison((TREE,), (1.0,), (None,))
    shown = Tuples(np.array([[LOW]], dtype=np.int32), np.array([2]))
    everybody = Tuples(np.array([[ONE], [TWO], [EIGHT], [NINE], [ROOT]], dtype=np.int32), np.ones(5, dtype=np.int64))
    file = store_file(scratch.directory("people"), everybody, compared, np.ones(5), reading="nearest")
    links = collect_links(scratch, file, shown, "row")
    found = linked(people_of(spark, ROWS, 2), links, known=["n0"], own=["q0"]).frame().collect()
    assert sorted((row["record_id"], row["tied_rows"], row["own_row_is_nearest"]) for row in found) == [
        ("a", 3, True), ("b", 3, True)
    ]  # fmt: skip
    some = linked(people_of(spark, ROWS, 2), links, known=["n0"], own=["q0"], begun=np.array([0.75]))
    assert collect_outcomes(some).people.tolist() == [1.5], "of a and b one and a half row"
    none = linked(people_of(spark, [], 1), links, known=["n0"], own=["q0"]).frame()
    assert none.schema == OUTCOMES
    assert none.count() == 0


def test_draws_do_not_depend_on_partitions_and_grow(spark: Any) -> None:
    rows = [(f"p{i}", ONE, ONE, 1) for i in range(500)]
    some = [
        {row["record_id"] for row in drawn(people_of(spark, rows, parts), share=0.2, seed=1).frame().collect()}
        for parts in (1, 11)
    ]
    assert some[0] == some[1]
    assert 60 < len(some[0]) < 140
    more = {row["record_id"] for row in drawn(people_of(spark, rows, 2), share=0.5, seed=1).frame().collect()}
    assert some[0] < more
    other = {row["record_id"] for row in drawn(people_of(spark, rows, 2), share=0.2, seed=2).frame().collect()}
    assert other != some[0]
    assert drawn(people_of(spark, rows, 2), share=1.0, seed=1).frame().count() == 500


@pytest.mark.parametrize("parts", [1, 4])
def test_tuples_are_collected_in_one_order(spark: Any, parts: int) -> None:
    rows = [("a", NINE, NINE, 1), ("b", ONE, ONE, 1), ("c", NINE, ONE, 1)]
    found = collect_tuples(people_of(spark, rows, parts), ["q0"], most=2, key="table")
    assert found.nodes.tolist() == [[ONE], [NINE]]
    assert found.rows.tolist() == [1, 2]
    assert rows_of_nodes(found, 0, TREE).tolist() == [1, 0, 0, 2, 0, 0, 0, 0]
    with pytest.raises(InputError, match="more than 1 distinct rows"):
        collect_tuples(people_of(spark, rows, parts), ["q0"], most=1, key="table")
    with pytest.raises(InputError, match="table: there are no rows"):
        collect_tuples(people_of(spark, [], parts), ["q0"], most=1, key="table")


def test_who_is_not_there_has_no_form(spark: Any) -> None:
    those = people_of(spark, [("a", ONE, ONE, 1), ("b", TWO, ONE, 1)], 2)
    released = people_of(spark, [("b", ONE, LOW, 1), ("z", ONE, LOW, 1)], 2)
    found = named_forms(Batches.of_frame(those.frame().select("record_id", "q0")), released, 1).frame()
    assert sorted(tuple(row) for row in found.collect()) == [("a", ONE, -1, None), ("b", TWO, LOW, None)]


def test_numbers_and_days_of_nodes() -> None:
    """1 twice and 9 twice deviate by 4 from their mean; the missing value and the root stand for any number."""
    rows = np.zeros(TREE.n_nodes, dtype=np.int64)
    rows[[ONE, NINE, ROOT]] = 2
    found = number_ends("age", TREE, rows)
    assert found.mean == 5 / 4
    ends = dict(zip(TREE.labels, zip(found.low.tolist(), found.high.tolist(), strict=True), strict=True))
    assert (ends["1"], ends["8"], ends["low"], ends["high"]) == ((0.25, 0.25), (2, 2), (0.25, 0.5), (2, 2.25))
    assert ends["*"] == (-np.inf, np.inf)
    assert np.isnan(ends[None]).all()
    # By each file's own, unless the table generalizes the column: then a cell stays at nothing from what it covers.
    shown = np.zeros(TREE.n_nodes, dtype=np.int64)
    shown[[EIGHT, NINE, ROOT]] = 1, 3, 5
    people, own = ends_by_each_file("age", TREE, rows, shown)
    assert people.low[[ONE, NINE]].tolist() == [-1, 1]
    mean, deviation = 8.75, np.sqrt((0.75**2 + 3 * 0.25**2) / 4)
    np.testing.assert_allclose(own.low[[EIGHT, NINE]], [(8 - mean) / deviation, (9 - mean) / deviation])
    assert (people.mean, own.mean, own.low[ROOT], np.isnan(own.low[TREE.labels.index(None)])) == (0, 0, -np.inf, True)
    shown[HIGH] = 1
    people, own = ends_by_each_file("age", TREE, rows, shown)
    assert own is people
    assert people.equals(found.centred)
    assert not people.equals(found)
    days = Hierarchy.from_paths("born", [("2006-03-01", "06"), ("2006-03-04", "06")])
    assert np.diff(numbers_of("born", days)).tolist() == [3.0]
    with pytest.raises(InputError, match="every value of the hierarchy of 'city'"):
        numbers_of("city", Hierarchy.from_paths("city", [("Ulm",), ("3",)]))
