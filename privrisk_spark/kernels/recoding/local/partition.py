"""What a local recoding gives: classes with a level vector each, and what holds of them as the reader sees them.

A partition puts every row into a group. What is published for a group is, of every attribute, the lowest common
ancestor of its values: the node at the least level at which all have one. Groups that are published alike are one class
to the reader, so that classes are groups joined by what is published, and what is asked is asked of these:

*Guarantee.* Every class that is released has at least ``k`` rows and meets every further condition, rows counted that
are published as it is, whatever group they come from. Proof: :func:`published` joins groups by their nodes, asks of
every class so joined, and suppresses what fails; no two classes that are left have the same nodes. A suppressed row is
published with every attribute at its root, and a class of roots cannot be told from it: where rows are suppressed, such
a class is suppressed, too. (Where the highest level of an attribute has several nodes there is no root; suppressed rows
must be left out then, as their highest nodes would tell them apart.) No group of ``k`` rows is suppressed for want of
rows, as what is joined is not smaller; and none for a condition that is monotone in generalization, if all groups meet
it. A table of fewer than ``k`` rows is suppressed whole. Status: *proved*.

Nodes are told apart by level and number. Where a hierarchy gives two nodes one label, the reader joins their classes:
that keeps k and every condition that is monotone in generalization, and not every other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.exact_sums import exact_dot
from privrisk_spark.kernels.recoding.full_domain import NodeClasses, united
from privrisk_spark.kernels.recoding.holders import Held
from privrisk_spark.kernels.recoding.local.order import LeafOrder, leaf_orders
from privrisk_spark.kernels.recoding.metrics import Facts, Measured
from privrisk_spark.kernels.recoding.problem import Condition, at_least

__all__ = ["Asked", "Partition", "joined", "labelled", "published"]


@dataclass(frozen=True, eq=False)
class Asked:
    """What every class must meet.

    Attributes
    ----------
    k : int
        Rows, at least 1.
    also : tuple of Condition
        Of the rows and the sensitive values of classes; while groups are formed, the records in a class are not known.

    Raises
    ------
    InputError
        If k is below 1.
    """

    k: int
    also: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a k that is none."""
        at_least(self.k)

    def meets(self, classes: NodeClasses) -> BoolArray:
        """Mark the classes that meet everything."""
        met: BoolArray = classes.rows >= self.k
        for condition in self.also:
            if not met.any():
                break
            met = met & condition.meets(classes)
        return met


def joined(part_rows: LongArray, held: tuple[Held, ...], number: LongArray, n: int) -> NodeClasses:
    """Join parts of a table by number; the member of a class is not known.

    Parameters
    ----------
    part_rows : ndarray of int64
        Rows of each part.
    held : tuple of SensitiveRuns or Holders
        Of each sensitive attribute, its values in each part.
    number : ndarray of int64
        Class of each part, below ``n``; every class has a part.
    """
    rows = np.bincount(number, weights=part_rows, minlength=n).astype(np.int64)
    return NodeClasses(np.full(n, -1), rows, tuple(united(runs, number, n) for runs in held))


