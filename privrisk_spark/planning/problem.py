"""From a policy and its hierarchies to the numbers the kernels take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

import numpy as np

from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.objective import (
    AnyGoal,
    GreatestAggregate,
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
)
from privrisk_spark.kernels.disclosure.sensitivity import (
    FloatArray,
    Sensitivity,
    harmonic_weights,
    override_weights,
    scaled,
)
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.lattice.lattice import reaches
from privrisk_spark.kernels.search.table_search import Problem, Search, SingleSearch, TableSearch
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
    RuleDecision,
)
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.release import against_singly
from privrisk_spark.policy.sensitivity import (
    ConstantSensitivity,
    InteractionSensitivity,
    SensitivityPolicy,
    WeighedSensitivity,
)
from privrisk_spark.policy.sensitivity import Sensitivity as AskedSensitivity

Method = Search | Literal["minrisk", "rules"]
"""Searches, and rules that decide without one."""

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


def node_weights(policy: SensitivityPolicy, hierarchies: Mapping[str, Hierarchy]) -> tuple[FloatArray, ...]:
    """Sensitivity weight of every node, per attribute.

    Raises
    ------
    HierarchyError
        If ``node_weights`` names a node that is not there.
    InputError
        If a given weight increases upwards.
    """
    weights = []
    weighed = policy if isinstance(policy, WeighedSensitivity) else WeighedSensitivity()
    for name, hierarchy in hierarchies.items():
        given = {hierarchy.find(label): weight for label, weight in weighed.node_weights.get(name, {}).items()}
        leaves = np.ones(hierarchy.n_leaves)
        for node, weight in given.items():
            if node < hierarchy.n_leaves:
                leaves[node] = weight
        relative = harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, leaves, given)
        # A label that comes from records is not named.
        labels = hierarchy.labels if hierarchy.public else ("…",) * hierarchy.n_nodes
        relative = override_weights(name, relative, given, parent=hierarchy.parent, labels=labels)
        weights.append(scaled(relative, np.float64(weighed.weights.get(name, 1.0))))
    return tuple(weights)


def sensitivity(policy: AskedSensitivity, hierarchies: Mapping[str, Hierarchy]) -> Sensitivity:
    """Sensitivity with the weights of every node filled in; errors are those of :func:`node_weights`."""
    place = {name: i for i, name in enumerate(hierarchies)}
    interactions = policy.interactions if isinstance(policy, InteractionSensitivity) else []
    return Sensitivity(
        policy.form,
        node_weights(policy, hierarchies),
        policy.constant if isinstance(policy, ConstantSensitivity) else 1.0,
        sets=tuple(tuple(place[name] for name in given.columns) for given in interactions),
        set_weights=tuple(given.weight for given in interactions),
    )


def node_utilities(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> tuple[FloatArray, ...]:
    """Utility of every node, per quasi-identifier."""
    return tuple(
        node_utility(
            policy.utility.measure,
            hierarchy.depth,
            hierarchy.n_under,
            weight=policy.utility.weights.get(name, 1.0),
        )
        for name, hierarchy in hierarchies.items()
    )


def greatest_utility(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> float:
    """Utility of the record that loses nothing and lies deepest in every hierarchy."""
    return float(sum(u.max() for u in node_utilities(policy, hierarchies)))


def lattice_size(hierarchies: Mapping[str, Hierarchy]) -> int:
    """Nodes of the largest lattice a record can have."""
    return prod(hierarchy.height + 1 for hierarchy in hierarchies.values())


def search_of(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> tuple[Method, str]:
    """Return the search of the policy's decision, and why it is taken.

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
    size = lattice_size(hierarchies)
    if decision.method != "auto":
        if size > EXACT_LIMIT and decision.method in get_args(TableSearch):
            raise InputError(
                f"decision.method: a record's lattice has up to {size:,} nodes, and '{decision.method}' enumerates at "
                f"most {EXACT_LIMIT:,}; use 'branch_and_bound', or fewer quasi-identifiers or lower hierarchies."
            )
        return decision.method, "named by decision.method"
    if isinstance(decision, AggregateDecision):
        return _search_of_aggregate(policy, size)
    if policy.dictionary.consistency == "similar":
        return "exhaustive", "counts by likeness of labels are not monotone, so nothing may be left out"
    if size > EXACT_LIMIT:
        return "branch_and_bound", f"a lattice may have {size:,} nodes, more than the {EXACT_LIMIT:,} to be enumerated"
    fits = f"a lattice has at most {size:,} nodes, of the {EXACT_LIMIT:,} to be enumerated"
    if isinstance(decision, LeastRiskDecision):
        return "exact", f"{fits}; risk is monotone, so only maximal feasible nodes need be looked at"
    return "exhaustive", f"{fits}; the objective is not monotone"


