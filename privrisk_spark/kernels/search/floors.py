"""What least utilities would give, and which of them hides nearly all records among enough others.

Every record is decided by the search of a release (:mod:`privrisk_spark.kernels.search.table_search`), against the
records given themselves; of many, only the first are decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide


@dataclass(frozen=True, eq=False)
class Floored:
    """Decisions at one floor, in figures; means are over records.

    Attributes
    ----------
    few_alike : float
        Share of the records that are consistent with fewer than asked.
    utility : float
        Mean utility.
    infeasible : float
        Share of the records that cannot reach the floor.
    suppressed : ndarray of float64, shape (k,)
        Share of the records in which the attribute is suppressed though it is there.
    """

    floor: float
    mean_before: float
    mean_risk: float
    greatest_risk: float
    few_alike: float
    utility: float
    infeasible: float
    suppressed: FloatArray


class FloorSearch:
    """Records that are decided at several floors, against all that are given.

    Parameters
    ----------
    axes : sequence of k Axis
    codes : ndarray of int32, shape (n, k)
        Leaf codes, ⊥ where a value is missing; at least one record.
    alike : int
        Records that each is to be consistent with, itself among them.
    decided : int
        Records that are decided, the first ones; at least one. All are counted.
    """

    def __init__(
        self, disclosure: Disclosure, axes: Sequence[Axis], codes: IntArray, *, alike: int, decided: int
    ) -> None:
        self.disclosure, self.alike = disclosure, alike
        counted, rows = _distinct(codes)
        bottom = np.array([len(axis.ancestor) - 1 for axis in axes])
        root = np.array([axis.root for axis in axes], dtype=np.int32)
        self.counts = SortedCounts.group(axes, np.where(counted == bottom, root, counted).astype(np.int32), rows)
        self.codes, self.rows = _distinct(codes[:decided])

    def at(self, floor: float) -> Floored:
        """Decide all records at a floor.

        Parameters
        ----------
        floor : float
            Least utility.
        """
        found = decide(self.disclosure, Search(LeastRisk(floor)), self.counts, self.codes)
        weight = self.rows / self.rows.sum()
        depth = np.column_stack([of[codes] for of, codes in zip(self.disclosure.code_depth, self.codes.T, strict=True)])
        gone = (depth > 0) & (found.levels == depth)
        there = (weight[:, None] * (depth > 0)).sum(axis=0)
        return Floored(
            floor=floor,
            mean_before=float(weight @ found.risk_before),
            mean_risk=float(weight @ found.risk),
            greatest_risk=float(found.risk.max()),
            few_alike=float(weight @ (found.consistent < self.alike)),
            utility=float(weight @ found.utility),
            infeasible=float(weight @ ~found.feasible),
            suppressed=(weight[:, None] * gone).sum(axis=0) / np.where(there > 0, there, 1.0),
        )


def _distinct(codes: IntArray) -> tuple[IntArray, LongArray]:
    first, member = distinct_rows(list(codes.T))
    return codes[first], np.bincount(member).astype(np.int64)


def highest_floor(at: Callable[[float], Floored], floors: Sequence[float], *, few: float) -> int | None:
    """Return the place of the highest floor that leaves few records without enough alike, by bisection.

    Parameters
    ----------
    at : callable
        Decides at a floor.
    floors : sequence of float
        Ascending. The lower the floor, the fewer records stand out; where that fails by a tie, a lower floor than the
        highest may be returned.
    few : float
        Most records without enough alike, as a share.

    Returns
    -------
    int or None
        None if not even the first does.
    """
    low, high = -1, len(floors)  # floors up to low do, from high on they do not
    while high - low > 1:
        middle = (low + high) // 2
        if at(floors[middle]).few_alike <= few:
            low = middle
        else:
            high = middle
    return None if low < 0 else low
