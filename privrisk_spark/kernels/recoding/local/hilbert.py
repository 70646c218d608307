"""Groups along a Hilbert curve, of least cost (Ghinita, Karras, Kalnis and Mamoulis, VLDB 2007).

Records are put in the order of a Hilbert curve through the space of their values in leaf order. The coordinates halve
nodes and not leaves, so that the cells that the curve goes through one after the other are products of nodes (by places
themselves, the groups of the Adult table cost half as much again), and each attribute is spread over the whole side of
the cube. A group is a run of the curve of at
least ``k`` rows, records whole. It costs for each of its rows the share of the leaves below the common ancestor, 0 for
a leaf, summed over the attributes (``ncp`` of :mod:`privrisk_spark.kernels.recoding.metrics`). Dynamic programming
finds the runs that cost least: only groups that cannot be divided need a look, as the parts of a group have ancestors
no higher than its own, and of these at most ``k`` end with a given record. Of equal ones, the shorter last group.

The curve is cut in stretches of :data:`STRETCH` records or ``4 k``, whichever is more, solved side by side and each to
the optimum; fewer than ``k`` rows that would be left at the end belong to the last. Status: *proved*, that no groups
that are runs of a stretch have a smaller ``ncp``; a table of one stretch has no better runs.

Where more is asked than ``k``, a run that fails it takes in the runs that follow it, twice as many each time it fails
again, those before it at the curve's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.recoding.local.order import LeafOrder, first_regions, leaf_orders
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, joined, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["STRETCH", "curve", "hilbert"]

STRETCH = 1024

_WORD_BITS = 62


def curve(axes: Sequence[LongArray], bits: int) -> tuple[LongArray, ...]:
    """Return where points lie on a Hilbert curve.

    The method is that of Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 2004.

    Parameters
    ----------
    axes : sequence of n ndarrays of int64, shape (m,)
        Coordinates, at least 0 and below ``2**bits``.

    Returns
    -------
    tuple of ndarrays of int64, shape (m,)
        Words of which the first counts most.
    """
    at = [axis.astype(np.int64) for axis in axes]
    if not at:
        return ()
    for bit in range(bits - 1, 0, -1):
        one, below = np.int64(1 << bit), np.int64((1 << bit) - 1)
        for i, axis in enumerate(at):
            there = (axis & one) != 0
            # Invert the lower bits of the first axis, or exchange them with this one's.
            exchange = np.where(there, 0, (at[0] ^ axis) & below)
            at[0] = at[0] ^ np.where(there, below, exchange)
            if i:
                at[i] = axis ^ exchange
    for i in range(1, len(at)):
        at[i] = at[i] ^ at[i - 1]
    turn = np.zeros(len(at[0]), dtype=np.int64)
    for bit in range(bits - 1, 0, -1):
        turn ^= np.where((at[-1] >> bit) & 1, np.int64((1 << bit) - 1), 0)
    at = [axis ^ turn for axis in at]
    words, held = [np.zeros(len(turn), dtype=np.int64)], 0
    for bit in range(bits - 1, -1, -1):
        for axis in at:
            if held == _WORD_BITS:
                words.append(np.zeros(len(turn), dtype=np.int64))
                held = 0
            words[-1] = (words[-1] << 1) | ((axis >> bit) & 1)
            held += 1
    return tuple(words)


@dataclass(frozen=True, eq=False)
class _Line:
    """Records in the order of the curve, in stretches.

    Attributes
    ----------
    places : tuple of k ndarrays of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
    first : ndarray of int64, shape (m,)
        First record of the stretch each is in.
    """

    places: tuple[IntArray, ...]
    rows: LongArray
    first: LongArray


def hilbert(measured: Measured, k: int, also: Sequence[Condition] = ()) -> Partition:
    """Recode a table by runs of a Hilbert curve.

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
    region, _ = first_regions(orders, places)
    if not len(region):
        return published(measured, asked, np.zeros(len(table.vectors), dtype=np.int64), orders=orders)
    bits = max(1, *(order.side[1] for order in orders))
    # Attributes of fewer nodes are spread over the side of the cube.
    at = [order.side[0][of] << (bits - order.side[1]) for of, order in zip(places, orders, strict=True)]
    keys: list[IntArray | LongArray] = [*places[::-1], *curve(at, bits)[::-1], region]
    on_curve = np.lexsort(keys)
    region = region[on_curve]
    line = _line([of[on_curve] for of in places], table.counts[on_curve], region, k)
    run = np.cumsum(_starts(line, orders, k)) - 1
    if asked.also:
        run = _meeting(measured, asked, on_curve, run, region)
    group = np.empty(len(run), dtype=np.int64)
    group[on_curve] = run
    return published(measured, asked, group, orders=orders)


def _line(places: Sequence[IntArray], rows: LongArray, region: LongArray, k: int) -> _Line:
    """Cut the curve in stretches of at least k rows each, where a region has them."""
    record = np.arange(len(rows))
    begins = np.append(True, region[1:] != region[:-1])
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    begins |= (record - first) % max(STRETCH, 4 * k) == 0
    starts = np.flatnonzero(begins)
    few = (np.add.reduceat(rows, starts) < k) & (first[starts] != starts)
    starts = starts[~few]
    return _Line(tuple(places), rows, np.repeat(starts, np.diff(starts, append=len(rows))))


_AT_ONCE = 2**22
"""Candidates whose costs are held."""


