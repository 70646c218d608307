"""From a policy's decision to the search that decides: its objective, and the method that finds the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal, get_args

import numpy as np

from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.objective import (
    AnyObjective,
    GreatestAggregate,
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
)
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.lattice.lattice import reaches
from privrisk_spark.kernels.search.method import Method, RecordMethod, Search, TableMethod
from privrisk_spark.planning.disclosure import greatest_utility, sensitivity
from privrisk_spark.planning.rules import listed_rules
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
    RuleDecision,
)
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.release import against_record_search

RuleMethod = Literal["minrisk", "rules"]
"""Rules that decide without a search."""

SearchedDecision = LeastRiskDecision | GreatestUtilityDecision | LeastPenalizedDecision | AggregateDecision
"""Decisions that optimize an objective over each record's lattice."""

EXACT_LIMIT = 2**20
"""Largest lattice the enumerating searches accept, in nodes."""

CHEAPLY_ENUMERATED = 2**14
"""Nodes up to which ``max-aggregate`` is decided by enumeration where minimum cuts would do as well.

A node costs each record a look-up, about 0.07 µs, and under the plan ``sorted`` each task a grouping of the dictionary
besides, about 0.25 ms + 0.1 µs a vector. A record decided by itself costs 1 to 2 ms + 0.05 to 0.1 µs a vector. With the
20,000 distinct records of Adult as the dictionary both cost the same at about 16,000 nodes (at its 6,480 nodes, 25 s
against 50 s on two cores); with more records enumeration gains, as one grouping serves all of them, and with fewer
either is done in seconds. A small table against a register of millions is the exception: name ``aggregate`` there.
"""


def lattice_size(hierarchies: Mapping[str, Hierarchy]) -> int:
    """Nodes of the largest lattice a record can have."""
    return prod(hierarchy.height + 1 for hierarchy in hierarchies.values())


