"""Modified-Aggregate as it was published beside the exact one, over the number of attributes (F12 Fig. 7.3).

The published one, Algorithm 8, divides by Φ into layers. Two readings of its step 5 need every level vector, and are
run where there are at most :data:`SMALL`: ``by the letter`` and ``by layers``. A third needs no enumeration and is run
on large lattices too: the constraint that F12 takes for one of a supermodular problem, which it is not, is left out.

The exact one is the product's own. Enumeration is run beside it on the same small lattices; F12 does not say what its
exact algorithm was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log10
from time import process_time

import numpy as np

from privrisk_spark.extensions.network.kernels.algorithm8 import algorithm8
from privrisk_spark.extensions.network.kernels.modified_aggregate import ENUMERATED as ENUMERATED_AT_MOST
from privrisk_spark.extensions.network.kernels.modified_aggregate import Consistency, Pairs, Shown, modified_aggregate
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LevelArray, LongArray
from reproduce.sharing.sample import Sample
from reproduce.sharing.without_constraint import layers_of, without_constraint

CONSISTENCIES: tuple[Consistency, ...] = ("all", "any")

EXACT, ENUMERATED, LETTER, LAYERS, LEFT_OUT = (
    "exact", "enumeration", "as published, by the letter", "as published, by layers",
    "as published, constraint left out",
)  # fmt: skip
"""Methods."""

EPSILON = 0.1
"""Ratio of the layers less one; F12 does not say which it took."""

TRADE_OFF, KAPPA = 1.0, 1.0
"""λ and κ of F12 §7.7."""

SMALL = 2**12
"""Level vectors of a pair that are enumerated, at most."""

FEW, FEWER = 200, 40
"""Pairs the slower methods are run on, at most: those without enumeration, and those with."""

_EQUAL = 1e-9
_COMPARABLE = 0.1


@dataclass(frozen=True)
class Run:
    """One method on pairs of profiles of 1 to k attributes.

    Attributes
    ----------
    consistency : {"all", "any"}
    seconds : float
        CPU time of a pair, on average.
    value, least : float
        ``f`` over that of the exact method for the same pairs: mean and least.
    optimal : int
        Pairs of the same ``f``.
    comparable : int
        Pairs whose risk Φ/ξ is within a tenth of the exact method's, or infinite as there.
    whole, nothing, unlimited : int
        Pairs in which everything is shown, nothing is, and of infinite risk.
    proved : int
        Pairs whose answer is proved to be the best.
    gap : float
        Greatest share of the bound by which an answer may be below it.
    near : int
        Pairs of an ``f`` of at least ``1/(1 + ε)`` times the exact method's.
    visited : float
        Level vectors and boxes of a pair, on average; as published, its layers that have a solution.
    layers : float
        All layers of a pair, on average.
    """

    method: str
    consistency: Consistency
    k: int
    pairs: int
    seconds: float
    value: float
    least: float
    optimal: int
    comparable: int
    whole: int
    nothing: int
    unlimited: int
    proved: int
    gap: float
    near: int
    visited: float
    layers: float


@dataclass(frozen=True)
class Sizes:
    """What the pairs of profiles of 1 to k attributes are like.

    Attributes
    ----------
    common : float
        Common friends of a pair, on average.
    nodes : float
        Decimal logarithm of the level vectors of a pair: median.
    small : int
        Pairs of at most :data:`SMALL` level vectors.
    """

    k: int
    pairs: int
    common: float
    nodes: float
    small: int


@dataclass(frozen=True)
class TradedOff:
    """What the exact method shows at a λ.

    Attributes
    ----------
    consistency : {"all", "any"}
    shown, few, many : float
        Share of all levels that is shown; of pairs with fewer common friends than most, and of the others.
    whole, nothing, pairs : int
        Pairs in which everything is shown, and nothing; and all.
    """

    consistency: Consistency
    trade_off: float
    shown: float
    few: float
    many: float
    whole: int
    nothing: int
    pairs: int
    proved: int
    gap: float


def sizes_of(k: int, sample: Sample) -> Sizes:
    """Say what pairs are like."""
    digits = _digits(sample.pairs)
    small = int((digits <= log10(SMALL) + _EQUAL).sum())
    return Sizes(k, len(sample.u), float(sample.common.mean()), float(np.median(digits)), small)


def _digits(pairs: Pairs) -> FloatArray:
    found: FloatArray = np.log10(pairs.heights + 1.0).sum(axis=1)
    return found


def runs(k: int, sample: Sample) -> Iterator[Run]:
    """Run every method on the pairs of a sample; the slower ones on the first of them."""
    whole = sample.pairs
    _warm(whole)
    small = np.flatnonzero(_digits(whole) <= log10(SMALL) + _EQUAL)[:FEWER]
    for consistency in CONSISTENCIES:

        def exact(pairs: Pairs, boxes: int | None = None, of: Consistency = consistency) -> Shown:
            return modified_aggregate(pairs, trade_off=TRADE_OFF, kappa=KAPPA, consistency=of, most_boxes=boxes)

        def left_out(pairs: Pairs, of: Consistency = consistency) -> Shown:
            return without_constraint(pairs, trade_off=TRADE_OFF, kappa=KAPPA, epsilon=EPSILON, consistency=of)

        best, seconds = _timed(exact, [whole])
        yield _run(EXACT, consistency, k, whole, best, best, seconds)
        few = part_of(whole, np.arange(min(FEW, whole.n)))
        found, seconds = _timed(left_out, [few])
        yield _run(LEFT_OUT, consistency, k, few, found, _first(best, np.arange(few.n)), seconds)
        if not len(small):
            continue
        singles = [single(whole, p) for p in small.tolist()]
        beside = _first(best, small)
        for method, solve in (
            (ENUMERATED, lambda pairs, exact=exact: exact(pairs, 0)),
            (LAYERS, lambda pairs, of=consistency: _as_published(pairs, of, letter=False)),
            (LETTER, lambda pairs, of=consistency: _as_published(pairs, of, letter=True)),
        ):
            found, seconds = _timed(solve, singles)
            yield _run(method, consistency, k, part_of(whole, small), _widened(found, whole, small), beside, seconds)


@dataclass(frozen=True)
class Stopped:
    """The exact method, ended early.

    Attributes
    ----------
    consistency : {"all", "any"}
    boxes : int
        After so many boxes a pair; nothing is enumerated, and no minimum cut is made.
    gap, short : float
        Shares of the bound by which an answer may be below it, and of the optimum by which it is: means.
    worst : float
        The greatest of the gaps.
    """

    consistency: Consistency
    boxes: int
    pairs: int
    proved: int
    gap: float
    short: float
    worst: float


STOPS = (1, 3, 10, 30, 100, 300, 1000)
"""Boxes after which a search is ended."""

HARD = 10.0
"""λ of these searches: at 1 most pairs show everything, which is soon proved."""


def stopped(sample: Sample) -> Iterator[Stopped]:
    """End the search early: what is proved, what gap remains, and how far from the optimum the answer is."""
    for consistency in CONSISTENCIES:

        def found(boxes: int | None, nodes: int, cuts: int | None, of: Consistency = consistency) -> Shown:
            return modified_aggregate(
                sample.pairs, trade_off=HARD, kappa=KAPPA, consistency=of, most_nodes=nodes,
                most_boxes=boxes, most_cuts=cuts,
            )  # fmt: skip

        best = found(None, ENUMERATED_AT_MOST, None)
        for boxes in STOPS:
            one = found(boxes, 0, 0)
            gap = one.gap / np.maximum(one.bound, np.finfo(np.float64).tiny)
            short = 1 - one.objective / best.objective
            yield Stopped(
                consistency, boxes, len(gap), int(one.proved.sum()), float(gap.mean()), float(short.mean()),
                float(gap.max()),
            )  # fmt: skip


def traded_off(sample: Sample, trade_offs: Sequence[float]) -> Iterator[TradedOff]:
    """Run the exact method at other trade-offs.

    Parameters
    ----------
    trade_offs : sequence of float
        Values of λ.
    """
    pairs = sample.pairs
    for consistency in CONSISTENCIES:
        for value in trade_offs:
            found = modified_aggregate(pairs, trade_off=value, kappa=KAPPA, consistency=consistency)
            shown = pairs.heights - found.levels
            whole, nothing = (found.levels == 0).all(axis=1), (found.levels == pairs.heights).all(axis=1)
            yield TradedOff(
                consistency,
                value,
                *shares_shown(sample, shown),
                int(whole.sum()),
                int(nothing.sum()),
                pairs.n,
                int(found.proved.sum()),
                _gap(found),
            )


def shares_shown(sample: Sample, shown: LevelArray) -> tuple[float, float, float]:
    """Share of the levels that is shown: of all pairs, of those with few common friends, and of the others.

    Parameters
    ----------
    shown : ndarray of int8, shape (n, k)
        Levels that are shown.
    """
    few = sample.common <= np.median(sample.common)

    def share(rows: BoolArray) -> float:
        there = int(sample.levels[rows].sum(dtype=np.int64))
        return int(shown[rows].sum(dtype=np.int64)) / there if there else float("nan")

    return share(np.ones(len(few), dtype=np.bool_)), share(few), share(~few)


@dataclass(frozen=True)
class Evenly:
    """Pairs that are drawn evenly, as F12 §7.7 draws them.

    Attributes
    ----------
    alone : int
        Those without a common friend.
    whole : int
        Those of them that show everything.
    """

    pairs: int
    alone: int
    whole: int


def drawn_evenly(sample: Sample) -> Evenly:
    """Decide pairs that are drawn evenly, by the formula as published."""
    found = modified_aggregate(sample.pairs, trade_off=TRADE_OFF, kappa=KAPPA)
    alone = sample.common == 0
    whole = (found.levels == 0).all(axis=1)
    return Evenly(len(alone), int(alone.sum()), int((alone & whole).sum()))


def part_of(pairs: Pairs, rows: LongArray) -> Pairs:
    """Some of the pairs, in ascending order."""
    counts = np.diff(pairs.first)[rows]
    kept = np.isin(np.repeat(np.arange(pairs.n), np.diff(pairs.first)), rows)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Pairs(pairs.heights[rows], pairs.weights[rows], pairs.utilities[rows], first, pairs.agreements[kept])


def single(pairs: Pairs, p: int) -> Pairs:
    """One of the pairs, without the attributes its owner has no value of."""
    has = pairs.heights[p] > 0
    friends = pairs.agreements[pairs.first[p] : pairs.first[p + 1]][:, has]
    first = np.array([0, len(friends)], dtype=np.int64)
    return Pairs(pairs.heights[[p]][:, has], pairs.weights[[p]][:, has], pairs.utilities[[p]][:, has], first, friends)


def _as_published(pairs: Pairs, consistency: Consistency, *, letter: bool) -> Shown:
    reading = "equality" if letter else "layer"
    return algorithm8(
        pairs, trade_off=TRADE_OFF, kappa=KAPPA, epsilon=EPSILON, consistency=consistency,
        reading=reading,  # type: ignore[arg-type]
    )  # fmt: skip


def _warm(pairs: Pairs) -> None:
    """Compile what is timed: enumeration, boxes, and for 'all' the cuts that follow them."""
    some = part_of(pairs, np.arange(min(10, pairs.n)))
    for consistency in CONSISTENCIES:
        for nodes, boxes in ((SMALL, 0), (0, 1)):
            modified_aggregate(
                some, trade_off=TRADE_OFF, kappa=KAPPA, consistency=consistency, most_nodes=nodes, most_boxes=boxes
            )


def _timed(solve: Callable[[Pairs], Shown], parts: Sequence[Pairs]) -> tuple[Shown, float]:
    """Solve one part after the other; all answers, and the CPU time of a pair."""
    started = process_time()
    found = [solve(part) for part in parts]
    seconds = process_time() - started
    return _together(found), seconds / max(sum(part.n for part in parts), 1)


def _together(found: Sequence[Shown]) -> Shown:
    if len(found) == 1:
        return found[0]
    width = max(one.levels.shape[1] for one in found)
    levels = [np.pad(one.levels, ((0, 0), (0, width - one.levels.shape[1]))) for one in found]
    names = ("objective", "bound", "proved", "sensitivity", "utility", "consistent", "visited")
    figures = {name: np.concatenate([getattr(one, name) for one in found]) for name in names}
    return Shown(levels=np.concatenate(levels), **figures)


def _widened(found: Shown, pairs: Pairs, rows: LongArray) -> Shown:
    """Put levels of the attributes that owners have in their places."""
    levels = np.zeros((len(rows), pairs.heights.shape[1]), dtype=np.int8)
    for row, p in enumerate(rows.tolist()):
        has = np.flatnonzero(pairs.heights[p])
        levels[row, has] = found.levels[row, : len(has)]
    return Shown(
        levels, found.objective, found.bound, found.proved, found.sensitivity, found.utility, found.consistent,
        found.visited,
    )  # fmt: skip


def _first(found: Shown, rows: LongArray) -> Shown:
    return Shown(
        found.levels[rows], found.objective[rows], found.bound[rows], found.proved[rows], found.sensitivity[rows],
        found.utility[rows], found.consistent[rows], found.visited[rows],
    )  # fmt: skip


def _gap(found: Shown) -> float:
    if not np.isfinite(found.bound).all():
        return float("inf")
    share = found.gap / np.maximum(found.bound, np.finfo(np.float64).tiny)
    return float(share.max(initial=0.0))


def risks(found: Shown) -> FloatArray:
    """float64 (n,): Φ/ξ, infinite without a consistent friend; 0 where nothing that costs is shown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        risk = found.sensitivity / found.consistent
    return np.where(found.sensitivity > 0, risk, 0.0)


