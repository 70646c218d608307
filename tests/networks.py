"""Small networks for hypothesis: users and edges of any order, direction and number."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from naive_sharing import Edges

from privrisk_spark.extensions.network.kernels.graph import Graph

NETWORKS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
)


def graph_of(n: int, edges: Edges, *, directed: bool = False) -> Graph:
    u, v = (np.array([edge[end] for edge in edges], dtype=np.int32) for end in (0, 1))
    return Graph.of_edges(n, u, v, directed=directed)
