"""Probabilistic record linkage by the letter: two loops over pairs, and EM pair by pair (Fellegi, Sunter; Winkler)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from naive_linkage import path

from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel
from privrisk_spark.hierarchies.hierarchy import Hierarchy

Pattern = tuple[int, ...]
Table = list[list[float]]


def level(tree: Hierarchy, known: int, cell: int, near: Sequence[int], equal: bool) -> int:
    """Agreement level of two nodes by their paths to the root."""
    last = len(near) + 1 + equal
    if tree.root in (known, cell):
        return last + 1
    if equal and known == cell:
        return 0
    mine, theirs = path(tree, known), path(tree, cell)
    common = [(depth, a) for depth, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a == b][-1]
    if common[1] in (known, cell):
        return int(equal)
    for number, depth in enumerate(near):
        if common[0] >= depth:
            return int(equal) + 1 + number
    return last


def number_level(one: tuple[float, float], other: tuple[float, float], within: Sequence[float]) -> int:
    if not all(math.isfinite(end[0]) or math.isfinite(end[1]) for end in (one, other)):
        return len(within) + 1
    gap = max(one[0] - other[1], other[0] - one[1])
    return next((number for number, threshold in enumerate(within) if gap <= threshold), len(within))


def counted(
    trees: Sequence[Hierarchy],
    near: Sequence[Sequence[int]],
    known: Sequence[Sequence[int]],
    known_rows: Sequence[int],
    records: Sequence[Sequence[int]],
    rows: Sequence[int],
) -> Counter[Pattern]:
    found: Counter[Pattern] = Counter()
    for (mine, n), (theirs, m) in itertools.product(
        zip(known, known_rows, strict=True), zip(records, rows, strict=True)
    ):
        pattern = tuple(level(*of, False) for of in zip(trees, mine, theirs, near, strict=True))
        found[pattern] += n * m
    return +found


def probability(pattern: Pattern, of: Table) -> float:
    """What cannot be compared is summed out."""
    return math.prod(of[j][digit] for j, digit in enumerate(pattern) if digit < len(of[j]))


def em_step(
    counts: Counter[Pattern], m: Table, u: Table, prior: float, *, fixed_u: bool, fixed_prior: bool
) -> tuple[Table, Table, float, float]:
    """One step from the formulas, and the logarithm of the likelihood before it."""
    likelihood, linked = 0.0, {}
    for pattern, n in counts.items():
        of_m, of_u = prior * probability(pattern, m), (1 - prior) * probability(pattern, u)
        linked[pattern] = of_m / (of_m + of_u)
        likelihood += n * math.log(of_m + of_u)

    def shares(of: Table, weight: dict[Pattern, float]) -> Table:
        after = []
        for j, one in enumerate(of):
            there = [sum(w for pattern, w in weight.items() if pattern[j] == digit) for digit in range(len(one))]
            after.append([w / sum(there) for w in there] if sum(there) else one)
        return after

    mine = {pattern: n * linked[pattern] for pattern, n in counts.items()}
    theirs = {pattern: n * (1 - linked[pattern]) for pattern, n in counts.items()}
    after_prior = prior if fixed_prior else sum(mine.values()) / sum(counts.values())
    return shares(m, mine), u if fixed_u else shares(u, theirs), after_prior, likelihood


def best_assignments(
    weights: Sequence[Sequence[float]],
    known_rows: Sequence[int],
    rows: Sequence[int],
    threshold: float,
    own: Sequence[tuple[int, int, int]],
) -> tuple[float, float, float]:
    """Greatest weight above the threshold over all one-to-one links of rows, and the fewest and most right links.

    Equal rows are exchangeable: of ``x`` links of ``a`` with ``b`` equal rows, ``t`` pairs true, ``x t / ab`` are
    right.
    """
    of_known = [a for a, n in enumerate(known_rows) for _ in range(n)]
    of_file = [b for b, n in enumerate(rows) for _ in range(n)]
    true = {(a, b): t for a, b, t in own}
    best, right = 0.0, [0.0]
    # Nobody need be linked: as many places that stand for none.
    for chosen in set(itertools.permutations([*of_file, *[-1] * len(of_known)], len(of_known))):
        pairs = [(a, b) for a, b in zip(of_known, chosen, strict=True) if b >= 0]
        if any(weights[a][b] <= threshold for a, b in pairs):
            continue
        total = sum(weights[a][b] - threshold for a, b in pairs)
        links = sum(true.get(pair, 0) / known_rows[pair[0]] / rows[pair[1]] for pair in pairs)
        if total > best + 1e-7:
            best, right = total, [links]
        elif total > best - 1e-7:
            right.append(links)
    return best, min(right), max(right)


def every_pattern(model: LinkageModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the patterns in which all attributes can be compared, and their probability in both classes."""
    codes, m, u = [], [], []
    for pattern in itertools.product(*(range(len(of)) for of in model.m)):
        code = 0
        for at, of in zip(pattern, model.m, strict=True):
            code = code * (len(of) + 1) + at
        codes.append(code)
        m.append(math.prod(of[at] for at, of in zip(pattern, model.m, strict=True)))
        u.append(math.prod(of[at] for at, of in zip(pattern, model.u, strict=True)))
    return np.array(codes, dtype=np.int64), np.array(m), np.array(u)