def comparable(one: Shown, other: Shown) -> BoolArray:
    """Whether risks are within a tenth of each other, or both infinite; bool (n,)."""
    mine, theirs = risks(one), risks(other)
    both = np.isfinite(mine) & np.isfinite(theirs)
    near = np.abs(np.where(both, mine, 0.0) - np.where(both, theirs, 0.0)) <= _COMPARABLE * np.where(both, theirs, 0.0)
    alike: BoolArray = np.where(both, near, mine == theirs)
    return alike


def _run(method: str, consistency: Consistency, k: int, pairs: Pairs, found: Shown, best: Shown, seconds: float) -> Run:
    share = found.objective / best.objective
    return Run(
        method=method,
        consistency=consistency,
        k=k,
        pairs=pairs.n,
        seconds=seconds,
        value=float(share.mean()),
        least=float(share.min(initial=1.0)),
        optimal=int((share >= 1 - _EQUAL).sum()),
        comparable=int(comparable(found, best).sum()),
        whole=int((found.levels == 0).all(axis=1).sum()),
        nothing=int((found.levels == pairs.heights).all(axis=1).sum()),
        unlimited=int(np.isinf(risks(found)).sum()),
        proved=int(found.proved.sum()),
        gap=_gap(found),
        near=int((share >= (1 - _EQUAL) / (1 + EPSILON)).sum()),
        visited=float(found.visited.mean()),
        layers=float(layers_of(pairs, EPSILON).mean()),
    )
