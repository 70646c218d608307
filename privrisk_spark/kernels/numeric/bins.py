"""How many there are in each bin: of a histogram, or of the levels of a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.fold import refuse_other


@dataclass(frozen=True)
class BinCounts:
    """Integers by bin, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    numbers : tuple of int
        Of any size.
    """

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, numbers: LongArray) -> BinCounts:
        """Counts of a part.

        Parameters
        ----------
        numbers : ndarray of int64, shape (n,)
            ``n`` is the same in every part.
        """
        return cls(tuple(numbers.tolist()))

    @classmethod
    def empty(cls, n: int) -> BinCounts:
        """Zeros in so many bins."""
        return cls.of(np.zeros(n, dtype=np.int64))

    def plus(self, other: BinCounts) -> BinCounts:
        """Counts of both together.

        Raises
        ------
        InternalError
            If they have different numbers of bins.
        """
        refuse_other(len(self.numbers), len(other.numbers), "Counts of the same bins")
        return BinCounts(tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))