def method_of(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> tuple[Method | RuleMethod, str]:
    """Return the method of the policy's decision, and why it is taken.

    Raises
    ------
    InputError
        If the policy names one that enumerates, and a lattice may be too large for it.
    """
    decision = policy.decision
    assert decision is not None
    if isinstance(decision, ListedRulesDecision):
        return "rules", f"each of {len(decision.rules):,} rules is measured over the whole table"
    if isinstance(decision, RuleDecision):
        return "minrisk", "cells are ranked by their exposure, and no lattice is searched"
    return _searching_method(policy, decision, lattice_size(hierarchies))


def _searching_method(policy: Policy, decision: SearchedDecision, size: int) -> tuple[Method, str]:
    """Return the method of a decision that is searched for in lattices of so many nodes; errors as above."""
    if decision.method != "auto":
        if size > EXACT_LIMIT and decision.method in get_args(TableMethod):
            raise InputError(
                f"decision.method: a record's lattice has up to {size:,} nodes, and '{decision.method}' enumerates at "
                f"most {EXACT_LIMIT:,}; use 'branch_and_bound', or fewer quasi-identifiers or lower hierarchies."
            )
        return decision.method, "named by decision.method"
    if isinstance(decision, AggregateDecision):
        return _method_of_aggregate(policy, size)
    if policy.dictionary.consistency == "similar":
        return "exhaustive", "counts by likeness of labels are not monotone, so nothing may be left out"
    if size > EXACT_LIMIT:
        return "branch_and_bound", f"a lattice may have {size:,} nodes, more than the {EXACT_LIMIT:,} to be enumerated"
    fits = f"a lattice has at most {size:,} nodes, of the {EXACT_LIMIT:,} to be enumerated"
    if isinstance(decision, LeastRiskDecision):
        return "exact", f"{fits}; risk is monotone, so only maximal feasible nodes need be looked at"
    return "exhaustive", f"{fits}; the objective is not monotone"


def _method_of_aggregate(policy: Policy, size: int) -> tuple[Method, str]:
    """Enumeration of the whole table's lattices, or minimum cuts record by record; the one that is possible, or faster.

    Raises
    ------
    InputError
        If neither is possible.
    """
    against = [f"{fault.path}: {fault.rule}" for fault in against_record_search(policy, "aggregate", enumerable=False)]
    if policy.dictionary.consistency == "similar":
        against.append("counts by likeness of labels are not monotone")
    if size > EXACT_LIMIT:
        many = f"a lattice may have {size:,} nodes, more than the {EXACT_LIMIT:,} to be enumerated"
        if against:
            raise InputError(f"decision.method: {many}, and minimum cuts cannot do it either: {'; '.join(against)}.")
        return "aggregate", many
    fits = f"a lattice has at most {size:,} nodes"
    if against:
        return "exhaustive", f"{fits}, and minimum cuts cannot do it: {'; '.join(against)}"
    if size <= CHEAPLY_ENUMERATED:
        return "exhaustive", f"{fits}; up to {CHEAPLY_ENUMERATED:,}, all records together, node by node, are faster"
    return "aggregate", f"{fits}; beyond {CHEAPLY_ENUMERATED:,}, minimum cuts record by record are faster"


def _is_finite(phi: Sensitivity) -> bool:
    return all(bool(np.isfinite(weights).all()) for weights in phi.weights)


def decides_records(method: Method | RuleMethod) -> bool:
    """Whether a method searches one record's lattice at a time, against the dictionary's vectors."""
    return method in get_args(RecordMethod)


def takes_infinite(method: Method, policy: Policy) -> bool:
    """Whether a method takes infinite weights; risk model II does not look at them."""
    model = policy.risk.model
    return not decides_records(method) or model == "II" or (model == "I" and method != "approximate")


def objective_of(decision: SearchedDecision) -> AnyObjective:
    """Return what a decision optimizes."""
    if isinstance(decision, LeastRiskDecision):
        return LeastRisk(decision.utility_at_least)
    if isinstance(decision, GreatestUtilityDecision):
        return GreatestUtility(decision.risk_at_most)
    if isinstance(decision, LeastPenalizedDecision):
        return LeastPenalized(decision.lambda_)
    return GreatestAggregate(decision.lambda_, float(decision.kappa), decision.zero_phi)


def search_of(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> Search | None:
    """Return the search of the policy's decision; None where a rule decides.

    Raises
    ------
    InfeasibleError
        If no record, or no listed rule, can reach the floor.
    InputError
        If a listed rule is above a hierarchy or repeats another; if a lattice is larger than the search can enumerate,
        and none that can do without serves.
    """
    decision = policy.decision
    assert decision is not None
    if isinstance(decision, ListedRulesDecision):
        listed_rules(decision, hierarchies)
    if isinstance(decision, LeastRiskDecision | ListedRulesDecision):
        _refuse_unreachable(policy, hierarchies, decision.utility_at_least)
    if isinstance(decision, RuleDecision):
        return None
    method, _ = _searching_method(policy, decision, lattice_size(hierarchies))
    if decides_records(method):
        # A method that was named has been held against these before.
        for fault in against_record_search(policy, method, enumerable=False):
            raise InputError(f"{fault.path}: {fault.rule}; the lattice is too large for a search that enumerates.")
        phi = sensitivity(policy.risk.sensitivity, hierarchies)
        if not takes_infinite(method, policy) and not _is_finite(phi):
            raise InputError(
                f"risk.sensitivity: decision.method '{method}' takes finite weights alone under model "
                f"'{policy.risk.model}'. Got infinity; give a large weight, or use 'exact' or 'exhaustive'."
            )
    neighbourhood = decision.neighbourhood if isinstance(decision, LeastRiskDecision) else "swap"
    return Search(objective_of(decision), method, neighbourhood, decision.most_steps)


def _refuse_unreachable(policy: Policy, hierarchies: Mapping[str, Hierarchy], floor: float) -> None:
    """Refuse a floor of utility that not even the best record reaches."""
    greatest = greatest_utility(policy, hierarchies)
    if not reaches(np.array([greatest]), floor)[0]:
        raise InfeasibleError(
            f"decision.utility_at_least: must be at most {greatest:g}, the {policy.utility.measure} utility of a "
            f"record released as it is. Got {floor:g}."
        )
