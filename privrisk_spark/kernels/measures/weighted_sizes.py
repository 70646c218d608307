"""Identity disclosure in a population whose classes are estimated by sums of sampling weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.measures.thresholds import (
    refuse_below,
    refuse_shapes,
    refuse_thresholds,
    refuse_weights,
)
from privrisk_spark.kernels.numeric.fold import refuse_other
from privrisk_spark.kernels.numeric.moments import Moments


@dataclass(frozen=True)
class WeightTally:
    """Classes with an estimate of their size in the population from sampling weights, ``F̂ = Σ w``.

    It stands beside the histogram of ``f``: requirements on the data are about ``f``, and this says what they mean in
    the population. The data are a part of the population, so a class has at least ``f`` members: the risk of a record
    is taken as ``1 / max(F̂, f)``.

    Attributes
    ----------
    thresholds : tuple of float
        Probabilities; the same in every part.
    people : Moments
        ``Σ w`` over the records of every class: their sum is the estimated population.
    estimates : Moments
        ``F̂`` of every class, the same unless classes overlap: the least one is the estimated k-map.
    risks : Moments
        ``1 / max(F̂, f)`` of every record: the mean is the marketer's risk, the greatest the journalist's.
    above : tuple of int
        Records whose risk is above each threshold; compared as in :class:`Above`.
    below_classes, below_records : int
        Classes with ``F̂ < f``, whose weights are below 1 on the average, and their records.
    """

    thresholds: tuple[float, ...]
    people: Moments
    estimates: Moments
    risks: Moments
    above: tuple[int, ...]
    below_classes: int
    below_records: int

    @classmethod
    def of(
        cls,
        sizes: LongArray,
        weights: FloatArray,
        thresholds: Sequence[float] = (),
        *,
        records: LongArray | None = None,
        people: FloatArray | None = None,
    ) -> WeightTally:
        """Measure the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes, at least 1, in sum at most 2^36.
        weights : ndarray of float64, shape (n_classes,)
            ``Σ w`` of each, not negative; +inf allowed. One number a class, summed by the caller in a way that does not
            depend on partitioning.
        thresholds : sequence of float
            Probabilities in [0, 1].
        records : ndarray of int64, shape (n_classes,), optional
            Records of each class itself, where sizes and weights are of all that it is compatible with.
        people : ndarray of float64, shape (n_classes,), optional
            Sum of their weights.

        Raises
        ------
        InputError
            If the shapes differ, a size is below 1, a weight is negative or NaN, or a threshold is not a probability.
        """
        refuse_thresholds(thresholds)
        refuse_shapes(sizes, weights)
        refuse_below(sizes, 1, "Sizes of equivalence classes")
        refuse_weights(weights)
        records, people = sizes if records is None else records, weights if people is None else people
        refuse_shapes(records, people)
        risks = 1 / np.maximum(weights, sizes)
        below = weights < sizes
        ones = np.ones(len(sizes), dtype=np.int64)
        return cls(
            thresholds=tuple(float(threshold) for threshold in thresholds),
            people=Moments.of(people, ones),
            estimates=Moments.of(weights, ones),
            risks=Moments.of(risks, records),
            above=tuple(int(records[risks > threshold].sum()) for threshold in thresholds),
            below_classes=int(np.count_nonzero(below)),
            below_records=int(records[below].sum()),
        )

    @classmethod
    def empty(cls, thresholds: Sequence[float] = ()) -> WeightTally:
        """Tally of no class; parameters and errors as for :meth:`of`."""
        return cls.of(np.zeros(0, dtype=np.int64), np.zeros(0), thresholds)

    def plus(self, other: WeightTally) -> WeightTally:
        """Tally of both together.

        Raises
        ------
        InternalError
            If the thresholds differ.
        """
        refuse_other(self.thresholds, other.thresholds, "Tallies of the same thresholds")
        return WeightTally(
            thresholds=self.thresholds,
            people=self.people.plus(other.people),
            estimates=self.estimates.plus(other.estimates),
            risks=self.risks.plus(other.risks),
            above=tuple(a + b for a, b in zip(self.above, other.above, strict=True)),
            below_classes=self.below_classes + other.below_classes,
            below_records=self.below_records + other.below_records,
        )

    @property
    def population(self) -> float:
        """``Σ w`` over the table, correctly rounded."""
        return self.people.sum

    @property
    def least_population(self) -> float | None:
        """``min F̂``, the estimated k-map; None without classes."""
        return self.estimates.least if self.estimates.n else None

    @property
    def journalist_max(self) -> float | None:
        """Greatest ``1 / max(F̂, f)``; None without classes."""
        return self.risks.most if self.risks.n else None

    @property
    def marketer(self) -> float:
        """Mean of ``1 / max(F̂, f)`` over records; 0 without records."""
        return self.risks.mean
