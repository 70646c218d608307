"""What searches take: the largest lattices, weights and counts, and the greatest utility there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import get_args

import numpy as np

from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.lattice.lattice import reaches
from privrisk_spark.kernels.search.method import Method, RecordMethod
from privrisk_spark.planning.disclosure import greatest_utility, sensitivity
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.decisions import against_record_search

EXACT_LIMIT = 2**20
"""Largest lattice the enumerating searches accept, in nodes."""


@dataclass(frozen=True)
class MethodChoice:
    """The method that decides, and why it is taken.

    Attributes
    ----------
    method : str
        As reports name it: a method of a search, or of a rule.
    reason : str
        One clause.
    """

    method: str
    reason: str


@dataclass(frozen=True)
class SearchChoice(MethodChoice):
    """The method of a search, and why it is taken."""

    method: Method


def lattice_size(hierarchies: Mapping[str, Hierarchy]) -> int:
    """Nodes of the largest lattice a record can have."""
    return prod(hierarchy.height + 1 for hierarchy in hierarchies.values())


def decides_records(method: str) -> bool:
    """Whether a method searches one record's lattice at a time, against the dictionary's vectors."""
    return method in get_args(RecordMethod)


def takes_infinite(method: Method, policy: Policy) -> bool:
    """Whether a method takes infinite weights; risk model II does not look at them."""
    model = policy.risk.model
    return not decides_records(method) or model == "II" or (model == "I" and method != "approximate")


def _is_finite(phi: Sensitivity) -> bool:
    return all(bool(np.isfinite(weights).all()) for weights in phi.weights)


def refuse_untaken(policy: Policy, hierarchies: Mapping[str, Hierarchy], method: Method) -> None:
    """Refuse what a search of one record at a time does not take.

    Raises
    ------
    InputError
        Naming the key to mend.
    """
    if not decides_records(method):
        return
    # A method that was named has been held against these before.
    for fault in against_record_search(policy, method, enumerable=False):
        raise InputError(f"{fault.path}: {fault.rule}; the lattice is too large for a search that enumerates.")
    phi = sensitivity(policy.risk.sensitivity, hierarchies)
    if not takes_infinite(method, policy) and not _is_finite(phi):
        raise InputError(
            f"risk.sensitivity: decision.method '{method}' takes finite weights alone under model "
            f"'{policy.risk.model}'. Got infinity; give a large weight, or use 'exact' or 'exhaustive'."
        )


def refuse_unreachable(policy: Policy, hierarchies: Mapping[str, Hierarchy], floor: float) -> None:
    """Refuse a floor of utility that not even the best record reaches.

    Raises
    ------
    InfeasibleError
    """
    greatest = greatest_utility(policy, hierarchies)
    if not reaches(np.array([greatest]), floor)[0]:
        raise InfeasibleError(
            f"decision.utility_at_least: must be at most {greatest:g}, the {policy.utility.measure} utility of a "
            f"record released as it is. Got {floor:g}."
        )
