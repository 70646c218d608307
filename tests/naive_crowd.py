"""Sampling with a crowd threshold, read literally: laws by enumeration in rational arithmetic."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

from privrisk_spark.kernels.numeric.rational import PRECISION, exp_scaled


def binomial(n: int, beta: Fraction) -> list[Fraction]:
    return [math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(n + 1)]


def thresholded(n: int, k: int, beta: Fraction) -> dict[int, Fraction]:
    law: dict[int, Fraction] = defaultdict(Fraction)
    for j, mass in enumerate(binomial(n, beta)):
        law[j if j >= k else 0] += mass
    return law


def hockey_stick(p: dict, q: dict, a: Fraction) -> Fraction:
    return sum((max(p.get(o, 0) - a * q.get(o, 0), Fraction(0)) for o in {*p, *q}), Fraction(0))


Kernel = dict[int | None, Fraction]


def release_law(kernels: list[Kernel], k: int, beta: Fraction) -> dict[tuple, Fraction]:
    """Law of the published histogram, by enumerating where every row goes and whether it is kept."""
    law: dict[tuple, Fraction] = defaultdict(Fraction)
    for images in itertools.product(*(kernel.items() for kernel in kernels)):
        for kept in itertools.product((True, False), repeat=len(images)):
            mass = math.prod((p * (beta if keep else 1 - beta) for (_, p), keep in zip(images, kept, strict=True)))
            counts: dict[int, int] = defaultdict(int)
            for (cell, _), keep in zip(images, kept, strict=True):
                if keep and cell is not None:
                    counts[cell] += 1
            law[tuple(sorted((cell, count) for cell, count in counts.items() if count >= k))] += Fraction(mass)
    return law


def random_kernel(rng: random.Random, n_cells: int) -> Kernel:
    weights = [rng.choice((0, 0, 1, 2, 5)) for _ in range(n_cells + 1)]
    if not any(weights):
        weights[0] = 1
    total = sum(weights)
    cells: list[int | None] = [*range(n_cells), None]
    return {cell: Fraction(w, total) for cell, w in zip(cells, weights, strict=True) if w}


def exp_lower_bound(epsilon: Fraction | str) -> Fraction:
    """A rational lower bound of e^epsilon, short of it by less than 2^-254: what the certificate takes for it."""
    return Fraction(exp_scaled(Fraction(epsilon)), 1 << PRECISION)
