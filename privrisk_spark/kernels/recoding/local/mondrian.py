"""Strict Mondrian: regions, cut again and again while all parts meet what is asked (LeFevre et al., ICDE 2006).

A region is a set of records. Each is cut in the attribute in which it is widest, of those in which it can be cut; ties
go to the first. It can be cut in one where its values have more than one node, if all parts meet what is asked and
there are at least two. Regions that cannot be cut are the groups that are published.

*By children.* The parts are the children of the lowest common ancestor of the region's values, and its width is the
share of the leaves below that. Children that do not meet what is asked alone are one part together; if that does not
meet it either, the smallest of the others joins it, of equal ones the first. (LeFevre et al. cut into all children or
not at all; a single rare value would then keep an attribute at its root.)

*At the median.* Where values are ordered, the region is cut in two between two values in leaf order: where the smaller
part is largest, of equal places the first. Its width is the share of the values from its least to its greatest.

Only nodes can be published. A part that has the ancestor of the whole tells the reader nothing until it is cut again,
and groups that look alike in the end are joined; cuts by children lose less, as a rule, than cuts at the median. The
groups never divide the rows of a record, and do not depend on the order of the records.

All regions of a depth are cut at once: :func:`cuts` needs no more than their histograms, which are sums over records,
and :func:`assign` gives every record its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_keys
from privrisk_spark.kernels.recoding.full_domain import NodeClasses, united
from privrisk_spark.kernels.recoding.holders import Held
from privrisk_spark.kernels.recoding.local.order import LeafOrder, first_regions, leaf_orders, one_each
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, joined, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["Cuts", "Depth", "Histogram", "assign", "cuts", "depths", "histogram", "mondrian", "strict_groups"]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Rows of every region by their values of one attribute; sums of those of parts of the table.

    Attributes
    ----------
    region : ndarray of int64, shape (n,)
        Ascending; every region has an entry.
    place : ndarray of int32, shape (n,)
        Of the value in leaf order, ascending inside a region.
    rows : ndarray of int64, shape (n,)
        At least 1.
    held : tuple of SensitiveRuns or Holders
        Sensitive values of the rows of each entry.
    """

    region: LongArray
    place: IntArray
    rows: LongArray
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, eq=False)
class Cuts:
    """How the regions of a depth are cut.

    Attributes
    ----------
    attribute : ndarray of int64, shape (n_regions,)
        In which each is cut; -1 if it cannot be.
    key : tuple of k ndarrays of int64, ascending
        Of each attribute ``region * n_places + place``, for the regions that are cut in it.
    part : tuple of k ndarrays of int64
        Region of the next depth that each of these comes to.
    n_parts : int
        Regions of the next depth.
    """

    attribute: LongArray
    key: tuple[LongArray, ...]
    part: tuple[LongArray, ...]
    n_parts: int


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts the regions of a depth would have by a cut in one attribute.

    Attributes
    ----------
    width : ndarray of float64, shape (n_regions,)
        -1 where it cannot be cut.
    part : ndarray of int64, shape (n,)
        Part of each entry of the histogram, numbered from 0 in each region.
    n_parts : ndarray of int64, shape (n_regions,)
    """

    width: FloatArray
    part: LongArray
    n_parts: LongArray


def mondrian(
    measured: Measured, k: int, also: Sequence[Condition] = (), *, ordered: Sequence[bool] | None = None
) -> Partition:
    """Recode a table by strict Mondrian.

    Parameters
    ----------
    k : int
        Rows of every class, at least 1.
    also : sequence of Condition
        What every class must meet besides.
    ordered : sequence of k bool, optional
        Attributes that are cut at the median; the others are cut by the children of a node, as all are by default.

    Raises
    ------
    InputError
        If k is below 1, or there is not one ``ordered`` per attribute.
    """
    asked, table, orders = Asked(k, tuple(also)), measured.table, leaf_orders(measured)
    ordered = one_each(ordered, len(orders))
    places = [order.place[table.vectors[:, i]] for i, order in enumerate(orders)]
    region, _ = first_regions(orders, places)
    held = table.held if asked.also else ()
    group = strict_groups(orders, places, table.counts, held, region, asked, ordered)
    return published(measured, asked, group, orders=orders)


def strict_groups(
    orders: Sequence[LeafOrder],
    places: Sequence[IntArray],
    rows: LongArray,
    held: tuple[Held, ...],
    region: LongArray,
    asked: Asked,
    ordered: Sequence[bool],
) -> LongArray:
    """Cut regions until none can be.

    Parameters
    ----------
    orders : sequence of k LeafOrder
    places : sequence of k ndarrays of int32, shape (m,)
        Of the records' values.
    rows : ndarray of int64, shape (m,)
        Of the records.
    held : tuple of SensitiveRuns or Holders
        Sensitive values of these, if anything is asked about them.
    region : ndarray of int64, shape (m,)
        In which each record begins, numbered from 0 without gaps.
    ordered : sequence of k bool

    Returns
    -------
    ndarray of int64, shape (m,)
        Group of each record, at least 0.
    """
    group = region.copy()
    for depth in depths(orders, places, rows, held, region, asked, ordered):
        group[depth.at] = depth.part[depth.to]
    return group


@dataclass(frozen=True, eq=False)
class Depth:
    """The regions of a depth and their parts, each of which has a name of its own among those of all depths.

    Attributes
    ----------
    region : ndarray of int64, shape (n_regions,)
        Names.
    part : ndarray of int64, shape (n_parts,)
        Names.
    cuts : Cuts
        How the regions are cut.
    at : ndarray of int64, shape (n,)
        Records whose regions are.
    to : ndarray of int64, shape (n,)
        Part that each of these comes to.
    """

    region: LongArray
    part: LongArray
    cuts: Cuts
    at: LongArray
    to: LongArray


def depths(
    orders: Sequence[LeafOrder],
    places: Sequence[IntArray],
    rows: LongArray,
    held: tuple[Held, ...],
    region: LongArray,
    asked: Asked,
    ordered: Sequence[bool],
) -> Iterator[Depth]:
    """Cut regions until none can be, all of a depth at once; parameters as of :func:`strict_groups`.

    Regions begin with the names they are given, and parts are named after them, depth by depth.
    """
    names = np.arange(int(region.max(initial=-1)) + 1)
    at, n_names = np.arange(len(region)), len(names)
    while len(at):
        histograms = [
            histogram(region, of, len(order.place), rows, held) for of, order in zip(places, orders, strict=True)
        ]
        found = cuts(orders, histograms, len(names), asked, ordered)
        final = (found.attribute < 0)[region]
        to = assign(found, orders, places, region)[~final]
        at, rows = at[~final], rows[~final]
        places, held = [of[~final] for of in places], tuple(runs.where(~final) for runs in held)
        parts = n_names + np.arange(found.n_parts)
        n_names += found.n_parts
        yield Depth(names, parts, found, at, to)
        # A region that cannot be cut in two is not looked at again.
        small = np.bincount(to, weights=rows, minlength=len(parts)) < 2 * asked.k
        region, names = to, parts
        if small.any():
            left = ~small[to]
            region, names = (np.cumsum(~small) - 1)[to[left]], parts[~small]
            at, rows = at[left], rows[left]
            places, held = [of[left] for of in places], tuple(runs.where(left) for runs in held)


_SPREAD = 8
"""Keys of ``n`` rows are counted in a table while they are below ``8 n``."""


def histogram(
    region: LongArray, places: IntArray, n_places: int, rows: LongArray, held: tuple[Held, ...] = ()
) -> Histogram:
    """Count rows by region and place.

    Parameters
    ----------
    region : ndarray of int64, shape (n,)
    places : ndarray of int32, shape (n,)
    rows : ndarray of int64, shape (n,)
    held : tuple of SensitiveRuns or Holders
        Sensitive values of these rows.
    """
    key = region * n_places + places
    bound = int(key.max(initial=-1)) + 1
    if not held and bound <= max(_SPREAD * len(key), 2**16):
        by_key = np.bincount(key, weights=rows)
        there = np.flatnonzero(by_key)
        return Histogram(there // n_places, (there % n_places).astype(np.int32), by_key[there].astype(np.int64))
    first, entry = distinct_keys(key, bound)
    total = np.bincount(entry, weights=rows, minlength=len(first)).astype(np.int64)
    return Histogram(region[first], places[first], total, tuple(united(runs, entry, len(first)) for runs in held))


def cuts(
    orders: Sequence[LeafOrder],
    histograms: Sequence[Histogram],
    n_regions: int,
    asked: Asked,
    ordered: Sequence[bool],
) -> Cuts:
    """Decide how the regions of a depth are cut.

    Parameters
    ----------
    orders : sequence of k LeafOrder
    histograms : sequence of k Histogram
        Of the same regions.
    n_regions : int
        Numbered from 0.
    ordered : sequence of k bool
    """
    width = np.full((len(orders), n_regions), -1.0)
    parts = []
    for i, (order, histogram) in enumerate(zip(orders, histograms, strict=True)):
        found = _parts(order, histogram, n_regions, asked, at_median=ordered[i])
        parts.append(found)
        width[i] = found.width
    attribute = np.argmax(width, axis=0)  # the first of the widest
    attribute[np.take_along_axis(width, attribute[None, :], axis=0)[0] < 0] = -1
    n_parts = np.zeros(n_regions, dtype=np.int64)
    for i, found in enumerate(parts):
        n_parts[attribute == i] = found.n_parts[attribute == i]
    base = np.cumsum(n_parts) - n_parts
    keys, of = [], []
    for i, (order, histogram, found) in enumerate(zip(orders, histograms, parts, strict=True)):
        cut = attribute[histogram.region] == i
        keys.append(histogram.region[cut] * len(order.place) + histogram.place[cut])
        of.append(base[histogram.region[cut]] + found.part[cut])
    return Cuts(attribute, tuple(keys), tuple(of), int(n_parts.sum()))


def assign(found: Cuts, orders: Sequence[LeafOrder], places: Sequence[IntArray], region: LongArray) -> LongArray:
    """Return the region of the next depth that records come to; -1 where theirs is not cut.

    Parameters
    ----------
    orders : sequence of k LeafOrder
    places : sequence of k ndarrays of int32, shape (m,)
        Of the records' values.
    region : ndarray of int64, shape (m,)
        Of the records.
    """
    attribute = found.attribute[region]
    result = np.full(len(region), -1, dtype=np.int64)
    for i, (order, key, part) in enumerate(zip(orders, found.key, found.part, strict=True)):
        cut = np.flatnonzero(attribute == i)
        result[cut] = part[np.searchsorted(key, region[cut] * len(order.place) + places[i][cut])]
    return result


def _parts(order: LeafOrder, histogram: Histogram, n_regions: int, asked: Asked, *, at_median: bool) -> _Parts:
    """Parts of every region by a cut in one attribute."""
    region, place = histogram.region, histogram.place
    starts = np.flatnonzero(np.diff(region, prepend=-1))
    low, high = place[starts], place[np.append(starts[1:], len(place)) - 1]
    level = order.common(low, high)
    # Blocks are values or children: entries of one node below the common ancestor, which lie together.
    below = np.zeros(len(place), dtype=np.int64) if at_median else np.maximum(level - 1, 0)[region]
    node = order.nodes[place, below]
    new = np.append(True, (np.diff(region) != 0) | (np.diff(node) != 0))[: len(place)]
    block, owner = np.cumsum(new) - 1, region[new]
    blocks = joined(histogram.rows, histogram.held, block, int(np.count_nonzero(new)))
    part = _halves(owner, blocks.rows, n_regions) if at_median else _children(owner, blocks, n_regions, asked)
    # A part of a region is what has its number; numbers of a region have no gaps.
    n_parts = np.zeros(n_regions, dtype=np.int64)
    np.maximum.at(n_parts, owner, part + 1)
    base = np.cumsum(n_parts) - n_parts
    meets = asked.meets(joined(blocks.rows, blocks.held, base[owner] + part, int(n_parts.sum())))
    fails = np.bincount(np.repeat(np.arange(n_regions), n_parts)[~meets], minlength=n_regions) > 0
    can = (level > 0) & (n_parts > 1) & ~fails
    width = order.extent(low, high) if at_median else order.leaves[low, np.minimum(level, order.height)] / order.domain
    return _Parts(np.where(can, width, -1.0), part[block], n_parts)


def _halves(owner: LongArray, rows: LongArray, n_regions: int) -> LongArray:
    """Part of each value by a cut in two where the smaller part is largest, or the whole where there is one value."""
    total = np.bincount(owner, weights=rows, minlength=n_regions).astype(np.int64)
    up_to = np.cumsum(rows) - (np.cumsum(total) - total)[owner]
    smaller = np.minimum(up_to, total[owner] - up_to)  # 0 after the last value of a region
    best = np.zeros(n_regions, dtype=np.int64)
    np.maximum.at(best, owner, smaller)
    # The first of the best: all values up to it are on the left.
    is_best = np.flatnonzero(smaller == best[owner])
    _, first = np.unique(owner[is_best], return_index=True)
    return (np.arange(len(owner)) > is_best[first][owner]).astype(np.int64)


def _children(owner: LongArray, children: NodeClasses, n_regions: int, asked: Asked) -> LongArray:
    """Part of each child: its own if it meets what is asked, with all that do not otherwise."""
    alone = asked.meets(children)
    n_alone = np.bincount(owner[alone], minlength=n_regions)
    before: LongArray = np.cumsum(alone) - alone
    part = before - (np.cumsum(n_alone) - n_alone)[owner]
    part[~alone] = n_alone[owner[~alone]]
    if alone.all():
        return part
    rest = _rest(children, owner, ~alone, n_regions)
    met = np.ones(n_regions, dtype=np.bool_)
    met[np.unique(owner[~alone])] = asked.meets(rest)
    lacking = ~met & (n_alone > 0)
    if lacking.any():
        of = np.flatnonzero(alone & lacking[owner])
        by_rows = of[np.lexsort((of, children.rows[of], owner[of]))]
        first = np.append(True, np.diff(owner[by_rows]) != 0)
        joins = np.zeros(n_regions, dtype=np.int64)
        joins[owner[by_rows[first]]] = part[by_rows[first]]
        with_it = ~alone & lacking[owner]
        part[with_it] = joins[owner[with_it]]
    return part


def _rest(children: NodeClasses, owner: LongArray, those: BoolArray, n_regions: int) -> NodeClasses:
    """Some of the children, joined by region; regions without any are left out."""
    there = np.zeros(n_regions, dtype=np.bool_)
    there[owner[those]] = True
    number = (np.cumsum(there) - 1)[owner[those]]
    held = tuple(runs.where(those) for runs in children.held)
    return joined(children.rows[those], held, number, int(there.sum()))
