from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_recoding import nodes_of, recoded
from recodings import Labels, Rows, small_tables, table_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding import full_domain
from privrisk_spark.kernels.recoding.full_domain import FullDomain


def sizes(table: FullDomain, labels: Labels, levels: tuple[int, ...], classes: full_domain.NodeClasses) -> Counter:
    members = [tuple(int(code) for code in row) for row in table.vectors[classes.member]]
    found = Counter()
    for row, rows in zip(recoded(labels, members, levels), classes.rows.tolist(), strict=True):
        assert row not in found, "each class once"
        found[row] = rows
    return found


@given(small_tables())
def test_classes_of_every_node_are_those_of_the_recoded_rows(given_table: tuple[Labels, Rows]) -> None:
    labels, rows = given_table
    table = table_of(labels, rows)
    seen = []
    for levels, classes in table.every_node():
        seen.append(levels)
        assert sizes(table, labels, levels, classes) == Counter(recoded(labels, rows, levels))
        alone = table.classes(levels)
        assert (alone.rows == classes.rows).all(), "in one order, however it was reached"
    assert seen == list(nodes_of(labels))
    assert table.rows == len(rows)


@given(small_tables(), st.integers(2, 40))
def test_keys_that_do_not_fit_a_word_make_no_other_classes(given_table: tuple[Labels, Rows], word: int) -> None:
    """As with fourteen attributes of thousands of codes."""
    labels, rows = given_table
    table = table_of(labels, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_domain, "_WORD", word)
        found = [(levels, sizes(table, labels, levels, classes)) for levels, classes in table.every_node()]
    assert found == [(levels, sizes(table, labels, levels, classes)) for levels, classes in table.every_node()]


def test_what_is_no_table_is_refused() -> None:
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    vectors, counts = np.array([[0], [1]], dtype=np.int32), np.array([1, 2])
    assert FullDomain.of([ancestor], vectors, counts).rows == 3
    for ancestors, records, numbers, what in (
        ([ancestor, ancestor], vectors, counts, "one column of codes per hierarchy"),
        ([ancestor], vectors, np.array([1]), "one count per record"),
        ([ancestor], vectors, np.array([1, -2]), "at least 0"),
        ([ancestor], vectors, np.array([2**53, 1]), "fewer than 2"),
        ([ancestor], vectors + 1, counts, "between 0 and 1"),
        ([ancestor[:, ::-1]], vectors, counts, "must share one at the next level"),
    ):
        with pytest.raises(InputError, match=what):
            FullDomain.of(ancestors, records, numbers)
    assert len(FullDomain.of([ancestor], vectors, np.array([0, 2])).vectors) == 1
