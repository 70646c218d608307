"""Sharing by loops over rows of texts: who is whose friend, what is shown, straight from F12 §7.5.1."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from privrisk_spark.hierarchies.hierarchy import Hierarchy

Row = Mapping[str, Any]


def friends_of(
    users: Iterable[str], edges: Iterable[tuple[Any, Any]], *, directed: bool = False
) -> dict[str, set[str]]:
    """Friends of each user; loops, and edges to nobody, are left out. Of a directed edge the second is a friend."""
    friends: dict[str, set[str]] = {user: set() for user in users}
    for u, v in edges:
        if u != v and u in friends and v in friends:
            friends[u].add(v)
            if not directed:
                friends[v].add(u)
    return friends


def path(tree: Hierarchy, label: str | None) -> list[int]:
    """Nodes from a value up to the root."""
    node = tree.root if label is None else tree.labels.index(label)
    nodes = [node]
    while nodes[-1] != tree.root:
        nodes.append(int(tree.parent[nodes[-1]]))
    return nodes


Figures = tuple[float, float, float, int]
"""f, u, Φ and ξ of what is shown."""


def formula(
    trees: Sequence[Hierarchy],
    mine: Sequence[str | None],
    theirs: Sequence[Sequence[str | None]],
    *,
    phi: Sequence[float],
    psi: Sequence[float],
    trade_off: float = 1.0,
    kappa: float = 1.0,
    every: bool = True,
) -> dict[tuple[int, ...], Figures]:
    """``f = λ ξ/Φ + u^κ`` of all levels that cost something; theirs are the profiles that ξ counts if they fit."""
    above = [path(tree, value) for tree, value in zip(trees, mine, strict=True)]
    of_friends = [[path(tree, value) for tree, value in zip(trees, one, strict=True)] for one in theirs]
    counted = [j for j, nodes in enumerate(above) if len(nodes) > 1]
    found = {}
    for levels in itertools.product(*(range(len(nodes)) for nodes in above)):
        shown = [len(nodes) - 1 - level for nodes, level in zip(above, levels, strict=True)]
        cost = sum(w * s for w, s in zip(phi, shown, strict=True))
        worth = sum(d * s for d, s in zip(psi, shown, strict=True))
        fits = [[above[j][levels[j]] in one[j] for j in counted] for one in of_friends]
        xi = sum(all(one) if every else any(one) for one in fits)
        if cost > 0:
            found[levels] = trade_off * xi / cost + worth**kappa, worth, cost, xi
    return found


def best_shown(trees: Sequence[Hierarchy], mine: Sequence[str | None], *given: Any, **asked: Any) -> tuple[int, ...]:
    """Levels of the greatest value of the formula: of equals the most useful, of those the first."""
    found = formula(trees, mine, *given, **asked)
    ranked = [(-round(f, 9), -round(worth, 9), levels) for levels, (f, worth, _, _) in found.items()]
    return min(ranked)[2] if ranked else tuple(0 for _ in trees)
