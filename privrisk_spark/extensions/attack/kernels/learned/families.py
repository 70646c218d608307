"""What may be learned of each distance: parameters that enter linearly, and the set they are taken from.

A distance is ``φ(d) · θ`` with features ``φ`` of the differences and parameters ``θ``; so the constraints of T20's
program are linear in θ. The set of parameters is a polytope, but of the bilinear form, whose positive semi-definite
matrices are cut out by ``vᵀ Q v >= 0`` for as many vectors v as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
    onto_simplex,
    sorted_columns,
)
from privrisk_spark.extensions.attack.kernels.learned.choquet import MOST_ATTRIBUTES, ChoquetIntegral, ascending
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["Family", "Kind", "aggregate_from", "family_of"]

Kind = Literal["weighted_mean", "ordered_weighted_average", "bilinear", "choquet"]
"""Distances that can be learned."""


class Family(Protocol):
    """Distances of one kind, of n attributes."""

    @property
    def monotone(self) -> bool:
        """Whether no distance of the family falls where a difference grows."""

    def told_apart(self, columns: FloatArray) -> FloatArray:
        """What distances of the family see of differences.

        Parameters
        ----------
        columns : ndarray of float64, shape (n, ...)

        Returns
        -------
        ndarray of float64, shape (n, ...)
            Equal ones are at one distance, whatever the parameters. In a monotone family, of two where all of one are
            at least those of the other the first is never nearer.
        """

    def features(self, columns: FloatArray) -> FloatArray:
        """Features; ndarray of float64, shape (r, f).

        Parameters
        ----------
        columns : ndarray of float64, shape (n, r)
            As :meth:`told_apart` returns them.
        """

    def least_gap(self, others: FloatArray, own: FloatArray) -> FloatArray:
        """Bound from below what a distance of the family can be of one vector less than of another.

        Parameters
        ----------
        others, own : ndarray of float64, shape (n, r)
            As :meth:`told_apart` returns them.

        Returns
        -------
        ndarray of float64, shape (r,)
        """

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Least and greatest value of each parameter, shape (f,)."""

    def rows(self) -> tuple[Any, FloatArray, FloatArray]:
        """Sparse matrix A of shape (c, f), and the least and greatest value of ``A θ``, shape (c,)."""

    def cuts(self, parameters: FloatArray) -> FloatArray:
        """Return rows ``a`` with ``a · θ < 0`` that every distance of the family has at least 0; shape (c, f)."""

    def aggregate(self, parameters: FloatArray) -> Aggregate:
        """Distance of parameters, which are first brought into their set where rounding or missing cuts left them."""


def family_of(kind: Kind, n: int) -> Family:
    """Return the family of a kind.

    Parameters
    ----------
    kind : {"weighted_mean", "ordered_weighted_average", "bilinear", "choquet"}
    n : int
        Attributes.

    Raises
    ------
    InputError
        If a measure has too many attributes.
    """
    if kind == "choquet":
        if n > MOST_ATTRIBUTES:
            raise InputError(
                f"attack.methods: a measure of sets of columns can be learned of at most {MOST_ATTRIBUTES} columns. "
                f"Got {n}; leave 'choquet' out, or let the intruder know fewer."
            )
        return ChoquetFamily(n)
    return BilinearFamily(n) if kind == "bilinear" else WeightsFamily(n, ordered=kind == "ordered_weighted_average")


def aggregate_from(given: Mapping[str, Any]) -> Aggregate:
    """Read an aggregate that JSON holds.

    Raises
    ------
    InputError
        If it is none.
    """
    of: dict[str, type[Aggregate]] = {
        "weighted_mean": WeightedMean,
        "ordered_weighted_average": OrderedWeightedAverage,
        "bilinear": Bilinear,
        "choquet": ChoquetIntegral,
    }
    if given.get("aggregate") not in of:
        raise InputError(f"aggregate: must be one of {', '.join(of)}. Got {given.get('aggregate')!r}.")
    return from_json(of[given["aggregate"]], given)


