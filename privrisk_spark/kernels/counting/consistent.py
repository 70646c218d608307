"""Counting consistent dictionary rows: ``ρ = (C_1 ⊗ … ⊗ C_k) n``.

``n[t_1,…,t_k]`` is the number of dictionary rows with node vector ``t`` and ``C_i[x_i, t_i] = 1`` iff ``t_i`` is
consistent with the disclosed node ``x_i``. The sum is taken one attribute at a time. Two plans give the same numbers:

* :class:`DenseCounts` rolls the whole histogram up, axis by axis; a look-up is direct addressing. Nodes with equal rows
  of ``C_i`` share a cell: a day and its month need one cell when the dictionary knows only the year.
* :class:`SortedCounts` keeps the distinct dictionary vectors and groups them, per depth vector, on packed keys; a
  look-up is a binary search. Nothing has the size of the product of the attributes.

Consistency of one attribute (F12 §5.2.1; LSFB06 Theorem 1):

* ``subsumes``: ``t`` is in the subtree of ``x``;
* ``compatible``: or ``x`` is in the subtree of ``t``;
* ``similar``: the labels of ``t`` and ``x`` resemble each other (:mod:`privrisk_spark.kernels.counting.similarity`), or
  one of them is ⊥. This is no tree relation: ``ρ`` may fall when a value is generalized, and only the dense plan counts
  it.

Codes of dictionary values are nodes ``0..n_nodes-1`` (a coarser dictionary has inner nodes; a suppressed value is the
root) or ``n_nodes``, a value outside the hierarchy: it is consistent with ⊥ alone. The codes after it are consistent
with one inner node and its ancestors alone; only counts of distinct persons have them
(:mod:`privrisk_spark.kernels.counting.persons`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.counting.ranked import RankedVectors
from privrisk_spark.kernels.numeric.distinct import distinct_rows

_RANKED_BYTES = 2**30
"""Sizes of cells by rank are kept for later nodes up to this in all, each group's share by its vectors."""


Consistency = Literal["subsumes", "compatible", "similar"]


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute as counting sees it.

    Attributes
    ----------
    at_depth : ndarray of int32, shape (n_nodes, height + 1)
        Ancestor-or-self of each node at each depth from the root, -1 below it; the root is the last node.
    ancestor : ndarray of int32, shape (n_leaves + 1, height + 1)
        Node of each leaf code at each level, padded with the root; the last code is ⊥ at every level.
    consistency : {"subsumes", "compatible", "similar"}
    known : bool
        False when the dictionary lacks the attribute: every row is consistent with every value.
    wildcard : bool
        A suppressed dictionary value is consistent with every disclosed value. Always so under ``compatible`` and
        ``similar``.
    similarity : csr_array of int64, shape (n_nodes, n_nodes + 1), or None
        ``C_i`` of ``similar``, 1 where a dictionary code is consistent with a node; see
        :func:`privrisk_spark.kernels.counting.similarity.node_similarity`.

    Raises
    ------
    InputError
        If ``similar`` comes without a similarity of that shape.
    """

    at_depth: IntArray
    ancestor: IntArray
    consistency: Consistency = "subsumes"
    known: bool = True
    wildcard: bool = False
    similarity: scipy.sparse.csr_array | None = None

    def __post_init__(self) -> None:
        if self.consistency == "similar" and self.known:
            shape = (len(self.at_depth), len(self.at_depth) + 1)
            if self.similarity is None or self.similarity.shape != shape:
                got = "none" if self.similarity is None else f"one of shape {self.similarity.shape}"
                raise InputError(f"consistency: 'similar' needs a similarity matrix of shape {shape}. Got {got}.")

    @property
    def monotone(self) -> bool:
        """Whether a value consistent with a node is consistent with the node's parent too, whatever the labels."""
        return not self.known or self.consistency != "similar"

    @property
    def root(self) -> int:
        """Number of the root node."""
        return len(self.at_depth) - 1

    @property
    def code_depth(self) -> IntArray:
        """int32 (n_leaves + 1,): depth of each leaf code, 0 for ⊥."""
        depth = (self.at_depth >= 0).sum(axis=1) - 1
        result: IntArray = depth[self.ancestor[:, 0]].astype(np.int32)
        return result

    @cached_property
    def branching(self) -> IntArray:
        """int32 (n_branching,): nodes with two children or more, the root first and always, the others ascending."""
        depth = (self.at_depth >= 0).sum(axis=1) - 1
        own = np.arange(len(depth))
        parent = self.at_depth[own, np.maximum(depth - 1, 0)][depth > 0]
        inner = np.flatnonzero(np.bincount(parent, minlength=len(depth)) > 1)
        return np.append(self.root, inner[inner != self.root]).astype(np.int32)

    def dictionary_chain(self) -> IntArray:
        """int32 (n_nodes + n_branching, height + 1): :attr:`at_depth`, and a child of its own of each branching node.

        The codes of these children are consistent with that node and its ancestors alone, and are numbered in the order
        of :attr:`branching`; the root's, ``n_nodes``, stands for values outside the hierarchy.
        """
        n_nodes, width = self.at_depth.shape
        above = self.at_depth[self.branching]
        if width < 2:
            above = np.concatenate([above, np.full((len(above), 1), -1, dtype=np.int32)], axis=1)
        depth = (above >= 0).sum(axis=1)
        apart = above.copy()
        apart[np.arange(len(above)), depth] = np.arange(n_nodes, n_nodes + len(above))
        inside = self.at_depth
        if width < 2:
            inside = np.concatenate([inside, np.full((n_nodes, 1), -1, dtype=np.int32)], axis=1)
        return np.concatenate([inside, apart])


