"""How many records a report looks at: never more than its cost allows."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.planning.trade_off import SHOWN, SampleSize, sample_size

TREE = Hierarchy.from_paths("x", [(f"{i}",) for i in range(10)])
AXIS = Axis(TREE.at_depth, TREE.ancestor)
ONE = np.array([[0]], dtype=np.int32), np.array([1])
DENSE = DenseCounts.roll_up([AXIS], *ONE)


def sorted_counts(vectors: int) -> SortedCounts:
    rows = np.zeros((vectors, 1), dtype=np.int32)
    return SortedCounts.group([AXIS], rows, np.ones(vectors, dtype=np.int64))


@pytest.mark.parametrize(
    ("nodes", "counts", "wanted"),
    [
        (300, [DENSE], SampleSize(1000, 1000)),
        (6480, [DENSE], SampleSize(161, 161)),
        (2**15, [DENSE], SampleSize(32, 32)),
        (2**15 + 1, [DENSE], SampleSize(SHOWN, 0)),
        (300, [None], SampleSize(SHOWN, 0)),
        (300, [DENSE, None], SampleSize(SHOWN, 0)),
        (10**30, [DENSE], SampleSize(SHOWN, 0)),
        (300, [sorted_counts(2**20)], SampleSize(256, 256)),
        (300, [sorted_counts(1), DENSE], SampleSize(1000, 1000)),
    ],
    ids=["small", "adult", "most", "too many", "distributed", "one of two", "huge", "many vectors", "both"],
)
def test_the_sample_is_what_may_be_spent(nodes: int, counts: list[object], wanted: SampleSize) -> None:
    assert sample_size(nodes, counts) == wanted  # type: ignore[arg-type]
