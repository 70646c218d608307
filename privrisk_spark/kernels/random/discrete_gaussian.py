"""Discrete Gaussian noise for counts: exact sampler, tails, privacy of w counts, calibration.

``N_Z(0, sigma^2)`` is the law on the integers with ``Pr[Y = y]`` proportional to
``exp(-y^2 / (2 sigma^2))``.

Status.

* :func:`sample`: *proved* exact, given uniform independent words (computationally: the PRF of
  ``randomness``). Canonne, Kamath and Steinke 2020, Algorithms 1 to 3, in integer arithmetic throughout; no
  float enters.
* :func:`tail`, :func:`delta_of_fold`: *proved* upper bounds up to the float margin ``FLOAT_MARGIN = 1e-6``.
  All terms are positive and each has relative error below 1e-12, so the margin is generous; it is added,
  never taken.
* :func:`calibrate_admission`, :func:`divide_admission`: *proved* for the values they return, since these are
  checked themselves; that ``sigma_squared`` is the smallest possible also needs delta to fall with sigma, which is
  *tested*.

The privacy loss of w counts. A row is in one cell of each of w schemes, so with and without it w counts
differ by one. Against each other, ``1 + Y`` and ``Y`` in w independent coordinates have the log-likelihood
ratio ``(w - 2 S) / (2 sigma^2)``, ``S`` the sum of the w noises drawn (when the data hold the row, ``S``
has the opposite sign; its law is symmetric, so both directions have the same delta). Hence, exactly,

    delta(epsilon) = E[max(0, 1 - exp(epsilon - (w - 2 S) / (2 sigma^2)))].

The law of S. Write ``Pr[S_j = s] = c_j exp(-s^2 / (2 j sigma^2)) h_j(s)``, ``h_1 = 1``. Completing the
square in the convolution of ``S_j`` with one more noise gives

    h_{j+1}(s) ~ sum_x exp(-(x - j s / (j+1))^2 / (2 b_j)) h_j(x),     b_j = sigma^2 j / (j + 1) >= 1/2,

and Poisson summation bounds ``sum_x exp(-(x - a)^2 / (2 b)) / sqrt(2 pi b)`` by ``1 +- 2 q``,
``q = sum_{m>=1} exp(-2 pi^2 b m^2)``, for every shift a. So ``max h_{j+1} / min h_{j+1}`` exceeds
``max h_j / min h_j`` by a factor of at most ``(1 + 2 q) / (1 - 2 q) <= exp(5 exp(-2 pi^2 b))``, and

    Pr[S_w = s] <= exp(tau) N_Z(0, w sigma^2)(s),    tau = 5 sum_{j<w} exp(-2 pi^2 sigma^2 j / (j + 1)).

(Kairouz, Liu and Steinke 2021 have the same with 10 for 5.) tau is below 3e-4 + 2e-8 w at sigma^2 = 1 and
below 1e-33 at sigma^2 = 8 for w up to 10^30; the factor exp(tau) is applied, so the bound holds for every
integer sigma^2 >= 1.

References
----------
C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020.
P. Kairouz, Z. Liu, T. Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with
Secure Aggregation", ICML 2021. A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas, WWW 2009, and R. Wilson
et al., PETS 2020 (noisy thresholds). S. Gopi, P. Gulhane, J. Kulkarni, J. Shen, M. Shokouhi, S. Yekhanin,
ICML 2020 (unions).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.json_values import JsonDocument
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.rational import round_down
from privrisk_spark.kernels.random import discrete_laplace
from privrisk_spark.kernels.random.coins import bernoulli_exp
from privrisk_spark.kernels.random.keyed import Streams

SIGMA_SQUARED_MAX = 1 << 26
"""Largest admissible sigma^2 (sigma = 8192): keeps the bounds of the sampler's integers below 2^54."""

FLOAT_MARGIN = 1e-6
"""Relative amount added to every printed probability, against float64 rounding."""

