"""The programs of T20: the fewest records that fail, and its linear relaxation, over the constraints at hand.

    minimize Σ s_i K_i   subject to   C_θ(d(a_i, b_j)) - C_θ(d(a_i, b_i)) + M_i K_i >= ε   for all j ≠ i,   K binary

with the stake ``s_i`` of each record, a margin ``ε`` instead of ``> 0``, and ``M_i`` the least number that makes the
constraint void. The relaxation has ``ξ_i >= 0`` instead of ``M_i K_i``: a hinge loss. Both are solved by HiGHS, but the
relaxation of bilinear forms, which is no linear program.

Status: where HiGHS ends, its bound is *proved* to its tolerances (1e-6), for these constraints; a program with fewer
constraints fails no more records, so that it is a bound for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Bilinear
from privrisk_spark.extensions.attack.kernels.learned.families import BilinearFamily, Family
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray

__all__ = ["Constraints", "Solved", "fewest_failures", "greatest_margin", "least_hinge"]

_STEPS = 400
"""Subgradients that are followed where the parameters are no polytope."""

_TIMES, _MISSED = 6, 1e-7
"""Times a part of the constraints is tried before all are taken, and what counts as missed."""


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rows in the way of records.

    Attributes
    ----------
    record : ndarray of int64, shape (c,)
        Position of the record among those with a stake.
    gaps : sparse array, shape (c, f)
        Features of the row less those of the record's own.
    least : ndarray of float64, shape (c,)
        The least a gap can be, whatever the parameters.
    cuts : ndarray of float64, shape (d, f)
        Rows whose product with the parameters must be at least 0, beside what the family has of itself.
    """

    family: Family
    record: LongArray
    gaps: Any
    least: FloatArray
    cuts: FloatArray

    def __len__(self) -> int:
        return len(self.record)


@dataclass(frozen=True, eq=False)
class Solved:
    """Solution of a program.

    Attributes
    ----------
    parameters : ndarray of float64, shape (f,), or None
        None if the solver found none before it was stopped.
    value : float
        Of the objective; infinite if there is no solution.
    bound : float
        No parameters have less.
    slack : ndarray of float64, shape (m,)
        ξ, or K.
    """

    parameters: FloatArray | None
    value: float
    bound: float
    slack: FloatArray


def least_hinge(constraints: Constraints, stakes: FloatArray, margin: float, start: FloatArray | None = None) -> Solved:
    """Minimize ``Σ s_i ξ_i`` with ``ξ_i >= ε - gap_ij · θ``.

    Over a polytope it is a linear program, and the solution optimal. For bilinear forms projected subgradients are
    followed for a fixed number of steps, and the best point on the way is returned, with no bound. Both begin with the
    constraints that matter at a start, and take more as they are missed.

    Parameters
    ----------
    constraints : Constraints
        At least one of a record with a stake.
    stakes : ndarray of float64, shape (m,)
        At least 0; constraints of records without a stake are left out.
    start : ndarray of float64, shape (f,), optional
        Parameters of the family that may be near.

    Raises
    ------
    InternalError
        If HiGHS does not solve it, though it always has a solution.
    """
    kept = np.flatnonzero(stakes[constraints.record] > 0)
    kept = kept[np.argsort(constraints.record[kept], kind="stable")]
    record, gaps = constraints.record[kept], constraints.gaps[kept]
    slack = np.full(len(stakes), -np.inf)
    held = np.ones(len(kept), dtype=np.bool_)
    if start is not None:
        short = margin - gaps @ start
        np.maximum.at(slack, record, short)
        held = (short > -margin) & (short >= slack[record] - margin)
    family = constraints.family
    for last in (*[False] * _TIMES, True):
        if last:
            held[:] = True
        part = record[held], gaps[held]
        if isinstance(family, BilinearFamily):
            parameters = _descended(family, *part, stakes, margin, start)
        else:
            parameters = _solved(family, *part, stakes, margin)
        short = margin - gaps @ parameters
        among = np.zeros(len(stakes))
        np.maximum.at(among, record[held], short[held])
        missed = short > among[record] + _MISSED
        if last or not missed.any():
            break
        held |= missed
    np.maximum.at(among, record, short)
    value = float(stakes @ among)
    return Solved(parameters, value, 0.0 if isinstance(family, BilinearFamily) else value, among)


def _solved(family: Family, record: LongArray, gaps: Any, stakes: FloatArray, margin: float) -> FloatArray:
    """Parameters of the least hinge loss: a linear program."""
    f, m, c = gaps.shape[1], len(stakes), len(record)
    matrix, least, most = family.rows()
    slacks, none = (
        scipy.sparse.csr_array((np.ones(c), (np.arange(c), record)), shape=(c, m)),
        scipy.sparse.coo_array((len(least), m)),
    )
    low, high = family.limits()
    # The stubs of linprog know no sparse matrix.
    given: Any = {
        "A_ub": scipy.sparse.vstack(
            [
                scipy.sparse.hstack([-gaps, -slacks]),
                scipy.sparse.hstack([-matrix, none]),
                scipy.sparse.hstack([matrix, none]),
            ]
        ).tocsr(),
        "b_ub": np.concatenate([np.full(c, -margin), -least, most]),
        "bounds": np.column_stack([np.concatenate([low, np.zeros(m)]), np.concatenate([high, np.full(m, np.inf)])]),
    }
    for method in ("highs-ipm", "highs-ds"):
        found: Any = scipy.optimize.linprog(np.concatenate([np.zeros(f), stakes]), method=method, **given)
        if found.status == 0:
            return np.asarray(found.x[:f])
    raise InternalError(f"record linkage: the linear program was not solved: {found.message}")


