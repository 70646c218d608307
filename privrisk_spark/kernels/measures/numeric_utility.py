"""What masked numbers are still good for: distance of the values, and moments, correlations and eigenvalues.

With ``x`` the original and ``y`` the masked values of ``p`` columns, over the records of which both are known:

* ``IL1s`` of a column is the mean of ``|x - y| / (√2 S)``, ``S`` the standard deviation of ``x`` (Yancey, Winkler and
  Creecy, "Disclosure risk assessment in perturbative microdata protection", 2002; Mateo-Sanz, Sebé and
  Domingo-Ferrer, PSD 2004);
* the mean's shift is ``(mean y - mean x) / S``, the variance's ratio ``Var y / Var x``;
* of records of which all columns are known: the mean of ``|r_x - r_y|`` over the pairs of columns, ``r`` Pearson's
  correlation, and of ``|λ_x - λ_y|`` over the eigenvalues, from the greatest to the least, of the two matrices of
  correlations (after Domingo-Ferrer and Torra, "Disclosure control methods and information loss for microdata", 2001).

Sums are exact, in two passes: means first, then what is about them. So no partitioning changes a bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from privrisk_spark.kernels.numeric.fold import refuse_other

Means = tuple[ExactMean, ...]


def _refuse_shapes(original: FloatArray, masked: FloatArray) -> None:
    if original.ndim != 2 or original.shape != masked.shape:
        raise InputError(
            f"Original and masked numbers must have the same columns. Got {original.shape} and {masked.shape}."
        )


def _known(original: FloatArray, masked: FloatArray) -> BoolArray:
    both: BoolArray = np.isfinite(original) & np.isfinite(masked)
    return both


def _means(values: FloatArray, known: BoolArray) -> Means:
    return tuple(ExactMean.of(values[of, j], np.ones(int(of.sum()), dtype=np.int64)) for j, of in enumerate(known.T))


@dataclass(frozen=True)
class NumericMeans:
    """Means of both sides, a :mod:`~privrisk_spark.kernels.numeric.fold`: the first pass.

    Attributes
    ----------
    original, masked : tuple of p ExactMean
        Of each column, over the records of which both values are known.
    complete : tuple of 2 p ExactMean
        The same over the records of which all are known; none of a column alone.
    """

    original: Means
    masked: Means
    complete: Means

    @classmethod
    def of(cls, original: FloatArray, masked: FloatArray) -> NumericMeans:
        """Add up records.

        Parameters
        ----------
        original, masked : ndarrays of float64, shape (n, p)
            What is not finite is not known.

        Raises
        ------
        InputError
            If the shapes differ.
        """
        _refuse_shapes(original, masked)
        known = _known(original, masked)
        alone = _means(original, known), _means(masked, known)
        if original.shape[1] < 2:
            return cls(*alone, ())
        whole = np.broadcast_to(known.all(axis=1, keepdims=True), known.shape)
        return cls(*alone, (*_means(original, whole), *_means(masked, whole)))

    @classmethod
    def empty(cls, columns: int) -> NumericMeans:
        """Means of no record of so many columns."""
        none = (ExactMean.empty(),) * columns
        return cls(none, none, none * 2 if columns > 1 else ())

    def plus(self, other: NumericMeans) -> NumericMeans:
        """Means of both together.

        Raises
        ------
        InternalError
            If they have different numbers of columns.
        """
        refuse_other(len(self.original), len(other.original), "Means of so many columns")
        return NumericMeans(
            _plus(self.original, other.original), _plus(self.masked, other.masked), _plus(self.complete, other.complete)
        )


@dataclass(frozen=True)
class NumericSpread:
    """What lies about the means, a :mod:`~privrisk_spark.kernels.numeric.fold`: the second pass.

    Attributes
    ----------
    original, masked, distance : tuple of p ExactMean
        Squared deviations of each side, and ``|x - y|``, over the records of which both values are known.
    products : tuple of p (p + 1) ExactMean
        Products of deviations of the pairs of columns ``i <= j``, of the original then of the masked values, over the
        records of which all are known; none of a column alone.
    """

    original: Means
    masked: Means
    distance: Means
    products: Means

    @classmethod
    def of(cls, original: FloatArray, masked: FloatArray, means: NumericMeans) -> NumericSpread:
        """Add up records; parameters and errors as for :meth:`NumericMeans.of`, and the means of all records."""
        _refuse_shapes(original, masked)
        known = _known(original, masked)
        x, y = np.where(known, original, 0.0), np.where(known, masked, 0.0)
        about_x = (x - np.array([one.mean for one in means.original])) ** 2
        about_y = (y - np.array([one.mean for one in means.masked])) ** 2
        alone, p = (_means(about_x, known), _means(about_y, known), _means(np.abs(x - y), known)), original.shape[1]
        if p < 2:
            return cls(*alone, ())
        whole = known.all(axis=1)
        of_complete = np.array([one.mean for one in means.complete])
        sides = (original[whole] - of_complete[:p], masked[whole] - of_complete[p:])
        once = np.ones(int(whole.sum()), dtype=np.int64)
        products = tuple(
            ExactMean.of(side[:, i] * side[:, j], once) for side in sides for i in range(p) for j in range(i, p)
        )
        return cls(*alone, products)

    @classmethod
    def empty(cls, columns: int) -> NumericSpread:
        """What lies about the means of no record of so many columns."""
        none = (ExactMean.empty(),) * columns
        return cls(none, none, none, (ExactMean.empty(),) * (columns * (columns + 1) if columns > 1 else 0))

    def plus(self, other: NumericSpread) -> NumericSpread:
        """Sums of both together.

        Raises
        ------
        InternalError
            If they have different numbers of columns.
        """
        refuse_other(len(self.original), len(other.original), "Spreads of so many columns")
        names = ("original", "masked", "distance", "products")
        return NumericSpread(*(_plus(getattr(self, name), getattr(other, name)) for name in names))

    def correlations(self) -> tuple[FloatArray, FloatArray] | None:
        """Matrices of correlations of both sides, float64 (p, p); None of one column, or if one does not vary."""
        if not self.products:
            return None
        p, half = len(self.original), len(self.products) // 2
        matrices = []
        for products in (self.products[:half], self.products[half:]):
            covariance = np.zeros((p, p))
            covariance[np.triu_indices(p)] = [one.mean for one in products]
            deviation = np.sqrt(np.diag(covariance))
            if not (deviation > 0).all():
                return None
            upper = covariance / np.outer(deviation, deviation)
            matrix = np.triu(upper, 1)
            matrices.append(np.clip(matrix + matrix.T + np.eye(p), -1.0, 1.0))
        return matrices[0], matrices[1]


@dataclass(frozen=True)
class ColumnUtility:
    """What became of a masked column; None where the original does not vary, or no record is known."""

    il1s: float | None
    mean_shift: float | None
    variance_ratio: float | None


def column_utility(means: NumericMeans, spread: NumericSpread) -> tuple[ColumnUtility, ...]:
    """Return what became of each column.

    Parameters
    ----------
    spread : NumericSpread
        Of the same records, about these means.
    """
    found = []
    for j, about in enumerate(spread.original):
        n = about.weight
        variance, masked = about.exact, spread.masked[j].exact
        if not variance or n < 2:
            found.append(ColumnUtility(None, None, None))
            continue
        deviation = math.sqrt(float(variance * n / (n - 1)))
        shift = float(means.masked[j].exact - means.original[j].exact)
        found.append(
            ColumnUtility(
                spread.distance[j].mean / (math.sqrt(2) * deviation), shift / deviation, float(masked / variance)
            )
        )
    return tuple(found)


def correlation_change(spread: NumericSpread) -> float | None:
    """Mean of ``|r_x - r_y|`` over the pairs of columns; None of one column, or if one does not vary."""
    matrices = spread.correlations()
    pairs = list(combinations(range(len(spread.original)), 2))
    if matrices is None or not pairs:
        return None
    original, masked = matrices
    return math.fsum(abs(float(original[pair] - masked[pair])) for pair in pairs) / len(pairs)


def eigenvalue_change(spread: NumericSpread) -> float | None:
    """Mean of ``|λ_x - λ_y|`` of the matrices of correlations; None of one column, or if one does not vary."""
    matrices = spread.correlations()
    if matrices is None or len(spread.original) < 2:
        return None
    original, masked = (np.linalg.eigvalsh(matrix) for matrix in matrices)  # both ascend
    return float(np.abs(original - masked).mean())


def _plus(one: Sequence[ExactMean], other: Sequence[ExactMean]) -> Means:
    return tuple(a.plus(b) for a, b in zip(one, other, strict=True))
