"""Blocking: known records are compared with some records of a file alone, and it is told of which nothing is lost.

Two ways to make blocks. By *consistent cells*: in some attributes the records of a block are those nearest to the known
one, where a cell is at no difference from what it covers; those that fit it, if there are any. By a *principal axis*:
the numbers of the file are projected on the direction in which they vary most, and cut into blocks of equal size; a
known record is compared with the block it falls into and its two neighbours. Distances are searched by either, match
weights by consistent cells: what a pair lacks of the greatest weight is a distance, too.

Either way what is left out is at least so far away: the least sum of the differences of the attributes that blocks are
made by, and in the others what the known record differs from every cell of the file; or the squared distance along the
axis. Where the nearest record of the block is nearer than that, the answer is that of comparing with every record. Of
the other known records a sample shows how often something was lost.

Status: of a record that is said to be complete, *proved*; the recall of the others is *tested* on a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LostWeight
from privrisk_spark.extensions.attack.kernels.differences import Difference, LevelDifference, NumberDifference
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile, tie
from privrisk_spark.extensions.attack.kernels.term_frequencies import TermWeight
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = [
    "BlockedFile",
    "ConsistentCells",
    "PrincipalAxis",
    "axis_blocks",
    "consistent_blocks",
    "fitting_attributes",
]

_PAIRS = 2**22
"""Pairs of groups that are compared at once; does not change a result."""

_MOST_GROUP_PAIRS = 2**28
"""Pairs of groups, one of each file, by which blocks may be made."""

_MOST_CELLS = 2**12
"""Distinct cells of an attribute by all of which it is looked up how far a known record is from the nearest one."""

_LEAST_BLOCK = 32
"""Records of a block on an axis, at least: of fewer the neighbours would mostly be missed."""


@dataclass(frozen=True)
class ConsistentCells:
    """Blocks of the records whose cells fit a known one in some attributes.

    Attributes
    ----------
    attributes : tuple of int
        Positions, one at least, each of a weight above 0.
    """

    attributes: tuple[int, ...]


@dataclass(frozen=True)
class PrincipalAxis:
    """Blocks of records that follow each other along an axis.

    Attributes
    ----------
    direction : tuple of k float
        Of length 1, over the attributes times the roots of their weights; 0 of one that is no number.
    size : int
        Distinct records in a block, at least 1; the last block may hold up to twice as many.
    """

    direction: tuple[float, ...]
    size: int


@dataclass(frozen=True, eq=False)
class BlockedFile:
    """A file in which is searched block by block.

    Raises
    ------
    InputError
        If the blocks are none of the file.
    """

    file: SearchedFile
    blocks: ConsistentCells | PrincipalAxis

    def __post_init__(self) -> None:
        """Refuse blocks that are none of the file."""
        k, blocks = self.file.cells.shape[1], self.blocks
        if isinstance(blocks, PrincipalAxis):
            if len(blocks.direction) != k or blocks.size < 1:
                raise InputError("Record linkage: an axis must have a part for each attribute, and a block a record.")
        elif not blocks.attributes or not all(0 <= j < k and self.file.weights[j] > 0 for j in blocks.attributes):
            raise InputError("Record linkage: blocks must be made by attributes whose weights are above 0.")

    @cached_property
    def _made(self) -> _Cells | _Axis:
        if isinstance(self.blocks, ConsistentCells):
            return _Cells(self.file, self.blocks)
        return _Axis.of(self.file, self.blocks)

    def order(self, known: IntArray) -> LongArray:
        """Known records in an order in which those of a block follow each other.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        return self._made.order(known)

    def compared(self, known: IntArray) -> Iterator[tuple[LongArray, LongArray, FloatArray]]:
        """Deal known records to their blocks.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)

        Yields
        ------
        those : ndarray of int64, shape (b,)
            Positions of known records of one block; every one is in one.
        candidates : ndarray of int64, shape (q,)
            Records of the file they are compared with, ascending; one at least.
        beyond : ndarray of float64, shape (b,)
            How far all other records are from each at least; infinite where there are none.
        """
        yield from self._made.compared(known)

    def linked(self, known: IntArray) -> Linked:
        """Find what is nearest to known records among those of their blocks.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        """
        return self.told(known)[0]

    def told(self, known: IntArray) -> tuple[Linked, BoolArray]:
        """Find what is nearest, and say of which records that is sure.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)

        Returns
        -------
        linked : Linked
        complete : ndarray of bool, shape (m,)
            Whether it is proved that the answer is that of comparing with every record.
        """
        m = len(known)
        distance, least = np.zeros(m), np.zeros(m)
        rows, first = (np.zeros(m, dtype=np.int64) for _ in range(2))
        for those, candidates, beyond in self.compared(known):
            found = self.file.among(candidates).linked(known[those])
            distance[those], rows[those], first[those] = found.distance, found.rows, candidates[found.first]
            least[those] = beyond
        return Linked(distance, rows, first), tie(distance) < least

    def holds(self, known: IntArray, record: LongArray, linked: Linked) -> BoolArray:
        """Mark the known records whose own record is among those found: near, and in their block.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Position of each one's own among the distinct records, -1 if it has none.
        linked : Linked
            Of the same.
        """
        near = self.file.holds(known, record, linked)
        there = np.flatnonzero(near)
        near[there] = self._made.within(known[there], record[there])
        return near


