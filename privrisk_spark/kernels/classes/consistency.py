"""Which released records are consistent with which original ones: a graph over the distinct records of both tables.

A released record is *consistent* with an original one if in every attribute its node generalizes the original's value.
What is read off the graph is in :mod:`privrisk_spark.kernels.classes.concealment`. Equal rows are held once, with how
often they occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray

MOST_EDGES = 2**23
"""Consistent pairs of distinct records a graph may have: about a gigabyte when matches are sought."""

MOST_CANDIDATES = 2**32
"""Pairs of beginnings of records looked at, at most, while a graph is made: some minutes."""

_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class ConsistencyGraph:
    """Which distinct released records are consistent with which distinct original ones.

    Attributes
    ----------
    start : ndarray of int64, shape (n + 1,)
        The edges of original record ``u`` are ``start[u] … start[u + 1]``.
    released : ndarray of int32, shape (n_edges,)
        Released record of each edge, ascending for each original one.
    original_rows : ndarray of int64, shape (n,)
        Rows of each original record, at least 1.
    released_rows : ndarray of int64, shape (m,)
        Rows of each released record, at least 1.

    Raises
    ------
    InputError
        If they are not so, or there are more than :data:`MOST_EDGES` edges.
    """

    start: LongArray
    released: IntArray
    original_rows: LongArray
    released_rows: LongArray

    def __post_init__(self) -> None:
        if len(self.start) != len(self.original_rows) + 1 or self.start[0] != 0 or (np.diff(self.start) < 0).any():
            raise InputError("Consistency graph: start must rise from 0, with one entry more than original records.")
        if self.start[-1] != len(self.released):
            raise InputError("Consistency graph: start must end with the number of edges.")
        if len(self.released) > MOST_EDGES:
            raise _too_many()
        if (self.original_rows < 1).any() or (self.released_rows < 1).any():
            raise InputError("Consistency graph: every record must have at least 1 row.")
        if len(self.released) and not (self.released.min() >= 0 and self.released.max() < len(self.released_rows)):
            raise InputError("Consistency graph: an edge leads to a released record that is not there.")
        if (np.diff(self.pair) <= 0).any():
            raise InputError("Consistency graph: the released records of an original one must be ascending.")

    @cached_property
    def original(self) -> LongArray:
        """Original record of each edge, ndarray of int64, shape (n_edges,)."""
        return np.repeat(np.arange(len(self.original_rows)), np.diff(self.start))

    @cached_property
    def pair(self) -> LongArray:
        """One number for each edge, ascending, ndarray of int64, shape (n_edges,)."""
        return self.original * len(self.released_rows) + self.released

    def where(self, kept: BoolArray) -> ConsistencyGraph:
        """Return the graph of some of the edges, bool of shape (n_edges,)."""
        degree = np.bincount(self.original[kept], minlength=len(self.original_rows))
        start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
        return ConsistencyGraph(start, self.released[kept], self.original_rows, self.released_rows)


def consistency_graph(
    ancestors: Sequence[IntArray],
    original: IntArray,
    original_rows: LongArray,
    released: IntArray,
    released_rows: LongArray,
) -> ConsistencyGraph:
    """Find all consistent pairs.

    Parameters
    ----------
    ancestors : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
        Node of each leaf code at each level.
    original : ndarray of int32, shape (n, k)
        Leaf codes of the distinct original records.
    original_rows : ndarray of int64, shape (n,)
    released : ndarray of int32, shape (m, k)
        Nodes of the distinct released records.
    released_rows : ndarray of int64, shape (m,)

    Returns
    -------
    ConsistencyGraph
        Records numbered as given.

    Raises
    ------
    InputError
        If shapes do not fit, a code is out of range, a record occurs twice, or more than :data:`MOST_EDGES` pairs are
        consistent or :data:`MOST_CANDIDATES` pairs would have to be looked at.

    Notes
    -----
    Distinct beginnings of the records are joined attribute by attribute: a pair of beginnings is continued only if it
    is consistent so far. The attribute with the fewest consistent pairs comes first. Pairs are continued some
    ``2^20`` at a time, depth first, so that memory is bounded by the edges. ⊥ as an original code, a value that is not
    known, is consistent with ⊥ alone.
    """
    k = len(ancestors)
    if original.shape != (len(original_rows), k) or released.shape != (len(released_rows), k) or not k:
        raise InputError(
            f"Consistency graph: records over {k} attributes are needed, not arrays of the shapes {original.shape} and "
            f"{released.shape}, with {len(original_rows)} and {len(released_rows)} numbers of rows."
        )
    for i, ancestor in enumerate(ancestors):
        if len(original) and not (original[:, i].min() >= 0 and original[:, i].max() < len(ancestor)):
            raise InputError(
                f"Consistency graph: attribute {i + 1} holds a leaf code outside 0 to {len(ancestor) - 1}."
            )
        if (released[:, i] < 0).any():
            raise InputError(f"Consistency graph: attribute {i + 1} holds a released node below 0.")
    density = [_density(ancestors[i], original[:, i], released[:, i]) for i in range(k)]
    first = sorted(range(k), key=lambda i: (density[i], i))
    above = [ancestors[i] for i in first]
    left, right = _Trie.of(original[:, first]), _Trie.of(released[:, first])
    found: list[LongArray] = []
    edges = 0
    nothing = np.zeros(min(1, len(original), len(released)), dtype=np.int64)
    for u, v in _Join.of(above, left, right).pairs(nothing, nothing, 0, [0]):
        edges += len(u)
        if edges > MOST_EDGES:
            raise _too_many()
        found.append(left.record[u] * len(released) + right.record[v])
    pairs = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
    owner, to = np.divmod(pairs, max(len(released), 1))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(original)))]).astype(np.int64)
    return ConsistencyGraph(start, to.astype(np.int32), original_rows, released_rows)


def rows_per_original(graph: ConsistencyGraph) -> LongArray:
    """Released rows consistent with each original record; the least is the k of (1,k)-anonymity.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    return summed(graph.original, graph.released_rows[graph.released], len(graph.original_rows))


