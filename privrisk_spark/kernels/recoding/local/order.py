"""The leaf order of hierarchies: an order of the codes in which every node of every level is an interval.

Depth first, siblings by their least code. With it the lowest common ancestor of any set of values is that of its least
and greatest place, so that all that is needed of a set of records is an interval of places per attribute.

For a tree whose leaves lie at different depths, levels are to be counted from the root
(:func:`~privrisk_spark.kernels.lattice.levels.counted_from_root`): a leaf is its own node at every level below its
parent's. Otherwise a node lies at one level for one leaf and at another for its neighbour, and the least level at which
both have the same node may be far above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.metrics import Measured

__all__ = ["LeafOrder", "first_regions", "leaf_orders", "one_each"]


_SIDE_BITS = 31


@dataclass(frozen=True, eq=False)
class LeafOrder:
    """Codes of an attribute in leaf order.

    Attributes
    ----------
    place : ndarray of int32, shape (n_codes,)
        Of each code.
    nodes : ndarray of int32, shape (n_codes, h + 1)
        Node at each place and level, by the first place that is in it.
    leaves : ndarray of int64, shape (n_codes, h + 1)
        Leaves below these.
    domain : int
        Leaves of the attribute.
    """

    place: IntArray
    nodes: IntArray
    leaves: LongArray
    domain: int

    @classmethod
    def of(cls, ancestors: IntArray, leaves: LongArray, domain: int) -> LeafOrder:
        """Order the codes; parameters as of :class:`~privrisk_spark.kernels.recoding.metrics.Measured`."""
        least = np.empty(ancestors.shape, dtype=np.int32)
        for level, column in enumerate(ancestors.T):
            _, first, node = np.unique(column, return_index=True, return_inverse=True)
            least[:, level] = first[node.reshape(-1)]
        order = np.lexsort((np.arange(len(ancestors)), *least.T))
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        # The least code of a node is the first of its codes, whatever lies between.
        return cls(place, place[least[order]], leaves[order], domain)

    @cached_property
    def inner(self) -> FloatArray:
        """Share of the leaves below each node, 0 for one leaf; ndarray of float64, shape (n_codes, h + 1)."""
        share: FloatArray = np.where(self.leaves == 1, 0, self.leaves) / self.domain
        return share

    @property
    def height(self) -> int:
        """The highest level."""
        return int(self.nodes.shape[1]) - 1

    @cached_property
    def side(self) -> tuple[LongArray, int]:
        """Coordinates in leaf order that halve nodes, not leaves: every node is all of a cell of some dyadic grid.

        Returns
        -------
        coordinate : ndarray of int64, shape (n_codes,)
            Of each place: the number of the node among its siblings, level by level from the top, each in as many bits
            as the most siblings of its level need; the place itself where these are more than 31.
        bits : int
            The coordinates are below ``2**bits``.
        """
        coordinate, bits = np.zeros(len(self.place), dtype=np.int64), 0
        above = np.zeros(len(self.place), dtype=np.int32)
        for node in self.nodes.T[::-1]:
            new, first = node != np.roll(node, 1), above != np.roll(above, 1)
            new[:1] = first[:1] = True
            number = np.cumsum(new)
            among = number - number[first][np.cumsum(first) - 1]
            here = int(among.max(initial=0)).bit_length()
            coordinate, bits, above = (coordinate << here) | among, bits + here, node
            if bits > _SIDE_BITS:
                return np.arange(len(self.place)), max((len(self.place) - 1).bit_length(), 0)
        return coordinate, bits

    def common(self, low: IntArray, high: IntArray) -> LongArray:
        """Return the least level at which two places have one node; above the height if they have none.

        Parameters
        ----------
        low, high : ndarrays of int32, shape (n,)
            Places; the answer is that of all between them, too.
        """
        # Places that share a node share all above it: the levels that differ are those below.
        levels: LongArray = np.count_nonzero(self.nodes[low] != self.nodes[high], axis=1).astype(np.int64)
        return levels

    def extent(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the share of the values that lie from one place to another."""
        share: FloatArray = (high.astype(np.int64) - low + 1) / len(self.place)
        return share


def leaf_orders(measured: Measured) -> tuple[LeafOrder, ...]:
    """Order the codes of every attribute."""
    given = zip(measured.table.ancestors, measured.leaves, measured.domains, strict=True)
    return tuple(LeafOrder.of(ancestors, leaves, domain) for ancestors, leaves, domain in given)


def first_regions(orders: Sequence[LeafOrder], places: Sequence[IntArray]) -> tuple[LongArray, int]:
    """Return the region every record begins in, and how many there are: one where every attribute has a root.

    Parameters
    ----------
    orders : sequence of k LeafOrder
    places : sequence of k ndarrays of int32, shape (m,)
        Of the records' values.
    """
    tops = [order.nodes[of, -1] for order, of in zip(orders, places, strict=True)]
    if not tops:
        return np.zeros(0, dtype=np.int64), 0
    first, region = distinct_rows(tops)
    return region, len(first)


def one_each(ordered: Sequence[bool] | None, k: int) -> tuple[bool, ...]:
    """Return which of k attributes are ordered, none by default.

    Raises
    ------
    InputError
        If there is not one answer per attribute.
    """
    given = (False,) * k if ordered is None else tuple(ordered)
    if len(given) != k:
        raise InputError(f"There must be one 'ordered' per attribute. Got {len(given)} for {k}.")
    return given
