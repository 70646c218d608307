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


def jaro(a: str, b: str) -> float:
    """Jaro similarity: characters of ``a``, from the left, take the first free equal one of ``b`` in the window."""
    if not a and not b:
        return 1.0
    window = max(max(len(a), len(b)) // 2 - 1, 0)
    taken: dict[int, str] = {}
    of_a = []
    for i, character in enumerate(a):
        for j, other in enumerate(b):
            if other == character and abs(i - j) <= window and j not in taken:
                taken[j] = other
                of_a.append(character)
                break
    if not taken:
        return 0.0
    of_b = [taken[j] for j in sorted(taken)]
    m = len(of_a)
    transposed = sum(x != y for x, y in zip(of_a, of_b, strict=True)) // 2
    return (m / len(a) + m / len(b) + (m - transposed) / m) / 3


def resembles(labels: Sequence[str | None], disclosed: int, known: int | None, threshold: float) -> bool:
    """Whether a dictionary value is consistent with a node by label; the last node is ⊥, None a value outside."""
    root = len(labels) - 1
    if disclosed == root:
        return True
    if known is None or known == root:
        return known == root
    x, t = labels[disclosed], labels[known]
    if x is None or t is None:
        return x is t
    return jaro(x, t) >= threshold - 1e-12


def count_any(
    consistent_on: Sequence[Callable[[int, int | None], bool]],
    disclosed: Sequence[int],
    dictionary: Sequence[Sequence[int | None]],
) -> int:
    """Rows of the dictionary consistent with a disclosed record, by one relation per attribute."""
    return sum(
        all(relation(x, t) for relation, x, t in zip(consistent_on, disclosed, row, strict=True)) for row in dictionary
    )


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
    form: str,
    weights: Sequence[float],
    suppressed: Sequence[bool],
    *,
    constant: float = 1,
    record: float = 1,
    interactions: Sequence[tuple[Sequence[int], float]] = (),
) -> float:
    """Sensitivity of a disclosed record from the weights of its nodes, and of sets of attributes disclosed whole."""
    disclosed = [w for w, s in zip(weights, suppressed, strict=True) if not s]
    if form == "constant":
        return constant
    if form == "record":
        return 0.0 if not disclosed or record == 0 else record * len(disclosed)
    total = sum(disclosed)
    if form == "interaction":
        whole = [w for members, w in interactions if not any(suppressed[j] for j in members)]
        return total + sum(0.0 if w == 0 or record == 0 else record * w for w in whole)
    return total if form == "linear" else math.exp(total) if total < 700 else math.inf


def risk(model: str, sensitivity: float, rho: int, rows: int) -> float:
    """Risk of a disclosed record; nothing to identify costs nothing."""
    if rho == 0:
        return 0.0
    if model == "II":
        return 1 / rho
    factor = 1 / rho if model == "I" else math.log(rows / rho)
    return 0.0 if factor == 0 or sensitivity == 0 else sensitivity * factor


def risk_of_attacker(rule: str, prior: Sequence[float], risks: Sequence[float]) -> float:
    """Expected or largest risk over dictionaries; one of probability 0 adds nothing."""
    if rule == "minimax":
        return max(risks)
    return sum(q * r for q, r in zip(prior, risks, strict=True) if q > 0)


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
