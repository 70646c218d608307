"""The plan of the attacker as runs of remaining candidates with one action (X15 Figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.process import TOLERANCE, Solution
from privrisk_spark.kernels.arrays import BoolArray, LongArray


@dataclass(frozen=True, eq=False)
class Regions:
    """Where the attacker exploits a linked record, and where they terminate: one line for each run of states.

    Attributes
    ----------
    group_size : ndarray of int64, shape (n,)
    fines : ndarray of int64, shape (n,)
        Fines paid; -1 for any number, where it does not matter.
    exploits : ndarray of bool, shape (n,)
        Whether the attacker exploits; otherwise they terminate.
    least, most : ndarray of int64, shape (n,)
        Remaining candidates, both inclusive.
    """

    group_size: LongArray
    fines: LongArray
    exploits: BoolArray
    least: LongArray
    most: LongArray


def policy_regions(solution: Solution, group_sizes: Sequence[int]) -> Regions:
    """Return the plan for groups.

    Parameters
    ----------
    group_sizes : sequence of int
        At least 1 each; those not worth linking are terminated from the first.

    Returns
    -------
    Regions
        By group size as given, fines paid, and remaining candidates downwards. ``p`` fines can be paid only where at
        most ``g - p`` candidates remain.
    """
    sizes = np.array(group_sizes, dtype=np.int64)
    if (sizes < 1).any():
        raise InputError("A plan is shown for group sizes of at least 1.")
    inside = solution.within(sizes)
    lines: list[tuple[int, int, bool, int, int]] = []
    for size, position in zip(sizes.tolist(), inside.tolist(), strict=True):
        if solution.linked[position] <= TOLERANCE:
            lines.append((size, -1, False, 1, size))
            continue
        for fines in range(min(solution.levels, size)):
            remaining = np.arange(size - fines, 0, -1)
            chosen = solution.exploits(fines, np.full(len(remaining), size), remaining)
            ends = np.append(np.flatnonzero(chosen[1:] != chosen[:-1]), len(chosen) - 1)
            starts = np.append(0, ends[:-1] + 1)
            shown = fines if solution.levels > 1 else -1
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                lines.append((size, shown, bool(chosen[start]), int(remaining[end]), int(remaining[start])))
    table = np.array(lines, dtype=np.int64).reshape(-1, 5)
    return Regions(table[:, 0], table[:, 1], table[:, 2].astype(np.bool_), table[:, 3], table[:, 4])
