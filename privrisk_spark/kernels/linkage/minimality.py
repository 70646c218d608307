r"""Minimality: that a class had to be generalized tells something of its values (Wong, Fu, Wang and Pei 2007).

The intruder knows the people, hence the finer classes (*parts*) that a released class was put together from, and the
algorithm: it generalizes no more than its condition asks. So if the parts had met the condition they would have been
released as they are; at least one of them violates it. Of a value ``s`` held by ``S`` members of the class, that part
``i`` holds ``x_i`` of them is, before anything is known, as likely as there are ways to deal ``s`` out:

.. math:: \Pr(x_1, …, x_u) ∝ \prod_i \binom{n_i}{x_i}, \quad \sum_i x_i = S,

and afterwards the same over those ``x`` only in which a part violates the condition. The *credibility* that a member of
part ``i`` holds ``s`` is ``E[x_i | violated] / n_i``; without the knowledge it is ``S/n``. A release has
m-confidentiality if none is above ``1/m``.

What is treated is the paper's case, one value ``s`` against all others, limited to a share α of each class (simplified
ℓ-diversity with α = 1/ℓ; (α, k)-anonymity: a part of fewer than ``k`` rows violates whatever it holds, so that nothing
is learned of values). Under local recoding some rows of a part may be released ungeneralized: their values are seen,
and are added. Under global recoding all classes are generalized at once, if a part of any of them violates. Against
other conditions, and knowing that each of several finer schemes failed, an intruder may learn more, or less.

Status: *tested*, against enumeration of all tables that are consistent with the release.

References
----------
R. Wong, A. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.classes.bounds import TOLERANCE, fails
from privrisk_spark.kernels.linkage.evidence import Found, found

__all__ = ["Credibility", "Parts", "credibility"]

MOST_STEPS = 2**33
"""Additions that may be needed, at most: some minutes."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Released classes, and the finer ones they were put together from, with one sensitive value.

    Attributes
    ----------
    owner : ndarray of int64, shape (u,)
        Class of each part, ascending; every class has one.
    rows : ndarray of int64, shape (u,)
        Rows of each part in the class, at least 1.
    sensitive : ndarray of int64, shape (m,)
        Rows of each class with the value.
    outside, outside_sensitive : ndarray of int64, shape (u,), or None
        Rows of each part that are released ungeneralized, and those of them with the value; none if not given.

    Raises
    ------
    InputError
        If they are not so.
    """

    owner: LongArray
    rows: LongArray
    sensitive: LongArray
    outside: LongArray | None = None
    outside_sensitive: LongArray | None = None

    def __post_init__(self) -> None:
        """Refuse parts that are none."""
        m = len(self.sensitive)
        if len(self.owner) != len(self.rows) or (self.rows < 1).any():
            raise InputError("Minimality attack: every part must have a class and at least 1 row in it.")
        if (np.diff(self.owner) < 0).any() or not np.array_equal(np.unique(self.owner), np.arange(m)):
            raise InputError("Minimality attack: parts must be in the order of their classes, and each must have one.")
        if (self.sensitive < 0).any() or (self.sensitive > self.sizes).any():
            raise InputError("Minimality attack: a class cannot hold a value in more rows than it has.")
        if (self.outside is None) != (self.outside_sensitive is None):
            raise InputError("Minimality attack: of rows outside a class, all and those with the value are needed.")
        if self.outside is not None and self.outside_sensitive is not None:
            wrong = (self.outside_sensitive < 0) | (self.outside_sensitive > self.outside)
            if self.outside.shape != self.rows.shape or self.outside_sensitive.shape != self.rows.shape or wrong.any():
                raise InputError("Minimality attack: a value cannot be held by more rows than there are.")

    @property
    def sizes(self) -> LongArray:
        """Rows of each class, ndarray of int64, shape (m,)."""
        total = np.zeros(len(self.sensitive), dtype=np.int64)
        np.add.at(total, self.owner, self.rows)
        return total

    def allowed(self, alpha: float, k: int) -> LongArray:
        """Greatest number of rows with the value that each part may have in its class; -1 if it violates anyway.

        Parameters
        ----------
        alpha : float
            Equality is decided as by the criterion ``ALPHA``.
        k : int
        """
        beyond = np.zeros_like(self.rows) if self.outside is None else self.outside
        seen = np.zeros_like(self.rows) if self.outside_sensitive is None else self.outside_sensitive
        total = self.rows + beyond
        most = np.floor((alpha + TOLERANCE) * total).astype(np.int64) - seen
        return np.where(total < k, -1, np.clip(most, -1, self.rows))


@dataclass(frozen=True, eq=False)
class Credibility:
    """What an intruder believes of the members of each part.

    Attributes
    ----------
    people : ndarray of int64, shape (u,)
    before, after : ndarray of float64, shape (u,)
        Probability that one of them holds the value, without and with the knowledge that the class was generalized
        because it had to be.
    possible : ndarray of bool, shape (u,)
        Whether the condition could be violated at all. If not, the class was generalized for another reason, and
        nothing is learned.
    """

    people: LongArray
    before: FloatArray
    after: FloatArray
    possible: BoolArray

    @property
    def m(self) -> float:
        """Greatest m of m-confidentiality: one over the greatest credibility, inf if nobody can hold the value."""
        greatest = float(self.after.max(initial=0.0))
        return 1.0 / greatest if greatest > 0 else math.inf

    def believed(self, alpha: float) -> BoolArray:
        """Parts of whose members the value is believed with more than a probability; ndarray of bool, shape (u,)."""
        return fails(self.after, alpha, "at most")

    def above(self, alpha: float) -> Found:
        """People of whom the value is believed with more than a probability, with limits."""
        return found(self.believed(alpha).astype(np.float64), self.people)


def credibility(parts: Parts, *, alpha: float, k: int = 1, recoding: Literal["local", "global"]) -> Credibility:
    """Find what minimality tells of each part.

    Parameters
    ----------
    parts : Parts
    alpha : float
        Greatest share of a class that may hold the value, in (0, 1]; 1/ℓ.
    k : int
        Least rows of a class, at least 1.
    recoding : {"local", "global"}
        Whether each class is generalized because one of its own parts violates the condition, or all because one of
        any class does.

    Raises
    ------
    InputError
        If the condition is none, or classes are so large that more than :data:`MOST_STEPS` steps are needed.

    Notes
    -----
    The weights of all beginnings and all ends of the list of a class's parts are kept, once with and once without a
    violation among them, so that no small probability is a difference of large ones. Weights are logarithms. There are
    ``(x_i + 1)(S + 1)`` steps for each number ``x_i`` a part may hold at most.
    """
    if not 0 < alpha <= 1 or k < 1:
        raise InputError(f"Minimality attack: alpha must be in (0, 1] and k at least 1, not {alpha} and {k}.")
    m, owner = len(parts.sensitive), parts.owner
    sizes, allowed = parts.sizes, parts.allowed(alpha, k)
    steps = float(((np.minimum(parts.rows, parts.sensitive[owner]) + 1.0) * (parts.sensitive[owner] + 1.0)).sum())
    if steps > MOST_STEPS:
        raise InputError(
            f"Minimality attack: {steps:.2g} steps are needed, more than {MOST_STEPS:.2g}; attack a rarer value, "
            "or classes of fewer rows."
        )
    start = np.searchsorted(owner, np.arange(m + 1))
    before = np.asarray(parts.sensitive[owner] / sizes[owner])
    after, log_violated = before.copy(), np.full(m, -np.inf)
    # As many of the value as fit into a part, with the others full, are the most it can hold.
    possible_in = np.minimum(parts.rows, parts.sensitive[owner]) > allowed
    possible = np.zeros(m, dtype=np.bool_)
    np.logical_or.at(possible, owner, possible_in)
    # Classes of parts alike, in whatever order, are told once.
    order = np.lexsort((allowed, parts.rows, owner))
    rows, allowed = parts.rows[order], allowed[order]
    told: dict[tuple[int, bytes, bytes], tuple[float, FloatArray]] = {}
    for c in np.flatnonzero(possible).tolist():
        those = slice(start[c], start[c + 1])
        key = (int(parts.sensitive[c]), rows[those].tobytes(), allowed[those].tobytes())
        if key not in told:
            told[key] = _violated(rows[those], allowed[those], key[0])
        log_violated[c], log_expected = told[key]
        after[order[those]] = np.exp(log_expected - log_violated[c]) / rows[those]
    if recoding == "global":
        after = _of_any(parts, before, after, log_violated)
        possible = np.full(m, possible.any())
    return Credibility(parts.rows, before, np.clip(after, 0.0, 1.0), possible[owner])


def _violated(rows: LongArray, allowed: LongArray, sensitive: int) -> tuple[float, FloatArray]:
    """Logarithm of the probability that a part violates, and of the expected ``x_i`` of each part where one does."""
    u = len(rows)
    weights = [_log_choices(int(n), min(int(n), sensitive)) for n in rows]
    good = [np.where(np.arange(len(w)) <= a, w, -np.inf) for w, a in zip(weights, allowed.tolist(), strict=True)]
    nothing = np.full(sensitive + 1, -np.inf)
    nothing[0] = 0.0
    ends: list[tuple[FloatArray, FloatArray]] = [(nothing, np.full(sensitive + 1, -np.inf))]
    for i in range(u - 1, 0, -1):
        ends.append(_extended(ends[-1], weights[i], good[i]))
    ends.reverse()
    whole = _log_choices(int(rows.sum()), sensitive)[sensitive]
    begun = (nothing, np.full(sensitive + 1, -np.inf))
    expected = np.full(u, -np.inf)
    total = -np.inf
    for i in range(u):
        (fine, bad), (fine_after, bad_after) = begun, ends[i]
        x = np.arange(len(weights[i]))
        others_fine = _coefficients(fine, fine_after, sensitive - x)
        others_bad = np.logaddexp(
            _coefficients(bad, np.logaddexp(fine_after, bad_after), sensitive - x),
            _coefficients(fine, bad_after, sensitive - x),
        )
        here = np.logaddexp(weights[i] + others_bad, np.where(x <= allowed[i], -np.inf, weights[i]) + others_fine)
        if i == 0:
            total = float(np.logaddexp.reduce(here))
        with np.errstate(divide="ignore"):
            expected[i] = np.logaddexp.reduce(here + np.log(x))
        begun = _extended(begun, weights[i], good[i])
    return total - whole, expected - whole


def _log_choices(n: int, most: int) -> FloatArray:
    """Logarithms of ``n`` choose ``x`` for ``x`` from 0 to the most."""
    x = np.arange(most + 1, dtype=np.float64)
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(x + 1.0) - special.gammaln(n - x + 1.0))


def _extended(
    begun: tuple[FloatArray, FloatArray], weight: FloatArray, good: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """One part more: sums of weights without and with a violation."""
    fine, bad = begun
    broken = np.where(np.isneginf(good), weight, -np.inf)
    return _product(fine, good), np.logaddexp(_product(bad, weight), _product(fine, broken))


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Product of two polynomials of which the logarithms of the coefficients are given, as long as the first one."""
    found = np.full(len(one), -np.inf)
    for x in np.flatnonzero(~np.isneginf(other)):
        found[x:] = np.logaddexp(found[x:], other[x] + one[: len(one) - x])
    return found


