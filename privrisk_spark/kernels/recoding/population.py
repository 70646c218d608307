"""Conditions on how many people of a population are consistent with a released class.

With ``f`` persons of a class (rows, where each is a person) and ``F`` people of the population who are consistent with
its nodes (as the dictionary is counted, :mod:`privrisk_spark.kernels.counting.consistent`):

* k-map (Sweeney 2001): ``F >= k``. Generalizing a node takes no person away whom it was consistent with, unless
  consistency goes by labels that resemble each other; so it is monotone in suppression, as is proved for sizes in
  :mod:`privrisk_spark.kernels.classes.criteria`.
* delta-presence (Nergiz, Atzori and Clifton, SIGMOD 2007): ``at_least <= f / F <= at_most``, the share of these people
  who are in the table. Where nobody is consistent with two classes, ``f / F`` of a union is between those of its parts.
  A person with coarser values than a class has is consistent with several, or with none, and it is not: two classes of
  one row each that share ten people are at 1/10, and together at 2/10. No search relies on it.

Nothing is said of people who are consistent with no released class, or only with suppressed rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import fails
from privrisk_spark.kernels.classes.criteria import K_MAP
from privrisk_spark.kernels.counting.consistent import Axis, Counts, consistent_at
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["Population", "delta_presence", "k_map", "reached"]


@dataclass(frozen=True, eq=False)
class Population:
    """The people that classes are held against.

    Attributes
    ----------
    people : callable
        Of classes: ``F`` of each, ndarray of int64, shape (n_classes,).
    monotone : bool
        Whether ``F`` never falls from a class to one that it is part of.
    """

    people: Callable[[NodeClasses], LongArray]
    monotone: bool

    @classmethod
    def counted(cls, counts: Counts, axes: Sequence[Axis], vectors: IntArray) -> Population:
        """Look classes of nodes up in a count.

        Parameters
        ----------
        axes : sequence of k Axis
            Of the count.
        vectors : ndarray of int32, shape (m, k)
            Codes of the table's distinct records, which the classes' members are.
        """
        depths = [axis.code_depth for axis in axes]

        def people(classes: NodeClasses) -> LongArray:
            if classes.levels is None:
                raise InternalError("People of a population can be counted for classes of a node alone.")
            return consistent_at(counts, depths, vectors[classes.member], classes.levels)

        return cls(people, all(axis.monotone for axis in axes))


def k_map(k: int, population: Population) -> Condition:
    """Hold classes to a least number of people.

    Parameters
    ----------
    k : int
        At least 1.
    """

    def meets(classes: NodeClasses) -> BoolArray:
        met: BoolArray = population.people(classes) >= k
        return met

    return Condition(K_MAP.name, meets, population.monotone, population.monotone, dear=True)


def presence(persons: LongArray, people: LongArray) -> FloatArray:
    """``f / F`` of each class; infinite where nobody is consistent with it.

    Parameters
    ----------
    persons, people : ndarray of int64, shape (m,)
        Persons of the class are at least 1.
    """
    there = people > 0
    found = np.full(len(persons), np.inf)
    found[there] = persons[there] / people[there]
    return found


def reached(classes: NodeClasses, population: Population) -> tuple[int | None, float | None]:
    """What the people come to in classes, for somebody to follow from table to table.

    Returns
    -------
    fewest : int or None
        ``F`` of the class with the fewest; None where there is no class.
    share : float or None
        The greatest ``f / F``; None where there is no class, or nobody is consistent with one.
    """
    if not len(classes.rows):
        return None, None
    people = population.people(classes)
    greatest = float(presence(classes.size, people).max())
    return int(people.min()), greatest if np.isfinite(greatest) else None


def delta_presence(at_least: float, at_most: float, population: Population) -> Condition:
    """Hold classes to shares of people who are in the table.

    Parameters
    ----------
    at_least, at_most : float
        From 0 to 1.
    """

    def meets(classes: NodeClasses) -> BoolArray:
        shares = presence(classes.size, population.people(classes))
        met: BoolArray = ~fails(shares, at_least, "at least") & ~fails(shares, at_most, "at most")
        return met

    return Condition("delta-presence", meets, False, False, dear=True)
