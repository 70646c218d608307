"""Linear relaxation of the least risk with threshold rounding (F12 §5.2.3, Algorithm 5). No proven ratio.

With ``ξ_{i,s}`` in [0, 1] for "``x_i >= s``" and ``ξ_{i,1} >= ξ_{i,2} >= ...`` the extension of ``ρ`` that is linear
between nested sets is ``Σ_g c_g min {ξ_{i,g_i} : g_i > 0}``, and those of u and Φ are linear. F12 maximizes it for each
of a geometric series of bounds τ on Φ (5.5). Here the ratio ρ/Φ is maximized itself, subject to ``u >= c``, as one
linear program: the substitution of Charnes and Cooper (1962) scales the variables so that Φ = 1. Its value bounds
``1/r`` of every level vector with ``u(x) >= c``.

Rounding by a uniform threshold (F12's ``RR``) can return only the sets ``{v : ξ_v >= θ}`` for the distinct values θ of
ξ, so all of them are tried and the best taken: never worse than a sample, and not random. ``x = 0``, which is feasible
whenever anything is, is a candidate as well.

F12 Theorem 5.2.3 is false: it bounds the expectation of ρ over all samples, but returns a sample conditioned on
``u >= σ₁ c`` and ``Φ <= σ₂ τ``, which rejects the general ones. Two attributes of height 1, weights and utilities
(1, 0), rows (0,0), (1,0) and twice (1,1), c = 1: the only optimum of the relaxation is ξ = (1/2, 1/2), whose thresholds
give nothing or everything; everything has u = 0, so 1/r = 1/2 is returned where (1, 0) has 2; with 1, M and 2M rows the
ratio is unbounded. No rounding of this program can repair it. Branch and bound is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk, preferred
from privrisk_spark.kernels.search.evaluation import Evaluation
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

_SOLVER_TOLERANCE = 1e-6
"""Relative slack of the linear program's value as a bound, and of its variables as thresholds."""


def approximate(lattice: RecordLattice, objective: LeastRisk, *, share: float = 1.0) -> Answer | None:
    """Best threshold set of the relaxation.

    Parameters
    ----------
    lattice : RecordLattice
        Of model I or II; weights must be finite.
    share : float
        ``σ₁`` in (0, 1]: a set is accepted from ``u >= σ₁ c`` on. 1 demands the floor itself.

    Returns
    -------
    Answer or None
        Heuristic; ``visited`` counts the sets tried. ``bound`` is the relaxation's, of level vectors with ``u >= c``; a
        set with less utility may be below it. It is 0 where the relaxation reaches Φ = 0. None if nothing is feasible.

    Raises
    ------
    InputError
        For model III, whose risk is not a ratio, several dictionaries, a sensitivity that is not a sum of finite
        weights, or a share out of range.
    """
    if lattice.model == "III":
        raise InputError("approximate: the relaxation needs a risk that is a ratio, model I or II. Got model III.")
    if not 0 < share <= 1:
        raise InputError(f"approximate: share must be in (0, 1]. Got {share}.")
    lattice.plain("approximate")
    if not all(np.isfinite(w).all() for w in lattice.weights):
        raise InputError("decision.method: 'approximate' takes finite weights alone. Got infinity; use a large weight.")
    evaluation = Evaluation(lattice)
    bottom = np.zeros((1, lattice.k), dtype=np.int64)
    if not objective.admits(np.zeros(1), evaluation.utility(bottom))[0]:
        return None
    xi, least = _relaxation(lattice, objective.floor)
    sets = np.unique(np.concatenate([bottom, _threshold_sets(xi, lattice.heights)]), axis=0)
    # A share of a negative floor would ask for more.
    accepted = LeastRisk(min(objective.floor, share * objective.floor))
    best = preferred(accepted, None, sets, evaluation.risk(sets), evaluation.utility(sets))
    assert best is not None
    chosen = np.array(best[2], dtype=np.int64)
    return answer(lattice, chosen, objective=lattice.risk(chosen), bound=least, visited=len(sets), proved=False)


