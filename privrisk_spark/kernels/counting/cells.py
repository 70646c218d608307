"""Cells as packed vectors of node classes, expanded one attribute at a time: kernels of the distributed plans.

A *cell* is a vector of node classes ``(x_1,…,x_k)``; nodes consistent with the same dictionary codes share a class
(a row of :func:`privrisk_spark.kernels.counting.consistent.incidence`). Cells are packed into words, exactly. With
``n[t_1,…,t_k]`` dictionary rows of node vector ``t``,

    ρ[x_1,…,x_k] = Σ_t n[t] · Π_i C_i[x_i, t_i],

so replacing in every row the code ``t_i`` by each class ``x_i`` with ``C_i[x_i, t_i] = 1`` and summing equal rows, for
one attribute after the other, ends in ``ρ`` of every cell with ``ρ > 0``. Rows in between hold classes of the
attributes done and codes of the others, in the same words: a slot of a word has room for either.

*Distinct entities* do not add up, because one entity may have rows of different values. The same passes over distinct
pairs of vector and entity keep them distinct: the pairs after all passes are ``{(x, e): e has a row consistent with
x}``, and their number per cell is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray, WordArray
from privrisk_spark.kernels.counting.consistent import Axis, incidence
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.packing import WORD_VALUES, Packing, gathered

ROWS_AT_ONCE = 2**20
"""Rows one step of an expansion makes at once, unless a single row makes more. Does not change a result."""


@dataclass(frozen=True, eq=False)
class Relation:
    """Which classes each dictionary code of one attribute is consistent with: the columns of ``C_i``.

    Attributes
    ----------
    node_class : ndarray of int32, shape (n_nodes,)
        Class of each node.
    representative : ndarray of int32, shape (n_classes,)
        The most general node of each class; of several of one depth, the one with the smallest number.
    column_of : ndarray of int32, shape (n_nodes + 1,)
        Column of each dictionary code, -1 if the code cannot occur. Codes consistent with the same classes share one.
    starts : ndarray of int64, shape (n_columns + 1,)
    members : ndarray of int32, shape (starts[-1],)
        Classes of column ``c`` are ``members[starts[c]:starts[c + 1]]``, ascending.
    known : bool
        False when the dictionary lacks the attribute: there is one column and one class.
    monotone : bool
        Whether a parent is consistent with whatever its child is consistent with, and the root with everything.
    """

    node_class: IntArray
    representative: IntArray
    column_of: IntArray
    starts: LongArray
    members: IntArray
    known: bool
    monotone: bool

    @classmethod
    def of(cls, axis: Axis, present: IntArray) -> Relation:
        """Relation of an axis over the dictionary codes that can occur, ascending."""
        n_nodes = len(axis.at_depth)
        if not axis.known or not len(present):
            present = np.zeros(1, dtype=np.int32)
        node_class, matrix = incidence(axis, present)
        n_classes = matrix.shape[0]
        depth = (axis.at_depth >= 0).sum(axis=1) - 1
        general = np.lexsort((np.arange(n_nodes), depth, node_class))
        _, first = np.unique(node_class[general], return_index=True)
        by_column = matrix.tocsc()
        by_column.sort_indices()
        column_of = np.full(n_nodes + 1, -1, dtype=np.int32)
        column_of[present] = np.arange(len(present))
        own = np.arange(n_nodes)
        parent = np.where(depth > 0, axis.at_depth[own, np.maximum(depth - 1, 0)], own)
        whole = matrix[node_class]
        lost = int(whole.multiply(whole[parent]).sum()) < int(whole.sum())
        full = int(whole[[axis.root]].sum()) == len(present)
        relation = cls(
            node_class=node_class.astype(np.int32),
            representative=general[first].astype(np.int32),
            column_of=np.zeros_like(column_of) if not axis.known else column_of,
            starts=by_column.indptr.astype(np.int64),
            members=by_column.indices.astype(np.int32),
            known=axis.known,
            monotone=full and not lost,
        )
        return relation.restricted(np.ones(n_classes, dtype=np.bool_))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.representative)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.starts) - 1

    def restricted(self, kept: BoolArray) -> Relation:
        """Forget classes that are not wanted; codes that now agree share a column.

        Parameters
        ----------
        kept : ndarray of bool, shape (n_classes,)
        """
        wanted = kept[self.members]
        ends = np.concatenate([[0], np.cumsum(wanted)])[self.starts]
        members = self.members[wanted]
        seen: dict[bytes, int] = {}
        first: list[int] = []
        column = np.empty(self.n_columns, dtype=np.int32)
        for c in range(self.n_columns):
            pattern = members[ends[c] : ends[c + 1]].tobytes()
            if pattern not in seen:
                seen[pattern] = len(first)
                first.append(c)
            column[c] = seen[pattern]
        parts = [members[ends[c] : ends[c + 1]] for c in first]
        return replace(
            self,
            column_of=np.where(self.column_of >= 0, column[self.column_of], -1).astype(np.int32),
            starts=np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64),
            members=np.concatenate(parts).astype(np.int32),
        )

    def columns(self, codes: IntArray) -> IntArray:
        """Column of each dictionary code.

        Raises
        ------
        InternalError
            If a code is not among those that can occur.
        """
        if len(codes) and (codes.min() < 0 or codes.max() >= len(self.column_of)):
            raise InternalError("counting: a dictionary code is outside its hierarchy's codes.")
        result: IntArray = self.column_of[codes]
        if len(codes) and result.min() < 0:
            raise InternalError("counting: a dictionary code occurs that was declared not to.")
        return result

    def classes_of(self, columns: LongArray) -> tuple[LongArray, IntArray]:
        """Join columns with their classes.

        Returns
        -------
        row : ndarray of int64, shape (m,)
            Position among ``columns``, ascending.
        member : ndarray of int32, shape (m,)
            A class of that column.
        """
        begin = self.starts[columns]
        length = self.starts[columns + 1] - begin
        row = np.repeat(np.arange(len(columns)), length)
        shift = begin - (np.cumsum(length) - length)
        return row, self.members[np.arange(len(row)) + shift[row]]


@dataclass(frozen=True, eq=False)
class CellSpace:
    """The cells of all attributes, and how dictionary rows are expanded to them.

    Attributes
    ----------
    relations : tuple of k Relation
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
        Node of each leaf code at each level.
    order : tuple of k int
        Attribute of each slot: passes go from the first slot to the last.
    packing : Packing
        A slot holds a column before its pass and a class after it.
    schemes : tuple of k ndarrays of uint64, shape (n_classes_i, n_masks), or None
        Bit ``s`` of a class: scheme ``s`` has a node of that class. A cell is kept if some scheme has all its classes.
    """

    relations: tuple[Relation, ...]
    ancestor: tuple[IntArray, ...]
    order: tuple[int, ...]
    packing: Packing
    schemes: tuple[WordArray, ...] | None = None

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        present: Sequence[IntArray],
        order: Sequence[int] | None = None,
        *,
        room: int = WORD_VALUES,
    ) -> CellSpace:
        """Lay the cells out.

        Parameters
        ----------
        axes : sequence of k Axis
        present : sequence of k ndarrays of int32
            Dictionary codes that can occur, ascending; ignored where the dictionary lacks the attribute.
        order : sequence of k int, optional
            Order of the passes. By default attributes whose codes have few consistent classes come first, so that the
            rows in between, a product of these numbers at most, stay few for long.
        room : int
            Values of a word.
        """
        relations = tuple(Relation.of(axis, codes) for axis, codes in zip(axes, present, strict=True))
        if order is None:
            order = sorted(range(len(axes)), key=lambda i: (len(relations[i].members) / relations[i].n_columns, i))
        if sorted(order) != list(range(len(axes))):
            raise ValueError("order must hold every attribute once.")
        radices = tuple(max(relations[i].n_classes, relations[i].n_columns) for i in order)
        return cls(relations, tuple(axis.ancestor for axis in axes), tuple(order), Packing(radices, room))

    @property
    def n_words(self) -> int:
        """Words of a cell."""
        return self.packing.n_words

    @property
    def passes(self) -> tuple[int, ...]:
        """Slots to expand: those of attributes the dictionary has."""
        return tuple(slot for slot, i in enumerate(self.order) if self.relations[i].known)

    @property
    def monotone(self) -> bool:
        """Whether ``ρ`` never falls when an attribute is generalized."""
        return all(relation.monotone for relation in self.relations)

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """Codes of the same classes at every level, as ``alike`` of an array plan's ``Counts``."""
        chains = zip(self.relations, self.ancestor, strict=True)
        return tuple(distinct_rows(list(r.node_class[ancestor].T))[1].astype(np.int32) for r, ancestor in chains)

    def restricted(self, kept: Sequence[BoolArray]) -> CellSpace:
        """Keep only some classes of each attribute.

        Parameters
        ----------
        kept : sequence of k ndarrays of bool, shape (n_classes_i,)
        """
        return replace(
            self, relations=tuple(relation.restricted(k) for relation, k in zip(self.relations, kept, strict=True))
        )

    def within(self, schemes: npt.NDArray[np.integer], codes: Sequence[IntArray] | None = None) -> CellSpace:
        """Keep only the cells of some schemes of generalization.

        Parameters
        ----------
        schemes : ndarray of int, shape (s, k)
            A level for every attribute, the same for all records; above the height is the height.
        codes : sequence of k ndarrays of int32, optional
            Leaf codes of the records. By default every leaf and no suppressed value; with the code of ⊥ a cell may have
            ⊥ whatever the level.
        """
        n_masks = (len(schemes) + 63) // 64
        masks: list[WordArray] = []
        kept: list[BoolArray] = []
        for i, (relation, ancestor) in enumerate(zip(self.relations, self.ancestor, strict=True)):
            own = np.arange(max(len(ancestor) - 1, 1)) if codes is None else codes[i]
            mask = np.zeros((relation.n_classes, n_masks), dtype=np.uint64)
            for s, levels in enumerate(schemes):
                level = min(int(levels[i]), ancestor.shape[1] - 1)
                mask[np.unique(relation.node_class[ancestor[own, level]]), s // 64] |= np.uint64(1 << (s % 64))
            masks.append(mask)
            kept.append(mask.max(axis=1, initial=0) > 0)
        return replace(self.restricted(kept), schemes=tuple(masks))

    def pack(self, codes: Sequence[IntArray | None], n: int) -> list[LongArray]:
        """Words of dictionary vectors before any pass.

        Parameters
        ----------
        codes : sequence of k ndarrays of int32, shape (n,), or None
            Dictionary codes; None where the dictionary lacks the attribute.

        Raises
        ------
        InternalError
            If a code is not among those that can occur.
        """
        digits: list[npt.NDArray[np.integer]] = []
        for i in self.order:
            column = codes[i]
            known = self.relations[i].known and column is not None
            digits.append(self.relations[i].columns(column) if known else np.zeros(n, dtype=np.int32))  # type: ignore[arg-type]
        return self.packing.pack(digits, n)

    def expand(
        self, words: Sequence[LongArray], tally: LongArray, slot: int, *, distinct: bool, most: int = ROWS_AT_ONCE
    ) -> Iterator[tuple[list[LongArray], LongArray]]:
        """One pass: every row once for each class its code of one attribute is consistent with.

        Parameters
        ----------
        words : sequence of ndarrays of int64, shape (n,)
            Classes in the slots before ``slot``, columns from it on.
        tally : ndarray of int64, shape (n,)
            Dictionary rows, or entities.
        distinct : bool
            Whether ``tally`` names entities; see :func:`gathered`.
        most : int
            Rows made at once, before equal ones are gathered; a single row may make more.

        Yields
        ------
        words, tally
            Equal rows gathered within each part but not across parts.
        """
        packing = self.packing
        relation = self.relations[self.order[slot]]
        column = packing.digit(words, slot)
        alive = self._alive(words, slot)
        made = np.cumsum(relation.starts[column + 1] - relation.starts[column])
        begin = 0
        while begin < len(tally):
            done = int(made[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(made, done + most, side="right")), begin + 1)
            row, member = relation.classes_of(column[begin:end])
            row += begin
            if alive is not None and self.schemes is not None:
                kept = (alive[row] & self.schemes[self.order[slot]][member]).any(axis=1)
                row, member = row[kept], member[kept]
            expanded = [word[row] for word in words]
            expanded[packing.word[slot]] += (member - column[row]) * packing.stride[slot]
            yield gathered(expanded, tally[row], distinct=distinct)
            begin = end

    def _alive(self, words: Sequence[LongArray], slot: int) -> WordArray | None:
        """Schemes that have all classes of the slots before, as bits."""
        if self.schemes is None:
            return None
        alive = np.full((len(words[0]), self.schemes[0].shape[1]), np.iinfo(np.uint64).max, dtype=np.uint64)
        for before in range(slot):
            alive &= self.schemes[self.order[before]][self.packing.digit(words, before)]
        return alive

    def marginals(
        self, words: Sequence[LongArray], tally: LongArray, *, distinct: bool
    ) -> Iterator[tuple[int, IntArray, LongArray]]:
        """``ρ`` of the cells that disclose one attribute, from rows before any pass.

        Yields
        ------
        attribute : int
        classes : ndarray of int32
        tally : ndarray of int64
            Rows of each class; or, with ``distinct``, its distinct entities, one per element.
        """
        for slot in self.passes:
            relation = self.relations[self.order[slot]]
            (column,), of_column = gathered([self.packing.digit(words, slot)], tally, distinct=distinct)
            row, member = relation.classes_of(column)
            (classes,), of_class = gathered([member.astype(np.int64)], of_column[row], distinct=distinct)
            yield self.order[slot], classes.astype(np.int32), of_class

    def classes(self, words: Sequence[LongArray]) -> IntArray:
        """Class of each attribute, from words after all passes.

        Returns
        -------
        ndarray of int32, shape (n, k)
            ``relations[i].representative`` maps to the most general node, ``relations[i].node_class`` back.
        """
        result = np.zeros((len(words[0]), len(self.order)), dtype=np.int32)
        for slot, i in enumerate(self.order):
            result[:, i] = self.packing.digit(words, slot)
        return result

    def nodes(self, words: Sequence[LongArray]) -> IntArray:
        """Most general node of each attribute, int32 (n, k), from words after all passes."""
        classes = self.classes(words)
        for i, relation in enumerate(self.relations):
            classes[:, i] = relation.representative[classes[:, i]]
        return classes

    @cached_property
    def offsets(self) -> tuple[LongArray, ...]:
        """int64 (height_i + 1, n_leaves_i + 1) per attribute: what a code at a level adds to the word of its slot."""
        slot_of = {i: slot for slot, i in enumerate(self.order)}
        return tuple(
            np.ascontiguousarray(relation.node_class[ancestor].T).astype(np.int64) * self.packing.stride[slot_of[i]]
            for i, (relation, ancestor) in enumerate(zip(self.relations, self.ancestor, strict=True))
        )

    def words_at(self, codes: Sequence[IntArray], levels: Sequence[int]) -> list[LongArray]:
        """Cells of records disclosed at one level vector.

        Parameters
        ----------
        codes : sequence of k ndarrays of int32, shape (n,)
            Leaf codes.
        levels : sequence of k int
        """
        words = [np.zeros(len(codes[0]), dtype=np.int64) for _ in range(self.n_words)]
        for slot, i in enumerate(self.order):
            words[self.packing.word[slot]] += self.offsets[i][levels[i]][codes[i]]
        return words
