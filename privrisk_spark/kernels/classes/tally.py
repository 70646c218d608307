"""Tallies of one number per equivalence class: what is achieved, what fails, and the worst classes.

Every Boolean privacy model here gives each class one number and asks that none is on the wrong side of a bound. Numbers
are functions of their class alone; a tally holds extremes, integers, an exact sum and the first few classes in a total
order, so merging tallies of any division of the classes into parts gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.criteria import CRITERIA, Criterion
from privrisk_spark.kernels.numeric.fold import refuse_other
from privrisk_spark.kernels.numeric.moments import Moments


@dataclass(frozen=True)
class WorstClass:
    """One of the worst classes.

    Attributes
    ----------
    key : tuple of int
        Its quasi-identifier codes. Not for a message or a public report.
    value : float
        Its number.
    """

    key: tuple[int, ...]
    value: float
    rows: int


def worst_classes(criterion: Criterion, values: FloatArray, keys: IntArray, most: int) -> LongArray:
    """Positions of the worst classes, the worst first.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
    keys : ndarray of int32, shape (m, q)
        Quasi-identifier codes, different for different classes.
    most : int
        Classes wanted at most.

    Returns
    -------
    ndarray of int64, shape (min(most, m),)
        By value; classes of equal value by their codes, lexicographically ascending.
    """
    most = min(most, len(values))
    if not most:
        return np.zeros(0, dtype=np.int64)
    columns = [values if criterion.direction == "at least" else -values, *keys.T]
    candidates = np.arange(len(values))
    chosen: list[LongArray] = []
    for column in columns:
        # What is below the most-th number is in; of what equals it the next column decides.
        number, missing = column[candidates], most - sum(len(part) for part in chosen)
        bound = _smallest(number, missing)
        chosen.append(candidates[number < bound])
        candidates = candidates[number == bound]
    found = np.concatenate([*chosen, candidates[: most - sum(len(part) for part in chosen)]])
    return found[np.lexsort([column[found] for column in reversed(columns)])].astype(np.int64)


def _smallest(values: npt.NDArray[Any], n: int) -> Any:
    """The n-th smallest value; in one look where as many are the smallest, which is what classes of one are."""
    least = values.min()
    if np.count_nonzero(values == least) >= n:
        return least
    return np.partition(values, n - 1)[n - 1]


@dataclass(frozen=True)
class ClassTally:
    """One number of every class of a part of the table, held against a bound.

    Attributes
    ----------
    name : str
        Of the criterion, in :data:`~privrisk_spark.kernels.classes.criteria.CRITERIA`.
    asked : float
        The bound.
    most : int
        Worst classes kept at most.
    moments : Moments
        Of the classes' numbers, each as often as the class has rows.
    failing_classes, failing_rows : int
        On the wrong side of ``asked``.
    worst : tuple of WorstClass
        The worst first; equal ones by their codes.
    """

    name: str
    asked: float
    most: int
    classes: int
    moments: Moments
    failing_classes: int
    failing_rows: int
    worst: tuple[WorstClass, ...]

    @classmethod
    def of(
        cls,
        criterion: Criterion,
        values: FloatArray | LongArray,
        rows: LongArray,
        keys: IntArray,
        *,
        asked: float,
        most: int = 10,
    ) -> ClassTally:
        """Tally whole classes.

        Parameters
        ----------
        values : ndarray of float64 or int64, shape (m,)
            Number of each class: non-negative, no NaN, +inf allowed; counts below 2^53.
        rows : ndarray of int64, shape (m,)
            Rows of each class, at least 1; at most 2^36 in sum.
        keys : ndarray of int32, shape (m, q)
            Quasi-identifier codes of each class; no class occurs twice, here or in a tally merged with this one.
        asked : float
            Bound, finite and at least 0.
        most : int
            Worst classes to keep.

        Raises
        ------
        InputError
            If the bound is out of range, the shapes differ, or a number or size is.
        """
        if not (math.isfinite(asked) and asked >= 0):
            raise InputError(f"{criterion.name}: the bound must be a finite number of at least 0, not {asked}.")
        if most < 0:
            raise InputError(f"{criterion.name}: the worst classes kept must be at least 0, not {most}.")
        if not (values.shape == rows.shape == keys.shape[:1] and keys.ndim == 2):
            raise InputError(
                f"{criterion.name}: a number, rows and codes of every class are needed, not arrays of the shapes "
                f"{values.shape}, {rows.shape} and {keys.shape}."
            )
        number = values.astype(np.float64)
        if not (number >= 0).all():
            raise InputError(f"{criterion.name}: the number of a class must be at least 0 and not NaN.")
        if (rows < 1).any():
            raise InputError(f"{criterion.name}: a class must have at least 1 row.")
        failing = criterion.fails(number, asked)
        worst = worst_classes(criterion, number, keys, most)
        return cls(
            name=criterion.name,
            asked=float(asked),
            most=most,
            classes=len(number),
            moments=Moments.of(number, rows),
            failing_classes=int(failing.sum()),
            failing_rows=int(rows[failing].sum()),
            worst=tuple(
                WorstClass(tuple(key), value, size)
                for key, value, size in zip(
                    keys[worst].tolist(), number[worst].tolist(), rows[worst].tolist(), strict=True
                )
            ),
        )

    @classmethod
    def empty(cls, criterion: Criterion, *, asked: float, most: int = 10) -> ClassTally:
        """Tally of no class; parameters and errors as for :meth:`of`."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls.of(criterion, nothing, nothing, np.zeros((0, 0), dtype=np.int32), asked=asked, most=most)

    @property
    def question(self) -> tuple[str, float, int]:
        """What a tally this one can be added to shares: name of the criterion, bound, and worst classes kept."""
        return self.name, self.asked, self.most

    def plus(self, other: ClassTally) -> ClassTally:
        """Tally of the classes of both.

        Raises
        ------
        InternalError
            If criterion, bound or number of worst classes differ.
        """
        refuse_other(self.question, other.question, "Tallies of one criterion, bound and number of worst classes")
        sign = 1 if self.criterion.direction == "at least" else -1
        worst = sorted((*self.worst, *other.worst), key=lambda one: (sign * one.value, one.key))
        return ClassTally(
            self.name,
            self.asked,
            self.most,
            self.classes + other.classes,
            self.moments.plus(other.moments),
            self.failing_classes + other.failing_classes,
            self.failing_rows + other.failing_rows,
            tuple(worst[: self.most]),
        )

    @property
    def criterion(self) -> Criterion:
        """What the numbers are."""
        return CRITERIA[self.name]

    @property
    def rows(self) -> int:
        """Rows of all classes."""
        return self.moments.n

    @property
    def achieved(self) -> float:
        """The worst number of a class; of no class inf where the least is the worst, else 0."""
        return self.moments.least if self.criterion.direction == "at least" else max(self.moments.most, 0.0)

    @property
    def passed(self) -> bool:
        """Whether no class fails at the bound asked."""
        return self.failing_classes == 0

    def passes(self, asked: float) -> bool:
        """Whether no class would fail at this bound."""
        return not bool(self.criterion.fails(np.array([self.achieved]), asked)[0]) if self.classes else True

    @property
    def failing_share(self) -> float:
        """Share of the rows that are in a failing class; 0 of no rows."""
        return self.failing_rows / self.rows if self.rows else 0.0
