"""What curves of the risk over the attacker's knowledge are drawn of: samples, utility floors, records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import ConfigError, Fault, InfeasibleError, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.lattice.lattice import reaches
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import true_dictionary
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.search import decides_records
from privrisk_spark.policy.decisions import LeastRiskDecision
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import Policy

FLOORS = 5
"""Utility floors, evenly spaced up to the greatest utility, unless others are asked for."""

MOST_FLOORS = 20
MOST_SHARES = 100


@dataclass(frozen=True)
class CurveRequest:
    """What the curves are drawn of.

    Attributes
    ----------
    shares : int
        Nested samples of the dictionary.
    floors : tuple of float or None
        Least utilities ``c``; None spaces them evenly.
    records : int
        Most distinct records to decide; beyond, a sample of them stands for all.
    """

    shares: int = 10
    floors: tuple[float, ...] | None = None
    records: int = 20_000


def parse_floors(text: str) -> tuple[float, ...]:
    """Read ``--floors a,b,c``.

    Raises
    ------
    ConfigError
        If it is not a list of finite numbers.
    """
    try:
        floors = tuple(float(part) for part in text.split(","))
    except ValueError:
        floors = ()
    if not floors or len(floors) > MOST_FLOORS or not all(math.isfinite(floor) for floor in floors):
        rule = f"must be up to {MOST_FLOORS} numbers with commas between, such as 2,4,6.5. Got {text!r}"
        raise ConfigError([Fault("--floors", rule)])
    return floors


def request_of(shares: int, floors: Sequence[float] | None, records: int) -> CurveRequest:
    """Return what is asked for, checked.

    Raises
    ------
    ConfigError
        With all that is out of range.
    """
    faults = []
    if not 2 <= shares <= MOST_SHARES:
        faults.append(Fault("shares", f"must be in 2, …, {MOST_SHARES}. Got {shares}"))
    if floors is not None and not (0 < len(floors) <= MOST_FLOORS and all(map(math.isfinite, floors))):
        faults.append(Fault("floors", f"must be up to {MOST_FLOORS} finite numbers. Got {list(floors)}"))
    if records < 1:
        faults.append(Fault("records", f"must be at least 1. Got {records}"))
    if faults:
        raise ConfigError(faults)
    return CurveRequest(shares, None if floors is None else tuple(map(float, floors)), records)


def floors_of(policy: Policy, hierarchies: Mapping[str, Hierarchy], given: Sequence[float] | None) -> tuple[float, ...]:
    """Return the utility floors, ascending: those given, or evenly spaced ones.

    Raises
    ------
    InfeasibleError
        If one is above the greatest utility.
    """
    greatest = greatest_utility(policy, hierarchies)
    if given is None:
        return tuple(greatest * (i + 1) / FLOORS for i in range(FLOORS))
    for floor in given:
        if not reaches(np.array([greatest]), floor)[0]:
            raise InfeasibleError(
                f"floors: must be at most {greatest:g}, the {policy.utility.measure} utility of a record released as "
                f"it is. Got {floor:g}."
            )
    return tuple(sorted(set(given)))


def refuse_other_problems(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> None:
    """Refuse a policy whose decisions are not the least risk over a utility floor, found by enumeration.

    Raises
    ------
    InputError
    """
    if not isinstance(policy.decision, LeastRiskDecision) or decides_records(
        decision_of(policy).choice(hierarchies).method
    ):
        raise InputError(
            "decision: curves are drawn of least risk over utility floors, by enumeration; use the problem "
            "'min-risk', the method 'auto' or 'exact', and lattices that can be enumerated."
        )


def growing_dictionary(policy: Policy) -> OneDictionary:
    """Return the dictionary that is cut into samples: the true one, else the first external one, else the table."""
    external = [dictionary for dictionary in policy.dictionaries if dictionary.table is not None]
    return true_dictionary(policy) or (external or list(policy.dictionaries))[0]