def _threshold_sets(xi: FloatArray, heights: LongArray) -> LongArray:
    """Level vectors of ``{v : ξ_v >= θ}`` for every distinct θ > 0, shape (n, k)."""
    values = np.unique(xi[xi > _SOLVER_TOLERANCE])
    of_attribute = np.split(xi, np.cumsum(heights)[:-1])
    sets = [[int((part >= theta - _SOLVER_TOLERANCE).sum()) for part in of_attribute] for theta in values]
    return np.array(sets, dtype=np.int64).reshape(-1, len(heights))


def _relaxation(lattice: RecordLattice, floor: float) -> tuple[FloatArray, float]:
    """Optimal ξ, shape (Σ h_i,), and the least risk it leaves possible."""
    heights = lattice.heights
    n = int(heights.sum())
    if not n:
        return np.zeros(0), lattice.risk(np.zeros(lattice.k, dtype=np.int64)) * (1 - _SOLVER_TOLERANCE)
    start = np.cumsum(heights) - heights
    empty = np.zeros(0)
    lost = np.concatenate([-np.diff(d) if len(d) > 1 else empty for d in lattice.utilities])
    saved = np.concatenate([-np.diff(w) if len(w) > 1 else empty for w in lattice.weights])
    sensitivity = sum(float(w[0]) for w in lattice.weights)
    if lattice.model == "II":
        saved, sensitivity = np.zeros(n), 1.0
    utility = sum(float(d[0]) for d in lattice.utilities)
    m = len(lattice.vectors)
    # Variables: t, t ξ, t min_g; every row "A z <= 0" but the one that normalizes.
    t, first_row = 0, 1 + n
    rows: list[LongArray] = []
    columns: list[LongArray] = []
    values: list[FloatArray] = []
    count = 0

    def at_most(smaller: LongArray, larger: LongArray) -> None:
        nonlocal count
        number = count + np.arange(len(smaller))
        rows.extend([number, number])
        columns.extend([smaller, larger])
        values.extend([np.ones(len(smaller)), -np.ones(len(smaller))])
        count += len(smaller)

    # ξ_{i,s+1} <= ξ_{i,s}, and ξ_{i,1} <= 1.
    above = np.arange(n)
    is_first = np.isin(above, start[heights > 0])
    at_most(1 + above, np.where(is_first, t, above))
    row, attribute = np.nonzero(lattice.vectors)
    level = lattice.vectors[row, attribute].astype(np.int64)
    at_most(first_row + row, 1 + start[attribute] + level - 1)
    everywhere = np.flatnonzero(~lattice.vectors.any(axis=1))
    at_most(first_row + everywhere, np.full(len(everywhere), t))
    # c t - (u(0) t - Σ lost ξ) <= 0.
    rows.append(np.full(1 + n, count))
    columns.append(np.arange(1 + n))
    values.append(np.concatenate([[floor - utility], lost]))
    count += 1
    # The stubs of linprog know no sparse matrix.
    matrix: Any = scipy.sparse.coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(count, 1 + n + m)
    ).tocsr()
    scale = sensitivity if sensitivity > 0 else 1.0
    normal = np.concatenate([[sensitivity], -saved, np.zeros(m)]) / scale
    gain = np.concatenate([np.zeros(1 + n), lattice.counts.astype(np.float64)])
    if sensitivity > 0:
        found: Any = scipy.optimize.linprog(
            -gain, A_ub=matrix, b_ub=np.zeros(count), A_eq=normal[None, :], b_eq=[1.0], bounds=(0, None), method="highs"
        )
        if found.status == 0:
            return found.x[1 : 1 + n] / found.x[t], scale / -found.fun * (1 - _SOLVER_TOLERANCE)
    # Φ = 0 is within reach: least Φ at t = 1, and of these the most rows.
    pinned = np.zeros(1 + n + m)
    pinned[t] = 1.0
    found = scipy.optimize.linprog(
        normal - gain * 1e-6 / lattice.dictionary_rows[0],
        A_ub=matrix, b_ub=np.zeros(count), A_eq=pinned[None, :], b_eq=[1.0], bounds=(0, None), method="highs",
    )  # fmt: skip
    if found.status:
        raise InternalError(f"the linear relaxation was not solved: {found.message}")
    return found.x[1 : 1 + n], 0.0
