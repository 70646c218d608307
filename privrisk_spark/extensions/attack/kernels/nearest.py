"""Distance-based record linkage: the records of a file nearest to a known one (T20).

``b' = argmin_b d(a, b)``, with ``d`` the weighted mean of the differences of the attributes. Records at the least
distance are tied, and the intruder can do no better than to draw one of them: so what is returned is how many they are.
Equal records are compared once. Every answer is exact.

The records are sorted by the cells of their first attributes. A record's distance is at least what its first attributes
contribute, so groups of records that begin too far away are passed over whole; the results are those of comparing with
every record, bit for bit, as the terms are added in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import Difference, NumberDifference
from privrisk_spark.extensions.attack.kernels.points import Points, tie
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = ["Linked", "SearchedFile", "tie"]

_TABLE_CELLS = 2**22
"""Differences kept at once for one attribute; does not change a result."""

_MOST_AT_ONCE = 512
"""Known records whose differences are looked up together; does not change a result."""

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Linked:
    """What is nearest to known records.

    Attributes
    ----------
    distance : ndarray of float64, shape (m,)
        Least distance of each.
    rows : ndarray of int64, shape (m,)
        Rows of the file at that distance.
    first : ndarray of int64, shape (m,)
        The first of the distinct records of the file at that distance.
    """

    distance: FloatArray
    rows: LongArray
    first: LongArray

    def at(self, places: LongArray) -> Linked:
        """Answers for some of the known records, in any order and as often as they are named."""
        return Linked(self.distance[places], self.rows[places], self.first[places])


@dataclass(frozen=True, eq=False)
class SearchedFile:
    """The distinct records of a file in which is searched, and how they are compared.

    Attributes
    ----------
    differences : tuple of k Difference
    weights : ndarray of float64, shape (k,)
        At least 0 and of sum 1: a weighted mean of the differences.
    cells : ndarray of int32, shape (p, k)
        Which of the distinct cells of each attribute a record has.
    rows : ndarray of int64, shape (p,)
        At least 1.
    passing_over : bool
        Whether groups of records are passed over. It changes no result.
    as_points : bool
        Whether records are compared as points where all of their attributes are numbers. It changes no result but the
        last bits of distances.
    few : int
        Records of a file that are compared all at once, at most, as little is gained by passing over. It changes no
        result.
    order : tuple of k int, optional
        In which the terms of a distance are added; by default those with few distinct cells first.

    Raises
    ------
    InputError
        If there is no record, or the weights are no mean.
    """

    differences: tuple[Difference, ...]
    weights: FloatArray
    cells: IntArray
    rows: LongArray
    passing_over: bool = True
    as_points: bool = True
    few: int = 2**12
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a file with nothing in it, and weights that are none."""
        if not len(self.cells) or (self.rows < 1).any():
            raise InputError("Record linkage: the file has no records.")
        shapes = {len(self.differences), len(self.weights), self.cells.shape[1]}
        if len(shapes) > 1 or not len(self.weights):
            raise InputError("Record linkage: there must be one difference and one weight for each attribute.")
        if (self.weights < 0).any() or abs(float(self.weights.sum()) - 1.0) > _TOLERANCE:
            raise InputError("Record linkage: weights must be at least 0, and their sum 1.")

    @cached_property
    def _order(self) -> LongArray:
        """Attributes, in the order in which terms are added."""
        if self.order is not None:
            return np.array(self.order, dtype=np.int64)
        return np.argsort([one.cells for one in self.differences], kind="stable").astype(np.int64)

    @cached_property
    def _groups(self) -> tuple[int, LongArray, LongArray, LongArray]:
        """How many attributes come first, the records in their order, and where each group begins and its first one."""
        p, k = self.cells.shape
        columns = [np.ascontiguousarray(self.cells[:, i]) for i in self._order]
        chosen = (0, np.zeros(1, dtype=np.int64), np.zeros(p, dtype=np.int64))
        if self.passing_over:
            for j in range(1, k):
                first, member = distinct_rows(columns[:j])
                if len(first) > 4 * np.sqrt(p):
                    break
                chosen = (j, first, member)
        j, first, member = chosen
        order = np.argsort(member, kind="stable").astype(np.int64)
        start = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(first)))]).astype(np.int64)
        return j, order, start, first

    @cached_property
    def _points(self) -> Points | None:
        """The records as points, where each attribute of each is a number."""
        if not self.as_points:
            return None
        columns = []
        for j, (one, weight) in enumerate(zip(self.differences, self.weights, strict=True)):
            if not isinstance(one, NumberDifference) or not one.is_number(one.nodes).all():
                return None
            columns.append(np.sqrt(weight) * one.low[one.nodes][self.cells[:, j]])
        return Points(np.ascontiguousarray(np.column_stack(columns)), self.rows)

    def _as_points(self, known: IntArray) -> tuple[BoolArray, FloatArray]:
        """Which known records are points of numbers alone, and these, in the units of the file's."""
        there: BoolArray = np.ones(len(known), dtype=np.bool_)
        columns = []
        for j, one in enumerate(self.differences):
            assert isinstance(one, NumberDifference)
            there &= one.is_number(known[:, j], known=True)
            columns.append(np.sqrt(self.weights[j]) * one.of_known[0][known[:, j]])
        return there, np.column_stack(columns)[there]

    def among(self, records: LongArray) -> SearchedFile:
        """Return some of the records as a file, compared in the same way.

        Parameters
        ----------
        records : ndarray of int64, shape (q,)
            Positions, ascending; one at least.

        Notes
        -----
        Of an attribute with more cells than these records its own are looked up alone: else a few records would cost as
        much as the whole file.
        """
        cells, differences = self.cells[records], list(self.differences)
        for j, one in enumerate(self.differences):
            if one.cells > len(records):
                there, place = np.unique(cells[:, j], return_inverse=True)
                differences[j], cells[:, j] = one.among(there.astype(np.int64)), place.reshape(-1)
        order = tuple(self._order.tolist())
        return replace(self, differences=tuple(differences), cells=cells, rows=self.rows[records], order=order)

    def linked(self, known: IntArray) -> Linked:
        """Find what is nearest to known records.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
            Nodes, as each attribute's difference takes them.
        """
        if self._points is None:
            return self._together(known) if len(self.cells) <= self.few else self._searched(known)
        there, points = self._as_points(known)
        distance = np.zeros(len(known))
        rows, nearest = (np.zeros(len(known), dtype=np.int64) for _ in range(2))
        distance[there], rows[there], nearest[there] = self._points.linked(points)
        if not there.all():
            others = self._searched(known[~there])
            distance[~there], rows[~there], nearest[~there] = others.distance, others.rows, others.first
        return Linked(distance, rows, nearest)

    def _together(self, known: IntArray) -> Linked:
        """Compare known records with every record, many at once; the terms are added as by :meth:`_searched`."""
        m, p = len(known), len(self.cells)
        distance, rows, nearest = np.zeros(m), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        cells = [np.ascontiguousarray(self.cells[:, i]) for i in self._order]
        block = max(1, min(_MOST_AT_ONCE, _TABLE_CELLS // max(p, *(one.cells for one in self.differences))))
        for begin in range(0, m, block):
            part = slice(begin, begin + block)
            total = np.zeros((len(known[part]), p))
            for table, place, at in zip(*self._tables(known[part]), cells, strict=True):
                total += table.take(at, axis=1)[place]
            least = total.min(axis=1)
            near = total <= tie(least)[:, None]
            distance[part], rows[part], nearest[part] = least, near @ self.rows, near.argmax(axis=1)
        return Linked(distance, rows, nearest)

    def _searched(self, known: IntArray) -> Linked:
        """Look the differences up in tables of distinct cells, and pass groups of records over."""
        m = len(known)
        distance, rows, nearest = np.zeros(m), np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        j, order, start, first = self._groups
        attributes = self._order
        sorted_cells = [np.ascontiguousarray(self.cells[order, i]) for i in attributes]
        heads = [np.ascontiguousarray(self.cells[first, i]) for i in attributes[:j]]
        sorted_rows = self.rows[order]
        widest = max(one.cells for one in self.differences)
        block = max(1, min(_MOST_AT_ONCE, _TABLE_CELLS // widest))
        for begin in range(0, m, block):
            part = known[begin : begin + block]
            tables, places = self._tables(part)
            for b in range(len(part)):
                of = [table[place[b]] for table, place in zip(tables, places, strict=True)]
                head = _added(of[:j], heads, len(first))
                least, tied = _nearest(head, of[j:], sorted_cells[j:], start)
                distance[begin + b], rows[begin + b] = least, sorted_rows[tied].sum()
                nearest[begin + b] = order[tied].min()
        return Linked(distance, rows, nearest)

    def distances(self, known: IntArray, record: LongArray) -> FloatArray:
        """Distance of each known record from one record of the file, as :meth:`linked` computes it.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Positions among the distinct records.

        Returns
        -------
        ndarray of float64, shape (m,)
        """
        found = np.zeros(len(known))
        if self._points is not None:
            there, points = self._as_points(known)
            found[there] = self._points.distances(points, record[there])
            if not there.all():
                alone = replace(self, as_points=False)
                found[~there] = alone.distances(known[~there], record[~there])
            return found
        block = max(1, min(_MOST_AT_ONCE, _TABLE_CELLS // max(one.cells for one in self.differences)))
        for begin in range(0, len(known), block):
            part = slice(begin, begin + block)
            tables, places = self._tables(known[part])
            total = np.zeros(len(known[part]))
            for i, table, place in zip(self._order, tables, places, strict=True):
                total += table[place, self.cells[record[part], i]]
            found[part] = total
        return found

    def holds(self, known: IntArray, record: LongArray, linked: Linked) -> BoolArray:
        """Mark the known records whose own record is among the nearest.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Position of each one's own among the distinct records, -1 if it has none.
        linked : Linked
            Of the same.
        """
        there = record >= 0
        near: BoolArray = np.zeros(len(known), dtype=np.bool_)
        near[there] = self.distances(known[there], record[there]) <= tie(linked.distance[there])
        return near

    def _tables(self, known: IntArray) -> tuple[list[FloatArray], list[LongArray]]:
        """Weighted differences of the distinct known values of each attribute, in the order of addition."""
        tables, places = [], []
        for i in self._order:
            codes, place = np.unique(known[:, i], return_inverse=True)
            tables.append(self.weights[i] * self.differences[i].of(codes))
            places.append(place.reshape(-1).astype(np.int64))
        return tables, places


def _added(terms: Sequence[FloatArray], cells: Sequence[IntArray], n: int) -> FloatArray:
    """Sum of the terms of records, from the first on."""
    total = np.zeros(n)
    for term, at in zip(terms, cells, strict=True):
        total += term[at]
    return total


def _nearest(
    head: FloatArray, terms: Sequence[FloatArray], cells: Sequence[IntArray], start: LongArray
) -> tuple[float, LongArray]:
    """Least distance, and the places of the records at it, in groups whose first terms are added."""

    def totals(groups: LongArray) -> tuple[FloatArray, LongArray | None]:
        if len(groups) == len(head):
            places = None
            sizes = np.diff(start)
        else:
            sizes = start[groups + 1] - start[groups]
            ends = np.cumsum(sizes)
            places = np.arange(ends[-1]) + np.repeat(start[groups] - (ends - sizes), sizes)
        total = np.repeat(head[groups], sizes)
        for term, at in zip(terms, cells, strict=True):
            total += term[at if places is None else at[places]]
        return total, places

    nearest = np.array([int(np.argmin(head))])
    bound = float(totals(nearest)[0].min())
    total, places = totals(np.flatnonzero(head <= tie(np.array(bound))))
    least = float(total.min())
    tied = np.flatnonzero(total <= tie(np.array(least)))
    return least, tied if places is None else places[tied]
