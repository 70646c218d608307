"""How large the sample is that a release's risk-utility map is made from: what it may cost, as counts of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

_MOST = 1000
_LEAST = 32
_EVALUATED = 2**20
_COMPARED = 2**27


@dataclass(frozen=True)
class SampleSize:
    """Records that are kept of the decisions.

    Attributes
    ----------
    kept : int
        At least :data:`SHOWN`.
    evaluated : int
        Of these, at every node of the lattice; 0 where that would take too long.
    """

    kept: int
    evaluated: int


def least_utility(policy: Policy) -> float | None:
    """Return the least utility of a record that a policy asks, if it asks one.

    Parameters
    ----------
    policy : Policy
    """
    return None if policy.decision is None else decision_of(policy).least_utility


def sample_size(n_nodes: int, counts: Sequence[Counts | None]) -> SampleSize:
    """Return how many records are sampled.

    Parameters
    ----------
    n_nodes : int
        Of the lattice of the hierarchies' heights.
    counts : sequence of Counts or None
        Of every dictionary; None is one that stays distributed.

    Returns
    -------
    SampleSize
        Whatever the number of nodes, at most 2^20 pairs of a record and a node are evaluated, and at most 2^27 values
        of records and dictionary vectors compared. Fewer than 32 records would say little, and are not evaluated.
    """
    most = min(_MOST, _EVALUATED // n_nodes)
    for one in counts:
        if one is None:
            most = 0
        elif isinstance(one, SortedCounts):
            vectors = sum(len(group.counts) for group in one.groups)
            most = min(most, _COMPARED // max(1, vectors * len(one.axes)))
    evaluated = most if most >= _LEAST else 0
    return SampleSize(max(SHOWN, evaluated), evaluated)
