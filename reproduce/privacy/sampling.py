"""Exponential sampling as published beside a release with a proof: what is left of the table (F12 Fig. 6.1).

Algorithm 6 is given its best case: lambda = 1 and Phi = 1 as its theorem needs them, and besides the random threshold
the smallest one that the proof admits. Its figures are expectations over its draws, for some records of the table;
those of a release are means over simulated runs on the whole table. Both have the same (epsilon, delta), which of the
two only the release keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.as_published.algorithm6 import (
    drawing_epsilon,
    element_law,
    eta_of_aggregate,
    least_size,
    random_threshold,
)
from privrisk_spark.kernels.dp.exponential import objective
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.kernels.search.enumeration import Nodes
from reproduce.deciding.subject import Subject
from reproduce.privacy.counterexamples import chain_bound, footnote, removed, twin_chains, two_leaves
from reproduce.privacy.releases import Calibrated, Candidates, Public, Released

EPSILONS = (Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(4))
"""Total epsilon; below ln 2 Algorithm 6 has no instance with half of the rows sampled."""

SAMPLED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Shares of the rows sampled, ``1 - beta`` of Algorithm 6."""

SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Parts of the table."""

BETA = 0.5
"""Probability with which Algorithm 6 leaves a row out, where it is not what varies."""

ELL = 4
"""Of Theorem 6.4.1 (ii): the least whole number with which it promises anything."""

THETAS = 20
"""Thresholds over which the random one is averaged, evenly spread."""

WAYS = ("release with a proof", "Algorithm 6, least t of its proof", "Algorithm 6, random t")


@dataclass(frozen=True, eq=False)
class Elements:
    """Whole lattices of some records; columns beyond a record's own lattice are not ``above``.

    Attributes
    ----------
    rows, attributes : int
        Of the table.
    generalizations : int
        Nodes of the largest lattice a record can have, ``h^k``.
    above : ndarray of bool, shape (r, n_nodes)
    consistent : ndarray of int64, shape (r, n_nodes)
    utility, precision : ndarray of float64, shape (r, n_nodes)
    """

    rows: int
    attributes: int
    generalizations: int
    above: BoolArray
    consistent: LongArray
    utility: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, subject: Subject, drawn: Sequence[int]) -> Elements:
        """Count every generalization of the records in these rows of the subject."""
        found = [Nodes.of_record(subject.record(row)) for row in drawn]
        width = max((one.lattice.n_nodes for one in found), default=0)
        above = np.zeros((len(found), width), dtype=np.bool_)
        consistent = np.zeros((len(found), width), dtype=np.int64)
        utility, precision = np.zeros((len(found), width)), np.zeros((len(found), width))
        for i, one in enumerate(found):
            n = one.lattice.n_nodes
            above[i, :n], consistent[i, :n], utility[i, :n] = True, one.rho[0], one.utility
            chains = [
                np.arange(h, -1, -1) / max(whole, 1)
                for h, whole in zip(one.lattice.heights, subject.heights, strict=True)
            ]
            precision[i, :n] = one.lattice.utility(chains) / subject.k
        return cls(subject.rows, subject.k, Lattice(subject.heights).n_nodes, above, consistent, utility, precision)

    def scores(self, lam: float) -> FloatArray:
        """``f^a`` of eq 5.4 with Phi = 1 and kappa = 1."""
        return objective(
            self.consistent, np.ones(self.above.shape), self.utility,
            lam=lam, kappa=1.0, phi_min=1.0, count_cap=self.rows,
        )  # fmt: skip

    def expected(self, values: FloatArray, *, epsilon: float, beta: float, lam: float, t: float) -> float:
        """Mean over the records of the expectation of ``values`` under Algorithm 6's draw."""
        law = element_law(
            self.scores(lam),
            self.above,
            self.consistent >= t,
            epsilon_drawing=drawing_epsilon(epsilon, beta, eta_of_aggregate(lam, 1.0)),
            rows=self.rows,
        )
        return float((law * values).sum(axis=1).mean())


@dataclass(frozen=True, eq=False)
class Compared:
    """The ways of :data:`WAYS` at P points; NaN where one has no instance.

    Attributes
    ----------
    at : ndarray of float64, shape (P,)
    share : ndarray of float64, shape (P, 3)
        Rows published over rows of the table.
    precision : ndarray of float64, shape (P, 3)
        Of the published rows.
    retained : ndarray of float64, shape (P, 3)
        Their product: precision summed over published rows, over the rows of the table.
    suppressed : ndarray of float64, shape (P,)
        Share of the release's sample that the crowd threshold deleted.
    t, crowd : ndarray of int64, shape (P,)
        Least t of the proof of Theorem 6.4.1, and crowd threshold of the release.
    """

    at: FloatArray
    share: FloatArray
    precision: FloatArray
    retained: FloatArray
    suppressed: FloatArray
    t: LongArray
    crowd: LongArray


