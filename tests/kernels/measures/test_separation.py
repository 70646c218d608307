"""Distinction and separation against a look at every pair of records."""

from __future__ import annotations

from collections import Counter

import naive_assess as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.separation import Separation


def of(values: list[int]) -> Separation:
    sizes = Counter(Counter(values).values())
    return Separation.of(np.array(list(sizes), dtype=np.int64), np.array(list(sizes.values()), dtype=np.int64))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12))
def test_by_pairs(values: list[int]) -> None:
    expected = naive.separation([{"a": value} for value in values], ["a"])
    found = of(values)
    assert (found.distinction, found.separation) == (
        pytest.approx(expected["distinction", "a"]),
        pytest.approx(expected["separation", "a"]),
    )


def test_worked_example() -> None:
    """Of the pairs of a, a, b, c all but one of six differ; three values of four records."""
    found = of([0, 0, 1, 2])
    assert (found.distinction, found.separation) == (0.75, 5 / 6)
    assert (of([0]).distinction, of([0]).separation) == (1.0, 0.0)
    nothing = Separation.of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert (nothing.distinction, nothing.separation) == (0.0, 0.0)
    # Squares pass 2^63.
    large = Separation.of(np.array([2**33]), np.array([2]))
    assert large.separation == pytest.approx(0.5)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        Separation.of(np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="one value per class"):
        Separation.of(np.array([1]), np.array([1, 2]))
