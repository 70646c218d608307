"""Persons with several records: whose records are compared, and who is found by them.

A pair of records is a match if both are of the same person (Fellegi and Sunter 1969, section 2: the set M). So where
persons have several records a link is right if it leads to any record of the person, and of ``t`` tied candidates,
``c`` of which are the person's, one that is drawn is right with probability ``p = c/t``. A person is *found* if at
least one of the person's records is linked rightly. The records' draws are independent: that is ``1 - Π (1 - p)``, the
risk of a household.

Where it is only expected that a candidate is there, with one draw for all the person's records, the product is an upper
bound: it is concave in that probability, and 0 where this is 0.

References
----------
I. P. Fellegi, A. B. Sunter, "A theory for record linkage", J. Amer. Statist. Assoc. 64 (1969).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.independent import any_of

__all__ = ["found_by_classes", "found_persons", "pairs_of_persons"]

_PAIRS = 2**21
"""Pairs that are kept at once, but for those of one record; does not change a result."""


def pairs_of_persons(begun: LongArray, searched: LongArray) -> Iterator[tuple[LongArray, LongArray]]:
    """Yield all pairs of records of the same person, one of either file.

    Parameters
    ----------
    begun, searched : ndarray of int64, shape (m,)
        Records of each person in the file that is begun with, and in the one in which is searched, at least 0. Records
        are numbered from the first person's on.

    Yields
    ------
    tuple of ndarray of int64, shape (u,)
        Positions of both records of the pairs, ascending; all pairs of a record come together.
    """
    owner = np.repeat(np.arange(len(begun)), begun)
    pairs = searched[owner]
    ends, first = np.cumsum(pairs), (np.cumsum(searched) - searched)[owner]
    begin = 0
    while begin < len(owner):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _PAIRS, side="right")))
        here = slice(begin, end)
        mine = np.repeat(np.arange(begin, end), pairs[here])
        before = ends[here] - pairs[here] - done  # pairs of this block before those of each record
        yield mine, np.arange(len(mine)) + np.repeat(first[here] - before, pairs[here])
        begin = end


def found_persons(begun: LongArray, records: LongArray, right: FloatArray) -> FloatArray:
    """Probability that at least one record of each person is linked rightly.

    Parameters
    ----------
    begun : ndarray of int64, shape (m,)
        Distinct records of each person, at least 1.
    records : ndarray of int64, shape (n,)
        How often the person has each of them, at least 1; the first person's first.
    right : ndarray of float64, shape (n,)
        Probability that its link is right.

    Returns
    -------
    ndarray of float64, shape (m,)

    Raises
    ------
    InputError
        If a person has no record, or what is given is no probability.
    """
    if (begun < 1).any() or int(begun.sum()) != len(records) or records.shape != right.shape or (records < 1).any():
        raise InputError("Record linkage: every person must have a record, and every record a probability.")
    if len(right) and not (right.min() >= 0 and right.max() <= 1):
        raise InputError("Record linkage: a probability must be in [0, 1].")
    return any_of(np.repeat(np.repeat(np.arange(len(begun)), begun), records), np.repeat(right, records))


def found_by_classes(searched: LongArray, rows: LongArray, alike: LongArray, there: FloatArray) -> FloatArray:
    """Probability that each person is found by who knows in which class each of the person's rows is, and draws one.

    Of a person with ``c`` of the ``f`` rows of a class each of the ``c`` is right with ``c/f``: together
    ``1 - Π (1 - c/f)^c`` over the classes, the risk of a household.

    Parameters
    ----------
    searched : ndarray of int64, shape (m,)
        Classes of each person.
    rows : ndarray of int64, shape (s,)
        Rows of the person in each, at least 1; the first person's first.
    alike : ndarray of int64, shape (s,)
        Rows of all persons in each, at least 1.
    there : ndarray of float64, shape (s,)
        Rows of the person that are expected to be there.

    Returns
    -------
    ndarray of float64, shape (m,)
        0 of a person without rows.
    """
    found = np.zeros(len(searched))
    some = searched > 0
    if some.any():
        found[some] = found_persons(searched[some], rows, np.minimum(there / alike, 1.0))
    return found
