"""How large the sample is that a release's risk-utility map is made from: what it may cost, as counts of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from privrisk_spark.kernels.counting.consistent import Counts, SortedCounts
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy

FLOORS = 11
"""Utility floors, evenly from nothing to everything."""

ANONYMITY = (2, 5, 10)
"""Values of k whose best full-domain recoding is shown."""

SUPPRESSED_AT_MOST = 0.05
"""Largest share of the records a full-domain recoding may suppress."""

SHOWN = 8
"""Rows of the table shown before and after, and riskiest classes."""

DRAWN = (100, 40)
"""Columns and rows of places on the map; recodings at the same place are drawn once."""

PARTS = (1.0, 0.5, 0.2, 0.1, 0.01)
"""Shares of the dictionary that an attacker may hold."""

_MOST = 1000
_LEAST = 32
_EVALUATED = 2**20
_COMPARED = 2**27
_PART = 2**13
"""Nodes of the part of a larger lattice that is evaluated, at most."""


@dataclass(frozen=True)
class SampleSize:
    """Records that are kept of the decisions.

    Attributes
    ----------
    kept : int
        At least :data:`SHOWN`.
    evaluated : int
        Of these, at the nodes of the lattice; 0 where that would take too long.
    of_nodes : int
        Nodes of the lattice.
    levels : tuple of k tuples of int, optional
        Levels of each attribute whose combinations are evaluated, ascending; None is all of them.
    """

    kept: int
    evaluated: int
    of_nodes: int
    levels: tuple[tuple[int, ...], ...] | None = None


def least_utility(policy: Policy) -> float | None:
    """Return the least utility of a record that a policy asks, if it asks one."""
    return None if policy.decision is None else decision_of(policy).least_utility


def kept_levels(heights: Sequence[int], most: int) -> tuple[tuple[int, ...], ...] | None:
    """Return levels of each attribute, evenly from 0 to its height, with few combinations.

    Parameters
    ----------
    heights : sequence of k int
        Of the hierarchies.
    most : int
        Combinations.

    Returns
    -------
    tuple of k tuples of int, or None
        None where 0 and the height of each are too many already. The attribute with the most levels loses one first; of
        equal ones the first.
    """
    numbers = [height + 1 for height in heights]
    while prod(numbers) > most:
        place = numbers.index(max(numbers))
        if numbers[place] <= 2:
            return None
        numbers[place] -= 1
    # Level 0 alone where a hierarchy has no other. Halves are rounded up.
    return tuple(
        tuple((2 * step * height + number - 1) // (2 * max(number - 1, 1)) for step in range(number))
        for height, number in zip(heights, numbers, strict=True)
    )


def sample_size(heights: Sequence[int], counts: Sequence[Counts | None]) -> SampleSize:
    """Return how many records are sampled, and at which nodes they are evaluated.

    Parameters
    ----------
    heights : sequence of k int
        Of the hierarchies.
    counts : sequence of Counts or None
        Of every dictionary; None is one that stays distributed.

    Returns
    -------
    SampleSize
        Whatever the number of nodes, at most 2^20 pairs of a record and a node are evaluated, and at most 2^27 values
        of records and dictionary vectors compared. Fewer than 32 records would say little, and are not evaluated: a
        lattice of more than 2^15 nodes is thinned to 2^13, by leaving out levels.
    """
    of_nodes = n_nodes = prod(height + 1 for height in heights)
    levels = None
    if _EVALUATED // n_nodes < _LEAST:
        levels = kept_levels(heights, _PART)
        n_nodes = n_nodes if levels is None else prod(map(len, levels))
    most = min(_MOST, _EVALUATED // n_nodes)
    for one in counts:
        if one is None:
            most = 0
        elif isinstance(one, SortedCounts):
            vectors = sum(len(group.counts) for group in one.groups)
            most = min(most, _COMPARED // max(1, vectors * len(one.axes)))
    evaluated = most if most >= _LEAST else 0
    return SampleSize(max(SHOWN, evaluated), evaluated, of_nodes, levels if evaluated else None)