def _coefficients(one: FloatArray, other: FloatArray, at: LongArray) -> FloatArray:
    """Some coefficients of the product of two polynomials of one length, likewise."""
    return np.array([np.logaddexp.reduce(one[: r + 1] + other[r::-1]) for r in at.tolist()])


def _of_any(parts: Parts, before: FloatArray, after: FloatArray, log_violated: FloatArray) -> FloatArray:
    """Credibility where a part of any class violates; classes are independent given how often they hold the value."""
    if np.isneginf(log_violated).all():
        return before
    violated, owner = np.exp(np.minimum(log_violated, 0.0)), parts.owner
    everywhere, others = _log_any(np.minimum(log_violated, 0.0))
    # Either the class itself violates, or it does not and another does.
    itself = np.exp(log_violated - everywhere)[owner]
    spared = np.maximum(before - after * violated[owner], 0.0)
    return np.asarray(after * itself + spared * np.exp(others - everywhere)[owner])


def _log_any(log_violated: FloatArray) -> tuple[float, FloatArray]:
    """Logarithm of the probability that any class violates, and that any but each does."""
    violated = np.exp(log_violated)
    with np.errstate(divide="ignore"):
        log_spared = np.log1p(-violated)
    surely = np.isneginf(log_spared)
    each = np.where(surely, 0.0, log_spared)
    spared = np.append(each.sum(), each.sum() - each)
    # So improbable that probabilities add up, where they cannot be told from 0.
    greatest = float(log_violated.max())
    scaled = np.exp(log_violated - greatest)
    sums = np.maximum(np.append(scaled.sum(), scaled.sum() - scaled), 0.0)
    with np.errstate(divide="ignore"):
        found = np.where(spared < -1e-8, np.log(-np.expm1(np.minimum(spared, 0.0))), greatest + np.log(sums))
    found[np.append(surely.sum(), surely.sum() - surely) > 0] = 0.0
    return float(found[0]), found[1:]
