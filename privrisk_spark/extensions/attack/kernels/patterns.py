"""Agreement patterns: how many pairs of the records of two files agree in each way.

Every pair is counted, exactly: equal records are compared once, and counted as often as they occur. Counts of patterns
are all that the parameters of probabilistic record linkage are estimated from, and they add up over parts of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import Agreement
from privrisk_spark.kernels.arrays import ByteArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.fold import refuse_other

__all__ = ["ComparedFile", "PatternCounts", "digits_of", "n_patterns"]

MOST_PATTERNS = 2**24
"""Patterns that are counted in one array, at most: twelve attributes of three levels."""

_TABLE_CELLS = 2**21
"""Codes kept at once for attributes that are looked up together; does not change a result."""

_LEVELS = 2**24
"""Levels of one attribute that are looked up at once; does not change a result."""

_PAIRS = 2**20
"""Pairs whose codes are kept at once; does not change a result."""

_LIMB = 21
"""Bits of a weight that are added up in floats at once: sums over :data:`_PAIRS` pairs are exact below 2^53."""


@dataclass(frozen=True)
class PatternCounts:
    """Pairs of records by agreement pattern, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    levels : tuple of k int
        Levels of each attribute, L_j; digit L_j of a pattern is an attribute that cannot be compared.
    code : tuple of int
        Patterns that occur, ascending: numbers of mixed radix L_j + 1, the first attribute the most significant digit.
    pairs : tuple of int
        With each, at least 1.
    """

    levels: tuple[int, ...]
    code: tuple[int, ...]
    pairs: tuple[int, ...]

    @classmethod
    def of(cls, code: LongArray, pairs: LongArray, levels: Sequence[int]) -> PatternCounts:
        """Count patterns, which need not be distinct.

        Parameters
        ----------
        code, pairs : ndarray of int64, shape (n,)
            Pairs of at least 0.
        levels : sequence of int, length k

        Raises
        ------
        InputError
            If a code is no pattern, a count is below 0, or all are 2^63 or more.
        """
        most = n_patterns(levels)
        if code.shape != pairs.shape or (len(code) and (code.min() < 0 or code.max() >= most or pairs.min() < 0)):
            raise InputError(f"Record linkage: patterns must be numbers below {most:,}, and their pairs at least 0.")
        refuse_pairs(sum(pairs.tolist()))
        distinct, place = np.unique(code, return_inverse=True)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, place.reshape(-1), pairs)
        there = total > 0
        return cls(tuple(levels), tuple(distinct[there].tolist()), tuple(total[there].tolist()))

    @classmethod
    def empty(cls, levels: Sequence[int]) -> PatternCounts:
        """Counts of no pair."""
        return cls(tuple(levels), (), ())

    def plus(self, other: PatternCounts) -> PatternCounts:
        """Counts of both together.

        Raises
        ------
        InternalError
            If the two have other levels.
        """
        refuse_other(self.levels, other.levels, "Patterns of the same levels")
        total = dict(zip(self.code, self.pairs, strict=True))
        for code, pairs in zip(other.code, other.pairs, strict=True):
            total[code] = total.get(code, 0) + pairs
        ordered = sorted(total.items())
        return PatternCounts(self.levels, tuple(c for c, _ in ordered), tuple(n for _, n in ordered))

    @property
    def total(self) -> int:
        """Pairs in all."""
        return sum(self.pairs)

    @cached_property
    def digits(self) -> ByteArray:
        """Level of each attribute in each pattern, shape (n, k)."""
        return digits_of(np.array(self.code, dtype=np.int64), self.levels)


def n_patterns(levels: Sequence[int]) -> int:
    """Patterns there are of attributes with so many levels each, those that cannot be compared among them.

    Raises
    ------
    InputError
        If they are more than :data:`MOST_PATTERNS`, or an attribute has fewer than two levels.
    """
    found = 1
    for one in levels:
        found *= one + 1
    if not levels or min(levels) < 2:
        raise InputError(f"Record linkage: every attribute must have two levels or more. Got {tuple(levels)}.")
    if found > MOST_PATTERNS:
        raise InputError(
            f"Record linkage: {len(levels)} attributes of these levels have {found:,} patterns, more than "
            f"{MOST_PATTERNS:,}. Take fewer levels or fewer attributes."
        )
    return found


def digits_of(code: LongArray, levels: Sequence[int]) -> ByteArray:
    """Levels of patterns.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
    levels : sequence of int, length k

    Returns
    -------
    ndarray of uint8, shape (n, k)
    """
    found, rest = np.empty((len(code), len(levels)), dtype=np.uint8), code
    for j in reversed(range(len(levels))):
        rest, found[:, j] = np.divmod(rest, levels[j] + 1)
    return found


def refuse_pairs(total: int) -> None:
    """Refuse more pairs than an int64 holds."""
    if total >= 2**63:
        raise InputError(f"Record linkage: {total:,} pairs are 2^63 or more; draw a sample of the records.")


@dataclass(frozen=True, eq=False)
class ComparedFile:
    """The distinct records of a file, and how others are compared with them.

    Attributes
    ----------
    agreements : tuple of k Agreement
    cells : ndarray of int32, shape (p, k)
        Which of the distinct cells of each attribute a record has.
    rows : ndarray of int64, shape (p,)
        At least 1.
    together : bool
        Whether attributes are looked up together where that is faster. It changes no result.

    Raises
    ------
    InputError
        If there is no record, or not one agreement an attribute, or too many patterns.
    """

    agreements: tuple[Agreement, ...]
    cells: IntArray
    rows: LongArray
    together: bool = True

    def __post_init__(self) -> None:
        """Refuse a file with nothing in it."""
        if not len(self.cells) or (self.rows < 1).any():
            raise InputError("Record linkage: the file has no records.")
        if len(self.agreements) != self.cells.shape[1]:
            raise InputError("Record linkage: there must be one agreement for each attribute.")
        n_patterns(self.levels)

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of each attribute."""
        return tuple(one.levels for one in self.agreements)

    def counted_alone(self, attribute: int, known: IntArray, rows: LongArray) -> PatternCounts:
        """Count the pairs of known rows and rows of the file by how one attribute agrees, however many records.

        Parameters
        ----------
        attribute : int
            Its position.
        known : ndarray of int32, shape (m, k)
        rows : ndarray of int64, shape (m,)
            As :meth:`counted` takes them.

        Raises
        ------
        InputError
            As :meth:`counted`.
        """
        cells, of_file = _added(self.cells[:, attribute], self.rows)
        codes, of_known = _added(known[:, attribute], rows)
        return ComparedFile((self.agreements[attribute],), cells, of_file).counted(codes, of_known)

    def patterns(self, known: IntArray) -> LongArray:
        """Patterns of known records with every record of the file.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
            Nodes, as each attribute's agreement takes them.

        Returns
        -------
        ndarray of int64, shape (m, p)
            As :class:`PatternCounts` numbers them.
        """
        found = np.empty((len(known), len(self.cells)), dtype=np.int64)
        for begin, part in self._parts(known):
            found[begin : begin + len(part)] = _codes(self._looks(part), slice(None))
        return found

    def counted(self, known: IntArray, rows: LongArray) -> PatternCounts:
        """Count the pairs of known rows and rows of the file by pattern.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
            Distinct or not.
        rows : ndarray of int64, shape (m,)
            Rows with each, at least 0.

        Raises
        ------
        InputError
            If the pairs are 2^63 or more, or a number of rows is below 0.
        """
        if len(rows) != len(known) or (len(rows) and rows.min() < 0):
            raise InputError("Record linkage: every known record must have a number of rows, at least 0.")
        refuse_pairs(sum(rows.tolist()) * sum(self.rows.tolist()))
        counts = np.zeros(n_patterns(self.levels), dtype=np.int64)
        block = max(1, _PAIRS // len(self.cells))
        for begin, part in self._parts(known):
            looks = self._looks(part)
            for first in range(0, len(part), block):
                here = slice(first, first + block)
                counts += _counts(_codes(looks, here), rows[begin : begin + len(part)][here], self.rows, len(counts))
        code = np.flatnonzero(counts)
        return PatternCounts.of(code, counts[code], self.levels)

    def _parts(self, known: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Known records in parts whose levels with every distinct cell fit into memory, and where each begins."""
        size = max(1, _LEVELS // max(one.cells for one in self.agreements))
        for begin in range(0, len(known), size):
            yield begin, known[begin : begin + size]

    def _looks(self, known: IntArray) -> list[_Look]:
        """What the codes of pairs are added up from: one look-up an attribute, or several attributes."""
        kind = np.uint16 if n_patterns(self.levels) <= 2**16 else np.uint32
        stride = np.cumprod([1, *(one + 1 for one in reversed(self.levels))])[-2::-1]
        looks: list[_Look] = []
        for j in np.argsort([one.cells for one in self.agreements], kind="stable"):
            codes, place = np.unique(known[:, j], return_inverse=True)
            table = self.agreements[j].of(codes).astype(kind) * kind(stride[j])
            one = _Look(table, place.reshape(-1), self.cells[:, j])
            both = looks[-1].with_(one) if looks and self.together else None
            looks[-1 if both else len(looks) :] = [both or one]
        return looks


@dataclass(frozen=True, eq=False)
class _Look:
    """Where the contribution of some attributes to the code of a pair stands.

    Attributes
    ----------
    table : ndarray of uint16 or uint32, shape (u, v)
    known : ndarray of int64, shape (m,)
        Row of each known record.
    record : ndarray of integers, shape (p,)
        Column of each record of the file.
    """

    table: npt.NDArray[Any]
    known: npt.NDArray[np.integer]
    record: npt.NDArray[np.integer]

    def with_(self, other: _Look) -> _Look | None:
        """One look-up instead of two, or None where its table is too large to be worth it."""
        known, of_known = distinct_rows([self.known, other.known])
        record, of_record = distinct_rows([self.record, other.record])
        cells = len(known) * len(record)
        if cells > _TABLE_CELLS or 4 * cells > len(self.known) * len(self.record):
            return None
        table = self.table[np.ix_(self.known[known], self.record[record])]
        table += other.table[np.ix_(other.known[known], other.record[record])]
        return _Look(table, of_known, of_record)


def _added(one: IntArray, rows: LongArray) -> tuple[IntArray, LongArray]:
    """Distinct values of an attribute, shape (v, 1), and the rows with each."""
    values, place = np.unique(one, return_inverse=True)
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, place.reshape(-1), rows)
    return values[:, None], total


def _codes(looks: Sequence[_Look], known: slice) -> npt.NDArray[Any]:
    """Codes of some known records with every record of the file, shape (b, p)."""
    first, *rest = looks
    code: npt.NDArray[Any] = first.table[first.known[known]].take(first.record, axis=1)
    for look in rest:
        code += look.table[look.known[known]].take(look.record, axis=1)
    return code


def _counts(code: npt.NDArray[Any], mine: LongArray, theirs: LongArray, n: int) -> LongArray:
    """Pairs of each code, every pair as often as both its records occur; exact."""
    flat = code.reshape(-1).astype(np.intp)
    total = int(mine.sum()) * int(theirs.sum())
    if total == flat.size and mine.all():
        return np.bincount(flat, minlength=n)
    weight = (mine[:, None] * theirs[None, :]).reshape(-1)
    if total < 2**53:
        return np.bincount(flat, weight, minlength=n).astype(np.int64)
    found = np.zeros(n, dtype=np.int64)
    for shift in range(0, 63, _LIMB):
        limb = (weight >> shift) & (2**_LIMB - 1)
        found += np.bincount(flat, limb, minlength=n).astype(np.int64) << shift
    return found
