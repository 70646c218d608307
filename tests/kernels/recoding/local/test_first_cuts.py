"""Cuts by passes over a table in parts are those of the table in one place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recodings import Labels, Rows, small_tables, table_of, with_roots

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.first_cuts import FirstCuts
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.metrics import Measured


@settings(max_examples=300)
@given(small_tables(most_rows=30), st.integers(1, 4), st.integers(0, 12), st.integers(1, 3), st.data())
def test_wherever_its_rows_are_a_table_is_cut_the_same(
    given_table: tuple[Labels, Rows], k: int, most: int, n_parts: int, data: st.DataObject
) -> None:
    labels, rows = given_table
    labels = with_roots(labels)
    table = table_of(labels, rows)
    measured, ordered = Measured.of(table), [data.draw(st.booleans()) for _ in labels]
    none = FullDomain(table.ancestors, table.vectors[:0], table.counts[:0])
    cuts = FirstCuts.wanted(Measured.of(none), k, ordered, most)
    part = np.arange(len(table.vectors)) % n_parts
    while not cuts.done:
        tallies = [cuts.tally(table.vectors[part == one], table.counts[part == one]) for one in range(n_parts)]
        cuts = cuts.next(*(np.concatenate(columns) for columns in zip(*tallies, strict=True)))
    region, _ = cuts.regions(cuts.places(table.vectors), len(table.vectors))
    levels = np.zeros(table.vectors.shape, dtype=np.int8)
    for one in set((region % 2).tolist()):  # what is of one region is in one place, with others
        here = region % 2 == one
        levels[here] = cuts.levels(table.vectors[here], table.counts[here])
    assert (levels == mondrian(measured, k, ordered=ordered).levels).all()


def test_regions_of_few_rows_are_not_tallied() -> None:
    """Halves of six and of two rows: the second pass looks at the greater alone. Planted: every region is tallied."""
    tree = np.array([[code, code // 4, 0] for code in range(8)], dtype=np.int32)
    vectors, counts = np.array([[0], [1], [5]], dtype=np.int32), np.array([3, 3, 2])
    none = FullDomain.of([tree], vectors[:0], counts[:0])
    first = FirstCuts.wanted(Measured.of(none), 2, None, 5)
    assert [column.tolist() for column in first.tally(vectors, counts)] == [[0] * 3, [0] * 3, [0, 1, 5], [3, 3, 2]]
    second = first.next(*first.tally(vectors, counts))
    assert [column.tolist() for column in second.tally(vectors, counts)] == [[0] * 2, [0] * 2, [0, 1], [3, 3]]
    third = second.next(*second.tally(vectors, counts))
    assert third.done
    assert third.levels(vectors, counts).tolist() == [[0], [0], [0]]
    assert third.regions(third.places(vectors), 3)[0].tolist() == [3, 4, 2]


def test_a_table_without_roots_is_no_region() -> None:
    tops = np.array([[0], [1]], dtype=np.int32)
    none = FullDomain.of([tops], np.zeros((0, 1), dtype=np.int32), np.zeros(0, dtype=np.int64))
    with pytest.raises(InputError, match="Attribute 0 must have a root"):
        FirstCuts.wanted(Measured.of(none), 2, None, 10)
