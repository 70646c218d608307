"""Two more tables on which Fouad's (2012) Algorithm 6 fails: one to be enumerated, and his Example 6.3.1.

Example 6.3.1 has the threshold's randomness granted. Outputs in which an element is unusually frequent are likelier
with the row; the factor is left out where (6.14) counts each configuration once instead of ``j_x + 1`` times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from privrisk_spark.kernels.as_published.algorithm6 import drawing_epsilon, eta_of_aggregate
from privrisk_spark.kernels.as_published.counterexamples import divergence

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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
    rows : int
    generalizations : int
        ``h^k``.
    epsilon, beta : float
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
    with np.errstate(invalid="ignore"):
        log = (
            gammaln(rows + 1.0) - gammaln(roots + 1.0) - gammaln(others + 1.0) - gammaln(left + 1.0)
            + xlogy(roots, (1.0 - beta) * root) + xlogy(others, (1.0 - beta) * (1.0 - root)) + xlogy(left, beta)
        )  # fmt: skip
    result: FloatArray = np.where(inside, np.exp(log), 0.0)
    return result
