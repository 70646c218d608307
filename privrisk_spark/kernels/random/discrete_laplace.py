"""Discrete Laplace noise for counts: exact sampler, law, and the admission calibrated to it.

``Lap_Z(b)`` is the law on the integers with ``Pr[Y = y]`` proportional to ``exp(-|y| / b)``; the scale b is rational.
With ``r = exp(-1/b)``:  ``Pr[Y = y] = (1 - r) / (1 + r) r^|y|``  and, for ``m >= 0``,  ``Pr[Y >= m] = r^m / (1 + r)
= 1 / (e^(m/b) + e^((m-1)/b))``.

Status.

* :func:`draw`, :func:`sample`: *proved* exact, given uniform independent words (computationally: the PRF of
  ``randomness``). Canonne, Kamath and Steinke 2020, Algorithm 2, in integer arithmetic throughout.
* :func:`tail`, :func:`delta_of_selection`, :func:`calibrate_laplace`: *proved*; rational arithmetic with exponentials
  bounded to the safe side, and no float but the printed delta, which is rounded up.

Privacy of w counts. A row is in one cell of each of w schemes, so with and without it w counts differ by one, and the
probability of any w noisy counts changes by a factor of at most ``exp(w / b)``: they are ``w / b``-differentially
private, with delta 0. Hence ``b = w / epsilon``. What is left is the event that a cell held by that row alone is
admitted (at most w such cells, each of count one): ``delta_select = 1 - (1 - Pr[1 + Y >= T])^w`` (Korolova et al.
2009, Wilson et al. 2020). The noise grows with w where the Gaussian's grows with its root, so this is the better one
for few schemes only.

References
----------
C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020. A. Ghosh, T.
Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009 (the law). A. Korolova,
K. Kenthapadi, N. Mishra, A. Ntoulas, WWW 2009; R. Wilson et al., PETS 2020 (noisy thresholds).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.json_values import JsonDocument
from privrisk_spark.kernels.arrays import IndexArray, LongArray
from privrisk_spark.kernels.numeric.rational import any_of, exp_bounds, round_up
from privrisk_spark.kernels.random.coins import below, bernoulli_exp_fraction, successes
from privrisk_spark.kernels.random.keyed import Streams

SCALE_MAX = 1 << 26
"""Largest scale, in records."""

DENOMINATOR_MAX = 1 << 20
"""Largest denominator of a scale: keeps the sampler's integers below 2^63 but with probability exp(-2^16)."""

_CHUNK = 1 << 15  # elements sampled together; streams are per element, so this changes speed only


@dataclass(frozen=True)
class LaplaceAdmission(JsonDocument):
    """Noise and threshold of an admission under discrete Laplace noise.

    Attributes
    ----------
    scale : Fraction
        b of the discrete Laplace noise added to each count, in records.
    threshold : int
        Least noisy count that may be admitted, in records.
    delta_select : float
        Achieved probability, rounded up, that one of w cells holding a single row is admitted.
    """

    scale: Fraction
    threshold: int
    delta_select: float

    json_keys = ("noise:family", "scale", "T:threshold", "delta_select")
    family = "laplace"

    @property
    def noise(self) -> str:
        """The noise, in words."""
        return f"discrete Laplace noise (scale = {self.scale})"

    @property
    def delta(self) -> Fraction:
        """Delta of the admission."""
        return Fraction(self.delta_select)

    def sample(self, streams: Streams, n: int) -> LongArray:
        """Draw one noise per element; see :func:`sample`."""
        return sample(streams, n, scale=self.scale)


def sample(streams: Streams, n: int, *, scale: Fraction) -> LongArray:
    """Draw one discrete Laplace per element, exactly.

    Parameters
    ----------
    streams : Streams
        One stream per element.
    n : int
        Number of elements; must be ``streams.size``.
    scale : Fraction
        Positive, at most SCALE_MAX, with a denominator of at most DENOMINATOR_MAX; in records.

    Returns
    -------
    ndarray of int64, shape (n,)
        An element's value is a function of its own stream only.

    Raises
    ------
    InputError
        If ``n`` or ``scale`` is not admissible.
    """
    scale = _check_scale(scale)
    if n != streams.size:
        raise InputError(f"There must be one stream per element: {streams.size}. Got n = {n}.")
    values = np.zeros(n, dtype=np.int64)
    for first in range(0, n, _CHUNK):
        chunk = np.arange(first, min(first + _CHUNK, n), dtype=np.intp)
        values[chunk] = draw(streams, chunk, scale.numerator, scale.denominator)
    return values


