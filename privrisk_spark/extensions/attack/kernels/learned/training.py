"""Records whose own row is known, beside the rows they are confused with.

A record is found by a distance if its own row is the nearest; among ``t`` tied rows with probability ``1/t`` (T20).
Rows that no distance of a family tells from its own, such as equal ones, are always tied with it: they bound what the
record can contribute, its stake. A record is hopeless if another row is no farther from it than its own in any
attribute, and nearer in one: no monotone distance puts its own row first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Aggregate, WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.families import Family
from privrisk_spark.extensions.attack.kernels.learned.searched import Compared, all_distances, in_blocks, searched_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile, tie
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray

__all__ = ["KnownRecords", "Look", "Training", "found_by"]


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """Records, and which row of a file is each one's own.

    Attributes
    ----------
    known : ndarray of int32, shape (m, k)
        Nodes, as each attribute's difference takes them.
    own : ndarray of int64, shape (m,)
        Position of its own among the distinct records of the file, -1 if it has none: it cannot be found.
    people : ndarray of int64, shape (m,)
        With each.
    present : ndarray of float64, shape (m,)
        Probability that its own row is in the file.

    Raises
    ------
    InputError
        If the arrays do not belong together.
    """

    known: IntArray
    own: LongArray
    people: LongArray
    present: FloatArray

    def __post_init__(self) -> None:
        """Refuse arrays of different lengths."""
        if self.known.ndim != 2 or len({len(self.known), len(self.own), len(self.people), len(self.present)}) > 1:
            raise InputError("Record linkage: each known record needs its own row, its people and their probability.")

    def only(self, these: BoolArray | LongArray) -> KnownRecords:
        """Return some of them."""
        return KnownRecords(self.known[these], self.own[these], self.people[these], self.present[these])


def found_by(aggregate: Aggregate, file: SearchedFile, records: KnownRecords) -> FloatArray:
    """Probability that each record's link is right.

    Parameters
    ----------
    aggregate : Aggregate
        Searched by, instead of the file's own weights.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    searched = searched_by(aggregate, file.differences, file.cells, file.rows)
    linked = searched.linked(records.known)
    near = searched.holds(records.known, records.own, linked)
    return np.asarray(np.where(near, records.present / linked.rows, 0.0))


@dataclass(frozen=True, eq=False)
class Look:
    """How a distance does on the training records, and which rows are in the way.

    Attributes
    ----------
    probability : ndarray of float64, shape (m,)
        Of each link to be right.
    clearance : ndarray of float64, shape (m,)
        By how much the nearest row that can be told from its own is farther than it, where that is less than what was
        asked for; else infinite.
    record, place : ndarray of int64, shape (c,)
        Rows that are in the way: positions among the training records and in the file.
    """

    probability: FloatArray
    clearance: FloatArray
    record: LongArray
    place: LongArray


