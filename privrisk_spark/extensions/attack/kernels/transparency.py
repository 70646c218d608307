"""Transparency: the intruder knows the levels by which a k-anonymous release was recoded (T20).

He needs no distance. He generalizes what he knows of a person by the same levels, and looks for exactly that: the
person's row is one of the class, or, if the release has no such class, a suppressed one. And the other way round: a
row is of one of the people of its class, and a suppressed row is of one of the people whose class is not released,
not of just anybody; where rows are suppressed for nothing but the size of their class, it is nobody of a class of k
people or more.

Everybody the intruder knows is in the original table, and the release holds them by one scheme, some suppressed.

Status: *tested*; expected shares are exact for an intruder who draws among ties.

References
----------
V. Torra, "Privacy models and disclosure risk" (2020, T20), transparency attacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray

__all__ = ["ExactLinks", "exact_links"]


@dataclass(frozen=True, eq=False)
class ExactLinks:
    """Links of the people of each class of a scheme, and of their rows.

    Attributes
    ----------
    people : ndarray of int64, shape (m,)
        Of each class, by what they are in the original table.
    rows : ndarray of int64, shape (m,)
        Released rows among which each of them is looked for: those of the class, or all suppressed ones; 0 if
        suppressed rows are left out.
    person : ndarray of float64, shape (m,)
        Probability that a person of the class is linked to the own row.
    shown : ndarray of int64, shape (m,)
        Rows of these people that are in the release, suppressed ones among them.
    row : ndarray of float64, shape (m,)
        Mean probability that the row of one of them is linked to the person.
    suspects : int
        People of whom a suppressed row may be.
    """

    people: LongArray
    rows: LongArray
    person: FloatArray
    shown: LongArray
    row: FloatArray
    suspects: int

    @property
    def people_found(self) -> Found:
        """People whose row is found, with limits."""
        return found(self.person, self.people)

    @property
    def rows_found(self) -> Found:
        """Rows whose person is found, with limits."""
        return found(self.row, self.shown)


def exact_links(people: LongArray, released: LongArray, *, kept: bool, k: int | None = None) -> ExactLinks:
    """Link people and rows by their classes.

    Parameters
    ----------
    people : ndarray of int64, shape (m,)
        People of the original table in each class of the scheme, at least 1.
    released : ndarray of int64, shape (m,)
        Rows of the release in each, at most the people.
    kept : bool
        Whether suppressed rows are in the release, as rows that say nothing, or left out.
    k : int, optional
        Rows are suppressed in classes of fewer people alone.

    Raises
    ------
    InputError
        If a class has more rows than people, or rows of a class of ``k`` people are suppressed: the scheme is not that
        of the release.
    """
    if people.shape != released.shape or (people < 1).any() or (released < 0).any() or (released > people).any():
        raise InputError(
            "Transparency attack: every class must have at least 1 person, and no more released rows than people; the "
            "levels, or the original table, are not those of the release."
        )
    hidden = people - released
    if k is not None and (hidden[people >= k] > 0).any():
        raise InputError(
            f"Transparency attack: rows of classes of {k} people or more are suppressed; the levels, or k, are not "
            "those of the release, or rows were suppressed for another reason."
        )
    lost = int(hidden.sum()) if kept else 0
    there: BoolArray = released > 0
    suspects = int(people[hidden > 0].sum()) if kept else 0
    rows = np.where(there, released, lost)
    in_class = np.where(there, released / people, float(kept))  # probability to be among the rows looked at
    shown = people if kept else released
    of_class, of_lost = 1.0 / people, 1.0 / max(suspects, 1)
    seen = np.maximum(shown, 1)
    return ExactLinks(
        people=people,
        rows=rows,
        person=in_class / np.maximum(rows, 1),
        shown=shown,
        row=(released * of_class + (hidden * of_lost if kept else 0.0)) / seen,
        suspects=suspects,
    )
