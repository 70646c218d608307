"""Diversity of a sensitive attribute inside equivalence classes: one number per class.

Classes come whole, as runs of (sensitive value, rows). With ``n`` rows of a class, ``c_s`` of them with value ``s``:

* distinct ℓ-diversity, p-sensitivity: the number of values (Truta and Vinay, ICDE workshops 2006);
* entropy ℓ-diversity: ``exp(H)``, ``H = -Σ (c_s/n) ln(c_s/n)``, asked to be at least ℓ;
* recursive (c, ℓ)-diversity: ``r_1 < c (r_ℓ + … + r_m)`` for the counts ``r_1 >= … >= r_m`` (both: Machanavajjhala,
  Gehrke, Kifer and Venkitasubramaniam, ℓ-diversity, ICDE 2006);
* (α, k)-anonymity: the greatest share ``c_s/n``, asked to be at most α (Wong, Li, Fu and Wang, KDD 2006).

Where persons have several rows, ``c_s`` counts the persons who hold a value, and one person may hold several.
``exp(H)`` is then of the pairs of person and value, whose shares add up to 1. What is said of persons is a share of
them: the α of a value is the share of the class's persons who hold it; the class is open to the homogeneity attack if
all of them hold one value, whatever else they hold; the tail of recursive diversity is ``n - r_1 - … - r_(ℓ-1)``, the
persons who certainly hold none of the more frequent values.

A missing value tells an attacker nothing of the value. :meth:`SensitiveRuns.without` leaves it out, so that all these
numbers are of the known values: a class of one illness and of missing ones is homogeneous. A class without any known
value has 0 values (:meth:`~privrisk_spark.kernels.classes.criteria.Criterion.numbers_of_known`).

An attacker who finds somebody's class learns the value if there is only one (homogeneity attack), and knows it with
probability ``max c_s/n`` otherwise. The share of records exposed is
:attr:`~privrisk_spark.kernels.classes.tally.ClassTally.failing_share` of ``DISTINCT_DIVERSITY`` at 2, and of ``ALPHA``
at the probability that is too much.

k-anonymity and k-map need no runs: the numbers are the classes' rows or persons, and those of the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import fails

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class SensitiveRuns:
    """The sensitive values of whole equivalence classes.

    Attributes
    ----------
    class_start : ndarray of int64, shape (m + 1,)
        The runs of class ``j`` are ``class_start[j] … class_start[j + 1]``, at least one.
    value : ndarray of int32, shape (n_runs,)
        Code of the sensitive value, at least 0, ascending inside a class.
    count : ndarray of int64, shape (n_runs,)
        Rows of the class with that value, at least 1; persons who hold it where there are ``persons``.
    persons : ndarray of int64, shape (m,), or None
        Distinct persons of each class, each of whom holds at least one value.
    known : ndarray of int64, shape (m,), or None
        Those of them who hold a value that is not missing; None where no value is missing, or it is not counted.

    Raises
    ------
    InputError
        If they are not so.
    """

    class_start: LongArray
    value: IntArray
    count: LongArray
    persons: LongArray | None = None
    known: LongArray | None = None

    def __post_init__(self) -> None:
        start, value, count = self.class_start, self.value, self.count
        if start.ndim != 1 or not len(start) or start[0] != 0 or start[-1] != len(value) or len(value) != len(count):
            raise InputError(
                "Runs of classes: class_start must begin with 0 and end with the number of values and of counts."
            )
        if (np.diff(start) < 1).any():
            raise InputError("Runs of classes: every class must have at least one sensitive value.")
        if (count < 1).any() or (value < 0).any():
            raise InputError("Runs of classes: counts must be at least 1 and value codes at least 0.")
        rising = np.ones(len(value), dtype=np.bool_)
        rising[1:] = value[1:] > value[:-1]
        rising[start[:-1]] = True
        if not rising.all():
            raise InputError("Runs of classes: the value codes of a class must be ascending and different.")
        if self.persons is not None and (
            len(self.persons) != self.n_classes
            or (count > self.persons[self.owner]).any()
            or (self.persons > self.rows).any()
        ):
            raise InputError(
                "Runs of classes: persons are needed of each class, no fewer than hold one of its values and no more "
                "than hold them all, one after another."
            )

    @classmethod
    def of_entries(cls, owner: LongArray, value: LongArray, count: LongArray, n_classes: int) -> SensitiveRuns:
        """Put entries in order.

        Parameters
        ----------
        owner, value, count : ndarrays of int64, shape (n,)
            Class, code of the sensitive value and rows of each entry; no pair of the former is there twice.
        n_classes : int
            Each has an entry.
        """
        order = np.lexsort([value, owner])
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_classes))]).astype(np.int64)
        return cls(start, value[order].astype(np.int32), count[order])

    @property
    def n_classes(self) -> int:
        """Classes."""
        return len(self.class_start) - 1

    @cached_property
    def owner(self) -> LongArray:
        """Class of each run, ndarray of int64, shape (n_runs,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.class_start))

    @cached_property
    def rows(self) -> LongArray:
        """Rows of each class, or pairs of person and value; ndarray of int64, shape (m,)."""
        return self.added(self.count)

    @property
    def members(self) -> LongArray:
        """Persons of each class, where each row is one unless they are given; ndarray of int64, shape (m,)."""
        return self.rows if self.persons is None else self.persons

    @cached_property
    def share(self) -> FloatArray:
        """``q = c_s / Σ c_s`` of each run, ndarray of float64, shape (n_runs,)."""
        return np.asarray(self.count / self.rows[self.owner])

    @cached_property
    def held_by(self) -> FloatArray:
        """Share of the class's persons with the value of each run, ndarray of float64, shape (n_runs,)."""
        return np.asarray(self.count / self.members[self.owner])

    @cached_property
    def falling(self) -> LongArray:
        """The counts of each class in descending order, ndarray of int64, shape (n_runs,)."""
        return self.count[np.lexsort((-self.count, self.owner))]

    def where(self, kept: BoolArray) -> SensitiveRuns:
        """Return the runs of some of the classes.

        Parameters
        ----------
        kept : ndarray of bool, shape (m,)
        """
        of_runs = kept[self.owner]
        start = np.concatenate([[0], np.cumsum(np.diff(self.class_start)[kept])]).astype(np.int64)
        persons, known = (None if of is None else of[kept] for of in (self.persons, self.known))
        return SensitiveRuns(start, self.value[of_runs], self.count[of_runs], persons, known)

    def without(self, missing: int) -> SensitiveRuns:
        """Leave the missing value out of the classes that hold other values.

        Parameters
        ----------
        missing : int
            Its code.

        Returns
        -------
        SensitiveRuns
            Its persons hold one of the other values.

        Raises
        ------
        InternalError
            If persons are counted, and :attr:`known` is not.
        """
        left_out = (self.value == missing) & (np.diff(self.class_start) > 1)[self.owner]
        start = self.class_start - np.concatenate([[0], np.cumsum(self.added(left_out.astype(np.int64)))])
        persons = self.persons
        if persons is not None and left_out.any():
            if self.known is None:
                raise InternalError("Runs of classes: it is not counted who holds a known value.")
            persons = np.where(self.holds_only(missing), persons, self.known)
        return SensitiveRuns(start, self.value[~left_out], self.count[~left_out], persons)

    def holds_only(self, value: int) -> BoolArray:
        """Mark the classes that hold one value and no other; ndarray of bool, shape (m,)."""
        only: BoolArray = (np.diff(self.class_start) == 1) & (self.value[self.class_start[:-1]] == value)
        return only

    @cached_property
    def tail(self) -> LongArray:
        """``r_ℓ + … + r_m`` of the ℓ-th run of each class in descending order: who holds none of those before it.

        Of persons it is at least that, and 0 where those before it may be all of them. ndarray of int64, shape
        (n_runs,).
        """
        before = np.cumsum(self.falling) - self.falling
        before -= before[self.class_start[:-1]][self.owner]
        return np.maximum(self.members[self.owner] - before, 0)

    def added(self, of_runs: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Sum numbers of runs by class, in the order of the runs."""
        if not self.n_classes:
            return of_runs[:0]
        return np.add.reduceat(of_runs, self.class_start[:-1])

    def greatest(self, of_runs: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the greatest number of the runs of each class."""
        if not self.n_classes:
            return of_runs[:0]
        return np.maximum.reduceat(of_runs, self.class_start[:-1])


def distinct_values(runs: SensitiveRuns) -> LongArray:
    """Count the sensitive values of each class.

    Returns
    -------
    ndarray of int64, shape (m,)
        At least 1; at 1 the class is open to the homogeneity attack.
    """
    return np.diff(runs.class_start)


def homogeneity(runs: SensitiveRuns) -> LongArray:
    """Values an attacker who finds a class is left with: 1 if all its persons hold one value.

    Returns
    -------
    ndarray of int64, shape (m,)
        At least 1; the number of values where no value is held by all.
    """
    return np.where(runs.greatest(runs.held_by) == 1, 1, distinct_values(runs))


def entropy_diversity(runs: SensitiveRuns) -> FloatArray:
    """``exp(H)`` of each class, the greatest ℓ for which it is entropy ℓ-diverse.

    Returns
    -------
    ndarray of float64, shape (m,)
        In [1, number of values]. Terms are added from the most frequent value down, so that the codes of the values do
        not matter.
    """
    share = runs.falling / runs.rows[runs.owner]
    # adding 0 turns -0 into 0
    return np.exp(runs.added(-share * np.log(share)) + 0.0)


def least_c(runs: SensitiveRuns, least_l: int) -> FloatArray:
    """``r_1 / (r_ℓ + … + r_m)`` of each class: it is recursively (c, ℓ)-diverse for every ``c`` above this.

    Parameters
    ----------
    least_l : int
        ``ℓ``, at least 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        inf if the class has fewer than ``ℓ`` values: no ``c`` is enough.

    Raises
    ------
    InputError
        If ``ℓ`` is less than 1.
    """
    if least_l < 1:
        raise InputError(f"recursive (c,l)-diversity: l must be at least 1, not {least_l}.")
    place = np.arange(len(runs.falling)) - runs.class_start[runs.owner]
    tail = runs.added(np.where(place == least_l - 1, runs.tail, 0))
    result = np.full(runs.n_classes, np.inf)
    np.divide(runs.falling[runs.class_start[:-1]], tail, out=result, where=tail > 0)
    return result


def greatest_l(runs: SensitiveRuns, c: float) -> LongArray:
    """Greatest ``ℓ`` for which each class is recursively (c, ℓ)-diverse.

    Parameters
    ----------
    c : float
        Finite and above 0.

    Returns
    -------
    ndarray of int64, shape (m,)
        At most the number of values; 0 if not even ``r_1 < c n`` holds. The tail shrinks with ``ℓ``, so the condition
        holds for every smaller ``ℓ``, too. Equality is decided as by ``RECURSIVE_C``.

    Raises
    ------
    InputError
        If ``c`` is out of range.
    """
    if not (np.isfinite(c) and c > 0):
        raise InputError(f"recursive (c,l)-diversity: c must be a finite number above 0, not {c}.")
    most = runs.falling[runs.class_start[:-1]][runs.owner]
    ratio = np.full(len(most), np.inf)
    np.divide(most, runs.tail, out=ratio, where=runs.tail > 0)
    return runs.added((~fails(ratio, c, "at most", strict=True)).astype(np.int64))


def greatest_share(runs: SensitiveRuns, counted: BoolArray | None = None) -> FloatArray:
    """Greatest share of the records, or persons, of each class that have one sensitive value.

    Parameters
    ----------
    counted : ndarray of bool, shape (v,), optional
        The values whose share is limited, by code; all if not given.

    Returns
    -------
    ndarray of float64, shape (m,)
        In [0, 1]; 0 if none of the values occurs.

    Raises
    ------
    InputError
        If a value code is ``v`` or more.
    """
    if counted is None:
        return runs.greatest(runs.held_by)
    if len(runs.value) and int(runs.value.max()) >= len(counted):
        raise InputError(f"alpha: the limited values are given for {len(counted)} value codes, but there are more.")
    return runs.greatest(np.where(counted[runs.value], runs.held_by, 0.0))