@dataclass(frozen=True, eq=False)
class Partition:
    """A table, locally recoded.

    Rows of one distinct record may be in several classes where an algorithm divides them (``mondrian_relaxed``). They
    are then in several pieces; otherwise piece ``j`` is record ``j``.

    Attributes
    ----------
    record : ndarray of int64, shape (p,)
        Position of the distinct record of each piece, ascending; with the class each once.
    rows : ndarray of int64, shape (p,)
        Of its rows, those in the piece, at least 1.
    of : ndarray of int64, shape (p,)
        Class of each piece; -1 if it is suppressed.
    class_levels : ndarray of int8, shape (n_classes, k)
        Level of each attribute in each class; a class is one node per attribute.
    classes : NodeClasses
        The released classes, ascending by level and node of the attributes in their order; without sensitive values
        where records are in pieces.
    heights : tuple of k int
        Levels of the roots, at which suppressed rows are published.
    """

    record: LongArray
    rows: LongArray
    of: LongArray
    class_levels: LevelArray
    classes: NodeClasses
    heights: tuple[int, ...]

    @property
    def suppressed(self) -> int:
        """Rows that are not released."""
        return int(self.rows[self.of < 0].sum())

    def facts(self, measured: Measured, *, one_numbering: bool = False) -> Facts:
        """Measure it as a node of a lattice is measured, but for levels, which it does not have.

        Parameters
        ----------
        one_numbering : bool
            Whether a node has one number at all levels, so that classes with the same nodes are one to the reader.
        """
        table, suppressed = measured.table, self.suppressed
        record, rows = self.record[self.of >= 0], self.rows[self.of >= 0]
        levels = self.levels[self.of >= 0]
        of_each, inner = [], []
        for i, (leaves, domain) in enumerate(zip(measured.leaves, measured.domains, strict=True)):
            below = leaves[table.vectors[record, i], levels[:, i]]
            of_each.append(exact_dot(below, rows) + suppressed * domain)
            inner.append(exact_dot(np.where(below == 1, 0, below), rows) + suppressed * (domain if domain > 1 else 0))
        sizes = self.classes.rows
        if one_numbering and len(sizes):
            codes = table.vectors[self.classes.member]
            nodes = [of[codes[:, i], self.class_levels[:, i]] for i, of in enumerate(table.ancestors)]
            first, member = distinct_rows(nodes)
            sizes = np.zeros(len(first), dtype=np.int64)
            np.add.at(sizes, member, self.classes.rows)
        return Facts(
            rows=table.rows,
            suppressed=suppressed,
            classes=len(sizes),
            squares=exact_dot(sizes, sizes),
            levels=(),
            heights=(),
            leaves=tuple(of_each),
            inner=tuple(inner),
            domains=measured.domains,
        )

    @property
    def levels(self) -> LevelArray:
        """Level of each attribute in each piece, ndarray of int8, shape (p, k)."""
        top = np.array(self.heights, dtype=np.int8)[None, :]
        return np.concatenate([self.class_levels, top])[self.of]  # -1 is the last


def published(
    measured: Measured,
    asked: Asked,
    group: LongArray,
    *,
    record: LongArray | None = None,
    rows: LongArray | None = None,
    orders: Sequence[LeafOrder] | None = None,
) -> Partition:
    """Publish groups of rows: join those that look alike, and suppress what fails.

    Parameters
    ----------
    group : ndarray of int64, shape (p,)
        Group of each piece, at least 0; -1 for rows that are suppressed.
    record, rows : ndarrays of int64, shape (p,), optional
        Record and rows of each piece; by default each record is one piece.
    orders : sequence of k LeafOrder, optional
        Of the attributes, if they are known.

    Raises
    ------
    InputError
        If persons are given who may have several rows, or sensitive values are asked about and records are in pieces:
        which of its rows are in which is not known.
    """
    table = measured.table
    if table.persons is not None:
        raise InputError("Local recoding counts rows, and persons are given: see counting_persons.")
    orders = leaf_orders(measured) if orders is None else orders
    whole = record is None or rows is None
    record = np.arange(len(table.vectors)) if record is None else record
    rows = table.counts if rows is None else rows
    if not whole and asked.also:
        raise InputError("Conditions beside k cannot be asked where the rows of one record come into several classes.")
    at, group = np.flatnonzero(group >= 0), group[group >= 0]
    number, n_groups = _without_gaps(group)
    levels, nodes = _common(table.vectors[record[at]], number, n_groups, orders)
    look = [column for i in range(len(orders)) for column in (levels[:, i], nodes[:, i])]
    first, joined = distinct_rows(look) if look else (np.arange(min(n_groups, 1)), np.zeros(n_groups, dtype=np.int64))
    held = table.held if whole else ()
    return _released(measured, asked, (record, rows), at, joined[number], levels[first], held, whole=whole)


