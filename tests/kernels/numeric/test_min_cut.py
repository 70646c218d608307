"""Minimum cuts against all cuts, and against SciPy where 32 bits are enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.numeric import min_cut as kernel
from privrisk_spark.kernels.numeric.min_cut import LARGEST_SUM, Network, minimum_cut

Arcs = list[tuple[int, int, int]]


def network(n: int, arcs: Arcs, source: int = 0, sink: int = 1) -> Network:
    tail, head, capacity = np.array(arcs, dtype=np.int64).reshape(-1, 3).T
    return Network(n, tail.astype(np.int32), head.astype(np.int32), capacity.copy(), source, sink)


def all_cuts(n: int, arcs: Arcs) -> dict[frozenset[int], int]:
    """Capacity of every cut between nodes 0 and 1, by its source side."""
    sides = [frozenset([0, *(v for v in range(2, n) if mask >> v & 1)]) for mask in range(0, 2**n, 4)]
    return {side: sum(c for u, v, c in arcs if u in side and v not in side) for side in sides}


def arcs_of(n: int, capacity: st.SearchStrategy[int]) -> st.SearchStrategy[Arcs]:
    return st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), capacity), max_size=20)


SMALL = st.integers(0, 6)
# Of 18 orders of magnitude, as weights between 1e-9 and 1e9 are after scaling.
WIDE = st.builds(lambda digit, power: digit * 10**power, st.integers(1, 9), st.integers(0, 16))


@given(arcs=st.one_of(arcs_of(7, SMALL), arcs_of(7, WIDE)), negligible=st.sampled_from([0, 1, 3, 10**9]))
@example(arcs=[(0, 2, 5), (2, 3, 3), (3, 1, 5), (2, 1, 2)], negligible=0)
@example(arcs=[(0, 0, 1), (0, 2, 2), (2, 0, 2), (2, 1, 2), (2, 1, 1)], negligible=1)
def test_the_cut_is_the_least_of_all(arcs: Arcs, negligible: int) -> None:
    built = network(7, arcs)
    before = [built.tail.copy(), built.head.copy(), built.capacity.copy()]
    found = minimum_cut(built, negligible=negligible)
    cuts = all_cuts(7, arcs)
    least = min(cuts.values())
    assert found.value == least
    smallest = frozenset.intersection(*(side for side, capacity in cuts.items() if capacity == least))
    assert set(np.flatnonzero(found.source_side)) == smallest
    nearly = set(np.flatnonzero(found.nearly).tolist())
    assert all(nearly <= side for side, capacity in cuts.items() if capacity <= least + negligible)
    if negligible == 0:
        assert nearly == smallest
    for array, copy in zip((built.tail, built.head, built.capacity), before, strict=True):
        assert (array == copy).all()


@pytest.mark.parametrize("seed", range(12))
def test_layered_networks_agree_with_scipy(seed: int) -> None:
    """Long paths, reversals, many phases."""
    random = np.random.default_rng(seed)
    n, m = 120, [250, 700, 2000][seed % 3]
    tail, head = random.integers(0, n, (2, m))
    if seed % 2:
        head = np.minimum(tail + random.integers(1, 6, m), n - 1)
    capacity = random.integers(1, 1000, m)
    source, sink = 0, n - 1
    graph = coo_array((capacity.astype(np.int32), (tail, head)), shape=(n, n)).tocsr()
    graph.setdiag(0)
    want = maximum_flow(graph, source, sink).flow_value
    found = minimum_cut(Network(n, tail.astype(np.int32), head.astype(np.int32), capacity, source, sink))
    assert found.value == want
    side = found.source_side
    assert side[source]
    assert not side[sink] or want == 0
    assert capacity[side[tail] & ~side[head]].sum() == want


def test_the_interpreted_search_is_the_compiled_one() -> None:
    random = np.random.default_rng(5)
    tail, head = random.integers(0, 40, (2, 300)).astype(np.int32)
    capacity = random.integers(0, 50, 300)
    compiled = minimum_cut(Network(40, tail, head, capacity, 0, 39), negligible=4)
    value, side, nearly = kernel._search(40, tail, head, capacity, 0, 39, 4)
    assert (value, side.tolist(), nearly.tolist()) == (
        compiled.value,
        compiled.source_side.tolist(),
        compiled.nearly.tolist(),
    )


def test_infinite_arcs_neither_overflow_nor_are_cut() -> None:
    """Two rows that share a level, with the largest sums allowed."""
    most = LARGEST_SUM // 2 - 1
    arcs = [(0, 2, most // 2), (0, 3, most // 2), (4, 1, most)]
    arcs += [(2, 4, LARGEST_SUM), (3, 4, LARGEST_SUM), (4, 2, LARGEST_SUM)]
    found = minimum_cut(network(5, arcs))
    assert found.value == 2 * (most // 2)
    assert found.source_side.tolist() == [True, False, False, False, False]
    arcs[2] = (4, 1, most - 7)
    found = minimum_cut(network(5, arcs))
    assert found.value == most - 7
    assert found.source_side.tolist() == [True, False, True, True, True]


def test_networks_without_arcs() -> None:
    found = minimum_cut(network(3, []))
    assert found.value == 0
    assert found.source_side.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("arcs", "sink", "message"),
    [
        ([(0, 1, -1)], 1, "capacities must lie"),
        ([(0, 1, LARGEST_SUM + 1)], 1, "capacities must lie"),
        ([(0, 1, 1)], 0, "source and sink must differ"),
    ],
)
def test_bad_networks_are_refused(arcs: Arcs, sink: int, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        minimum_cut(network(2, arcs, sink=sink))
