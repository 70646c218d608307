"""Persons of equivalence classes, where one person may have several rows: counted once in each class.

Most persons have all their rows in one distinct record. They are counted, and counts are added up as classes unite; of
the others it is kept who is in which class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = ["Persons"]


@dataclass(frozen=True, eq=False)
class Persons:
    """Who is in each class.

    Attributes
    ----------
    alone : ndarray of int64, shape (n_classes,)
        Persons all of whose rows are in one distinct record, and it in the class.
    owner, person : ndarrays of int64, shape (n_pairs,)
        Class and number of every other person in it; ascending pairs, each once.
    n : int
        Numbers of persons are below it.
    """

    alone: LongArray
    owner: LongArray
    person: LongArray
    n: int

    @classmethod
    def of(cls, owner: LongArray, person: LongArray, n_classes: int) -> Persons:
        """Take every pair of a distinct record and a person in it.

        Parameters
        ----------
        owner : ndarray of int64, shape (n,)
            Distinct record.
        person : ndarray of int64, shape (n,)
            Number of the person, at least 0; the same pair may be given again.
        n_classes : int
            Distinct records.

        Raises
        ------
        InputError
            If a number is out of range.
        """
        if len(owner) and (owner.min() < 0 or owner.max() >= n_classes or person.min() < 0):
            raise InputError("Persons: every one must have a number, at least 0, and be in a class that there is.")
        first, _ = distinct_rows([owner, person])
        owner, person = owner[first], person[first]
        everybody, number = distinct_rows([person])
        several = np.bincount(number, minlength=len(everybody))[number] > 1
        alone = np.bincount(owner[~several], minlength=n_classes).astype(np.int64)
        return cls.beside(alone, owner[several], person[several])

    @classmethod
    def beside(cls, alone: LongArray, owner: LongArray, person: LongArray) -> Persons:
        """Take persons in several distinct records beside the numbers of those in one; arrays as above.

        Parameters
        ----------
        alone : ndarray of int64, shape (n_classes,)
        owner, person : ndarrays of int64, shape (n,)
            Each pair once, in any order.
        """
        order = np.lexsort([person, owner])
        _, number = np.unique(person[order], return_inverse=True)
        number = number.reshape(-1).astype(np.int64)
        return cls(alone, owner[order].astype(np.int64), number, int(number.max(initial=-1)) + 1)

    @classmethod
    def counted(cls, count: LongArray) -> Persons:
        """Take classes of which it is known how many persons each has, and not who is in several.

        Parameters
        ----------
        count : ndarray of int64, shape (n_classes,)
        """
        none = np.zeros(0, dtype=np.int64)
        return cls(count, none, none, 0)

    def only(self, places: LongArray) -> Persons:
        """Return how many persons are in some of the classes, and no longer who is in several."""
        return Persons.counted(self.count[places])

    @cached_property
    def count(self) -> LongArray:
        """Distinct persons of each class, ndarray of int64, shape (n_classes,)."""
        return self.alone + np.bincount(self.owner, minlength=len(self.alone))

    def where(self, kept: BoolArray) -> Persons:
        """Return those of some of the classes; persons keep their numbers.

        Parameters
        ----------
        kept : ndarray of bool, shape (n_classes,)
        """
        place = np.cumsum(kept) - 1
        there = kept[self.owner]
        return Persons(self.alone[kept], place[self.owner[there]].astype(np.int64), self.person[there], self.n)

    def united(self, of: LongArray, n_classes: int) -> Persons:
        """Return those of classes that are unions: class ``of[j]`` takes in class ``j``."""
        alone = np.bincount(of, weights=self.alone, minlength=n_classes).astype(np.int64)  # exact below 2^53 in all
        n = max(self.n, 1)
        pairs = _distinct(of[self.owner] * n + self.person, n_classes * n)
        owner = pairs // n
        return Persons(alone, owner, pairs - owner * n, self.n)

    def as_values(self, rows: LongArray) -> SensitiveRuns:
        """Return persons as the values of an attribute, of which a class has as many as it has persons.

        How many rows each person has is not known: rows beyond one a person count as those of a class's first.

        Parameters
        ----------
        rows : ndarray of int64, shape (n_classes,)
            Of each class, at least one for each of its persons.

        Raises
        ------
        InputError
            If a class has no person.
        """
        if (self.count < 1).any():
            raise InputError("Persons: every distinct record must be somebody's.")
        n = len(self.alone)
        owner = np.concatenate([self.owner, np.repeat(np.arange(n), self.alone)])
        value = np.concatenate([self.person, self.n + np.arange(int(self.alone.sum()))])
        runs = SensitiveRuns.of_entries(owner, value, np.ones(len(owner), dtype=np.int64), n)
        count = runs.count.copy()
        count[runs.class_start[:-1]] += rows - self.count
        return SensitiveRuns(runs.class_start, runs.value, count)


_TABLE = 16
"""Numbers for each key, up to which keys are marked in a table instead of sorted."""


def _distinct(keys: LongArray, bound: int) -> LongArray:
    """Keys below a bound, each once, ascending."""
    if bound <= _TABLE * len(keys):
        there = np.zeros(bound, dtype=np.bool_)
        there[keys] = True
        return np.flatnonzero(there)
    ascending = np.sort(keys)
    new = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new]