_CHUNK = 1 << 15  # elements sampled together; streams are per element, so this changes speed only
_SQUARE_SAFE = math.isqrt((1 << 63) - 1)
_LEAST_FLOAT = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Admission(JsonDocument):
    """Noise and threshold of the differentially private admission of cells.

    Attributes
    ----------
    sigma_squared : int
        Parameter of the discrete Gaussian added to each count, in records squared.
    threshold : int
        Least noisy count that may be admitted, in records.
    delta_gauss : float
        Achieved delta of the w noisy counts at the given epsilon, rounded up.
    delta_select : float
        Achieved probability, rounded up, that one of w cells holding a single row is admitted.
    """

    sigma_squared: int
    threshold: int
    delta_gauss: float
    delta_select: float

    json_keys = ("noise:family", "sigma_squared", "T:threshold", "delta_gauss", "delta_select")
    family = "gaussian"

    @property
    def noise(self) -> str:
        """The noise, in words."""
        return f"discrete Gaussian noise (sigma² = {self.sigma_squared})"

    @property
    def delta(self) -> Fraction:
        """Delta of the admission."""
        return Fraction(self.delta_gauss) + Fraction(self.delta_select)

    def sample(self, streams: Streams, n: int) -> LongArray:
        """Draw one noise per element; see :func:`sample`."""
        return sample(streams, n, sigma_squared=self.sigma_squared)


def sample(streams: Streams, n: int, *, sigma_squared: int) -> LongArray:
    """Draw one discrete Gaussian per element, exactly.

    Canonne, Kamath and Steinke 2020, Algorithm 3: a discrete Laplace proposal of integer scale
    ``t = floor(sigma) + 1`` is accepted with probability ``exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2))``.
    An element uses words of its own stream only (about 14 on average), so its value does not depend on the
    batch.

    Parameters
    ----------
    streams : Streams
        One stream per element.
    n : int
        Number of elements; must be ``streams.size``.
    sigma_squared : int
        In [1, SIGMA_SQUARED_MAX].

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    InputError
        If ``n`` or ``sigma_squared`` is not admissible.
    """
    sigma_squared = _check_sigma_squared(sigma_squared)
    if n != streams.size:
        raise InputError(f"There must be one stream per element: {streams.size}. Got n = {n}.")
    scale = math.isqrt(sigma_squared) + 1
    denominator = 2 * sigma_squared * scale * scale
    values = np.zeros(n, dtype=np.int64)
    for first in range(0, n, _CHUNK):
        pending = np.arange(first, min(first + _CHUNK, n), dtype=np.intp)
        while pending.size:
            proposal = discrete_laplace.draw(streams, pending, scale)
            whole, rest = _square_over(np.abs(proposal) * scale - sigma_squared, denominator)
            accepted = bernoulli_exp(streams, pending, whole, rest, denominator)
            values[pending[accepted]] = proposal[accepted]
            pending = pending[~accepted]
    return values


def tail(sigma_squared: int, at_least: int) -> float:
    """Bound ``Pr[Y >= at_least]`` from above, for ``Y ~ N_Z(0, sigma_squared)``.

    The terms are summed until they no longer count; the rest is bounded by a geometric series, as the ratio
    of neighbouring terms falls.

    Parameters
    ----------
    sigma_squared : int
        In [1, SIGMA_SQUARED_MAX].
    at_least : int
        In records.

    Returns
    -------
    float
        Between the probability and (1 + 2 FLOAT_MARGIN) times it, where that is not below 1e-300; at most 1.

    Raises
    ------
    InputError
        If ``sigma_squared`` is not admissible.
    """
    sigma_squared = _check_sigma_squared(sigma_squared)
    if at_least <= 0:
        # Pr[Y >= m] = 1 - Pr[Y >= 1 - m] by symmetry; the tail taken off is at most 1/2 and rounded down.
        bound = 1.0 - _upper_sum(sigma_squared, 1 - at_least) * (1.0 - FLOAT_MARGIN)
        return min(1.0, math.nextafter(bound, 2.0))
    return min(1.0, max(_upper_sum(sigma_squared, at_least) * (1.0 + FLOAT_MARGIN), _LEAST_FLOAT))


