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
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.recoding.bases import Bases
from privrisk_spark.kernels.recoding.floors import SLACK, Floors, Look, exceeds, look
from privrisk_spark.kernels.recoding.metrics import Facts, order
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of

__all__ = ["NODES_AT_MOST", "Shortcuts", "top_down"]

Levels = tuple[int, ...]

NODES_AT_MOST = 50_000
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
        Whether nodes that do not keep the limit rule out what is nowhere above them.
    greedy : bool
        Whether a greedy way down comes first.
    """

    by_cost: bool = True
    by_limit: bool = True
    narrowed: bool = True
    remembered: bool = True
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


class _OutOfLooks(Exception):
    """No look is left."""


class _Search:
    """One search: the best scheme known, the boxes that wait, and what nodes say of others."""

    def __init__(self, problem: Problem, looks: int, shortcuts: Shortcuts) -> None:
        self.problem, self.left, self.looks, self.shortcuts = problem, looks, 0, shortcuts
        self.floors, self.bases = Floors(problem), Bases(problem)
        self.heights = problem.measured.table.lattice.heights
        self.prunes = problem.monotone and shortcuts.by_limit
        self.best: Facts | None = None
        self.key = np.inf
        self.boxes: list[tuple[float, Levels, Levels]] = []
        self._failed = np.zeros((64, len(self.heights)), dtype=np.int16)
        self._n_failed = 0
        self._kept: dict[Levels, tuple[NodeSeen, int]] = {}

    def run(self) -> Scheme | None:
        """Search until no box is left, or no look."""
        bottom = (0,) * len(self.heights)
        floor = -np.inf
        try:
            if self.shortcuts.greedy:
                self._go_down()
            self._wait(floor, bottom, self.heights)
            while self.boxes:
                floor, low, high = heapq.heappop(self.boxes)
                self._open(floor, low, high)
        except _OutOfLooks:
            if self.best is None:
                raise InputError(
                    f"No scheme that keeps the limit was found among {self.looks} nodes, and others may be. "
                    "A greater nodes_at_most would look at more."
                ) from None
            rest = min([floor, *(box[0] for box in self.boxes)])
            least = max(rest, self.floors.of_lattice())
            return best_of(self.problem, [self.best], nodes_evaluated=self.looks, optimal=False, least=least)
        found = [] if self.best is None else [self.best]
        return best_of(self.problem, found, nodes_evaluated=self.looks, optimal=True)

    # ------------------------------------------------------------------------------------------------ looks

    def _look(self, levels: Levels, low: Levels) -> Look | None:
        """Look at a node from the classes of one below it; None if it is known not to keep the limit."""
        if self.prunes and self.shortcuts.remembered and self._is_ruled_out(levels):
            return None
        if self.looks >= self.left:
            raise _OutOfLooks
        self.looks += 1
        seen = look(self.problem, levels, self.bases.at(low))
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

    # ------------------------------------------------------------------------------------------------ boxes

    def _go_down(self) -> None:
        """Step down from the top, always to the best node that keeps the limit, while there is one."""
        levels = self.heights
        bottom = (0,) * len(levels)
        seen = self._look(levels, bottom)
        while seen is not None and seen.facts is not None:
            steps = [
                found.facts
                for i, level in enumerate(levels)
                if level
                and (found := self._look((*levels[:i], level - 1, *levels[i + 1 :]), bottom)) is not None
                and found.facts is not None
            ]
            if not steps:
                return
            levels = min(steps, key=lambda facts: order(self.problem.metric, facts)).levels

    def _wait(self, floor: float, low: Levels, high: Levels) -> None:
        """Let a box wait, if it can win."""
        if not (self.shortcuts.by_cost and exceeds(floor, self.key)):
            heapq.heappush(self.boxes, (floor, low, high))

    def _open(self, floor: float, low: Levels, high: Levels) -> None:
        """Look at a box, and cut it in two if it can still win."""
        if self.shortcuts.by_cost and exceeds(floor, self.key):
            return
        heapq.heappush(self.boxes, (floor, low, high))  # so that it counts as left if looks run out
        seen = self._look(high, low)
        heapq.heappop(self.boxes) if self.boxes[0] == (floor, low, high) else self.boxes.remove((floor, low, high))
        raise NotImplementedError
