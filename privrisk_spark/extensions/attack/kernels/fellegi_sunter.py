"""Probabilistic record linkage: how likely two records are of one person, given where they agree.

Among pairs of records of one person (the linked ones, M) an attribute agrees at level ``l`` with probability ``m_l``,
among the other pairs (U) with probability ``u_l``, independently of the other attributes given the class of the pair.
The match weight of a pair is ``log2`` of its likelihood ratio, a sum over attributes; what cannot be compared adds
nothing to it. The probabilities are estimated from counts of agreement patterns alone, without known pairs, by the EM
algorithm. Links are decided by the optimal rule for given rates of error: of all rules that keep them, it leaves the
fewest pairs to a clerk.

Status: that the likelihood never falls is *proved* (Dempster, Laird and Rubin 1977), as is that the rule is optimal for
known probabilities (Fellegi and Sunter 1969). That estimates are near the truth is *tested* on generated data whose
attributes are independent; attributes of people seldom are, and weights are then a ranking rather than odds.

References
----------
I. P. Fellegi, A. B. Sunter, "A theory for record linkage", J. Amer. Statist. Assoc. 64 (1969). W. E. Winkler, "Using
the EM algorithm for weight computation in the Fellegi-Sunter model of record linkage" (1988). T. N. Herzog, F. J.
Scheuren, W. E. Winkler, "Data Quality and Record Linkage Techniques" (2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile, PatternCounts, n_patterns
from privrisk_spark.kernels.arrays import ByteArray, FloatArray, IntArray, LongArray

__all__ = ["Fitted", "LinkageModel", "fitted", "frequencies", "started", "started_alone"]

Levels = tuple[tuple[float, ...], ...]
"""A probability of each level of each attribute."""

LEAST = 2.0**-40
"""A probability below counts as this one in weights, so that no level decides alone: at most 40 bits each."""


LEAST_COLUMNS = 3
"""Attributes from which on ``u`` can be estimated besides ``m``."""


@dataclass(frozen=True)
class LinkageModel:
    """Probabilities of agreement levels, of linked pairs and of the others.

    Attributes
    ----------
    m, u : tuple of k (tuple of L_j float)
        Of each level of each attribute among linked pairs, and among the others; each of sum 1.
    prior : float
        Share of pairs that are linked, between 0 and 1.

    Raises
    ------
    InputError
        If they are no probabilities.
    """

    m: Levels
    u: Levels
    prior: float

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        n_patterns(self.levels)
        if tuple(len(one) for one in self.u) != self.levels:
            raise InputError("Record linkage: m and u must have the same attributes and levels.")
        for one in (*self.m, *self.u):
            if not (min(one) >= 0 and abs(math.fsum(one) - 1) < 1e-9):
                raise InputError("Record linkage: m and u of each attribute must be at least 0 and of sum 1.")
        if not 0 < self.prior < 1:
            raise InputError(f"Record linkage: the share of linked pairs must be between 0 and 1. Got {self.prior}.")

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of each attribute."""
        return tuple(len(one) for one in self.m)

    @cached_property
    def weights(self) -> Levels:
        """Match weight ``log2(m/u)`` of each level of each attribute, and 0 of what cannot be compared, in bits.

        A level that neither kind of pair has is no evidence: its weight is 0.
        """
        return tuple(
            (*(math.log2(max(a, LEAST) / max(b, LEAST)) for a, b in zip(m, u, strict=True)), 0.0)
            for m, u in zip(self.m, self.u, strict=True)
        )

    @property
    def parted(self) -> bool:
        """Whether agreement in all attributes speaks for a link.

        If not, the data do not tell the classes apart, and the model is none of links.
        """
        return math.fsum(one[0] for one in self.weights) > 0

    @property
    def exchanged(self) -> LinkageModel:
        """The same model with the two classes in each other's place."""
        return LinkageModel(self.u, self.m, 1 - self.prior)

    @property
    def greatest(self) -> float:
        """Greatest match weight a pair can have, one that cannot be compared in some attributes among them; in bits."""
        return math.fsum(max(one) for one in self.weights)

    def weights_of(self, digits: ByteArray) -> FloatArray:
        """Match weights of patterns, in bits.

        Parameters
        ----------
        digits : ndarray of uint8, shape (n, k)
            Levels, as :attr:`PatternCounts.digits`.
        """
        total = np.zeros(len(digits))
        for j, weights in enumerate(self.weights):
            total += np.array(weights)[digits[:, j]]
        return total

    def posterior(self, weights: FloatArray) -> FloatArray:
        """Probability that a pair is linked, by its match weight.

        ``p 2^w / (p 2^w + 1 - p)``.
        """
        odds = np.asarray(weights, dtype=np.float64) + math.log2(self.prior) - math.log2(1 - self.prior)
        return np.asarray(1 / (1 + np.exp2(-np.clip(odds, -1000, 1000))))

    def expected(self, counts: PatternCounts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Match weights of the patterns that occur, and their shares among linked pairs and among the others.

        Every pair counts as linked with its posterior probability.

        Parameters
        ----------
        counts : PatternCounts
            Of at least one pair.

        Returns
        -------
        weights, of_links, of_others : ndarray of float64, shape (n,)
            As :func:`optimal_rule` takes them.
        """
        weights, pairs = self.weights_of(counts.digits), np.array(counts.pairs, dtype=np.float64)
        linked = pairs * self.posterior(weights)
        others = pairs - linked
        return weights, linked / linked.sum(), others / others.sum()


@dataclass(frozen=True)
class Fitted:
    """A model, and how it was estimated.

    Attributes
    ----------
    model : LinkageModel
    log_likelihood : tuple of float
        Natural logarithm, of the starting values and after every step; it never falls but by rounding.
    converged : bool
        Whether the last step changed no probability by more than the tolerance.
    exchanged : bool
        Whether the two classes were found in each other's place, and have been exchanged.
    """

    model: LinkageModel
    log_likelihood: tuple[float, ...]
    converged: bool
    exchanged: bool

    @property
    def steps(self) -> int:
        """Steps taken."""
        return len(self.log_likelihood) - 1

    @property
    def parted(self) -> bool:
        """As :attr:`LinkageModel.parted`."""
        return self.model.parted


def frequencies(counts: PatternCounts) -> Levels:
    """Shares of the levels of each attribute among all pairs that can be compared in it.

    Nearly all pairs are not linked, so that these are nearly ``u``; exactly so if records are paired at random.

    Returns
    -------
    tuple of k (tuple of L_j float)
        Equal shares where no pair can be compared.
    """
    return _shares(counts.digits, np.array(counts.pairs, dtype=np.float64), counts.levels)


def started(counts: PatternCounts, *, prior: float | None = None, agreeing: float = 0.9) -> LinkageModel:
    """Starting values of the estimation.

    Linked pairs agree with probability ``agreeing`` (0.9 is Winkler's), and share the rest among the other levels as
    all pairs do; ``u`` are :func:`frequencies`.

    Parameters
    ----------
    counts : PatternCounts
        Of at least one pair.
    prior : float, optional
        Share of linked pairs. By default one over the root of all pairs, which it is where two files of one size hold
        the same persons.
    agreeing : float
        Between 0 and 1.

    Raises
    ------
    InputError
        If it is not, or there is no pair.
    """
    if not counts.total:
        raise InputError("Record linkage: there is no pair of records to estimate from.")
    if not 0 < agreeing < 1:
        raise InputError(f"Record linkage: linked pairs must agree with a probability between 0 and 1. Got {agreeing}.")
    u = frequencies(counts)
    m = []
    for one in u:
        others = math.fsum(one[1:])
        rest = [p / others for p in one[1:]] if others > 0 else [1 / (len(one) - 1)] * (len(one) - 1)
        m.append((agreeing, *((1 - agreeing) * p for p in rest)))
    return LinkageModel(tuple(m), u, 1 / math.sqrt(max(counts.total, 4)) if prior is None else prior)


def started_alone(file: ComparedFile, known: IntArray, rows: LongArray, *, prior: float) -> LinkageModel:
    """Starting values, of one attribute after the other: those of all pairs, which need not be compared for them.

    Parameters
    ----------
    known : ndarray of int32, shape (m, k)
    rows : ndarray of int64, shape (m,)
        As :meth:`ComparedFile.counted` takes them.
    prior : float
        Share of linked pairs.

    Returns
    -------
    LinkageModel
        That of :func:`started` of the patterns of all pairs.

    Raises
    ------
    InputError
        If there is no pair, or the prior is not between 0 and 1.
    """
    alone = [started(file.counted_alone(j, known, rows), prior=prior) for j in range(len(file.agreements))]
    return LinkageModel(tuple(one.m[0] for one in alone), tuple(one.u[0] for one in alone), prior)


def fitted(
    counts: PatternCounts,
    start: LinkageModel,
    *,
    fixed_u: bool = True,
    fixed_prior: bool = False,
    tolerance: float = 1e-8,
    most_steps: int = 1000,
) -> Fitted:
    """Estimate a model by the EM algorithm (Winkler 1988).

    A step takes the posterior of every pattern, and then the shares of linked pairs and of their levels, each pair
    counting as far as it is linked. An attribute that cannot be compared is summed out. Of the free parameters the
    likelihood has two greatest values, one for either naming of the classes; if linked pairs turn out to agree less
    than the others, the names are exchanged.

    Parameters
    ----------
    counts : PatternCounts
        Of at least one pair.
    start : LinkageModel
        Such as :func:`started` returns.
    fixed_u : bool
        Whether ``u`` stays as it starts. Where few pairs are linked it is known well from all pairs, and ``m`` is then
        estimated more surely. If it is free, at least three attributes are needed.
    fixed_prior : bool
        Whether the share of linked pairs stays as it starts.
    tolerance : float
        Greatest change of a probability at which steps end.
    most_steps : int
        At least 1.

    Raises
    ------
    InputError
        If there is no pair, the levels differ, or too few attributes are given for free ``u``.
    """
    if not counts.total:
        raise InputError("Record linkage: there is no pair of records to estimate from.")
    if counts.levels != start.levels:
        raise InputError("Record linkage: the starting values must have the attributes and levels of the pairs.")
    if not fixed_u and len(counts.levels) < LEAST_COLUMNS:
        raise InputError("Record linkage: with free u, at least three attributes must be compared.")
    digits, pairs = counts.digits, np.array(counts.pairs, dtype=np.float64)
    m, u, prior = start.m, start.u, start.prior
    trace, converged = [], False
    for step in range(most_steps + 1):
        linked, apart = _log_products(m, digits), _log_products(u, digits)
        linked, apart = linked + math.log(prior), apart + math.log1p(-prior)
        both = np.logaddexp(linked, apart)
        trace.append(float((pairs * both).sum()))
        if not math.isfinite(trace[0]):
            raise InputError("Record linkage: the starting values must allow every pattern that occurs.")
        if converged or step == most_steps:
            break
        mine = pairs * np.exp(linked - both)
        theirs = pairs - mine
        after_m = _shares(digits, mine, counts.levels, m)
        after_u = u if fixed_u else _shares(digits, theirs, counts.levels, u)
        after = prior if fixed_prior else min(max(float(mine.sum() / pairs.sum()), LEAST), 1 - LEAST)
        changes = [abs(a - b) for new, old in ((after_m, m), (after_u, u)) for x, y in zip(new, old, strict=True)
                   for a, b in zip(x, y, strict=True)]  # fmt: skip
        converged = max(*changes, abs(after - prior)) <= tolerance
        m, u, prior = after_m, after_u, after
    found = Fitted(LinkageModel(m, u, prior), tuple(trace), converged, False)
    if not found.parted and not fixed_u and not fixed_prior:
        found = Fitted(found.model.exchanged, tuple(trace), converged, True)
    return found


def _log_products(levels: Levels, digits: ByteArray) -> FloatArray:
    """Logarithm of the probability of each pattern, shape (n,); -inf where it cannot occur."""
    total = np.zeros(len(digits))
    with np.errstate(divide="ignore"):
        for j, one in enumerate(levels):
            total += np.log(np.array((*one, 1.0)))[digits[:, j]]
    return total


def _shares(digits: ByteArray, pairs: FloatArray, levels: Sequence[int], before: Levels | None = None) -> Levels:
    """Share of each level among the pairs that can be compared in an attribute; ``before``, or equal, if none can."""
    found = []
    for j, n in enumerate(levels):
        there = np.bincount(digits[:, j], pairs, minlength=n + 1)[:n]
        total = float(there.sum())
        if total > 0:
            found.append(tuple((there / total).tolist()))
        else:
            found.append((1 / n,) * n if before is None else before[j])
    return tuple(found)
