"""Literal, slow readings of the papers' definitions: the oracles of the kernel tests.

Trees are given as parent pointers, records as leaf numbers; nothing here uses an array trick or code of the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

Parents = Sequence[int]


def path_to_root(parent: Parents, node: int) -> list[int]:
    """The node, its parent, … , the root."""
    path = [node]
    while parent[path[-1]] != path[-1]:
        path.append(parent[path[-1]])
    return path


def leaves_under(parent: Parents, n_leaves: int, node: int) -> list[int]:
    """Leaves that have the node on their path to the root."""
    return [leaf for leaf in range(n_leaves) if node in path_to_root(parent, leaf)]


def consistent(parent: Parents, disclosed: int, known: int | None, meaning: str, *, wildcard: bool = False) -> bool:
    """Whether a dictionary value is consistent with a disclosed node; None is a value outside the hierarchy."""
    root = path_to_root(parent, disclosed)[-1]
    if known is None:
        return disclosed == root
    below = disclosed in path_to_root(parent, known)
    above = known in path_to_root(parent, disclosed)
    return below or (above if meaning == "compatible" else wildcard and known == root)


def count(
    parents: Sequence[Parents],
    disclosed: Sequence[int],
    dictionary: Sequence[Sequence[int | None]],
    meaning: str,
    *,
    wildcards: Sequence[bool] | None = None,
    lacking: Sequence[int] = (),
) -> int:
    """Rows of the dictionary consistent with a disclosed record on every attribute the dictionary has."""
    flags = wildcards or [False] * len(parents)
    return sum(
        all(
            i in lacking or consistent(parents[i], disclosed[i], row[i], meaning, wildcard=flags[i])
            for i in range(len(parents))
        )
        for row in dictionary
    )


def lattice(depths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All level vectors, in lexicographic order."""
    return itertools.product(*[range(depth + 1) for depth in depths])


def harmonic(parent: Parents, n_leaves: int, leaf_weight: Sequence[float], node: int) -> float:
    """Weight of a node: its own at a leaf, else 1 over the sum over children of 1 over theirs; 0 at the root."""
    if node < n_leaves:
        return leaf_weight[node]
    if parent[node] == node:
        return 0.0
    children = [c for c in range(len(parent)) if parent[c] == node and c != node]
    total = 0.0
    for child in children:
        weight = harmonic(parent, n_leaves, leaf_weight, child)
        total += math.inf if weight == 0 else 1 / weight
    return math.inf if total == 0 else 1 / total


def phi(
    form: str, weights: Sequence[float], suppressed: Sequence[bool], *, constant: float = 1, record: float = 1
) -> float:
    """Sensitivity of a disclosed record from the weights of its nodes."""
    disclosed = [w for w, s in zip(weights, suppressed, strict=True) if not s]
    if form == "constant":
        return constant
    if form == "record":
        return 0.0 if not disclosed or record == 0 else record * len(disclosed)
    total = sum(disclosed)
    return total if form == "linear" else math.exp(total) if total < 700 else math.inf


def risk(model: str, sensitivity: float, rho: int, rows: int) -> float:
    """Risk of a disclosed record; nothing to identify costs nothing."""
    if rho == 0:
        return 0.0
    if model == "II":
        return 1 / rho
    factor = 1 / rho if model == "I" else math.log(rows / rho)
    return 0.0 if factor == 0 or sensitivity == 0 else sensitivity * factor


def better(risk_a: float, utility_a: float, risk_b: float, utility_b: float, tolerance: float = 1e-12) -> bool:
    """Whether a beats b: lower risk, then higher utility; equal within the tolerance is equal."""
    if risk_a < risk_b * (1 - tolerance):
        return True
    if risk_a > risk_b * (1 + tolerance):
        return False
    return utility_a > utility_b + tolerance * max(1.0, abs(utility_a))


def least_risky(
    depths: Sequence[int],
    risk_of: Callable[[tuple[int, ...]], float],
    utility_of: Callable[[tuple[int, ...]], float],
    floor: float,
) -> tuple[int, ...] | None:
    """The least risky level vector with utility at least the floor, or None: search of the whole lattice."""
    best: tuple[float, float, tuple[int, ...]] | None = None
    for levels in lattice(depths):
        utility = utility_of(levels)
        if utility < floor - 1e-12 * max(1.0, abs(floor)):
            continue
        here = risk_of(levels)
        if best is None or better(here, utility, best[0], best[1]):
            best = (here, utility, levels)
    return None if best is None else best[2]