@dataclass(frozen=True, eq=False)
class Unsampled:
    """Draws over the whole lattice and over t-frequent elements against the optimum, at P epsilons.

    Attributes
    ----------
    at : ndarray of float64, shape (P,)
    lams : ndarray of float64, shape (2,)
        lambda: 1, and such that the risk term is at most the greatest utility.
    whole, frequent, uniform : ndarray of float64, shape (2, P)
        Mean objective of the draw over the mean optimum; NaN where no t is admitted. ``uniform`` ignores the objective.
    preference : ndarray of float64, shape (P,)
        How many times likelier than another any generalization can be, at most.
    condition : ndarray of float64, shape (2, P)
        Optimum over t-frequent elements over the least for which Theorem 6.4.1 (ii) promises anything, with
        :data:`ELL`; NaN where no t is admitted.
    reached : ndarray of float64, shape (2, P)
        Draw over t-frequent elements over their optimum.
    sampled : ndarray of float64, shape (S,)
        The same as ``frequent`` with lambda and epsilon 1, by the share of the rows that is sampled,
        :data:`SAMPLED`.
    """

    at: FloatArray
    lams: FloatArray
    whole: FloatArray
    frequent: FloatArray
    uniform: FloatArray
    preference: FloatArray
    condition: FloatArray
    reached: FloatArray
    sampled: FloatArray


@dataclass(frozen=True, eq=False)
class WorstCase:
    """True delta of Algorithm 6 at epsilon 1, against what is claimed.

    Attributes
    ----------
    rows : ndarray of int64, shape (N,)
    chains, claimed, single : ndarray of float64, shape (N,)
        Lower bound from twin chains of 50 levels, ``h^k / |D|^2``, and ``1 / |D|``.
    limit : ndarray of float64, shape (N,)
        ``h / (|D| (1 - theta_0))``.
    few : ndarray of int64, shape (M,)
    fixed, random, claimed_few : ndarray of float64, shape (M,)
        Exact delta of the table of two leaves with fixed and random t, and the claim.
    """

    rows: LongArray
    chains: FloatArray
    claimed: FloatArray
    single: FloatArray
    limit: FloatArray
    few: LongArray
    fixed: FloatArray
    random: FloatArray
    claimed_few: FloatArray


LEVELS = 50
"""Levels of the twin chains."""


