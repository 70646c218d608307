"""From a policy and its hierarchies to what the nodes of records disclose: their utility and sensitivity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights, override_weights, scaled
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sensitivity import (
    ConstantSensitivity,
    InteractionSensitivity,
    SensitivityPolicy,
    WeighedSensitivity,
)
from privrisk_spark.policy.sensitivity import Sensitivity as AskedSensitivity


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


def disclosure_of(policy: Policy, hierarchies: Mapping[str, Hierarchy], axes: tuple[Axis, ...]) -> Disclosure:
    """Return what the records of a policy's table disclose at each node; errors are those of :func:`node_weights`."""
    return Disclosure(
        ancestor=tuple(hierarchy.ancestor for hierarchy in hierarchies.values()),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=node_utilities(policy, hierarchies),
        sensitivity=sensitivity(policy.risk.sensitivity, hierarchies),
        model=policy.risk.model,
    )
