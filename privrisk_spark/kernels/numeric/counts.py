"""How many there are at each position: bins of a histogram, levels of a hierarchy, columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.fold import refuse_other


@dataclass(frozen=True)
class Counts:
    """Integers by position, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    numbers : tuple of int
        Of any size.
    """

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, numbers: LongArray) -> Counts:
        """Counts of a part.

        Parameters
        ----------
        numbers : ndarray of int64, shape (n,)
            ``n`` is the same in every part.
        """
        return cls(tuple(numbers.tolist()))

    @classmethod
    def empty(cls, n: int) -> Counts:
        """Zeros at so many positions."""
        return cls.of(np.zeros(n, dtype=np.int64))

    def plus(self, other: Counts) -> Counts:
        """Counts of both together.

        Raises
        ------
        InternalError
            If they have different numbers of positions.
        """
        refuse_other(len(self.numbers), len(other.numbers), "Counts at the same positions")
        return Counts(tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))

    def to_dict(self) -> dict[str, list[int]]:
        """JSON-safe form."""
        return {"numbers": list(self.numbers)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Counts:
        """Inverse of :meth:`to_dict`."""
        return cls(tuple(int(number) for number in given["numbers"]))
