"""Groups of a balanced and nested grid, after BangA (Anjum and Raschia, IDEAS 2013 and Computers 6(1), 2017).

A BANG file (Freeston, SIGMOD 1987) divides space into the cells of ever finer grids; a region is a cell without the
regions that are nested in it. Here the grid lines are those of the hierarchies: a cell is a node of each attribute, at
one level vector for the cells of a grid. From the finest grid to the coarsest, the attribute is coarsened in which the
shares of leaves of the next nodes have the least mean over the rows; of equal ones the first. Cells are taken from
the finest grid on, the densest first: one whose rows, without those of the regions in it, meet what is asked becomes a
region, and its rows are a group. So no region could be two regions of the grid, and outliers do not keep what
is dense from being one.

What is left at the end comes to the nearest groups, those whose rows and its own lose the least more together
(``ncp``), of equal ones the first. Where ``k`` rows are all that is asked, these are fewer, and each record comes to
the group nearest to it. Otherwise all of it comes to the nearest, or the 2, 4, 8, … nearest, until what is joined meets
what is asked.

BangA halves dimensions by turns, and joins dense regions along a dendrogram; what is kept of it is the nested grid,
density as the order, and the joining of what is below ``k`` to neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.local.order import LeafOrder, first_regions, leaf_orders
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, joined, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["bang", "grids"]


def grids(orders: Sequence[LeafOrder], places: Sequence[IntArray], rows: LongArray) -> Iterator[tuple[int, ...]]:
    """Yield the level vectors of the grids, from the finest to the coarsest.

    Parameters
    ----------
    orders : sequence of k LeafOrder
    places : sequence of k ndarrays of int32, shape (m,)
        Of the records' values.
    rows : ndarray of int64, shape (m,)
        Of the records.
    """
    shares = []
    for order, of in zip(orders, places, strict=True):
        by_place = np.bincount(of, weights=rows, minlength=len(order.place))
        shares.append(by_place @ order.leaves / order.domain)
    levels = [0] * len(orders)
    yield tuple(levels)
    while any(level < order.height for level, order in zip(levels, orders, strict=True)):
        steps = [i for i, order in enumerate(orders) if levels[i] < order.height]
        levels[min(steps, key=lambda i: shares[i][levels[i] + 1])] += 1
        yield tuple(levels)


def bang(measured: Measured, k: int, also: Sequence[Condition] = ()) -> Partition:
    """Recode a table by the regions of a nested grid.

    Parameters
    ----------
    k : int
        Rows of every class, at least 1.
    also : sequence of Condition
        What every class must meet besides.

    Raises
    ------
    InputError
        If k is below 1.
    """
    asked, table, orders = Asked(k, tuple(also)), measured.table, leaf_orders(measured)
    places = [order.place[table.vectors[:, i]] for i, order in enumerate(orders)]
    group, n_groups = np.full(len(table.vectors), -1, dtype=np.int64), 0
    region, _ = first_regions(orders, places)
    at = np.arange(len(region))
    held = table.held if asked.also else ()
    for levels in grids(orders, places, table.counts):
        if not len(at):
            break
        first, cell = distinct_rows(
            [order.nodes[of[at], level] for order, of, level in zip(orders, places, levels, strict=True)]
        )
        taken = asked.meets(joined(table.counts[at], held, cell, len(first)))
        regions = taken[cell]
        group[at[regions]] = n_groups + (np.cumsum(taken) - 1)[cell[regions]]
        n_groups += int(np.count_nonzero(taken))
        at, held = at[~regions], tuple(runs.where(~regions) for runs in held)
    if len(at) and n_groups:
        groups = _Groups.of(orders, places, table.counts, group, region)
        join = _join_all if asked.also else _join_each
        join(measured, asked, groups, group, at, region)
    return published(measured, asked, group, orders=orders)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of records, by what is published for them.

    Attributes
    ----------
    orders : sequence of k LeafOrder
    places : sequence of k ndarrays of int32, shape (m,)
        Of the records' values.
    bounds : tuple of k pairs of ndarrays of int32, shape (n_groups,)
        Least and greatest place in each group.
    rows : ndarray of int64, shape (n_groups,)
    region : ndarray of int64, shape (n_groups,)
        Region of the values without a common root in which each is.
    """

    orders: Sequence[LeafOrder]
    places: Sequence[IntArray]
    bounds: tuple[tuple[IntArray, IntArray], ...]
    rows: LongArray
    region: LongArray

    @classmethod
    def of(
        cls,
        orders: Sequence[LeafOrder],
        places: Sequence[IntArray],
        counts: LongArray,
        group: LongArray,
        region: LongArray,
    ) -> _Groups:
        """Measure the groups of records, numbered without gaps; -1 for those that are in none."""
        by_group = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
        start = np.flatnonzero(np.diff(group[by_group], prepend=-1))
        bounds = tuple(
            (np.minimum.reduceat(of[by_group], start), np.maximum.reduceat(of[by_group], start)) for of in places
        )
        return cls(orders, places, bounds, np.add.reduceat(counts[by_group], start), region[by_group[start]])

    def joining(self, some: LongArray, bounds: Sequence[tuple[IntArray, IntArray]], rows: LongArray) -> FloatArray:
        """What is lost more by some of the groups, each joined with something, and by that."""
        lost = np.zeros(len(some))
        for order, own, other in zip(self.orders, self.bounds, bounds, strict=True):
            low, high = own[0][some], own[1][some]
            now = order.inner[low, order.common(low, high)]
            low, high = np.minimum(low, other[0]), np.maximum(high, other[1])
            then = order.inner[low, order.common(low, high)]
            lost += then * (self.rows[some] + rows) - now * self.rows[some]
        return lost


