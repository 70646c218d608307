"""Optimal full-domain schemes by lattices that can be walked: every node, or those that are not ruled out.

All find the same scheme, by every metric: what they save are nodes of which it is known without a look that they do not
keep the limit (or that they do, for ``samarati``). Without a monotone condition nothing is known, and all look at every
node. Status: *proved*.

=============  ==================================================================================================
exhaustive     every node (minGen; Samarati 2001)
samarati       the least height at which a node keeps the limit, by binary search (Samarati, IEEE TKDE 13(6), 2001)
incognito      nodes of more and more attributes, ruled out by those of fewer (LeFevre et al., SIGMOD 2005)
flash          paths to the top, each by binary search, that rule out what lies below and know what lies above
               (Kohlmayer et al., PASSAT 2012)
=============  ==================================================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray
from privrisk_spark.kernels.recoding.floors import Floors
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import Facts
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of

__all__ = ["Known", "Looked", "by_height", "exhaustive", "flash", "incognito", "samarati"]

Levels = tuple[int, ...]


def exhaustive(problem: Problem) -> Scheme | None:
    """Return the best scheme by looking at every node; None if none keeps the limit."""
    found = [problem.facts(levels, classes) for levels, classes in problem.measured.table.every_node()]
    return best_of(problem, found, nodes_evaluated=len(found), optimal=True)


_HELD = 16
"""Nodes of which the classes are kept."""


class Looked:
    """Nodes that were looked at, each once, from the fewest classes of those kept that are nowhere above it.

    ``learns`` is told of each with its classes.
    """

    def __init__(self, problem: Problem, learns: Callable[[Levels, NodeClasses], None] | None = None) -> None:
        self.learns = learns
        self.problem, self.table = problem, problem.measured.table
        self.facts: dict[Levels, Facts] = {}
        bottom = (0,) * len(self.table.ancestors)
        self._bottom = self.table.classes(bottom)
        self._kept: list[tuple[Levels, NodeClasses]] = []

    def at(self, levels: Levels) -> Facts:
        """Look at a node."""
        if levels not in self.facts:
            below = [
                classes
                for other, classes in self._kept
                if all(one <= another for one, another in zip(other, levels, strict=True))
            ]
            finer = min(below, key=lambda classes: len(classes.rows), default=self._bottom)
            classes = self.table.classes(levels, finer)
            self._kept = [*self._kept[1 - _HELD :], (levels, classes)]
            self.facts[levels] = self.problem.facts(levels, classes)
            if self.learns is not None:
                self.learns(levels, classes)
        return self.facts[levels]

    def keeps_limit(self, levels: Levels) -> bool:
        """Whether a node keeps the limit."""
        return self.problem.keeps_limit(self.at(levels))


def samarati(problem: Problem) -> Scheme | None:
    """Return the best scheme of the least height that has one; None if none keeps the limit.

    It is the best scheme of all by the metric ``height``, and by others not in general.
    """
    looked = Looked(problem)
    heights = problem.measured.table.lattice.heights
    of_height: dict[int, list[Levels]] = {}
    for levels in itertools.product(*(range(height + 1) for height in heights)):
        of_height.setdefault(sum(levels), []).append(levels)

    def kept(height: int) -> list[Levels]:
        return [levels for levels in of_height[height] if looked.keeps_limit(levels)]

    low, high = 0, sum(heights)
    if problem.monotone:
        while low < high:
            middle = (low + high) // 2
            # One node that does is enough to know where to go on.
            if any(looked.keeps_limit(levels) for levels in of_height[middle]):
                high = middle
            else:
                low = middle + 1
    else:
        while low < high and not kept(low):
            low += 1
    best = [looked.at(levels) for levels in kept(low)]
    optimal = problem.metric.name == "height"
    least = -np.inf if optimal else Floors(problem).of_lattice()
    return best_of(problem, best, nodes_evaluated=len(looked.facts), optimal=optimal, least=least)


def incognito(problem: Problem) -> Scheme | None:
    """Return the best scheme among the nodes that no node of fewer attributes rules out; None if none keeps the limit.

    The rows that are suppressed by some of the attributes are suppressed by all of them.
    """
    if not problem.monotone:
        return exhaustive(problem)
    table, looks = problem.measured.table, 0
    heights = table.lattice.heights
    whole = tuple(range(len(heights)))
    possible: dict[tuple[int, ...], BoolArray] = {(): np.ones((), dtype=np.bool_)}
    for size in range(1, len(whole)):
        for part in itertools.combinations(whole, size):
            possible[part], seen = _not_ruled_out(problem, part, _joined(possible, part, heights))
            looks += seen
    last = _joined(possible, whole, heights)
    looked = Looked(problem)
    found = []
    ruled_out = ~last
    for levels in by_height(last):
        if not ruled_out[levels]:
            facts = looked.at(levels)
            if problem.keeps_limit(facts):
                found.append(facts)
            else:
                ruled_out[tuple(slice(0, level + 1) for level in levels)] = True
    return best_of(problem, found, nodes_evaluated=looks + len(looked.facts), optimal=True)


def _joined(possible: dict[tuple[int, ...], BoolArray], part: tuple[int, ...], heights: Levels) -> BoolArray:
    """Nodes of some attributes that no node of one attribute fewer rules out."""
    shape = tuple(heights[i] + 1 for i in part)
    joined = np.ones(shape, dtype=np.bool_)
    for at in range(len(part)):
        fewer = possible[part[:at] + part[at + 1 :]]
        joined &= np.expand_dims(fewer, at)
    return joined


def _not_ruled_out(problem: Problem, part: tuple[int, ...], candidates: BoolArray) -> tuple[BoolArray, int]:
    """Of nodes of some attributes those that keep the limit, and how many were looked at."""
    rows = problem.measured.table.of_attributes(part)
    base = rows.classes([0] * len(part))
    keeps, known, looks = np.zeros(candidates.shape, dtype=np.bool_), ~candidates, 0
    for levels in by_height(candidates):
        if known[levels]:
            continue
        looks += 1
        classes = rows.classes(levels, base)
        if rows.rows - int(classes.rows[problem.released(classes)].sum()) <= problem.limit:
            above = tuple(slice(level, None) for level in levels)
            keeps[above] = known[above] = True
    return keeps & candidates, looks


def by_height(nodes: BoolArray) -> Iterator[Levels]:
    """Nodes by their height, then lexicographically."""
    found = np.argwhere(nodes)
    for at in np.argsort(found.sum(axis=1), kind="stable"):
        yield tuple(int(level) for level in found[at])


def flash(problem: Problem) -> Scheme | None:
    """Return the best scheme among the nodes that no look at another rules out; None if none keeps the limit."""
    if not problem.monotone:
        return exhaustive(problem)
    looked = Looked(problem)
    known = Known(looked)
    for start in by_height(np.ones(known.keeps.shape, dtype=np.bool_)):
        known.settle(start)
    found = [looked.at(levels) for levels in by_height(known.keeps)]
    return best_of(problem, found, nodes_evaluated=len(looked.facts), optimal=True)


class Known:
    """What looks at nodes say of others, where the nodes that keep the limit are an up-set.

    Attributes
    ----------
    ruled_out, keeps : ndarrays of bool, of the shape of the lattice
        Nodes that do not keep the limit, and those that do, as far as it is known.
    """

    def __init__(self, looked: Looked) -> None:
        self.looked, self.heights = looked, looked.table.lattice.heights
        self.ruled_out = np.zeros(looked.table.lattice.shape, dtype=np.bool_)
        self.keeps = np.zeros(looked.table.lattice.shape, dtype=np.bool_)

    def settle(self, start: Levels) -> None:
        """Find out whether a node keeps the limit, by a path from it to the top, and with it of many others."""
        if self.ruled_out[start] or self.keeps[start]:
            return
        path = [start]
        while (step := self._up(path[-1])) is not None:
            path.append(step)
        low, high = 0, len(path)  # all before low do not keep the limit, all from high on do
        while low < high:
            middle = (low + high) // 2
            levels = path[middle]
            if self.looked.keeps_limit(levels):
                high = middle
                self.keeps[tuple(slice(level, None) for level in levels)] = True
            else:
                low = middle + 1
                self.ruled_out[tuple(slice(0, level + 1) for level in levels)] = True

    def _up(self, levels: Levels) -> Levels | None:
        """The next node of a path: a level up in the attribute with most of its levels to go, of those unknown."""
        steps = [
            (*levels[:i], level + 1, *levels[i + 1 :])
            for i, (level, height) in enumerate(zip(levels, self.heights, strict=True))
            if level < height
        ]
        unknown = [step for step in steps if not (self.ruled_out[step] or self.keeps[step])]
        return min(
            unknown, key=lambda step: max(a / h for a, h in zip(step, self.heights, strict=True) if h), default=None
        )
