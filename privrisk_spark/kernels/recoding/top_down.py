"""Schemes of lattices too large to hold an array of: from the most general node down, with a gap at any time.

The lattice is one box (:mod:`privrisk_spark.kernels.recoding.floors`). A greedy way down from its top gives a first
scheme. Then always the box of the least floor is taken:

1. its highest levels come down to what the floor allows without exceeding the best scheme known;
2. its highest node is looked at. If that does not keep the limit, and the problem is monotone, no node of the box does;
   if it does, it may be the best, and what it suppresses lifts the floor;
3. it is cut in two where the floor of the upper part rises most.

When no box is left, the best scheme is the optimum. When looks have run out, it costs at most the gap more: its key
less the least floor of the boxes that are left. A node that is nowhere above one that does not keep the limit needs no
look, where the problem is monotone. Status: *proved*. What is kept are the boxes that wait and the nodes that do not
keep the limit: no array has the shape of the lattice. Nothing depends on time, so the answer is the same on every
machine.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.recoding.bases import Bases
from privrisk_spark.kernels.recoding.floors import SLACK, Floors, Look, exceeds, look
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import Facts, order
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of

__all__ = ["NODES_AT_MOST", "Shortcuts", "top_down"]

Levels = tuple[int, ...]

NODES_AT_MOST = 8_000
"""Nodes that are looked at unless told otherwise."""


@dataclass(frozen=True)
class Shortcuts:
    """What may be left out because it is known: each can be switched off, which changes no optimum.

    Attributes
    ----------
    by_cost, by_limit : bool
        Whether boxes are left out for their floor, and for what their highest node suppresses.
    narrowed : bool
        Whether highest levels come down to what the floor allows.
    remembered : bool
        Whether nodes that do not keep the limit rule out, without a look, what is nowhere above them.
    raised : bool
        Whether lowest levels go up to what is not ruled out.
    greedy : bool
        Whether a greedy way down comes first.
    """

    by_cost: bool = True
    by_limit: bool = True
    narrowed: bool = True
    remembered: bool = True
    raised: bool = True
    greedy: bool = True


def top_down(
    problem: Problem, *, nodes_at_most: int = NODES_AT_MOST, shortcuts: Shortcuts | None = None
) -> Scheme | None:
    """Return the best scheme found; None if none keeps the limit.

    Parameters
    ----------
    problem : Problem
        With a lattice of any size.
    nodes_at_most : int
        Looks at nodes, after which it stops with what is proved by then.
    shortcuts : Shortcuts, optional
        All by default.

    Raises
    ------
    InputError
        If no look is allowed, or if looks ran out before a scheme was found, which is only possible with conditions
        that are not monotone.
    """
    if nodes_at_most < 1:
        raise InputError(f"At least one node must be looked at. Got nodes_at_most {nodes_at_most}.")
    return _Search(problem, nodes_at_most, shortcuts or Shortcuts()).run()


class _OutOfLooksError(Exception):
    """No look is left."""


@dataclass(frozen=True, eq=False)
class _Box:
    """Nodes between two, their floor, and what attributes add to it; None if the highest was not looked at."""

    floor: float
    low: Levels
    high: Levels
    chains: FloatArray | None


class _Search:
    """One search: the best scheme known, the boxes that wait, and what nodes say of others."""

    def __init__(self, problem: Problem, looks: int, shortcuts: Shortcuts) -> None:
        self.problem, self.left, self.looks, self.shortcuts = problem, looks, 0, shortcuts
        self.floors, self.bases = Floors(problem), Bases(problem.measured.table)
        self.heights = problem.measured.table.lattice.heights
        self.prunes = problem.monotone and shortcuts.by_limit
        self.best: Facts | None = None
        self.key = np.inf
        self.boxes: list[tuple[float, int, _Box]] = []
        self._failed = np.zeros((64, len(self.heights)), dtype=np.int16)
        self._n_failed = 0
        self._rows, self._pushed = np.arange(len(self.heights)), 0

    def run(self) -> Scheme | None:
        """Search until no box is left, or no look."""
        bottom = (0,) * len(self.heights)
        floor = -np.inf
        try:
            if self.shortcuts.greedy:
                self._go_down()
            self._wait(_Box(floor, bottom, self.heights, None))
            while self.boxes:
                floor, _, box = heapq.heappop(self.boxes)
                self._open(box)
        except _OutOfLooksError:
            if self.best is None:
                raise InputError(
                    f"No scheme that keeps the limit was found among {self.looks} nodes, and others may be. "
                    "Use hierarchies of fewer levels or fewer quasi-identifiers, allow for more rows to be suppressed, "
                    "or choose datafly."
                ) from None
            rest = min([floor, *(box[0] for box in self.boxes)])
            least = max(rest, self.floors.of_lattice())
            return best_of(self.problem, [self.best], nodes_evaluated=self.looks, optimal=False, least=least)
        found = [] if self.best is None else [self.best]
        return best_of(self.problem, found, nodes_evaluated=self.looks, optimal=True)

    def _look(self, levels: Levels, base: NodeClasses) -> Look | None:
        """Look at a node from the classes of one that is nowhere above it; None if it is known to miss the limit."""
        if self.prunes and self.shortcuts.remembered and self._is_ruled_out(levels):
            return None
        if self.looks >= self.left:
            raise _OutOfLooksError
        self.looks += 1
        seen = look(self.problem, levels, base)
        if seen.facts is None:
            if self.prunes:
                self._remember(levels)
        elif self.best is None or order(self.problem.metric, seen.facts) < order(self.problem.metric, self.best):
            self.best, self.key = seen.facts, float(self.problem.metric.key(seen.facts))
        return seen

    def _is_ruled_out(self, levels: Levels) -> bool:
        """Whether a node is nowhere above one that does not keep the limit."""
        return bool((self._failed[: self._n_failed] >= np.array(levels, dtype=np.int16)).all(axis=1).any())

    def _remember(self, levels: Levels) -> None:
        """Keep a node that does not keep the limit, and none that it says all of."""
        node = np.array(levels, dtype=np.int16)
        failed = self._failed[: self._n_failed]
        needed = failed[~(failed <= node).all(axis=1)]
        if len(needed) + 1 > len(self._failed):
            self._failed = np.zeros((2 * len(self._failed), len(self.heights)), dtype=np.int16)
        self._failed[: len(needed)] = needed
        self._failed[len(needed)] = node
        self._n_failed = len(needed) + 1

    def _go_down(self) -> None:
        """Step down from the top, always to the best node that keeps the limit, while there is one."""
        levels = self.heights
        seen = self._look(levels, self.bases.at((0,) * len(levels)))
        while seen is not None and seen.facts is not None:
            # All steps are counted from the node a level below everywhere, whose classes are far fewer than records.
            below = self.problem.measured.table.classes([max(level - 1, 0) for level in levels])
            steps = [
                found.facts
                for i, level in enumerate(levels)
                if level
                and (found := self._look((*levels[:i], level - 1, *levels[i + 1 :]), below)) is not None
                and found.facts is not None
            ]
            if not steps:
                return
            levels = min(steps, key=lambda facts: order(self.problem.metric, facts)).levels

    def _wait(self, box: _Box) -> None:
        """Let a box wait, if it can win."""
        if not (self.shortcuts.by_cost and exceeds(box.floor, self.key)):
            heapq.heappush(self.boxes, (box.floor, self._pushed, box))
            self._pushed += 1

    def _open(self, box: _Box) -> None:
        """Look at a box, and cut it in two if it can still win."""
        if self.shortcuts.by_cost and exceeds(box.floor, self.key):
            return
        floor, low, high, chains = box.floor, box.low, box.high, box.chains
        while True:
            if chains is None:
                base = self.bases.at(low)
                seen = self._look(high, base)
                if self.prunes and (seen is None or seen.facts is None):
                    return
                lost = seen.lost if seen is not None and self.prunes else None
                chains = self.floors.chains(base, lost)
                if self.floors.of_classes:
                    floor = max(floor, self.floors.of_low(base, lost))
            if low == high:
                return
            if not self.floors.of_classes:
                floor = max(floor, self.floors.key(float(chains[self._rows, list(low)].sum())))
            if self.shortcuts.by_cost and exceeds(floor, self.key):
                return
            narrowed = self._narrowed(chains, low, high)
            if narrowed == high:
                break
            high, chains = narrowed, None
        raised = self._raised(low, high)
        if raised != low:
            # Classes of the new lowest node are fewer, and so is what is left to look at.
            self._wait(_Box(floor, raised, high, None if self.floors.of_classes else chains))
            return
        i, level = self._cut(chains, low, high)
        above = (*low[:i], level, *low[i + 1 :])
        if self.floors.of_classes:
            self._wait(_Box(floor, above, high, None))
        else:
            dearer = self.floors.key(float(chains[self._rows, list(above)].sum()))
            self._wait(_Box(max(floor, dearer), above, high, chains))
        self._wait(_Box(floor, low, (*high[:i], level - 1, *high[i + 1 :]), None))

    def _narrowed(self, chains: FloatArray, low: Levels, high: Levels) -> Levels:
        """Highest levels that an attribute can have alone, with all others at their lowest, and still win."""
        if self.floors.of_classes or not (self.shortcuts.narrowed and self.shortcuts.by_cost) or self.best is None:
            return high
        at_low = chains[self._rows, list(low)]
        most = self.floors.total(self.key)
        room = most - float(at_low.sum()) + SLACK * (1.0 + abs(most)) * max(len(low), 1)
        allowed = ((chains - at_low[:, None]) <= room) & np.isfinite(chains)
        levels = np.arange(chains.shape[1])
        return tuple(
            min(above, max(below, int(levels[of].max(initial=below))))
            for of, below, above in zip(allowed, low, high, strict=True)
        )

    def _raised(self, low: Levels, high: Levels) -> Levels:
        """Lowest levels that an attribute can have alone, with all others at their highest, and may keep the limit."""
        if not (self.prunes and self.shortcuts.raised):
            return low
        raised = list(low)
        for i, above in enumerate(high):
            while raised[i] < above:
                if not self._is_ruled_out((*high[:i], raised[i], *high[i + 1 :])):
                    break
                raised[i] += 1
        return tuple(raised)

    def _cut(self, chains: FloatArray, low: Levels, high: Levels) -> tuple[int, int]:
        """Return attribute and lowest level of the upper part: where costs rise most, or in the middle."""
        if self.floors.of_classes:
            i = max(range(len(low)), key=lambda i: (high[i] - low[i], -i))
            return i, (low[i] + high[i] + 1) // 2
        rises = [
            (float(chains[i, level] - chains[i, level - 1]), -i, -level)
            for i in range(len(low))
            for level in range(low[i] + 1, high[i] + 1)
        ]
        _, i, level = max(rises)
        return -i, -level
