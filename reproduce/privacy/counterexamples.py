"""Exact output laws of F12's Algorithm 6 on small and on structured tables: why it is not used.

Every function computes the law of what the algorithm publishes (the multiset of elements, or a function of it) for a
table D and for D without its first row, with no sampling, and from both laws the least delta for which
(epsilon, delta)-differential privacy can hold. A function of the output gives a lower bound, by post-processing.

Theorem 6.4.1 claims ``delta + o(1)``, where "o(1) hides a factor of the form h^k / |D|^2". Found:

* :func:`two_leaves`: with a fixed t delta is near 1, as F12 says itself; with a random t = theta |D| it is far above
  the footnote already for 20 rows. An element that does not even generalize the removed row changes status, as |D|
  moves.
* :func:`twin_chains`: two chains of elements whose counts differ by one. The row makes the finest published levels of
  the chains differ, which they never do without it. delta approaches ``h / (|D| (1 - theta_0))``, so the hidden term is
  of order h^k / |D| and not h^k / |D|^2, for constant k as well. This is in or above the regime of
  "publish each row with probability 1 / |D|".
* :func:`long_chains`: Example 6.3.1 with the threshold's randomness granted. Outputs in which an element is unusually
  frequent are likelier with the row; the factor is left out where (6.14) counts each configuration once instead of
  ``j_x + 1`` times.

Status: *exact* up to float64 rounding of sums of non-negative terms.

References
----------
F12 (Fouad's thesis, 2012), Definition 6.1.1, Example 6.3.1 and Theorem 6.4.1 with its footnote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.as_published.algorithm6 import Reading, drawing_epsilon, element_law, eta_of_aggregate

MOST_OUTCOMES = 2**24
"""Most multisets that are enumerated."""


@dataclass(frozen=True)
class Divergence:
    """Hockey-stick divergence ``sum_o max(P(o) - e^epsilon Q(o), 0)`` of two output laws, either way round.

    Attributes
    ----------
    with_row, without_row : float
        Of the law with the row from that without it, and the other way round.
    """

    with_row: float
    without_row: float

    @property
    def delta(self) -> float:
        """Least delta for this pair of tables."""
        return max(self.with_row, self.without_row)


def divergence(with_row: FloatArray, without_row: FloatArray, epsilon: float) -> Divergence:
    """Compare two laws over the same outcomes, of any one shape."""
    growth = math.exp(epsilon)
    return Divergence(
        float(np.maximum(with_row - growth * without_row, 0.0).sum()),
        float(np.maximum(without_row - growth * with_row, 0.0).sum()),
    )


def multiset_law(law: FloatArray, rows: int | None = None) -> FloatArray:
    """Return the law of how often each element is drawn, each row drawing at most one.

    Parameters
    ----------
    law : ndarray of float64, shape (n, c)
        Probability of each element for each row; what is missing to 1 is drawing none.
    rows : int, optional
        Range of the result, n by default.

    Returns
    -------
    ndarray of float64, shape (rows + 1,) * c

    Raises
    ------
    InputError
        If there are more than :data:`MOST_OUTCOMES` outcomes.
    """
    n, c = law.shape
    size = (n if rows is None else rows) + 1
    if size**c > MOST_OUTCOMES:
        raise InputError(f"Output multisets are enumerated up to {MOST_OUTCOMES:,}. Got {size:,}^{c}.")
    result = np.zeros((size,) * c)
    result[(0,) * c] = 1.0
    for probabilities in law:
        after = result * (1.0 - probabilities.sum())
        for element in np.flatnonzero(probabilities).tolist():
            up, down = [slice(None)] * c, [slice(None)] * c
            up[element], down[element] = slice(1, None), slice(None, -1)
            after[tuple(up)] += probabilities[element] * result[tuple(down)]
        result = after
    return result


def output_law(
    above: BoolArray,
    *,
    epsilon: float,
    beta: float,
    theta0: float | None = None,
    t: float | None = None,
    reading: Reading = "renormalized",
    rows: int | None = None,
) -> FloatArray:
    """Return the law of Algorithm 6's output multiset, with lambda = 1, Phi = 1 and constant utility.

    Parameters
    ----------
    above : ndarray of bool, shape (m, c)
        Whether each element generalizes each row.
    epsilon, beta : float
        As :func:`~privrisk_spark.kernels.as_published.algorithm6.drawing_epsilon` takes them.
    theta0 : float, optional
        For ``t = theta m``, theta uniform in (theta0, 1); the law is constant between two counts over m, so the
        mixture is exact.
    t : float, optional
        A fixed threshold instead.
    reading : {"renormalized", "lost"}
    rows : int, optional
        As for :func:`multiset_law`.
    """
    m = len(above)
    counts = above.sum(axis=0)
    scores = np.broadcast_to(counts.astype(np.float64), above.shape)
    strength = drawing_epsilon(epsilon, beta, eta_of_aggregate(1.0, 1.0))

    def at(threshold: float) -> FloatArray:
        frequent = np.broadcast_to(counts >= threshold, above.shape)
        law = element_law(scores, above, frequent, epsilon_drawing=strength, rows=m, reading=reading)
        return multiset_law((1.0 - beta) * law, rows)

    if t is not None:
        return at(t)
    if theta0 is None:
        raise InputError("output_law needs theta0 or a fixed t. Got neither.")
    pieces = [share * at(threshold) for share, threshold in _pieces(theta0, m, counts)]
    result: FloatArray = np.sum(pieces, axis=0)
    return result


def removed(
    above: BoolArray,
    *,
    epsilon: float,
    beta: float,
    theta0: float | None = None,
    t: float | None = None,
    reading: Reading = "renormalized",
) -> Divergence:
    """Compare Algorithm 6 on a table and on the table without its first row, by full enumeration.

    Parameters are those of :func:`output_law`.
    """
    with_row, without_row = (
        output_law(part, epsilon=epsilon, beta=beta, theta0=theta0, t=t, reading=reading, rows=len(above))
        for part in (above, above[1:])
    )
    return divergence(with_row, without_row, epsilon)


def two_leaves(rows: int) -> BoolArray:
    """Half of the rows at one leaf, half at another; elements: both leaves and the root. Shape (rows, 3)."""
    above = np.ones((rows, 3), dtype=np.bool_)
    above[rows // 2 :, 0] = False
    above[: rows // 2, 1] = False
    return above


def small_twin_chains(finest: int, next_level: int, others: int = 0) -> BoolArray:
    """Twin chains of two levels, to be enumerated.

    Parameters
    ----------
    finest, next_level : int
        Rows under the two levels of the first chain; the second chain has one less under each.
    others : int
        Rows under the root alone.

    Returns
    -------
    ndarray of bool, shape (2 next_level - 1 + others, 5)
        Elements: levels of the first chain, of the second, the root. The first row is at the first finest level.
    """
    between = next_level - finest
    kinds = [[1, 1, 0, 0, 1], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]
    return np.repeat(np.array(kinds, dtype=np.bool_), [finest, between, finest - 1, between, others], axis=0)


def twin_chains(rows: int, levels: int, *, epsilon: float, beta: float, theta0: float) -> Divergence:
    """Lower bound of delta from the finest published level of two chains.

    A chain of ``levels`` elements has counts ``c_1 < ... < c_h`` spread evenly from a fifth to half of the rows, its
    twin ``c_i - 1``; the removed row is at the bottom of the first. Remaining rows are under the root alone. lambda
    and Phi are 1, utility is constant. Given theta the chains draw independently, so the law of the pair of finest
    published levels is a mixture of products.

    Parameters
    ----------
    rows : int
        ``|D|``; at least ``5 levels``, so that counts differ.
    levels : int
        h.
    """
    if rows < 5 * levels:
        raise InputError(f"Twin chains of {levels} levels need at least {5 * levels} rows. Got {rows}.")
    counts = np.round(np.linspace(rows / 5, rows // 2, levels)).astype(np.int64)
    strength = drawing_epsilon(epsilon, beta, eta_of_aggregate(1.0, 1.0))
    with_row = _pair_law(counts, counts - 1, rows, strength, beta, theta0)
    without_row = _pair_law(counts - 1, counts - 1, rows - 1, strength, beta, theta0)
    return divergence(with_row, without_row, epsilon)


def chain_bound(rows: int, levels: int, theta0: float) -> float:
    """Return ``h / (|D| (1 - theta_0))``, what :func:`twin_chains` tends to."""
    return levels / (rows * (1.0 - theta0))


def footnote(rows: int, generalizations: int) -> float:
    """Return ``h^k / |D|^2``, the term that Theorem 6.4.1 hides in o(1)."""
    return generalizations / rows**2


@dataclass(frozen=True)
class Refutation:
    """Exact figures of :func:`long_chains`.

    Attributes
    ----------
    delta : float
        Least delta at the claimed epsilon.
    bad_outputs : float
        Probability, with the row, of outputs whose likelihood ratio exceeds e^epsilon (Definition 6.1.1 as
        "probabilistic" differential privacy).
    epsilon : float
        Least epsilon at ``delta = 1e-6``; infinite if there is none up to 64.
    """

    delta: float
    bad_outputs: float
    epsilon: float


def long_chains(rows: int, generalizations: int, *, epsilon: float, beta: float) -> Refutation:
    """Compare the outputs on Example 6.3.1, with and without the row that is unlike all others.

    All other rows are at the bottom of the chains, so all their ``h^k`` generalizations are frequent; of the removed
    row's only the root is. L_t is granted to be the same for both tables. lambda = 1, Phi = 1, utility constant. The
    elements below the root are alike, so the numbers of roots and of other elements are sufficient.

    Parameters
    ----------
    generalizations : int
        ``h^k``.
    """
    strength = drawing_epsilon(epsilon, beta, eta_of_aggregate(1.0, 1.0))
    # The root counts the row, the others do not; without it all count the same.
    gap = math.exp(strength / rows)
    without_row = _root_law(rows - 1, 1.0 / generalizations, beta)
    same = _root_law(rows - 1, gap / (gap + generalizations - 1), beta)
    with_row = beta * same
    with_row[1:] += (1.0 - beta) * same[:-1]
    growth = math.exp(epsilon)
    low, high = 0.0, 64.0
    if divergence(with_row, without_row, high).delta > 1e-6:
        low = high = math.inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if divergence(with_row, without_row, middle).delta <= 1e-6 else (middle, high)
    return Refutation(
        delta=divergence(with_row, without_row, epsilon).delta,
        bad_outputs=float(with_row[with_row > growth * without_row].sum()),
        epsilon=high,
    )


def _root_law(rows: int, root: float, beta: float) -> FloatArray:
    """Law of the numbers of roots and of other elements; shape (roots, rows + 1), roots cut where nothing is left."""
    mean = rows * (1.0 - beta) * root
    roots = np.arange(min(rows, math.ceil(mean + 40.0 * math.sqrt(mean) + 60.0)) + 2.0)[:, None]
    others = np.arange(rows + 1.0)[None, :]
    none = rows - roots - others
    inside = none >= 0
    left = np.where(inside, none, 0.0)
    gammaln, xlogy = scipy.special.gammaln, scipy.special.xlogy
    with np.errstate(invalid="ignore"):
        log = (
            gammaln(rows + 1.0) - gammaln(roots + 1.0) - gammaln(others + 1.0) - gammaln(left + 1.0)
            + xlogy(roots, (1.0 - beta) * root) + xlogy(others, (1.0 - beta) * (1.0 - root)) + xlogy(left, beta)
        )  # fmt: skip
    result: FloatArray = np.where(inside, np.exp(log), 0.0)
    return result


def _pieces(theta0: float, rows: int, *counts: LongArray) -> list[tuple[float, float]]:
    """Probability of each interval of theta in which no element changes status, and a threshold in it."""
    at = np.concatenate([np.array([theta0, 1.0]), *[of / rows for of in counts]])
    cuts = np.unique(at[(at >= theta0) & (at <= 1.0)])
    return [
        ((high - low) / (1.0 - theta0), rows * (low + high) / 2)
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]


def _pair_law(
    first: LongArray, second: LongArray, rows: int, strength: float, beta: float, theta0: float
) -> FloatArray:
    """Law of the finest published levels of both chains; the last index stands for none."""
    h = len(first)
    result = np.zeros((h + 1, h + 1))
    for share, threshold in _pieces(theta0, rows, first, second):
        one, other = (_finest_law(counts, rows, strength, beta, threshold) for counts in (first, second))
        result += share * np.outer(one, other)
    return result


def _finest_law(counts: LongArray, rows: int, strength: float, beta: float, threshold: float) -> FloatArray:
    h = len(counts)
    frequent = int((counts < threshold).sum())
    weights = np.exp(strength * counts / rows)
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    bottom = np.maximum(np.arange(h), frequent)[:, None]
    total = sums[h] - sums[bottom] + math.exp(strength)
    # A row with the bottom j draws a level below i with this probability; the rows with that bottom are independent.
    below = np.maximum(sums[None, :] - sums[bottom], 0.0) / total
    at_bottom = np.diff(counts, prepend=0)[:, None]
    none_below = np.exp(scipy.special.xlog1py(at_bottom, -(1.0 - beta) * below).sum(axis=0))
    result: FloatArray = np.append(none_below[:-1] - none_below[1:], none_below[-1])
    return result