@dataclass(frozen=True, eq=False)
class _Cells:
    """Blocks by consistent cells, as they are made of a file."""

    file: SearchedFile
    blocks: ConsistentCells

    @cached_property
    def _groups(self) -> tuple[LongArray, LongArray, LongArray, LongArray]:
        """The first record of each group of equal cells, whose group each is, the records by groups, their begins."""
        first, member = distinct_rows([np.ascontiguousarray(self.file.cells[:, j]) for j in self.blocks.attributes])
        start = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(first)))]).astype(np.int64)
        return first, member, np.argsort(member, kind="stable").astype(np.int64), start

    @property
    def sizes(self) -> LongArray:
        """Records of each group."""
        return np.diff(self._groups[3])

    def order(self, known: IntArray) -> LongArray:
        """As :meth:`BlockedFile.order`."""
        return np.lexsort([known[:, j] for j in self.blocks.attributes[::-1]]).astype(np.int64)

    def groups_of(self, known: IntArray) -> tuple[LongArray, LongArray]:
        """One of each group of known records that are equal in the attributes, and whose group each is."""
        return distinct_rows([np.ascontiguousarray(known[:, j]) for j in self.blocks.attributes])

    def chosen(self, known: IntArray) -> Iterator[tuple[slice, BoolArray, FloatArray]]:
        """Yield which groups of the file are in the block of each known record, and how far the others are at least."""
        first = self._groups[0]
        step = max(1, _PAIRS // len(first))
        exact = [self.file.differences[j] for j in self.blocks.attributes]
        fitting = [_nearest_reading(one) for one in exact]
        alike = all(a is b for a, b in zip(exact, fitting, strict=True))
        for begin in range(0, len(known), step):
            part = known[begin : begin + step]
            apart = self._apart(part, fitting)
            inside = apart <= tie(apart.min(axis=1))[:, None]
            far = np.where(inside, np.inf, apart if alike else self._apart(part, exact))
            yield slice(begin, begin + len(part)), inside, far.min(axis=1)

    def _apart(self, known: IntArray, differences: Sequence[Difference]) -> FloatArray:
        """Weighted differences in the attributes of known records from every group."""
        first = self._groups[0]
        total = np.zeros((len(known), len(first)))
        for j, one in zip(self.blocks.attributes, differences, strict=True):
            codes, place = np.unique(known[:, j], return_inverse=True)
            total += (self.file.weights[j] * one.of(codes))[place.reshape(-1)][:, self.file.cells[first, j]]
        return total

    def compared(self, known: IntArray) -> Iterator[tuple[LongArray, LongArray, FloatArray]]:
        """As :meth:`BlockedFile.compared`."""
        _, _, order, start = self._groups
        first, member = self.groups_of(known)
        by_group = np.argsort(member, kind="stable")
        begins = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(first)))])
        elsewhere = self._elsewhere(known)
        for part, inside, far in self.chosen(known[first]):
            for i, group in enumerate(range(part.start, part.stop)):
                those = by_group[begins[group] : begins[group + 1]]
                pieces = [order[start[g] : start[g + 1]] for g in np.flatnonzero(inside[i])]
                yield those, np.sort(np.concatenate(pieces)), far[i] + elsewhere[those]

    def _elsewhere(self, known: IntArray) -> FloatArray:
        """How far known records are from every cell of the file at least, in attributes that make no blocks."""
        total = np.zeros(len(known))
        for j, one in enumerate(self.file.differences if len(known) else ()):
            if j in self.blocks.attributes or not self.file.weights[j] or one.cells > _MOST_CELLS:
                continue
            codes, place = np.unique(known[:, j], return_inverse=True)
            step = _PAIRS // _MOST_CELLS
            least = [one.of(codes[begin : begin + step]).min(axis=1) for begin in range(0, len(codes), step)]
            total += self.file.weights[j] * np.concatenate(least)[place.reshape(-1)]
        return total

    def within(self, known: IntArray, record: LongArray) -> BoolArray:
        """Whether records of the file are in the blocks of known ones."""
        found: BoolArray = np.zeros(len(known), dtype=np.bool_)
        if not len(known):
            return found
        of_file = self._groups[1][record]
        first, member = self.groups_of(known)
        for part, inside, _ in self.chosen(known[first]):
            those = np.flatnonzero((member >= part.start) & (member < part.stop))
            found[those] = inside[member[those] - part.start, of_file[those]]
        return found


