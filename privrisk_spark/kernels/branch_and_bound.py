"""Exact search of one record's lattice by boxes ``lo <= x <= hi``, for lattices too large to enumerate.

Write ``r(x) = Φ(x) · f(ρ(x))`` with ``f`` non-increasing: ``1/ρ`` for model I, ``ln(N/ρ)`` for model III, and for
model II ``1/ρ`` with Φ = 1. Over a box ``f(ρ(x)) >= f(ρ(hi))`` and ``u(x) <= u(lo)``, so with ``F = f(ρ(hi))``

* *least risk*: ``r(x) >= F · min {Φ(x) : u(x) >= c}``. Where ``hi`` itself reaches the floor, ``r(hi)`` is the least;
* *greatest utility*: ``u(x) <= max {u(x) : F Φ(x) <= c}``; and nothing is admitted where ``r(hi) > c``;
* *penalized risk*: ``r(x) - λ u(x) >= Σ_i min {F w_i(s) - λ d_i(s) : lo_i <= s <= hi_i}``.

The first two are multiple-choice knapsacks: a step of attribute i from ``lo_i`` to s loses ``d_i(lo_i) - d_i(s)`` of
utility and saves ``w_i(lo_i) - w_i(s)`` of sensitivity. Their linear relaxation takes the edges of each attribute's
upper hull of (lost, saved) in descending order of saved/lost until the budget is spent (Sinha and Zoltners 1979).

Boxes are opened in ascending order of their bound, several at a time, halved along the attribute whose utility differs
most between ``lo`` and ``hi``; ``hi`` is lowered to what the floor of utility, given or reached, leaves possible.

Of the dictionary, a level vector of utility at least c generalizes no row g with ``u(g) < c``, and in a box none with
``u(g ∨ lo) < c``, g ∨ lo being the least level vector that is at least both. For the least risk the former rows are
left out from the start, and the latter where a box has few rows left.

Ties. A box is dropped only if no level vector of it is better than the best so far under the whole tie rule of the
goal: its bound exceeds the best objective by more than the tolerance; or is within the tolerance, and ``u(lo)`` (for
the greatest utility: ``r(hi)``) shows that the second criterion is worse, or equal and ``lo`` comes not before the best
in lexicographic order, as every level vector of the box is at least ``lo``. So when no box is left, the answer is the
one enumeration gives, ties included. Where the least risk is flat, ``lo`` is raised to the levels from which on
``r(hi with x_i = s)`` does not exceed the best risk, since risk is non-increasing in every level.

Status: *proved* for every modular utility and the risk models above, by the bounds given here.

References
----------
P. Sinha, A. A. Zoltners, "The multiple-choice knapsack problem", Operations Research 27(3), 1979.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.evaluation import Evaluation
from privrisk_spark.kernels.goal import Goal, GreatestUtility, LeastPenalized, LeastRisk, Valued
from privrisk_spark.kernels.lattice import TOLERANCE
from privrisk_spark.kernels.local_search import local_optimum, preferred
from privrisk_spark.kernels.record import Answer, RecordLattice, answer

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MOST_BOXES = 1_000_000
"""Boxes evaluated before the best so far is returned with the bound that remains."""

_MOST_AT_ONCE = 256
"""Boxes opened at once. Changes the number of boxes visited, not a proved result."""


_FEW_ROWS = 128
"""Most consistent rows of a box at which they are looked at one by one. Changes boxes visited, not a proved result."""


def branch_and_bound(lattice: RecordLattice, goal: Goal, *, most_boxes: int = MOST_BOXES) -> Answer | None:
    """Best level vector of one record.

    Parameters
    ----------
    lattice : RecordLattice
        Of any size. Weights must be finite.
    goal : LeastRisk or GreatestUtility or LeastPenalized
    most_boxes : int
        At least 1. A count, not a time, so that results can be reproduced.

    Returns
    -------
    Answer or None
        ``visited`` counts boxes. ``proved``: the optimum, ties included. ``heuristic``: the limit was reached, and
        no level vector is better than ``bound``; where that equals the objective within the tolerance, only the tie is
        not settled. None if nothing satisfies the constraint.

    Raises
    ------
    InputError
        If a weight is not finite or the limit is not positive.
    """
    if most_boxes < 1:
        raise InputError(f"most_boxes must be at least 1. Got {most_boxes}.")
    search = _Search(lattice, goal)
    return search.run(most_boxes)


def root_bound(lattice: RecordLattice, goal: Goal) -> float:
    """What no level vector that satisfies the constraint can better: the bound of the whole lattice as one box.

    Parameters
    ----------
    lattice : RecordLattice
        Weights must be finite.
    goal : LeastRisk or GreatestUtility or LeastPenalized

    Returns
    -------
    float
        In units of the objective. Infinite, on the side of no hope, if nothing satisfies the constraint.
    """
    search = _Search(lattice, goal)
    boxes = search.bounded(search.root())
    first = float(boxes.first[0]) if len(boxes.first) else np.inf
    return -first if isinstance(goal, GreatestUtility) else first


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Boxes with the least that the first and second criterion can be in them, both to be minimized."""

    lo: LongArray
    hi: LongArray
    first: FloatArray
    second: FloatArray

    def only(self, rows: BoolArray | LongArray) -> _Boxes:
        return _Boxes(self.lo[rows], self.hi[rows], self.first[rows], self.second[rows])


