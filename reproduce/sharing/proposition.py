"""Whether ξ is supermodular: Proposition 7.5.1 of F12, by all unit squares of lattices.

ξ counts common friends who are consistent with what is shown. It is supermodular if no unit square ``x, x + e_i,
x + e_j, x + e_i + e_j`` has ``ξ(x) + ξ(x + e_i + e_j) < ξ(x + e_i) + ξ(x + e_j)``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10

import numpy as np

from privrisk_spark.extensions.network.kernels.modified_aggregate import Consistency, Pairs
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray
from reproduce.sharing.aggregate import CONSISTENCIES, FEW, SMALL, TRADE_OFF, single
from reproduce.sharing.sample import Sample


@dataclass(frozen=True)
class Counterexample:
    """A lattice in which ξ is not supermodular.

    Attributes
    ----------
    friends : tuple of tuples of int
        Agreements.
    counts : tuple of int
        ξ of each level vector, the last attribute first to rise.
    """

    heights: tuple[int, ...]
    friends: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Squares:
    """Unit squares of the lattices of some pairs.

    Attributes
    ----------
    consistency : {"all", "any"}
    pairs : int
        Of at least two attributes, and at most so many level vectors as are enumerated.
    violated : int
        Pairs with a square on which ξ is not supermodular.
    bent : int
        Pairs in which ξ is not modular.
    squares, below, above : int
        All squares; those on which ξ is not supermodular, and those on which it is not submodular.
    falls : int
        Steps up on which ξ falls.
    numerator : int
        Squares on which ``λξ + Φu`` is not supermodular, which Theorem 7.5.1 maximizes.
    exposed, all_pairs : int
        Of all pairs of two attributes or more, large lattices too, those with a common friend who agrees in no
        attribute as it is: for such a pair ``any`` is not supermodular, and for no other.
    """

    consistency: Consistency
    k: int
    pairs: int
    violated: int
    bent: int
    squares: int
    below: int
    above: int
    falls: int
    numerator: int
    exposed: int
    all_pairs: int


def counts_over(heights: Sequence[int], friends: LevelArray, consistency: Consistency) -> LongArray:
    """ξ of every level vector.

    Parameters
    ----------
    heights : sequence of k int
    friends : ndarray of int8, shape (m, k)
        Agreements.
    consistency : {"all", "any"}

    Returns
    -------
    ndarray of int64, shape (heights[0] + 1, ..., heights[k - 1] + 1)
    """
    shape = tuple(h + 1 for h in heights)
    levels = np.indices(shape).reshape(len(shape), -1).T
    found = np.zeros(len(levels), dtype=np.int64)
    for row in friends:
        agreeing = row <= levels
        found += agreeing.all(axis=1) if consistency == "all" else agreeing.any(axis=1)
    return found.reshape(shape)


def second_differences(values: FloatArray | LongArray) -> Iterator[FloatArray | LongArray]:
    """Yield ``g(x) + g(x + e_i + e_j) - g(x + e_i) - g(x + e_j)`` of every unit square, for each two axes."""
    for i, j in itertools.combinations(range(values.ndim), 2):
        yield np.diff(np.diff(values, axis=i), axis=j)


def smallest_counterexample(consistency: Consistency) -> Counterexample | None:
    """Search lattices of up to 3 attributes, heights 2 and 2 friends: fewest friends first, then fewest level vectors.

    Returns
    -------
    Counterexample or None
        None if ξ is supermodular in all of them.
    """
    lattices = [h for k in (1, 2, 3) for h in itertools.product((1, 2), repeat=k)]
    lattices.sort(key=lambda heights: (np.prod([h + 1 for h in heights]), heights))
    for n in (0, 1, 2):
        for heights in lattices:
            nodes = list(itertools.product(*(range(h + 1) for h in heights)))
            for friends in itertools.combinations_with_replacement(nodes, n):
                rows = np.array(friends, dtype=np.int8).reshape(n, len(heights))
                counts = counts_over(heights, rows, consistency)
                if any((square < 0).any() for square in second_differences(counts)):
                    return Counterexample(heights, friends, tuple(counts.reshape(-1).tolist()))
    return None


def squares_of(k: int, sample: Sample) -> tuple[Squares, ...]:
    """Look at the lattices of the pairs of a sample."""
    pairs = sample.pairs
    several = (pairs.heights > 0).sum(axis=1) >= 2
    small = several & (np.log10(pairs.heights + 1.0).sum(axis=1) <= log10(SMALL) + 1e-9)
    rows = np.flatnonzero(small)[:FEW].tolist()
    exposed = [_exposed(single(pairs, p)) for p in np.flatnonzero(several).tolist()]
    found = []
    for consistency in CONSISTENCIES:
        numbers = np.array([_of(single(pairs, p), consistency) for p in rows], dtype=np.int64).reshape(-1, 7)
        violated, bent, squares, below, above, falls, numerator = numbers.sum(axis=0).tolist()
        found.append(
            Squares(
                consistency, k, len(rows), violated, bent, squares, below, above, falls, numerator, sum(exposed),
                len(exposed),
            )
        )  # fmt: skip
    return tuple(found)


def _exposed(pair: Pairs) -> bool:
    return bool((pair.agreements > 0).all(axis=1).any())


def _of(pair: Pairs, consistency: Consistency) -> tuple[int, ...]:
    heights = pair.heights[0].tolist()
    counts = counts_over(heights, pair.agreements, consistency)
    phi, utility = (_sums(values[0], heights) for values in (pair.weights, pair.utilities))
    differences = list(second_differences(counts))
    squares = sum(square.size for square in differences)
    below, above = (
        sum(int((square < 0).sum()) for square in differences),
        sum(int((square > 0).sum()) for square in differences),
    )
    falls = sum(int((np.diff(counts, axis=axis) < 0).sum()) for axis in range(counts.ndim))
    numerator = TRADE_OFF * counts + phi * utility
    slack = 1e-9 * float(np.abs(numerator).max())
    below_too = sum(int((square < -slack).sum()) for square in second_differences(numerator))
    return int(below > 0), int(below + above > 0), squares, below, above, falls, below_too


def _sums(values: FloatArray, heights: Sequence[int]) -> FloatArray:
    """A sum over attributes of every level vector."""
    found = np.zeros(tuple(h + 1 for h in heights))
    for i, h in enumerate(heights):
        found += values[i, : h + 1].reshape([-1 if axis == i else 1 for axis in range(len(heights))])
    return found