def _search_of_aggregate(policy: Policy, size: int) -> tuple[Search, str]:
    """Enumeration of the whole table's lattices, or minimum cuts record by record; the one that is possible, or faster.

    Raises
    ------
    InputError
        If neither is possible.
    """
    against = [f"{fault.path}: {fault.rule}" for fault in against_singly(policy, "aggregate", enumerable=False)]
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


def entity_of(policy: Policy, one: OneDictionary) -> str | None:
    """Return the column that names the person in a dictionary with several rows a person."""
    return policy.table.entity_id if one.table is None else one.table.entity_id


def is_single(search: Method) -> bool:
    """Whether a search decides one record at a time, against the dictionary's vectors."""
    return search in get_args(SingleSearch)


def takes_infinite(search: Search, policy: Policy) -> bool:
    """Whether a search takes infinite weights; risk model II does not look at them."""
    model = policy.risk.model
    return not is_single(search) or model == "II" or (model == "I" and search != "approximate")


def goal_of(policy: Policy) -> AnyGoal:
    """Return what the policy's decision optimizes."""
    decision = policy.decision
    assert decision is not None
    if isinstance(decision, LeastRiskDecision):
        return LeastRisk(decision.utility_at_least)
    if isinstance(decision, GreatestUtilityDecision):
        return GreatestUtility(decision.risk_at_most)
    if isinstance(decision, LeastPenalizedDecision):
        return LeastPenalized(decision.lambda_)
    if isinstance(decision, RuleDecision):
        # A rule decides; records are evaluated only, and any level vector may come up.
        return LeastRisk(-np.inf)
    return GreatestAggregate(decision.lambda_, float(decision.kappa), decision.zero_phi)


@dataclass(frozen=True)
class LevelRule:
    """A listed rule.

    Attributes
    ----------
    name : str
    levels : tuple of k int
        Of the quasi-identifiers in order; the height is ⊥.
    """

    name: str
    levels: tuple[int, ...]


def listed_rules(decision: ListedRulesDecision, hierarchies: Mapping[str, Hierarchy]) -> tuple[LevelRule, ...]:
    """Resolve the listed rules to level vectors.

    Raises
    ------
    InputError
        If a level is above its hierarchy, or two rules are the same.
    """
    result: list[LevelRule] = []
    for i, given in enumerate(decision.rules):
        levels = []
        for name, hierarchy in hierarchies.items():
            level = hierarchy.height if name in given.suppress else given.levels.get(name, 0)
            if level > hierarchy.height:
                raise InputError(
                    f"decision.rules.{i}.levels.{name}: must be at most {hierarchy.height}, the height of the "
                    f"hierarchy. Got {level}."
                )
            levels.append(level)
        same = [j for j, rule in enumerate(result) if rule.levels == tuple(levels)]
        if same:
            raise InputError(f"decision.rules.{i}: repeats decision.rules.{same[0]}; give each rule once.")
        result.append(LevelRule(given.name or str(i + 1), tuple(levels)))
    return tuple(result)


def problem(policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: tuple[Axis, ...]) -> Problem:
    """Return the optimization problem of the policy's decision.

    Raises
    ------
    InfeasibleError
        If no record can reach the floor.
    InputError
        If a lattice is larger than the search can enumerate.
    """
    decision = policy.decision
    assert decision is not None
    greatest = greatest_utility(policy, hierarchies)
    goal = goal_of(policy)
    if isinstance(decision, ListedRulesDecision):
        listed_rules(decision, hierarchies)
    floor = decision.utility_at_least if isinstance(decision, LeastRiskDecision | ListedRulesDecision) else -np.inf
    if not reaches(np.array([greatest]), floor)[0]:
        raise InfeasibleError(
            f"decision.utility_at_least: must be at most {greatest:g}, the {policy.utility.measure} utility of a "
            f"record released as it is. Got {floor:g}."
        )
    method = search_of(policy, hierarchies)[0]
    search: Search = "exhaustive" if method == "minrisk" or method == "rules" else method
    phi = sensitivity(policy.risk.sensitivity, hierarchies)
    if is_single(search):
        # A method that was named has been held against these before.
        for fault in against_singly(policy, search, enumerable=False):
            raise InputError(f"{fault.path}: {fault.rule}; the lattice is too large for a search that enumerates.")
        if not takes_infinite(search, policy) and not _is_finite(phi):
            raise InputError(
                f"risk.sensitivity: decision.method '{search}' takes finite weights alone under model "
                f"'{policy.risk.model}'. Got infinity; give a large weight, or use 'exact' or 'exhaustive'."
            )
    return Problem(
        ancestor=tuple(hierarchy.ancestor for hierarchy in hierarchies.values()),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=node_utilities(policy, hierarchies),
        sensitivity=phi,
        model=policy.risk.model,
        goal=goal,
        search=search,
        neighbourhood=decision.neighbourhood if isinstance(decision, LeastRiskDecision) else "swap",
        most_steps=1 if isinstance(decision, RuleDecision) else decision.most_steps,
    )
