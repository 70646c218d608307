"""Choquet's integral of differences by a monotone measure of sets of attributes, and what a measure says (T20).

A set of attributes is an integer whose bit ``i`` says whether attribute ``i`` is in it. The integral weighs what the
greatest differences have in common by the measure of the attributes they are in: sets that count for more than their
attributes alone, or for less.

References
----------
G. Choquet, "Theory of capacities" (1954). L. S. Shapley, "A value for n-person games" (1953). M. Grabisch, "k-order
additive discrete fuzzy measures and their representation" (1997): Möbius transform and interaction. D. Abril,
G. Navarro-Arribas, V. Torra, "Choquet integral for record linkage" (2012).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb, log2

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import TOLERANCE, sorted_columns
from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["MOST_ATTRIBUTES", "ChoquetIntegral", "shapley"]

MOST_ATTRIBUTES = 8
"""With more, a measure has too many values to be learned."""

_NUMBER = 2**3 - 1
"""Bits in which the number of an attribute is held while differences are sorted."""


def _attributes(measure: FloatArray) -> int:
    """Attributes a measure is of.

    Raises
    ------
    InputError
        If its length is no power of two.
    """
    n = int(log2(max(len(measure), 1)))
    if measure.ndim != 1 or len(measure) != 2**n or n < 1:
        raise InputError("Record linkage: a measure needs a value for every set of attributes, 2^n in all.")
    return n


def _sizes(n: int) -> LongArray:
    """Attributes in each set, shape (2^n,)."""
    return np.array([int(one).bit_count() for one in range(2**n)], dtype=np.int64)


def shapley(measure: FloatArray) -> FloatArray:
    """Mean gain by each attribute over all orders in which the attributes may join (Shapley 1953).

    Parameters
    ----------
    measure : ndarray of float64, shape (2^n,)

    Returns
    -------
    ndarray of float64, shape (n,)
        Of sum ``μ(all) - μ(∅)``; at least 0 if the measure is monotone.
    """
    n = _attributes(measure)
    sets, sizes = np.arange(2**n), _sizes(n)
    found = np.zeros(n)
    for i in range(n):
        without = sets[sets >> i & 1 == 0]
        orders = np.array([1.0 / (n * comb(n - 1, size)) for size in range(n)])
        found[i] = (orders[sizes[without]] * (measure[without | 1 << i] - measure[without])).sum()
    return found


@dataclass(frozen=True, eq=False)
class ChoquetIntegral:
    """``Σ_i (d_(i) - d_(i-1)) μ({(i), …, (n)})`` over the differences in ascending order.

    Attributes
    ----------
    measure : ndarray of float64, shape (2^n,)
        By sets as integers: 0 of none, 1 of all, and never less of a set than of one inside it; ``n`` at most 8.

    Raises
    ------
    InputError
        If it is no such measure.
    """

    aggregate: str = field(init=False, default="choquet")
    measure: FloatArray
    monotone = True

    def __post_init__(self) -> None:
        """Refuse what is no monotone measure."""
        n = _attributes(self.measure)
        if n > MOST_ATTRIBUTES:
            raise InputError(
                f"Record linkage: a measure of sets of attributes takes at most {MOST_ATTRIBUTES} attributes. Got {n}."
            )
        if self.measure[0] != 0 or abs(float(self.measure[-1]) - 1.0) > TOLERANCE:
            raise InputError("Record linkage: a measure must be 0 of no attribute and 1 of all.")
        sets = np.arange(2**n)
        if any(not (self.measure[sets | 1 << i] >= self.measure - TOLERANCE).all() for i in range(n)):
            raise InputError("Record linkage: a measure must not be less of a set than of one inside it.")

    @property
    def n(self) -> int:
        """Attributes."""
        return _attributes(self.measure)

    def distance(self, differences: FloatArray) -> FloatArray:
        """As :meth:`~privrisk_spark.extensions.attack.kernels.learned.aggregates.Aggregate.distance`."""
        ordered, sets = ascending(np.moveaxis(differences, -1, 0))
        total = self.measure[-1] * ordered[0]
        for i in range(1, self.n):
            total += (ordered[i] - ordered[i - 1]) * self.measure[sets[i]]
        return np.asarray(total)

    def weights_of_columns(self) -> FloatArray:
        """Return Shapley's values."""
        found = np.maximum(shapley(self.measure), 0.0)
        return np.asarray(found / found.sum())


def ascending(columns: FloatArray) -> tuple[FloatArray, LongArray]:
    """Differences in ascending order, and of each the set of those that are not before it.

    Parameters
    ----------
    columns : ndarray of float64, shape (n, ...)
        At least 0; ``n`` at most 8. The last three bits of each are lost.

    Returns
    -------
    ordered : ndarray of float64, shape (n, ...)
    sets : ndarray of int64, shape (n, ...)
        As integers; the first is the set of all.
    """
    # Floats that are at least 0 are ordered as their bits are; the last ones make room for the attribute's number.
    keys = np.ascontiguousarray(columns + 0.0).view(np.int64) & ~_NUMBER
    keys |= np.arange(len(columns)).reshape(-1, *[1] * (columns.ndim - 1))
    keys = sorted_columns(keys, ascending=True)
    sets = np.left_shift(1, keys & _NUMBER)
    for i in range(len(columns) - 2, -1, -1):
        sets[i] |= sets[i + 1]
    return (keys & ~_NUMBER).view(np.float64), sets
