"""How many records are unique in the population, estimated from the class sizes of a sample of ``n`` out of ``N``.

``n_i`` classes of the sample have ``i`` records, ``u = Σ n_i``, ``p = n/N``. A population unique that was drawn is a
sample unique, so at most ``n_1 / p`` are expected. At ``p = 1`` the sample is the population, and every estimate is
``n_1``.

Every function computes from integers, on one machine, so the estimates do not depend on how the table was partitioned.
An estimate that cannot be had is ``None`` with the reason, never a NaN and never a 0 that means "unknown".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.measures.identity import SizeHistogram

_ASYMPTOTIC = 64.0
"""Arguments from which six terms of the series of ln Γ and ψ are exact in float64."""

_LEAST_ALPHA = 1e-6
"""Smaller parameters of Pitman's model are its limit, Ewens' model."""

_STEPS = np.logspace(-9, 6, 121)
"""Relative distances from the least shape of the slide negative binomial model at which a solution is looked for."""

LARGE_FRACTION = 0.1
"""Fraction above which the decision rule changes its models."""

SEEN_SHARE = 2 / 3
"""Share of the estimated classes of the population that a sample must have for its slide negative binomial model."""

_FEW_SEEN = "too few of the population's classes are in the sample to estimate how many there are"


@dataclass(frozen=True)
class UniquesEstimate:
    """Estimated number of population uniques.

    Attributes
    ----------
    uniques : float or None
        Between 0 and ``N``; None if the model does not apply.
    reason : str or None
        Why it does not.
    parameters : dict of name to float
        Fitted parameters.
    """

    model: str
    uniques: float | None
    reason: str | None = None
    parameters: dict[str, float] = field(default_factory=dict)


def zayatz(histogram: SizeHistogram, population: int) -> UniquesEstimate:
    """Estimate from how often classes of each size leave one record in the sample (Zayatz 1991).

    If classes of the population were of size ``i`` as often as those of the sample are, one drawn with a single record
    would be of size 1 with probability

        P(PU|SU) = n_1 H(1) / Σ_i n_i H(i),    H(i) = C(i, 1) C(N - i, n - 1) / C(N, n)

    by Bayes' rule, and ``U = n_1 P(PU|SU) / p``.

    Parameters
    ----------
    histogram : SizeHistogram
        Of the sample.
    population : int
        ``N``, at least the records of the sample.

    Returns
    -------
    UniquesEstimate
        Parameter ``unique_share``, ``P(PU|SU)``. 0 without sample uniques.

    Raises
    ------
    InputError
        If the population is smaller than the sample.

    Notes
    -----
    Classes of a sample are smaller than those of the population, so the estimate is usually too high at small ``p``.

    References
    ----------
    Zayatz, "Estimation of the number of unique population elements using a sample", ASA Survey Research Methods, 1991.
    """
    n = _checked(histogram, population)
    if n == 0:
        return _empty("zayatz")
    singles = histogram.classes_of(1)
    if singles == 0:
        return UniquesEstimate("zayatz", 0.0)
    once = one_drawn(np.array(histogram.sizes, dtype=np.float64), n, population)
    share = singles * once[0] / math.fsum(number * h for number, h in zip(histogram.numbers, once, strict=True))
    return UniquesEstimate("zayatz", float(singles * share * (population / n)), None, {"unique_share": float(share)})


def one_drawn(sizes: FloatArray, n: int, population: int) -> FloatArray:
    """Probability that a simple random sample of ``n`` out of ``N`` holds exactly one of ``i`` given members.

    ``H(i) = i (n/N) Π_(t=0)^(i-2) (N - n - t) / (N - 1 - t)``; the product is a difference of two logarithms of falling
    factorials, each taken without the cancellation of ``ln Γ`` at large arguments.

    Parameters
    ----------
    sizes : ndarray of float64, shape (m,)
        ``i``, whole numbers, 1 to ``N``.
    n, population : int
        ``1 <= n <= N``.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    result = np.zeros(len(sizes))
    length = sizes - 1
    possible = length <= population - n
    length = length[possible]
    missing = _log_falling(float(population - n), length) - _log_falling(float(population - 1), length)
    result[possible] = sizes[possible] * (n / population) * np.exp(missing)
    return result


