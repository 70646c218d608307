"""Masking methods as their papers write them, with lists and fractions; slow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

Point = Sequence[float]


def square(a: Point, b: Point) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def average(points: Sequence[Point]) -> list[float]:
    return [math.fsum(column) / len(points) for column in zip(*points, strict=True)]


def most_distant(points: Sequence[Point], left: list[int], centre: Point) -> int:
    return max(left, key=lambda i: (square(points[i], centre), -i))


def closest(points: Sequence[Point], left: list[int], centre: Point, k: int) -> list[int]:
    return sorted(left, key=lambda i: (square(points[i], centre), i))[:k]


def mdav(points: Sequence[Point], k: int) -> list[list[int]]:
    """MDAV-generic, Domingo-Ferrer and Torra 2005."""
    left = list(range(len(points)))
    groups = []

    def form(centre: int) -> None:
        group = closest(points, left, points[centre], k)
        groups.append(group)
        for i in group:
            left.remove(i)

    while len(left) >= 3 * k:
        r = most_distant(points, left, average([points[i] for i in left]))
        form(r)
        form(most_distant(points, left, points[r]))
    if len(left) >= 2 * k:
        form(most_distant(points, left, average([points[i] for i in left])))
    groups.append(list(left))
    return groups


def v_mdav(points: Sequence[Point], k: int, gamma: float) -> list[list[int]]:
    """Solanas and Martínez-Ballesté 2006."""
    left = list(range(len(points)))
    centre = average(points)
    groups: list[list[int]] = []
    while len(left) >= k:
        e = most_distant(points, left, centre)
        group = closest(points, left, points[e], k)
        left = [i for i in left if i not in group]
        while left and len(group) < 2 * k - 1:
            inside = {i: min(square(points[i], points[j]) for j in group) for i in left}
            u = min(left, key=lambda i: (inside[i], i))
            outside = min((math.sqrt(square(points[u], points[j])) for j in left if j != u), default=math.inf)
            if gamma == 0 or not math.sqrt(inside[u]) < gamma * outside:
                break
            group.append(u)
            left.remove(u)
        groups.append(group)
    centres = [average([points[i] for i in group]) for group in groups]
    for i in left:
        nearest = min(range(len(centres)), key=lambda g: (square(centres[g], points[i]), g))
        groups[nearest].append(i)
    return groups


def sum_of_squares(values: Sequence[float]) -> Fraction:
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return sum(((x - mean) ** 2 for x in exact), Fraction())


def compositions(n: int, least: int) -> Iterator[tuple[int, ...]]:
    """Ways to write n as a sum of numbers of at least so much, in order; not at most 2 least - 1: that is a theorem."""
    if n == 0:
        yield ()
    for last in range(least, n + 1):
        for rest in compositions(n - last, least):
            yield (*rest, last)


def least_loss(values: Sequence[float], k: int) -> tuple[Fraction, list[tuple[int, ...]]]:
    """Least sum of squares within groups of at least k sorted values, and all sizes of groups that have it."""
    ordered = sorted(values)
    losses = {}
    for sizes in compositions(len(ordered), k):
        start, loss = 0, Fraction()
        for size in sizes:
            loss += sum_of_squares(ordered[start : start + size])
            start += size
        losses[sizes] = loss
    least = min(losses.values())
    return least, [sizes for sizes, loss in losses.items() if loss == least]


def swap_partners(width: int, words: Sequence[int]) -> list[int]:
    """Moore 1996, with the free ranks in a list."""
    n = len(words)
    partner: dict[int, int] = {}
    for i in range(n):
        if i in partner:
            continue
        free = [j for j in range(i + 1, min(n, i + width + 1)) if j not in partner]
        j = free[words[i] * len(free) >> 64] if free else i
        partner[i], partner[j] = j, i
    return [partner[i] for i in range(n)]


def swap_law(n: int, width: int) -> dict[tuple[int, ...], Fraction]:
    """Probability of each way to swap."""
    law: dict[tuple[int, ...], Fraction] = {}

    def go(partner: tuple[int, ...], chance: Fraction) -> None:
        i = next((i for i in range(n) if partner[i] < 0), None)
        if i is None:
            law[partner] = law.get(partner, Fraction()) + chance
            return
        free = [j for j in range(i + 1, min(n, i + width + 1)) if partner[j] < 0] or [i]
        for j in free:
            swapped = list(partner)
            swapped[i], swapped[j] = j, i
            go(tuple(swapped), chance / len(free))

    go((-1,) * n, Fraction(1))
    return law


def rank_candidates(known: Sequence[Point], masked: Sequence[Point], widths: Sequence[int]) -> list[set[int]]:
    """Masked records some rank of whose value is near some rank of the known one, in every attribute."""
    found = []
    for record in known:
        candidates = set(range(len(masked)))
        for j, width in enumerate(widths):
            ordered = sorted(row[j] for row in masked)
            ranks = [r for r, value in enumerate(ordered) if value == record[j]]
            near = {ordered[s] for s in range(len(ordered)) if any(abs(s - r) <= width for r in ranks)}
            candidates &= {i for i, row in enumerate(masked) if row[j] in near}
        found.append(candidates)
    return found


def axis_candidates(known: Sequence[Point], masked: Sequence[Point]) -> list[set[int]]:
    """Masked records with no other centroid between the known value and theirs, on every axis."""
    found = []
    for record in known:
        candidates = set(range(len(masked)))
        for j, value in enumerate(record):
            centres = {row[j] for row in masked}
            candidates &= {
                i
                for i, row in enumerate(masked)
                if not any(min(value, row[j]) < centre < max(value, row[j]) for centre in centres)
            }
        found.append(candidates)
    return found


def perturbed(code: int, matrix: Sequence[Sequence[float]], u: float) -> int:
    if code < 0:
        return code
    bound = 0.0
    drawn = -1
    for j, p in enumerate(matrix[code]):
        bound += p
        if p > 0:
            drawn = j
            if u < bound:
                break
    return drawn


def invariant(matrix: Sequence[Sequence[Fraction]], marginal: Sequence[Fraction]) -> list[list[Fraction]]:
    """Two-stage invariant PRAM."""
    c = range(len(marginal))
    published = [sum((marginal[i] * matrix[i][j] for i in c), Fraction()) for j in c]
    back = [[marginal[i] * matrix[i][j] / published[j] if published[j] else Fraction(i == j) for i in c] for j in c]
    return [[sum((matrix[i][m] * back[m][j] for m in c), Fraction()) for j in c] for i in c]