@dataclass(frozen=True)
class WeightsFamily:
    """Weighted means, and ordered ones: weights on the simplex.

    Attributes
    ----------
    ordered : bool
        Whether differences are weighed in descending order.
    """

    n: int
    ordered: bool
    monotone = True

    def told_apart(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.told_apart`."""
        return sorted_columns(columns) if self.ordered else columns

    def features(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.features`."""
        return np.ascontiguousarray(columns.T)

    def least_gap(self, others: FloatArray, own: FloatArray) -> FloatArray:
        """As :meth:`Family.least_gap`."""
        return np.asarray((others - own).min(axis=0))

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """As :meth:`Family.limits`."""
        return np.zeros(self.n), np.ones(self.n)

    def rows(self) -> tuple[Any, FloatArray, FloatArray]:
        """As :meth:`Family.rows`."""
        return scipy.sparse.csr_array(np.ones((1, self.n))), np.ones(1), np.ones(1)

    def cuts(self, parameters: FloatArray) -> FloatArray:
        """As :meth:`Family.cuts`."""
        return np.zeros((0, len(parameters)))

    def aggregate(self, parameters: FloatArray) -> Aggregate:
        """As :meth:`Family.aggregate`."""
        weights = onto_simplex(parameters)
        return OrderedWeightedAverage(weights) if self.ordered else WeightedMean(weights)


@dataclass(frozen=True)
class ChoquetFamily:
    """Choquet's integrals: a monotone measure of the sets of attributes but the empty one.

    Attributes
    ----------
    n : int
        At most 8.
    """

    n: int
    monotone = True

    def told_apart(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.told_apart`."""
        return columns

    def features(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.features`."""
        ordered, sets = ascending(columns)
        found = np.zeros((columns.shape[1], 2**self.n))
        each = np.arange(columns.shape[1])
        for i in range(self.n):
            # Sets of one record are distinct: each lacks an attribute of the one before.
            found[each, sets[i]] = ordered[i] - (ordered[i - 1] if i else 0.0)
        return found[:, 1:]

    def least_gap(self, others: FloatArray, own: FloatArray) -> FloatArray:
        """As :meth:`Family.least_gap`."""
        return np.asarray(others.min(axis=0) - own.max(axis=0))

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """As :meth:`Family.limits`."""
        low, high = np.zeros(2**self.n - 1), np.ones(2**self.n - 1)
        low[-1] = 1.0
        return low, high

    def rows(self) -> tuple[Any, FloatArray, FloatArray]:
        """As :meth:`Family.rows`."""
        less, more = self._grown()
        count, each = len(less), np.arange(len(less))
        values = np.concatenate([np.ones(count), -np.ones(count)])
        places = (np.concatenate([each, each]), np.concatenate([more - 1, less - 1]))
        return scipy.sparse.csr_array((values, places), shape=(count, 2**self.n - 1)), np.zeros(count), np.ones(count)

    def _grown(self) -> tuple[LongArray, LongArray]:
        """Sets of at least one attribute, and the same with another."""
        sets = np.arange(1, 2**self.n, dtype=np.int64)
        less = [sets[sets >> i & 1 == 0] for i in range(self.n)]
        return np.concatenate(less), np.concatenate([one | 1 << i for i, one in enumerate(less)])

    def cuts(self, parameters: FloatArray) -> FloatArray:
        """As :meth:`Family.cuts`."""
        return np.zeros((0, len(parameters)))

    def aggregate(self, parameters: FloatArray) -> Aggregate:
        """As :meth:`Family.aggregate`."""
        measure = np.concatenate([[0.0], np.clip(parameters, 0.0, 1.0)])
        sets = np.arange(2**self.n)
        for i in range(self.n):  # the greatest of all sets inside
            inside = sets[sets >> i & 1 == 1]
            measure[inside] = np.maximum(measure[inside], measure[inside ^ 1 << i])
        measure[-1] = 1.0
        return ChoquetIntegral(measure)


@dataclass(frozen=True)
class BilinearFamily:
    """Bilinear forms: the upper triangle of a positive semi-definite matrix of trace 1, row by row."""

    n: int
    monotone = False

    def told_apart(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.told_apart`."""
        return columns

    def features(self, columns: FloatArray) -> FloatArray:
        """As :meth:`Family.features`."""
        roots = np.sqrt(columns)
        found = [columns[i] if i == j else 2 * roots[i] * roots[j] for i, j in zip(*self._upper(), strict=True)]
        return np.stack(found, axis=1)

    def _upper(self) -> tuple[LongArray, LongArray]:
        i, j = np.triu_indices(self.n)
        return i.astype(np.int64), j.astype(np.int64)

    def least_gap(self, others: FloatArray, own: FloatArray) -> FloatArray:
        """As :meth:`Family.least_gap`."""
        # ⟨Q, u uᵀ - v vᵀ⟩ is at least the lesser of the two eigenvalues of the difference that are not 0.
        a, b, c = others.sum(axis=0), own.sum(axis=0), np.sqrt(others * own).sum(axis=0)
        return np.asarray((a - b - np.sqrt((a - b) ** 2 + 4 * np.maximum(a * b - c * c, 0.0))) / 2)

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """As :meth:`Family.limits`."""
        i, j = self._upper()
        # |q_ij|² is at most q_ii q_jj, and that at most 1/4.
        return np.where(i == j, 0.0, -0.5), np.where(i == j, 1.0, 0.5)

    def rows(self) -> tuple[Any, FloatArray, FloatArray]:
        """As :meth:`Family.rows`."""
        i, j = self._upper()
        vectors = [
            np.eye(self.n)[a] + sign * np.eye(self.n)[b] for a in range(self.n) for b in range(a) for sign in (1, -1)
        ]
        pairs = self._of_vectors(np.array(vectors).reshape(-1, self.n))
        matrix = np.vstack([(i == j).astype(np.float64), pairs])
        low, high = np.zeros(len(matrix)), np.full(len(matrix), np.inf)
        low[0] = high[0] = 1.0
        return scipy.sparse.csr_array(matrix), low, high

    def _of_vectors(self, vectors: FloatArray) -> FloatArray:
        """Rows ``a`` with ``a · θ = vᵀ Q v``."""
        i, j = self._upper()
        return np.asarray(vectors[:, i] * vectors[:, j] * np.where(i == j, 1.0, 2.0))

    def cuts(self, parameters: FloatArray) -> FloatArray:
        """As :meth:`Family.cuts`."""
        values, vectors = np.linalg.eigh(self._matrix(parameters))
        return self._of_vectors(vectors[:, values < -1e-7].T)

    def _matrix(self, parameters: FloatArray) -> FloatArray:
        found = np.zeros((self.n, self.n))
        found[self._upper()] = parameters
        return np.asarray(np.triu(found) + np.triu(found, 1).T)

    def parameters(self, form: Bilinear) -> FloatArray:
        """Parameters of a form; shape (f,)."""
        return np.asarray(form.matrix[self._upper()])

    def moved(self, parameters: FloatArray, slope: FloatArray) -> FloatArray:
        """Take a step along a slope, and go from there to the nearest form.

        Parameters
        ----------
        parameters, slope : ndarray of float64, shape (f,)
            The slope is that by the parameters: off the diagonal, by two numbers of the matrix at once.
        """
        i, j = self._upper()
        return self.parameters(Bilinear.projected(self._matrix(parameters + slope * np.where(i == j, 1.0, 0.5))))

    def aggregate(self, parameters: FloatArray) -> Aggregate:
        """As :meth:`Family.aggregate`."""
        return Bilinear.projected(self._matrix(parameters))
