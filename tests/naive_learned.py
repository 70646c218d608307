"""Learned distances by the letter: aggregates from their definitions, sets as sets, two loops over records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations

Vector = Sequence[float]
Distance = Callable[[Vector], float]


def weighted_mean(weights: Vector) -> Distance:
    return lambda d: math.fsum(p * x for p, x in zip(weights, d, strict=True))


def ordered_weighted_average(weights: Vector) -> Distance:
    return lambda d: math.fsum(w * x for w, x in zip(weights, sorted(d, reverse=True), strict=True))


def bilinear(matrix: Sequence[Vector]) -> Distance:
    n = range(len(matrix))
    return lambda d: math.fsum(matrix[i][j] * math.sqrt(d[i]) * math.sqrt(d[j]) for i in n for j in n)


def of_sets(measure: Vector) -> dict[frozenset[int], float]:
    n = len(measure).bit_length() - 1
    return {frozenset(i for i in range(n) if number >> i & 1): float(value) for number, value in enumerate(measure)}


def choquet(measure: Mapping[frozenset[int], float]) -> Distance:
    """Area under ``t -> μ({i : d_i > t})``, a step function."""

    def integral(d: Vector) -> float:
        heights = [0.0, *sorted(set(d))]
        return math.fsum(
            (high - low) * measure[frozenset(i for i, x in enumerate(d) if x > low)] for low, high in pairwise(heights)
        )

    return integral


def subsets(those: frozenset[int]) -> Iterator[frozenset[int]]:
    for size in range(len(those) + 1):
        yield from map(frozenset, combinations(sorted(those), size))


def moebius(measure: Mapping[frozenset[int], float]) -> dict[frozenset[int], float]:
    return {a: math.fsum((-1) ** (len(a) - len(b)) * measure[b] for b in subsets(a)) for a in measure}


def shapley(measure: Mapping[frozenset[int], float]) -> list[float]:
    n = max(map(len, measure))
    gains: list[list[float]] = [[] for _ in range(n)]
    for order in permutations(range(n)):
        for i, one in enumerate(order):
            gains[one].append(measure[frozenset(order[: i + 1])] - measure[frozenset(order[:i])])
    return [math.fsum(of) / len(of) for of in gains]


def linked(
    distance: Distance, differences: Sequence[Sequence[Vector]], rows: Sequence[int]
) -> list[tuple[float, int, set[int]]]:
    """Least distance of each known record, the rows at it, and which records those are.

    ``differences[i][j]`` are those of the known record i from the record j of the file.
    """
    found = []
    for mine in differences:
        distances = [distance(one) for one in mine]
        least = min(distances)
        tied = {j for j, d in enumerate(distances) if d <= least + 1e-8}
        found.append((least, sum(rows[j] for j in tied), tied))
    return found
