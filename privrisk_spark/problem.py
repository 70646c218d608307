"""From a policy and its hierarchies to the numbers the kernels take."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import Axis
from privrisk_spark.kernels.decide import Problem, Search
from privrisk_spark.kernels.lattice import reaches
from privrisk_spark.kernels.sensitivity import FloatArray, Sensitivity, harmonic_weights, override_weights, scaled
from privrisk_spark.kernels.utility import node_utility
from privrisk_spark.policy import Policy, SensitivityPolicy

EXACT_LIMIT = 2**20
"""Largest lattice the enumerating searches accept, in nodes."""


def sensitivity(policy: SensitivityPolicy, hierarchies: Mapping[str, Hierarchy]) -> Sensitivity:
    """Sensitivity with the weights of every node filled in.

    Raises
    ------
    HierarchyError
        If ``node_weights`` names a node that is not there.
    InputError
        If a given weight increases upwards.
    """
    weights = []
    for name, hierarchy in hierarchies.items():
        given = {hierarchy.find(label): weight for label, weight in policy.node_weights.get(name, {}).items()}
        leaves = np.ones(hierarchy.n_leaves)
        for node, weight in given.items():
            if node < hierarchy.n_leaves:
                leaves[node] = weight
        relative = harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, leaves, given)
        # A label that comes from records is not named.
        labels = hierarchy.labels if hierarchy.public else ("…",) * hierarchy.n_nodes
        relative = override_weights(name, relative, given, parent=hierarchy.parent, labels=labels)
        weights.append(scaled(relative, np.float64(policy.weights.get(name, 1.0))))
    return Sensitivity(policy.form, tuple(weights), policy.constant)


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


def problem(policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: tuple[Axis, ...]) -> Problem:
    """Return the optimization problem of the policy's decision.

    Raises
    ------
    InfeasibleError
        If no record can reach the floor.
    InputError
        If the lattice is larger than the searches there are can enumerate.
    """
    decision = policy.decision
    assert decision is not None
    greatest = greatest_utility(policy, hierarchies)
    if not reaches(np.array([greatest]), decision.utility_at_least)[0]:
        raise InfeasibleError(
            f"decision.utility_at_least: must be at most {greatest:g}, the {policy.utility.measure} utility of a "
            f"record released as it is. Got {decision.utility_at_least:g}."
        )
    size = lattice_size(hierarchies)
    if size > EXACT_LIMIT:
        raise InputError(
            f"decision.method: a record's lattice has up to {size:,} nodes and the methods there are enumerate at most "
            f"{EXACT_LIMIT:,}; use fewer quasi-identifiers or lower hierarchies."
        )
    # Labels that resemble each other have counts that are not monotone: nothing may be pruned.
    exact: Search = "exhaustive" if policy.dictionary.consistency == "similar" else "exact"
    search: Search = exact if decision.method == "auto" else decision.method
    return Problem(
        ancestor=tuple(hierarchy.ancestor for hierarchy in hierarchies.values()),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=node_utilities(policy, hierarchies),
        sensitivity=sensitivity(policy.risk.sensitivity, hierarchies),
        model=policy.risk.model,
        floor=decision.utility_at_least,
        search=search,
        neighbourhood=decision.neighbourhood,
    )
