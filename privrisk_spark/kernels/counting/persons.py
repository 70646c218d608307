"""Counting distinct persons who have several rows, by numbers that add up.

A person counts once in a cell ``x``, however many of the rows are consistent with it. Counts of distinct persons do not
add up along the hierarchies; this module writes each person as a few dictionary vectors with *signed* counts, which do:
counted as rows are (:mod:`privrisk_spark.kernels.counting.consistent`), they give the number of persons of every cell,
exactly, under every plan that counts rows.

Let ``A_t = {x : t consistent with x}`` be the cells of a vector ``t``. A person with the vectors ``t_1,…,t_m`` is to
add the indicator of ``A_{t_1} ∪ … ∪ A_{t_m}``. The cells of two vectors' intersection are those of one vector again,
their *join* (Notes of :class:`Joins`), so inclusion and exclusion, one vector after the other,

    [A_1 ∪ … ∪ A_r] = [A_1 ∪ … ∪ A_{r-1}] + [A_r] - [(A_1 ∪ … ∪ A_{r-1}) ∩ A_r],

takes a sum of vectors with signs to such a sum: with two vectors three terms, ``t_1 + t_2 - t_1 ∨ t_2``, whatever the
size of the lattice. The source is the inclusion-exclusion principle; that joins exist is what trees give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Signed = tuple[list[IntArray], LongArray]
"""Vectors by column, k of shape (n,), and what each counts, of either sign."""

MOST_JOINED = 256
"""Distinct vectors of a person up to which they are joined one by one, about 11 m² joins in all; beyond, cells are
written out, m times the lattice, or chains, where vectors spread. Does not change a count."""

MOST_OF_CHAINS = 2**14
"""Cells of a vector that does not spread up to which chains are written out for each. Does not change a count."""

_TABLE = 2**20
"""Pairs of codes of an attribute up to which their joins are looked up. Does not change a count."""

_PAIRS_AT_ONCE = 2**17
"""Pairs of vector and person worked on at once, unless one person has more. Does not change a count."""

_CELLS_AT_ONCE = 2**22
"""Cells written out at once, likewise: each takes some 50 bytes."""


@dataclass(frozen=True, eq=False)
class _AxisJoins:
    """Joins of the codes of one attribute.

    Attributes
    ----------
    chain : ndarray of int32, shape (n_codes, height + 1)
        Ancestor-or-self of each code at each depth, -1 below it.
    apart : ndarray of int32, shape (n_codes,)
        The code consistent with a node and its ancestors alone; -1 of a node where no two branches meet.
    spreads : ndarray of bool, shape (n_codes,)
        Whether a code is consistent with what lies below it, too.
    table : ndarray of int32, shape (n_codes, n_codes), or None
    """

    chain: IntArray
    apart: IntArray
    spreads: BoolArray
    table: IntArray | None

    @classmethod
    def of(cls, axis: Axis, *, table: int) -> _AxisJoins:
        chain = axis.dictionary_chain()
        n_codes, n_nodes = len(chain), len(axis.at_depth)
        apart = np.full(n_codes, -1, dtype=np.int32)
        apart[axis.branching] = np.arange(n_nodes, n_codes, dtype=np.int32)
        spreads = np.zeros(n_codes, dtype=np.bool_)
        if axis.consistency == "compatible":
            spreads[:n_nodes] = (chain[:n_nodes] >= 0).sum(axis=1) - 1 < _deepest_below(axis)
        elif axis.wildcard:
            spreads[axis.root] = True
        joins = cls(chain, apart, spreads, None)
        if n_codes * n_codes > table:
            return joins
        every = np.arange(n_codes, dtype=np.int32)
        whole = joins.shared(np.repeat(every, n_codes), np.tile(every, n_codes))
        return cls(chain, apart, spreads, whole.reshape(n_codes, n_codes))

    def shared(self, one: IntArray, other: IntArray) -> IntArray:
        """Joins of codes, pair by pair: what two of them share."""
        if self.table is not None:
            looked_up: IntArray = self.table[one, other]
            return looked_up
        above, below = self.chain[one], self.chain[other]
        shared = ((above == below) & (above >= 0)).sum(axis=1) - 1
        meet = above[np.arange(len(one)), shared]
        # One of them is where they meet: the more general, which the other's cells lie in if it spreads.
        result = np.where(meet == one, np.where(self.spreads[one], other, one), self.apart[meet])
        result = np.where((meet == other) & (meet != one), np.where(self.spreads[other], one, other), result)
        return result.astype(np.int32)


def _deepest_below(axis: Axis) -> LongArray:
    """Depth of the deepest node below each node, or its own; int64 (n_nodes,)."""
    depth = (axis.at_depth >= 0).sum(axis=1) - 1
    deepest: LongArray = depth.astype(np.int64)
    for column in axis.at_depth.T:
        there = column >= 0
        np.maximum.at(deepest, column[there], depth[there])
    return deepest


@dataclass(frozen=True, eq=False)
class Joins:
    """Joins of dictionary vectors; make them with :meth:`of`.

    Notes
    -----
    ``A_t`` is a product over the attributes of the nodes each code is consistent with, so vectors join attribute by
    attribute. Under ``subsumes`` a code's nodes are it and its ancestors, and two codes share those of the node ``b``
    where their paths meet. Under ``compatible``, and for a wildcard, a code's nodes are its subtree, too: if one lies
    above the other, the lower one's nodes are among the upper one's, and are what they share; if none does, they share
    ``b`` and its ancestors without what is below, which no node is consistent with alone: therefore every node where
    branches meet has a code of its own, a child that nothing discloses (:meth:`Axis.dictionary_chain`; that of the root
    is the value outside the hierarchy). These codes are leaves of the tree that they extend, so the same holds for
    them.
    """

    axes: tuple[_AxisJoins | None, ...]

    @classmethod
    def of(cls, axes: Sequence[Axis], *, table: int = _TABLE) -> Joins:
        """Prepare the joins of a dictionary's attributes.

        Parameters
        ----------
        axes : sequence of k Axis
        table : int
            Pairs of codes of an attribute up to which joins are looked up instead of worked out.

        Raises
        ------
        InputError
            If an axis is ``similar``, which is no tree relation.
        """
        if not all(axis.monotone for axis in axes):
            raise InputError(
                "counting.plan: distinct persons of attributes that are 'similar' are counted by 'shuffle' alone."
            )
        return cls(tuple(_AxisJoins.of(axis, table=table) if axis.known else None for axis in axes))

    @classmethod
    def of_values(cls, roots: Sequence[int], wild: Sequence[int]) -> Joins:
        """Prepare the joins of values that have nothing above them but a root, which may be any of them.

        Parameters
        ----------
        roots : sequence of int
            The root of each attribute, greater than all its values; the code after it shares nothing but the root.
        wild : sequence of int
            Attributes to join; in the others the vectors of a person must be equal.
        """
        axes: list[_AxisJoins | None] = []
        for i, root in enumerate(roots):
            chain = np.column_stack([np.full(root + 2, root), np.arange(root + 2)]).astype(np.int32)
            chain[root, 1] = -1
            apart = np.full(root + 2, -1, dtype=np.int32)
            apart[root] = root + 1
            axes.append(_AxisJoins(chain, apart, np.arange(root + 2) == root, None) if i in wild else None)
        return cls(tuple(axes))

    @property
    def radices(self) -> tuple[int, ...]:
        """Number of codes of each attribute; 1 for one the dictionary lacks."""
        return tuple(1 if axis is None else len(axis.chain) for axis in self.axes)

    @property
    def most_cells(self) -> int:
        """Cells a vector is in, at most, if it does not spread: a node of each depth for each attribute."""
        return prod(axis.chain.shape[1] for axis in self.axes if axis is not None)

    def shared(self, some: Sequence[IntArray], others: Sequence[IntArray]) -> list[IntArray]:
        """Joins of vectors, row by row: k columns each, of one length."""
        return [
            one if axis is None else axis.shared(one, other)
            for axis, one, other in zip(self.axes, some, others, strict=True)
        ]

    def lies_in(self, some: Sequence[IntArray], others: Sequence[IntArray]) -> BoolArray:
        """Whether all cells of vectors are cells of others, row by row."""
        result = np.ones(len(some[0]), dtype=np.bool_)
        for one, shared in zip(some, self.shared(some, others), strict=True):
            result &= one == shared
        return result

    def spreads(self, vectors: Sequence[IntArray]) -> BoolArray:
        """Whether a code of each vector is consistent with nodes below it, too."""
        result = np.zeros(len(vectors[0]) if vectors else 0, dtype=np.bool_)
        for axis, column in zip(self.axes, vectors, strict=True):
            if axis is not None:
                result |= axis.spreads[column]
        return result


def signed_vectors(
    joins: Joins,
    person: LongArray,
    vectors: Sequence[IntArray],
    *,
    most_joined: int = MOST_JOINED,
    pairs_at_once: int = _PAIRS_AT_ONCE,
) -> Iterator[Signed]:
    """Write persons as dictionary vectors with signed counts, whose sum over a cell is its number of persons.

    Parameters
    ----------
    person : ndarray of int64, shape (n,)
        Who each row is of, in any order; all rows of a person must be here.
    vectors : sequence of k ndarrays of int32, shape (n,)
        Dictionary codes of each row; 0 for an attribute the dictionary lacks.
    most_joined, pairs_at_once : int
        Where one way of working ends and the other begins; neither changes a count.

    Yields
    ------
    columns : list of k ndarrays of int32, shape (m,)
        Codes below :attr:`Joins.radices`; vectors may repeat.
    counts : ndarray of int64, shape (m,)
        All together sum to the number of persons.
    """
    if not len(person):
        return
    first, _ = distinct_rows([person, *vectors])
    person, vectors = person[first], [column[first] for column in vectors]
    starts = np.flatnonzero(np.append(True, np.diff(person) != 0))
    own = np.diff(np.append(starts, len(person)))
    alone = np.repeat(own == 1, own)
    yield [column[alone] for column in vectors], np.ones(int(alone.sum()), dtype=np.int64)
    # Where vectors spread, cells below a code cannot be written out.
    spreading = np.logical_or.reduceat(joins.spreads(vectors), starts)
    many, short = own > most_joined, joins.most_cells <= MOST_OF_CHAINS
    few = min(pairs_at_once, _CELLS_AT_ONCE // joins.most_cells)
    ways = (
        (_joined, (own > 1) & ~(many & (~spreading | short)), pairs_at_once),
        (_written_out, many & ~spreading, few),
        (_by_chains, many & spreading & short, 1),
    )
    for way, chosen, at_once in ways:
        of_way = np.repeat(chosen, own)
        sizes = own[chosen]
        columns = [column[of_way] for column in vectors]
        ends = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            base = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, base + at_once, side="right")))
            rows = slice(base, int(ends[end - 1]))
            yield way(joins, sizes[begin:end], [column[rows] for column in columns])
            begin = end


def _joined(joins: Joins, sizes: LongArray, vectors: Sequence[IntArray]) -> Signed:
    """Inclusion and exclusion, one vector of every person after the other.

    Parameters
    ----------
    sizes : ndarray of int64, shape (p,)
        Distinct vectors of each person, at least 1.
    vectors : sequence of k ndarrays of int32, shape (sizes.sum(),)
        Person by person.
    """
    starts = np.cumsum(sizes) - sizes
    done: list[Signed] = []
    who = np.arange(len(sizes))
    union = [column[starts] for column in vectors]
    counts = np.ones(len(who), dtype=np.int64)
    for r in range(1, int(sizes.max())):
        left = sizes[who] > r
        done.append(([column[~left] for column in union], counts[~left]))
        who, union, counts = who[left], [column[left] for column in union], counts[left]
        new = np.flatnonzero(sizes > r)
        added = [column[starts[new] + r] for column in vectors]
        shared = joins.shared(union, [column[starts[who] + r] for column in vectors])
        who = np.concatenate([who, who, new])
        union = [np.concatenate(columns) for columns in zip(union, shared, added, strict=True)]
        counts = np.concatenate([counts, -counts, np.ones(len(new), dtype=np.int64)])
        if r > 1:  # three terms at most so far, and nothing to put together
            who, union, counts = _put_together(who, union, counts)
    done.append((union, counts))
    return [np.concatenate(columns) for columns in zip(*[d[0] for d in done], strict=True)], np.concatenate(
        [d[1] for d in done]
    )


def _written_out(joins: Joins, sizes: LongArray, vectors: Sequence[IntArray]) -> Signed:
    """Every cell of every person, and from them, attribute by attribute, the differences that add up to them.

    No code of these vectors spreads. The indicator of a person's cells is ``Σ α_c [c and its ancestors]`` with ``α_c``
    the indicator at ``c`` less that at its children (the Möbius inversion of a tree).
    """
    who = np.repeat(np.arange(len(sizes)), sizes)
    cells = list(vectors)
    for i, axis in enumerate(joins.axes):
        if axis is None:
            continue
        chain = axis.chain[cells[i]]
        row, depth = np.nonzero(chain >= 0)
        who, cells = who[row], [column[row] for column in cells]
        cells[i] = chain[row, depth]
        first, _ = distinct_rows([who, *cells])
        who, cells = who[first], [column[first] for column in cells]
    counts = np.ones(len(who), dtype=np.int64)
    for i, axis in enumerate(joins.axes):
        if axis is None:
            continue
        depth = (axis.chain >= 0).sum(axis=1) - 1
        parent = axis.chain[np.arange(len(axis.chain)), np.maximum(depth - 1, 0)]
        inner = np.flatnonzero(depth[cells[i]] > 0)
        raised = [column[inner] for column in cells]
        raised[i] = parent[raised[i]]
        who = np.concatenate([who, who[inner]])
        cells = [np.concatenate(columns) for columns in zip(cells, raised, strict=True)]
        counts = np.concatenate([counts, -counts[inner]])
        who, cells, counts = _put_together(who, cells, counts)
    for i, axis in enumerate(joins.axes):
        if axis is not None:
            spread = axis.spreads[cells[i]]
            cells[i] = np.where(spread, axis.apart[cells[i]], cells[i]).astype(np.int32)
    return cells, counts


def _by_chains(joins: Joins, sizes: LongArray, vectors: Sequence[IntArray]) -> Signed:
    """Inclusion and exclusion of one person, for most vectors without the terms of those before.

    What a vector ``t`` shares with others is a chain in each attribute, along its path to the root, unless one lies
    below a code of ``t``. Vectors with such codes are joined first. Of any other ``t``, the cells that are counted
    already are then a union of boxes from the root in a product of chains, whose differences along each of them are
    the terms.

    Parameters
    ----------
    joins, sizes, vectors
        As :func:`_joined` takes them; of one person.
    """
    assert len(sizes) == 1
    columns = _uncovered(joins, vectors)
    n = len(columns[0])
    hard = np.zeros(n, dtype=np.bool_)
    for axis, column in zip(joins.axes, columns, strict=True):
        if axis is not None:
            above = np.zeros(len(axis.chain), dtype=np.bool_)
            path = axis.chain[np.unique(column)]
            strictly = (path >= 0) & (path != np.unique(column)[:, None])
            above[path[strictly]] = True
            hard |= axis.spreads[column] & above[column]
    n_hard = int(hard.sum())
    columns = [np.concatenate([column[hard], column[~hard]]) for column in columns]
    done: list[Signed] = []
    if n_hard:
        done.append(_joined(joins, np.array([n_hard]), [column[:n_hard] for column in columns]))
    shape = tuple(1 if axis is None else axis.chain.shape[1] for axis in joins.axes)
    positions = [
        None if axis is None else _positions(axis, column) for axis, column in zip(joins.axes, columns, strict=True)
    ]
    at_once = max(1, _CELLS_AT_ONCE // (4 * max(n, prod(shape))))
    for begin in range(n_hard, n, at_once):
        done.append(_added(joins, columns, positions, begin, min(n, begin + at_once), shape))
    together = [np.concatenate(parts) for parts in zip(*[d[0] for d in done], strict=True)]
    counts = np.concatenate([d[1] for d in done])
    _, together, counts = _put_together(np.zeros(len(counts), dtype=np.int64), together, counts)
    return together, counts


def _uncovered(joins: Joins, vectors: Sequence[IntArray]) -> list[IntArray]:
    """Vectors of a person that lie in no other that spreads: what the others are counted in."""
    n = len(vectors[0])
    wide = np.flatnonzero(joins.spreads(vectors))
    covered = np.zeros(n, dtype=np.bool_)
    at_once = max(1, _CELLS_AT_ONCE // (4 * n))
    for begin in range(0, len(wide), at_once):
        by = wide[begin : begin + at_once]
        one, other = np.tile(np.arange(n), len(by)), np.repeat(by, n)
        some, others = ([column[rows] for column in vectors] for rows in (one, other))
        lies = joins.lies_in(some, others) & (one != other)
        # Of two that lie in each other the first stays.
        both = np.flatnonzero(lies & (one < other))
        lies[both] = ~joins.lies_in([column[both] for column in others], [column[both] for column in some])
        covered |= lies.reshape(len(by), n).any(axis=0)
    return [column[~covered] for column in vectors]


def _positions(axis: _AxisJoins, column: IntArray) -> tuple[LongArray, IntArray]:
    """Number of each vector's code, and how deep each code (a row) shares its path with each other (a column)."""
    codes, number = np.unique(column, return_inverse=True)
    own, other = np.repeat(codes, len(codes)), np.tile(codes, len(codes))
    shared = axis.shared(own, other)
    depth = ((axis.chain >= 0).sum(axis=1) - 1).astype(np.int32)
    position = depth.copy()
    position[axis.apart[axis.apart >= 0]] -= 1
    where = np.where(shared == own, depth[own], position[shared])
    return number.ravel(), where.reshape(len(codes), len(codes))


