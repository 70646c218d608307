"""A walk over the lattice that groups records at every node: each node's class sizes, from those of a finer one.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.lattice.lattice import Lattice

_WORD = 63
"""Bits of a sort key with its payload."""


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
    stride : int
        What one level adds to the number of a node of the lattice.
    bits : int
        Of the number of a suffix that starts with this attribute.
    """

    levels: tuple[_Level, ...]
    stride: int
    bits: int


def class_sizes(
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
            start = np.flatnonzero(differs(keys))
            keys, sizes = keys[start], np.add.reduceat(sizes, start)
        here = number + x * stage.stride
        if not others:
            yield here, sizes
            continue
        suffix = keys & mask
        turned = keys - suffix + level.turned[suffix]
        turned, turned_sizes = _sorted(turned, sizes, _bits(n_prefixes) + stage.bits, count_bits)
        rank = turned & mask
        prefix = np.cumsum(differs(turned >> stage.bits) | differs(level.node[rank])) - 1
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
    return value_of, node[differs(node[:, 0])]


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
        new = differs(rest) | differs(at)
        up = (np.cumsum(new) - 1).astype(np.int32)
        rest, value, at = rest[new], value[new], at[new]
        order = np.empty(0, dtype=np.int64) if last else np.argsort(at * n_rest + rest)
        turned = np.empty(len(order), dtype=np.int32)
        turned[order] = np.arange(len(order), dtype=np.int32)
        yield _Level(up, turned, at[order].astype(np.int32), rest[order].astype(np.int32))


def differs(values: npt.NDArray[np.integer[Any]]) -> BoolArray:
    """Whether a value differs from the one before it; the first one does."""
    result = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=result[1:])
    return result


def _bits(n: int) -> int:
    """Bits of a number below ``n``."""
    return max(n - 1, 0).bit_length()