def _log_falling(top: float, length: FloatArray) -> FloatArray:
    """``ln (a (a-1) … (a-L+1))`` for ``0 <= L <= a``; ``ln Γ(x+1) = (x + 1/2) ln x - x + ln √(2π) + φ(x)``."""
    bottom = top - length
    if top < _ASYMPTOTIC:
        return scipy.special.gammaln(top + 1) - scipy.special.gammaln(bottom + 1)
    result = np.empty(len(length))
    near = bottom < _ASYMPTOTIC
    result[near] = scipy.special.gammaln(top + 1) - scipy.special.gammaln(bottom[near] + 1)
    b, part = bottom[~near], length[~near]
    result[~near] = part * math.log(top) - (b + 0.5) * np.log1p(-part / top) - part + _phi(top) - _phi(b)
    return result


def _phi(x: Any) -> Any:
    """Remainder of Stirling's formula for ``ln Γ(x + 1)``, x at least 64."""
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / x


def pitman(histogram: SizeHistogram, population: int) -> UniquesEstimate:
    """Estimate with Pitman's sampling formula, its parameters by maximum likelihood (Hoshino 2001).

    The formula gives sizes ``i`` to ``u`` classes of ``n`` records with probability proportional to

        Π_(i=1)^(u-1) (θ + iα) / Π_(i=1)^(n-1) (θ + i) · Π_classes Π_(l=1)^(f-1) (l - α),    0 <= α < 1, θ > -α.

    It describes the population with the same ``θ`` and ``α``. A record stays alone while the other ``N - 1`` are added,
    each joining it with probability ``(1 - α) / (θ + i)``, so

        E[U] = N Π_(i=1)^(N-1) (θ + α + i - 1) / (θ + i) = Γ(θ+1) / Γ(θ+α) · N Γ(θ+α+N-1) / Γ(θ+N),

    which tends to ``Γ(θ+1) / Γ(θ+α) · N^α``, the form that is usually quoted. ``α = 0`` is Ewens' model.

    Parameters
    ----------
    histogram : SizeHistogram
        Of the sample.
    population : int
        ``N``, at least the records of the sample.

    Returns
    -------
    UniquesEstimate
        Parameters ``theta``, ``alpha`` and ``unique_share``, the probability that a sample unique is a population
        unique, ``Π_(i=n)^(N-1) (θ + α + i - 1) / (θ + i)``. 0 without sample uniques. None if all records are unique
        (``θ`` grows without bound).

    Raises
    ------
    InputError
        If the population is smaller than the sample.

    Notes
    -----
    For each ``α`` the likelihood has a stationary ``θ``: its derivative ``Σ 1/(θ + iα) - Σ 1/(θ + i)`` tends to ``+∞``
    at ``-α`` and to ``(u - n)/θ < 0`` at infinity. ``α`` is a root of the profile's derivative, which tends to ``-∞``
    at 1 because some class has two records; if it is not positive at 0, ``α = 0``.

    References
    ----------
    Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment", JOS 17(4), 2001; Pitman,
    "Exchangeable and partially exchangeable random partitions", PTRF 102, 1995.
    """
    n = _checked(histogram, population)
    if n == 0:
        return _empty("pitman")
    if n == population:
        return UniquesEstimate("pitman", float(histogram.classes_of(1)))
    u = histogram.classes
    if not histogram.classes_of(1):
        return UniquesEstimate("pitman", 0.0)
    if u == n:
        return UniquesEstimate("pitman", None, "every record of the sample is unique, so θ has no finite estimate")
    sizes = np.array(histogram.sizes, dtype=np.float64)
    numbers = np.array(histogram.numbers, dtype=np.float64)
    excess, times = sizes[sizes > 1] - 1, numbers[sizes > 1]

    def over_classes(distance: float, alpha: float) -> float:
        """``Σ_(i=1)^(u-1) 1/(θ + iα)``; the distance is θ + α."""
        return (u - 1) / distance if alpha == 0 else _digamma_rise(distance / alpha, u - 1) / alpha

    def distance_of(alpha: float) -> float:
        def slope(log_distance: float) -> float:
            distance = math.exp(log_distance)
            return over_classes(distance, alpha) - _digamma_rise(distance - alpha + 1, n - 1)

        low, high = math.log(1e-9), math.log(2.0 * n)
        if slope(low) <= 0:
            return math.exp(low)
        while slope(high) > 0:
            high += 5
        return math.exp(float(scipy.optimize.brentq(slope, low, high, xtol=1e-13)))

    def profile(alpha: float) -> float:
        distance = distance_of(alpha)
        of_classes = (u - 1 - (distance - alpha) * over_classes(distance, alpha)) / alpha
        within = math.fsum(t * _digamma_rise(1 - alpha, e) for t, e in zip(times, excess, strict=True))
        return of_classes - within

    alpha = 0.0
    if profile(_LEAST_ALPHA) > 0:
        alpha = 1 - 1e-9
        if profile(alpha) < 0:
            alpha = float(scipy.optimize.brentq(profile, _LEAST_ALPHA, alpha, xtol=1e-12))
    theta = distance_of(alpha) - alpha
    stays = _log_alone(theta, alpha, population) - _log_alone(theta, alpha, n)
    return UniquesEstimate(
        "pitman",
        population * math.exp(_log_alone(theta, alpha, population)),
        None,
        {"theta": theta, "alpha": alpha, "unique_share": math.exp(stays)},
    )


