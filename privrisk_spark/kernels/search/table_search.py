"""Deciding each record's disclosure: minimise the risk over its lattice subject to ``u(x) >= c`` (F12 eq 4.2).

Three searches share one evaluation:

* ``exact``: risk at the maximal feasible nodes, which hold an optimum because risk is non-increasing in every level;
* ``aruba``: risk at the frontier nodes, visited by moves from one of them (F12 Algorithm 3);
* ``exhaustive``: risk at all feasible nodes; asks nothing of the risk, and serves every objective.

Status: *proved*. All return the optimum of the problem as stated, for every risk model of
:mod:`privrisk_spark.kernels.disclosure.risk` and every modular utility; the proof of connectivity is in
:func:`privrisk_spark.kernels.lattice.lattice.walk_frontier`. Against several dictionaries the risk is the
prior-weighted sum or the maximum of one risk per dictionary; sums with non-negative weights and maxima of functions
non-increasing in every level are non-increasing in every level, so ``exact`` and ``aruba`` stay exact. They are refused
when a dictionary's ``ρ`` is not monotone (labels that resemble each other), as then neither need meet an optimum.

Minimax is taken record by record, ``min_x max_θ r_θ(x)``. The mean of these over the table is an upper bound of the
table's minimax risk ``max_θ R(δ, θ)``, since a mean of maxima is at least every mean, hence at least their maximum.

Ties: lower risk, then higher utility, then the lexicographically smallest level vector, where numbers within
:data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE` of each other count as equal. Risk may be flat along an edge
(weight 0, a node with a single child), so the best maximal node need not have the highest utility among the optimal
ones. A record whose best node has a flat edge below it, or a rival of equal risk, is decided again over all its
feasible nodes.

Work is shared where nothing that decides differs, which cannot change a result:

* values of one depth that have the same utility and weight at every level, and that no dictionary tells apart, are
  *alike*, and records of values alike have one decision but for the node numbers: with a dictionary of birth years, all
  days in the months of 31 days of a year are alike. One record of each kind is decided;
* Φ is found once per combination of weights, feasible nodes once per combination of utilities;
* the loop runs over lattice nodes outside, records inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.decisions import AfterHistory, Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate, LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, feasible_nodes, maximal_nodes, walk_frontier
from privrisk_spark.kernels.numeric.packing import rows_by_value
from privrisk_spark.kernels.search.incumbents import AggregateIncumbents, Incumbents
from privrisk_spark.kernels.search.lattice_blocks import lattice_blocks
from privrisk_spark.kernels.search.method import RecordMethod, Search
from privrisk_spark.kernels.search.records import Records, kinds_of, pick

_CANDIDATES_AT_ONCE = 2**24
"""Pairs of a combination of utilities and a node held at once. Does not change a result."""


def decide(
    disclosure: Disclosure,
    search: Search,
    attacker: Attacker | Counts,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
    history: LevelArray | None = None,
) -> Decisions:
    """Choose the disclosure of every record.

    Parameters
    ----------
    attacker : Attacker or Counts
        The dictionaries the attacker may hold, or the one he holds. A record with no consistent row at level 0 is
        absent from a dictionary and is added to it: ``ρ_θ`` and ``N_θ`` are one more at every level, which keeps risk
        monotone. Where ``ρ_θ`` is not monotone, a node may still have no consistent row; the record itself is then
        counted, ``ρ_θ = 1``: a label unlike any other must not make the risk 0.
    codes : ndarray of int32, shape (n, k)
        Leaf codes; best given once per distinct record.
    personal : ndarray of float64, shape (n, k), optional
        Personal weights ``w_{j,r}``.
    record_weight : ndarray of float64, shape (n,), optional
        ``w_r`` of the forms ``record`` and ``interaction``.
    history : ndarray of int8, shape (n, k), optional
        Levels at which earlier releases disclosed the values, the deepest of each; the depth where none did. Risk is
        then that of all releases together (:mod:`privrisk_spark.kernels.search.records`), utility that of this one.

    Returns
    -------
    Decisions
        The decision of a record does not depend on which others are given with it.

    Raises
    ------
    InputError
        If the method does not serve the objective, or prunes and some dictionary's ``ρ`` is not monotone, or looks at
        one record and Φ is no function of a sum over attributes.
    """
    decided, kind = decide_kinds(
        disclosure, search, attacker, codes, personal=personal, record_weight=record_weight, history=history
    )
    own = decided.take(kind)
    nodes = [disclosure.disclosed(i, codes[:, i], own.levels[:, i]) for i in range(codes.shape[1])]
    return replace(own, nodes=np.column_stack(nodes))


def decide_kinds(
    disclosure: Disclosure,
    search: Search,
    attacker: Attacker | Counts,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
    history: LevelArray | None = None,
) -> tuple[Decisions, LongArray]:
    """Decide one record of each kind of alike ones; arguments and errors are those of :func:`decide`.

    Returns
    -------
    decisions : Decisions
        One per kind; nodes are those of one of its records.
    kind : ndarray of int64, shape (n,)
        Kind of each record.
    """
    if not isinstance(attacker, Attacker):
        attacker = Attacker.knowing(attacker)
    if search.method != "exhaustive" and not attacker.monotone:
        raise InputError(
            f"decision.method: '{search.method}' needs risk that never rises when a value is generalized, and labels "
            "that are 'similar' do not give it; use 'exhaustive'."
        )
    if search.method in ("exact", "aruba") and not isinstance(search.objective, LeastRisk):
        raise InputError(f"decision.method: '{search.method}' does not solve this problem.")
    form = disclosure.sensitivity.form
    personal, record_weight = disclosure.sensitivity.own(personal, record_weight)
    if history is not None and isinstance(search.objective, GreatestAggregate):
        raise InputError("decision.problem: 'max-aggregate' takes no history.")
    first, kind = kinds_of(disclosure, attacker, codes, personal, record_weight, history)
    out = None if history is None else history[first]
    if search.method in get_args(RecordMethod):
        if form == "interaction" and disclosure.model != "II":
            raise InputError(
                f"decision.method: '{search.method}' needs a sensitivity that is a sum over attributes; with the form "
                "'interaction' use 'exact' or 'exhaustive'."
            )
        # These searches bring packages that no other needs.
        from privrisk_spark.kernels.search.record_search import decide_records

        of_kind = {"personal": pick(personal, first), "record_weight": pick(record_weight, first)}
        return decide_records(disclosure, search, attacker, codes[first], history=out, **of_kind), kind
    return _decide_each(
        disclosure, search, attacker, codes[first], pick(personal, first), pick(record_weight, first), out
    ), kind


def _decide_each(
    disclosure: Disclosure,
    search: Search,
    attacker: Attacker,
    codes: IntArray,
    personal: FloatArray | None,
    record_weight: FloatArray | None,
    history: LevelArray | None,
) -> Decisions:
    """Decide every record given, however alike."""
    n, k = codes.shape
    levels = np.zeros((n, k), dtype=np.int8)
    risk, risk_before, utility = np.zeros(n), np.zeros(n), np.zeros(n)
    consistent, consistent_before = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    feasible = np.ones(n, dtype=np.bool_)
    alone, out = np.zeros(n), np.zeros(n)
    least_utility = disclosure.least_utility
    for block in lattice_blocks(disclosure, codes, history):
        rows = block.rows
        records = Records(disclosure, attacker, block, codes[rows], pick(personal, rows), pick(record_weight, rows))
        best = BlockSearch(records, search).best()
        nothing = np.flatnonzero(best.node < 0)
        if len(nothing):
            feasible[rows[nothing]] = False
            best.replace(nothing, BlockSearch(records.only(nothing), search).at_top())
        levels[rows] = block.lattice.levels(best.node)
        risk_before[rows], consistent_before[rows] = records.risk(slice(None), 0)
        risk[rows], utility[rows], consistent[rows] = best.risk, best.utility, best.consistent
        if history is not None:
            out[rows] = records.risk(slice(None), block.lattice.n_nodes - 1)[0]
            # No finer level vector than what is out adds to it; those suppressed whole leave it as it is.
            alone[rows] = best.risk
            levels[rows[nothing]] = block.depths
            alone[rows[nothing]] = records.risk_at(nothing, block.depths)[0]
            utility[rows[nothing]] = least_utility
    nodes = np.column_stack([disclosure.disclosed(i, codes[:, i], levels[:, i]) for i in range(k)])
    after = None
    if history is not None:
        after = AfterHistory(alone, out, ~feasible & search.objective.admits(alone, utility))
    return Decisions(levels, nodes, risk, risk_before, utility, consistent, consistent_before, feasible, history=after)


class BlockSearch:
    """The search for the best node of every record of one lattice block.

    Parameters
    ----------
    search : Search
        By a method of whole tables.
    """

    def __init__(self, records: Records, search: Search) -> None:
        self.records, self.search, self.block = records, search, records.block

    def best(self) -> Incumbents:
        """Best node of every record by the method, with ties settled over all feasible nodes."""
        if self.search.method == "exhaustive":
            return self._best_of(self._feasible())
        objective = self.search.objective
        assert isinstance(objective, LeastRisk), "the other methods find the least risk"
        best = self._best_of(self._candidates(objective))
        again = np.flatnonzero(self._unsettled(best))
        if len(again):
            some = BlockSearch(self.records.only(again), self.search)
            best.replace(again, some._best_of(some._feasible()))
        return best

    def at_top(self) -> Incumbents:
        """The top for every record."""
        best = Incumbents.none(len(self.records.codes))
        top = self.block.lattice.n_nodes - 1
        profiles = np.unique(self.block.profile)
        self._offer(best, top, profiles, suppressing=True)
        return best

    def _profiles(self) -> Iterator[tuple[int, list[FloatArray]]]:
        """Profiles that records have, with the utility of each level."""
        for profile in np.unique(self.block.profile).tolist():
            yield profile, [np.ascontiguousarray(chain[:, profile]) for chain in self.block.chains]

    def _feasible(self) -> Iterator[tuple[int, LongArray]]:
        for profile, chains in self._profiles():
            yield profile, self._reaching(chains)

    def _reaching(self, chains: Sequence[FloatArray]) -> LongArray:
        """Nodes that reach the floor; all, where the objective sets none."""
        lattice, floor = self.block.lattice, self.search.floor
        return np.arange(lattice.n_nodes) if floor is None else np.flatnonzero(feasible_nodes(lattice, chains, floor))

    def _candidates(self, objective: LeastRisk) -> Iterator[tuple[int, LongArray]]:
        lattice, floor = self.block.lattice, objective.floor
        for profile, chains in self._profiles():
            if self.search.method == "aruba":
                yield profile, walk_frontier(lattice, chains, floor, self.search.neighbourhood)
            else:
                yield profile, maximal_nodes(lattice, feasible_nodes(lattice, chains, floor))

    def _best_of(self, candidates: Iterable[tuple[int, LongArray]]) -> Incumbents:
        """Best of each profile's candidate nodes, offered in ascending order to all records that have them."""
        kind = AggregateIncumbents if isinstance(self.search.objective, GreatestAggregate) else Incumbents
        best = kind.none(len(self.records.codes))
        profiles: list[LongArray] = []
        nodes: list[LongArray] = []
        held = 0
        for profile, of_profile in candidates:
            profiles.append(np.full(len(of_profile), profile))
            nodes.append(of_profile)
            held += len(of_profile)
            if held > _CANDIDATES_AT_ONCE:
                self._offer_each(best, profiles, nodes)
                profiles, nodes, held = [], [], 0
        if held:
            self._offer_each(best, profiles, nodes)
        return best

    def _offer_each(self, best: Incumbents, profiles: Sequence[LongArray], nodes: Sequence[LongArray]) -> None:
        profile = np.concatenate(profiles)
        for node, having in rows_by_value(np.concatenate(nodes)):
            self._offer(best, node, profile[having])

    def _offer(self, best: Incumbents, node: int, profiles: LongArray, *, suppressing: bool = False) -> None:
        """Offer a node to all records of some profiles, ascending; to be taken whatever it is where suppressing."""
        rows, size = self.block.members(profiles)
        risk, consistent = self.records.risk(rows, node)
        utility = np.repeat(self.block.utility(self.records.levels(node), profiles), size)
        objective = self.search.objective
        if suppressing or isinstance(objective, LeastRisk):
            best.offer(rows, node, risk, utility, consistent)
        elif isinstance(objective, GreatestAggregate):
            assert isinstance(best, AggregateIncumbents)
            numbers = np.arange(len(self.records.codes)) if isinstance(rows, slice) else rows
            weighed = self.records.weighed_risk(objective, numbers, node, risk) if node else risk
            value = objective.value(weighed, utility)
            if node:
                value[~objective.admits(weighed, utility)] = -np.inf
            best.offer_value(objective, rows, node, value, risk, utility, consistent)
        else:
            best.offer_for(objective, rows, node, risk, utility, consistent)

    def _unsettled(self, best: Incumbents) -> BoolArray:
        """Records with a rival of equal risk, or a flat edge below the best node."""
        again = best.rivals > 0
        strides = self.block.lattice.strides
        levels = self.block.lattice.levels(np.maximum(best.node, 0))
        for i in range(len(strides)):
            check = (best.node >= 0) & ~again & (levels[:, i] > 0)
            for node, rows in rows_by_value(np.where(check, best.node - strides[i], -1)):
                risk = self.records.risk(rows, node)[0]
                again[rows] = risk <= best.risk[rows] * (1 + TOLERANCE)
        return again
