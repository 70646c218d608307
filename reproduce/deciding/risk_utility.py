"""Optimal disclosures against full-domain k-anonymity (Fouad 2012, Figs 3.2, 4.12), and their levels (Fig. 3.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice
from reproduce.deciding.every_node import ClassSizes
from reproduce.deciding.sample import Sample
from reproduce.deciding.subject import Subject

MODELS: tuple[RiskModel, ...] = ("I", "II", "III")

MOST_NODES = 200_000
"""Largest lattice of a table that is searched for k-anonymous nodes."""


@dataclass(frozen=True, eq=False)
class RiskUtility:
    """Means over the decided records, by how often they occur.

    Attributes
    ----------
    records : int
        Distinct records decided; ``rows`` of the table have their values.
    floors : ndarray of float64, shape (F,)
        Least utilities, in generalization steps.
    risk, utility : ndarray of float64, shape (3, F)
        Of the optimum, by risk model and floor.
    infeasible : ndarray of int64, shape (F,)
        Rows out of reach of the floor, suppressed.
    anonymity : ndarray of int64, shape (A,)
        Values of k for which some level vector makes the whole table k-anonymous.
    levels : ndarray of int64, shape (A, k)
        The one of highest mean utility.
    anonymous_risk : ndarray of float64, shape (3, A)
    anonymous_utility : ndarray of float64, shape (A,)
    matched_risk, matched_utility : ndarray of float64, shape (3, A)
        Of the optimum whose floor is the mean utility of the k-anonymous table.
    chosen : ndarray of float64, shape (F, k)
        Mean level of each attribute at the optimum of model I.
    heights : ndarray of int64, shape (k,)
        Mean level if everything were suppressed is at most this.
    """

    records: int
    rows: int
    floors: FloatArray
    risk: FloatArray
    utility: FloatArray
    infeasible: LongArray
    anonymity: LongArray
    levels: LongArray
    anonymous_risk: FloatArray
    anonymous_utility: FloatArray
    matched_risk: FloatArray
    matched_utility: FloatArray
    chosen: FloatArray
    heights: LongArray


def risk_utility(
    subject: Subject, *, seed: int, records: int, floors: Sequence[float], anonymity: Sequence[int]
) -> RiskUtility:
    """Decide records at several floors under every risk model, and make the table k-anonymous.

    Parameters
    ----------
    seed : int
        Draws the records.
    records : int
        Most distinct records to decide.
    floors : sequence of float
        Shares of the greatest utility.
    anonymity : sequence of int
        Values of k, ascending.
    """
    sample = Sample.of(subject, seed=seed, records=records)
    least = np.array(floors, dtype=np.float64) * subject.greatest_utility
    risk, utility = np.zeros((3, len(least))), np.zeros((3, len(least)))
    infeasible = np.zeros(len(least), dtype=np.int64)
    chosen = np.zeros((len(least), subject.k))
    for f, floor in enumerate(least.tolist()):
        for m, model in enumerate(MODELS):
            found = sample.decided(model, floor)
            risk[m, f], utility[m, f] = sample.mean(found.risk), sample.mean(found.utility)
            if model == "I":
                infeasible[f] = sample.times[~found.feasible].sum()
                chosen[f] = [sample.mean(found.levels[:, i]) for i in range(subject.k)]
    anonymous = full_domain(subject, anonymity)
    of_risk, matched_risk, matched_utility = (np.zeros((3, len(anonymous))) for _ in range(3))
    of_utility = np.zeros(len(anonymous))
    for a, levels in enumerate(anonymous.values()):
        everywhere = np.tile(np.array(levels, dtype=np.int64), (len(sample.times), 1))
        of_utility[a] = sample.mean(sample.utility_at(everywhere))
        for m, model in enumerate(MODELS):
            of_risk[m, a] = sample.mean(sample.risk_at(everywhere, model))
            found = sample.decided(model, float(of_utility[a]))
            matched_risk[m, a], matched_utility[m, a] = sample.mean(found.risk), sample.mean(found.utility)
    return RiskUtility(
        records=len(sample.times),
        rows=int(sample.times.sum()),
        floors=least,
        risk=risk,
        utility=utility,
        infeasible=infeasible,
        anonymity=np.array(list(anonymous), dtype=np.int64),
        levels=np.array(list(anonymous.values()), dtype=np.int64).reshape(-1, subject.k),
        anonymous_risk=of_risk,
        anonymous_utility=of_utility,
        matched_risk=matched_risk,
        matched_utility=matched_utility,
        chosen=chosen,
        heights=np.array(subject.heights, dtype=np.int64),
    )


def full_domain(subject: Subject, anonymity: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Level vector of highest mean utility among those that make the whole table k-anonymous, for each k.

    Parameters
    ----------
    anonymity : sequence of int
        Each at least 1. No row is suppressed.

    Returns
    -------
    dict of int to tuple of k int
        Ties: the lowest mean of ``1/f`` over the records, f the rows of a record's class; then the lexicographically
        smallest. A k larger than the table is left out, and all are if the lattice has more than
        :data:`MOST_NODES` nodes.
    """
    lattice = Lattice(subject.heights)
    if lattice.n_nodes > MOST_NODES or not anonymity:
        return {}
    sizes = ClassSizes.at_every_node([axis.ancestor for axis in subject.axes], subject.vectors, subject.counts)
    chains = []
    for i, (axis, values) in enumerate(zip(subject.axes, subject.utilities, strict=True)):
        chains.append(np.average(values[axis.ancestor[subject.vectors[:, i]]], axis=0, weights=subject.counts))
    utility, risk = lattice.utility(chains), sizes.mean_risk()
    found: dict[int, tuple[int, ...]] = {}
    for k in anonymity:
        nodes = np.flatnonzero(sizes.smallest >= k)
        if not len(nodes):
            continue
        most = float(utility[nodes].max())
        nodes = nodes[utility[nodes] >= most - TOLERANCE * max(1.0, most)]
        nodes = nodes[risk[nodes] <= risk[nodes].min() * (1 + TOLERANCE)]
        found[k] = tuple(lattice.levels(nodes[:1])[0].tolist())
    return found