class Counts(Protocol):
    """What deciding asks of a count, whatever plan made it."""

    @property
    def dictionary_rows(self) -> int:
        """``N``, rows of the dictionary."""

    @property
    def monotone(self) -> bool:
        """Whether ``ρ`` never falls when a value is generalized: true unless an attribute is ``similar``."""

    @property
    def alike(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes of one depth and one number are counted alike at every level."""

    def consistent(self, codes: Sequence[IntArray], levels: Sequence[int], depths: Sequence[int]) -> LongArray:
        """``ρ`` of records disclosed at one level vector.

        Parameters
        ----------
        codes : sequence of k ndarrays of int32, shape (n,)
            Leaf codes, all of the same depth per attribute.
        levels : sequence of k int
            Level of each attribute, at most its depth.
        depths : sequence of k int
            Depth of the leaf codes.

        Returns
        -------
        ndarray of int64, shape (n,)
        """


def incidence(axis: Axis, present: IntArray) -> tuple[IntArray, scipy.sparse.csr_array]:
    """Distinct rows of ``C_i`` over the dictionary codes that occur.

    Parameters
    ----------
    present : ndarray of int32, shape (n_present,)
        Dictionary codes that occur, ascending.

    Returns
    -------
    classes : ndarray of int32, shape (n_nodes,)
        Row of the matrix for each node; nodes consistent with the same codes share one.
    matrix : csr_array of int64, shape (n_classes, n_present)
    """
    n_nodes, n_present = len(axis.at_depth), len(present)
    if not axis.known:
        return np.zeros(n_nodes, dtype=np.int32), scipy.sparse.csr_array(np.ones((1, n_present), dtype=np.int64))
    if axis.consistency == "similar":
        full = scipy.sparse.csr_array(axis.similarity[:, present])  # type: ignore[index]
    else:
        full = _tree_incidence(axis, present)
    full.sum_duplicates()
    seen: dict[bytes, int] = {}
    classes = np.empty(n_nodes, dtype=np.int32)
    first: list[int] = []
    for node in range(n_nodes):
        pattern = full.indices[full.indptr[node] : full.indptr[node + 1]].tobytes()
        if pattern not in seen:
            seen[pattern] = len(first)
            first.append(node)
        classes[node] = seen[pattern]
    return classes, scipy.sparse.csr_array(full[first])


def _tree_incidence(axis: Axis, present: IntArray) -> scipy.sparse.csr_array:
    """``C_i`` of all nodes under ``subsumes`` or ``compatible``."""
    n_nodes, n_present = len(axis.at_depth), len(present)
    chain = axis.dictionary_chain()
    column_of = np.full(len(chain), -1, dtype=np.int64)
    column_of[present] = np.arange(n_present)
    # x above or equal to t: walk up from every code that occurs.
    above = chain[present]
    steps = (above >= 0) & (above < n_nodes)
    rows = [above[steps]]
    columns = [np.broadcast_to(np.arange(n_present)[:, None], above.shape)[steps]]
    if axis.consistency == "compatible":
        # t strictly above x: walk up from every node to codes that occur.
        up = axis.at_depth
        own = np.arange(n_nodes)[:, None]
        strictly = (up >= 0) & (up != own)
        found = column_of[np.where(strictly, up, 0)]
        hit = strictly & (found >= 0)
        rows.append(np.broadcast_to(own, up.shape)[hit].astype(np.int32))
        columns.append(found[hit])
    elif axis.wildcard and column_of[axis.root] >= 0:
        below = np.arange(n_nodes - 1, dtype=np.int32)
        rows.append(below)
        columns.append(np.full(len(below), column_of[axis.root]))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return scipy.sparse.csr_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(n_nodes, n_present))


def dense_cells(axes: Sequence[Axis], present: Sequence[IntArray]) -> int:
    """Largest number of cells the dense plan holds at once, while rolling up axis by axis."""
    parts = [(len(incidence(axis, codes)[1].indptr) - 1, len(codes)) for axis, codes in zip(axes, present, strict=True)]
    most = 0
    for done in range(len(parts) + 1):
        cells = 1
        for i, (after, before) in enumerate(parts):
            cells *= after if i < done else max(before, 1)
        most = max(most, cells)
    return most


@dataclass(frozen=True, eq=False)
class DenseCounts:
    """``ρ`` of every cell, rolled up once.

    Attributes
    ----------
    cube : ndarray of int64, shape (Π n_classes_i,)
        In row-major order of the node classes.
    offsets : tuple of k ndarrays of int64, shape (n_leaves_i + 1, height_i + 1)
        What each code at each level adds to a cell's address.
    dictionary_rows : int
        ``N``.
    monotone : bool
        Whether ``ρ`` never falls when a value is generalized; False when an axis is ``similar``.
    """

    cube: LongArray
    offsets: tuple[LongArray, ...]
    dictionary_rows: int
    monotone: bool = True

    @classmethod
    def roll_up(cls, axes: Sequence[Axis], vectors: IntArray, counts: LongArray) -> DenseCounts:
        """Roll a histogram of dictionary vectors up, one attribute at a time.

        Parameters
        ----------
        axes : sequence of k Axis
        vectors : ndarray of int32, shape (m, k)
            Distinct dictionary codes; the column of an attribute the dictionary lacks is ignored.
        counts : ndarray of int64, shape (m,)
            Dictionary rows per vector.
        """
        present: list[IntArray] = []
        address = np.zeros(len(vectors), dtype=np.int64)
        for i, axis in enumerate(axes):
            column = vectors[:, i] if axis.known else np.zeros(len(vectors), dtype=np.int32)
            codes, position = np.unique(column, return_inverse=True)
            if not len(codes):
                codes, position = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int64)
            present.append(codes.astype(np.int32))
            address = address * len(codes) + position
        shape = [len(codes) for codes in present]
        cube = np.zeros(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
        np.add.at(cube, address, counts)
        classes: list[IntArray] = []
        for i, axis in enumerate(axes):
            node_class, matrix = incidence(axis, present[i])
            classes.append(node_class)
            before = int(np.prod(shape[:i], dtype=np.int64))
            after = int(np.prod(shape[i + 1 :], dtype=np.int64))
            block = cube.reshape(before, shape[i], after).swapaxes(0, 1).reshape(shape[i], before * after)
            shape[i] = matrix.shape[0]
            cube = np.ascontiguousarray((matrix @ block).reshape(shape[i], before, after).swapaxes(0, 1)).ravel()
        offsets: list[LongArray] = []
        stride = 1
        for i in range(len(axes) - 1, -1, -1):
            offsets.append(classes[i][axes[i].ancestor].astype(np.int64) * stride)
            stride *= shape[i]
        monotone = all(axis.monotone for axis in axes)
        return cls(cube, tuple(reversed(offsets)), int(counts.sum()), monotone)

    @cached_property
    def _by_level(self) -> tuple[LongArray, ...]:
        """int64 (height_i + 1, n_leaves_i + 1): :attr:`offsets`, contiguous per level."""
        return tuple(np.ascontiguousarray(offset.T) for offset in self.offsets)

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """Codes with equal offsets at every level; see :attr:`Counts.alike`."""
        return tuple(distinct_rows(list(by_level))[1].astype(np.int32) for by_level in self._by_level)

    def consistent(self, codes: Sequence[IntArray], levels: Sequence[int], depths: Sequence[int]) -> LongArray:  # noqa: ARG002
        """``ρ`` by direct addressing; see :meth:`Counts.consistent`."""
        address = np.zeros(len(codes[0]), dtype=np.int64)
        for code, level, by_level in zip(codes, levels, self._by_level, strict=True):
            address += by_level[level].take(code)
        result: LongArray = np.asarray(self.cube).take(address)
        return result


@dataclass(frozen=True, eq=False)
class _Group:
    """Dictionary vectors whose values have the same depths."""

    depths: tuple[int, ...]
    vectors: IntArray
    counts: LongArray


@dataclass(frozen=True, eq=False)
class SortedCounts:
    """``ρ`` by binary search over the distinct dictionary vectors.

    A dictionary value at depth ``s`` and a disclosed node at depth ``e`` are compared at depth ``min(e, s)``: if
    ``s >= e`` the value must lie under the node, otherwise (``compatible``, or a wildcard) the node must lie under the
    value. So for dictionary vectors of one depth signature and records disclosed at one depth vector a count is one
    group-by on the ancestors at fixed depths.

    Attributes
    ----------
    axes : tuple of k Axis
    groups : tuple
        Dictionary vectors by depth signature.
    chains : tuple of k ndarrays of int32
        Ancestors of every dictionary code by depth.
    cache_bytes : int
        Grouped tables are kept for later look-ups up to this size in all.
    """

    axes: tuple[Axis, ...]
    groups: tuple[_Group, ...]
    dictionary_rows: int
    chains: tuple[IntArray, ...]
    cache_bytes: int = 2**28
    _cache: dict[tuple[int, tuple[int, ...]], tuple[CellIndex, LongArray]] = field(default_factory=dict)
    _held: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def group(cls, axes: Sequence[Axis], vectors: IntArray, counts: LongArray) -> SortedCounts:
        """Split distinct dictionary vectors by depth signature.

        Parameters
        ----------
        axes : sequence of k Axis
        vectors : ndarray of int32, shape (m, k)
            Distinct dictionary codes; the column of an attribute the dictionary lacks is ignored.
        counts : ndarray of int64, shape (m,)

        Raises
        ------
        InputError
            If an axis is ``similar``: values are compared at a common depth, which labels do not have.
        """
        if not all(axis.monotone for axis in axes):
            raise InputError("counting.plan: 'sorted' cannot count attributes that are 'similar'; use 'dense'.")
        chains = tuple(axis.dictionary_chain() for axis in axes)
        depths = np.zeros((len(vectors), len(axes)), dtype=np.int32)
        for i, axis in enumerate(axes):
            if axis.known:
                depths[:, i] = ((chains[i] >= 0).sum(axis=1) - 1)[vectors[:, i]]
        first, member = distinct_rows(list(depths.T))
        groups = []
        for g, signature in enumerate(depths[first]):
            rows = slice(None) if len(first) == 1 else member == g
            groups.append(_Group(tuple(int(d) for d in signature), vectors[rows], counts[rows]))
        return cls(tuple(axes), tuple(groups), int(counts.sum()), chains)

    @property
    def monotone(self) -> bool:
        """True: other axes are refused."""
        return True

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """Codes with the same ancestor where the deepest dictionary value is, no deeper being ever compared."""
        result = []
        for i, axis in enumerate(self.axes):
            deepest = max((group.depths[i] for group in self.groups), default=0) if axis.known else 0
            result.append(self.chains[i][axis.ancestor[:, 0], np.minimum(axis.code_depth, deepest)])
        return tuple(result)

    def consistent(self, codes: Sequence[IntArray], levels: Sequence[int], depths: Sequence[int]) -> LongArray:
        """``ρ`` by grouping and binary search; see :meth:`Counts.consistent`."""
        n = len(codes[0])
        total = np.zeros(n, dtype=np.int64)
        disclosed = [depth - level for depth, level in zip(depths, levels, strict=True)]
        for g in range(len(self.groups)):
            compared = self.compared_depths(g, disclosed)
            if compared is not None:
                total += self.searched(g, compared, codes)
        return total

    def searched(self, g: int, compared: tuple[int, ...], codes: Sequence[IntArray]) -> LongArray:
        """``ρ`` of records among the vectors of one group alone, by a search for the cell of each."""
        index, sums = self._table(g, compared)
        columns = [
            np.ascontiguousarray(self.chains[i][self.axes[i].ancestor[:, 0], compared[i]])[codes[i]]
            for i in _used(compared)
        ]
        position, found = index.find(columns, len(codes[0]))
        return np.where(found, sums[position], 0) if len(sums) else np.zeros(len(codes[0]), dtype=np.int64)

    @cached_property
    def ranked(self) -> tuple[RankedVectors, ...]:
        """The vectors of each group, for those who look up many nodes of the same records."""
        leaves = tuple(axis.ancestor[:, 0] for axis in self.axes)
        every = max(1, sum(len(group.counts) for group in self.groups))
        return tuple(
            RankedVectors(group.vectors, group.counts, self.chains, leaves, _RANKED_BYTES * len(group.counts) // every)
            for group in self.groups
        )

    def compared_depths(self, g: int, disclosed: Sequence[int]) -> tuple[int, ...] | None:
        """Depth at which each attribute is compared, or None when no vector of the group can be consistent."""
        compared = []
        for axis, own, asked in zip(self.axes, self.groups[g].depths, disclosed, strict=True):
            if not axis.known:
                compared.append(0)
                continue
            if own < asked and axis.consistency == "subsumes" and not (axis.wildcard and own == 0):
                return None
            compared.append(min(own, asked))
        return tuple(compared)

    def _table(self, g: int, compared: tuple[int, ...]) -> tuple[CellIndex, LongArray]:
        """Distinct cells of a group at the compared depths, with their summed counts."""
        cached = self._cache.get((g, compared))
        if cached is not None:
            return cached
        group = self.groups[g]
        used = _used(compared)
        columns = [np.ascontiguousarray(self.chains[i][:, compared[i]])[group.vectors[:, i]] for i in used]
        radices = [len(self.chains[i]) for i in used]
        index, member = CellIndex.build(columns, radices, len(group.vectors))
        sums = np.zeros(len(index.ranks[-1]), dtype=np.int64)
        np.add.at(sums, member, group.counts)
        size = sums.nbytes + sum(rank.nbytes for rank in index.ranks)
        if self._held[0] + size <= self.cache_bytes:
            self._cache[g, compared] = (index, sums)
            self._held[0] += size
        return index, sums


def _used(compared: Sequence[int]) -> list[int]:
    """Attributes compared below the root; at the root every value agrees."""
    return [i for i, depth in enumerate(compared) if depth > 0]


def consistent_at(counts: Counts, code_depth: Sequence[IntArray], codes: IntArray, levels: Sequence[int]) -> LongArray:
    """``ρ`` of records of any depths disclosed at one level vector, cut at each value's depth.

    Parameters
    ----------
    code_depth : sequence of k ndarrays of int32, shape (n_leaves_i + 1,)
    codes : ndarray of int32, shape (n, k)
    levels : sequence of k int

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    result = np.zeros(len(codes), dtype=np.int64)
    depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(code_depth)])
    first, member = distinct_rows(list(depths.T))
    for signature, row in enumerate(first):
        rows = np.flatnonzero(member == signature)
        depth = [int(d) for d in depths[row]]
        cut = [min(level, d) for level, d in zip(levels, depth, strict=True)]
        result[rows] = counts.consistent([codes[rows, i] for i in range(codes.shape[1])], cut, depth)
    return result
