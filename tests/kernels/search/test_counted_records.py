"""Records placed once among the vectors of a count, against a search at every node and the literal count."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import ranked
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.ranked import RankedVectors
from privrisk_spark.kernels.search import counted_records
from privrisk_spark.kernels.search.counted_records import CountedRecords


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray]:
    """Dictionaries with inner nodes, suppressed and foreign values, and records that some of them hold."""
    hierarchies = draw(several_hierarchies())
    meaning = draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [
        Axis(h.at_depth, h.ancestor, meaning, known=draw(st.integers(0, 4)) > 0, wildcard=draw(st.booleans()))
        for h in hierarchies
    ]
    records = np.array([[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(6)], dtype=np.int32)
    own = [
        [h.root if code == h.n_leaves else code for code, h in zip(record, hierarchies, strict=True)]
        for record in records[: draw(st.integers(0, 6))]
    ]
    n = draw(st.integers(0 if own else 1, 8))
    others = [[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)]
    return hierarchies, axes, np.array([*own, *others], dtype=np.int32), records


@given(cases(), st.sampled_from([0, 1, 2**22]), st.sampled_from([0, 2**30]), st.sampled_from([3, 2**62]))
def test_counts_by_rank_are_those_of_a_search_at_every_node(
    case: tuple[list[Hierarchy], list[Axis], np.ndarray, np.ndarray], cells: int, kept: int, limit: int
) -> None:
    _, axes, rows, records = case
    vectors, times = np.unique(rows, axis=0, return_counts=True)
    vectors = vectors.astype(np.int32)
    dense = DenseCounts.roll_up(axes, vectors, times)
    usual = ranked._FEW_CELLS, ranked._CELLS, ranked._KEY_LIMIT
    ranked._FEW_CELLS, ranked._CELLS, ranked._KEY_LIMIT = cells, 0, limit
    try:
        plan = SortedCounts.group(axes, vectors, times)
        for of_group in plan.ranked:
            object.__setattr__(of_group, "cache_bytes", kept)
        for depths in np.unique([[a.code_depth[c] for a, c in zip(axes, r, strict=True)] for r in records], axis=0):
            same = [r for r in records if [a.code_depth[c] for a, c in zip(axes, r, strict=True)] == depths.tolist()]
            columns = [np.array(column, dtype=np.int32) for column in zip(*same, strict=True)]
            placed = CountedRecords(plan, columns, depths.tolist())
            assert len(placed._places) == len(plan.groups)
            some = np.arange(len(same))[::2]
            for levels in naive.lattice(depths.tolist()):
                expected = dense.consistent(columns, levels, depths.tolist())
                assert placed.consistent(slice(None), levels).tolist() == expected.tolist()
                assert placed.consistent(some, levels).tolist() == expected[some].tolist()
                assert plan.consistent(columns, levels, depths.tolist()).tolist() == expected.tolist()
    finally:
        ranked._FEW_CELLS, ranked._CELLS, ranked._KEY_LIMIT = usual


@pytest.mark.parametrize("by_rank", [True, False])
def test_records_of_the_table_itself_are_searched_for_once(by_rank, monkeypatch):
    """Where the shortcut is off every node is a search; where it is on, none is."""
    monkeypatch.setattr(counted_records, "BY_RANK", by_rank)
    tree = Hierarchy.from_paths("x", [(f"{i}{j}", f"{i}") for i in "abc" for j in "123"])
    axes = [Axis(tree.at_depth, tree.ancestor)] * 2
    vectors = np.array([[i, j] for i in range(9) for j in range(0, 9, 2)], dtype=np.int32)
    plan = SortedCounts.group(axes, vectors, np.arange(1, len(vectors) + 1))
    searches = []
    real = SortedCounts.searched
    monkeypatch.setattr(SortedCounts, "searched", lambda *given: searches.append(1) or real(*given))
    records = CountedRecords(plan, [np.ascontiguousarray(column) for column in vectors.T], [2, 2])
    totals = [records.consistent(slice(None), levels).sum() for levels in naive.lattice([2, 2])]
    assert totals[0] == np.arange(1, len(vectors) + 1).sum()
    assert totals[-1] == len(vectors) * plan.dictionary_rows
    assert len(searches) == (0 if by_rank else 9)


def test_sizes_of_wide_and_large_counts_are_exact(monkeypatch):
    """Counts beyond 2^31 are no 32-bit integers, and such beyond 2^53 no doubles."""
    vectors = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int32)
    chains = (np.array([[4, 0], [4, 1]], dtype=np.int32),) * 2
    for large in (2**31, 2**53, 2**60):
        counts = np.array([1, large, 1, 2], dtype=np.int64)
        held = RankedVectors(vectors, counts, chains, (np.array([0, 1], dtype=np.int32),) * 2, 2**20)
        assert held.sizes((1, 0)).tolist() == [large + 1, large + 1, 3, 3]
        assert held.sizes((0, 1)).tolist() == [2, large + 2, 2, large + 2]
        assert held.sizes((0, 0)).tolist() == [large + 4] * 4
        assert held.sizes((1, 1)).tolist() == counts.tolist()
    signed = RankedVectors(vectors, np.array([2**60, 1, 3 - 2**60, 1]), chains, held.leaves, 2**20)
    assert signed.sizes((0, 1)).tolist() == [3, 2, 3, 2]
    small = RankedVectors(vectors, np.ones(4, dtype=np.int64), chains, held.leaves, 2**20)
    assert small.sizes((1, 0)).dtype == np.int32
    assert small.sizes((1, 0)) is small.sizes((1, 0)), "sizes are kept"
