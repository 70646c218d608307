"""Equivalence classes of a table under every level vector: their sizes, from one count.

Full-domain recoding at level vector ``x`` replaces every value of attribute ``i`` by its ancestor ``x_i`` levels up; a
value whose path is shorter stays at ⊥. Records that become equal form an equivalence class. Classes at a more general
node are unions of classes at a less general one (the roll-up property, LeFevre, DeWitt and Ramakrishnan, Incognito,
SIGMOD 2005), so sizes of all nodes follow from the multiplicities of the distinct records; no node looks at the table.
Rows add up in this way; distinct entities do not (one person may have rows in two classes that become one), so sizes
here are rows and there is no entity identifier.

Method. The lattice is walked depth-first, one attribute after the other, and one grouping is held per attribute. At
attribute ``i`` a class is a pair (prefix, suffix): the prefix numbers the generalized values of the attributes before
``i``, the suffix the values of the attributes from ``i`` on.

* Suffixes are numbered once, in the order of (suffix from ``i + 1`` on, value of ``i``), where values are in an order
  in which every node of every level is an interval. Such an order exists because the partitions of the codes by level
  are nested: sort by the node at the highest level, then at the next one, and so on.
* So for any level of ``i`` the generalized suffixes are numbered in the same order, ``number -> number`` is monotone
  from one level to the next, and classes sorted by (prefix, suffix) stay sorted: rolling up ``i`` by a level is one
  look-up and a sum over runs of equal neighbours. Nothing is sorted.
* Only going on from attribute ``i`` to ``i + 1`` needs a sort, from (prefix, next suffix, node) to (prefix, node, next
  suffix): once per level vector of the attributes up to ``i``, not once per node of the lattice. The attribute with the
  most levels comes last, which makes these fewest.
* Prefixes, suffixes and generalized suffixes are dense numbers below ``m``, the number of distinct records. A pair
  fits 62 bits for any ``m < 2**31`` however wide the attributes are: no hashing, no overflow.
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

ExactArray = npt.NDArray[Any]  # int64, or Python integers where int64 could overflow

_WORD = 63
"""Bits of a sort key with its payload."""

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

        Returns
        -------
        ClassSizes

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
        groupings = _groupings(lattice, ancestors, vectors[there], counts[there], records.bit_length())
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

    def highest_risk(self) -> FloatArray:
        """Prosecutor risk of the most exposed record, ``1 / min f``, at every node; 0 for a table without rows.

        The prosecutor knows that the person is in the table (El Emam and Dankar, JAMIA 15(5), 2008). The journalist's
        ``1 / min F`` takes ``F``, the rows of the same class in a population, which this table does not know.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
            Probability in [0, 1].
        """
        return np.divide(1.0, self.smallest, out=np.zeros(len(self.smallest)), where=self.smallest > 0)

    def mean_risk(self) -> FloatArray:
        """Prosecutor risk averaged over records, ``(1/N) Σ_records 1/f = classes / N``; 0 for a table without rows.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
            Probability in [0, 1].
        """
        return self.classes / max(self.records, 1)

    def average_class_size(self, k: int = 1) -> FloatArray:
        """``C_avg = N / (classes · k)`` at every node; 0 for a table without rows.

        Normalized average equivalence class size (LeFevre, DeWitt and Ramakrishnan, Mondrian, ICDE 2006); for a node
        that is k-anonymous it is at least 1, and 1 is the best.

        Parameters
        ----------
        k : int
            At least 1.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
        """
        if k < 1:
            raise InputError(f"k must be at least 1. Got {k}.")
        return np.divide(self.records / k, self.classes, out=np.zeros(len(self.classes)), where=self.classes > 0)

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


@dataclass(frozen=True, eq=False)
class _Level:
    """Suffixes whose first attribute is generalized to one level, numbered in the order of (next suffix, node).

    Attributes
    ----------
    up : ndarray of int32, shape (n_below,)
        Number of each suffix of the level below; monotone.
    turned : ndarray of int32, shape (n,)
        Rank of each suffix in the order of (node, next suffix).
    node, rest : ndarrays of int32, shape (n,)
        By that rank: the node, by a dense number, and the next suffix.
    """

    up: IntArray
    turned: IntArray
    node: IntArray
    rest: IntArray


@dataclass(frozen=True, eq=False)
class _Stage:
    """One attribute of the walk.

    Attributes
    ----------
    levels : tuple of _Level
    stride : int
        What one level adds to the number of a node of the lattice.
    bits : int
        Of the number of a suffix that starts with this attribute.
    """

    levels: tuple[_Level, ...]
    stride: int
    bits: int


def _groupings(
    lattice: Lattice, ancestors: Sequence[IntArray], vectors: IntArray, counts: LongArray, count_bits: int
) -> Iterator[tuple[int, LongArray]]:
    """Yield each node once, with the sizes of its classes in no particular order."""
    present = [np.flatnonzero(np.bincount(vectors[:, i], minlength=len(a))) for i, a in enumerate(ancestors)]
    order = sorted(range(len(ancestors)), key=lambda i: (ancestors[i].shape[1], len(present[i])))
    suffix, n_suffixes = np.zeros(len(vectors), dtype=np.int64), 1
    stages: list[_Stage] = []
    for i in reversed(order):
        value_of, node = _nested(ancestors[i], present[i], i)
        different, suffix = np.unique(suffix * len(node) + value_of[vectors[:, i]], return_inverse=True)
        rest, value = np.divmod(different, len(node))
        n_suffixes = len(different)
        levels = tuple(_levels(rest, node, value, last=not stages))
        stages.append(_Stage(levels, int(lattice.strides[i]), _bits(n_suffixes)))
    stages.reverse()
    sizes = np.zeros(n_suffixes, dtype=np.int64)
    np.add.at(sizes, suffix, counts)
    yield from _walk(stages, np.arange(n_suffixes), 1, sizes, count_bits, 0)


def _walk(
    stages: Sequence[_Stage], keys: LongArray, n_prefixes: int, sizes: LongArray, count_bits: int, number: int
) -> Iterator[tuple[int, LongArray]]:
    """Go through the levels of the first stage, and at each through those of the others.

    Parameters
    ----------
    stages : sequence of _Stage
    keys : ndarray of int64, shape (n,)
        Classes, ascending: a prefix, and in the last ``bits`` of the first stage the number of a suffix.
    n_prefixes : int
        Prefixes are below this.
    sizes : ndarray of int64, shape (n,)
        Rows of each class.
    count_bits : int
        Of the number of rows in all.
    number : int
        What the attributes before the first stage add to the number of a node.
    """
    if not stages:
        yield number, sizes
        return
    stage, others = stages[0], stages[1:]
    mask = (1 << stage.bits) - 1
    for x, level in enumerate(stage.levels):
        if x:
            suffix = keys & mask
            keys = keys - suffix + level.up[suffix]
            start = np.flatnonzero(_differs(keys))
            keys, sizes = keys[start], np.add.reduceat(sizes, start)
        here = number + x * stage.stride
        if not others:
            yield here, sizes
            continue
        suffix = keys & mask
        turned = keys - suffix + level.turned[suffix]
        turned, turned_sizes = _sorted(turned, sizes, _bits(n_prefixes) + stage.bits, count_bits)
        rank = turned & mask
        prefix = np.cumsum(_differs(turned >> stage.bits) | _differs(level.node[rank])) - 1
        turned = (prefix << others[0].bits) + level.rest[rank]
        yield from _walk(others, turned, int(prefix[-1]) + 1, turned_sizes, count_bits, here)


def _sorted(keys: LongArray, sizes: LongArray, key_bits: int, count_bits: int) -> tuple[LongArray, LongArray]:
    """Sort classes by key; all keys are different."""
    if key_bits + count_bits <= _WORD:
        # numbers alone sort several times faster than positions
        packed = np.sort((keys << count_bits) | sizes)
        return packed >> count_bits, packed & ((1 << count_bits) - 1)
    order = np.argsort(keys)
    return keys[order], sizes[order]


def _nested(ancestor: IntArray, present: LongArray, attribute: int) -> tuple[LongArray, LongArray]:
    """Order the values that occur so that every node is an interval at every level.

    Returns
    -------
    value_of : ndarray of int64, shape (n_leaves + 1,)
        Number of each code that occurs, in the new order; codes of one node at level 0 are one value.
    node : ndarray of int64, shape (n_values, h + 1)
        Node of each value at each level, by a dense number; each column is non-decreasing.
    """
    nodes = ancestor[present]
    order = np.lexsort(nodes.T)  # by the highest level first
    nodes = nodes[order]
    node = np.zeros(nodes.shape, dtype=np.int64)
    np.cumsum(nodes[1:] != nodes[:-1], axis=0, out=node[1:])
    for x in range(1, nodes.shape[1]):
        _, first, member = np.unique(nodes[:, x - 1], return_index=True, return_inverse=True)
        if (nodes[first[member], x] != nodes[:, x]).any():
            raise InputError(
                f"Codes of attribute {attribute} that share a node at level {x - 1} must share one at level {x}."
            )
    value_of = np.zeros(len(ancestor), dtype=np.int64)
    value_of[present[order]] = node[:, 0]
    return value_of, node[_differs(node[:, 0])]


def _levels(rest: LongArray, node: LongArray, value: LongArray, *, last: bool) -> Iterator[_Level]:
    """Number the suffixes of one attribute at every level.

    Parameters
    ----------
    rest : ndarray of int64, shape (n,)
        Next suffix of each suffix, ascending.
    node : ndarray of int64, shape (n_values, h + 1)
        See :func:`_nested`.
    value : ndarray of int64, shape (n,)
        Value of each suffix; ascending among those of one next suffix.
    last : bool
        Whether no attribute follows, so that the other order is not needed.
    """
    n_rest = int(rest[-1]) + 1
    for x in range(node.shape[1]):
        at = node[value, x]
        new = _differs(rest) | _differs(at)
        up = (np.cumsum(new) - 1).astype(np.int32)
        rest, value, at = rest[new], value[new], at[new]
        order = np.empty(0, dtype=np.int64) if last else np.argsort(at * n_rest + rest)
        turned = np.empty(len(order), dtype=np.int32)
        turned[order] = np.arange(len(order), dtype=np.int32)
        yield _Level(up, turned, at[order].astype(np.int32), rest[order].astype(np.int32))


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
    start = np.flatnonzero(_differs(large))
    runs = np.diff(start, append=len(large))
    owner = np.concatenate([cells // _SMALL, large[start] >> count_bits])
    size = np.concatenate([cells % _SMALL, large[start] & ((1 << count_bits) - 1)])
    number = np.concatenate([table[cells], runs])
    order = np.argsort(owner, kind="stable")  # small sizes stay before large ones
    return owner[order], size[order], number[order]


def _differs(values: npt.NDArray[np.integer[Any]]) -> BoolArray:
    """Whether a value differs from the one before it; the first one does."""
    result = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=result[1:])
    return result


def _bits(n: int) -> int:
    """Bits of a number below ``n``."""
    return max(n - 1, 0).bit_length()