def _join_each(
    measured: Measured, asked: Asked, groups: _Groups, group: LongArray, at: LongArray, region: LongArray
) -> None:
    """Put each of some records in the group nearest to it; of every region they have fewer than k rows."""
    del asked
    n_regions = int(region.max()) + 1
    at = at[np.argsort(region[at], kind="stable")]
    first = np.searchsorted(region[at], np.arange(n_regions))
    turn = np.arange(len(at)) - first[region[at]]
    for number in range(int(turn.max()) + 1):  # fewer than k
        record = np.full(n_regions, -1, dtype=np.int64)
        record[region[at[turn == number]]] = at[turn == number]
        some = np.flatnonzero(record[groups.region] >= 0)
        if not len(some):
            continue
        of = record[groups.region[some]]
        lost = groups.joining(some, [(places[of], places[of]) for places in groups.places], measured.table.counts[of])
        nearest = np.lexsort((some, lost, of))
        nearest = nearest[np.append(True, np.diff(of[nearest]) != 0)]
        group[of[nearest]] = some[nearest]


def _join_all(
    measured: Measured, asked: Asked, groups: _Groups, group: LongArray, at: LongArray, region: LongArray
) -> None:
    """Join the records left in a region with as many of its nearest groups as it takes."""
    n_groups, table = len(groups.rows), measured.table
    found, rest = np.unique(region[at], return_inverse=True)
    rest_of = np.full(int(region.max()) + 1, -1, dtype=np.int64)
    rest_of[found] = np.arange(len(found))
    group[at] = n_groups + rest.reshape(-1)
    left = _Groups.of(
        groups.orders, groups.places, table.counts, np.where(group >= n_groups, group - n_groups, -1), region
    )
    some = np.flatnonzero(rest_of[groups.region] >= 0)
    of = rest_of[groups.region[some]]
    lost = groups.joining(some, [(low[of], high[of]) for low, high in left.bounds], left.rows[of])
    nearest = np.lexsort((some, lost, of))
    some, of = some[nearest], of[nearest]
    rank = np.arange(len(some)) - np.searchsorted(of, of)
    most = np.bincount(of, minlength=len(found))
    classes = joined(table.counts, table.held, group, n_groups + len(found))
    number = np.arange(n_groups + len(found))
    reach = np.zeros(len(found), dtype=np.int64)
    while True:
        # Classes that are joined have the number of what was left; theirs are empty.
        number[some] = np.where(rank < reach[of], n_groups + of, some)
        there, now = np.unique(number, return_inverse=True)
        met = np.zeros(len(number), dtype=np.bool_)
        met[there] = asked.meets(joined(classes.rows, classes.held, now.reshape(-1), len(there)))
        lacks = ~met[n_groups:] & (reach < most)
        if not lacks.any():
            break
        reach[lacks] = np.maximum(2 * reach[lacks], 1)
    group[:] = number[group]