def _log_alone(theta: float, alpha: float, n: int) -> float:
    """``ln Π_(i=1)^(n-1) (θ + α + i - 1) / (θ + i)``."""
    start = float(scipy.special.gammaln(theta + 1) - scipy.special.gammaln(theta + alpha))
    low, high = theta + alpha + n - 1, theta + n
    if low < _ASYMPTOTIC:
        return start + float(scipy.special.gammaln(low) - scipy.special.gammaln(high))
    # ln Γ(x) = (x - 1/2) ln x - x + …, without the cancellation of two large values.
    gap = 1 - alpha
    ratio = (low - 0.5) * math.log1p(-gap / high) - gap * math.log(high) + gap
    return start + ratio + (_phi_below(low) - _phi_below(high))


def _phi_below(x: float) -> float:
    """Remainder of Stirling's formula for ``ln Γ(x)``, the same as for ``ln Γ(x + 1)``."""
    return float(_phi(x))


def _digamma_rise(start: float, length: float) -> float:
    """``Σ_(i=0)^(L-1) 1/(x + i) = ψ(x + L) - ψ(x)``, without cancellation at large x."""
    if start < _ASYMPTOTIC:
        return float(scipy.special.digamma(start + length) - scipy.special.digamma(start))
    end = start + length

    def rest(x: float) -> float:
        square = x * x
        return 0.5 / x + (1 / 12 - (1 / 120 - (1 / 252 - 1 / 240 / square) / square) / square) / square

    return math.log1p(length / start) + rest(start) - rest(end)


