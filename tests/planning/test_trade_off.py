"""How many records a report looks at: never more than its cost allows."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.planning.trade_off import SHOWN, SampleSize, kept_levels, sample_size

TREE = Hierarchy.from_paths("x", [(f"{i}",) for i in range(10)])
AXIS = Axis(TREE.at_depth, TREE.ancestor)
ONE = np.array([[0]], dtype=np.int32), np.array([1])
DENSE = DenseCounts.roll_up([AXIS], *ONE)


def sorted_counts(vectors: int) -> SortedCounts:
    rows = np.zeros((vectors, 1), dtype=np.int32)
    return SortedCounts.group([AXIS], rows, np.ones(vectors, dtype=np.int64))


@pytest.mark.parametrize(
    ("heights", "counts", "wanted"),
    [
        ([299], [DENSE], SampleSize(1000, 1000, 300)),
        ([5, 17, 59], [DENSE], SampleSize(161, 161, 6480)),
        ([1] * 15, [DENSE], SampleSize(32, 32, 2**15)),
        ([299], [None], SampleSize(SHOWN, 0, 300)),
        ([299], [DENSE, None], SampleSize(SHOWN, 0, 300)),
        ([1] * 16, [DENSE], SampleSize(SHOWN, 0, 2**16)),
        ([299], [sorted_counts(2**20)], SampleSize(128, 128, 300)),
        ([299], [sorted_counts(1), DENSE], SampleSize(1000, 1000, 300)),
        (
            [7] * 5 + [1],
            [DENSE],
            SampleSize(139, 139, 2**16, (*[(0, 2, 4, 5, 7)] * 4, (0, 1, 3, 4, 6, 7), (0, 1))),
        ),
    ],
    ids=["small", "adult", "most", "distributed", "one of two", "too many columns", "many vectors", "both", "thinned"],
)
def test_the_sample_is_what_may_be_spent(heights: list[int], counts: list[object], wanted: SampleSize) -> None:
    assert sample_size(heights, counts) == wanted  # type: ignore[arg-type]


@given(heights=st.lists(st.integers(0, 9), min_size=1, max_size=8), most=st.integers(1, 3000))
def test_levels_that_are_kept_run_from_exact_to_suppressed(heights: list[int], most: int) -> None:
    found = kept_levels(heights, most)
    if found is None:
        assert prod(min(height + 1, 2) for height in heights) > most
        return
    assert prod(map(len, found)) <= most
    for height, levels in zip(heights, found, strict=True):
        assert (levels[0], levels[-1]) == (0, height)
        assert list(levels) == sorted(set(levels))
    if prod(height + 1 for height in heights) <= most:
        assert [len(levels) for levels in found] == [height + 1 for height in heights]
