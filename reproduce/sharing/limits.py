"""Access control (F12 §7.4): the three problems beside each other, and beside the best there is.

``min L - λU`` separates and is exact. ``max U`` within a loss and ``min L`` at a utility are rounded from the linear
relaxation, whose bound says how far from the best that may be; on small instances HiGHS finds the best itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.network.kernels.access import (
    Access,
    Entries,
    Problem,
    lagrangian,
    least_loss,
    most_utility,
)
from privrisk_spark.extensions.network.kernels.connection import parts_of
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.kernels.arrays import FloatArray
from reproduce.generated.clustered import keyed_uniforms
from reproduce.sharing.aggregate import shares_shown
from reproduce.sharing.exact_access import exact_least_loss, exact_most_utility
from reproduce.sharing.sample import Sample

SHARES = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Limits, as shares of all loss and of all utility."""

TRADE_OFFS = 12
"""Values of λ, as quantiles of the ratio of loss to utility."""

SMALL, INSTANCES = 12, 60
"""Entries of an instance that HiGHS solves, and how many are solved."""

WORTHS = 5
"""Different worths of a level in small instances."""

_EQUAL = 1e-9


@dataclass(frozen=True)
class Limited:
    """One of the two problems at a limit.

    Attributes
    ----------
    problem : {"most-utility", "least-loss"}
    share : float
        The limit, of all loss or all utility.
    loss, utility : float
        As shares of all there is.
    gap : float
        To the bound, as a share of it.
    """

    problem: Problem
    share: float
    loss: float
    utility: float
    gap: float


@dataclass(frozen=True)
class Traded:
    """The separable problem at a λ.

    Attributes
    ----------
    loss, utility : float
        As shares of all there is.
    few, many : float
        Share of the levels that is shown: of pairs with fewer common friends than most, and of the others.
    repeated : int
        Of the other two problems with this loss and this utility for their limits, how many find the same figures.
    """

    trade_off: float
    loss: float
    utility: float
    few: float
    many: float
    repeated: int


@dataclass(frozen=True)
class Small:
    """An instance that is solved exactly.

    Attributes
    ----------
    problem : {"most-utility", "least-loss"}
    gap : float
        What the relaxation promises at worst, as a share of its bound.
    short : float
        What the rounded answer is short of the best, as a share of the same.
    """

    problem: Problem
    gap: float
    short: float


@dataclass(frozen=True)
class Linked:
    """How a network is connected by what its friends show each other.

    Attributes
    ----------
    utility : float
        As a share of all there is.
    links : int
        Pairs in which at least half of the levels are shown.
    largest, diameter : int
        Users of the largest connected part, and so many steps at least between two of them.
    """

    trade_off: float
    utility: float
    users: int
    links: int
    largest: int
    diameter: int


@dataclass(frozen=True, eq=False)
class AccessControl:
    """Everything about the three problems.

    Attributes
    ----------
    refused : int
        Instances for which HiGHS found nothing that keeps the limit.
    """

    entries: int
    limited: tuple[Limited, ...]
    traded: tuple[Traded, ...]
    small: tuple[Small, ...]
    refused: int
    linked: tuple[Linked, ...]


def entries_of(sample: Sample, trust: FloatArray, exposure: Exposure) -> Entries:
    """Every attribute of every pair: a level costs ``f(T) Φ`` and is worth 1.

    Parameters
    ----------
    trust : ndarray of float64, shape (n,)
    """
    loss = exposure.of(trust)[:, None] * sample.sensitivity
    return Entries(loss.reshape(-1), np.ones(loss.size), np.ascontiguousarray(sample.levels.reshape(-1)))


def totals(entries: Entries) -> tuple[float, float]:
    """Loss and utility of showing everything."""
    return float((entries.loss * entries.tops).sum()), float((entries.utility * entries.tops).sum())


def quantiles(entries: Entries, n: int) -> tuple[float, ...]:
    """Different values of λ between which another share of the levels is shown, ascending."""
    shown = entries.tops > 0
    ratios = np.repeat(entries.loss[shown] / entries.utility[shown], entries.tops[shown])
    values = np.quantile(ratios, np.linspace(0, 1, n)) * (1 + _EQUAL) if len(ratios) else np.zeros(0)
    return (0.0, *np.unique(values).tolist())