def slide_negative_binomial(histogram: SizeHistogram, population: int) -> UniquesEstimate:
    """Estimate with ``F - 1`` negative binomial in every class of the population (Chen and Keller-McNulty 1998).

    ``F`` has the generating function ``G(z) = z (β / (1 - b z))^α``, ``b = 1 - β``. Each member is drawn with
    probability ``p``, so ``f`` has ``G(w + p z)``, ``w = 1 - p``, and of ``K`` classes

        n_1 = K p G'(w)      = K p A (1 + α b w / (1 - b w)),               A = (β / (1 - b w))^α
        n_2 = K p² G''(w) / 2 = K p² A α b (2 - (1 - α) b w) / (2 (1 - b w)²)

    are expected with one record and with two. ``K`` is estimated by :func:`modified_shlosser`, the two equations are
    solved for ``α`` and ``β``, and ``U = K β^α``.

    ``U`` is as good as ``K``, and that is as good as the classes that were seen are many. On eleven kinds of known
    populations (geometric, negative binomial, Zipf, log-normal, Poisson, of equal sizes, tables of independent columns)
    ``U`` was up to 26 times too high where few were seen; where the sample has more than a tenth of the population and
    two thirds of the estimated classes, it was between .8 and 1.7 times the truth, or off by at most .01 of the
    population. Elsewhere there is no estimate.

    Parameters
    ----------
    histogram : SizeHistogram
        Of the sample.
    population : int
        ``N``, at least the records of the sample.

    Returns
    -------
    UniquesEstimate
        Parameters ``alpha``, ``beta`` and ``classes``, the estimated ``K``; 0 without sample uniques. None if there is
        no class of two records, too few classes were seen, or the equations have no solution.

    Raises
    ------
    InputError
        If the population is smaller than the sample.

    Notes
    -----
    At each ``α`` the ratio ``n_2 / n_1`` increases with ``b``, so ``β`` is a function of ``α`` and one equation in
    ``α`` is left. The ratio at ``b = 1`` increases with ``α``, so there is a least ``α`` that can give it, at which
    ``β`` is 0 and no sample unique is expected. From there on the first solution is taken.

    References
    ----------
    Chen and Keller-McNulty, "Estimation of identification disclosure risk in microdata", JOS 14(1), 1998.
    """
    n = _checked(histogram, population)
    if n == 0:
        return _empty("slide-negative-binomial")
    singles, pairs = histogram.classes_of(1), histogram.classes_of(2)
    if n == population:
        return UniquesEstimate("slide-negative-binomial", float(singles))
    if not singles:
        return UniquesEstimate("slide-negative-binomial", 0.0)
    if not pairs:
        return UniquesEstimate("slide-negative-binomial", None, "the sample has no class of two records")
    p = n / population
    w = 1 - p
    classes = modified_shlosser(histogram, p)
    if p <= LARGE_FRACTION or histogram.classes < SEEN_SHARE * classes:
        return UniquesEstimate("slide-negative-binomial", None, _FEW_SEEN)

    share = pairs / singles

    def beyond(b: float, alpha: float) -> float:
        """``n_2 / n_1`` that is expected, less that of the sample."""
        rest = 1 - b * w
        return p * alpha * b * (2 - (1 - alpha) * b * w) / (2 * rest * (rest + alpha * b * w)) - share

    def b_of(alpha: float) -> float:
        return (
            float(scipy.optimize.brentq(beyond, 0.0, 1.0, args=(alpha,), xtol=1e-16)) if beyond(1.0, alpha) > 0 else 1.0
        )

    def enough(alpha: float) -> bool:
        """Whether at least as many sample uniques are expected as there are."""
        b = b_of(alpha)
        if b >= 1:
            return False
        rest = 1 - b * w
        expected = math.log(classes * p) + math.log1p(alpha * b * w / rest) + alpha * math.log((1 - b) / rest)
        return expected >= math.log(singles)

    # beyond(1, α) = 0 is w α² + (2 - w - 2 share w) α - 2 share p = 0.
    half = (2 - w - 2 * share * w) / 2
    least = 2 * share * p / (half + math.sqrt(half * half + 2 * share * p * w))
    tried = [least, *(least * (1 + _STEPS)).tolist()]
    found = next((i for i, alpha in enumerate(tried) if enough(alpha)), None)
    if not found:
        return UniquesEstimate(
            "slide-negative-binomial", None, "no parameters give the numbers of classes of one and of two records"
        )
    low, high = tried[found - 1], tried[found]
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    beta = 1 - b_of(high)
    return UniquesEstimate(
        "slide-negative-binomial",
        min(classes * beta**high, float(population)),
        None,
        {"alpha": high, "beta": beta, "classes": classes},
    )


