"""Elements of records' lattices with their counts: the t-frequent ones without a look at the rest, and all of them.

An element of a record's lattice is frequent if it generalizes at least t rows (F12 section 6.3). Where counts never
fall when a value is generalized, an element can be frequent only if it still is with its last attributes suppressed. So
the elements are built up attribute after attribute from the fully suppressed one, and what has become too rare is
dropped with all that would come of it. Of a record with ``f`` frequent elements at most ``f Σ h_i + 1`` are counted.

Status: *tested* against enumeration; the argument is the one above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts, DenseCounts, SortedCounts, consistent_at, incidence
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Count = Callable[[IntArray, LevelArray], LongArray]
"""``ρ`` of elements given by codes of a record, int32 (p, k), and levels, int8 (p, k); int64 (p,)."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements of the lattices of consecutive records.

    Attributes
    ----------
    begin, end : int
        The records, from the first to before the last.
    record : ndarray of int64, shape (p,)
        Number of each element's record, counted from ``begin``; ascending.
    levels : ndarray of int8, shape (p, k)
        In lexicographic order within a record; at most the depth of the record's value, so that none comes twice.
    consistent : ndarray of int64, shape (p,)
        ``ρ``.
    """

    begin: int
    end: int
    record: LongArray
    levels: LevelArray
    consistent: LongArray


def frequent_elements(
    codes: IntArray, depths: IntArray, count: Count, *, least: int, at_once: int
) -> Iterator[Elements]:
    """Yield the frequent elements of all records, in blocks of records.

    Parameters
    ----------
    codes : ndarray of int32, shape (m, k)
        Records.
    depths : ndarray of int32, shape (m, k)
        Depth of each value, at most 126: levels from 0 to it are different elements.
    count : Count
        Never falls when a level rises; may be any number below ``least`` where ``ρ`` is.
    least : int
        Elements with at least that many rows; 0 or less: all elements.
    at_once : int
        Elements held at once, but for those of a single record; does not change what is found, only the blocks.
    """
    waiting = [(0, len(codes))] if len(codes) else []
    while waiting:
        begin, end = waiting.pop()
        found = _of_block(codes[begin:end], depths[begin:end], count, least, at_once)
        if found is None:
            middle = (begin + end) // 2
            waiting += [(middle, end), (begin, middle)]
        else:
            yield Elements(begin, end, *found)


def _of_block(
    codes: IntArray, depths: IntArray, count: Count, least: int, at_once: int
) -> tuple[LongArray, LevelArray, LongArray] | None:
    """Elements of a block of records, or None if they are too many."""
    m, k = codes.shape
    record, levels = np.arange(m, dtype=np.int64), depths.astype(np.int8)
    consistent = count(codes, levels) if least > 0 else np.zeros(m, dtype=np.int64)
    if least > 0:
        enough = consistent >= least
        record, levels, consistent = record[enough], levels[enough], consistent[enough]
    for i in range(k):
        children = depths[record, i].astype(np.int64) + 1
        after = np.cumsum(children)
        if m > 1 and len(after) and after[-1] > at_once:
            return None
        parent = np.repeat(np.arange(len(record)), children)
        level = np.arange(len(parent)) - (after - children)[parent]
        record, levels, consistent = record[parent], levels[parent], consistent[parent]
        # The last child is the parent, which is counted.
        lower = level < levels[:, i]
        levels[:, i] = level
        if least > 0:
            consistent[lower] = count(codes[record[lower]], levels[lower])
            enough = consistent >= least
            record, levels, consistent = record[enough], levels[enough], consistent[enough]
    return record, levels, consistent if least > 0 else count(codes[record], levels)


def consistent_elements(
    counts: Counts, code_depth: Sequence[IntArray], codes: IntArray, levels: LevelArray
) -> LongArray:
    """``ρ`` of elements at levels of their own.

    Parameters
    ----------
    code_depth : sequence of k ndarrays of int32, shape (n_leaves_i + 1,)
    codes : ndarray of int32, shape (p, k)
    levels : ndarray of int8, shape (p, k)

    Returns
    -------
    ndarray of int64, shape (p,)
    """
    if isinstance(counts, DenseCounts):
        address = np.zeros(len(codes), dtype=np.int64)
        for i, offset in enumerate(counts.offsets):
            address += offset[codes[:, i], levels[:, i]]
        dense: LongArray = np.asarray(counts.cube).take(address)
        return dense
    result = np.zeros(len(codes), dtype=np.int64)
    for rows in by_levels(levels):
        vector = [int(level) for level in levels[rows[0]]]
        result[rows] = consistent_at(counts, code_depth, codes[rows], vector)
    return result


def by_levels(levels: LevelArray) -> list[LongArray]:
    """Rows of each distinct level vector, shape (p, k), ascending."""
    if not len(levels):
        return []
    first, member = distinct_rows(list(levels.T))
    ends = np.cumsum(np.bincount(member, minlength=len(first)))
    return np.split(np.argsort(member, kind="stable"), ends[:-1])


class LatticeCounts(Protocol):
    """Counts of whole lattices."""

    def of_records(self, codes: IntArray, heights: Sequence[int]) -> LongArray:
        """``ρ`` of every element of records of the same depths.

        Parameters
        ----------
        codes : ndarray of int32, shape (m, k)
        heights : sequence of k int
            Depths of the values.

        Returns
        -------
        ndarray of int64, shape (m, n_nodes)
            In lexicographic order of the level vectors.
        """


def lattice_counts(counts: Counts) -> LatticeCounts:
    """Return what counts whole lattices by the arrays of a count.

    Raises
    ------
    InputError
        If the count is of a plan that is looked up cell by cell.
    """
    if isinstance(counts, DenseCounts):
        return _Addressed(counts)
    if isinstance(counts, SortedCounts):
        return _Compared.of(counts)
    raise InputError("counting.plan: whole lattices are counted by 'dense' or 'sorted' alone.")


@dataclass(frozen=True, eq=False)
class _Addressed:
    counts: DenseCounts

    def of_records(self, codes: IntArray, heights: Sequence[int]) -> LongArray:
        """See :meth:`LatticeCounts.of_records`."""
        address = np.zeros((len(codes), 1), dtype=np.int64)
        for i, (offset, height) in enumerate(zip(self.counts.offsets, heights, strict=True)):
            at_levels = offset[codes[:, i], : height + 1]
            address = (address[:, :, None] + at_levels[:, None, :]).reshape(len(codes), -1)
        result: LongArray = np.asarray(self.counts.cube).take(address)
        return result


@dataclass(frozen=True, eq=False)
class _Compared:
    """Every dictionary vector is consistent from some level of each attribute on, and counts from there on.

    Attributes
    ----------
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
    consistent : tuple of k ndarrays of bool, shape (n_nodes_i, n_present_i)
        Whether a node is consistent with a value that occurs.
    value : tuple of k ndarrays of int64, shape (v,)
        Which of the values that occur each dictionary vector has.
    rows : ndarray of int64, shape (v,)
        Dictionary rows of each vector.
    """

    ancestor: tuple[IntArray, ...]
    consistent: tuple[BoolArray, ...]
    value: tuple[LongArray, ...]
    rows: LongArray

    @classmethod
    def of(cls, counts: SortedCounts) -> _Compared:
        """Compare every node with every value that occurs."""
        vectors = np.concatenate([group.vectors for group in counts.groups])
        consistent, value = [], []
        for i, axis in enumerate(counts.axes):
            present, of_vector = np.unique(vectors[:, i], return_inverse=True)
            classes, matrix = incidence(axis, present.astype(np.int32))
            consistent.append(matrix.toarray()[classes] > 0)
            value.append(of_vector)
        rows = np.concatenate([group.counts for group in counts.groups])
        return cls(tuple(axis.ancestor for axis in counts.axes), tuple(consistent), tuple(value), rows)

    def of_records(self, codes: IntArray, heights: Sequence[int]) -> LongArray:
        """See :meth:`LatticeCounts.of_records`."""
        shape = [height + 1 for height in heights]
        result = np.empty((len(codes), int(np.prod(shape))), dtype=np.int64)
        for record, code in enumerate(codes):
            node = np.zeros(len(self.rows), dtype=np.int64)
            possible = np.ones(len(self.rows), dtype=np.bool_)
            for i, height in enumerate(heights):
                # Consistency never ends on the way up, so the first consistent level is the number of those before.
                least = (~self.consistent[i][self.ancestor[i][code[i], : height + 1]]).sum(axis=0)
                node = node * (height + 1) + least.take(self.value[i])
                if (least > height).any():
                    possible &= (least <= height).take(self.value[i])
            node, rows = (node, self.rows) if possible.all() else (node[possible], self.rows[possible])
            # Exact in floating point: counts are far below 2^53.
            result[record] = np.bincount(node, weights=rows, minlength=result.shape[1])
        after = result.shape[1]
        for levels in shape:
            after //= levels
            cells = result.reshape(-1, levels, after)
            for level in range(1, levels):
                cells[:, level] += cells[:, level - 1]
        return result
