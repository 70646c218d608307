"""A table under full-domain recoding: its equivalence classes at a level vector, from those of a finer one.

Full-domain recoding at level vector ``x`` replaces every value of attribute ``i`` by its ancestor ``x_i`` levels up (a
*scheme*, one for the whole table). Classes at a more general vector are unions of classes at a less general one
(LeFevre, DeWitt and Ramakrishnan, Incognito, SIGMOD 2005), so that a node costs the classes of its finer neighbour and
never the table. A class is known by one of its distinct records, which has the nodes of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.kernels.numeric.distinct import distinct_keys
from privrisk_spark.kernels.recoding.holders import Held, Holders
from privrisk_spark.kernels.recoding.persons import Persons

__all__ = ["FullDomain", "NodeClasses", "united"]

_WORD = 2**62


@dataclass(frozen=True, eq=False)
class NodeClasses:
    """Equivalence classes of a node, ascending by their nodes in the order of the attributes.

    Attributes
    ----------
    member : ndarray of int64, shape (n_classes,)
        Position of one distinct record of each.
    rows : ndarray of int64, shape (n_classes,)
        Rows of each, at least 1.
    held : tuple of SensitiveRuns or Holders
        Of each sensitive attribute, its values in each class; who holds them where shares of persons are asked about.
    persons : Persons or None
        Where a person may have several rows.
    levels : tuple of int or None
        Of the node, of all attributes of the table; None of classes that are of no one node.
    """

    member: LongArray
    rows: LongArray
    held: tuple[Held, ...] = ()
    persons: Persons | None = None
    levels: tuple[int, ...] | None = None

    @property
    def size(self) -> LongArray:
        """Persons of each class, or its rows where each is a person; ndarray of int64, shape (n_classes,)."""
        return self.rows if self.persons is None else self.persons.count

    def only(self, places: LongArray) -> NodeClasses:
        """Return the sizes of some of the classes, without their sensitive values.

        Parameters
        ----------
        places : ndarray of int64, shape (n,)
        """
        persons = None if self.persons is None else self.persons.only(places)
        return NodeClasses(self.member[places], self.rows[places], (), persons, self.levels)


@dataclass(frozen=True, eq=False)
class FullDomain:
    """A table to be recoded.

    Attributes
    ----------
    ancestors : tuple of k ndarrays of int32, shape (n_codes_i, h_i + 1)
        Node of each code at each level, numbered as one likes within a level; codes that share a node at one level
        share one at the next. ``h_i`` may be 0.
    vectors : ndarray of int32, shape (m, k)
        Codes of the distinct records.
    counts : ndarray of int64, shape (m,)
        Rows of each, at least 1 and fewer than 2**53 in all.
    held : tuple of SensitiveRuns or Holders
        Of each sensitive attribute, its values in the rows of each distinct record, or who holds them.
    persons : Persons or None
        Of each distinct record, where a person may have several rows.
    roots : tuple of int
        Where these are some of the attributes of a table: the heights of all.
    part : tuple of int
        And which they are; the others are at their roots.
    """

    ancestors: tuple[IntArray, ...]
    vectors: IntArray
    counts: LongArray
    held: tuple[Held, ...] = ()
    persons: Persons | None = None
    roots: tuple[int, ...] = ()
    part: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        ancestors: Sequence[IntArray],
        vectors: IntArray,
        counts: LongArray,
        held: Sequence[Held] = (),
        persons: Persons | None = None,
    ) -> FullDomain:
        """Check a table; records without rows are left out.

        Raises
        ------
        InputError
            If shapes do not fit, a code or count is out of range, or levels are not nested.
        """
        if vectors.ndim != 2 or vectors.shape[1] != len(ancestors) or counts.shape != (len(vectors),):
            raise InputError(
                "There must be one column of codes per hierarchy and one count per record. "
                f"Got {len(ancestors)} hierarchies, records of shape {vectors.shape}, counts of shape {counts.shape}."
            )
        if len(counts) and (counts.min() < 0 or counts.sum() >= 2**53):
            raise InputError("Counts must be at least 0 and fewer than 2^53 in all.")
        for i, ancestor in enumerate(ancestors):
            if len(vectors) and not 0 <= vectors[:, i].min() <= vectors[:, i].max() < len(ancestor):
                raise InputError(f"Codes of attribute {i} must be between 0 and {len(ancestor) - 1}.")
            for below, above in zip(ancestor.T, ancestor.T[1:], strict=False):
                _, first, node = np.unique(below, return_index=True, return_inverse=True)
                if (above[first[node]] != above).any():
                    raise InputError(f"Codes of attribute {i} that share a node must share one at the next level.")
        for one in held:
            whole = one.n_classes == len(counts)
            if not whole or (one.rows > counts if isinstance(one, Holders) else one.rows != counts).any():
                raise InputError("Every row must have one value of each sensitive attribute, and records their own.")
        if persons is not None and (len(persons.alone) != len(counts) or (persons.count > counts).any()):
            raise InputError("No distinct record may have more persons than rows.")
        there = counts > 0
        return cls(
            tuple(ancestors),
            vectors[there],
            counts[there],
            tuple(runs.where(there) for runs in held),
            None if persons is None else persons.where(there),
        )

    def of_attributes(self, part: Sequence[int]) -> FullDomain:
        """Return the table with some of its attributes alone; equal records are not added up."""
        of_part = tuple(self.ancestors[i] for i in part)
        heights = self.lattice.heights
        return FullDomain(
            of_part, self.vectors[:, list(part)], self.counts, self.held, self.persons, heights, tuple(part)
        )

    def _of_all(self, levels: Sequence[int]) -> tuple[int, ...]:
        """Levels of all attributes of the table."""
        found = list(self.roots) if self.roots else [0] * len(levels)
        for i, level in zip(self.part if self.roots else range(len(levels)), levels, strict=True):
            found[i] = int(level)
        return tuple(found)

    @cached_property
    def lattice(self) -> Lattice:
        """Of the level vectors."""
        return Lattice(tuple(ancestor.shape[1] - 1 for ancestor in self.ancestors))

    @cached_property
    def rows(self) -> int:
        """Rows of the table."""
        return int(self.counts.sum())

    @cached_property
    def _numbered(self) -> tuple[tuple[LongArray, ...], ...]:
        """The ancestors by levels, nodes of a level numbered from 0 without gaps."""
        return tuple(
            tuple(np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64) for column in ancestor.T)
            for ancestor in self.ancestors
        )

    @cached_property
    def _nodes(self) -> tuple[tuple[int, ...], ...]:
        """How many there are at each level."""
        return tuple(tuple(int(level.max(initial=-1)) + 1 for level in levels) for levels in self._numbered)

    @cached_property
    def _columns(self) -> tuple[IntArray, ...]:
        """Codes of each attribute, side by side in memory."""
        return tuple(np.ascontiguousarray(column) for column in self.vectors.T)

    def classes(self, levels: Sequence[int], finer: NodeClasses | None = None) -> NodeClasses:
        """Group the records at a level vector.

        Parameters
        ----------
        levels : sequence of k int
        finer : NodeClasses, optional
            Classes at a vector that is nowhere above it; the distinct records if not given.
        """
        return self.grouped(levels, finer)[0]

    def grouped(self, levels: Sequence[int], finer: NodeClasses | None = None) -> tuple[NodeClasses, LongArray]:
        """Group the records at a level vector, as :meth:`classes` does, and say where each one is.

        Returns
        -------
        classes : NodeClasses
        of : ndarray of int64
            Class of each distinct record, or of each class of ``finer``.
        """
        members = np.arange(len(self.vectors)) if finer is None else finer.member
        rows = self.counts if finer is None else finer.rows
        held = self.held if finer is None else finer.held
        persons = self.persons if finer is None else finer.persons
        key, bound = np.zeros(len(members), dtype=np.int64), 1
        for i, (ancestor, level) in enumerate(zip(self._numbered, levels, strict=True)):
            radix = self._nodes[i][level]
            if radix <= 1:
                continue
            node = ancestor[level][self._columns[i] if finer is None else self._columns[i][members]]
            if bound * radix >= _WORD:
                of, first = _numbers(key, bound)
                key, bound = of, len(first)
            key, bound = key * radix + node, bound * radix
        of, first = _numbers(key, bound)
        n_classes = len(first)
        total = np.bincount(of, weights=rows, minlength=n_classes).astype(np.int64)  # exact, as below 2^53 in all
        of_classes = tuple(united(runs, of, n_classes) for runs in held)
        there = None if persons is None else persons.united(of, n_classes)
        return NodeClasses(members[first], total, of_classes, there, self._of_all(levels)), of

    def every_node(self) -> Iterator[tuple[tuple[int, ...], NodeClasses]]:
        """Yield every level vector with its classes, each rolled up from one that is a level below in one attribute."""
        yield from self._below((), self.classes([0] * len(self.ancestors)))

    def _below(self, levels: tuple[int, ...], classes: NodeClasses) -> Iterator[tuple[tuple[int, ...], NodeClasses]]:
        """Go through the levels of the attribute after those that are fixed; classes are those with it at 0."""
        if len(levels) == len(self.ancestors):
            yield levels, classes
            return
        rest = [0] * (len(self.ancestors) - len(levels) - 1)
        for level in range(self.lattice.heights[len(levels)] + 1):
            if level:
                classes = self.classes((*levels, level, *rest), classes)
            yield from self._below((*levels, level), classes)


_DENSE = 4
"""Numbers for each key, up to which keys are counted instead of sorted."""


def _numbers(key: LongArray, bound: int) -> tuple[LongArray, LongArray]:
    """Number keys below a bound from 0 by their order: the number of each, and where one of each is."""
    if bound <= _DENSE * len(key):
        where = np.full(bound, -1, dtype=np.int64)
        where[key] = np.arange(len(key))
        there = np.flatnonzero(where >= 0)
        first = where[there]
        where[there] = np.arange(len(there))
        return where[key], first
    by_key = np.argsort(key)
    ascending = key[by_key]
    starts = np.ones(len(key), dtype=np.bool_)
    starts[1:] = ascending[1:] != ascending[:-1]
    of = np.empty(len(key), dtype=np.int64)
    of[by_key] = np.cumsum(starts) - 1
    return of, by_key[starts]


def united(held: Held, of: LongArray, n_classes: int) -> Held:
    """Sensitive values of classes that are unions of finer ones: class ``of[j]`` takes in class ``j``."""
    return held.united(of, n_classes) if isinstance(held, Holders) else _added(held, of, n_classes)


def _added(runs: SensitiveRuns, of: LongArray, n_classes: int) -> SensitiveRuns:
    """Values whose rows are added up."""
    values = int(runs.value.max(initial=0)) + 1
    key = of[runs.owner] * values + runs.value
    first, run = distinct_keys(key, n_classes * values)
    pair = key[first]
    count = np.bincount(run, weights=runs.count, minlength=len(pair)).astype(np.int64)  # exact, as below 2^53 in all
    start = np.concatenate([[0], np.cumsum(np.bincount(pair // values, minlength=n_classes))]).astype(np.int64)
    return SensitiveRuns(start, (pair % values).astype(np.int32), count)
