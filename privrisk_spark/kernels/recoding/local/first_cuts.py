"""The first cuts of strict Mondrian on a table in parts, of which the histograms of large regions alone are gathered.

Regions of more rows than may be brought together are cut, a depth a pass; every part of the table tallies its own rows,
at most as many numbers as there are large regions, times the values of the attributes. Once none is larger, or can be
cut, each region is cut further by itself, wherever its records are brought together. Cuts of a region depend on its own
rows alone: the groups are those of the whole table in one place, and groups of different regions that look alike are
one class of at least ``k`` rows, as each of them has these. Conditions beside ``k`` are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.mondrian import Cuts, assign, cuts, histogram, strict_groups
from privrisk_spark.kernels.recoding.local.order import LeafOrder, leaf_orders, one_each
from privrisk_spark.kernels.recoding.local.partition import Asked, published
from privrisk_spark.kernels.recoding.metrics import Measured

__all__ = ["FirstCuts"]


@dataclass(frozen=True, eq=False)
class FirstCuts:
    """Regions of the first depths.

    Attributes
    ----------
    measured : Measured
        Whose attributes they are; its records are not looked at.
    asked : Asked
        Rows alone.
    ordered : tuple of k bool
    most : int
        Rows a region may have to be left as it is.
    orders : tuple of k LeafOrder
    depths : tuple of Cuts
        Of all regions of each depth.
    large : ndarray of bool, shape (n_regions,)
        Which regions of the last depth are to be cut.
    """

    measured: Measured
    asked: Asked
    ordered: tuple[bool, ...]
    most: int
    orders: tuple[LeafOrder, ...]
    depths: tuple[Cuts, ...]
    large: BoolArray

    @classmethod
    def wanted(cls, measured: Measured, k: int, ordered: Sequence[bool] | None, most: int) -> FirstCuts:
        """Begin with the table as one region.

        Raises
        ------
        InputError
            If k is below 1, there is not one ``ordered`` per attribute, or an attribute has no root.
        """
        orders = leaf_orders(measured)
        for i, order in enumerate(orders):
            if (order.nodes[:, -1] != 0).any():
                raise InputError(f"Attribute {i} must have a root for its table to be one region at first.")
        given = one_each(ordered, len(orders))
        return cls(measured, Asked(k), given, most, orders, (), np.ones(1, dtype=np.bool_))

    @property
    def done(self) -> bool:
        """Whether no region is to be cut by another pass."""
        return not self.large.any()

    def places(self, vectors: IntArray) -> list[IntArray]:
        """Return the places of records given by their codes, ndarray of int32, shape (m, k)."""
        return [order.place[vectors[:, i]] for i, order in enumerate(self.orders)]

    def regions(self, places: Sequence[IntArray], n_records: int) -> tuple[LongArray, BoolArray]:
        """Return where records are.

        Parameters
        ----------
        places : sequence of k ndarrays of int32, shape (n_records,)

        Returns
        -------
        region : ndarray of int64, shape (n_records,)
            Of the last depth, or one that ended before, by numbers that are different.
        last : ndarray of bool, shape (n_records,)
            Whether it is of the last depth; its number there is this one less :attr:`before`.
        """
        result, at, base = np.zeros(n_records, dtype=np.int64), np.arange(n_records), 0
        region = np.zeros(n_records, dtype=np.int64)
        for found in self.depths:
            ended = found.attribute[region] < 0
            result[at[ended]] = base + region[ended]
            base += len(found.attribute)
            region = assign(found, self.orders, [of[at] for of in places], region)[~ended]
            at = at[~ended]
        result[at] = base + region
        last = np.zeros(n_records, dtype=np.bool_)
        last[at] = True
        return result, last

    @property
    def before(self) -> int:
        """Numbers of regions that are taken by depths before the last."""
        return sum(len(found.attribute) for found in self.depths)

    def tally(self, vectors: IntArray, rows: LongArray) -> tuple[LongArray, LongArray, LongArray, LongArray]:
        """Count the rows of a part of the table in large regions.

        Parameters
        ----------
        vectors : ndarray of int32, shape (m, k)
        rows : ndarray of int64, shape (m,)

        Returns
        -------
        attribute, region, place, rows : ndarrays of int64
            To be added up over the parts.
        """
        places = self.places(vectors)
        region, last = self.regions(places, len(rows))
        at = np.flatnonzero(last)
        region = region[at] - self.before
        at, region = at[self.large[region]], region[self.large[region]]
        found = [
            histogram(region, of[at], len(order.place), rows[at]) for of, order in zip(places, self.orders, strict=True)
        ]
        attribute = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
        none = np.zeros(0, dtype=np.int64)
        return (
            attribute,
            np.concatenate([none, *(one.region for one in found)]),
            np.concatenate([none, *(one.place for one in found)]),
            np.concatenate([none, *(one.rows for one in found)]),
        )

    def next(self, attribute: LongArray, region: LongArray, place: LongArray, rows: LongArray) -> FirstCuts:
        """Cut the large regions; parameters as of what :meth:`tally` returns, of all parts."""
        if not len(rows):
            return replace(self, large=np.zeros_like(self.large))
        large, number = np.flatnonzero(self.large), np.cumsum(self.large) - 1
        histograms = []
        for i, order in enumerate(self.orders):
            of = attribute == i
            histograms.append(histogram(number[region[of]], place[of].astype(np.int32), len(order.place), rows[of]))
        found = cuts(self.orders, histograms, len(large), self.asked, self.ordered)
        of_all = np.full(len(self.large), -1, dtype=np.int64)
        of_all[large] = found.attribute
        keys, total = [], np.zeros(found.n_parts)
        for i, (order, key, part) in enumerate(zip(self.orders, found.key, found.part, strict=True)):
            n_places = len(order.place)
            keys.append(large[key // n_places] * n_places + key % n_places)
            in_it = histograms[i].rows[found.attribute[histograms[i].region] == i]
            total += np.bincount(part, weights=in_it, minlength=found.n_parts)
        depth = Cuts(of_all, tuple(keys), found.part, found.n_parts)
        return replace(self, depths=(*self.depths, depth), large=total > self.most)

    def levels(self, vectors: IntArray, rows: LongArray) -> LevelArray:
        """Cut the regions further, of which all records are here, and return the levels of each record.

        Parameters
        ----------
        vectors : ndarray of int32, shape (m, k)
        rows : ndarray of int64, shape (m,)

        Returns
        -------
        ndarray of int8, shape (m, k)
        """
        places = self.places(vectors)
        _, region = np.unique(self.regions(places, len(rows))[0], return_inverse=True)
        group = strict_groups(self.orders, places, rows, (), region.reshape(-1), self.asked, self.ordered)
        here = FullDomain(self.measured.table.ancestors, vectors, rows)
        measured = replace(self.measured, table=here)
        return published(measured, self.asked, group, orders=self.orders).levels
