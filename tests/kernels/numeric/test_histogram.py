from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.numeric.histogram import DENSE_CELLS, VectorHistogram

LARGE = 2**31 - 1
RADICES = [1, 2, 3, 7, 300, 2**16, 2**30, LARGE]
Vector = tuple[int, ...]


@st.composite
def histograms(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[Vector, int]]]]:
    """Radices and chunks of (vector, times); few distinct vectors, so that they meet again, and the corners."""
    radices = draw(st.lists(st.sampled_from(RADICES), min_size=1, max_size=6))
    vector = st.tuples(*[st.one_of(st.sampled_from([0, radix - 1]), st.integers(0, radix - 1)) for radix in radices])
    pool = draw(st.lists(vector, min_size=1, max_size=12))
    row = st.tuples(st.sampled_from(pool), st.integers(1, 2**40))
    return radices, draw(st.lists(st.lists(row, max_size=15), max_size=6))


def columns_of(vectors: list[Vector], k: int) -> list[Any]:
    matrix = np.array(vectors, dtype=np.int32).reshape(-1, k)
    return [matrix[:, i] for i in range(k)]


def taken(histogram: VectorHistogram) -> list[tuple[Vector, int]]:
    vectors, counts = histogram.take()
    assert (vectors.dtype, counts.dtype) == (np.int32, np.int64)
    assert vectors.shape == (len(counts), len(histogram.radices))
    return [(tuple(vector), int(count)) for vector, count in zip(vectors.tolist(), counts, strict=True)]


@given(histograms(), st.integers(1, 8), st.booleans())
def test_counts_are_those_of_a_counter(case, most_held, once):
    radices, chunks = case
    histogram, wanted = VectorHistogram(radices, most_held=most_held), Counter[Vector]()
    for chunk in chunks:
        vectors = [vector for vector, _ in chunk]
        times = None if once else np.array([n for _, n in chunk], dtype=np.int64)
        histogram.add(columns_of(vectors, len(radices)), times)
        for vector, n in chunk:
            wanted[vector] += 1 if once else n
    # In lexicographic order; and a taken histogram starts again.
    assert taken(histogram) == sorted(wanted.items())
    assert taken(histogram) == []
    histogram.add(columns_of([(0,) * len(radices)], len(radices)))
    assert taken(histogram) == [((0,) * len(radices), 1)]


@given(histograms(), st.integers(1, 5))
def test_taking_a_full_one_loses_nothing(case, most_held):
    """As tasks do: what is taken on the way and at the end sums to the whole."""
    radices, chunks = case
    histogram, found, wanted = VectorHistogram(radices, most_held=most_held), Counter[Vector](), Counter[Vector]()
    for chunk in chunks:
        vectors = [vector for vector, _ in chunk]
        histogram.add(columns_of(vectors, len(radices)))
        wanted.update(vectors)
        if histogram.full:
            found.update(dict(taken(histogram)))
            assert not histogram.full
    found.update(dict(taken(histogram)))
    assert found == wanted


@pytest.mark.parametrize(
    "radices",
    [
        [DENSE_CELLS],
        [DENSE_CELLS, 2],
        [2**31 - 1, 2**31 - 1, 2],
        # 2^63 - 1 = 7 · 7 · 73 · 127 · 337 · 92737 · 649657: the largest word, and one cell more.
        [7 * 7 * 73 * 127 * 337, 92737 * 7, 92737],
        [2**21, 2**21, 2**21],
        [2**30] * 9,
        [1] * 70,
        [2] * 62,
        [2] * 63,
        [2] * 130,
    ],
)
def test_every_corner_is_a_vector_of_its_own(radices):
    """Vectors that differ in one digit, at the ends of every column, whatever the number of words."""
    k = len(radices)
    top = tuple(radix - 1 for radix in radices)
    vectors = {(0,) * k, top}
    for i, radix in enumerate(radices):
        vectors |= {(*(0,) * i, radix - 1, *(0,) * (k - i - 1)), (*top[:i], 0, *top[i + 1 :])}
    histogram = VectorHistogram(radices, most_held=3)
    rows = sorted(vectors) * 2
    for begin in range(0, len(rows), 5):
        histogram.add(columns_of(rows[begin : begin + 5], k))
    assert taken(histogram) == [(vector, 2) for vector in sorted(vectors)]


def test_only_a_sparse_one_is_ever_full():
    dense, sparse = VectorHistogram([DENSE_CELLS], most_held=3), VectorHistogram([DENSE_CELLS, 2], most_held=3)
    assert not sparse.full
    for i in range(20):
        dense.add(columns_of([(i,)], 1))
        sparse.add(columns_of([(i, 0)], 2))
    assert not dense.full
    assert sparse.full
    assert len(taken(sparse)) == len(taken(dense)) == 20
    assert not sparse.full


def test_vectors_that_come_again_do_not_fill_it():
    """A part per chunk would be written where every chunk holds the same few vectors."""
    histogram = VectorHistogram([2**20, 2**20], most_held=5)
    for _ in range(30):
        histogram.add(columns_of([(1, 2), (3, 4), (5, 6)], 2))
        assert not histogram.full
    assert taken(histogram) == [((1, 2), 30), ((3, 4), 30), ((5, 6), 30)]


@pytest.mark.parametrize("radices", [[3], [2**20, 2**20]])
def test_the_total_is_exact_where_the_counts_overflow(radices: list[int]) -> None:
    """2,000 rows of 2^53 - 1 people are more than 2^63: whoever asks can refuse them."""
    histogram = VectorHistogram(radices)
    columns = columns_of([(1,) * len(radices)] * 2000, len(radices))
    for times in (None, np.full(2000, 2**53 - 1), np.full(2000, 2**62), np.zeros(2000, dtype=np.int64)):
        histogram.add(columns, times)
        assert histogram.total == (2000 if times is None else 2000 * int(times[0]))
        histogram.take()
        assert histogram.total == 0
