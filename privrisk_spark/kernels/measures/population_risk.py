"""Risk of records when the size ``F`` of their class in the population is not known: ``E[1/F | f]`` under a model.

``f`` members of a class are in the data, and each of the ``F`` in the population was drawn with probability ``p``. The
models differ in what they say of the ``F - f`` that were not drawn.

*Scaling*: ``F̂ = f / p``, the risk is ``p / f``. No model of chance: where ``f`` is small it says ``F̂ = 1/p`` of every
sample unique, and ``1/F̂`` is below ``E[1/F]`` (Jensen).

*Negative binomial* (Benedetti and Franconi, "Statistical and technological solutions for controlled data
dissemination", NTTS 1998; Franconi and Polettini, "Individual risk estimation in µ-Argus: a review", PSD 2004, LNCS
3050; used by µ-Argus and sdcMicro): ``P(F = h | f) = C(h-1, f-1) p^f q^(h-f)``, ``h >= f``, ``q = 1 - p``, with
``p̂ = f / Σ w`` for each class.

    r = E[1/F] = E ∫_0^1 s^(F-1) ds = ∫_0^1 s^-1 (p s / (1 - q s))^f ds = (p^f / f) 2F1(f, f; f+1; q)

since the generating function of ``F`` is ``(p s / (1 - q s))^f``, and by Euler's integral. ``u = p s / (1 - q s)``
makes it ``r_f = ∫_0^1 u^(f-1) p / (p + q u) du``, so with ``c = p / q``

    r_1 = c ln(1/p),    r_f = c (1/(f-1) - r_(f-1)),    r_2 = c (1 - c ln(1/p)),    r_3 = c (1/2 - c + c² ln(1/p)).

Pfaff's transformation gives a series of positive terms, ``r_f = (p/f) Σ_j j!/((f+1)…(f+j)) q^j``. The recurrence
divides an error by ``1/c`` at each step and is used for ``p < 1/2`` and small ``f``; the series everywhere else, where
its terms halve at least, or fall like ``1 / C(f+j, j)``. At ``p = 1`` it is ``1/f``.

*Poisson* (Skinner and Holmes, "Estimating the re-identification risk per record in microdata", JOS 14(4), 1998; Elamir
and Skinner, "Record level measures of disclosure risk for survey microdata", JOS 22(3), 2006): ``F ~ Poisson(λ)`` and
independent draws, so ``F - f | f ~ Poisson(μ)``, ``μ = λ (1 - p)``:

    r_f = E[1/(f + X)] = Σ_x e^-μ μ^x / x! / (f + x),    r_1 = (1 - e^-μ) / μ,    P(F = 1 | f = 1) = e^-μ.

The rate comes from a model the caller has; without one it is ``λ̂ = f / p`` (:func:`poisson_of_fraction`), of which the
same reservation holds as of scaling.

All three are at most ``1/f`` and are that at ``p = 1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.kernels.measures.thresholds import refuse_weights
from privrisk_spark.kernels.numeric.fold import refuse_other
from privrisk_spark.kernels.numeric.moments import Moments

_RECURRENCE_BELOW = 40
"""Class sizes from here on have a series that converges fast at every fraction: ``C(40 + j, j) > 2^53`` from j = 22."""

_TERMS = 60
"""Of the series; its terms are at most halves of each other, or fall faster."""

_BLOCK = 2**14
"""Classes whose terms are added at once: all steps find them in the nearest cache."""

_EXPAND_FROM = 200.0
"""Mean ``f + μ`` from which moments of the Poisson distribution give its ``E[1/F]`` to full precision."""

_SUM_TERMS = 450
"""A Poisson count of mean below 200 exceeds this with probability below 1e-50."""

_MOMENTS = 26
"""Central moments of the expansion; ``25!! / 200^13 < 1e-16``."""


def scaled_sizes(sizes: LongArray, fraction: float) -> FloatArray:
    """``F̂ = f / p``, the expected size of a class of which a share ``p`` was drawn.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n,)
        ``f``, at least 1.
    fraction : float
        ``p`` in (0, 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        Members of the population, at least ``f``. Its inverse is the record's risk.
    """
    _refuse_fraction(fraction)
    return sizes / fraction


def negative_binomial_risk(sizes: LongArray, fractions: FloatArray) -> FloatArray:
    """Individual risk of Benedetti and Franconi, ``E[1/F | f]`` with ``F - f`` negative binomial.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n,)
        ``f``, at least 1.
    fractions : ndarray of float64, shape (n,)
        ``p`` of each class, in [0, 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        Probability in [0, 1/f], increasing in ``p``, decreasing in ``f`` at one ``p``; relative error below
        1e-14. 0 where ``p`` is.

    Raises
    ------
    InputError
        If a size is below 1 or a fraction is outside [0, 1].
    """
    _refuse_sizes(sizes)
    if len(fractions) and not ((fractions >= 0) & (fractions <= 1)).all():
        raise InputError("Sampling fractions of classes must be between 0 and 1.")
    result = np.empty(len(sizes))
    rare = (fractions < 0.5) & (sizes < _RECURRENCE_BELOW)
    for form, chosen in ((_recurrence, np.flatnonzero(rare)), (_series, np.flatnonzero(~rare))):
        for begin in range(0, len(chosen), _BLOCK):
            here = chosen[begin : begin + _BLOCK]
            result[here] = form(sizes[here], fractions[here])
    return result


def _recurrence(f: LongArray, p: FloatArray) -> FloatArray:
    """``r_f`` from ``r_1``, for p < 1/2."""
    c = p / (1 - p)
    risk: FloatArray = -scipy.special.xlogy(p, p) / (1 - p)
    for at in range(2, int(f.max(initial=1)) + 1):
        risk = np.where(f >= at, c * (1 / (at - 1) - risk), risk)
    return risk


def _series(f: LongArray, p: FloatArray) -> FloatArray:
    """``(p/f) Σ_j j!/((f+1)…(f+j)) q^j``."""
    q = 1 - p
    term = np.ones(len(f))
    total = np.ones(len(f))
    for j in range(1, _TERMS + 1):
        term = term * (q * (j / (f + j)))
        total += term
    return p / f * total


def poisson_risk(sizes: LongArray, rates: FloatArray, fraction: float) -> FloatArray:
    """``E[1/F | f]`` with ``F`` Poisson.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n,)
        ``f``, at least 1.
    rates : ndarray of float64, shape (n,)
        ``λ``, expected members of the class in the population; finite, not negative.
    fraction : float
        ``p`` in (0, 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        Probability in (0, 1/f].

    Raises
    ------
    InputError
        If a size is below 1, a rate is negative or not finite, or the fraction is outside (0, 1].
    """
    _refuse_sizes(sizes)
    _refuse_fraction(fraction)
    if len(rates) and not ((rates >= 0) & (rates < np.inf)).all():
        raise InputError("Expected sizes of classes must be finite and not negative.")
    missing = rates * (1 - fraction)
    result = np.empty(len(sizes))
    large = sizes + missing >= _EXPAND_FROM
    result[large] = _expanded(sizes[large], missing[large])
    result[~large] = _summed(sizes[~large], missing[~large])
    return result


def _summed(f: LongArray, mu: FloatArray) -> FloatArray:
    """``Σ_x e^-μ μ^x / x! / (f + x)``, all terms positive."""
    weight = np.exp(-mu)
    total = weight / f
    for x in range(1, _SUM_TERMS + 1):
        weight = weight * (mu / x)
        total += weight / (f + x)
    return total


def _expanded(f: LongArray, mu: FloatArray) -> FloatArray:
    """``(1/m) Σ_k (-1)^k c_k / m^k``, ``m = f + μ``, ``c_k`` central moments: ``c_(k+1) = μ Σ_(i<k) C(k,i) c_i``."""
    mean = f + mu
    # scaled[k] = c_k / m^k
    scaled = [np.ones(len(f)), np.zeros(len(f))]
    total = np.ones(len(f))
    for k in range(1, _MOMENTS):
        following = sum(
            (comb(k, i) * scaled[i] * (mu / mean) * mean ** (i - k) for i in range(k)),
            np.zeros(len(f)),
        )
        scaled.append(following)
        total = total + (following if (k + 1) % 2 == 0 else -following)
    return total / mean


def poisson_of_fraction(sizes: LongArray, fraction: float) -> FloatArray:
    """:func:`poisson_risk` with ``λ̂ = f / p``, the estimate that each class alone gives.

    Parameters, errors and result as there.
    """
    return poisson_risk(sizes, scaled_sizes(sizes, fraction), fraction)


@dataclass(frozen=True)
class IndividualRiskTally:
    """Risk of records whose class has an estimated fraction ``p̂ = f / Σ w``, under the negative binomial model.

    Attributes
    ----------
    thresholds : tuple of float
        Probabilities; the same in every part.
    risks : Moments
        Risk of every record.
    uniques : Moments
        Risk of the sample uniques: their sum is how many of them a match by chance would identify,
        ``τ = Σ_(f=1) E[1/F]``.
    above : tuple of int
        Records whose risk is above each threshold.
    clamped : int
        Classes with ``Σ w < f``: their fraction is taken as 1.
    """

    thresholds: tuple[float, ...]
    risks: Moments
    uniques: Moments
    above: tuple[int, ...]
    clamped: int = 0

    @classmethod
    def of(
        cls,
        sizes: LongArray,
        weights: FloatArray,
        thresholds: Sequence[float] = (),
        *,
        records: LongArray | None = None,
    ) -> IndividualRiskTally:
        """Measure the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes, at least 1, in sum at most 2^36.
        weights : ndarray of float64, shape (n_classes,)
            ``Σ w`` of each, not negative.
        thresholds : sequence of float
            Probabilities.
        records : ndarray of int64, shape (n_classes,), optional
            Records of each class itself, where sizes and weights are of all that it is compatible with.

        Raises
        ------
        InputError
            If a size is below 1, or a weight is negative or NaN.
        """
        _refuse_sizes(sizes)
        refuse_weights(weights)
        records = sizes if records is None else records
        risks = negative_binomial_risk(sizes, sizes / np.maximum(weights, sizes))
        single = sizes == 1
        return cls(
            thresholds=tuple(float(threshold) for threshold in thresholds),
            risks=Moments.of(risks, records),
            uniques=Moments.of(risks[single], records[single]),
            above=tuple(int(records[risks > threshold].sum()) for threshold in thresholds),
            clamped=int(np.count_nonzero(weights < sizes)),
        )

    @classmethod
    def empty(cls, thresholds: Sequence[float] = ()) -> IndividualRiskTally:
        """Tally of no class; parameters and errors as for :meth:`of`."""
        return cls.of(np.zeros(0, dtype=np.int64), np.zeros(0), thresholds)

    def plus(self, other: IndividualRiskTally) -> IndividualRiskTally:
        """Tally of both together.

        Raises
        ------
        InternalError
            If the thresholds differ.
        """
        refuse_other(self.thresholds, other.thresholds, "Tallies of the same thresholds")
        return IndividualRiskTally(
            self.thresholds,
            self.risks.plus(other.risks),
            self.uniques.plus(other.uniques),
            tuple(a + b for a, b in zip(self.above, other.above, strict=True)),
            self.clamped + other.clamped,
        )

    @property
    def mean(self) -> float:
        """Risk averaged over records, the marketer's; 0 without records."""
        return self.risks.mean

    @property
    def most(self) -> float | None:
        """Greatest risk of a record, the journalist's; None without records."""
        return self.risks.most if self.risks.n else None

    @property
    def hits(self) -> float:
        """Expected number of records that linking each to one of its class identifies, ``Σ_records E[1/F]``."""
        return self.risks.sum


def risks_at_fraction(
    histogram: SizeHistogram | PopulationHistogram, fraction: float, thresholds: Sequence[float] = ()
) -> dict[str, IndividualRiskTally]:
    """Risk of the records of a table drawn at one known fraction, under each model.

    Parameters
    ----------
    histogram : SizeHistogram or PopulationHistogram
        Of the whole table; at most 2^36 records. The second where classes overlap, with what each is compatible with.
    fraction : float
        ``p`` in (0, 1].
    thresholds : sequence of float
        Probabilities.

    Returns
    -------
    dict of model to IndividualRiskTally
        ``scaling``, ``negative-binomial`` and ``poisson``, the last with ``λ̂ = f / p``.

    Raises
    ------
    InputError
        If the fraction is outside (0, 1].
    """
    _refuse_fraction(fraction)
    sizes, records = histogram.candidates
    of_model = {
        "scaling": 1 / scaled_sizes(sizes, fraction),
        "negative-binomial": negative_binomial_risk(sizes, np.full(len(sizes), fraction)),
        "poisson": poisson_of_fraction(sizes, fraction),
    }
    single = sizes == 1
    return {
        model: IndividualRiskTally(
            thresholds=tuple(float(threshold) for threshold in thresholds),
            risks=Moments.of(risks, records),
            uniques=Moments.of(risks[single], records[single]),
            above=tuple(int(records[risks > threshold].sum()) for threshold in thresholds),
        )
        for model, risks in of_model.items()
    }


def _refuse_sizes(sizes: LongArray) -> None:
    if len(sizes) and sizes.min() < 1:
        raise InputError(f"Sizes of equivalence classes must be at least 1. Got {sizes.min()}.")


def _refuse_fraction(fraction: float) -> None:
    if not 0 < fraction <= 1:
        raise InputError(f"A sampling fraction must be above 0 and at most 1. Got {fraction!r}.")
