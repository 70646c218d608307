"""The crowd threshold: publish a tuple only if enough sampled rows share it, and what that guarantees.

Mechanism. Map every row independently by a randomized map K to a released tuple or to none; keep every row
independently with probability beta (independently of K); group the kept rows by the *entire* released tuple;
delete every group of fewer than k rows; publish the multiset of the rest and nothing else. K may depend on
the row and on what was fixed before (public, or already released with differential privacy), not on other
rows.

**Theorem A.** Let ``a = e^epsilon``, ``epsilon >= -ln(1 - beta)``, ``gamma = 1 - (1 - beta) / a`` and
``f(j; n) = C(n, j) beta^j (1 - beta)^(n-j)``. The mechanism is ``(epsilon, delta*)``-differentially private
for adding or removing one row, with

    delta* = max over k <= n <= max(k, ceil((k-1) / gamma)) of  sum_{j >= k} [f(j; n) - a f(j; n-1)],

and this is the exact value: n rows mapped to one tuple attain it.

Proof. ``H_a(P || Q) = sum_o max(P(o) - a Q(o), 0)`` is the hockey-stick divergence; D is the table with the
row, D' without it.

(1) Draw the images under K of all rows first. Those of the other rows have one law under D and D', so both
outputs are mixtures over the same images, and H_a is jointly convex: it is at most its maximum over fixed
images. This step is what makes *local* recoding legitimate.

(2) With images fixed, the groups are independent and only the extra row's group differs: n against n - 1
rows (if its image is none, nothing differs).

(3) One group: ``T_k Bin(n, beta)`` against ``T_k Bin(n-1, beta)``, where ``T_k(j) = j`` if ``j >= k``, else
0. The likelihood ratio ``f(j; n) / f(j; n-1) = n (1 - beta) / (n - j)`` exceeds a iff ``j > gamma n``. The
atom 0 has less mass for n than for n - 1 and never contributes. Hence
``H_a = sum_{j >= J} [f(j; n) - a f(j; n-1)]`` with ``J = max(k, floor(gamma n) + 1)``. The reverse
direction is 0: ``Bin(n-1) <= Bin(n) / (1 - beta) <= a Bin(n)`` pointwise, hence also after T_k.

(4) Range of n. For n < k nothing is published. Without T_k, ``H_a(Bin(n) || Bin(n-1))`` does not rise with
n, as adding an independent Bernoulli(beta) to both is post-processing. T_k is post-processing too, and
loses nothing once ``floor(gamma n) + 1 >= k``, that is ``gamma n >= k - 1``. So no n above
``N = ceil((k-1) / gamma)`` exceeds the value at N. Up to N, ``gamma n < k - 1 + gamma < k``, so ``J = k``
throughout. QED

Computation. With ``P(n) = Pr[Bin(n) >= k] = P(n-1) + beta f(k-1; n-1)`` the sum of one n is
``L(n) = beta f(k-1; n-1) - (a - 1) P(n-1)``, and ``L(n+1) >= L(n)`` iff ``n gamma <= k - 1`` (``crowd_profile``,
step 4): the maximum is ``L(N)``, N the smallest n that attains it. beta = B / 2^32 is rational, and every number
is an integer over a power of two. a is replaced by a rational lower bound of e^epsilon, short of it by less than
2^-254. The theorem holds for that number as it stands and gives more for it, as H_a falls with a.

In beta. ``d/dbeta L(n) = q(n) (k (1 - beta) - (n - k)(beta + a - 1)) / (beta (1 - beta))`` with
``q(n) = beta f(k-1; n-1)``: it is not negative for ``n <= k / gamma``, hence not up to N, as
``N <= k / gamma``. So delta* does not fall as beta rises, as long as ``epsilon >= -ln(1 - beta)``, and bisection
for the greatest beta of a k is exact.

Status: *proved* (Theorem A; no float enters the certificate), assuming independent uniform words for the
keep decisions (computationally: the PRF of ``randomness``), one draw per row, and that nothing but the
histogram of whole tuples is published. :func:`survival_rows` is *tested* (float64) and carries no
guarantee.

With K deterministic and public this is strongly-safe k-anonymization after sampling (Li, Qardaji and Su
2012), whose bound ``d(k, beta, epsilon)`` drops the negative term; the exact k is about 10 to 35 % smaller.

References
----------
N. Li, W. Qardaji, D. Su, "On Sampling, Anonymization, and Differential Privacy Or, k-Anonymization Meets
Differential Privacy", ASIACCS 2012. J. Gehrke, M. Hay, E. Lui, R. Pass, "Crowd-Blending Privacy", CRYPTO
2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.numeric.rational import PRECISION, exp_scaled, rational, round_up
from privrisk_spark.kernels.random.keyed import KEEP_BITS

KEEP_UNIT = 1 << KEEP_BITS
"""A keep numerator B stands for the keep probability B / 2^32."""

EPSILON_MAX = 64
"""Largest epsilon taken: beyond it there is nothing to protect, and the rationals only grow."""

CROWD_MAX = 5_000
"""Largest threshold that is searched for: thresholds grow as e^epsilon, and certificates with their square."""

_ROWS_MAX = 1 << 40


@dataclass(frozen=True)
class Certificate:
    """What a crowd threshold guarantees.

    Attributes
    ----------
    delta : Fraction
        Upper bound of delta*, exact but for the lower bound of e^epsilon (relative error below 2^-200 in
        practice).
    delta_float : float
        The least float64 not below ``delta``.
    worst_n : int
        Rows in one tuple at which it is attained; the smallest such number.
    """

    delta: Fraction
    delta_float: float
    worst_n: int


def certificate(k: int, keep_numerator: int, epsilon: Fraction | str | float) -> Certificate:
    """Bound delta of sampling with a crowd threshold (Theorem A).

    Parameters
    ----------
    k : int
        Least number of sampled rows of a published tuple, at least 1.
    keep_numerator : int
        B of the keep probability B / 2^32, in [1, 2^32).
    epsilon : Fraction, str or float
        Positive, at most EPSILON_MAX. A string is a decimal or a ratio; a float is taken as the shortest
        decimal that denotes it, so 0.7 means 7/10.

    Raises
    ------
    InputError
        If an argument is out of range, or the keep probability exceeds ``1 - e^-epsilon``.
    """
    value, bits, worst = _scaled(k, keep_numerator, epsilon)
    delta = Fraction(value, 1 << bits)
    return Certificate(delta, round_up(delta), worst)


def keep_numerator(epsilon: Fraction | str | float, fraction: Fraction | str | float = 1) -> int:
    """Return the keep numerator ``floor((1 - e^-epsilon) 2^32 fraction)``, never rounded up.

    Parameters
    ----------
    epsilon : Fraction, str or float
        As for :func:`certificate`.
    fraction : Fraction, str or float
        Share of the largest admissible keep probability, in (0, 1].

    Returns
    -------
    int
        B, in [1, 2^32): :func:`certificate` accepts it for this epsilon.

    Raises
    ------
    InputError
        If an argument is out of range, or nothing would be kept.
    """
    share = rational(fraction, "The keep fraction")
    if not 0 < share <= 1:
        raise InputError(f"The keep fraction must be above 0 and at most 1. Got {fraction}.")
    growth = exp_scaled(_epsilon(epsilon))
    kept = (1 - Fraction(1 << PRECISION, growth)) * KEEP_UNIT * share
    numerator = math.floor(kept)
    if numerator < 1:
        raise InputError(
            f"epsilon {epsilon} and keep fraction {fraction} keep fewer than one row in 2^{KEEP_BITS}."
            " Raise one of them."
        )
    return numerator


def least_crowd(
    delta: Fraction | str | float, keep_numerator: int, epsilon: Fraction | str | float, floor: int = 10
) -> int:
    """Return the smallest crowd threshold that meets a delta.

    The certificate does not rise with k (a higher threshold is post-processing of a lower one), so
    bisection is exact.

    Parameters
    ----------
    delta : Fraction, str or float
        In (0, 1); a float as for ``epsilon``.
    keep_numerator, epsilon
        As for :func:`certificate`.
    floor : int
        Least k to return, whatever the delta permits.

    Returns
    -------
    int
        The smallest ``k >= floor`` with ``certificate(k, ...).delta <= delta``.

    Raises
    ------
    InputError
        If an argument is out of range, or it takes a threshold above :data:`CROWD_MAX`.
    """
    target = rational(delta, "delta")
    if not 0 < target < 1:
        raise InputError(f"delta must be between 0 and 1, both excluded. Got {delta}.")
    if floor < 1:
        raise InputError(f"The least crowd threshold must be at least 1. Got {floor}.")

    def enough(k: int) -> bool:
        return _meets(target, k, keep_numerator, epsilon)

    if enough(floor):
        return floor
    low, high = floor, 2 * floor
    while not enough(high):
        if high >= CROWD_MAX:
            raise InputError(
                f"epsilon {float(rational(epsilon, 'epsilon')):g} with delta {float(target):g} takes a crowd threshold "
                f"above {CROWD_MAX:,} rows: lower epsilon or the keep fraction, or raise delta."
            )
        low, high = high, max(floor, min(2 * high, CROWD_MAX))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def greatest_keep(delta: Fraction | str | float, k: int, epsilon: Fraction | str | float, at_least: int) -> int:
    """Return the greatest keep numerator for which a crowd threshold still meets a delta.

    The certificate does not fall as the keep probability rises (module docstring), so bisection is exact.

    Parameters
    ----------
    delta : Fraction, str or float
        As for :func:`least_crowd`.
    k, epsilon
        As for :func:`certificate`.
    at_least : int
        A keep numerator for which it does.

    Returns
    -------
    int
        The greatest B of at most ``(1 - e^-epsilon) 2^32`` with ``certificate(k, B, epsilon).delta <= delta``.

    Raises
    ------
    InputError
        If an argument is out of range, or the delta is not met with ``at_least``.
    """
    target = rational(delta, "delta")

    def enough(numerator: int) -> bool:
        return _meets(target, k, numerator, epsilon)

    if not enough(at_least):
        raise InputError(
            f"A crowd threshold of {k} does not meet delta {float(target):g} with keep numerator {at_least}."
        )
    low, high = at_least, keep_numerator(epsilon)
    if enough(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def survival_rows(k: int, keep_numerator: int, probability: float) -> int:
    """Return how many rows a tuple needs to be published with the given probability.

    Parameters
    ----------
    k : int
        Crowd threshold, at least 1.
    keep_numerator : int
        B of the keep probability B / 2^32, in [1, 2^32].
    probability : float
        In (0, 1).

    Returns
    -------
    int
        The smallest n with ``Pr[Bin(n, B / 2^32) >= k] >= probability``, computed in float64.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    if k < 1:
        raise InputError(f"The crowd threshold k must be at least 1. Got {k}.")
    if not 1 <= keep_numerator <= KEEP_UNIT:
        raise InputError(f"The keep numerator must be in [1, 2^{KEEP_BITS}]. Got {keep_numerator}.")
    if not 0.0 < probability < 1.0:
        raise InputError(f"The probability must be between 0 and 1, both excluded. Got {probability}.")
    beta = keep_numerator / KEEP_UNIT

    def survives(n: int) -> bool:
        return float(scipy.special.betainc(float(k), float(n - k + 1), beta)) >= probability

    low, high = k - 1, k
    while not survives(high):
        low, high = high, 2 * high
        if high > _ROWS_MAX:
            raise InputError(f"More than 2^40 rows are needed to publish a tuple with probability {probability}.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if survives(middle) else (middle, high)
    return high


def _scaled(k: int, keep_numerator: int, epsilon: Fraction | str | float) -> tuple[int, int, int]:
    """Return v and b of the certificate ``v / 2^b``, which takes long to reduce, and N."""
    if k < 1:
        raise InputError(f"The crowd threshold k must be at least 1. Got {k}.")
    exact = _epsilon(epsilon)
    growth = exp_scaled(exact)
    _check_keep(keep_numerator, exact, growth)
    drop = KEEP_UNIT - keep_numerator
    # gamma = 1 - (drop / 2^32) / (growth / 2^256)
    gamma = 1 - Fraction(drop << PRECISION, growth << KEEP_BITS)
    worst = max(k, math.ceil((k - 1) / gamma))
    others = worst - 1
    # Everything over 2^(32 (N-1)).
    mass = math.comb(others, k - 1) * keep_numerator ** (k - 1) * drop ** (others - k + 1)
    upper = _at_least(k, others, keep_numerator, drop)
    value = (keep_numerator * mass << PRECISION) - ((growth - (1 << PRECISION)) * upper << KEEP_BITS)
    return value, KEEP_BITS * worst + PRECISION, worst


def _meets(target: Fraction, k: int, keep_numerator: int, epsilon: Fraction | str | float) -> bool:
    """Whether the certificate is at most a delta."""
    value, bits, _ = _scaled(k, keep_numerator, epsilon)
    return value * target.denominator <= target.numerator << bits


def _at_least(k: int, n: int, keep: int, drop: int) -> int:
    """Return ``2^(32 n) Pr[Bin(n) >= k]``: the sum of the shorter tail, its common powers taken out."""
    if n < k:
        return 0
    upper = n - k + 1 <= k
    terms, rising, falling = (n - k + 1, drop, keep) if upper else (k, keep, drop)
    # Horner, from the outermost outcome inwards: sum_j C(n, j) rising^j falling^(terms - 1 - j).
    total: int = 0
    power: int = 1
    choices = 1
    for j in range(terms):
        total = total * falling + choices * power
        power *= rising
        choices = choices * (n - j) // (j + 1)
    total *= pow(falling, n - terms + 1)
    return total if upper else (1 << KEEP_BITS * n) - total


def _check_keep(keep_numerator: int, epsilon: Fraction, growth: int) -> None:
    if not 1 <= keep_numerator < KEEP_UNIT:
        raise InputError(f"The keep numerator must be in [1, 2^{KEEP_BITS}). Got {keep_numerator}.")
    # 1 / (1 - beta) <= e^epsilon
    if growth * (KEEP_UNIT - keep_numerator) < KEEP_UNIT << PRECISION:
        most = math.floor((1 - Fraction(1 << PRECISION, growth)) * KEEP_UNIT)
        raise InputError(
            f"The keep probability exceeds 1 - e^-epsilon at epsilon {float(epsilon):g}: the keep numerator"
            f" may be at most {most}. Got {keep_numerator}."
        )


def _epsilon(epsilon: Fraction | str | float) -> Fraction:
    exact = rational(epsilon, "epsilon")
    if not 0 < exact <= EPSILON_MAX:
        raise InputError(f"epsilon must be positive and at most {EPSILON_MAX}. Got {epsilon}.")
    return exact