def delta_of_fold(sigma_squared: int, w: int, epsilon: float) -> float:
    """Return the delta of w noisy counts for one row that adds one to each of them.

    Never below the exact value, and above it by a factor of at most ``exp(2 tau) (1 + 2 FLOAT_MARGIN)``
    (module docstring); the same for adding and removing.

    Parameters
    ----------
    sigma_squared : int
        In [1, SIGMA_SQUARED_MAX].
    w : int
        Number of counts the row is in, at least 1.
    epsilon : float
        At least 0, finite.

    Returns
    -------
    float
        In (0, 1].

    Raises
    ------
    InputError
        If an argument is not admissible.
    """
    sigma_squared = _check_sigma_squared(sigma_squared)
    _check_fold(w, epsilon)
    variance = w * sigma_squared
    # The loss (w + 2 s) / (2 sigma^2), s = -S, exceeds epsilon for s above this bound.
    bound = Fraction(epsilon) * sigma_squared - Fraction(w, 2)
    first = math.floor(bound) + 1
    s = _support(first, variance)
    # Exact up to here: the difference of two large floats would lose the small gap.
    excess = ((s - first) + float(first - bound)) / sigma_squared
    terms = np.exp(_log_pmf(s, float(variance))) * -np.expm1(-excess)
    # What lies beyond the summed range has at most the mass of its own tail.
    beyond = _upper_sum(variance, int(s[-1]) + 1)
    factor = math.exp(_collapse_error(sigma_squared, w)) * (1.0 + FLOAT_MARGIN)
    return min(1.0, max((math.fsum(terms) + beyond) * factor, _LEAST_FLOAT))


def calibrate_admission(epsilon: float, w: int, delta_gauss: float, delta_select: float) -> Admission:
    """Find the least noise and the least threshold that admit cells privately.

    Each non-empty cell of w schemes gets count + Y and is admitted if that is at least the threshold.
    Releasing the admitted cells with their noisy counts is
    ``(epsilon, delta_gauss + delta_select)``-differentially private for adding or removing one row: unless
    a cell held by that row alone is admitted (at most w such cells, each of count one, probability
    ``1 - (1 - Pr[1 + Y >= T])^w``), the output is a function of the noisy counts of cells that both tables
    have.

    Parameters
    ----------
    epsilon : float
        Positive, finite.
    w : int
        Number of schemes, at least 1.
    delta_gauss, delta_select : float
        In (0, 1).

    Returns
    -------
    Admission
        The smallest integer ``sigma_squared`` with ``delta_of_fold <= delta_gauss`` (by bisection) and the
        smallest threshold for it.

    Raises
    ------
    InputError
        If an argument is out of range, or no admissible ``sigma_squared`` is enough.
    """
    _check_fold(w, epsilon)
    if epsilon <= 0.0:
        raise InputError(f"The epsilon of the admission must be positive. Got {epsilon!r}.")
    for name, delta in (("delta_gauss", delta_gauss), ("delta_select", delta_select)):
        if not 0.0 < delta < 1.0:
            raise InputError(f"{name} must be between 0 and 1, both excluded. Got {delta!r}.")
    sigma_squared = _least_sigma_squared(epsilon, w, delta_gauss)
    threshold = _least_threshold(sigma_squared, w, delta_select)
    return Admission(
        sigma_squared,
        threshold,
        delta_of_fold(sigma_squared, w, epsilon),
        _delta_of_selection(sigma_squared, w, threshold),
    )


def divide_admission(epsilon: float, w: int, delta: Fraction) -> Admission:
    """Find threshold and noise that admit cells privately at a delta for both together.

    Half of it is planned for each; the threshold may then take what the noise leaves of its half, as sigma^2 is whole,
    and the noise what the threshold leaves of the sum, as T is.

    Parameters
    ----------
    epsilon : float
        Positive, finite.
    w : int
        Number of schemes, at least 1.
    delta : Fraction
        In (0, 1).

    Returns
    -------
    Admission
        With ``delta_gauss + delta_select <= delta``; neither noise nor threshold is above that of
        ``calibrate_admission(epsilon, w, delta / 2, delta / 2)``.

    Raises
    ------
    InputError
        As :func:`calibrate_admission`.
    """
    half = round_down(Fraction(delta) / 2)
    planned = calibrate_admission(epsilon, w, half, half)
    threshold = _least_threshold(planned.sigma_squared, w, round_down(delta - Fraction(planned.delta_gauss)))

    def of(sigma_squared: int) -> Admission:
        select = _delta_of_selection(sigma_squared, w, threshold)
        return Admission(sigma_squared, threshold, delta_of_fold(sigma_squared, w, epsilon), select)

    # All of the delta is not enough for a noise below this one.
    low, high = _least_sigma_squared(epsilon, w, round_down(Fraction(delta))) - 1, planned.sigma_squared
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle).delta <= delta else (middle, high)
    return of(high)