def rows_per_released(graph: ConsistencyGraph) -> LongArray:
    """Original rows consistent with each released record; the least is the k of (k,1)-anonymity.

    Returns
    -------
    ndarray of int64, shape (m,)
    """
    return summed(graph.released, graph.original_rows[graph.original], len(graph.released_rows))


def _too_many() -> InputError:
    return InputError(
        f"Consistency graph: more than {MOST_EDGES} pairs of distinct records are consistent. Assess fewer "
        "quasi-identifiers, or a sample of the groups of records that are consistent with each other."
    )


def summed(position: npt.NDArray[np.integer], rows: LongArray, n: int) -> LongArray:
    """Sum integers by position, exactly.

    Parameters
    ----------
    position : ndarray of integers, shape (m,)
        In ``0 … n - 1``.
    rows : ndarray of int64, shape (m,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    result = np.zeros(n, dtype=np.int64)
    np.add.at(result, position, rows)
    return result


def _consistent(ancestor: IntArray, leaf: npt.NDArray[np.integer], node: npt.NDArray[np.integer]) -> BoolArray:
    """Whether a node is the leaf or above it, pair by pair."""
    result = np.zeros(len(leaf), dtype=np.bool_)
    for x in range(ancestor.shape[1]):
        result |= ancestor[leaf, x] == node
    return result


def _density(ancestor: IntArray, leaves: IntArray, nodes: IntArray) -> float:
    """Share of the pairs of an original and a released record that are consistent in one attribute."""
    node, times = np.unique(nodes, return_counts=True)
    leaf, of_leaf = np.unique(leaves, return_counts=True)
    total = 0
    if not len(node):
        return 0.0
    seen = np.full(len(leaf), -1, dtype=np.int64)
    for x in range(ancestor.shape[1]):
        at = ancestor[leaf, x].astype(np.int64)
        place = np.minimum(np.searchsorted(node, at), len(node) - 1)
        # a node that stays the same from one level to the next counts once
        hit = (node[place] == at) & (at != seen)
        total += int((times[place] * of_leaf)[hit].sum())
        seen = at
    return total / max(len(leaves) * len(nodes), 1)


@dataclass(frozen=True, eq=False)
class _Trie:
    """Distinct beginnings of sorted records.

    Attributes
    ----------
    child : tuple of k ndarrays of int64, shape (n_i + 1,)
        Children, beginnings of one attribute more, of each beginning of ``i`` attributes.
    code : tuple of k ndarrays of int32, shape (n_{i+1},)
        Last code of each beginning of ``i + 1`` attributes.
    record : ndarray of int64, shape (n,)
        Number of the record that each whole beginning is.
    """

    child: tuple[LongArray, ...]
    code: tuple[IntArray, ...]
    record: LongArray

    @classmethod
    def of(cls, records: IntArray) -> _Trie:
        """Sort records; they must be different."""
        n, k = records.shape
        order = np.lexsort(records.T[::-1])
        table = records[order]
        new = np.zeros(n, dtype=np.bool_)
        new[:1] = True
        above = np.flatnonzero(new)
        child, code = [], []
        for i in range(k):
            new[1:] |= table[1:, i] != table[:-1, i]
            begin = np.flatnonzero(new)
            child.append(np.append(np.searchsorted(begin, above), len(begin)))
            code.append(table[begin, i])
            above = begin
        if not new.all():
            raise InputError("Consistency graph: the records of a table must be distinct.")
        return cls(tuple(child), tuple(code), order.astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Join:
    """What beginnings are continued with, attribute by attribute.

    Attributes
    ----------
    ancestors : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
    left, right : _Trie
        Original and released records.
    radix : tuple of k int
        Above every node of the attribute.
    key : tuple of k ndarrays of int64, shape (n_{i+1},)
        Parent and code of each released beginning, as one number, ascending.
    """

    ancestors: Sequence[IntArray]
    left: _Trie
    right: _Trie
    radix: tuple[int, ...]
    key: tuple[LongArray, ...]

    @classmethod
    def of(cls, ancestors: Sequence[IntArray], left: _Trie, right: _Trie) -> _Join:
        """Join the original records on the left with the released ones on the right."""
        radix, key = [], []
        for ancestor, child, code in zip(ancestors, right.child, right.code, strict=True):
            radix.append(1 + max(int(ancestor.max(initial=0)), int(code.max(initial=0))))
            key.append(np.repeat(np.arange(len(child) - 1), np.diff(child)) * radix[-1] + code)
        return cls(ancestors, left, right, tuple(radix), tuple(key))

    def pairs(self, u: LongArray, v: LongArray, i: int, seen: list[int]) -> Iterator[tuple[LongArray, LongArray]]:
        """Yield consistent pairs of whole records, given consistent pairs of beginnings of ``i`` attributes."""
        if i == len(self.ancestors):
            yield u, v
            return
        first, second = self.left.child[i], self.right.child[i]
        levels = self.ancestors[i].shape[1]
        width = second[v + 1] - second[v]
        children = first[u + 1] - first[u]
        # Nodes above a value are looked up where they are fewer than the nodes there are.
        look_up = int((children * width).sum()) > levels * int(children.sum())
        wide = np.full(len(u), levels) if look_up else width
        size = children * wide
        until = np.cumsum(size)
        total = int(until[-1]) if len(until) else 0
        seen[0] += total
        if seen[0] > MOST_CANDIDATES:
            raise InputError(
                f"Consistency graph: more than {MOST_CANDIDATES} pairs of records would have to be looked at. Assess "
                "fewer quasi-identifiers, or fewer rows."
            )
        for begin in range(0, total, _CHUNK):
            place = np.arange(begin, min(begin + _CHUNK, total))
            owner = np.searchsorted(until, place, side="right")
            down, across = np.divmod(place - (until - size)[owner], wide[owner])
            a = first[u[owner]] + down
            leaf = self.left.code[i][a]
            if look_up:
                node = self.ancestors[i][leaf, across].astype(np.int64)
                key = v[owner] * self.radix[i] + node
                b = np.minimum(np.searchsorted(self.key[i], key), len(self.key[i]) - 1)
                again = (across > 0) & (self.ancestors[i][leaf, across - 1] == node)
                kept = (self.key[i][b] == key) & ~again
            else:
                b = second[v[owner]] + across
                kept = _consistent(self.ancestors[i], leaf, self.right.code[i][b])
            if kept.any():
                yield from self.pairs(a[kept], b[kept], i + 1, seen)
