"""Statistics of an empirical privacy audit: what a sample of releases of two neighbouring tables can refute.

Lower bound of epsilon. A mechanism is (epsilon, delta)-differentially private only if every event S of its output has
``Pr[S | D] <= e^epsilon Pr[S | D'] + delta``. Half of the trials choose an event, the other half, which the choice has
not seen, bound its two probabilities by one-sided Clopper-Pearson limits p_low and q_up. Then, but with probability
alpha, ``epsilon >= ln((p_low - delta) / q_up)``; a bound above the claim refutes the claim. It never proves one: events
that were not tried, or are too rare for the number of trials, are out of reach.

Conformance. A cell of n rows that all map to one tuple is published with ``T_k(Bin(n, beta))`` rows, ``T_k(j) = j`` if
``j >= k``, else 0. Mean and variance over many cells, and their whole law, are held against that. This sees faults that
leave no event with a large ratio, such as a keep probability that is some percent too high.
Noisy counts of a cell of known size are held against the law of their noise in the same way, and so is the difference
of two noisy counts of one release, whose noises are independent: noise of half the scale leaves an event of a large
ratio only if a cell is tried whose count lies at the threshold, and not even then one above a claim that has room.
Schemes that the exponential mechanism picks are held against the law of its picks, whatever was picked before.

Status: the bound is *proved* up to float64 (Clopper and Pearson 1934 is exact for binomials); the tests of mean,
variance and law use normal and chi-square approximations and are *tested*.

References
----------
C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
26(4), 1934. M. Jagielski, J. Ullman, A. Oprea, "Auditing Differentially Private Machine Learning", NeurIPS 2020.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.binomial_limits import lower_limit, upper_limit

Relation = Literal[">=", "<=", "=="]

MEAN_Z = 4.0
"""The mean conforms below this many standard errors."""
FIT_P = 1e-5
"""Variance and law conform above this probability."""
LEAST_EXPECTED = 10.0
"""Values of fewer expected cells are tested together with their neighbours."""


@dataclass(frozen=True)
class Event:
    """A published number at least, at most or equal to a value.

    Attributes
    ----------
    feature : int
        Column of the number.
    relation : {">=", "<=", "=="}
    """

    feature: int
    relation: Relation
    value: int

    def occurs(self, features: LongArray) -> int:
        """In how many trials it does; features of shape (trials, columns)."""
        column = features[:, self.feature]
        found = {">=": column >= self.value, "<=": column <= self.value, "==": column == self.value}[self.relation]
        return int(np.count_nonzero(found))


@dataclass(frozen=True)
class Certified:
    """A certified lower bound of epsilon.

    Attributes
    ----------
    trials : int
        Trials on each side that certify.
    hits, other_hits : int
        How often the event occurs on the side it is likelier on, and on the other.
    epsilon : float
        At least 0.
    """

    event: Event
    trials: int
    hits: int
    other_hits: int
    epsilon: float


def epsilon_bounds(hits: LongArray, other_hits: LongArray, trials: int, *, delta: float, alpha: float) -> FloatArray:
    """``max(0, ln((p_low - delta) / q_up))``, each limit at half of alpha.

    Parameters
    ----------
    hits, other_hits : ndarrays of int64
        Occurrences of events on either side.
    trials : int
        On each side.
    delta : float
        Claimed, in [0, 1).
    alpha : float
        Probability of a bound above the truth, in (0, 1), for an event fixed beforehand.

    Returns
    -------
    ndarray of float64
    """
    surely = np.maximum(lower_limit(hits, trials, alpha / 2) - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(surely / upper_limit(other_hits, trials, alpha / 2)), 0.0)


def choose_event(one: LongArray, other: LongArray, *, delta: float, alpha: float) -> Event:
    """Return the event of one feature whose bound is the greatest on these trials.

    Parameters
    ----------
    one, other : ndarrays of int64, shape (trials, columns)
        Published numbers of releases of either table; events are to be likelier on the first.
    delta, alpha : float
        As for :func:`epsilon_bounds`.

    Returns
    -------
    Event
        Of equal bounds the first by column, relation (``>=``, ``<=``, ``==``) and value. If all are 0, the event whose
        bound is the greatest for delta = 0.
    """
    trials = len(one)
    chosen = Event(0, ">=", 0)
    # Where nothing exceeds delta, the event that comes nearest to telling the sides apart is still worth certifying.
    for allowed in (delta, 0.0):
        best = 0.0
        for feature in range(one.shape[1]):
            for relation, values, hits, other_hits in _events(one[:, feature], other[:, feature]):
                bounds = epsilon_bounds(hits, other_hits, trials, delta=allowed, alpha=alpha)
                place = int(np.argmax(bounds))
                if bounds[place] > best:
                    best, chosen = float(bounds[place]), Event(feature, relation, int(values[place]))
        if best > 0.0:
            break
    return chosen


def _events(one: LongArray, other: LongArray) -> Iterator[tuple[Relation, LongArray, LongArray, LongArray]]:
    """Relation, values, and on either side the trials in which a number is so related to each value."""
    values = np.unique(np.concatenate([one, other]))
    sides = [np.sort(side) for side in (one, other)]
    below, other_below = (np.searchsorted(side, values, side="left").astype(np.int64) for side in sides)
    up_to, other_up_to = (np.searchsorted(side, values, side="right").astype(np.int64) for side in sides)
    yield ">=", values, len(one) - below, len(other) - other_below
    yield "<=", values, up_to, other_up_to
    yield "==", values, up_to - below, other_up_to - other_below


def certify(one: LongArray, other: LongArray, *, delta: float, alpha: float) -> Certified:
    """Choose an event on the first half of the trials, and bound epsilon by the second.

    Parameters
    ----------
    one, other : ndarrays of int64, shape (trials, columns)
        As for :func:`choose_event`; trials are independent.
    delta, alpha : float
        As for :func:`epsilon_bounds`.

    Raises
    ------
    InputError
        If the shapes differ, or there are fewer than two trials or no column.
    """
    if one.shape != other.shape or one.ndim != 2 or len(one) < 2 or not one.shape[1]:
        raise InputError(
            "Two sides of an audit must have one shape (trials, columns), with two trials and a column at least. "
            f"Got {one.shape} and {other.shape}."
        )
    half = len(one) // 2
    event = choose_event(one[:half], other[:half], delta=delta, alpha=alpha)
    hits, other_hits = event.occurs(one[half:]), event.occurs(other[half:])
    trials = len(one) - half
    bound = epsilon_bounds(np.array([hits]), np.array([other_hits]), trials, delta=delta, alpha=alpha)
    return Certified(event, trials, hits, other_hits, float(bound[0]))


def published_law(rows: int, keep: float, crowd: int) -> FloatArray:
    """Law of ``T_k(Bin(n, beta))``.

    Parameters
    ----------
    rows, crowd : int
        n, and k of at least 1.
    keep : float
        beta, in (0, 1).

    Returns
    -------
    ndarray of float64, shape (rows + 1,)
        Probability of each number of published rows.
    """
    law: FloatArray = np.asarray(scipy.stats.binom.pmf(np.arange(rows + 1), rows, keep), dtype=np.float64)
    below = min(crowd, rows + 1)
    law[0] = law[:below].sum()
    law[1:below] = 0.0
    return law


@dataclass(frozen=True)
class Conformance:
    """How published numbers of rows of many cells fit their law.

    Attributes
    ----------
    mean, expected_mean : float
        In rows.
    mean_z : float
        Difference of the means in standard errors.
    variance_p : float
        Two-sided chi-square probability of the variance.
    fit_p : float
        Chi-square probability of the numbers under their law; 0 if one is impossible.
    moments : bool
        Whether mean and variance are held against the law: of large cells, whose law is close to normal.
    """

    cells: int
    mean: float
    expected_mean: float
    mean_z: float
    variance_p: float
    fit_p: float
    moments: bool

    @property
    def conforms(self) -> bool:
        """Whether nothing is too improbable."""
        return self.fit_p > FIT_P and not (self.moments and (abs(self.mean_z) >= MEAN_Z or self.variance_p <= FIT_P))


def gaussian_noise(sigma_squared: int) -> FloatArray:
    """Law of discrete Gaussian noise: ``exp(-x^2 / (2 sigma^2))`` over its sum (Canonne, Kamath and Steinke 2020, (1)).

    Returns
    -------
    ndarray of float64, shape (2 reach + 1,)
        Probability of -reach, …, reach, beyond which is less than 1e-30.
    """
    reach = math.ceil(12.0 * math.sqrt(sigma_squared)) + 1
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    return _normalized(np.exp(-(values**2) / (2.0 * sigma_squared)))


def laplace_noise(scale: float) -> FloatArray:
    """Law of discrete Laplace noise: ``exp(-|x| / b)`` over its sum.

    Parameters
    ----------
    scale : float
        b.

    Returns
    -------
    ndarray of float64, shape (2 reach + 1,)
        As :func:`gaussian_noise` returns it.
    """
    reach = math.ceil(70.0 * scale) + 1
    return _normalized(np.exp(-np.abs(np.arange(-reach, reach + 1, dtype=np.float64)) / scale))


def difference(law: FloatArray) -> FloatArray:
    """Law of the difference of two independent noises of one symmetric law, as that is given."""
    return _normalized(np.convolve(law, law))


def noise_conformance(noise: LongArray, law: FloatArray) -> Conformance:
    """Hold noises against their law.

    Parameters
    ----------
    noise : ndarray of int64, shape (cells,)
        Noisy less true counts of independent cells; at least two.
    law : ndarray of float64, shape (2 reach + 1,)
        Probability of -reach, …, reach.

    Returns
    -------
    Conformance
        Its means are those of the noise.
    """
    reach = len(law) // 2
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    variance, fourth = float(law @ values**2), float(law @ values**4)
    mean, squares = float(noise.mean()), float((noise.astype(np.float64) ** 2).mean())
    z = mean / math.sqrt(variance / len(noise))
    # The law need not be close to normal: the mean of the squares is, by its own variance.
    of_squares = (squares - variance) / math.sqrt((fourth - variance**2) / len(noise))
    p = float(scipy.special.erfc(abs(of_squares) / math.sqrt(2.0)))
    return Conformance(len(noise), mean, 0.0, z, p, _fit(noise + reach, law), True)


def _normalized(weights: FloatArray) -> FloatArray:
    law: FloatArray = weights / weights.sum()
    return law


def law_of_picks(scores: FloatArray, epsilon: float, picks: int) -> dict[tuple[int, ...], float]:
    """Law of several picks of the exponential mechanism, each among what is left (McSherry and Talwar 2007).

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        Of sensitivity 1, monotone in the table.
    epsilon : float
        Of one pick.
    picks : int
        w, at most n.

    Returns
    -------
    dict
        Probability of every sequence of w different candidates: the product over its picks of
        ``exp(epsilon score) / sum of that over those left``.
    """
    weights = np.exp(epsilon * (scores - scores.max()))
    law = {}
    for sequence in itertools.permutations(range(len(scores)), picks):
        probability, left = 1.0, float(weights.sum())
        for candidate in sequence:
            probability *= float(weights[candidate]) / left
            left -= float(weights[candidate])
        law[sequence] = probability
    return law


def choice_conformance(drawn: LongArray, law: Sequence[float]) -> Conformance:
    """Hold outcomes without an order against their law.

    Parameters
    ----------
    drawn : ndarray of int64, shape (trials,)
        Number of the outcome of each independent trial.
    law : sequence of float
        Probability of each outcome.

    Returns
    -------
    Conformance
        Its means are the shares of the likeliest outcome.
    """
    # The likeliest first: what is merged with its neighbours is rare.
    order = np.argsort(-np.array(law), kind="stable")
    place = np.argsort(order, kind="stable")
    ordered = _normalized(np.array(law)[order])
    share = float((drawn == order[0]).mean())
    return Conformance(len(drawn), share, float(ordered[0]), 0.0, 1.0, _fit(place[drawn], ordered), False)


def false_alarm(*, moments: bool) -> float:
    """Probability that cells that follow their law do not conform, as far as the approximations hold."""
    return FIT_P + (float(scipy.special.erfc(MEAN_Z / math.sqrt(2.0))) + FIT_P if moments else 0.0)


def conformance(counts: LongArray, *, rows: int, keep: float, crowd: int, moments: bool) -> Conformance:
    """Hold the published rows of independent cells against ``T_k(Bin(n, beta))``.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        Published rows of each cell, 0 if it is not published; at least two cells.
    rows : int
        n, rows of each cell.
    keep : float
        beta, in (0, 1).
    crowd : int
        k.
    moments : bool
        Test mean and variance too.
    """
    law = published_law(rows, keep, crowd)
    values = np.arange(rows + 1, dtype=np.float64)
    mean = float(law @ values)
    variance = float(law @ (values - mean) ** 2)
    cells = len(counts)
    z, p = 0.0, 1.0
    if variance > 0.0:
        z = (float(counts.mean()) - mean) / math.sqrt(variance / cells)
        statistic = float(counts.var(ddof=1)) * (cells - 1) / variance
        p = min(
            1.0,
            2.0
            * min(float(scipy.special.chdtr(cells - 1, statistic)), float(scipy.special.chdtrc(cells - 1, statistic))),
        )
    return Conformance(cells, float(counts.mean()), mean, z, p, _fit(counts, law), moments)


def _fit(counts: LongArray, law: FloatArray) -> float:
    """Chi-square probability of counts under a law on 0, 1, …, merged from below until enough are expected."""
    if counts.min() < 0 or counts.max() >= len(law):
        return 0.0
    observed = np.bincount(counts, minlength=len(law)).astype(np.float64)
    if observed[law == 0.0].any():
        return 0.0
    expected = law * len(counts)
    # Groups end where LEAST_EXPECTED is reached; what is left at the end joins the last.
    group = np.zeros(len(law), dtype=np.int64)
    number, gathered = 0, 0.0
    for value, cells in enumerate(expected.tolist()):
        group[value] = number
        gathered += cells
        if gathered >= LEAST_EXPECTED:
            number, gathered = number + 1, 0.0
    if gathered < LEAST_EXPECTED and number > 0:
        group[group == number] = number - 1
    seen, wanted = np.bincount(group, weights=observed), np.bincount(group, weights=expected)
    if len(seen) < 2:
        return 1.0
    return float(scipy.special.chdtrc(len(seen) - 1, float(((seen - wanted) ** 2 / wanted).sum())))