def _descended(
    family: BilinearFamily, record: LongArray, gaps: Any, stakes: FloatArray, margin: float, start: FloatArray | None
) -> FloatArray:
    """Best of projected subgradients of the hinge loss, with steps that fall as one over the root of their number."""
    mean = family.parameters(Bilinear(np.eye(family.n) / family.n))
    parameters = found = mean if start is None else start
    best, dense = np.inf, gaps.toarray()
    those, first, size = np.unique(record, return_index=True, return_counts=True)
    for step in range(_STEPS if len(record) else 0):
        short = margin - dense @ parameters
        most = np.maximum.reduceat(short, first)
        value = float(stakes[those] @ np.maximum(most, 0.0))
        if value < best:
            best, found = value, parameters
        # Of each record that falls short, the mean of the constraints by which it does so most.
        worst = (short >= np.repeat(most, size)) & (short > 0)
        share = worst / np.repeat(np.maximum(np.add.reduceat(worst.astype(np.int64), first), 1), size)
        slope = -(np.repeat(stakes[those], size) * share) @ dense
        length = float(np.linalg.norm(slope))
        if not length:
            break
        parameters = family.moved(parameters, -slope / (2 * length * np.sqrt(step + 1.0)))
    return found


def fewest_failures(
    constraints: Constraints, stakes: FloatArray, margin: float, *, at_most: float, nodes: int, seconds: float
) -> Solved:
    """Minimize ``Σ s_i K_i``: a mixed-integer program.

    Parameters
    ----------
    stakes : ndarray of float64, shape (m,)
        At least 0.
    at_most : float
        Value of a solution that is known: none worse is looked for.
    nodes : int
        Of branch and bound, at most.
    seconds : float
        At most.
    """
    f, m = constraints.gaps.shape[1], len(stakes)
    every = np.arange(len(constraints))
    void = np.maximum(margin - constraints.least, 0.0)
    failing = scipy.sparse.csr_array((void, (every, constraints.record)), shape=(len(every), m))
    rows = _rows(constraints, every, failing, margin)
    cost = np.concatenate([np.zeros(f), stakes])
    rows.append(
        scipy.optimize.LinearConstraint(scipy.sparse.csr_array(cost[None, :]), -np.inf, at_most * (1 + 1e-9) + 1e-9)
    )
    low, high = constraints.family.limits()
    found = scipy.optimize.milp(
        cost,
        integrality=np.concatenate([np.zeros(f), np.ones(m)]),
        bounds=scipy.optimize.Bounds(np.concatenate([low, np.zeros(m)]), np.concatenate([high, np.ones(m)])),
        constraints=rows,
        options={"node_limit": nodes, "time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if found.status == 2:  # rounding alone keeps it from what is known
        return Solved(None, np.inf, at_most, np.zeros(m))
    bound = 0.0 if found.mip_dual_bound is None else max(float(found.mip_dual_bound), 0.0)
    if found.x is None:
        return Solved(None, np.inf, bound, np.zeros(m))
    return Solved(found.x[:f], float(found.fun), bound, found.x[f:])


def greatest_margin(constraints: Constraints, held: BoolArray) -> FloatArray | None:
    """Find the parameters by which the rows in the way of some records are farthest beyond their own; a linear program.

    Parameters
    ----------
    held : ndarray of bool, shape (m,)
        Records whose constraints are to be met.

    Returns
    -------
    ndarray of float64, shape (f,), or None
        None if the solver finds none.
    """
    kept = np.flatnonzero(held[constraints.record])
    beside = scipy.sparse.csr_array(-np.ones((len(kept), 1)))
    rows = _rows(constraints, kept, beside, 0.0)
    f = constraints.gaps.shape[1]
    low, high = constraints.family.limits()
    bounds = scipy.optimize.Bounds(np.append(low, -1.0), np.append(high, 1.0))
    found = scipy.optimize.milp(np.append(np.zeros(f), -1.0), bounds=bounds, constraints=rows)
    return None if found.x is None else np.asarray(found.x[:f])


def _rows(
    constraints: Constraints, kept: LongArray, beside: Any, margin: float
) -> list[scipy.optimize.LinearConstraint]:
    """Constraints of the rows in the way, with the columns of the records beside them, and of the family."""
    m = beside.shape[1]
    matrix, low, high = constraints.family.rows()
    own = scipy.sparse.vstack([matrix, scipy.sparse.csr_array(constraints.cuts)]) if len(constraints.cuts) else matrix
    none = scipy.sparse.coo_array((own.shape[0], m))
    more = len(constraints.cuts)
    return [
        scipy.optimize.LinearConstraint(scipy.sparse.hstack([constraints.gaps[kept], beside]).tocsr(), margin, np.inf),
        scipy.optimize.LinearConstraint(
            scipy.sparse.hstack([own, none]).tocsr(),
            np.concatenate([low, np.zeros(more)]),
            np.concatenate([high, np.full(more, np.inf)]),
        ),
    ]