def modified_shlosser(histogram: SizeHistogram, fraction: float) -> float:
    """Number of classes of the population, ``K``, by the modified Shlosser estimator (Haas and Stokes 1998, D_Sh3).

    With ``q = 1 - p``, and sums over the sizes ``i`` of the sample's classes,

        K = u + n_1 · Σ n_i i p² (1-p²)^(i-1) / Σ n_i q^i ((1+p)^i - 1) · (Σ n_i q^i / Σ n_i i p q^(i-1))²

    Shlosser's own estimator (1981), ``u + n_1 Σ n_i q^i / Σ n_i i p q^(i-1)``, takes the classes of the population to
    have the sizes seen in the sample; the factor corrects it where they are larger.

    Parameters
    ----------
    fraction : float
        ``p`` in (0, 1].

    Returns
    -------
    float
        At least the classes of the sample, and equal to them at ``p = 1`` or without sample uniques.

    References
    ----------
    Haas and Stokes, "Estimating the number of classes in a finite population", JASA 93(444), 1998.
    """
    singles = histogram.classes_of(1)
    if not 0 < fraction <= 1:
        raise InputError(f"A sampling fraction must be above 0 and at most 1. Got {fraction!r}.")
    if not singles or fraction == 1:
        return float(histogram.classes)
    p, w = fraction, 1 - fraction
    entries = list(zip(histogram.sizes, histogram.numbers, strict=True))
    unseen = math.fsum(number * w**size for size, number in entries)
    once = math.fsum(number * size * p * w ** (size - 1) for size, number in entries)
    over = math.fsum(number * size * p * p * (1 - p * p) ** (size - 1) for size, number in entries)
    # q^i (1+p)^i = (1-p²)^i; the difference without cancellation at small p
    under = math.fsum(number * w**size * math.expm1(min(size * math.log1p(p), 700.0)) for size, number in entries)
    return histogram.classes + singles * (over / under) * (unseen / once) ** 2


def decided(histogram: SizeHistogram, population: int) -> UniquesEstimate:
    """Estimate by the model that the decision rule of Dankar et al. takes.

    Up to ``p = 0.1`` :func:`pitman`, or :func:`zayatz` where that does not apply; above, the lower one of
    :func:`zayatz` and :func:`slide_negative_binomial`, or the first where the other does not apply. The rule comes from
    simulations on clinical data sets.

    Parameters
    ----------
    histogram : SizeHistogram
        Of the sample.
    population : int
        ``N``, at least the records of the sample.

    Returns
    -------
    UniquesEstimate
        ``model`` names the one taken.

    Raises
    ------
    InputError
        If the population is smaller than the sample.

    References
    ----------
    Dankar, El Emam, Neisa and Roffey, "Estimating the re-identification risk of clinical data sets", BMC Medical
    Informatics and Decision Making 12:66, 2012.
    """
    n = _checked(histogram, population)
    first = zayatz(histogram, population)
    if n <= LARGE_FRACTION * population:
        second = pitman(histogram, population)
        return first if second.uniques is None else second
    second = slide_negative_binomial(histogram, population)
    if first.uniques is None or second.uniques is None or first.uniques < second.uniques:
        return first
    return second


def _checked(histogram: SizeHistogram, population: int) -> int:
    """Records of a sample that the population can hold."""
    records = histogram.records
    if population < records:
        raise InputError(
            f"The population must be at least as large as the sample. Got {population} members, {records} records."
        )
    return records


def _empty(model: str) -> UniquesEstimate:
    return UniquesEstimate(model, None, "the sample has no records")
