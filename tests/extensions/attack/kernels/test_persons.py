from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels import persons
from privrisk_spark.extensions.attack.kernels.persons import found_by_classes, found_persons, pairs_of_persons


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8), st.integers(1, 9))
def test_every_record_is_put_beside_every_other_of_the_person(sizes: list[tuple[int, int]], at_once: int) -> None:
    expected, mine, theirs = [], 0, 0
    for begun, searched in sizes:
        expected += [(mine + i, theirs + j) for i in range(begun) for j in range(searched)]
        mine, theirs = mine + begun, theirs + searched
    of = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    before, persons._PAIRS = persons._PAIRS, at_once
    try:
        blocks = list(pairs_of_persons(of[:, 0], of[:, 1]))
    finally:
        persons._PAIRS = before
    assert [pair for b, s in blocks for pair in zip(b.tolist(), s.tolist(), strict=True)] == expected
    assert all(len(b) <= max(at_once, 4) for b, _ in blocks)


@given(st.lists(st.lists(st.tuples(st.integers(1, 3), st.floats(0, 1)), min_size=1, max_size=4), max_size=6))
def test_a_person_is_missed_if_all_records_are(drawn: list[list[tuple[int, float]]]) -> None:
    found = found_persons(
        np.array([len(one) for one in drawn], dtype=np.int64),
        np.array([n for one in drawn for n, _ in one], dtype=np.int64),
        np.array([p for one in drawn for _, p in one]),
    )
    assert found == pytest.approx([1 - prod((1 - p) ** n for n, p in one) for one in drawn], abs=1e-12)


def test_persons_without_records_are_refused() -> None:
    for begun, records in (([0, 1], [1]), ([1], [0]), ([2], [1])):
        with pytest.raises(InputError, match="every person must have a record"):
            found_persons(np.array(begun), np.array(records), np.full(len(records), 0.5))


def test_who_knows_the_classes_of_all_rows_misses_a_person_if_each_draw_misses() -> None:
    """Two of six rows and one of two; one that may be there, of four; nobody; and a class of the person's own."""
    found = found_by_classes(
        np.array([2, 1, 0, 1]),
        np.array([2, 1, 1, 3]),
        np.array([6, 2, 4, 3]),
        np.array([2.0, 1.0, 0.5, 3.0]),
    )
    assert found == pytest.approx([1 - (4 / 6) ** 2 / 2, 1 / 8, 0, 1])
    assert found_by_classes(*(np.zeros(0, dtype=np.int64) for _ in range(3)), np.zeros(0)).tolist() == []
