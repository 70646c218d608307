"""How many sample uniques are population uniques, by a log-linear model of the cells: τ₁ and τ₂.

Cell ``j`` of the contingency table of the quasi-identifiers has ``F_j`` people, a Poisson number of mean ``λ_j``, and
``f_j`` of them are in a sample of the share ``π``, so that ``f_j`` is Poisson of mean ``μ_j = π λ_j`` and ``F_j - f_j``
of ``(1 - π) λ_j``, independently. ``ln μ_j`` is a sum of effects of single attributes (``main effects``) or of pairs
of them too (``two-way``), fitted by maximum likelihood. Over the sample uniques, with ``d_j = μ̂_j (1 - π) / π``:

    τ₁ = Σ P(F_j = 1 | f_j = 1) = Σ exp(-d_j),      τ₂ = Σ E[1/F_j | f_j = 1] = Σ (1 - exp(-d_j)) / d_j:

sample uniques that are expected to be alone in the population, and matches of sample uniques that are expected to be
right.

Source: Skinner and Holmes, "Estimating the re-identification risk per record in microdata", Journal of Official
Statistics 14, 1998; Elamir and Skinner, ibid. 22, 2006; Skinner and Shlomo, "Assessing identification risk in survey
microdata using log-linear models", JASA 103, 2008. Fitting: Deming and Stephan 1940.

Status: *heuristic*: main effects underfit, and tell too many uniques of the population; two-way effects may overfit,
and tell too few (Skinner and Shlomo 2008). The two together bracket what the model can say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Effects = Literal["main effects", "two-way"]

MOST_CELLS = 2**18
"""Cells of a contingency table that is fitted by iteration."""

_ROUNDS, _CLOSE = 200, 1e-9


@dataclass(frozen=True)
class UniquesAtRisk:
    """What a model says of the sample uniques.

    Attributes
    ----------
    tau1, tau2 : float
        In ``0 … uniques``.
    deviation : float
        Standard deviation, under the model as it is fitted, of how many are population unique: uniques are so
        independently of each other.
    """

    uniques: int
    tau1: float
    tau2: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """About 95 % of the numbers of population uniques that the model, as it is fitted, would give."""
        half = 1.959963984540054 * self.deviation
        return max(0.0, self.tau1 - half), min(float(self.uniques), self.tau1 + half)


def uniques_at_risk(nodes: IntArray, counts: LongArray, fraction: float, effects: Effects) -> UniquesAtRisk | None:
    """Estimate τ₁ and τ₂.

    Parameters
    ----------
    nodes : ndarray of int32, shape (m, k)
        Different combinations of codes in the sample, k at least 1.
    counts : ndarray of int64, shape (m,)
        Records of each, at least 1.
    fraction : float
        ``π`` in (0, 1].
    effects : {"main effects", "two-way"}

    Returns
    -------
    UniquesAtRisk or None
        None if the table of two-way effects has more than :data:`MOST_CELLS` cells.

    Raises
    ------
    InputError
        If the shapes do not fit, or a number is out of range.
    """
    if nodes.ndim != 2 or counts.shape != nodes.shape[:1] or not nodes.shape[1]:
        raise InputError(f"There must be one count per combination. Got shapes {nodes.shape} and {counts.shape}.")
    if not 0 < fraction <= 1:
        raise InputError(f"A sampling fraction must be above 0 and at most 1. Got {fraction!r}.")
    if len(counts) and counts.min() < 1:
        raise InputError(f"Counts of combinations must be at least 1. Got {counts.min()}.")
    expected = fitted(nodes, counts, effects)
    if expected is None:
        return None
    others = np.sort(expected[counts == 1] * (1 - fraction) / fraction)
    alone = np.exp(-others)
    inverse = np.where(others > 0, -np.expm1(-others) / np.where(others > 0, others, 1.0), 1.0)
    return UniquesAtRisk(
        len(others),
        math.fsum(alone.tolist()),
        math.fsum(inverse.tolist()),
        math.sqrt(math.fsum((alone * (1 - alone)).tolist())),
    )


def fitted(nodes: IntArray, counts: LongArray, effects: Effects) -> FloatArray | None:
    """``μ̂`` of each combination; parameters as for :func:`uniques_at_risk`.

    Main effects have the closed form ``n Π_i n_i/n`` of independence. Two-way effects are fitted by iterative
    proportional fitting to the margins of all pairs, until no margin is off by more than 1e-9 of the records, or for
    200 rounds: in sparse tables the maximum may lie where cells vanish, which they do slowly.

    Returns
    -------
    ndarray of float64, shape (m,), or None
    """
    n, k = int(counts.sum()), nodes.shape[1]
    if not len(counts):
        return np.zeros(0)
    codes, shape = [], []
    for i in range(k):
        first, code = distinct_rows([nodes[:, i]])
        codes.append(code)
        shape.append(len(first))
    if effects == "main effects" or k == 1:
        result = np.full(len(counts), float(n))
        for code, values in zip(codes, shape, strict=True):
            margin = np.zeros(values, dtype=np.int64)
            np.add.at(margin, code, counts)
            result *= margin[code] / n
        return result
    if math.prod(shape) > MOST_CELLS:
        return None
    observed = np.zeros(shape)
    observed[tuple(codes)] = counts
    cells = np.full(shape, n / observed.size)
    pairs = [tuple(i for i in range(k) if i not in pair) for pair in combinations(range(k), 2)]
    targets = [observed.sum(axis=others, keepdims=True) for others in pairs]
    for _ in range(_ROUNDS):
        off = 0.0
        for others, target in zip(pairs, targets, strict=True):
            here = cells.sum(axis=others, keepdims=True)
            off = max(off, float(np.abs(here - target).max()))
            cells *= np.divide(target, here, out=np.zeros_like(target), where=here > 0)
        if off <= _CLOSE * n:
            break
    found: FloatArray = cells[tuple(codes)]
    return found
