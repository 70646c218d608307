"""Persons with several records, found by a learned distance: by any of their records, linked to any of their rows.

As :mod:`privrisk_spark.extensions.attack.kernels.persons` has it, for an aggregate that is not the file's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Aggregate
from privrisk_spark.extensions.attack.kernels.learned.searched import searched_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.persons import found_persons, pairs_of_persons
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

__all__ = ["KnownPersons", "PersonsFound", "persons_found_by"]


@dataclass(frozen=True, eq=False)
class KnownPersons:
    """What is known of persons, and which rows of a file are theirs.

    Attributes
    ----------
    begun : ndarray of int64, shape (m,)
        Distinct records that are known of each person, at least 1.
    known : ndarray of int32, shape (n, k)
        Their nodes, the first person's first.
    records : ndarray of int64, shape (n,)
        How often each is known of the person, at least 1.
    searched : ndarray of int64, shape (m,)
        Distinct records of each person in the file.
    own : ndarray of int64, shape (s,)
        Their positions, the first person's first; -1 of one that the file lacks.
    rows : ndarray of float64, shape (s,)
        Rows of the person there with each; expected ones where it is not known who is there.

    Raises
    ------
    InputError
        If the arrays do not belong together.
    """

    begun: LongArray
    known: IntArray
    records: LongArray
    searched: LongArray
    own: LongArray
    rows: FloatArray

    def __post_init__(self) -> None:
        """Refuse arrays of different lengths."""
        lengths = (
            (len(self.begun), len(self.searched)),
            (int(self.begun.sum()), len(self.known)),
            (len(self.known), len(self.records)),
            (int(self.searched.sum()), len(self.own)),
            (len(self.own), len(self.rows)),
        )
        if any(one != other for one, other in lengths):
            raise InputError("Record linkage: every person needs the records that are known, and rows of the file.")


@dataclass(frozen=True, eq=False)
class PersonsFound:
    """How the links of persons came out.

    Attributes
    ----------
    found : ndarray of float64, shape (m,)
        Probability that each is found.
    guessed : ndarray of float64, shape (m,)
        Likewise, by somebody who draws a row for each record.
    right : float
        Records expected to be linked to a row of the same person.
    """

    found: FloatArray
    guessed: FloatArray
    right: float


def persons_found_by(aggregate: Aggregate, file: SearchedFile, persons: KnownPersons) -> PersonsFound:
    """Link all records of persons.

    Parameters
    ----------
    aggregate : Aggregate
        Searched by, instead of the file's own weights.
    """
    searched = searched_by(aggregate, file.differences, file.cells, file.rows)
    links = searched.linked(persons.known)
    near = np.zeros(len(persons.known))
    for a, b in pairs_of_persons(persons.begun, persons.searched):
        held = searched.holds(persons.known[a], persons.own[b], links.at(a))
        np.add.at(near, a, np.where(held, persons.rows[b], 0.0))
    right = np.minimum(near / links.rows, 1.0)
    owner = np.repeat(np.arange(len(persons.searched)), persons.searched)
    theirs = np.bincount(owner, weights=np.where(persons.own >= 0, persons.rows, 0.0), minlength=len(persons.begun))
    drawn = np.repeat(np.minimum(theirs / file.rows.sum(), 1.0), persons.begun)
    return PersonsFound(
        found_persons(persons.begun, persons.records, right),
        found_persons(persons.begun, persons.records, drawn),
        float(persons.records @ right),
    )
