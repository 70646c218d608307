"""Risk of records that may be linked to further attributes: ``R_link = E[ℓ(δ(x) ∨ z, θ)]`` (F12 §2.7).

A linked record ``z`` adds attributes that the release does not disclose; the attacker then looks the enlarged record
``δ(x) ∨ z`` up in the dictionary. Its sensitivity Φ sums over the released and the added attributes; its ``ρ`` counts
the rows consistent with the disclosed nodes *and* with ``z``. Given probabilities ``p(z | δ(x))`` of at most 1 in all,

    R_link(x) = Σ_z p(z) ℓ(δ(x) ∨ z, θ) + (1 - Σ_z p(z)) ℓ(δ(x), θ):

what is left of the probability is "no link", which costs what the release alone costs.

Linking never lowers the risk: ``ℓ(δ(x) ∨ z, θ) >= ℓ(δ(x), θ)`` for every form of Φ, every risk model, and the
consistencies ``subsumes`` and ``compatible``. Φ can only gain terms. ``ρ`` can only lose rows, also where a record that
the dictionary lacks is counted as a row of its own: if ``x`` has a consistent row but ``x ∨ z`` has none, then the row
of ``x`` disagrees with ``z``; it is not counted for ``δ(x) ∨ z`` and makes room for the one added. So a link that the
dictionary contradicts costs at least what no link costs: an upper bound, on the safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, Counts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import Evaluation, risk_of
from privrisk_spark.kernels.disclosure.sensitivity import scaled

SLACK = 1e-9
"""By how much the probabilities of a record may exceed 1 through rounding."""


@dataclass(frozen=True, eq=False)
class UnawareCounts:
    """Counts on the released and the added attributes of a dictionary that knows none of the added ones.

    Every row is consistent with every ``z``, so ``ρ(δ(x) ∨ z) = ρ(δ(x))``.

    Attributes
    ----------
    counts : Counts
        On the ``k`` released attributes.
    n_codes : tuple of m int
        Leaf codes of each added attribute, ⊥ included.
    """

    counts: Counts
    n_codes: tuple[int, ...]

    @property
    def dictionary_rows(self) -> int:
        """``N``, rows of the dictionary."""
        return self.counts.dictionary_rows

    @property
    def monotone(self) -> bool:
        """Whether ``ρ`` never falls when a value is generalized."""
        return self.counts.monotone

    @property
    def alike(self) -> tuple[IntArray, ...]:
        """See :attr:`privrisk_spark.kernels.counting.consistent.Counts.alike`: all codes of an added attribute are."""
        return (*self.counts.alike, *[np.zeros(n, dtype=np.int32) for n in self.n_codes])

    def consistent(self, codes: Sequence[IntArray], levels: Sequence[int], depths: Sequence[int]) -> LongArray:
        """``ρ`` of the released attributes, as of :class:`privrisk_spark.kernels.counting.consistent.Counts`."""
        k = len(codes) - len(self.n_codes)
        return self.counts.consistent(codes[:k], levels[:k], depths[:k])


def enlarged(disclosure: Disclosure, axes: Sequence[Axis], weights: Sequence[FloatArray]) -> Disclosure:
    """Return the disclosure over the released and the added attributes, for evaluation only.

    Parameters
    ----------
    disclosure : Disclosure
        Over the ``k`` quasi-identifiers.
    axes : sequence of m Axis
        The added attributes.
    weights : sequence of m ndarrays of float64, shape (n_nodes_j,)
        Weight of each node in Φ, 0 at the root.

    Returns
    -------
    Disclosure
        Over ``k + m`` attributes; the added ones have no utility, since they are not released.
    """
    sensitivity = replace(disclosure.sensitivity, weights=(*disclosure.sensitivity.weights, *weights))
    return replace(
        disclosure,
        ancestor=(*disclosure.ancestor, *[axis.ancestor for axis in axes]),
        code_depth=(*disclosure.code_depth, *[axis.code_depth for axis in axes]),
        utility=(*disclosure.utility, *[np.zeros(len(axis.at_depth)) for axis in axes]),
        sensitivity=sensitivity,
    )


def linked_risk(
    disclosure: Disclosure,
    counts: Counts,
    codes: IntArray,
    levels: npt.NDArray[np.integer],
    linked: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Evaluation:
    """Risk ``ℓ(δ(x) ∨ z, θ)`` of every linked pair.

    Parameters
    ----------
    disclosure : Disclosure
        Over ``k + m`` attributes, see :func:`enlarged`.
    counts : Counts
        Of the dictionary on ``k + m`` axes.
    codes : ndarray of int32, shape (n, k)
        Leaf codes of the record of each pair.
    levels : ndarray of integer, shape (n, k)
        Levels it is disclosed at.
    linked : ndarray of int32, shape (n, m)
        Leaf codes of ``z``; the code after the last leaf is ⊥, an attribute ``z`` does not know.
    personal : ndarray of float64, shape (n, k + m), optional
    record_weight : ndarray of float64, shape (n,), optional

    Returns
    -------
    Evaluation
        ``absent`` where the dictionary has no row consistent with the original record and ``z``.

    Raises
    ------
    InputError
        If a code of ``linked`` is no leaf code.
    """
    k = codes.shape[1]
    for j in range(linked.shape[1]):
        n_codes = len(disclosure.code_depth[k + j])
        if ((linked[:, j] < 0) | (linked[:, j] >= n_codes)).any():
            raise InputError(
                f"linkage: added attribute {j + 1} holds a code outside 0 to {n_codes - 1}; resolve missing and "
                "unknown values first."
            )
    whole = np.concatenate([codes, linked], axis=1)
    at_leaf = np.concatenate([levels, np.zeros(linked.shape, dtype=levels.dtype)], axis=1)
    return risk_of(disclosure, counts, whole, at_leaf, personal=personal, record_weight=record_weight)


def unlinked_risk(
    disclosure: Disclosure,
    counts: Counts,
    codes: IntArray,
    levels: npt.NDArray[np.integer],
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Evaluation:
    """Risk ``ℓ(δ(x), θ)`` of every record alone: as if linked to a ``z`` that is ⊥ throughout.

    Parameters
    ----------
    disclosure, counts, codes, levels, personal, record_weight
        As in :func:`linked_risk`, one row per record.
    """
    nothing = [len(depth) - 1 for depth in disclosure.code_depth[codes.shape[1] :]]
    linked = np.tile(np.array(nothing, dtype=np.int32), (len(codes), 1))
    return linked_risk(disclosure, counts, codes, levels, linked, personal=personal, record_weight=record_weight)


def expected_risk(alone: FloatArray, linked: FloatArray, probability: FloatArray, record: LongArray) -> FloatArray:
    """Expectation over the links of each record.

    Parameters
    ----------
    alone : ndarray of float64, shape (n,)
        ``ℓ(δ(x), θ)``.
    linked : ndarray of float64, shape (n_links,)
        ``ℓ(δ(x) ∨ z, θ)``.
    probability : ndarray of float64, shape (n_links,)
        ``p(z | δ(x))``.
    record : ndarray of int64, shape (n_links,)
        Row of ``alone`` each link belongs to.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``R_link`` of each record; links are added in the order given. ``0 · inf`` is 0.

    Raises
    ------
    InputError
        If a probability is negative or NaN, or those of a record exceed 1.
    """
    if not (probability >= 0).all():
        raise InputError("linkage: every probability must be a number of at least 0.")
    n = len(alone)
    total = np.bincount(record, weights=probability, minlength=n)
    if (total > 1 + SLACK).any():
        raise InputError("linkage: the probabilities of a record must sum to at most 1.")
    remainder = np.maximum(1.0 - total, 0.0)
    return np.bincount(record, weights=scaled(linked, probability), minlength=n) + scaled(alone, remainder)
