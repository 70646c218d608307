"""Random trees, tables and weights for hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
)
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral
from privrisk_spark.extensions.attack.kernels.learned.families import Kind
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


def weights(n: int) -> st.SearchStrategy[np.ndarray]:
    """Weights at least 0 and of sum 1, some of them 0."""
    given = st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any)
    return given.map(lambda parts: np.array(parts) / sum(parts))


@st.composite
def measures(draw: st.DrawFn, n: int) -> np.ndarray:
    """Monotone measures of sets of n attributes."""
    given = draw(st.lists(st.integers(0, 9), min_size=2**n, max_size=2**n))
    found = np.array(given, dtype=np.float64)
    found[0], found[-1] = 0.0, max(found.max(), 1.0)
    sets = np.arange(2**n)
    for i in range(n):
        inside = sets[sets >> i & 1 == 1]
        found[inside] = np.maximum(found[inside], found[inside ^ 1 << i])
    return np.asarray(found / found[-1])


@st.composite
def forms(draw: st.DrawFn, n: int) -> np.ndarray:
    """Symmetric positive semi-definite matrices of trace 1, often singular."""
    rank = draw(st.integers(1, n))
    given = draw(st.lists(st.integers(-3, 3), min_size=n * rank, max_size=n * rank).filter(any))
    root = np.array(given, dtype=np.float64).reshape(n, rank)
    return np.asarray(root @ root.T / (root**2).sum())


@st.composite
def aggregates(draw: st.DrawFn, kind: Kind, n: int) -> Aggregate:
    """Learned distances of a kind."""
    if kind == "choquet":
        return ChoquetIntegral(draw(measures(n)))
    if kind == "bilinear":
        return Bilinear(draw(forms(n)))
    of = draw(weights(n))
    return WeightedMean(of) if kind == "weighted_mean" else OrderedWeightedAverage(of)
