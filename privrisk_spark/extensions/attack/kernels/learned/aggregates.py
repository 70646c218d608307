"""Distances of records as aggregates of the differences of their attributes (T20).

Each takes differences that are at least 0 (those of numbers are squares, see
:mod:`~privrisk_spark.extensions.attack.kernels.differences`), is 0 where all of them are, and grows in proportion
with them.
Every family has the mean in it, and all but the ordered one every weighted mean. Terms are added column by column, so
that a distance has the same bits whatever it is computed beside.

References
----------
R. R. Yager, "On ordered weighted averaging aggregation operators in multicriteria decisionmaking" (1988).
D. Abril, V. Torra, G. Navarro-Arribas, "Supervised learning using a symmetric bilinear form for record linkage" (2015).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray

__all__ = ["Aggregate", "Bilinear", "OrderedWeightedAverage", "WeightedMean", "onto_simplex", "sorted_columns"]

TOLERANCE = 1e-9
"""By which sums of weights and eigenvalues may miss what they must be."""


class Aggregate(Protocol):
    """A distance of records, of n attributes."""

    @property
    def n(self) -> int:
        """Attributes."""

    @property
    def monotone(self) -> bool:
        """Whether no distance falls where a difference grows."""

    def distance(self, differences: FloatArray) -> FloatArray:
        """Aggregate differences.

        Parameters
        ----------
        differences : ndarray of float64, shape (..., n)
            At least 0 and finite. Quickest with the attributes first in memory.

        Returns
        -------
        ndarray of float64, shape (...)
            At least 0.
        """

    def weights_of_columns(self) -> FloatArray:
        """How much each attribute counts; ndarray of float64, shape (n,), at least 0 and of sum 1."""


def _checked(weights: FloatArray, what: str) -> None:
    fit = weights.ndim == 1 and len(weights) and np.isfinite(weights).all() and (weights >= 0).all()
    if not fit or abs(float(weights.sum()) - 1.0) > TOLERANCE:
        raise InputError(f"Record linkage: {what} must be at least 0, and their sum 1.")


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """``Σ p_i d_i``; of squared standardized differences, the square of a weighted Euclidean distance (T20).

    Attributes
    ----------
    weights : ndarray of float64, shape (n,)
        At least 0 and of sum 1.

    Raises
    ------
    InputError
        If the weights are none.
    """

    aggregate: str = field(init=False, default="weighted_mean")
    weights: FloatArray
    monotone = True

    def __post_init__(self) -> None:
        """Refuse weights that are no mean."""
        _checked(self.weights, "weights")

    @property
    def n(self) -> int:
        """Attributes."""
        return len(self.weights)

    def distance(self, differences: FloatArray) -> FloatArray:
        """As :meth:`Aggregate.distance`."""
        return _weighted(np.moveaxis(differences, -1, 0), self.weights)

    def weights_of_columns(self) -> FloatArray:
        """Return the weights themselves."""
        return self.weights.copy()


@dataclass(frozen=True, eq=False)
class OrderedWeightedAverage:
    """``Σ w_i d_(i)`` over the differences in descending order: weight on the greatest or the least of them (OWA).

    Attributes
    ----------
    weights : ndarray of float64, shape (n,)
        At least 0 and of sum 1; the first is that of the greatest difference.

    Raises
    ------
    InputError
        If the weights are none.
    """

    aggregate: str = field(init=False, default="ordered_weighted_average")
    weights: FloatArray
    monotone = True

    def __post_init__(self) -> None:
        """Refuse weights that are no mean."""
        _checked(self.weights, "weights of ordered differences")

    @property
    def n(self) -> int:
        """Attributes."""
        return len(self.weights)

    def distance(self, differences: FloatArray) -> FloatArray:
        """As :meth:`Aggregate.distance`."""
        return _weighted(sorted_columns(np.moveaxis(differences, -1, 0)), self.weights)

    def weights_of_columns(self) -> FloatArray:
        """Return the same for all: it does not matter in which attribute a difference is."""
        return np.full(self.n, 1.0 / self.n)


@dataclass(frozen=True, eq=False)
class Bilinear:
    """``uᵀ Q u`` of the roots ``u_i = √d_i``, a generalization of Mahalanobis' distance (Abril et al. 2015).

    Differences of numbers are squares, so that their roots are absolute differences; with a diagonal Q it is the
    weighted mean of the differences. Off the diagonal are interactions: a negative number says that differences in both
    attributes weigh less than each alone. The published form takes signed differences of numbers; a difference here
    has no sign, as levels have none.

    Attributes
    ----------
    matrix : ndarray of float64, shape (n, n)
        Symmetric, positive semi-definite and of trace 1.

    Raises
    ------
    InputError
        If it is not.
    """

    aggregate: str = field(init=False, default="bilinear")
    matrix: FloatArray

    def __post_init__(self) -> None:
        """Refuse a matrix that is no square of a distance."""
        square = self.matrix.ndim == 2 and self.matrix.shape[0] == self.matrix.shape[1] > 0
        if not square or not np.isfinite(self.matrix).all() or (self.matrix != self.matrix.T).any():
            raise InputError("Record linkage: the matrix of a bilinear form must be square and symmetric.")
        if abs(float(np.trace(self.matrix)) - 1.0) > TOLERANCE:
            raise InputError("Record linkage: the matrix of a bilinear form must have the trace 1.")
        if float(np.linalg.eigvalsh(self.matrix)[0]) < -TOLERANCE:
            raise InputError("Record linkage: the matrix of a bilinear form must be positive semi-definite.")

    @classmethod
    def projected(cls, matrix: FloatArray) -> Bilinear:
        """Return the form nearest to any square matrix.

        Of all positive semi-definite matrices of trace 1 it is the nearest in the sum of squares (*proved*: that norm
        does not change under rotations, so that the eigenvalues are projected onto the simplex).

        Parameters
        ----------
        matrix : ndarray of float64, shape (n, n)
            Its symmetric part is taken.
        """
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        found = (vectors * onto_simplex(values)) @ vectors.T
        found = (found + found.T) / 2
        return cls(found / np.trace(found))

    @property
    def n(self) -> int:
        """Attributes."""
        return len(self.matrix)

    @property
    def monotone(self) -> bool:
        """Whether no interaction is negative."""
        return bool((self.matrix >= 0).all())

    def distance(self, differences: FloatArray) -> FloatArray:
        """As :meth:`Aggregate.distance`."""
        columns = np.moveaxis(differences, -1, 0)
        roots = np.sqrt(columns)
        total = np.zeros(columns.shape[1:])
        for i in range(self.n):
            total += self.matrix[i, i] * columns[i]
            for j in range(i):
                if self.matrix[i, j]:
                    total += (2 * self.matrix[i, j] * roots[i]) * roots[j]
        return np.asarray(np.maximum(total, 0.0))

    def weights_of_columns(self) -> FloatArray:
        """Return the diagonal: what a difference counts in one attribute alone."""
        return np.diagonal(self.matrix).copy()


def onto_simplex(values: FloatArray) -> FloatArray:
    """Nearest point, in the sum of squares, whose coordinates are at least 0 and have the sum 1 (*proved*, Held 1974).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    """
    falling = np.sort(values)[::-1]
    above = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > above)[-1])
    found = np.maximum(values - above[last], 0.0)
    return np.asarray(found / found.sum())


def sorted_columns(columns: npt.NDArray[Any], *, ascending: bool = False) -> npt.NDArray[Any]:
    """Sort each position of arrays one under the other, by Batcher's network of exchanges.

    It is many times as quick as sorting short rows one by one.

    Parameters
    ----------
    columns : ndarray, shape (n, ...)
    """
    found: list[npt.NDArray[Any]] = list(columns)
    for low, high in _exchanges(len(found)):
        lesser, greater = np.minimum(found[low], found[high]), np.maximum(found[low], found[high])
        found[low], found[high] = (lesser, greater) if ascending else (greater, lesser)
    return np.stack(found)


def _exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Pairs of positions that a merge exchange compares (Knuth, The Art of Computer Programming 3, 5.2.2, M)."""
    top = 1 << max(n - 1, 0).bit_length() >> 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(n - d) if i & p == r)
            if q == p:
                break
            q, r, d = q >> 1, p, q - p
        p >>= 1


def _weighted(columns: FloatArray | Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Sum of weighted columns, from the first on."""
    total = np.zeros(np.shape(columns[0]))
    for column, weight in zip(columns, weights.tolist(), strict=True):
        if weight:
            total += weight * column
    return np.asarray(total)
