"""Full-domain recoding by the letter: rows as tuples of labels, every node, and formulas over single rows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

Levels = tuple[int, ...]
Row = tuple[int, ...]
Labels = Sequence[Sequence[Sequence[int]]]
"""Of each attribute, of each code, its node at each level."""


def nodes_of(labels: Labels) -> Iterator[Levels]:
    """All level vectors, in lexicographic order."""
    return itertools.product(*(range(len(of[0])) for of in labels))


def recoded(labels: Labels, rows: Sequence[Row], levels: Levels) -> list[Row]:
    return [tuple(labels[i][code][levels[i]] for i, code in enumerate(row)) for row in rows]


def share(labels: Labels, attribute: int, code: int, level: int) -> float:
    """Leaves below the node of a code, over all."""
    of = labels[attribute]
    return sum(other[level] == of[code][level] for other in of) / len(of)


def persons(shown: Sequence[Row], who: Sequence[object] | None) -> dict[Row, int]:
    """Persons of every class; each row is one if nothing else is said."""
    names = range(len(shown)) if who is None else who
    there: dict[Row, set[object]] = {}
    for row, name in zip(shown, names, strict=True):
        there.setdefault(row, set()).add(name)
    return {row: len(of) for row, of in there.items()}


def metric(
    name: str,
    labels: Labels,
    rows: Sequence[Row],
    levels: Levels,
    k: int,
    who: Sequence[object] | None = None,
    meets: Callable[[Sequence[int]], bool] | None = None,
    below: Callable[[int, int, int], int] | None = None,
    domains: Sequence[int] | None = None,
) -> tuple[float, int]:
    """Value of a metric at a node, and the rows that are suppressed there.

    A class is released if it has ``k`` persons, and if what is asked besides holds of the places of its rows. Leaves
    ``below`` the node of a code at a level, and of the ``domains``, are said where codes are not the leaves.
    """
    domains = [len(of) for of in labels] if domains is None else domains
    shown = recoded(labels, rows, levels)
    sizes, there = Counter(shown), persons(shown, who)
    good = {one for one in sizes if there[one] >= k}
    if meets is not None:
        good = {one for one in good if meets([i for i, row in enumerate(shown) if row == one])}
    kept = [one in good for one in shown]
    n, m, s = len(rows), len(labels), kept.count(False)
    released = {one: f for one, f in sizes.items() if one in good}

    def share_of(i: int, code: int) -> float:
        return share(labels, i, code, levels[i]) if below is None else below(i, code, levels[i]) / domains[i]

    def shares(i: int) -> list[float]:
        return [share_of(i, row[i]) if keep else 1.0 for row, keep in zip(rows, kept, strict=True)]

    if name == "loss":
        product = 1.0
        for i, domain in enumerate(domains):
            least = 1 / domain
            x = 0.0 if domain == 1 or not n else (sum(shares(i)) / n - least) / (1 - least)
            product *= 1 + x
        return product ** (1 / m) - 1, s
    if name == "aecs":
        classes = len(released) + (s > 0)
        return (n / classes if classes else 0.0), s
    if name == "dm":
        return float(sum(f * f for f in released.values()) + s * n), s
    if name == "height":
        return float(sum(levels)), s
    if name == "classes":
        return float(len(released)), s
    cells = n * m
    if not cells:
        return 0.0, s
    if name == "precision":
        heights = [len(of[0]) - 1 for of in labels]
        lost = sum((level / h if keep else 1.0) for keep in kept for level, h in zip(levels, heights, strict=True) if h)
        return lost / cells, s
    if name == "entropy":
        said, unsaid = 0.0, 0.0
        for i, of in enumerate(labels):
            for row, keep in zip(rows, kept, strict=True):
                alike = sum(other[i] == row[i] for other in rows)
                shown_alike = sum(of[other[i]][levels[i]] == of[row[i]][levels[i]] for other in rows) if keep else n
                said -= math.log2(alike / shown_alike)
                unsaid -= math.log2(alike / n)
        return (said / unsaid if unsaid else 0.0), s
    assert name == "ncp"
    lost = 0.0
    for i, domain in enumerate(domains):
        lost += sum(0.0 if math.isclose(here * domain, 1.0) else here for here in shares(i))
    return lost / cells, s


def best(
    labels: Labels, rows: Sequence[Row], k: int, limit: int, value: Callable[[Levels], tuple[float, int]], sign: int
) -> set[Levels]:
    """Level vectors that are best by the metric, then by what is suppressed: more than one where they are equal."""
    found: list[tuple[float, int, Levels]] = []
    for levels in nodes_of(labels):
        cost, suppressed = value(levels)
        if suppressed <= limit:
            found.append((sign * cost, suppressed, levels))
    if not found:
        return set()
    least = min(cost for cost, _, _ in found)
    near = [one for one in found if math.isclose(one[0], least, rel_tol=1e-9, abs_tol=1e-12)]
    fewest = min(suppressed for _, suppressed, _ in near)
    return {levels for _, suppressed, levels in near if suppressed == fewest}
