r"""Minimality: that a scheme had to be given up tells something of the values (Wong, Fu, Wang and Pei 2007).

The attacker knows the people, hence the classes of a finer scheme (*parts*) that each released class was put together
from, and the algorithm: it takes the finer scheme if that meets the condition. The finer scheme was not taken, so it
violates the condition: in some part of some class a value is held by more than a share α. Before this is known, all
ways to deal the values of a class out to its rows are equally likely. Afterwards those are in which some part violates.
With the event ``E`` that any part of any class violates, for any of the values,

.. math:: \Pr(x = s \mid E) = \Pr(x = s) \, \Pr(E \mid x = s) / \Pr(E).

Classes are independent of each other. Of a class, ``Pr(E)`` and ``Pr(E | x = s)`` are counted over all ways to deal
*all* of its values out, as whole numbers (*tested*, exact), in classes of few rows or values. Of a larger class
each value by itself is dealt out exactly, and the violations by different values are taken for independent given
``x = s`` (*heuristic*): ``Pr(¬E | x = s) = Π_v Pr(¬E_v | x = s)``.

If parts are smaller than ``k``, the finer scheme violates the condition whatever the values are: nothing is learned.
What several finer schemes tell together is not looked at.

References
----------
R. Wong, A. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.classes.bounds import TOLERANCE, fails
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

__all__ = ["Credibility", "Parts", "credibility"]

MOST_STEPS = 2**33
"""Additions that larger classes may take in all: some minutes."""

EXACT_ROWS, EXACT_STEPS = 2_000, 100_000
"""Rows of a class, and ways to fill its parts, of which all are counted."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Released classes, and the classes of a finer scheme they were put together from.

    Attributes
    ----------
    owner : ndarray of int64, shape (u,)
        Class of each part, ascending; every class has one.
    rows : ndarray of int64, shape (u,)
        Rows of each part, at least 1.
    held : SensitiveRuns
        Rows of each class with each value.

    Raises
    ------
    InputError
        If the parts are not so, or do not make up the classes.
    """

    owner: LongArray
    rows: LongArray
    held: SensitiveRuns

    def __post_init__(self) -> None:
        """Refuse parts that are none."""
        m = self.held.n_classes
        if len(self.owner) != len(self.rows) or (self.rows < 1).any():
            raise InputError("Minimality attack: every part must have a class and at least 1 row.")
        if (np.diff(self.owner) < 0).any() or not np.array_equal(np.unique(self.owner), np.arange(m)):
            raise InputError("Minimality attack: parts must be in the order of their classes, and each must have one.")
        if not np.array_equal(np.bincount(self.owner, self.rows, m).astype(np.int64), self.held.rows):
            raise InputError("Minimality attack: the parts of a class must have as many rows as the class.")


@dataclass(frozen=True, eq=False)
class Credibility:
    """What the attacker believes of the members of each part.

    Attributes
    ----------
    part, run : ndarray of int64, shape (n,)
        Every part with every value of its class: positions among the parts, and among the runs.
    before, after : ndarray of float64, shape (n,)
        Probability that a member of the part holds the value, without and with the knowledge that the finer scheme
        violates the condition.
    exact : bool
        Whether no violation was taken for independent of another one.
    """

    part: LongArray
    run: LongArray
    before: FloatArray
    after: FloatArray
    exact: bool

    def believed(self, alpha: float, parts: int) -> BoolArray:
        """Parts of whose members some value is believed with more than a probability; ndarray of bool, shape (u,)."""
        result: BoolArray = np.zeros(parts, dtype=np.bool_)
        result[self.part[fails(self.after, alpha, "at most")]] = True
        return result


def credibility(parts: Parts, *, alpha: float, k: int = 1) -> Credibility | None:
    """Find what minimality tells of each part.

    Parameters
    ----------
    alpha : float
        Greatest share of a class that may hold a value, in (0, 1]; 1/ℓ. Equality is decided as by the criterion
        ``ALPHA``.
    k : int
        Least rows of a class, at least 1.

    Returns
    -------
    Credibility or None
        None if nothing is learned: the finer scheme violates the condition in any case, or cannot violate it.

    Raises
    ------
    InputError
        If the condition is none, or classes are so large that more than :data:`MOST_STEPS` steps are needed.

    Notes
    -----
    Probabilities are logarithms, so that what is very unlikely can be told from what is impossible.
    """
    if not 0 < alpha <= 1 or k < 1:
        raise InputError(f"Minimality attack: alpha must be in (0, 1] and k at least 1, not {alpha} and {k}.")
    if (parts.rows < k).any():
        return None
    held, owner = parts.held, parts.owner
    allowed = np.floor((alpha + TOLERANCE) * parts.rows).astype(np.int64)
    start = np.searchsorted(owner, np.arange(held.n_classes + 1))
    log_violated, given = np.full(held.n_classes, -np.inf), []
    told: dict[tuple[tuple[int, ...], tuple[int, ...]], _Violated] = {}
    steps = 0.0
    for c in range(held.n_classes):
        of, runs = slice(start[c], start[c + 1]), slice(held.class_start[c], held.class_start[c + 1])
        rows, count = tuple(parts.rows[of].tolist()), tuple(held.count[runs].tolist())
        # Classes alike are told once, whatever the order of their values.
        order = np.argsort(count, kind="stable")
        key = rows, tuple(sorted(count))
        if key not in told:
            counted = _by_all_values(rows, tuple(allowed[of].tolist()), key[1])
            if counted is None:
                steps += float(sum((min(n, s) + 1.0) * (s + 1.0) for n, s in product(rows, count)))
                if steps > MOST_STEPS:
                    raise InputError(
                        f"Minimality attack: more than {MOST_STEPS:.2g} steps are needed; leave the attack out, or "
                        "attack classes of fewer rows."
                    )
                counted = _by_each_value(parts.rows[of], allowed[of], key[1])
            told[key] = counted
        log_violated[c] = told[key].log_violated
        in_order = np.empty((len(rows), len(count)))
        in_order[:, order] = told[key].given
        given.append(in_order.reshape(-1))
    everywhere, others = _log_any(log_violated)
    if everywhere >= 0 or np.isneginf(everywhere):
        return None
    values = np.diff(held.class_start)[owner]
    part = np.repeat(np.arange(len(owner)), values)
    run = np.arange(len(part)) + np.repeat(held.class_start[owner] - (np.cumsum(values) - values), values)
    log_given = _either(others[owner[part]], np.concatenate(given))
    before = held.share[run]
    after = np.clip(before * np.exp(log_given - everywhere), 0.0, 1.0)
    return Credibility(part, run, before, after, all(one.exact for one in told.values()))


@dataclass(frozen=True, eq=False)
class _Violated:
    """Logarithms of the probability that a class has a part that violates, and of it given who holds what."""

    log_violated: float
    given: FloatArray
    exact: bool


def _by_all_values(rows: tuple[int, ...], allowed: tuple[int, ...], count: tuple[int, ...]) -> _Violated | None:
    """Count all ways to deal all values out; None if they are too many.

    The values of each part in turn are what the parts before have left, so that of the last one nothing is open.
    """
    n, steps = sum(rows), 0
    if n > EXACT_ROWS:
        return None
    ways = math.factorial(n)
    for size in rows:
        ways //= math.factorial(size)
    given, violated = np.full((len(rows), len(count)), -np.inf), 0
    for last in {size: i for i, size in enumerate(rows)}.values():
        left: dict[tuple[int, ...], tuple[int, int]] = {count: (1, 0)}
        for i, size in enumerate(rows):
            if i == last:
                continue
            after: dict[tuple[int, ...], tuple[int, int]] = {}
            for rest, (fine, bad) in left.items():
                fillings = _fillings(rest, size, EXACT_STEPS - steps)
                steps += len(fillings)
                if not fillings:
                    return None
                for taken, weight in fillings:
                    to = tuple(a - b for a, b in zip(rest, taken, strict=True))
                    before = after.get(to, (0, 0))
                    if max(taken) > allowed[i]:
                        after[to] = before[0], before[1] + weight * (fine + bad)
                    else:
                        after[to] = before[0] + weight * fine, before[1] + weight * bad
            left = after
        violated, holding = 0, [0] * len(count)
        for rest, (fine, bad) in left.items():
            here = fine + bad if max(rest) > allowed[last] else bad
            violated += here
            for v, x in enumerate(rest):
                holding[v] += here * x
        logs = [_log_ratio(h * n, ways * rows[last] * s) for h, s in zip(holding, count, strict=True)]
        given[[size == rows[last] for size in rows]] = logs
    return _Violated(_log_ratio(violated, ways), given, exact=True)


def _fillings(rest: tuple[int, ...], size: int, most: int) -> list[tuple[tuple[int, ...], int]]:
    """Ways to take so many of what is left of each value, and how many rows each stands for; none if too many."""
    found: list[tuple[tuple[int, ...], int, int]] = [((), size, 1)]
    beyond = sum(rest)
    for of in rest:
        beyond -= of
        found = [
            ((*taken, x), wanted - x, weight * math.comb(of, x))
            for taken, wanted, weight in found
            for x in range(max(0, wanted - beyond), min(of, wanted) + 1)
        ]
        if len(found) > most:
            return []
    return [(taken, weight) for taken, _, weight in found]


def _log_ratio(numerator: int, denominator: int) -> float:
    """Logarithm of a ratio of whole numbers, 0 if they are equal."""
    if not numerator:
        return -math.inf
    return 0.0 if numerator == denominator else math.log(numerator) - math.log(denominator)


def _by_each_value(rows: LongArray, allowed: LongArray, count: tuple[int, ...]) -> _Violated:
    """Deal each value out by itself, and take violations by different ones for independent given who holds what."""
    n, values = int(rows.sum()), len(count)
    log_violated = np.full(values, -np.inf)
    # What the violation by a value says of who holds it, and of who holds another one.
    own, other = np.full((values, len(rows)), -np.inf), np.full((values, len(rows)), -np.inf)
    told: dict[int, int] = {}
    for v, s in enumerate(count):
        if s in told:
            log_violated[v], own[v], other[v] = log_violated[told[s]], own[told[s]], other[told[s]]
            continue
        told[s] = v
        if not (np.minimum(rows, s) > allowed).any():
            continue
        log_probability, log_expected = _violated(rows, allowed, s)
        log_violated[v] = log_probability if log_probability < -1e-12 else 0.0  # certain, but for rounding
        log_share = log_expected - np.log(rows)  # of who holds the value, where it is violated
        own[v] = np.minimum(log_share + math.log(n) - math.log(s), 0.0)
        if n > s:
            with np.errstate(divide="ignore", invalid="ignore"):
                lacks = log_violated[v] + np.log1p(-np.exp(np.minimum(log_share - log_violated[v], 0.0)))
            other[v] = np.minimum(lacks + math.log(n) - math.log(n - s), 0.0)
    given = np.stack([_either(_log_any(other[:, i])[1], own[:, i]) for i in range(len(rows))])
    return _Violated(_log_any(log_violated)[0], given, exact=False)


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
    return np.asarray(
        scipy.special.gammaln(n + 1.0) - scipy.special.gammaln(x + 1.0) - scipy.special.gammaln(n - x + 1.0)
    )


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


def _either(one: FloatArray, other: FloatArray) -> FloatArray:
    """Logarithm of the probability that one of two independent events happens."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(one, np.log1p(-np.exp(one)) + other))


def _log_any(log_violated: FloatArray) -> tuple[float, FloatArray]:
    """Logarithm of the probability that any of independent events happens, and that any but each does."""
    if np.isneginf(log_violated).all():
        return -math.inf, log_violated
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
