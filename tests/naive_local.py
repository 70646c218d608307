"""Local recoding by the letter: regions as lists of rows, cut by recursion, and classes as the reader counts them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from naive_recoding import Labels, Row, share

Rows = list[tuple[Row, int]]
"""Rows with a sensitive value each."""
Passes = Callable[[Rows], bool]
Node = tuple[int, int]
"""Level and number."""


def leaf_order(of: Sequence[Sequence[int]]) -> list[int]:
    """Codes in the order of a walk: from the top, siblings by their least code."""

    def walk(codes: list[int], level: int) -> list[int]:
        if level < 0:
            return sorted(codes)
        nodes = {of[code][level] for code in codes}
        parts = [[code for code in codes if of[code][level] == node] for node in nodes]
        return [code for part in sorted(parts, key=min) for code in walk(part, level - 1)]

    return walk(list(range(len(of))), len(of[0]) - 1)


def ancestor(of: Sequence[Sequence[int]], codes: Sequence[int]) -> Node | None:
    """The least level at which all codes have one node, and the node."""
    for level in range(len(of[0])):
        nodes = {of[code][level] for code in codes}
        if len(nodes) == 1:
            return level, nodes.pop()
    return None


def first_regions(labels: Labels, rows: Rows) -> list[Rows]:
    tops = [tuple(of[code][-1] for of, code in zip(labels, row, strict=True)) for row, _ in rows]
    return [[one for one, other in zip(rows, tops, strict=True) if other == top] for top in sorted(set(tops))]


def widths(labels: Labels, region: Rows, ordered: Sequence[bool]) -> list[tuple[float, int]]:
    """Width and attribute, the widest first."""
    found = []
    for i, of in enumerate(labels):
        codes = [row[i] for row, _ in region]
        level, _ = ancestor(of, codes)
        if level > 0:
            places = [leaf_order(of).index(code) for code in codes]
            extent = (max(places) - min(places) + 1) / len(of)
            found.append((-extent if ordered[i] else -share(labels, i, codes[0], level), i))
    return [(-width, i) for width, i in sorted(found)]


def children_parts(of: Sequence[Sequence[int]], region: Rows, i: int, passes: Passes) -> list[Rows]:
    level, _ = ancestor(of, [row[i] for row, _ in region])
    order = leaf_order(of)
    by_child: dict[int, Rows] = {}
    for one in sorted(region, key=lambda one: order.index(one[0][i])):
        by_child.setdefault(of[one[0][i]][level - 1], []).append(one)
    alone = [part for part in by_child.values() if passes(part)]
    rest = [one for part in by_child.values() if not passes(part) for one in part]
    if rest and not passes(rest) and alone:
        smallest = min(alone, key=len)
        alone = [part for part in alone if part is not smallest]
        rest = rest + smallest
    return [*alone, rest] if rest else alone


def median_parts(of: Sequence[Sequence[int]], region: Rows, i: int) -> list[Rows]:
    order = leaf_order(of)
    values = sorted({order.index(row[i]) for row, _ in region})
    best: tuple[int, list[Rows]] | None = None
    for last in values[:-1]:
        left = [one for one in region if order.index(one[0][i]) <= last]
        right = [one for one in region if order.index(one[0][i]) > last]
        smaller = min(len(left), len(right))
        if best is None or smaller > best[0]:
            best = smaller, [left, right]
    return best[1]


def strict_groups(labels: Labels, region: Rows, passes: Passes, ordered: Sequence[bool]) -> list[Rows]:
    for _, i in widths(labels, region, ordered):
        of = labels[i]
        parts = median_parts(of, region, i) if ordered[i] else children_parts(of, region, i, passes)
        if len(parts) > 1 and all(passes(part) for part in parts):
            return [group for part in parts for group in strict_groups(labels, part, passes, ordered)]
    return [region]


def relaxed_groups(labels: Labels, region: Rows, k: int) -> list[Rows]:
    wide = widths(labels, region, [True] * len(labels))
    if len(region) < 2 * k or not wide:
        return [region]
    i = wide[0][1]
    orders = [leaf_order(of) for of in labels]

    def places(one: tuple[Row, int]) -> tuple[int, ...]:
        of = [order.index(code) for order, code in zip(orders, one[0], strict=True)]
        return (of[i], *of)

    in_order = sorted(region, key=places)
    half = len(region) // 2
    return relaxed_groups(labels, in_order[:half], k) + relaxed_groups(labels, in_order[half:], k)


def cost(labels: Labels, group: Rows) -> float:
    """Shares of the leaves of what is published, over the cells of a group; leaves cost nothing."""
    found = 0.0
    for i, of in enumerate(labels):
        codes = [row[i] for row, _ in group]
        level, _ = ancestor(of, codes)
        here = share(labels, i, codes[0], level)
        found += 0.0 if math.isclose(here * len(of), 1) else here * len(group)
    return found


def least_cost(labels: Labels, records: Sequence[Rows], k: int) -> float:
    """Least cost of runs of records, each a list of equal rows, that have k rows or are all there are."""
    best = [0.0]
    for end in range(1, len(records) + 1):
        found = math.inf
        for begin in range(end):
            group = [one for record in records[begin:end] for one in record]
            if len(group) >= k or (begin, end) == (0, len(records)):
                found = min(found, best[begin] + cost(labels, group))
        best.append(found)
    return best[-1]


def inner_share(labels: Labels, i: int, codes: Sequence[int]) -> float:
    of = labels[i]
    level, node = ancestor(of, codes)
    below = sum(path[level] == node for path in of)
    return 0.0 if below == 1 else below / len(of)


def lost_by_joining(labels: Labels, group: Rows, other: Rows) -> float:
    found = 0.0
    for i in range(len(labels)):
        codes = [row[i] for row, _ in group]
        then = inner_share(labels, i, codes + [row[i] for row, _ in other])
        found += then * (len(group) + len(other)) - inner_share(labels, i, codes) * len(group)
    return found


def grid_levels(labels: Labels, rows: Rows) -> list[tuple[int, ...]]:
    found = [(0,) * len(labels)]
    while True:
        steps = []
        for i, of in enumerate(labels):
            level = found[-1][i] + 1
            if level < len(of[0]):
                leaves = sum(sum(path[level] == of[row[i]][level] for path in of) for row, _ in rows)
                steps.append((Fraction(leaves, len(of)), i))
        if not steps:
            return found
        _, coarser = min(steps)
        found.append(tuple(level + (i == coarser) for i, level in enumerate(found[-1])))


def bang_groups(labels: Labels, rows: Rows, passes: Passes, *, each: bool) -> list[Rows]:
    """Cells of the grids, and what is left joined with them: each record where only its rows count."""
    orders = [leaf_order(of) for of in labels]
    groups: list[Rows] = []
    left = list(rows)
    for levels in grid_levels(labels, rows):
        cells: dict[tuple[int, ...], Rows] = {}
        for one in left:
            # Nodes in leaf order, by the first place below them.
            cell = tuple(
                min(at for at, code in enumerate(order) if of[code][level] == of[value][level])
                for of, order, level, value in zip(labels, orders, levels, one[0], strict=True)
            )
            cells.setdefault(cell, []).append(one)
        taken = [cells[cell] for cell in sorted(cells) if passes(cells[cell])]
        groups += taken
        left = [one for cell in cells.values() if not passes(cell) for one in cell]

    def top(one: tuple[Row, int]) -> tuple[int, ...]:
        return tuple(of[code][-1] for of, code in zip(labels, one[0], strict=True))

    joining: list[tuple[Rows, Rows]] = []
    for region in sorted({top(one) for one in left}):
        rest = [one for one in left if top(one) == region]
        near = [group for group in groups if top(group[0]) == region]
        if not near:
            groups.append(rest)
        elif each:
            for row in sorted({row for row, _ in rest}):
                record = [one for one in rest if one[0] == row]
                joining.append((min(near, key=lambda group: lost_by_joining(labels, group, record)), record))
        else:
            near.sort(key=lambda group: lost_by_joining(labels, group, rest))
            reach = 1
            while reach < len(near) and not passes([*rest, *(one for group in near[:reach] for one in group)]):
                reach *= 2
            groups = [group for group in groups if not any(group is other for other in near[:reach])]
            groups.append([*rest, *(one for group in near[:reach] for one in group)])
    for group, record in joining:
        group.extend(record)
    return groups


def shown(labels: Labels, groups: Sequence[Rows], passes: Passes) -> Counter:
    """Of every row the nodes that are published, None if it is suppressed: (row, nodes) with how often."""
    classes: dict[tuple[Node, ...], Rows] = {}
    for group in groups:
        if group:
            nodes = tuple(ancestor(of, [row[i] for row, _ in group]) for i, of in enumerate(labels))
            classes.setdefault(nodes, []).extend(group)
    lost = {nodes for nodes, rows in classes.items() if not passes(rows)}
    single = all(len({path[-1] for path in of}) == 1 for of in labels)
    roots = tuple((len(of[0]) - 1, of[0][-1]) for of in labels)
    if lost and single:
        lost.add(roots)
    found: Counter = Counter()
    for nodes, rows in classes.items():
        for row, _ in rows:
            found[row, None if nodes in lost else nodes] += 1
    return found
