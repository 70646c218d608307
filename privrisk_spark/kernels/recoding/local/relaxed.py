"""Relaxed Mondrian: a region is halved through the rows of one value (LeFevre, DeWitt and Ramakrishnan, ICDE 2006).

All attributes are taken to be ordered. A region is cut in the attribute in which it is widest, the share of the values
from its least to its greatest, of those with more than one node in it; ties go to the first. Its rows are put in the
lexicographic order of their places, that of the attribute first, and half of them, rounded down, come to the left. So
every region of at least ``2 k`` rows is cut unless its values have one node each, and the rows of one record may come
into several groups.

Groups overlap: a reader who finds somebody in one class may find the person in another that is published as an
ancestor, too. What is counted here are the rows that are published alike, of whatever groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.recoding.local.order import first_regions, leaf_orders
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["mondrian_relaxed"]


def mondrian_relaxed(measured: Measured, k: int, also: Sequence[Condition] = ()) -> Partition:
    """Recode a table by relaxed Mondrian.

    Parameters
    ----------
    k : int
        Rows of every class, at least 1.
    also : sequence of Condition
        None.

    Raises
    ------
    InputError
        If k is below 1, or there are further conditions.
    """
    asked, table, orders = Asked(k, tuple(also)), measured.table, leaf_orders(measured)
    if asked.also:
        raise InputError(
            f"Relaxed Mondrian cannot promise '{asked.also[0].name}': it divides the rows of a record and does not "
            "know which sensitive values they have. Strict Mondrian can."
        )
    places = [order.place[table.vectors[:, i]] for i, order in enumerate(orders)]
    record: LongArray = np.lexsort(places[::-1]) if places else np.arange(len(table.vectors))
    # From here on records are known by their rank, so that ranks compare as places do.
    places = [of[record] for of in places]
    region, _ = first_regions(orders, places)
    rank = np.argsort(region, kind="stable")
    region, rows = region[rank], table.counts[record[rank]]
    found: list[tuple[LongArray, LongArray, LongArray]] = [(rank[:0], rows[:0], region[:0])]
    n_groups = 0
    while len(rank):
        start, number = _runs(region)
        total = np.add.reduceat(rows, start)
        width = np.full((len(orders), len(start)), -1.0)
        for i, order in enumerate(orders):
            of = places[i][rank]
            low, high = np.minimum.reduceat(of, start), np.maximum.reduceat(of, start)
            width[i] = np.where(order.common(low, high) > 0, order.extent(low, high), -1.0)
        final = ((total < 2 * k) | (width.max(axis=0) < 0))[number]
        found.append((rank[final], rows[final], n_groups + number[final]))
        n_groups += len(start)
        attribute, half = np.argmax(width, axis=0), total // 2
        rank, rows, number = rank[~final], rows[~final], number[~final]
        place = np.zeros(len(rank), dtype=np.int64)
        for i, of in enumerate(places):
            cut = np.flatnonzero(attribute[number] == i)
            place[cut] = of[rank[cut]]
        in_order = np.lexsort((rank, place, number))
        rank, rows, number = rank[in_order], rows[in_order], number[in_order]
        start, run = _runs(number)
        before = np.cumsum(rows) - rows
        left = np.clip(half[number] - (before - before[start][run]), 0, rows)
        sides = [(rank, left, 2 * number), (rank, rows - left, 2 * number + 1)]
        rank, rows, region = (np.concatenate(both) for both in zip(*sides, strict=True))
        there = np.flatnonzero(rows > 0)
        there = there[np.argsort(region[there], kind="stable")]
        rank, rows, region = rank[there], rows[there], region[there]
    rank, rows, group = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return published(measured, asked, group, record=record[rank], rows=rows, orders=orders)


def _runs(number: LongArray) -> tuple[LongArray, LongArray]:
    """Where each run of equal numbers starts, and in which run each is; numbers are at least 0."""
    new = np.diff(number, prepend=-1) != 0
    return np.flatnonzero(new), np.cumsum(new) - 1
