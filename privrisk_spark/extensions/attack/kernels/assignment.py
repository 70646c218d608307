"""One-to-one assignment: which rows are linked if every row is linked once at most (Winkler 1990).

Of all one-to-one links the likeliest are those of the greatest sum of weights above a threshold. With the threshold
``log2((1 - p) / p)``, for a share ``p`` of linked pairs, they are the most probable ones given the weights. A row is
left alone where a link would not be worth it. Equal rows are one node of a transportation problem, with as many links
as it has rows; it is solved exactly.

Equal rows are exchangeable, so that of ``x`` links between ``a`` and ``b`` equal rows, of which ``t`` pairs are of one
person each, ``x t / (a b)`` are expected to be right. Several assignments may be of greatest weight, often very many,
as weights are sums over attributes. An intruder cannot tell them apart: the fewest and the most right links over all
of them are given.

Status: the assignment is *exact* up to rounding. The fewest and most right links are *tested* against all permutations;
they are over assignments within 1e-6 bits of the greatest weight, and over mixtures of them where the transportation
problem is solved as a linear program: no narrower than they should be.

References
----------
W. E. Winkler, "String comparator metrics and enhanced decision rules in the Fellegi-Sunter model of record linkage",
Proc. Survey Research Methods, Amer. Statist. Assoc. (1990). M. A. Jaro, "Advances in record-linkage methodology as
applied to matching the 1985 census of Tampa, Florida", J. Amer. Statist. Assoc. 84 (1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["Assignment", "Owners", "assigned", "right_links"]

MOST_CELLS = 2**24
"""Pairs of single rows that are assigned as a matrix, 4,096 by 4,096: 128 MiB."""

MOST_ARCS = 2**17
"""Pairs of distinct rows above the threshold that are assigned as a transportation problem."""

_TIE = 1e-6
"""Bits in all by which assignments may differ that are ties."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Links between distinct rows.

    Attributes
    ----------
    known, record : ndarray of int64, shape (n,)
        Positions of the distinct rows that are linked, in lexicographic order.
    links : ndarray of int64, shape (n,)
        Between the rows of both, at least 1.
    gain : float
        Sum of the weights above the threshold, in bits.
    """

    known: LongArray
    record: LongArray
    links: LongArray
    gain: float

    @property
    def total(self) -> int:
        """Rows that are linked."""
        return int(self.links.sum())


@dataclass(frozen=True, eq=False)
class Owners:
    """Whose rows are whose: pairs of distinct rows some of which are of one person.

    Attributes
    ----------
    known, record : ndarray of int64, shape (n,)
        Positions of the distinct rows; every pair once.
    persons : ndarray of int64, shape (n,)
        Of both, at least 1.
    """

    known: LongArray
    record: LongArray
    persons: LongArray


def assigned(weights: FloatArray, known_rows: LongArray, rows: LongArray, *, threshold: float) -> Assignment:
    """Link rows one to one by the greatest sum of weights above a threshold.

    Parameters
    ----------
    weights : ndarray of float64, shape (m, p)
        Match weights of the distinct known rows with the distinct rows of a file, or of a block of both.
    known_rows : ndarray of int64, shape (m,)
        At least 1.
    rows : ndarray of int64, shape (p,)
        At least 1.
    threshold : float
        Pairs of at most this weight are not linked.

    Returns
    -------
    Assignment
        One of those of greatest weight; always the same of the same arrays.

    Raises
    ------
    InputError
        If the block is too large, or a number of rows is below 1.
    """
    gain, mine, theirs = _problem(weights, known_rows, rows, threshold)
    if _small(mine, theirs):
        known, record, links = _by_rows(gain, mine, theirs)
    else:
        known, record = np.nonzero(gain)
        links = np.rint(_Transport(known, record, mine, theirs).best(gain[known, record])).astype(np.int64)
        known, record, links = known[links > 0], record[links > 0], links[links > 0]
    return Assignment(known, record, links, float((gain[known, record] * links).sum()))


def right_links(
    weights: FloatArray, known_rows: LongArray, rows: LongArray, owners: Owners, *, threshold: float
) -> tuple[float, float]:
    """Fewest and most links that are expected to be right, over all assignments of greatest weight.

    Parameters
    ----------
    weights, known_rows, rows, threshold
        As :func:`assigned` takes them.

    Raises
    ------
    InputError
        As :func:`assigned`, and if more persons have a pair of rows than there are rows.
    """
    gain, mine, theirs = _problem(weights, known_rows, rows, threshold)
    if (owners.persons > np.minimum(known_rows[owners.known], rows[owners.record])).any():
        raise InputError("One-to-one links: no more persons can have a pair of distinct rows than there are of either.")
    right = np.zeros(weights.shape)
    of_both = known_rows[owners.known].astype(np.float64) * rows[owners.record]
    right[owners.known, owners.record] = owners.persons / of_both
    found = []
    if _small(mine, theirs):
        # Added to what is worth a link; all that is added is less than the tie.
        little = _TIE / float(min(mine.sum(), theirs.sum())) * right
        for sign in (-1, 1):
            worth = np.where(gain > 0, gain + sign * little, 0.0)
            known, record, links = _by_rows(worth, mine, theirs)
            found.append(float((right[known, record] * links).sum()))
        return found[0], found[1]
    known, record = np.nonzero(gain)
    problem, of = _Transport(known, record, mine, theirs), gain[known, record]
    least = float(of @ problem.best(of)) - _TIE
    found = [float(right[known, record] @ problem.best(sign * right[known, record], of, least)) for sign in (-1, 1)]
    return found[0], found[1]


def _problem(
    weights: FloatArray, known_rows: LongArray, rows: LongArray, threshold: float
) -> tuple[FloatArray, LongArray, LongArray]:
    """What each link is worth, and the rows of both sides that can be linked at all."""
    if weights.shape != (len(known_rows), len(rows)) or (known_rows < 1).any() or (rows < 1).any():
        raise InputError("One-to-one links: there must be one weight a pair of distinct rows, each of at least 1 row.")
    gain = np.where(weights > threshold, weights - threshold, 0.0)
    # More equal rows than the other side has in all cannot be linked.
    mine, theirs = np.minimum(known_rows, rows.sum()), np.minimum(rows, known_rows.sum())
    if not _small(mine, theirs) and np.count_nonzero(gain) > MOST_ARCS:
        raise InputError(
            f"One-to-one links: {int(known_rows.sum()):,} known rows and {int(rows.sum()):,} of the file have more "
            f"than {MOST_CELLS:,} pairs, and more than {MOST_ARCS:,} distinct ones above the threshold; take smaller "
            "blocks or a greater threshold."
        )
    return gain, mine, theirs


def _small(mine: LongArray, theirs: LongArray) -> bool:
    return int(mine.sum()) * int(theirs.sum()) <= MOST_CELLS


def _by_rows(worth: FloatArray, mine: LongArray, theirs: LongArray) -> tuple[LongArray, LongArray, LongArray]:
    """Links of the assignment problem whose matrix has a row and a column for each single row."""
    known, record = np.repeat(np.arange(len(mine)), mine), np.repeat(np.arange(len(theirs)), theirs)
    a, b = scipy.optimize.linear_sum_assignment(worth[np.ix_(known, record)], maximize=True)
    pair = known[a].astype(np.int64) * len(theirs) + record[b]
    distinct, links = np.unique(pair[worth[known[a], record[b]] > 0], return_counts=True)
    return distinct // len(theirs), distinct % len(theirs), links.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Transport:
    """The transportation problem between distinct rows, whose vertices are integers.

    Attributes
    ----------
    known, record : ndarray of int64, shape (n,)
        Pairs that may be linked.
    mine, theirs : ndarray of int64
        Links that distinct rows of either side may have.
    """

    known: LongArray
    record: LongArray
    mine: LongArray
    theirs: LongArray

    def best(self, value: FloatArray, gain: FloatArray | None = None, least: float = 0.0) -> FloatArray:
        """Links of greatest value, shape (n,), of a sum of gains of at least ``least`` where gains are given."""
        n = len(self.known)
        if not n:
            return np.zeros(0)
        place = np.concatenate([self.known, len(self.mine) + self.record])
        arc, entry = np.tile(np.arange(n), 2), np.ones(2 * n)
        most = np.concatenate([self.mine, self.theirs]).astype(np.float64)
        if gain is not None:
            place, arc = np.append(place, np.full(n, len(most))), np.append(arc, np.arange(n))
            entry, most = np.append(entry, -gain), np.append(most, -least)
        held = scipy.sparse.csr_array((entry, (place, arc)), shape=(len(most), n))
        return np.asarray(scipy.optimize.linprog(-value, A_ub=held, b_ub=most, method="highs-ds").x)  # type: ignore[call-overload]