def _starts(line: _Line, orders: Sequence[LeafOrder], k: int) -> LongArray:
    """Mark with 1 the records with which the runs of least cost begin."""
    result = np.zeros(len(line.rows), dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(line.rows)])
    stretch = np.flatnonzero(line.first == np.arange(len(line.rows)))
    result[stretch] = 1
    ends = np.append(stretch[1:], len(line.rows))
    size = max(_AT_ONCE // k, 1)
    part = 0
    while part < len(stretch):
        last = max(int(np.searchsorted(ends, stretch[part] + size, side="right")), part + 1)
        there = np.flatnonzero(before[ends[part:last]] - before[stretch[part:last]] >= 2 * k) + part
        if len(there):
            _solve(line, orders, k, before, stretch[there], ends[there], result)
        part = last
    return result


def _solve(
    line: _Line,
    orders: Sequence[LeafOrder],
    k: int,
    before: LongArray,
    starts: LongArray,
    ends: LongArray,
    result: LongArray,
) -> None:
    """Mark where the runs of some stretches begin, each by dynamic programming, all a record on at a time."""
    low, high = int(starts[0]), int(ends[-1])
    record = np.arange(low, high)
    # The shortest run that ends with a record, and the longest that cannot be divided.
    short = np.searchsorted(before, before[low + 1 : high + 1] - k, side="right") - 1
    long = np.searchsorted(before, before[np.maximum(short, 0)] - k, side="right")
    first = line.first[low:high]
    n_starts = np.where(short >= first, short - np.maximum(long, first) + 1, 0)
    cost = _costs(line, orders, before, record, short, n_starts)
    # What the runs before a record cost; it begins one.
    spent = np.full(high - low + 1, np.inf)
    spent[starts - low] = 0.0
    chosen = np.zeros(high - low, dtype=np.int64)
    lengths = ends - starts
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[by_length], lengths[by_length]
    back = np.arange(cost.shape[1])
    for step in range(int(lengths[0])):
        at = starts[: np.count_nonzero(lengths > step)] + step - low
        begin = np.maximum(short[at, None] - back - low, 0)
        total = spent[begin] + cost[at]
        best = np.argmin(total, axis=1)
        chosen[at] = short[at] - best
        goes_on = step + 1 < lengths[: len(at)]
        spent[at[goes_on] + 1] = total[np.arange(len(at)), best][goes_on]
    at = starts + lengths - 1
    while len(at):
        begin = chosen[at - low]
        result[begin] = 1
        at = begin[begin > line.first[begin]] - 1


def _costs(
    line: _Line,
    orders: Sequence[LeafOrder],
    before: LongArray,
    record: LongArray,
    short: LongArray,
    n_starts: LongArray,
) -> FloatArray:
    """Cost of the runs that end with a record, the shortest first; inf where there is none."""
    cost = np.full((len(record), max(int(n_starts.max(initial=0)), 1)), np.inf)
    at = np.flatnonzero(n_starts > 0)
    begin = short[at]
    share = np.zeros(len(at))
    bounds = []
    for places in line.places:
        # Every second of the ranges from start to start is one from a run's start to its end.
        ranges = np.column_stack([begin, record[at] + 1]).reshape(-1)
        ended = np.append(places, 0)
        bounds.append((np.minimum.reduceat(ended, ranges)[::2], np.maximum.reduceat(ended, ranges)[::2]))
    for back in range(cost.shape[1]):
        if back:
            there = n_starts[at] > back
            at, begin = at[there], begin[there] - 1
            bounds = [
                (np.minimum(low[there], places[begin]), np.maximum(high[there], places[begin]))
                for (low, high), places in zip(bounds, line.places, strict=True)
            ]
        share = np.zeros(len(at))
        for (low, high), order in zip(bounds, orders, strict=True):
            share += order.inner[low, order.common(low, high)]
        cost[at, back] = share * (before[record[at] + 1] - before[begin])
    return cost


def _meeting(measured: Measured, asked: Asked, on_curve: LongArray, run: LongArray, region: LongArray) -> LongArray:
    """Join runs until all meet what is asked, or are all of their region."""
    group = np.empty(len(run), dtype=np.int64)
    group[on_curve] = run
    table = measured.table
    classes = joined(table.counts, table.held, group, int(run[-1]) + 1)
    of_run = region[np.append(True, run[1:] != run[:-1])]
    reach = 1
    while True:
        last = np.flatnonzero(np.append(of_run[1:] != of_run[:-1], True))
        first = np.append(0, last[:-1] + 1)
        number = np.arange(len(of_run))
        fails = np.flatnonzero(~asked.meets(classes) & (first[of_run] < last[of_run]))
        if not len(fails):
            return run
        at_end = fails == last[of_run[fails]]
        begin = np.where(at_end, np.maximum(fails - reach, first[of_run[fails]]), fails)
        end = np.where(at_end, fails, np.minimum(fails + reach, last[of_run[fails]]))
        # The boundaries from the first run to the last of each range go.
        change = np.zeros(len(of_run) + 1, dtype=np.int64)
        np.add.at(change, begin + 1, 1)
        np.add.at(change, end + 1, -1)
        number = np.cumsum(np.cumsum(change[:-1]) == 0) - 1
        run, of_run, reach = number[run], of_run[np.append(True, np.diff(number) > 0)], 2 * reach
        classes = joined(classes.rows, classes.held, number, len(of_run))
