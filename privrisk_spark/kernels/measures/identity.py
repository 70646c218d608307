"""Identity disclosure from the sizes of equivalence classes: the prosecutor's risk, k, uniqueness.

Records that share their quasi-identifiers form an equivalence class. ``f`` is the size of a class in the data, ``F``
its size in the population the data were drawn from. They count whatever unit the caller counts: rows, or distinct
persons where one person may have several rows. Both must count the same unit; "record" below means one such unit.

* The *prosecutor* knows that the target is in the data. A record is found with probability ``1/f``.
* The *journalist* does not, and needs the population. A record is found with probability ``1/F``: see
  :mod:`~privrisk_spark.kernels.measures.population_sizes`, or, where ``F`` is estimated from sampling weights,
  :mod:`~privrisk_spark.kernels.measures.weighted_sizes`.
* The *marketer* links every record and counts the hits: ``(1/n) Σ f/F``.

Source: El Emam and Dankar, "Protecting Privacy Using k-Anonymity", JAMIA 15(5), 2008; Dankar and El Emam, "A method for
evaluating marketer re-identification risk", PAIS 2010; k-map: Sweeney, "Computational Disclosure Control", MIT, 2001.

All that is kept of a table is how many classes there are of each size ``f``, or of each pair ``(f, F)``. ``s``
different sizes add up to at least ``1 + 2 + … + s``, so ``n`` records have at most ``√(2n)`` of them, and pairs are of
the order of ``(n N)^(1/3)``: these histograms stay small however many classes there are. They are integers, so a
histogram put together from parts is the same in any order, and so is every measure computed from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.measures.thresholds import Above, refuse_below, refuse_thresholds
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.moments import risk_histogram

SIZE_BINS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 1000)
"""Least class size of each bin of :attr:`SampleRisk.by_size`; the last is open."""


@dataclass(frozen=True)
class SizeBin:
    """Classes of ``least`` to ``most`` records, and their records.

    Attributes
    ----------
    most : int or None
        None for the last bin, which has no end.
    """

    least: int
    most: int | None
    classes: int
    records: int


def records_by_size(sizes: LongArray, records: LongArray) -> tuple[tuple[int, int | None, int], ...]:
    """Put records into the bins of :data:`SIZE_BINS`.

    Parameters
    ----------
    sizes : ndarray of int64, shape (m,)
        Records a record hides among, at least 1.
    records : ndarray of int64, shape (m,)
        Records with each.

    Returns
    -------
    tuple of (int, int or None, int)
        Least and greatest size of each bin, None for the last, which has no end, and its records.
    """
    of_bin = np.zeros(len(SIZE_BINS), dtype=np.int64)
    np.add.at(of_bin, np.searchsorted(SIZE_BINS, sizes, side="right") - 1, records)
    ends = [following - 1 for following in SIZE_BINS[1:]]
    return tuple(zip(SIZE_BINS, [*ends, None], of_bin.tolist(), strict=True))


@dataclass(frozen=True)
class SampleRisk:
    """Measures that need the data alone.

    Attributes
    ----------
    uniques : int
        Classes of one record.
    k : int
        ``min f``: the data are k-anonymous for this ``k`` and no greater one. 0 without records.
    prosecutor_max : float
        ``1 / min f``; 0 without records.
    prosecutor_mean : float
        ``(1/n) Σ_records 1/f = classes / n``; 0 without records.
    above : tuple of Above
        By prosecutor risk ``1/f``.
    by_risk : tuple of int
        Records by ``1/f``, in the bins of :func:`~privrisk_spark.kernels.numeric.moments.risk_bins`.
    """

    records: int
    classes: int
    uniques: int
    k: int
    prosecutor_max: float
    prosecutor_mean: float
    above: tuple[Above, ...]
    by_size: tuple[SizeBin, ...]
    by_risk: tuple[int, ...]


@dataclass(frozen=True)
class SizeHistogram:
    """How many classes have each size, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    sizes : tuple of int
        Different values of ``f``, ascending, at least 1.
    numbers : tuple of int
        Classes of each size, at least 1.
    """

    sizes: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: LongArray) -> SizeHistogram:
        """Count the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes, at least 1; in any order.

        Raises
        ------
        InputError
            If a size is below 1.
        """
        refuse_below(sizes, 1, "Sizes of equivalence classes")
        first, member = distinct_rows([sizes])
        return cls(tuple(sizes[first].tolist()), tuple(np.bincount(member, minlength=len(first)).tolist()))

    @classmethod
    def empty(cls) -> SizeHistogram:
        """Histogram of no class."""
        return cls()

    @classmethod
    def of_counts(cls, counts: Mapping[int, int]) -> SizeHistogram:
        """Histogram with so many classes, at least 1, of each size."""
        sizes = sorted(counts)
        return cls(tuple(sizes), tuple(counts[size] for size in sizes))

    def plus(self, other: SizeHistogram) -> SizeHistogram:
        """Histogram of both together."""
        counts = Counter(dict(zip(self.sizes, self.numbers, strict=True)))
        counts.update(dict(zip(other.sizes, other.numbers, strict=True)))
        return self.of_counts(counts)

    @property
    def records(self) -> int:
        """``n = Σ f``."""
        return sum(size * number for size, number in zip(self.sizes, self.numbers, strict=True))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return sum(self.numbers)

    @property
    def candidates(self) -> tuple[LongArray, LongArray]:
        """Sizes, ascending, and the records in classes of each."""
        sizes = np.array(self.sizes, dtype=np.int64)
        return sizes, sizes * np.array(self.numbers, dtype=np.int64)

    def classes_of(self, size: int) -> int:
        """Classes of exactly ``size`` records: ``n_1`` for the sample uniques, ``n_2`` for the pairs."""
        return dict(zip(self.sizes, self.numbers, strict=True)).get(size, 0)

    def risk(self, thresholds: Sequence[float] = ()) -> SampleRisk:
        """Compute the measures that need the data alone.

        Parameters
        ----------
        thresholds : sequence of float
            Probabilities in [0, 1].

        Raises
        ------
        InputError
            If a threshold is not a probability.
        """
        refuse_thresholds(thresholds)
        records, classes = self.records, self.classes
        rows = [size * number for size, number in zip(self.sizes, self.numbers, strict=True)]
        bins = []
        for least, following in zip(SIZE_BINS, (*SIZE_BINS[1:], None), strict=True):
            inside = [i for i, f in enumerate(self.sizes) if f >= least and (following is None or f < following)]
            bins.append(
                SizeBin(
                    least,
                    None if following is None else following - 1,
                    sum(self.numbers[i] for i in inside),
                    sum(rows[i] for i in inside),
                )
            )
        by_risk = risk_histogram(np.array([1 / f for f in self.sizes]), np.array(rows, dtype=np.int64))
        return SampleRisk(
            records=records,
            classes=classes,
            uniques=self.classes_of(1),
            k=self.sizes[0] if self.sizes else 0,
            prosecutor_max=1 / self.sizes[0] if self.sizes else 0.0,
            prosecutor_mean=classes / records if records else 0.0,
            above=tuple(Above.of_sizes(t, zip(self.sizes, rows, strict=True), records) for t in thresholds),
            by_size=tuple(bins),
            by_risk=tuple(by_risk.tolist()),
        )
