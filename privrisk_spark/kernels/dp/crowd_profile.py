"""The exact privacy profile of sampling with a crowd threshold, and the pair of laws that dominates it.

Notation of ``crowd``: keep probability beta, threshold k, ``T_k Bin(n)`` what is published of a tuple that n rows map
to, ``H_a(P || Q) = sum_o max(P(o) - a Q(o), 0)``. Its Theorem A bounds H_a at one ``a = e^epsilon``; composing
releases tightly needs the whole profile, ``sup_n H_a`` for every ``a > 0`` and in both directions.

**Theorem.** Let tau be the number of rows drawn until k are kept, ``Pr[tau = n] = beta f(k-1; n-1)`` for ``n >= k``
(negative binomial). For every ``a > 0``

    sup_{n >= 1} H_a(T_k Bin(n)     || T_k Bin(n-1)) = H_a(tau - 1 || tau),
    sup_{n >= 1} H_a(T_k Bin(n-1)   || T_k Bin(n))   = H_a(tau || tau - 1).

So the mechanism with the row against the one without it is dominated, in each direction, by the waiting time for a
crowd: a row more is one row less to wait for.

Proof. Steps (1) and (2) of Theorem A hold for every a > 0: H_a of the whole mechanism is at most the supremum over n
for one tuple. (3) Let ``P(n) = Pr[Bin(n) >= k] = Pr[tau <= n]`` and ``q(n) = Pr[tau = n] = P(n) - P(n-1)``. For a >=
1 and a likelihood ratio ``f(j; n) / f(j; n-1) = n (1 - beta) / (n - j)`` that rises in j, the sum of Theorem A over
all ``j >= k`` is ``L_n(a) = P(n) - a P(n-1) = q(n) - (a - 1) P(n-1)``; it is H_a where every j >= k has a ratio of at
least a and the atom 0 one below, as for n up to N of step (4), and otherwise a lower bound of it, since H_a is the
maximum over all sets of outputs. (4) ``L_{n+1}(a) - L_n(a) = beta f(k-1; n-1) ((1 - beta) n / (n-k+1) - a)`` is not
negative iff ``n gamma <= k - 1``, ``gamma = 1 - (1 - beta) / a``. So L_n(a) rises up to ``N = max(k, ceil((k-1) /
gamma))`` and falls after, while H_a does not rise after N: the supremum is ``L_N(a) = max_n L_n(a)``. For ``1 - beta
< a < 1`` use ``H_a(P || Q) = 1 - a + a H_{1/a}(Q || P)``: for the reverse direction and ``b = 1/a > 1`` the
likelihood ratio ``(n - j) / (n (1 - beta))`` falls in j, the atom 0 has a ratio above 1, and the set that counts is
the atom alone as long as ``n gamma <= k - 1 + gamma``; then ``H_b = (1 - P(n-1)) - b (1 - P(n))``, which again rises
up to N and is the untruncated value there, non-increasing after. Rewritten, that is ``L_n(a)`` too. For ``a <= 1 -
beta`` every ratio is at least a, and H_a = 1 - a. Hence the first supremum is ``max(1 - a, max_n L_n(a))`` for every
a > 0: convex and piecewise linear, its pieces joined at ``a_n = (1 - beta) n / (n - k + 1)``, n >= k, with slopes
that differ by ``q(n)`` there. A hockey-stick curve with these joints is that of a pair with mass ``q(n)`` under Q and
``a_n q(n) = q(n + 1)`` under P at ratio a_n, and with mass ``q(k) = beta^k``, the value for large a, under P alone: Q
is the law of tau, P that of tau - 1. The other direction is the same pair turned round. QED

That a curve ``a -> sup H_a`` that dominates each mechanism's own composes is Zhu, Dong and Wang 2022, Theorem 10.

Status: *proved* upper bounds; they are computed in float64 and a bound of the rounding error is added
(:func:`profile`).

References
----------
Y. Zhu, J. Dong, Y.-X. Wang, "Optimal Accounting of Differential Privacy via Characteristic Function", AISTATS 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.dp.crowd import KEEP_UNIT
from privrisk_spark.kernels.random.keyed import KEEP_BITS

ROWS_MAX = 1 << 21
"""Most rows a profile looks at: what takes longer to gather a crowd is refused."""

_UNIT = 2.0**-53
_REACH = 60.0
_BEYOND = math.exp(-_REACH)


@dataclass(frozen=True)
class Profile:
    """Upper bounds of the two suprema at each point.

    Attributes
    ----------
    with_row : ndarray of float64
        ``sup_n H_a(T_k Bin(n) || T_k Bin(n-1))``.
    without_row : ndarray of float64
        ``sup_n H_a(T_k Bin(n-1) || T_k Bin(n))``.
    """

    with_row: FloatArray
    without_row: FloatArray


def profile(k: int, keep_numerator: int, epsilons: FloatArray) -> Profile:
    """Bound the privacy profile from above at ``a = e^epsilon`` for many epsilons at once.

    Parameters
    ----------
    k : int
        Crowd threshold, at least 1.
    keep_numerator : int
        B of the keep probability B / 2^32, in [1, 2^32).
    epsilons : ndarray of float64, shape (m,)
        Of any sign, at most 700 in magnitude.

    Returns
    -------
    Profile
        Arrays of shape (m,), in [0, 1] and at least ``1 - a``; not below the exact values, and above them by a few
        1e-16 a row of the longest wait, relative to the terms they are differences of.

    Raises
    ------
    InputError
        If an argument is out of range, or a crowd takes more than ROWS_MAX rows to gather.

    Notes
    -----
    With M the length of the law of tau: its values have a relative error below ``4 M u``, u = 2^-53 (three roundings a
    factor), sums of them ``M u`` more. ``8 M u`` of every term is added. a is rounded down, which only raises H_a. The
    row count that attains the maximum may be off by one through rounding, so its neighbours are tried too.
    """
    epsilons = np.asarray(epsilons, dtype=np.float64)
    if not (np.abs(epsilons) <= 700.0).all():
        raise InputError("The epsilons of a profile must be at most 700 in magnitude.")
    law = waiting_time(k, keep_numerator)
    # exp and the product are off by less than 2 ulp together.
    a = np.exp(epsilons) * (1.0 - 8.0 * _UNIT)
    fewer = np.concatenate([[0.0], np.cumsum(law)[:-1]])  # Pr[tau < n]
    others = np.cumsum(law[::-1])[::-1]  # Pr[tau >= n], less at most _BEYOND
    beta = keep_numerator / KEEP_UNIT
    return Profile(
        _supremum(
            law, -(a - 1.0), fewer, 1.0, k=k, gamma=1.0 - (1.0 - beta) / a, least=1.0 - a, last=others[-1] + _BEYOND
        ),
        _supremum(
            law, -(a - 1.0), others, a, k=k, gamma=1.0 - (1.0 - beta) * a, least=1.0 - a, last=others[-1] + _BEYOND
        ),
    )


def _supremum(
    law: FloatArray,
    by: FloatArray,
    sums: FloatArray,
    times: FloatArray | float,
    *,
    k: int,
    gamma: FloatArray,
    least: FloatArray,
    last: float,
) -> FloatArray:
    """Bound ``max_n times q(n) + by sums(n)`` from above: its n is ``max(k, ceil((k-1) / gamma))``."""
    margin = 8.0 * (law.size + 2) * _UNIT
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(gamma > 0.0, np.ceil((k - 1) / gamma) - k, np.inf)
    # So many rows wait with no more than the last probability, and H_a exceeds 1 - a by at most that.
    beyond = at > law.size - 2
    position = np.clip(at, 0, law.size - 1).astype(np.intp)
    best = np.full(by.shape, -np.inf)
    for step in (-1, 0, 1):
        n = np.clip(position + step, 0, law.size - 1)
        first, second = times * law[n], by * sums[n]
        best = np.maximum(best, first + second + margin * (first + np.abs(second)))
    best += np.maximum(by, 0.0) * _BEYOND
    floor = np.maximum(least, 0.0) * (1.0 + 4.0 * _UNIT)
    bound: FloatArray = np.where(beyond, floor + last, np.maximum(best, floor))
    # Without any such n, every likelihood ratio is on one side of a, but for rounding.
    bound = np.where(gamma < -1e-12, floor, bound)
    return np.minimum(bound, 1.0)


def waiting_time(k: int, keep_numerator: int) -> FloatArray:
    """Return ``Pr[tau = n]`` for n = k, k + 1, …: the rows that are drawn until k are kept.

    Parameters
    ----------
    k, keep_numerator
        As for :func:`profile`.

    Returns
    -------
    ndarray of float64, shape (m,)
        Up to an n beyond which less than e^-60 is left.

    Raises
    ------
    InputError
        If an argument is out of range, or that takes more than ROWS_MAX rows.
    """
    if k < 1:
        raise InputError(f"The crowd threshold k must be at least 1. Got {k}.")
    if not 1 <= keep_numerator < KEEP_UNIT:
        raise InputError(f"The keep numerator must be in [1, {KEEP_UNIT}). Got {keep_numerator}.")
    beta = keep_numerator / KEEP_UNIT
    # Chernoff: of n = (k + s) / beta rows fewer than k are kept with probability at most exp(-s^2 / (2 (k + s))).
    spare = _REACH + math.sqrt(_REACH * _REACH + 2.0 * _REACH * k)
    length = math.ceil((k + spare) / beta) + 2 - k
    if length > ROWS_MAX:
        raise InputError(f"A crowd of {k} takes too many rows to gather at keep probability {beta:.3g}.")
    mode = max(k, (k - 1) * KEEP_UNIT // keep_numerator + 1)
    peak, at = _probability(k, keep_numerator, mode), mode - k
    n = np.arange(k, k + length, dtype=np.float64)
    rises = (1.0 - beta) * n / (n - (k - 1))  # q(n + 1) / q(n)
    law = np.empty(length)
    law[at] = peak
    with np.errstate(under="ignore"):
        law[at + 1 :] = peak * np.cumprod(rises[at:-1])
        law[:at] = (peak * np.cumprod(1.0 / rises[:at][::-1]))[::-1]
    return law


def _probability(k: int, keep_numerator: int, n: int) -> float:
    """Return ``C(n-1, k-1) beta^k (1 - beta)^(n-k)``, off by less than 2 ulp."""
    drop, power = KEEP_UNIT - keep_numerator, n - k
    # Fixed point with 256 bits more than the result needs; rounded down after every product.
    bits = 256 + math.ceil(-2.0 * power * math.log2(drop / KEEP_UNIT))
    result, base = 1 << bits, drop << bits >> KEEP_BITS
    while power:
        if power & 1:
            result = result * base >> bits
        base = base * base >> bits
        power >>= 1
    return float(Fraction(math.comb(n - 1, k - 1) * keep_numerator**k * result, 1 << (bits + KEEP_BITS * k)))