def _added(
    joins: Joins,
    columns: Sequence[IntArray],
    positions: Sequence[tuple[LongArray, IntArray] | None],
    begin: int,
    end: int,
    shape: tuple[int, ...],
) -> Signed:
    """Terms that each of the vectors from ``begin`` to ``end`` adds to those before it, none of which lies below."""
    rows = end - begin
    place = np.zeros((rows, end), dtype=np.int32)
    for of_axis, length in zip(positions, shape, strict=True):
        if of_axis is not None:
            number, shared = of_axis
            place *= np.int32(length)
            place += shared[number[begin:end]][:, number[:end]]
    # What comes later is put beside the boxes.
    place[np.arange(end)[None, :] >= np.arange(begin, end)[:, None]] = prod(shape)
    boxes = np.zeros((rows, prod(shape) + 1), dtype=np.int8)
    boxes[np.arange(rows)[:, None], place] = 1
    boxes = np.ascontiguousarray(boxes[:, :-1]).reshape(rows, *shape)
    for i in range(1, boxes.ndim):
        boxes = np.flip(np.maximum.accumulate(np.flip(boxes, i), axis=i), i)
    terms = boxes.astype(np.int32)
    for i in range(1, terms.ndim):
        there = [slice(None)] * terms.ndim
        there[i], beyond = slice(0, -1), list(there)
        beyond[i] = slice(1, None)
        terms[tuple(there)] -= terms[tuple(beyond)].copy()
    row, *found = np.nonzero(terms)
    result = [column[begin:end] for column in columns]
    for i, (axis, column, at) in enumerate(zip(joins.axes, columns, found, strict=True)):
        own = column[begin:end][row]
        if axis is not None:
            node = axis.chain[own, at]
            own = np.where(node == own, own, np.where(axis.spreads[node], axis.apart[node], node)).astype(np.int32)
        result[i] = np.concatenate([result[i], own])
    counts = np.concatenate([np.ones(rows, dtype=np.int64), -terms[(row, *found)].astype(np.int64)])
    return result, counts


def _put_together(
    who: LongArray, vectors: list[IntArray], counts: LongArray
) -> tuple[LongArray, list[IntArray], LongArray]:
    """Sum the counts of equal vectors of a person; those that cancel are gone."""
    first, member = distinct_rows([who, *vectors])
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, member, counts)
    kept = sums != 0
    first = first[kept]
    return who[first], [column[first] for column in vectors], sums[kept]
