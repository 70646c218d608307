"""Random trees, tables and weights for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from privrisk_spark.hierarchies.hierarchy import Hierarchy


@st.composite
def hierarchies(draw: st.DrawFn, attribute: str = "a", max_leaves: int = 5, max_depth: int = 3) -> Hierarchy:
    """Unbalanced trees with unary chains: each leaf hangs under a random path of small branch numbers."""
    n = draw(st.integers(1, max_leaves))
    paths = []
    for leaf in range(n):
        depth = draw(st.integers(0, max_depth - 1))
        branch = [draw(st.integers(0, 1)) for _ in range(depth)]
        above = ["/".join(map(str, branch[: i + 1])) for i in range(depth)]
        paths.append((f"leaf{leaf}", *[f"node{label}" for label in reversed(above)]))
    return Hierarchy.from_paths(attribute, paths)


def several_hierarchies(max_attributes: int = 3) -> st.SearchStrategy[list[Hierarchy]]:
    """One to a few hierarchies."""
    return st.lists(hierarchies(), min_size=1, max_size=max_attributes)