def draw(streams: Streams, index: IndexArray, numerator: int, denominator: int = 1) -> LongArray:
    """Draw ``Pr[y] ~ exp(-|y| denominator / numerator)`` for named elements (Algorithm 2).

    A uniform U below the numerator is kept with probability ``exp(-U / numerator)``; with V successes of probability
    1/e before the first failure, ``U + numerator V`` is geometric, and so is its quotient by the denominator; a sign
    makes it two-sided.

    Parameters
    ----------
    index : ndarray of int, shape (r,)
        Distinct elements.
    numerator, denominator : int
        Positive; the scale is their ratio.

    Returns
    -------
    ndarray of int64, shape (r,)
    """
    values = np.zeros(index.size, dtype=np.int64)
    pending = np.arange(index.size, dtype=np.intp)
    while pending.size:
        low = below(streams, index[pending], numerator)
        started = bernoulli_exp_fraction(streams, index[pending], low, numerator)
        live, low = pending[started], low[started]
        magnitude = (low + numerator * successes(streams, index[live], None)) // denominator
        negative = below(streams, index[live], 2) == 1
        # Zero has two signs; one of them is drawn again.
        accepted = ~(negative & (magnitude == 0))
        values[live[accepted]] = np.where(negative, -magnitude, magnitude)[accepted]
        pending = np.sort(np.concatenate([pending[~started], live[~accepted]]))
    return values


def tail(scale: Fraction, at_least: int) -> Fraction:
    """Bound ``Pr[Y >= at_least]`` from above, for ``Y ~ Lap_Z(scale)``.

    Parameters
    ----------
    scale : Fraction
        As for :func:`sample`.
    at_least : int
        In records.

    Returns
    -------
    Fraction
        Above the probability by a factor of less than 1 + 2^-200; at most 1.

    Raises
    ------
    InputError
        If ``scale`` is not admissible.
    """
    scale = _check_scale(scale)
    if at_least <= 0:
        # Pr[Y >= m] = 1 - Pr[Y >= 1 - m] by symmetry.
        far, near = (exp_bounds((1 - at_least + step) / scale)[1] for step in (0, -1))
        return 1 - 1 / (far + near)
    far, near = (exp_bounds((at_least + step) / scale)[0] for step in (0, -1))
    return 1 / (far + near)


def delta_of_selection(scale: Fraction, w: int, threshold: int) -> Fraction:
    """Bound from above the probability that one of w cells holding a single row is admitted.

    Parameters
    ----------
    scale : Fraction
        As for :func:`sample`.
    w : int
        Number of schemes, at least 1.
    threshold : int
        T, in records.

    Returns
    -------
    Fraction
        At least ``1 - (1 - Pr[1 + Y >= T])^w``.

    Raises
    ------
    InputError
        If ``scale`` is not admissible.
    """
    return any_of(tail(scale, threshold - 1), w)


def calibrate_laplace(epsilon: Fraction, w: int, delta_select: Fraction) -> LaplaceAdmission:
    """Find the scale and the least threshold that admit cells privately.

    Releasing the admitted cells with their noisy counts is ``(epsilon, delta_select)``-differentially private for
    adding or removing one row (module docstring).

    Parameters
    ----------
    epsilon : Fraction
        Positive.
    w : int
        Number of schemes, at least 1.
    delta_select : Fraction
        In (0, 1).

    Returns
    -------
    LaplaceAdmission
        The scale ``w / epsilon``, rounded up to a multiple of ``1 / DENOMINATOR_MAX`` if its denominator is larger, and
        the smallest threshold with ``delta_of_selection <= delta_select``.

    Raises
    ------
    InputError
        If an argument is out of range, or the scale would exceed SCALE_MAX.
    """
    if w < 1:
        raise InputError(f"The number of schemes w must be at least 1. Got {w}.")
    if epsilon <= 0:
        raise InputError(f"The epsilon of the admission must be positive. Got {epsilon}.")
    if not 0 < delta_select < 1:
        raise InputError(f"delta_select must be between 0 and 1, both excluded. Got {float(delta_select)!r}.")
    scale = w / Fraction(epsilon)
    if scale.denominator > DENOMINATOR_MAX:
        scale = Fraction(math.ceil(scale * DENOMINATOR_MAX), DENOMINATOR_MAX)
    if scale > SCALE_MAX:
        raise InputError(
            f"Discrete Laplace noise for {w} schemes at epsilon {float(epsilon):g} would have a scale above"
            f" {SCALE_MAX} records. Raise epsilon, or take fewer schemes."
        )
    low, high = 1, 2
    while delta_of_selection(scale, w, high) > delta_select:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of_selection(scale, w, middle) <= delta_select else (middle, high)
    return LaplaceAdmission(scale, high, round_up(delta_of_selection(scale, w, high)))


def _check_scale(scale: Fraction) -> Fraction:
    if isinstance(scale, bool) or not isinstance(scale, (Fraction, int)):
        raise InputError(f"The scale must be a fraction. Got {scale!r}.")
    exact = Fraction(scale)
    if not 0 < exact <= SCALE_MAX or exact.denominator > DENOMINATOR_MAX:
        raise InputError(
            f"The scale must be positive, at most {SCALE_MAX}, with a denominator of at most {DENOMINATOR_MAX}."
            f" Got {scale}."
        )
    return exact
