"""Equivalence classes of a table under every level vector: their sizes, from one count.

Full-domain recoding at level vector ``x`` replaces every value of attribute ``i`` by its ancestor ``x_i`` levels up; a
value whose path is shorter stays at ⊥. Records that become equal form an equivalence class. Classes at a more general
node are unions of classes at a less general one (the roll-up property, LeFevre, DeWitt and Ramakrishnan, Incognito,
SIGMOD 2005), so sizes of all nodes follow from the multiplicities of the distinct records; no node looks at the table.
Rows add up in this way; distinct entities do not (one person may have rows in two classes that become one), so sizes
here are rows and there is no entity identifier.

How classes are walked is in :mod:`reproduce.deciding.grouping`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.lattice.lattice import Lattice
from reproduce.deciding.grouping import class_sizes, differs

ExactArray = npt.NDArray[Any]  # int64, or Python integers where int64 could overflow


_ROW_BITS = 62
"""Bits of the number of rows, at most."""

_SQUARE_LIMIT = 2**63

_SMALL = 64
"""Class sizes below this are counted in a table, the few others by sorting."""

_BATCH_CLASSES = 2**16
_BATCH_NODES = 2**13


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """Sizes of the equivalence classes at every node of the lattice.

    Make one with :meth:`at_every_node`. Arrays of shape (n_nodes,) are by node number, in lexicographic order of the
    level vectors (:class:`~privrisk_spark.kernels.lattice.lattice.Lattice`).

    Attributes
    ----------
    lattice : Lattice
        Of the whole table: ``h_i`` is the height of the hierarchy.
    records : int
        ``N``, rows of the table.
    classes : ndarray of int64, shape (n_nodes,)
        Number of classes; 0 for a table without rows. Non-increasing along generalization.
    smallest : ndarray of int64, shape (n_nodes,)
        Rows of the smallest class, the greatest ``k`` for which the node is k-anonymous without suppression; 0 for a
        table without rows. Non-decreasing along generalization.
    squares : ndarray of int64, shape (n_nodes,)
        ``Σ f²`` over the classes. Python integers (dtype object) from 3,037,000,500 rows on, where ``N²`` passes
        2**63.
    offsets : ndarray of int64, shape (n_nodes + 1,)
        The histogram of a node is ``offsets[node] … offsets[node + 1]`` of the two arrays below.
    sizes : ndarray of int64, shape (n_entries,)
        Different class sizes of a node, ascending.
    numbers : ndarray of int64, shape (n_entries,)
        Classes of that size, at least 1.
    kept_below : int or None
        Histograms hold only sizes below this; None if they hold all. ``classes``, ``smallest`` and ``squares`` are of
        all classes always.
    """

    lattice: Lattice
    records: int
    classes: LongArray
    smallest: LongArray
    squares: ExactArray
    offsets: LongArray
    sizes: LongArray
    numbers: LongArray
    kept_below: int | None = None

    @classmethod
    def at_every_node(
        cls,
        ancestors: Sequence[IntArray],
        vectors: IntArray,
        counts: LongArray,
        *,
        kept_below: int | None = None,
    ) -> ClassSizes:
        """Group the records at every level vector.

        Parameters
        ----------
        ancestors : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
            Node of each leaf code at each level; the last code is ⊥ at every level. ``h_i`` may be 0.
        vectors : ndarray of int32, shape (m, k)
            Leaf codes in ``0 … n_leaves_i``, ``m < 2**31``. Usually distinct; equal ones are added up.
        counts : ndarray of int64, shape (m,)
            Rows of each vector, at least 0 and fewer than 2**62 in all.
        kept_below : int, optional
            Keep histograms of sizes below this only, at least 2. All sizes if not given.

        Raises
        ------
        InputError
            If the shapes do not fit, a code or count is out of range, or two codes that share a node at one level do
            not share one at the next.

        Notes
        -----
        Memory: per attribute about ``16 m (h_i + 1)`` bytes at most, a grouping of ``m`` classes per attribute, and
        the histograms. The order of the rows does not matter.
        """
        _check(ancestors, vectors, counts, kept_below)
        lattice = Lattice(tuple(ancestor.shape[1] - 1 for ancestor in ancestors))
        records = int((counts >> 32).sum()) * 2**32 + int((counts & (2**32 - 1)).sum())
        if records >= 2**_ROW_BITS:
            raise InputError(f"The table must have fewer than 2^{_ROW_BITS} rows. Got {records}.")
        there = counts > 0
        if records == 0:
            none = np.zeros(0, dtype=np.int64)
            zero = np.zeros(lattice.n_nodes, dtype=np.int64)
            offsets = np.zeros(lattice.n_nodes + 1, dtype=np.int64)
            return cls(lattice, 0, zero, zero.copy(), zero.copy(), offsets, none, none.copy(), kept_below)
        groupings = class_sizes(lattice, ancestors, vectors[there], counts[there], records.bit_length())
        exact = np.int64 if records**2 < _SQUARE_LIMIT else np.object_
        nodes: list[LongArray] = []
        summaries: list[tuple[LongArray, LongArray, ExactArray, LongArray]] = []
        entries: list[tuple[LongArray, LongArray]] = []
        for batch, owner, size, number in _histograms(groupings, records.bit_length()):
            nodes.append(batch)
            start = np.flatnonzero(np.diff(owner, prepend=-1))
            wide: ExactArray = size.astype(exact)
            keep = np.ones(len(size), dtype=np.bool_) if kept_below is None else size < kept_below
            summaries.append(
                (
                    np.add.reduceat(number, start),
                    size[start],
                    np.add.reduceat(wide * wide * number, start),
                    np.add.reduceat(keep, start, dtype=np.int64),
                )
            )
            entries.append((size[keep], number[keep]))
        # from the order of the walk to the order of the lattice
        order = np.argsort(np.concatenate(nodes))
        classes, smallest, squares, lengths = (np.concatenate(column)[order] for column in zip(*summaries, strict=True))
        ends = np.cumsum(np.concatenate([column[3] for column in summaries]))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(ends[order] - offsets[1:], lengths) + np.arange(offsets[-1])
        sizes, numbers = (np.concatenate(column)[moved] for column in zip(*entries, strict=True))
        return cls(lattice, records, classes, smallest, squares, offsets, sizes, numbers, kept_below)

    def histogram(self, node: int) -> tuple[LongArray, LongArray]:
        """Class sizes of one node.

        Returns
        -------
        sizes : ndarray of int64
            Different sizes, ascending; below ``kept_below`` if that was given.
        numbers : ndarray of int64
            Classes of each size.
        """
        part = slice(self.offsets[node], self.offsets[node + 1])
        return self.sizes[part], self.numbers[part]

    @property
    def uniques(self) -> LongArray:
        """int64 (n_nodes,): classes of one row, the sample uniques."""
        return self.classes_below(2)

    def classes_below(self, k: int) -> LongArray:
        """Classes of fewer than ``k`` rows, at every node.

        Parameters
        ----------
        k : int
            At least 1, and at most ``kept_below`` if that was given.

        Returns
        -------
        ndarray of int64, shape (n_nodes,)

        Raises
        ------
        InputError
            If ``k`` is out of range.
        """
        below: LongArray = self._total_below(k, self.numbers)
        return below

    def rows_below(self, k: int) -> LongArray:
        """Rows in classes of fewer than ``k`` rows, at every node: what k-anonymity would have to suppress.

        Parameters and errors as for :meth:`classes_below`. Non-increasing along generalization.

        Returns
        -------
        ndarray of int64, shape (n_nodes,)
            Over ``N``, the share of records whose prosecutor risk ``1/f`` is above ``1/k``.
        """
        below: LongArray = self._total_below(k, self.sizes * self.numbers)
        return below

    def anonymous(self, k: int, suppressed: int = 0) -> BoolArray:
        """Whether a node is k-anonymous once the rows of smaller classes, at most ``suppressed``, are removed.

        k-anonymity: every released row shares its quasi-identifiers with at least ``k - 1`` others (Samarati, IEEE
        TKDE 13(6), 2001, with the threshold ``MaxSup``; Sweeney, IJUFKS 10(5), 2002).

        Parameters
        ----------
        k : int
            As for :meth:`classes_below`.
        suppressed : int
            Rows, at least 0.

        Returns
        -------
        ndarray of bool, shape (n_nodes,)
            An up-set of the lattice.
        """
        if suppressed < 0:
            raise InputError(f"The rows that may be suppressed must be at least 0. Got {suppressed}.")
        enough: BoolArray = self.rows_below(k) <= suppressed
        return enough

    def mean_risk(self) -> FloatArray:
        """Prosecutor risk averaged over records, ``(1/N) Σ_records 1/f = classes / N``; 0 for a table without rows.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
            Probability in [0, 1].
        """
        return self.classes / max(self.records, 1)

    def discernibility(self, k: int = 1) -> ExactArray:
        """``C_DM = Σ_{f >= k} f² + Σ_{f < k} f · N`` at every node, exactly.

        A record is charged the rows it cannot be told from; a record of a class below ``k`` is suppressed, and is
        charged the table (Bayardo and Agrawal, ICDE 2005).

        Parameters
        ----------
        k : int
            As for :meth:`classes_below`.

        Returns
        -------
        ndarray of int64, shape (n_nodes,)
            Of the dtype of ``squares``: Python integers where int64 could overflow. At most ``N²``.
        """
        exact = self.squares.dtype
        wide = self.sizes.astype(exact)
        small = self._total_below(k, wide * wide * self.numbers)
        charged: ExactArray = self.squares - small + self.rows_below(k).astype(exact) * self.records
        return charged

    def _total_below(self, k: int, values: ExactArray) -> ExactArray:
        """Sum, per node, of the entries whose size is below ``k``."""
        if k < 1:
            raise InputError(f"k must be at least 1. Got {k}.")
        if self.kept_below is not None and k > self.kept_below:
            raise InputError(
                f"k must be at most {self.kept_below}: the histograms hold class sizes below that only. Got {k}."
            )
        # Sums over several nodes may wrap around; a difference of two is one node's sum, which fits, and is exact.
        running = np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(np.where(self.sizes < k, values, 0))])
        total: ExactArray = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return total


def _histograms(
    groupings: Iterable[tuple[int, LongArray]], count_bits: int
) -> Iterator[tuple[LongArray, LongArray, LongArray, LongArray]]:
    """Count equal class sizes, many nodes at a time.

    Yields
    ------
    nodes : ndarray of int64, shape (n,)
        Nodes of the batch, each with at least one class.
    owner : ndarray of int64, shape (n_entries,)
        Position in ``nodes`` of each entry, ascending.
    size, number : ndarrays of int64, shape (n_entries,)
        A class size, ascending within a node, and the classes of that size.
    """
    most = min(_BATCH_NODES, 1 << (_ROW_BITS - count_bits))  # position and size share one sort key
    nodes: list[int] = []
    parts: list[LongArray] = []
    held = 0
    for node, sizes in groupings:
        nodes.append(node)
        parts.append(sizes)
        held += len(sizes)
        if held >= _BATCH_CLASSES or len(nodes) >= most:
            yield np.array(nodes), *_run_lengths(parts, count_bits)
            nodes, parts, held = [], [], 0
    if nodes:
        yield np.array(nodes), *_run_lengths(parts, count_bits)


def _run_lengths(parts: Sequence[LongArray], count_bits: int) -> tuple[LongArray, LongArray, LongArray]:
    """Owner, size and number of the different sizes of each part; see :func:`_histograms`."""
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    size = np.concatenate(parts)
    width = _SMALL + 1  # the last column takes every larger size, and is not read
    table = np.bincount(owner * width + np.minimum(size, _SMALL), minlength=len(parts) * width)
    table = table.reshape(len(parts), width)[:, :_SMALL].ravel()
    cells = np.flatnonzero(table)
    above = np.flatnonzero(size >= _SMALL)
    large = np.sort((owner[above] << count_bits) | size[above])
    start = np.flatnonzero(differs(large))
    runs = np.diff(start, append=len(large))
    owner = np.concatenate([cells // _SMALL, large[start] >> count_bits])
    size = np.concatenate([cells % _SMALL, large[start] & ((1 << count_bits) - 1)])
    number = np.concatenate([table[cells], runs])
    order = np.argsort(owner, kind="stable")  # small sizes stay before large ones
    return owner[order], size[order], number[order]


def _check(ancestors: Sequence[IntArray], vectors: IntArray, counts: LongArray, kept_below: int | None) -> None:
    """Refuse what cannot be grouped."""
    if vectors.ndim != 2 or vectors.shape[1] != len(ancestors) or counts.shape != (len(vectors),):
        raise InputError(
            "There must be one column of codes per hierarchy and one count per vector. "
            f"Got {len(ancestors)} hierarchies, vectors of shape {vectors.shape}, counts of shape {counts.shape}."
        )
    for i, ancestor in enumerate(ancestors):
        if ancestor.ndim != 2 or 0 in ancestor.shape:
            raise InputError(f"Ancestors of attribute {i} must be codes by levels. Got shape {ancestor.shape}.")
        if len(vectors) and not 0 <= vectors[:, i].min() <= vectors[:, i].max() < len(ancestor):
            raise InputError(f"Codes of attribute {i} must be between 0 and {len(ancestor) - 1}.")
    if len(counts) and counts.min() < 0:
        raise InputError("Counts must be at least 0.")
    if kept_below is not None and kept_below < 2:
        raise InputError(f"kept_below must be at least 2. Got {kept_below}.")
