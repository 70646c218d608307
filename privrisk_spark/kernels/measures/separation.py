"""How well columns tell records apart: distinction and separation.

A set of columns is a quasi-identifier as far as it tells records apart. Of ``n`` records whose values in the columns
form classes of ``f`` records each:

* *distinction*: different values over records, ``classes / n``;
* *separation*: share of the pairs of records that differ, ``1 - Σ f (f - 1) / (n (n - 1))``.

Source: Motwani and Xu, "Efficient algorithms for masking and finding quasi-identifiers", SDM workshop on practical
privacy-preserving data mining, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.measures.thresholds import refuse_below, refuse_shapes
from privrisk_spark.kernels.numeric.exact_sums import exact_dot, exact_total


@dataclass(frozen=True)
class Separation:
    """Records and pairs of records that columns tell apart.

    Attributes
    ----------
    classes : int
        Different values of the columns.
    alike : int
        Ordered pairs of two records that agree, ``Σ f (f - 1)``.
    """

    records: int
    classes: int
    alike: int

    @classmethod
    def of(cls, sizes: LongArray, times: LongArray) -> Separation:
        """Count classes.

        Parameters
        ----------
        sizes : ndarray of int64, shape (m,)
            Records of each class, at least 1.
        times : ndarray of int64, shape (m,)
            Classes of that size, at least 0.

        Raises
        ------
        InputError
            If the shapes differ, or a number is out of range.
        """
        refuse_shapes(sizes, times)
        refuse_below(sizes, 1, "Sizes of classes")
        records = exact_dot(sizes, times)
        alike = sum(size * (size - 1) * number for size, number in zip(sizes.tolist(), times.tolist(), strict=True))
        return cls(records, exact_total(times), alike)

    @property
    def distinction(self) -> float:
        """Different values over records, correctly rounded; in [0, 1], 0 without records."""
        return float(Fraction(self.classes, self.records)) if self.records else 0.0

    @property
    def separation(self) -> float:
        """Share of the pairs of records that differ, correctly rounded; in [0, 1], 0 of fewer than two records."""
        pairs = self.records * (self.records - 1)
        return float(1 - Fraction(self.alike, pairs)) if pairs else 0.0
