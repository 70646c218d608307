"""What holds of every algorithm of local recoding, as the reader counts classes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_local import ancestor
from recodings import (
    Held,
    Labels,
    Rows,
    conditions,
    published_rows,
    small_tables,
    small_tables_of_persons,
    table_of,
    table_with_values,
    tables_with_values,
    with_roots,
)

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.classes.criteria import DISTINCT_DIVERSITY, ENTROPY_DIVERSITY
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.recoding.full_domain import FullDomain, NodeClasses
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS, counting_persons
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition, held_to

every = pytest.mark.parametrize("name", PARTITIONS)
DIVIDING = {"mondrian_relaxed"}
"""Those that divide the rows of a record."""
holding = pytest.mark.parametrize("name", [name for name in PARTITIONS if name not in DIVIDING])

ODD = Condition("an odd number of rows", lambda classes: classes.rows % 2 == 1, False, False)
"""Closed under no union."""


def ordered_of(name: str, labels: Labels, data: st.DataObject) -> dict[str, list[bool]]:
    """Some ordered attributes, for the algorithm that reads which are."""
    return {"ordered": [data.draw(st.booleans()) for _ in labels]} if name == "mondrian" else {}


@every
@given(small_tables(), st.integers(1, 6), st.data())
def test_every_class_the_reader_counts_has_k_rows(
    name: str, given_table: tuple[Labels, Rows], k: int, data: st.DataObject
) -> None:
    labels, rows = given_table
    labels = with_roots(labels) if data.draw(st.booleans()) else labels
    table = table_of(labels, rows)
    found = PARTITIONS[name](Measured.of(table), k, **ordered_of(name, labels, data))
    seen = published_rows(table, labels, found)
    of_row: Counter = Counter()
    for (row, _), n in seen.items():
        of_row[row] += n
    assert of_row == Counter(rows), "every row is somewhere"
    sizes: Counter = Counter()
    for (_, nodes), n in seen.items():
        sizes[nodes] += n
    assert all(n >= k for nodes, n in sizes.items() if nodes is not None)
    assert sorted(n for nodes, n in sizes.items() if nodes is not None) == sorted(found.classes.rows.tolist())
    assert found.suppressed == sizes[None]
    if all(len({path[-1] for path in of}) == 1 for of in labels):
        assert found.suppressed == (len(rows) if len(rows) < k else 0), "nothing is suppressed without need"
    if name not in DIVIDING:
        assert (found.record == np.arange(len(table.vectors))).all()
        assert (found.rows == table.counts).all()


@every
@given(small_tables(), st.integers(1, 4))
def test_what_is_published_is_the_least_common_ancestor(name: str, given_table: tuple[Labels, Rows], k: int) -> None:
    """Of some group: groups that are published alike have it all."""
    labels, rows = given_table
    table = table_of(labels, rows)
    found = PARTITIONS[name](Measured.of(table), k)
    of_class: dict[tuple, list[tuple[int, ...]]] = {}
    for row, nodes in published_rows(table, labels, found):
        if nodes is not None:
            of_class.setdefault(nodes, []).append(row)
    for nodes, members in of_class.items():
        for i, of in enumerate(labels):
            assert ancestor(of, [row[i] for row in members]) == nodes[i]


@every
@given(small_tables(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing(
    name: str, given_table: tuple[Labels, Rows], k: int, random: object
) -> None:
    labels, rows = given_table
    table = table_of(labels, rows)
    order = list(range(len(table.vectors)))
    random.shuffle(order)
    other = FullDomain(table.ancestors, table.vectors[order], table.counts[order])
    found, again = (PARTITIONS[name](Measured.of(one), k) for one in (table, other))
    assert published_rows(table, labels, found) == published_rows(other, labels, again)
    assert (found.classes.rows == again.classes.rows).all(), "classes are in one order"
    assert (found.class_levels == again.class_levels).all()


@holding
@settings(max_examples=200)
@given(tables_with_values(most_rows=30), st.integers(0, 7), st.integers(1, 4), st.data())
def test_every_condition_is_met_by_every_class_the_reader_counts(
    name: str, given_table: tuple[Labels, Rows, Held], which: int, k: int, data: st.DataObject
) -> None:
    labels, rows, held = given_table
    labels = with_roots(labels) if data.draw(st.booleans()) else labels
    table = table_with_values(labels, rows, held)
    possible = [*conditions(held), ODD]
    condition = possible[which % len(possible)]
    found = PARTITIONS[name](Measured.of(table), k, (condition,), **ordered_of(name, labels, data))
    values: dict[tuple, Counter] = {}
    by_row = dict(published_rows(table, labels, found).keys())
    for row, value in zip(rows, held, strict=True):
        values.setdefault(by_row[row], Counter())[value] += 1
    released = sorted((nodes for nodes in values if nodes is not None), key=str)
    runs = SensitiveRuns(
        np.cumsum([0, *(len(values[nodes]) for nodes in released)]),
        np.array([value for nodes in released for value in sorted(values[nodes])], dtype=np.int32),
        np.array([values[nodes][value] for nodes in released for value in sorted(values[nodes])], dtype=np.int64),
    )
    seen = NodeClasses(np.zeros(len(released), dtype=np.int64), runs.rows, (runs,))
    assert condition.meets(seen).all()
    assert (runs.rows >= k).all()
    single = all(len({path[-1] for path in of}) == 1 for of in labels)
    roots = tuple((len(of[0]) - 1, of[0][-1]) for of in labels)
    if single and found.suppressed:
        assert roots not in released, "a suppressed row is published as roots"
    (kept,) = found.classes.held
    assert Counter(kept.rows.tolist()) == Counter(runs.rows.tolist())
    if single and condition is not ODD and rows:
        whole = table.classes([len(of[0]) - 1 for of in labels])
        assert bool(found.suppressed) == (len(rows) < k or not condition.meets(whole).all())


@holding
@given(small_tables_of_persons(most_rows=24), st.integers(1, 4), st.data())
def test_every_class_the_reader_counts_has_k_persons(
    name: str, given_table: tuple[Labels, Rows, list[int]], k: int, data: st.DataObject
) -> None:
    labels, rows, who = given_table
    labels = with_roots(labels)
    table = table_of(labels, rows, who)
    with pytest.raises(InputError, match="see counting_persons"):
        PARTITIONS[name](Measured.of(table), k)
    measured, also = counting_persons(Measured.of(table), k)
    found = PARTITIONS[name](measured, k, also, **ordered_of(name, labels, data))
    by_row = dict(published_rows(table, labels, found).keys())
    persons: dict[tuple, set[int]] = {}
    for row, person in zip(rows, who, strict=True):
        persons.setdefault(by_row[row], set()).add(person)
    assert all(len(those) >= k for nodes, those in persons.items() if nodes is not None)
    assert bool(found.suppressed) == (0 < len(set(who)) < k), "nothing is suppressed without need"


@every
def test_a_table_without_rows_or_attributes_has_no_classes(name: str) -> None:
    for attributes in (0, 2):
        table = FullDomain.of(
            [np.zeros((1, 1), dtype=np.int32)] * attributes,
            np.zeros((0, attributes), dtype=np.int32),
            np.zeros(0, dtype=np.int64),
        )
        found = PARTITIONS[name](Measured.of(table), 2)
        assert len(found.of) == len(found.classes.rows) == found.suppressed == 0
        assert found.levels.shape == (0, attributes)


@every
def test_values_without_a_common_ancestor_stay_apart(name: str) -> None:
    """An attribute of height 0 keeps its values; those of too few rows are suppressed."""
    tops = np.array([[0], [1]], dtype=np.int32)
    tree = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32)
    vectors = np.array([[0, 0], [0, 1], [1, 2]], dtype=np.int32)
    found = PARTITIONS[name](Measured.of(FullDomain.of([tops, tree], vectors, np.array([1, 1, 1]))), 2)
    assert found.levels.tolist() == [[0, 1], [0, 1], [0, 1]]
    assert found.of.tolist() == [0, 0, -1]


@every
def test_a_k_that_is_none_is_refused(name: str) -> None:
    table = FullDomain.of([np.zeros((1, 1), dtype=np.int32)], np.zeros((1, 1), dtype=np.int32), np.array([3]))
    with pytest.raises(InputError, match="k must be at least 1"):
        PARTITIONS[name](Measured.of(table), 0)
    with pytest.raises(InputError, match="one 'ordered' per attribute"):
        mondrian(Measured.of(table), 1, ordered=[True, False])


@holding
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_suppressed_where_the_whole_table_meets_what_is_asked(name: str, seed: int) -> None:
    """Most rows have one value, so that many groups of k rows are not diverse, and what is left of others is not."""
    rng = np.random.default_rng(seed)
    ages = with_roots([[[code, code // 3] for code in range(12)]])[0]
    places = with_roots([[[code, code // 2] for code in range(6)]])[0]
    rows = list(zip(rng.integers(0, 12, 60).tolist(), rng.integers(0, 6, 60).tolist(), strict=True))
    held = (rng.random(60) < 0.12).astype(int).tolist()
    table = table_with_values([ages, places], rows, held)
    for condition in (held_to(DISTINCT_DIVERSITY, 2), held_to(ENTROPY_DIVERSITY, 1.3)):
        assert condition.meets(table.classes([2, 2])).all()
        found = PARTITIONS[name](Measured.of(table), 2, (condition,))
        assert found.suppressed == 0
        assert condition.meets(found.classes).all()
        assert len(found.classes.rows) > 1 or condition.name == ENTROPY_DIVERSITY.name
