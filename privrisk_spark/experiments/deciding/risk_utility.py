"""Optimal disclosures against full-domain k-anonymity (Fouad 2012, Figs 3.2, 4.12), and their levels (Fig. 3.8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.kernels.classes.every_node import ClassSizes
from privrisk_spark.kernels.counting.consistent import consistent_at
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.risk import RiskModel, identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]

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
    rows : int
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
    subject : Subject
    seed : int
        Draws the records.
    records : int
        Most distinct records to decide.
    floors : sequence of float
        Shares of the greatest utility.
    anonymity : sequence of int
        Values of k, ascending.
    """
    rows = subject.drawn(seed, records)
    draws = len(subject.weightings)
    # Records take the draws of the weights in turn; those of one draw are decided together.
    groups = [(subject.vectors[rows[i::draws]], weights) for i, weights in enumerate(subject.weightings[: len(rows)])]
    rows = np.concatenate([rows[i::draws] for i in range(len(groups))])
    codes, times = subject.vectors[rows], subject.counts[rows].astype(np.float64)
    least = np.array(floors, dtype=np.float64) * subject.greatest_utility

    def decided(model: RiskModel, floor: float) -> list[Decisions]:
        disclosures = [
            Disclosure(
                ancestor=tuple(axis.ancestor for axis in subject.axes),
                code_depth=tuple(axis.code_depth for axis in subject.axes),
                utility=subject.utilities,
                sensitivity=Sensitivity("linear", weights),
                model=model,
            )
            for _, weights in groups
        ]
        search, pairs = Search(LeastRisk(floor)), zip(disclosures, groups, strict=True)
        return [decide(disclosure, search, subject.held, codes) for disclosure, (codes, _) in pairs]

    def mean(values: Iterable[npt.NDArray[np.generic]]) -> float:
        return float(np.average(np.concatenate(list(values)).astype(np.float64), weights=times))

    risk, utility = np.zeros((3, len(least))), np.zeros((3, len(least)))
    infeasible = np.zeros(len(least), dtype=np.int64)
    chosen = np.zeros((len(least), subject.k))
    for f, floor in enumerate(least.tolist()):
        for m, model in enumerate(MODELS):
            found = decided(model, floor)
            risk[m, f], utility[m, f] = mean(one.risk for one in found), mean(one.utility for one in found)
            if model == "I":
                infeasible[f] = times[~np.concatenate([one.feasible for one in found])].sum()
                chosen[f] = [mean(one.levels[:, i] for one in found) for i in range(subject.k)]
    anonymous = full_domain(subject, anonymity)
    of_utility = np.array([_mean_utility(subject, codes, levels, times) for levels in anonymous.values()])
    of_risk, matched_risk, matched_utility = (np.zeros((3, len(anonymous))) for _ in range(3))
    for a, levels in enumerate(anonymous.values()):
        for m, model in enumerate(MODELS):
            of_risk[m, a] = mean(_risk_at(subject, *group, levels, model) for group in groups)
            found = decided(model, float(of_utility[a]))
            matched_risk[m, a] = mean(one.risk for one in found)
            matched_utility[m, a] = mean(one.utility for one in found)
    return RiskUtility(
        records=len(rows),
        rows=int(times.sum()),
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
    subject : Subject
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


def _mean_utility(subject: Subject, codes: npt.NDArray[np.int32], levels: Sequence[int], times: FloatArray) -> float:
    total = np.zeros(len(codes))
    for i, (axis, values) in enumerate(zip(subject.axes, subject.utilities, strict=True)):
        total += values[axis.ancestor[codes[:, i], levels[i]]]
    return float(np.average(total, weights=times))


def _risk_at(
    subject: Subject,
    codes: npt.NDArray[np.int32],
    weights: tuple[FloatArray, ...],
    levels: Sequence[int],
    model: RiskModel,
) -> FloatArray:
    nodes = [axis.ancestor[codes[:, i], levels[i]] for i, axis in enumerate(subject.axes)]
    depths = [axis.code_depth for axis in subject.axes]
    consistent = consistent_at(subject.held, depths, codes, levels)
    sensitivity = Sensitivity("linear", weights).phi(nodes)
    return identification_risk(model, sensitivity, consistent, dictionary_rows=subject.held.dictionary_rows)