def _nearest_reading(one: Difference) -> Difference:
    """The same difference, at 0 where a cell covers the other; texts know no other reading."""
    if isinstance(one, LostWeight | TermWeight):
        return one.misfit
    if isinstance(one, LevelDifference | NumberDifference) and one.reading != "nearest":
        return replace(one, reading="nearest")
    return one


@dataclass(frozen=True, eq=False)
class _Axis:
    """Blocks along an axis, as they are made of a file."""

    file: SearchedFile
    direction: FloatArray
    order_of_file: LongArray
    projected: FloatArray  # in this order
    bounds: LongArray  # places at which blocks begin, and the end

    @classmethod
    def of(cls, file: SearchedFile, blocks: PrincipalAxis) -> _Axis:
        direction = np.array(blocks.direction)
        at = _centres(file) @ direction
        order = np.argsort(at, kind="stable").astype(np.int64)
        number = max(1, len(at) // blocks.size)
        bounds = np.append(np.arange(number) * blocks.size, len(at)).astype(np.int64)
        return cls(file, direction, order, at[order], bounds)

    def _of_known(self, known: IntArray) -> tuple[FloatArray, BoolArray]:
        """Known records on the axis, and which of them are numbers in every attribute that the axis looks at."""
        at, sure = np.zeros(len(known)), np.ones(len(known), dtype=np.bool_)
        for j, one in enumerate(self.file.differences):
            if isinstance(one, NumberDifference):
                at += self.direction[j] * np.sqrt(self.file.weights[j]) * one.centres(known[:, j], known=True)
                sure &= one.is_number(known[:, j], known=True) | (self.direction[j] == 0)
        return at, sure

    @cached_property
    def _of_numbers(self) -> bool:
        """Whether the file's records are numbers in every attribute that the axis looks at."""
        return all(
            bool(one.is_number(one.nodes).all()) or self.direction[j] == 0
            for j, one in enumerate(self.file.differences)
            if isinstance(one, NumberDifference)
        )

    def _block(self, at: FloatArray) -> LongArray:
        """Block into which projections fall."""
        return np.searchsorted(self.projected[self.bounds[1:-1]], at, side="right").astype(np.int64)

    def order(self, known: IntArray) -> LongArray:
        """As :meth:`BlockedFile.order`."""
        return np.argsort(self._of_known(known)[0], kind="stable").astype(np.int64)

    def compared(self, known: IntArray) -> Iterator[tuple[LongArray, LongArray, FloatArray]]:
        """As :meth:`_Cells.compared`."""
        at, sure = self._of_known(known)
        block, last = self._block(at), len(self.bounds) - 2
        for number in np.unique(block):
            those = np.flatnonzero(block == number)
            low, high = self.bounds[max(number - 1, 0)], self.bounds[min(number + 1, last) + 1]
            below = self.projected[low - 1] if low else -np.inf
            above = self.projected[high] if high < len(self.projected) else np.inf
            gap = np.minimum(at[those] - below, above - at[those])
            # Rounding of the projections is far below what counts as a tie.
            beyond = np.where(sure[those] & self._of_numbers, np.maximum(gap, 0.0) ** 2, 0.0)
            if low == 0 and high == len(self.projected):
                beyond = np.full(len(those), np.inf)
            yield those, np.sort(self.order_of_file[low:high]), beyond

    def within(self, known: IntArray, record: LongArray) -> BoolArray:
        """As :meth:`_Cells.within`."""
        place = np.empty(len(self.projected), dtype=np.int64)
        place[self.order_of_file] = np.arange(len(place))
        theirs = np.searchsorted(self.bounds[1:-1], place[record], side="right")
        return np.asarray(np.abs(theirs - self._block(self._of_known(known)[0])) <= 1)


def _centres(file: SearchedFile) -> FloatArray:
    """Middles of the file's cells times the roots of the weights, shape (p, k); 0 of what is no number."""
    found = np.zeros(file.cells.shape)
    for j, one in enumerate(file.differences):
        if isinstance(one, NumberDifference):
            found[:, j] = np.sqrt(file.weights[j]) * one.centres(one.nodes)[file.cells[:, j]]
    return found


def axis_blocks(file: SearchedFile, known: int, *, most: int) -> PrincipalAxis | None:
    """Cut a file into blocks along the first principal axis of its numbers.

    Parameters
    ----------
    known : int
        Distinct records to be linked, at least 1.
    most : int
        Comparisons of cells that all of them may take together.

    Returns
    -------
    PrincipalAxis or None
        Of the largest blocks that are within it; None if no attribute is a number that varies, or blocks would be
        smaller than 32 records.

    Notes
    -----
    Of the two directions of an axis it is the one whose largest part is above 0; of equal parts the first one counts.
    """
    size = most // (3 * known * file.cells.shape[1])
    if size < _LEAST_BLOCK:
        return None
    centres, rows = _centres(file), file.rows.astype(np.float64)
    about = centres - (rows @ centres) / rows.sum()
    spread, axes = np.linalg.eigh((about * rows[:, None]).T @ about / rows.sum())
    if not spread[-1] > 0:
        return None
    direction = axes[:, -1]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return PrincipalAxis(tuple(direction.tolist()), int(size))


def fitting_attributes(file: SearchedFile, known: IntArray) -> list[int]:
    """Attributes whose cells fit each other where nothing is wrong: those that may make blocks of consistent cells.

    These are levels, and numbers that are generalized in one of the files. Numbers of both that are changed, and texts
    that are spelled in two ways, are near to each other without being equal. By match weights numbers fit that do not
    disagree, so that every attribute may make blocks.

    Parameters
    ----------
    known : ndarray of int32, shape (m, k)
    """
    found = []
    for j, one in enumerate(file.differences):
        if isinstance(one, NumberDifference):
            (low, high), nodes = one.of_known, np.unique(known[:, j])
            ends = np.append(one.low[one.nodes], low[nodes]), np.append(one.high[one.nodes], high[nodes])
            if (np.isfinite(ends[0]) & np.isfinite(ends[1]) & (ends[0] < ends[1])).any():
                found.append(j)
        elif isinstance(one, LevelDifference | LostWeight | TermWeight):
            found.append(j)
    return found


def consistent_blocks(
    file: SearchedFile, known: IntArray, attributes: Sequence[int], *, most: int
) -> ConsistentCells | None:
    """Choose the attributes that make blocks: as few as will do, those first that part the most records.

    Parameters
    ----------
    known : ndarray of int32, shape (m, k)
        Distinct records to be linked.
    attributes : sequence of int
        That may make blocks.
    most : int
        Comparisons of cells that making blocks and comparing within them may take together.

    Returns
    -------
    ConsistentCells or None
        None if no attributes will do.
    """
    weighty = [j for j in attributes if file.weights[j] > 0]
    if not weighty:
        return None
    alone = {j: _pairs(_Cells(file, ConsistentCells((j,))), known) for j in weighty}
    ordered = sorted(weighty, key=lambda j: (_infinite(alone[j]), j))
    k = file.cells.shape[1]
    for n in range(1, len(ordered) + 1):
        blocks = ConsistentCells(tuple(sorted(ordered[:n])))
        pairs = alone[ordered[0]] if n == 1 else _pairs(_Cells(file, blocks), known)
        if pairs is None:
            return None
        groups, compared = pairs
        if groups * n + compared * k <= most:
            return blocks
    return None


def _infinite(pairs: tuple[int, int] | None) -> float:
    return np.inf if pairs is None else float(pairs[1])


def _pairs(made: _Cells, known: IntArray) -> tuple[int, int] | None:
    """Pairs of groups, and pairs of records that would be compared in blocks; None if there are too many groups."""
    first, member = made.groups_of(known)
    sizes = made.sizes
    if len(first) * len(sizes) > _MOST_GROUP_PAIRS:
        return None
    each = np.bincount(member, minlength=len(first))
    compared = sum(int(each[part] @ (inside @ sizes)) for part, inside, _ in made.chosen(known[first]))
    return len(first) * len(sizes), compared