def access_control(sample: Sample, friends: Sample) -> AccessControl:
    """Solve the three problems.

    Parameters
    ----------
    friends : Sample
        All pairs of friends of a network, for how it is connected.
    """
    entries = entries_of(sample, sample.common.astype(np.float64), Exposure())
    small = tuple(_small(entries, sample.seed))
    return AccessControl(
        entries=int((entries.tops > 0).sum()),
        limited=tuple(_limited(entries)),
        traded=tuple(_traded(entries, sample)),
        small=tuple(one for one in small if one is not None),
        refused=sum(one is None for one in small),
        linked=tuple(_linked(friends)),
    )


def _limited(entries: Entries) -> Iterator[Limited]:
    loss, utility = totals(entries)
    for share in SHARES:
        for problem in ("most-utility", "least-loss"):
            found = _solved(entries, problem, share)
            yield Limited(problem, share, found.loss / loss, found.utility / utility, found.gap / found.bound)


def _solved(entries: Entries, problem: str, share: float, *, exact: bool = False) -> Access:
    loss, utility = totals(entries)
    if problem == "most-utility":
        return (exact_most_utility if exact else most_utility)(entries, share * loss)
    return (exact_least_loss if exact else least_loss)(entries, share * utility)


def _traded(entries: Entries, sample: Sample) -> Iterator[Traded]:
    loss, utility = totals(entries)
    for value in quantiles(entries, TRADE_OFFS):
        levels = lagrangian(entries, value)
        lost, gained = float((entries.loss * levels).sum()), float((entries.utility * levels).sum())
        # Sums of floats: the same A may be a rounding beyond its own limit.
        most = most_utility(entries, lost * (1 + _EQUAL)).utility
        least = least_loss(entries, gained * (1 - _EQUAL)).loss
        repeated = int(most <= gained * (1 + 10 * _EQUAL) + _EQUAL) + int(least >= lost * (1 - 10 * _EQUAL) - _EQUAL)
        _, few, many = shares_shown(sample, levels.reshape(sample.levels.shape))
        yield Traded(value, lost / loss, gained / utility, few, many, repeated)


def _small(entries: Entries, seed: int) -> Iterator[Small | None]:
    there = np.flatnonzero(entries.tops > 0)
    for instance in range(INSTANCES if len(there) >= SMALL else 0):
        drawn = keyed_uniforms(seed, f"small instance {instance}", (len(there) + SMALL + 1,))
        rows = there[np.argsort(drawn[: len(there)], kind="stable")[:SMALL]]
        # Different worths, or the order of ratios would be that of the costs and hardly ever be wrong.
        worth = 1 + np.floor(WORTHS * drawn[len(there) : -1])
        part = Entries(entries.loss[rows], worth, entries.tops[rows])
        share = 0.1 + 0.8 * float(drawn[-1])
        for problem in ("most-utility", "least-loss"):
            greedy = _solved(part, problem, share)
            try:
                best = _solved(part, problem, share, exact=True)
            except InternalError:
                yield None
                continue
            short = best.utility - greedy.utility if problem == "most-utility" else greedy.loss - best.loss
            yield Small(problem, greedy.gap / greedy.bound, short / greedy.bound)


def _linked(friends: Sample) -> Iterator[Linked]:
    entries = entries_of(friends, friends.common.astype(np.float64), Exposure())
    _, utility = totals(entries)
    for value in quantiles(entries, 8)[1:]:
        levels = lagrangian(entries, value).reshape(friends.levels.shape)
        shown = levels.sum(axis=1, dtype=np.int64)
        enough = 2 * shown >= friends.levels.sum(axis=1, dtype=np.int64)
        parts = parts_of(friends.graph.n, friends.u[enough], friends.v[enough])
        gained = float(shown.sum()) / utility
        yield Linked(value, gained, friends.graph.n, int(enough.sum()), parts.largest, parts.diameter)