def _least_sigma_squared(epsilon: float, w: int, delta: float) -> int:
    if delta_of_fold(SIGMA_SQUARED_MAX, w, epsilon) > delta:
        raise InputError(
            f"No noise up to sigma^2 = {SIGMA_SQUARED_MAX} gives delta {delta:g} at epsilon {epsilon:g}"
            f" for {w} schemes. Raise epsilon or delta, or take fewer schemes."
        )
    low, high = 0, 1
    while delta_of_fold(high, w, epsilon) > delta:
        low, high = high, min(2 * high, SIGMA_SQUARED_MAX)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of_fold(middle, w, epsilon) <= delta else (middle, high)
    return high


def _least_threshold(sigma_squared: int, w: int, delta: float) -> int:
    low, high = 1, 2
    while _delta_of_selection(sigma_squared, w, high) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _delta_of_selection(sigma_squared, w, middle) <= delta else (middle, high)
    return high


def _delta_of_selection(sigma_squared: int, w: int, threshold: int) -> float:
    """Return an upper bound of ``1 - (1 - Pr[1 + Y >= threshold])^w``."""
    single = tail(sigma_squared, threshold - 1)
    if single >= 1.0:
        return 1.0
    return min(1.0, -math.expm1(w * math.log1p(-single)) * (1.0 + 1e-12))


def _collapse_error(sigma_squared: int, w: int) -> float:
    """Return tau of the module docstring."""
    j = np.arange(1, w, dtype=np.float64)
    return 5.0 * math.fsum(np.exp(-2.0 * math.pi**2 * sigma_squared * (j / (j + 1.0))))


def _log_pmf(values: FloatArray, variance: float) -> FloatArray:
    # Poisson summation: sum_x exp(-x^2 / 2v) = sqrt(2 pi v) (1 + 2 sum_m exp(-2 pi^2 v m^2)); v >= 1.
    images = 2.0 * sum(math.exp(-2.0 * math.pi**2 * variance * m * m) for m in (1, 2))
    log_normaliser = 0.5 * math.log(2.0 * math.pi * variance) + math.log1p(images)
    result: FloatArray = -(values * values) / (2.0 * variance) - log_normaliser
    return result


def _support(first: int, variance: int) -> FloatArray:
    """Return ``first, first + 1, ...`` until the terms are below 1e-19 of the largest."""
    sigma = math.sqrt(variance)
    start = max(first, 0) / sigma
    # (start + x)^2 / 2 - start^2 / 2 >= 44 at the end.
    reach = math.sqrt(start * start + 88.0) - start
    return np.arange(first, max(first, 0) + math.ceil(sigma * reach) + 2, dtype=np.float64)


def _upper_sum(variance: int, at_least: int) -> float:
    """Return ``Pr[Y >= at_least]`` without margin, the end of the series bounded by a geometric one."""
    y = _support(at_least, variance)
    mass = np.exp(_log_pmf(y, float(variance)))
    last = float(y[-1])
    ratio = math.exp(-(2.0 * last + 1.0) / (2.0 * variance))
    return math.fsum(mass) + float(mass[-1]) * ratio / (1.0 - ratio)


def _square_over(values: LongArray, denominator: int) -> tuple[LongArray, LongArray]:
    """Return quotient and remainder of ``values^2 / denominator`` without overflow."""
    magnitude = np.abs(values)
    far = magnitude > _SQUARE_SAFE
    whole, rest = np.divmod(np.where(far, 0, magnitude) ** 2, denominator)
    if far.any():
        # Unbounded integers, for proposals beyond 45 scales (probability below e^-45 each).
        square = magnitude[far].astype(object) ** 2
        whole[far], rest[far] = (
            (square // denominator).astype(np.int64),
            (square % denominator).astype(np.int64),
        )
    return whole, rest


def _check_sigma_squared(sigma_squared: int) -> int:
    if isinstance(sigma_squared, bool) or not isinstance(sigma_squared, (int, np.integer)):
        raise InputError(f"sigma_squared must be an integer. Got {sigma_squared!r}.")
    if not 1 <= sigma_squared <= SIGMA_SQUARED_MAX:
        raise InputError(f"sigma_squared must be in [1, {SIGMA_SQUARED_MAX}]. Got {sigma_squared}.")
    return int(sigma_squared)  # a numpy integer does not mix with 2^64 - 1


def _check_fold(w: int, epsilon: float) -> None:
    if w < 1:
        raise InputError(f"The number of schemes w must be at least 1. Got {w}.")
    if not (epsilon >= 0.0 and math.isfinite(epsilon)):
        raise InputError(f"epsilon must be a finite number of at least 0. Got {epsilon!r}.")
