"""The lattice of Fouad (2012), Fig. 4.4, and the walks of Algorithms 2 and 3 over it that Fig. 4.5 prints.

The figure's utilities are not a sum over attributes, which the product's searches need; so the algorithms are here as
they are printed. The text states risk and utility of twelve nodes. Those of the other eight are in the picture only;
here they lie between their neighbours, in the order in which the printed walk takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

Node = tuple[int, int]

FLOOR = 18
"""Least utility."""

FIGURE: Mapping[Node, tuple[str, int, int]] = {
    (0, 0): ("t", 0, 0), (1, 0): ("s", 10, 4), (0, 1): ("r", 12, 2), (1, 1): ("p", 15, 7), (2, 0): ("q", 21, 9),
    (0, 2): ("o", 14, 5), (0, 3): ("k", 16, 8), (1, 2): ("l", 22, 11), (2, 1): ("m", 30, 12), (3, 0): ("n", 34, 13),
    (1, 3): ("g", 26, 12), (2, 2): ("h", 38, 14), (3, 1): ("i", 42, 15), (2, 3): ("d", 46, 16), (4, 0): ("j", 55, 17),
    (3, 2): ("e", 60, 21), (4, 1): ("f", 62, 18), (3, 3): ("b", 63, 23), (4, 2): ("c", 70, 25), (4, 3): ("a", 80, 28),
}  # fmt: skip
"""Name, risk and utility of each node, by the steps down from the most general record."""


@dataclass(frozen=True)
class Walk:
    """How a search went.

    Attributes
    ----------
    visited : str
        Names of the nodes, in the order in which they were visited.
    found : str
        Name of the node that was returned.
    steps : int
        Iterations.
    """

    visited: str
    found: str
    steps: int


def basic_top_down(figure: Mapping[Node, tuple[str, int, int]] = FIGURE) -> Walk:
    """Run Algorithm 2 as it is printed, from the most general node down."""
    queue, visited, steps = [(0, 0)], [(0, 0)], 1
    while figure[queue[0]][2] < FLOOR:
        front = queue.pop(0)
        below = [node for node in _steps(front, down=True, figure=figure) if node not in visited]
        below.sort(key=lambda node: figure[node][1])
        visited += below
        queue = sorted([*queue, *below], key=lambda node: figure[node][1])
        steps += 1
    return Walk("".join(figure[node][0] for node in visited), figure[queue[0]][0], steps)


def aruba(figure: Mapping[Node, tuple[str, int, int]] = FIGURE) -> Walk:
    """Run Algorithm 3 as it is printed, from the record along its second attribute to the first frontier node."""
    at = max(figure)
    visited = [at]
    while figure[up := (at[0], at[1] - 1)][2] >= FLOOR:
        at = up
        visited.append(at)
    visited.append(up)
    best, open_, seen, steps = at, [at], {at}, 0
    while open_:
        node = open_.pop(0)
        best = min(best, node, key=lambda one: figure[one][1])
        cube = [(node[0] + i, node[1] + j) for i, j in product((-1, 0, 1), repeat=2)]
        visited += [one for one in cube if one in figure and one not in visited]
        near = [one for one in cube if one in figure and one not in seen and _on_frontier(one, figure)]
        seen.update(near)
        open_ += near
        steps += 1
    return Walk("".join(figure[node][0] for node in visited), figure[best][0], steps)


def _on_frontier(node: Node, figure: Mapping[Node, tuple[str, int, int]]) -> bool:
    above = _steps(node, down=False, figure=figure)
    return figure[node][2] >= FLOOR and any(figure[one][2] < FLOOR for one in above)


def _steps(node: Node, *, down: bool, figure: Mapping[Node, tuple[str, int, int]]) -> list[Node]:
    by = 1 if down else -1
    return [one for one in ((node[0] + by, node[1]), (node[0], node[1] + by)) if one in figure]
