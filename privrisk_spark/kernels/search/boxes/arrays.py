"""One record's lattice and objective as arrays for the search over boxes; the risk of a level vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray, WordArray
from privrisk_spark.kernels.disclosure.objective import GreatestUtility, LeastPenalized, LeastRisk, Objective
from privrisk_spark.kernels.search.record import RecordLattice
from privrisk_spark.kernels.search.row_sets import RowSets, count, row_sets, rows_within
from privrisk_spark.machine_code import compiled

LEAST_RISK, GREATEST_UTILITY, LEAST_PENALIZED = 0, 1, 2


_SLOPES = 160
"""Most slopes tabulated. Changes boxes visited, not a proved result."""

_UNITS = 4096
"""Most units of utility a lattice may lose to be looked at by dynamic programming."""


class Record(NamedTuple):
    """One record's lattice, objective and tables.

    Attributes
    ----------
    weights, utilities : ndarray of float64, shape (k, L)
        Finite from ``bottom`` on.
    bottom, heights : ndarray of int64, shape (k,)
    dictionary_rows, prior : ndarray of float64, shape (D,)
    worst : bool
        The largest over the dictionaries instead of the expectation.
    surprisal : bool
        Model III.
    base : float
        Added to the sum of weights.
    exponential : bool
        Φ is the exponential of the sum.
    slopes : ndarray of float64, shape (n_slopes,)
        Ascending multipliers of utility; the first is 0.
    cheapest : ndarray of int8, shape (k, L, L, n_slopes)
        Level in [lo, hi] of least ``w - slope · d``, the lowest of equals.
    steps : ndarray of int64, shape (k, L), or of shape (k, 0)
        Utility lost from level 0 on in whole units, where utilities are multiples of one.
    constraint : float
        Floor, ceiling, or trade-off.
    """

    weights: FloatArray
    utilities: FloatArray
    bottom: LongArray
    heights: LongArray
    rows: RowSets
    dictionary_rows: FloatArray
    prior: FloatArray
    worst: bool
    surprisal: bool
    base: float
    exponential: bool
    slopes: FloatArray
    cheapest: npt.NDArray[np.int8]
    steps: LongArray
    unit: float
    objective: int
    constraint: float


def record_of(lattice: RecordLattice, objective: Objective) -> Record | None:
    """Put a record's lattice into arrays.

    Parameters
    ----------
    objective : LeastRisk or GreatestUtility or LeastPenalized

    Returns
    -------
    Record or None
        None where every level vector has infinite sensitivity.

    Raises
    ------
    InputError
        If a weight is infinite in model III.
    """
    k, heights = lattice.k, lattice.heights
    levels = int(heights.max(initial=0)) + 1
    weights, utilities = np.zeros((k, levels)), np.zeros((k, levels))
    for i, (w, d) in enumerate(zip(lattice.weights, lattice.utilities, strict=True)):
        # Model II: the sensitivity is 1, whatever is disclosed.
        weights[i, : len(w)] = 0.0 if lattice.model == "II" else w
        utilities[i, : len(d)] = d
    infinite = np.isinf(weights)
    if infinite.any() and lattice.model == "III":
        raise InputError(
            "risk.sensitivity: a search over one record's lattice takes no infinite weights in model 'III'; use a "
            "large weight, or model 'I'."
        )
    bottom = infinite.sum(axis=1).astype(np.int64)
    if (bottom > heights).any():
        return None
    weights[infinite] = 0.0
    slopes = _slopes(weights, utilities, bottom, heights)
    steps, unit = _steps(utilities, heights)
    match objective:
        case LeastRisk(constraint):
            kind = LEAST_RISK
        case GreatestUtility(constraint):
            kind = GREATEST_UTILITY
        case LeastPenalized(constraint):
            kind = LEAST_PENALIZED
    return Record(
        weights=weights,
        utilities=utilities,
        bottom=bottom,
        heights=heights,
        rows=row_sets(lattice, floor=objective.floor if isinstance(objective, LeastRisk) else -np.inf),
        dictionary_rows=np.array(lattice.dictionary_rows, dtype=np.float64),
        prior=np.array(lattice.prior if lattice.rule == "bayes" else [1.0] * len(lattice.multiplicities)),
        worst=lattice.rule == "minimax",
        surprisal=lattice.model == "III",
        base=1.0 if lattice.model == "II" else 0.0,
        exponential=lattice.exponential and lattice.model != "II",
        slopes=slopes,
        cheapest=cheapest_levels(weights, utilities, bottom, heights, slopes),
        steps=steps,
        unit=unit,
        objective=kind,
        constraint=float(constraint),
    )


def _slopes(weights: FloatArray, utilities: FloatArray, bottom: LongArray, heights: LongArray) -> FloatArray:
    """0 and the slopes at which the cheapest level may change, ascending; some of them where there are very many."""
    found = [np.zeros(1)]
    for w, d, low, high in zip(weights, utilities, bottom.tolist(), heights.tolist(), strict=True):
        a, b = np.triu_indices(high - low + 1, 1)
        saved, lost = w[low + a] - w[low + b], d[low + a] - d[low + b]
        use = (saved > 0) & (lost > 0)
        found.append(saved[use] / lost[use])
    slopes: FloatArray = np.unique(np.concatenate(found))
    slopes = slopes[np.isfinite(slopes)]
    if len(slopes) > _SLOPES:
        slopes = slopes[np.unique(np.linspace(0, len(slopes) - 1, _SLOPES).round().astype(np.int64))]
    return slopes


def _steps(utilities: FloatArray, heights: LongArray) -> tuple[LongArray, float]:
    """Units of utility lost at each level, and the unit; no levels where there is none that all are multiples of."""
    inside = np.arange(utilities.shape[1]) <= heights[:, None]
    lost = np.where(inside, utilities[:, :1] - utilities, 0.0)
    for unit in (1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01):
        whole = np.round(lost / unit)
        # Two utilities count as equal within the tolerance: that must be far below a unit, and far above what the
        # multiples are wrong by.
        exact = (np.abs(lost - whole * unit) <= 1e-14 * np.maximum(1.0, lost)).all()
        if exact and whole.max(axis=1).sum() <= _UNITS and utilities[:, 0].sum() <= 1e9 * unit:
            return whole.astype(np.int64), unit
    return np.zeros((len(utilities), 0), dtype=np.int64), 1.0


@compiled
def cheapest_levels(
    weights: FloatArray, utilities: FloatArray, bottom: LongArray, heights: LongArray, slopes: FloatArray
) -> LevelArray:
    """Level of least ``w - slope · d`` between any two levels, the lowest of equals; int8 (k, L, L, n_slopes)."""
    k, levels = weights.shape
    cheapest = np.zeros((k, levels, levels, len(slopes)), dtype=np.int8)
    for i in range(k):
        for lo in range(bottom[i], heights[i] + 1):
            for slope in range(len(slopes)):
                level = lo
                least = weights[i, lo] - slopes[slope] * utilities[i, lo]
                for hi in range(lo, heights[i] + 1):
                    value = weights[i, hi] - slopes[slope] * utilities[i, hi]
                    if value < least:
                        least, level = value, hi
                    cheapest[i, lo, hi, slope] = level
    return cheapest


@compiled
def sensitivity_of(record: Record, total: float) -> float:
    """Φ of a sum of weights."""
    return np.exp(total) if record.exponential else record.base + total


@compiled
def sum_of(values: FloatArray, levels: LongArray) -> float:
    """Sum over attributes, from the first to the last."""
    total = 0.0
    for i in range(len(levels)):
        total += values[i, levels[i]]
    return total


@compiled
def factor_of(record: Record, rho: LongArray) -> float:
    """Risk for Φ = 1."""
    combined = 0.0
    for d in range(len(rho)):
        if rho[d] == 0:
            # No level vector that is asked for has none.
            one = np.log(record.dictionary_rows[d]) if record.surprisal else 1.0
        elif record.surprisal:
            one = np.log(record.dictionary_rows[d] / rho[d])
        else:
            one = 1.0 / rho[d]
        combined = max(combined, one) if record.worst else combined + record.prior[d] * one
    return combined


@compiled
def risk_of(record: Record, total: float, factor: float) -> float:
    """Risk of a sum of weights, whose Φ may be too large for a float, and the risk for Φ = 1; ``0 · inf`` is 0."""
    return sensitivity_of(record, total) * factor if factor > 0 else 0.0


@compiled
def risk_at(record: Record, levels: LongArray, rows: WordArray, rho: LongArray) -> float:
    """Risk of a level vector; ``rows`` and ``rho`` are filled."""
    rows_within(record.rows, levels, rows)
    count(record.rows, rows, rho)
    return risk_of(record, sum_of(record.weights, levels), factor_of(record, rho))
