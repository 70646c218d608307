"""Schemes to propose from public information: hierarchies, a public number of rows and public shares of values.

A released tuple needs a number of rows to survive sampling and threshold (:func:`privrisk_spark.kernels.dp.crowd
.survival_rows`). Nothing of the table says how many a cell has, so it is expected under independent attributes with
public shares p of their leaves (uniform if nobody states others): a random row's own cell under scheme x holds

    E(x) = N prod_i c_i(x_i),      c_i(l) = sum over nodes v at level l of (sum of p over the leaves under v)^2

rows of N, c_i the probability that two rows agree. Merging nodes raises a sum of squares, so E rises along every level,
and ``{x : E(x) >= need}`` is an up-set; its minimal elements, an antichain, are the finest schemes that are expected to
survive. Real attributes depend on each other, and then cells are larger than this where records are and smaller where
they are not: the figure is *heuristic*. No guarantee depends on it.

Of many minimal schemes those are taken, one at a time, that add most to the finest precision of the attributes among
those taken so far (a monotone submodular sum, so the greedy choice has at least 1 - 1/e of the most; Nemhauser, Wolsey
and Fisher 1978), then those of the highest precision; ties go to the lexicographically smallest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice

LATTICE_MAX = 1 << 20
"""Most nodes of a lattice that is looked through."""


def agreement(ancestor: IntArray, shares: FloatArray) -> FloatArray:
    """Return the probability that two rows have one node, per level.

    Parameters
    ----------
    ancestor : ndarray of int32, shape (n_leaves, height + 1)
        Node of each leaf at each level.
    shares : ndarray of float64, shape (n_leaves,)
        Probability of each leaf, not negative, of sum 1.

    Returns
    -------
    ndarray of float64, shape (height + 1,)
        Non-decreasing, 1 at the root.
    """
    levels = ancestor.shape[1]
    result = np.zeros(levels)
    for level in range(levels):
        _, member = np.unique(ancestor[:, level], return_inverse=True)
        result[level] = (np.bincount(member, weights=shares) ** 2).sum()
    return result


def expected_rows(rows: int, agreements: Sequence[FloatArray], schemes: npt.NDArray[np.integer]) -> FloatArray:
    """Return the rows that a random row's cell is expected to hold, itself among them.

    Parameters
    ----------
    rows : int
        N.
    agreements : sequence of k ndarrays of float64, shape (height_i + 1,)
        See :func:`agreement`.
    schemes : ndarray of int, shape (n, k)

    Returns
    -------
    ndarray of float64, shape (n,)
        ``N prod_i c_i``, in records.
    """
    result = np.full(len(schemes), float(rows))
    for i, of_level in enumerate(agreements):
        result *= of_level[schemes[:, i]]
    return result


def minimal_schemes(rows: int, agreements: Sequence[FloatArray], need: float) -> LongArray:
    """Return the finest schemes whose cells are expected to hold enough rows.

    Parameters
    ----------
    rows : int
        N.
    agreements : sequence of k ndarrays of float64, shape (height_i + 1,)
    need : float
        In records, positive.

    Returns
    -------
    ndarray of int64, shape (n, k)
        The minimal elements of ``{x : E(x) >= need}`` in lexicographic order, none below another; none at all if not
        even full suppression is enough.

    Raises
    ------
    InputError
        If the lattice has more than ``LATTICE_MAX`` nodes.
    """
    lattice = Lattice(tuple(len(of_level) - 1 for of_level in agreements))
    if lattice.n_nodes > LATTICE_MAX:
        raise InputError(
            f"The lattice has {lattice.n_nodes:,} nodes, and schemes are proposed from at most {LATTICE_MAX:,}."
        )
    expected = expected_rows(rows, agreements, lattice.levels(np.arange(lattice.n_nodes)))
    enough = (expected >= need * (1 - TOLERANCE)).reshape(lattice.shape)
    minimal = enough.copy()
    for axis, size in enumerate(lattice.shape):
        if size > 1:
            lower, upper = [slice(None)] * enough.ndim, [slice(None)] * enough.ndim
            lower[axis], upper[axis] = slice(0, size - 1), slice(1, size)
            minimal[tuple(upper)] &= ~enough[tuple(lower)]
    return lattice.levels(np.flatnonzero(minimal))


def diverse(schemes: LongArray, heights: Sequence[int], weights: Sequence[float], most: int) -> LongArray:
    """Return a few schemes that are fine in different attributes.

    Parameters
    ----------
    schemes : ndarray of int64, shape (n, k)
        In lexicographic order.
    heights : sequence of k int
        At least 1.
    weights : sequence of k float
        Of the attributes.
    most : int
        Number of schemes to take, at least 1.

    Returns
    -------
    ndarray of int64, shape (min(n, most), k)
        In the order taken; see the module's description.
    """
    kept = 1.0 - schemes / np.array(heights, dtype=np.float64)
    weighed = kept * np.array(weights, dtype=np.float64)
    alone = weighed.sum(axis=1)
    finest = np.zeros(schemes.shape[1])
    left = np.ones(len(schemes), dtype=np.bool_)
    taken: list[int] = []
    while len(taken) < min(most, len(schemes)):
        gain = np.maximum(weighed - finest, 0.0).sum(axis=1)
        # Rounded, so that equal sums tie whatever the order of their terms.
        order = np.lexsort((np.arange(len(schemes)), -np.round(alone, 9), -np.round(gain, 9), ~left))
        best = int(order[0])
        taken.append(best)
        left[best] = False
        finest = np.maximum(finest, weighed[best])
    return schemes[np.array(taken, dtype=np.int64)]