@dataclass(frozen=True, eq=False)
class Training:
    """Training records of a family of distances.

    Attributes
    ----------
    file : SearchedFile
        Its weights are the standard ones.
    records : KnownRecords
        Each has its own row.
    """

    family: Family
    file: SearchedFile
    records: KnownRecords

    @cached_property
    def _columns(self) -> tuple[IntArray, ...]:
        return tuple(np.ascontiguousarray(self.file.cells[:, i]) for i in range(self.file.cells.shape[1]))

    @cached_property
    def prospects(self) -> tuple[FloatArray, BoolArray]:
        """Stake of each record, shape (m,): people found if its own row comes first; and whether it is hopeless."""
        m = len(self.records.own)
        alike, hopeless = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.bool_)
        for part, compared in in_blocks(self.file.differences, self._columns, self.records.known):
            own = self._seen(compared, self.records.own[part])
            step = max(1, 2**16 // (part.stop - part.start))
            for begin in range(0, len(self.file.rows), step):
                those = slice(begin, begin + step)
                seen = self.family.told_apart(compared.with_all(those))
                nearer, farther = _compared(seen, own[:, :, None])
                alike[part] += (~(nearer | farther).any(axis=0)) @ self.file.rows[those]
                if self.family.monotone:
                    in_front = nearer.any(axis=0) & ~farther.any(axis=0)
                    hopeless[part] |= np.asarray(in_front).any(axis=1)
        return self.records.people * self.records.present / np.maximum(alike, 1), hopeless

    @cached_property
    def scale(self) -> float:
        """Mean distance, by the standard weights, of some of the records from all rows; 1 where all are equal."""
        for _, compared in in_blocks(self.file.differences, self._columns, self.records.known):
            mean = float(all_distances(WeightedMean(self.file.weights), compared).mean())
            return mean if mean > 0 else 1.0
        return 1.0

    def _seen(self, compared: Compared, place: LongArray) -> FloatArray:
        """What is told of each record of a block and a row; ndarray of float64, shape (n, b)."""
        return self.family.told_apart(compared.with_each(np.arange(len(place)), place))

    def look(self, aggregate: Aggregate, asked: FloatArray, wanted: FloatArray, *, most: int) -> Look:
        """Try a distance.

        Parameters
        ----------
        asked : ndarray of float64, shape (m,)
            Clearances that are told are those below this; -inf for a record of which none is.
        wanted : ndarray of float64, shape (m,)
            At most as much. Of records with less clearance, rows in the way are named.
        most : int
            Rows in the way that are named of each record: the nearest ones, no two alike.
        """
        m = len(self.records.own)
        probability, left = np.zeros(m), np.full(m, np.inf)
        record, place = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for part, compared in in_blocks(self.file.differences, self._columns, self.records.known):
            every, own = all_distances(aggregate, compared), self.records.own[part]
            mine = every[np.arange(len(own)), own]
            least = every.min(axis=1)
            tied = (every <= tie(least)[:, None]) @ self.file.rows
            probability[part] = np.where(mine <= tie(least), self.records.present[part] / tied, 0.0)
            bound = mine + asked[part]
            for b in np.flatnonzero(least < bound).tolist():
                near = np.flatnonzero(every[b] < bound[b])
                those, seen = self._told(compared, b, int(own[b]), near)
                if not len(those):
                    continue
                left[part.start + b] = every[b, those].min() - mine[b]
                if left[part.start + b] >= wanted[part.start + b]:
                    continue
                order = np.argsort(every[b, those], kind="stable")[: 8 * most]
                _, first = np.unique(seen[:, order], axis=1, return_index=True)
                chosen = those[order[np.sort(first)[:most]]]
                record.append(np.full(len(chosen), part.start + b, dtype=np.int64))
                place.append(chosen)
        return Look(probability, left, np.concatenate(record), np.concatenate(place))

    def _told(self, compared: Compared, b: int, own: int, near: LongArray) -> tuple[LongArray, FloatArray]:
        """Those of some rows that are told from a record's own, and what is told of them."""
        seen = self.family.told_apart(compared.with_each(np.array([b]), near))
        mine = self.family.told_apart(compared.with_each(np.array([b]), np.array([own])))
        nearer, farther = _compared(seen, mine)
        different = (nearer | farther).any(axis=0)
        return near[different], seen[:, different]

    def pairs(self, record: LongArray, place: LongArray) -> tuple[FloatArray, FloatArray]:
        """What is told of rows in the way, and of the own rows of the same records.

        Parameters
        ----------
        record, place : ndarray of int64, shape (c,)
            As in :class:`Look`.

        Returns
        -------
        others, own : ndarray of float64, shape (n, c)
        """
        n = self.file.cells.shape[1]
        others, own = np.zeros((n, len(record))), np.zeros((n, len(record)))
        order = np.argsort(record, kind="stable")
        for part, compared in in_blocks(self.file.differences, self._columns, self.records.known):
            here = order[np.searchsorted(record[order], part.start) : np.searchsorted(record[order], part.stop)]
            if len(here):
                those = record[here] - part.start
                others[:, here] = self.family.told_apart(compared.with_each(those, place[here]))
                own[:, here] = self.family.told_apart(compared.with_each(those, self.records.own[record[here]]))
        return others, own


def _compared(seen: FloatArray, own: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Where something is less than, and more than, what is told of the own row, but for rounding."""
    slack = 1e-9 * (1.0 + own)
    return seen < own - slack, seen > own + slack
