"""Every node of one record's lattice at once: the yardstick of the searches that look at fewer.

``ρ`` of all nodes is the histogram of the dictionary's generalization vectors over the lattice, summed up along each
attribute: ``O(m k + k Π (h_i + 1))``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import (
    AnyObjective,
    GreatestAggregate,
    GreatestUtility,
    least_positive_risk,
    preferred,
)
from privrisk_spark.kernels.disclosure.risk import over_dictionaries
from privrisk_spark.kernels.lattice.lattice import Lattice, reaches
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

MOST_NODES = 2**24
"""Largest lattice that is enumerated."""


def rho_of_nodes(record: RecordLattice) -> list[LongArray]:
    """``ρ`` of every node in every dictionary, int64 by node number."""
    lattice = Lattice(tuple(record.heights.tolist()))
    node = record.vectors.astype(np.int64) @ lattice.strides
    found = []
    for counts in record.multiplicities:
        # Vectors are distinct, so nothing is added twice.
        rows = np.zeros(lattice.n_nodes, dtype=np.int64)
        rows[node] = counts
        consistent = rows.reshape(lattice.shape)
        for axis in range(len(lattice.shape)):
            np.cumsum(consistent, axis=axis, out=consistent)
        found.append(consistent.ravel())
    return found


@dataclass(frozen=True, eq=False)
class Nodes:
    """Anonymity numbers, utility and risk of every node, by node number, shape (n_nodes,) each.

    Make one with :meth:`of_record`.

    Attributes
    ----------
    rho : tuple of ndarrays of int64
        One per dictionary.
    sensitivity, utility, risk : ndarray of float64
    """

    lattice: Lattice
    rho: tuple[LongArray, ...]
    sensitivity: FloatArray
    utility: FloatArray
    risk: FloatArray

    @classmethod
    def of_record(cls, record: RecordLattice) -> Nodes:
        """Evaluate all nodes of a record's lattice.

        Raises
        ------
        InputError
            If there are more than :data:`MOST_NODES`.
        """
        if record.size > MOST_NODES:
            raise InputError(f"A lattice is enumerated up to {MOST_NODES:,} nodes. Got {record.size:,}.")
        lattice = Lattice(tuple(record.heights.tolist()))
        rho = rho_of_nodes(record)
        total = lattice.utility(record.weights)
        with np.errstate(over="ignore"):
            sensitivity = np.exp(total) if record.exponential else total
        utility = lattice.utility(record.utilities)
        return cls(lattice, tuple(rho), sensitivity, utility, record.risks(sensitivity, rho))

    def frontier(self, floor: float) -> BoolArray:
        """Feasible nodes with at least one infeasible immediate generalization (F12 §4.5).

        Parameters
        ----------
        floor : float
            Least utility ``c``.

        Returns
        -------
        ndarray of bool, shape (n_nodes,)
            None where every node is feasible.
        """
        feasible = reaches(self.utility, floor).reshape(self.lattice.shape)
        leaves = np.zeros_like(feasible)
        for axis in range(feasible.ndim):
            below, above = [slice(None)] * feasible.ndim, [slice(None)] * feasible.ndim
            below[axis], above[axis] = slice(0, -1), slice(1, None)
            leaves[tuple(below)] |= ~feasible[tuple(above)]
        found: BoolArray = (feasible & leaves).ravel()
        return found


def enumerate_nodes(record: RecordLattice, objective: AnyObjective) -> Answer | None:
    """Best level vector by looking at every node.

    Parameters
    ----------
    objective : LeastRisk or GreatestUtility or LeastPenalized or GreatestAggregate

    Returns
    -------
    Answer or None
        Proved; ``visited`` counts the nodes of the lattice. None if nothing satisfies the constraint.
    """
    nodes = Nodes.of_record(record)
    if isinstance(objective, GreatestAggregate):
        return _greatest_aggregate(record, objective, nodes)
    admitted = np.flatnonzero(objective.admits(nodes.risk, nodes.utility))
    if not len(admitted):
        return None
    values = objective.value(nodes.risk, nodes.utility)[admitted]
    loss = -values if isinstance(objective, GreatestUtility) else values
    least = float(loss.min())
    # Wider than any tolerance of an objective; those are its own business.
    near = admitted[loss <= least + 1e-9 * abs(least) + 1e-11]
    best = preferred(objective, None, nodes.lattice.levels(near), nodes.risk[near], nodes.utility[near])
    assert best is not None
    chosen = np.array(best[2], dtype=np.int64)
    risk, utility = np.array([record.risk(chosen)]), np.array([record.utility(chosen)])
    value = float(objective.value(risk, utility)[0])
    return answer(record, chosen, objective=value, bound=value, visited=nodes.lattice.n_nodes, proved=True)


def _greatest_aggregate(record: RecordLattice, objective: GreatestAggregate, nodes: Nodes) -> Answer:
    """Node of the greatest value; where the record's risk is 0 as it is, that is its utility's part alone."""
    if nodes.risk[0] == 0 or objective.trade_off == 0:
        node, value = 0, float(nodes.utility[0]) ** objective.kappa
    else:
        risk = nodes.risk
        if objective.zero_phi == "floor":
            phi = nodes.sensitivity
            least = np.full(len(phi), phi[phi > 0].min(initial=np.inf))
            positive = [
                least_positive_risk(record.model, phi, consistent, dictionary_rows=n, least_sensitivity=least)
                for consistent, n in zip(nodes.rho, record.dictionary_rows, strict=True)
            ]
            risk = np.where(risk > 0, risk, over_dictionaries(record.rule, record.prior, positive))
        values = np.where(objective.admits(risk, nodes.utility), objective.value(risk, nodes.utility), -np.inf)
        tied = np.flatnonzero(objective.reaches(values, np.array([values.max()])))
        utility = nodes.utility[tied]
        node = int(tied[~objective.more_useful(np.array([utility.max()]), utility)][0])
        value = float(values[node])
    chosen = nodes.lattice.levels(np.array([node]))[0]
    return answer(record, chosen, objective=value, bound=value, visited=nodes.lattice.n_nodes, proved=True)