def labelled(measured: Measured, asked: Asked, of: LongArray, class_levels: LevelArray) -> Partition:
    """Publish records by classes that are known before, and suppress the classes that fail.

    Parameters
    ----------
    of : ndarray of int64, shape (m,)
        Class of each distinct record; -1 for one that is suppressed.
    class_levels : ndarray of int8, shape (n_classes, k)
        Levels at which the records of each class have one node each, no two classes the same nodes.

    Raises
    ------
    InputError
        As of :func:`published`.
    """
    table = measured.table
    if table.persons is not None:
        raise InputError("Local recoding counts rows, and persons are given: see counting_persons.")
    at = np.flatnonzero(of >= 0)
    there, number = np.unique(of[at], return_inverse=True)
    pieces = (np.arange(len(table.vectors)), table.counts)
    return _released(measured, asked, pieces, at, number.reshape(-1), class_levels[there], table.held, whole=True)


def _released(
    measured: Measured,
    asked: Asked,
    pieces: tuple[LongArray, LongArray],
    at: LongArray,
    of: LongArray,
    class_levels: LevelArray,
    values: tuple[Held, ...],
    *,
    whole: bool,
) -> Partition:
    """Suppress the classes of some pieces that fail; of all pieces record and rows are given."""
    table, (record, rows), n = measured.table, pieces, len(class_levels)
    total = np.zeros(n, dtype=np.int64)
    np.add.at(total, of, rows[at])
    member = np.full(n, len(table.vectors), dtype=np.int64)
    np.minimum.at(member, of, record[at])
    held: tuple[Held, ...] = ()
    if values:
        there = np.zeros(len(table.vectors), dtype=np.bool_)
        there[at] = True
        held = tuple(united(runs.where(there), of, n) for runs in values)
    classes = NodeClasses(member, total, held)
    released = asked.meets(classes)
    heights = tuple(ancestor.shape[1] - 1 for ancestor in table.ancestors)
    # A suppressed row is published as a class of roots would be.
    if len(at) < len(record) or not released.all():
        single = all(len(np.unique(ancestor[:, -1])) <= 1 for ancestor in table.ancestors)
        released &= ~((class_levels == np.array(heights, dtype=np.int8)).all(axis=1) & single)
    place = np.where(released, np.cumsum(released) - 1, -1)
    result = np.full(len(record), -1, dtype=np.int64)
    result[at] = place[of]
    if not whole and len(record):
        first, piece = distinct_rows([record, result])
        together = np.bincount(piece, weights=rows).astype(np.int64)
        record, rows, result = record[first], together, result[first]
    kept = NodeClasses(member[released], total[released], tuple(runs.where(released) for runs in held))
    return Partition(record, rows, result, class_levels[released], kept, heights)


def _without_gaps(group: LongArray) -> tuple[LongArray, int]:
    """Number groups from 0 without gaps, ascending."""
    if not len(group):
        return group, 0
    there = np.zeros(int(group.max()) + 1, dtype=np.bool_)
    there[group] = True
    return (np.cumsum(there) - 1)[group], int(there.sum())


def _common(
    vectors: IntArray, group: LongArray, n_groups: int, orders: Sequence[LeafOrder]
) -> tuple[LevelArray, IntArray]:
    """Level and node, of each attribute, of the lowest common ancestor in each group.

    Raises
    ------
    InputError
        If a group has values without one.
    """
    levels = np.zeros((n_groups, len(orders)), dtype=np.int8)
    nodes = np.zeros((n_groups, len(orders)), dtype=np.int32)
    if not n_groups:
        return levels, nodes
    by_group = np.argsort(group, kind="stable")
    start = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    for i, order in enumerate(orders):
        places = order.place[vectors[by_group, i]]
        low = np.minimum.reduceat(places, start)
        common = order.common(low, np.maximum.reduceat(places, start))
        if (common > order.height).any():
            raise InputError(f"Attribute {i}: rows of one group have no common ancestor.")
        levels[:, i], nodes[:, i] = common, order.nodes[low, common]
    return levels, nodes