class _Search:
    def __init__(self, lattice: RecordLattice, goal: Goal) -> None:
        self.goal = goal
        self.evaluation = Evaluation(lattice, floor=goal.floor if isinstance(goal, LeastRisk) else -np.inf)
        self.heights = lattice.heights
        self.attributes = np.arange(lattice.k)
        self.levels = np.arange(self.evaluation.levels)
        # Model II: the sensitivity is 1, whatever is disclosed.
        self.constant = lattice.model == "II"
        self.weights = np.zeros_like(self.evaluation.weights) if self.constant else self.evaluation.weights
        # Finite where there is no such level: there, nothing reads them.
        self.utilities = np.maximum(self.evaluation.utilities, 0.0)
        if not isinstance(goal, LeastPenalized):
            self.hulls = _Hulls(self.weights, self.evaluation.utilities, self.heights)
        self.best: Valued | None = None
        self.visited = 0

    # ------------------------------------------------------------------------------------------- the loop

    def run(self, most_boxes: int) -> Answer | None:
        self.best, _ = local_optimum(self.evaluation, self.goal)
        if self.best is None:
            return None
        heap: list[tuple[float, float, int]] = []
        lo = np.zeros((1024, len(self.heights)), dtype=np.int8)
        hi = np.zeros_like(lo)
        held = 0
        fresh = self.evaluated(self.root())
        while True:
            n = len(fresh.first)
            while held + n > len(lo):
                lo, hi = np.concatenate([lo, np.zeros_like(lo)]), np.concatenate([hi, np.zeros_like(hi)])
            lo[held : held + n], hi[held : held + n] = fresh.lo, fresh.hi
            numbers = range(held, held + n)
            for entry in zip(fresh.first.tolist(), fresh.second.tolist(), numbers, strict=True):
                heapq.heappush(heap, entry)
            held += n
            if not heap or self.visited >= most_boxes:
                break
            # Few at a time while few are open, as the best so far is still moving.
            at_once = min(32 + len(heap) // 4, _MOST_AT_ONCE, max(1, (most_boxes - self.visited) // 2))
            popped = [heapq.heappop(heap) for _ in range(min(at_once, len(heap)))]
            keys = np.array([entry[:2] for entry in popped])
            at = np.array([entry[2] for entry in popped])
            opened = _Boxes(lo[at].astype(np.int64), hi[at].astype(np.int64), keys[:, 0], keys[:, 1])
            hopeful = self.hopeful(opened)
            if not hopeful.any() and self._beyond(opened.first[-1]):
                # Boxes come in ascending order: the rest is beyond as well.
                heap = []
                break
            fresh = self.evaluated(self.halves(opened.only(hopeful)))
        return self._answer(heap)

    def _answer(self, heap: list[tuple[float, float, int]]) -> Answer:
        assert self.best is not None
        levels = np.array(self.best[2], dtype=np.int64)
        # As the contract evaluates, whose sums these are too.
        lattice = self.evaluation.lattice
        risk, utility = np.array([lattice.risk(levels)]), np.array([lattice.utility(levels)])
        objective = float(self.goal.objective(risk, utility)[0])
        sign = -1.0 if isinstance(self.goal, GreatestUtility) else 1.0
        bound = sign * min(heap[0][0], sign * objective) if heap else objective
        proved = not heap or self._beyond(heap[0][0])
        return answer(
            lattice,
            levels,
            objective=objective,
            bound=objective if proved else bound,
            visited=self.visited,
            proved=proved,
        )

    def root(self) -> tuple[LongArray, LongArray]:
        return np.zeros((1, len(self.heights)), dtype=np.int64), self.heights[None, :].copy()

    def halves(self, boxes: _Boxes) -> tuple[LongArray, LongArray]:
        """Both halves of every box; boxes have more than one level vector."""
        utility = self.evaluation.utilities
        spread = utility[self.attributes, boxes.lo] - utility[self.attributes, boxes.hi]
        axis = np.where(boxes.hi > boxes.lo, spread, -1.0).argmax(axis=1)
        rows = np.arange(len(axis))
        middle = (boxes.lo[rows, axis] + boxes.hi[rows, axis]) // 2
        below, above = boxes.hi.copy(), boxes.lo.copy()
        below[rows, axis] = middle
        above[rows, axis] = middle + 1
        return np.concatenate([boxes.lo, above]), np.concatenate([below, boxes.hi])

    # ------------------------------------------------------------------------------------------- a batch of boxes

    def evaluated(self, corners: tuple[LongArray, LongArray]) -> _Boxes:
        """Boxes that may hold something better than the best so far, which is updated from their corners."""
        self.visited += len(corners[0])
        boxes = self.bounded(corners)
        boxes = boxes.only(self.hopeful(boxes))
        if isinstance(self.goal, LeastRisk):
            boxes = self._raised(boxes)
        return boxes.only(np.flatnonzero((boxes.lo < boxes.hi).any(axis=1)))

    def hopeful(self, boxes: _Boxes) -> BoolArray:
        """Which boxes may hold something better than the best so far."""
        if self.best is None:
            return np.ones(len(boxes.first), dtype=np.bool_)
        first, second = self._criteria(self.best)
        slack = self._slack(first)
        tied = boxes.first >= first - slack
        beyond = boxes.first > first + slack
        gap = TOLERANCE * max(1.0, abs(second)) if isinstance(self.goal, LeastRisk) else TOLERANCE * abs(second)
        worse = boxes.second > second + gap
        equal = np.flatnonzero(tied & ~beyond & ~worse & (boxes.second >= second - gap))
        differ = boxes.lo[equal] != np.array(self.best[2])
        at = differ.argmax(axis=1)
        later = boxes.lo[equal, at] >= np.array(self.best[2])[at]
        hopeless = beyond | (tied & worse)
        if isinstance(self.goal, LeastPenalized):
            # Of these three criteria the levels are not the third.
            return ~hopeless
        hopeless[equal[later]] = True
        return ~hopeless

    def bounded(self, corners: tuple[LongArray, LongArray]) -> _Boxes:
        """Bounds of those boxes that may hold something admitted; the best so far is updated from their corners."""
        lo, hi = corners
        at_lo = self.evaluation.utility(lo)
        floor = self._floor()
        keep = at_lo >= floor
        lo, hi, at_lo = lo[keep], hi[keep], at_lo[keep]
        if np.isfinite(floor):
            hi = self._lowered(lo, hi, at_lo, floor)
        consistent = self.evaluation.consistent(hi)
        risk = self.evaluation.risk_of(self.evaluation.sensitivity(hi), consistent)
        utility = self.evaluation.utility(hi)
        self.best = preferred(self.goal, self.best, hi, risk, utility)
        factor = self.evaluation.risk_of(np.ones(len(hi)), consistent)
        match self.goal:
            case LeastRisk():
                exact = self.goal.admits(risk, utility)
                open_ = np.flatnonzero(~exact)
                sensitivity = self._sensitivity(lo[open_])
                saved = self.hulls.most_saved(lo[open_], hi[open_], at_lo[open_] - floor)
                least = np.maximum(sensitivity * (1 - self.hulls.rounding) - saved, self._sensitivity(hi[open_]))
                first = risk.copy()
                first[open_] = least * factor[open_] * (1 - self.hulls.rounding)
                self._sharpen(lo, hi, first, open_, least, consistent, floor)
                return _Boxes(lo, hi, first, -at_lo)
            case GreatestUtility(ceiling):
                within = risk <= ceiling * (1 + TOLERANCE)
                lo, hi, at_lo, risk, factor = lo[within], hi[within], at_lo[within], risk[within], factor[within]
                sensitivity = self._sensitivity(lo)
                most = np.full(len(lo), ceiling * (1 + 2 * TOLERANCE))
                affordable = np.divide(most, factor, out=np.full(len(lo), np.inf), where=factor > 0)
                need = sensitivity * (1 - self.hulls.rounding) - affordable
                self._offer(lo[need <= 0])
                lost = self.hulls.least_lost(lo, hi, need)
                return _Boxes(lo, hi, lost * (1 - self.hulls.rounding) - at_lo, risk)
            case LeastPenalized(trade):
                options = self.weights[None] * factor[:, None, None] - trade * self.utilities[None]
                inside = (self.levels >= lo[:, :, None]) & (self.levels <= hi[:, :, None])
                chosen = np.where(inside, options, np.inf).argmin(axis=2)
                total = factor + 0.0 if self.constant else np.zeros(len(lo))
                for i in self.attributes:
                    total += options[np.arange(len(lo)), i, chosen[:, i]]
                self._offer(chosen[total < np.partition(total, 7)[7] if len(total) > 7 else slice(None)])
                return _Boxes(lo, hi, total, risk)

    def _sharpen(
        self,
        lo: LongArray,
        hi: LongArray,
        first: FloatArray,
        open_: LongArray,
        least: FloatArray,
        consistent: LongArray,
        floor: float,
    ) -> None:
        """Raise the bounds of the open boxes that are not beyond the best by a closer look at their rows."""
        if self.best is None:
            return
        few = (consistent[open_] > 1) & (consistent[open_] <= _FEW_ROWS)
        near = np.flatnonzero(few & (first[open_] <= self.best[0] * (1 + TOLERANCE)))
        at = open_[near]
        rows = self.evaluation.consistent_within(lo[at], hi[at], floor)
        factor = self.evaluation.risk_of(np.ones(len(at)), np.maximum(rows, 1))
        first[at] = least[near] * factor * (1 - self.hulls.rounding)

    def _offer(self, levels: LongArray) -> None:
        if len(levels):
            risk, utility = self.evaluation.risk(levels), self.evaluation.utility(levels)
            self.best = preferred(self.goal, self.best, levels, risk, utility)

    def _sensitivity(self, levels: LongArray) -> FloatArray:
        return np.ones(len(levels)) if self.constant else self.evaluation.sensitivity(levels)

    def _lowered(self, lo: LongArray, hi: LongArray, at_lo: FloatArray, floor: float) -> LongArray:
        """``hi`` with each level at most the highest that leaves ``floor`` within reach of the others at ``lo``."""
        utilities = self.evaluation.utilities
        need = floor - at_lo[:, None] + utilities[self.attributes, lo]
        lowered: LongArray = np.minimum(hi, (utilities[None] >= need[:, :, None]).sum(axis=2) - 1)
        return np.maximum(lowered, lo)

    def _raised(self, boxes: _Boxes) -> _Boxes:
        """Boxes whose bound meets the least risk so far, less the levels whose risk is greater."""
        assert self.best is not None
        ceiling = self.best[0] * (1 + TOLERANCE)
        tied = np.flatnonzero(boxes.first >= self.best[0] * (1 - 1e-9))
        if not len(tied):
            return boxes
        lo, hi = boxes.lo[tied], boxes.hi[tied]
        box, i, s = np.nonzero((self.levels >= lo[:, :, None]) & (self.levels < hi[:, :, None]))
        points = hi[box]
        points[np.arange(len(points)), i] = s
        greater = self.evaluation.risk(points) > ceiling
        raised = lo.copy()
        np.add.at(raised, (box[greater], i[greater]), 1)
        at_lo = self.evaluation.utility(raised)
        boxes.lo[tied], boxes.second[tied] = raised, -at_lo
        keep = np.ones(len(boxes.first), dtype=np.bool_)
        keep[tied] = at_lo >= self._floor()
        boxes = boxes.only(keep)
        return boxes.only(self.hopeful(boxes))

    # ------------------------------------------------------------------------------------------- what the goal asks

    def _criteria(self, of: Valued) -> tuple[float, float]:
        """First and second criterion, both to be minimized."""
        risk, utility = of[0], of[1]
        match self.goal:
            case LeastRisk():
                return risk, -utility
            case GreatestUtility():
                return -utility, risk
            case LeastPenalized(trade):
                return risk - trade * utility, risk

    def _slack(self, first: float) -> float:
        return TOLERANCE * abs(first) if isinstance(self.goal, LeastRisk) else TOLERANCE * max(1.0, abs(first))

    def _floor(self) -> float:
        """Utility that something better than the best so far must reach."""
        match self.goal:
            case LeastRisk(floor):
                return floor - TOLERANCE * max(1.0, abs(floor))
            case GreatestUtility() if self.best is not None:
                return self.best[1] - 2 * TOLERANCE * max(1.0, abs(self.best[1]))
        return -np.inf

    def _beyond(self, first: float) -> bool:
        assert self.best is not None
        mine = self._criteria(self.best)[0]
        return bool(first > mine + self._slack(mine))


class _Hulls:
    """Edges of the upper hull of (utility lost, sensitivity saved) of every attribute between any two levels.

    Attributes
    ----------
    rounding : float
        Bound on the relative rounding error of a sum of edges.
    """

    def __init__(self, weights: FloatArray, utilities: FloatArray, heights: LongArray) -> None:
        k, levels = weights.shape
        edges = max(1, levels - 1)
        self.levels = levels
        self.lost = np.zeros((k, levels, levels, edges))
        self.saved = np.zeros_like(self.lost)
        for i, height in enumerate(heights.tolist()):
            w, d = weights[i].tolist(), utilities[i].tolist()
            for lo in range(height):
                # Upper hull of the points lo, lo + 1, ...; its prefix up to hi is the hull of the box.
                hull = [lo]
                for hi in range(lo + 1, height + 1):
                    while len(hull) > 1 and _bends(w, d, hull[-2], hull[-1], hi):
                        hull.pop()
                    hull.append(hi)
                    for e, (a, b) in enumerate(itertools.pairwise(hull)):
                        self.lost[i, lo, hi, e] = d[a] - d[b]
                        self.saved[i, lo, hi, e] = w[a] - w[b]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Ascending order puts what is free first and what saves nothing last.
            self.order = np.where(self.saved > 0, -self.saved / self.lost, 1.0).reshape(-1, edges)
        self.lost, self.saved = self.lost.reshape(-1, edges), self.saved.reshape(-1, edges)
        self.base = np.arange(k) * levels * levels
        self.rounding = 4 * np.finfo(np.float64).eps * (k * edges + 4)

    def most_saved(self, lo: LongArray, hi: LongArray, budget: FloatArray) -> FloatArray:
        """Upper bound of the sensitivity saved where at most ``budget >= 0`` of utility is lost; shape (n,)."""
        return self._spent(lo, hi, budget, self.lost, self.saved, free=1.0)

    def least_lost(self, lo: LongArray, hi: LongArray, need: FloatArray) -> FloatArray:
        """Lower bound of the utility lost where at least ``need`` of sensitivity is saved; shape (n,).

        Infinite where that cannot be saved.
        """
        lost = self._spent(lo, hi, need, self.saved, self.lost, free=0.0)
        rows = lo * self.levels + hi + self.base
        most = self.saved.sum(axis=1).take(rows).sum(axis=1) * (1 + self.rounding)
        return np.where(need > most, np.inf, lost)

    def _spent(
        self, lo: LongArray, hi: LongArray, budget: FloatArray, of: FloatArray, gained: FloatArray, *, free: float
    ) -> FloatArray:
        """What is gained by edges in order, the last one in part, until ``budget`` of the other is spent.

        ``free`` is the part taken of edges that spend nothing.
        """
        n = len(lo)
        if not n:
            return np.zeros(0)
        rows = lo * self.levels + hi + self.base
        order = np.argsort(self.order.take(rows, axis=0).reshape(n, -1), axis=1, kind="stable")
        edges = np.take_along_axis(of.take(rows, axis=0).reshape(n, -1), order, axis=1)
        gains = np.take_along_axis(gained.take(rows, axis=0).reshape(n, -1), order, axis=1)
        room = np.maximum(budget, 0.0)[:, None] - (np.cumsum(edges, axis=1) - edges)
        part = np.divide(room, edges, out=np.full_like(room, free), where=edges > 0)
        total: FloatArray = (np.clip(part, 0.0, 1.0) * gains).sum(axis=1)
        return total


def _bends(w: list[float], d: list[float], a: int, b: int, c: int) -> bool:
    """Whether ``b`` lies on or below the line from ``a`` to ``c``, in the plane of (lost, saved)."""
    return (w[a] - w[b]) * (d[a] - d[c]) <= (w[a] - w[c]) * (d[a] - d[b])
