from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.extensions.network.kernels.connection import Parts, parts_of


def distances(n: int, edges: list[tuple[int, int]], begin: int) -> dict[int, int]:
    near: dict[int, set[int]] = {user: set() for user in range(n)}
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    found, waiting = {begin: 0}, deque([begin])
    while waiting:
        at = waiting.popleft()
        for other in near[at] - set(found):
            found[other] = found[at] + 1
            waiting.append(other)
    return found


@given(st.integers(2, 9), st.data())
def test_parts_are_those_of_searches_from_everybody(n: int, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    edges = data.draw(st.lists(pair, max_size=12))
    u, v = (np.array([e[i] for e in edges], dtype=np.int64) for i in (0, 1))
    found = parts_of(n, u, v)
    if not edges:
        assert found == Parts(0, 0, 0)
        return
    reached = [distances(n, edges, user) for user in range(n)]
    largest = max(len(one) for one in reached)
    assert found.largest == largest
    assert found.connected == len({user for edge in edges for user in edge})
    diameters = {max(max(reached[user].values()) for user in one) for one in reached if len(one) == largest}
    assert found.diameter <= max(diameters)
    assert 2 * found.diameter >= min(diameters)


def test_a_path_is_as_long_as_it_is() -> None:
    """0 – 1 – 2 – 3 – 4, begun in the middle or at an end; a pair beside it is no part of it."""
    u, v = np.array([2, 1, 3, 4, 5]), np.array([1, 0, 2, 3, 6])
    assert parts_of(8, u, v) == Parts(7, 5, 4)