def worst_case(rows: Sequence[int], few: Sequence[int]) -> WorstCase:
    """Compute the counterexamples; beta is 0.5, theta_0 0.1 for chains and 0.3 for leaves."""
    leaves = [two_leaves(m) for m in few]
    return WorstCase(
        rows=np.array(rows, dtype=np.int64),
        chains=np.array([twin_chains(m, LEVELS, epsilon=1.0, beta=BETA, theta0=0.1).delta for m in rows]),
        claimed=np.array([footnote(m, LEVELS) for m in rows]),
        single=1.0 / np.array(rows),
        limit=np.array([chain_bound(m, LEVELS, 0.1) for m in rows]),
        few=np.array(few, dtype=np.int64),
        fixed=np.array([removed(a, epsilon=1.0, beta=BETA, t=len(a) // 2).delta for a in leaves]),
        random=np.array([removed(a, epsilon=1.0, beta=BETA, theta0=0.3).delta for a in leaves]),
        claimed_few=np.array([footnote(m, 2) for m in few]),
    )


def over_epsilon(table: Candidates, elements: Elements, *, seed: int, runs: int) -> Compared:
    """Compare at :data:`EPSILONS`, half of the rows sampled by Algorithm 6 and of the most possible by the release."""
    found = []
    for epsilon in EPSILONS:
        parameters = Calibrated.of(table.public, epsilon, Fraction(1, 2))
        found.append(_point(table, elements, epsilon, BETA, parameters, seed=seed, runs=runs))
    return _compared([float(epsilon) for epsilon in EPSILONS], found)


def over_sampling(table: Candidates, elements: Elements, *, seed: int, runs: int) -> Compared:
    """Compare at epsilon 1 and :data:`SAMPLED`; a release samples at most what its epsilon allows."""
    greatest = Calibrated.of(table.public, Fraction(1), Fraction(1)).sampled
    found = []
    for sampled in SAMPLED:
        fraction = Fraction(str(sampled)) / Fraction(greatest)
        parameters = Calibrated.of(table.public, Fraction(1), fraction) if fraction <= 1 else None
        found.append(_point(table, elements, Fraction(1), 1.0 - sampled, parameters, seed=seed, runs=runs))
    return _compared(SAMPLED, found)


def over_sizes(subject: Subject, public: Public, *, seed: int, runs: int, records: int) -> Compared:
    """Compare at epsilon 1 on parts of the table; schemes and their number stay as they are."""
    parameters = Calibrated.of(public, Fraction(1), Fraction(1, 2))
    found, rows = [], []
    for size in SIZES:
        part = subject.thinned(seed, size)
        if not part.rows:
            continue
        elements = Elements.of(part, part.drawn(seed, records).tolist())
        rows.append(part.rows)
        table = Candidates.of(part, public)
        found.append(_point(table, elements, Fraction(1), BETA, parameters, seed=seed, runs=runs))
    return _compared(rows, found)


def unsampled(elements: Elements, delta: Fraction) -> Unsampled:
    """Compare the draws with the optimum of each record, at :data:`EPSILONS` and :data:`BETA`."""
    top = float(elements.utility.max(initial=1.0))
    lams = (1.0, top / elements.rows)
    whole, frequent, uniform, condition, reached = (np.full((2, len(EPSILONS)), np.nan) for _ in range(5))
    sampled = np.full(len(SAMPLED), np.nan)
    preference = np.zeros(len(EPSILONS))
    for i, lam in enumerate(lams):
        scores = elements.scores(lam)
        optimum = float(np.where(elements.above, scores, 0.0).max(axis=1).mean())
        evenly = float((np.where(elements.above, scores, 0.0).sum(axis=1) / elements.above.sum(axis=1)).mean())
        for j, exact in enumerate(EPSILONS):
            epsilon = float(exact)
            t = _least_t(elements, epsilon, BETA, delta, lam)
            whole[i, j] = elements.expected(scores, epsilon=epsilon, beta=BETA, lam=lam, t=0.0) / optimum
            uniform[i, j] = evenly / optimum
            eta = eta_of_aggregate(lam, 1.0)
            strength = drawing_epsilon(epsilon, BETA, eta)
            preference[j] = math.exp(strength * eta / 2.0)
            if t <= elements.rows:
                drawn = elements.expected(scores, epsilon=epsilon, beta=BETA, lam=lam, t=t)
                most = float(np.where(elements.consistent >= t, scores, 0.0).max(axis=1).mean())
                asked = ELL * elements.rows * (math.log(elements.generalizations) + elements.attributes * math.log(ELL))
                frequent[i, j], reached[i, j], condition[i, j] = drawn / optimum, drawn / most, strength * most / asked
        if lam == 1.0:
            for j, share in enumerate(SAMPLED):
                t = _least_t(elements, 1.0, 1.0 - share, delta, lam)
                if t <= elements.rows:
                    drawn = elements.expected(scores, epsilon=1.0, beta=1.0 - share, lam=lam, t=t)
                    sampled[j] = drawn / optimum
    return Unsampled(
        at=np.array([float(epsilon) for epsilon in EPSILONS]),
        lams=np.array(lams),
        whole=whole,
        frequent=frequent,
        uniform=uniform,
        preference=preference,
        condition=condition,
        reached=reached,
        sampled=sampled,
    )


def _least_t(elements: Elements, epsilon: float, beta: float, delta: Fraction, lam: float) -> int:
    strength = drawing_epsilon(epsilon, beta, eta_of_aggregate(lam, 1.0))
    return least_size(beta, strength, generalizations=elements.generalizations, t_f=lam + 1.0, delta=float(delta))


def _point(
    table: Candidates,
    elements: Elements,
    epsilon: Fraction,
    beta: float,
    parameters: Calibrated | None,
    *,
    seed: int,
    runs: int,
) -> tuple[FloatArray, FloatArray, float, int, int]:
    """Shares and precisions of the three ways, what the crowd threshold deleted, t and k."""
    share, precision = np.full(3, np.nan), np.full(3, np.nan)
    released = Released(math.nan, math.nan, math.nan)
    if parameters is not None:
        released = table.mean(parameters, seed=seed, runs=runs)
        share[0], precision[0] = released.share, released.precision
    t = _least_t(elements, float(epsilon), beta, table.public.delta, 1.0)
    if t < elements.rows:
        share[1:] = 1.0 - beta
        middles = (np.arange(THETAS) + 0.5) / THETAS
        thresholds = random_threshold(middles, theta0=t / elements.rows, rows=elements.rows)
        drawn = [
            elements.expected(elements.precision, epsilon=float(epsilon), beta=beta, lam=1.0, t=at)
            for at in (float(t), *thresholds.tolist())
        ]
        precision[1:] = drawn[0], float(np.mean(drawn[1:]))
    return share, precision, released.suppressed, t, 0 if parameters is None else parameters.crowd


def _compared(at: Sequence[float], found: Sequence[tuple[FloatArray, FloatArray, float, int, int]]) -> Compared:
    share = np.array([one[0] for one in found]).reshape(-1, 3)
    precision = np.array([one[1] for one in found]).reshape(-1, 3)
    return Compared(
        at=np.array(at, dtype=np.float64),
        share=share,
        precision=precision,
        # Nothing published retains nothing.
        retained=np.where(share == 0.0, 0.0, share * precision),
        suppressed=np.array([one[2] for one in found]),
        t=np.array([one[3] for one in found], dtype=np.int64),
        crowd=np.array([one[4] for one in found], dtype=np.int64),
    )
