"""Deciding each record's disclosure: minimise the risk over its lattice subject to ``u(x) >= c`` (F12 eq 4.2).

Three searches share one evaluation:

* ``exact``: risk at the maximal feasible nodes, which hold an optimum because risk is non-increasing in every level;
* ``aruba``: risk at the frontier nodes, visited by moves from one of them (F12 Algorithm 3);
* ``exhaustive``: risk at all feasible nodes; asks nothing of the risk, and serves every goal.

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
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.objective import AnyGoal, GreatestAggregate, LeastRisk, least_positive_risk
from privrisk_spark.kernels.disclosure.risk import Attacker, RiskModel, identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.lattice.lattice import (
    TOLERANCE,
    Neighbourhood,
    feasible_nodes,
    maximal_nodes,
    walk_frontier,
)
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.distinct import distinct_keys, distinct_rows
from privrisk_spark.kernels.numeric.packing import rows_by_value
from privrisk_spark.kernels.search.incumbents import AggregateIncumbents, Incumbents
from privrisk_spark.kernels.search.lattice_blocks import Block, blocks

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

TableSearch = Literal["exact", "aruba", "exhaustive"]
"""Searches of whole tables: lattice nodes outside, records inside."""

SingleSearch = Literal["branch_and_bound", "btda", "genetic", "approximate", "aggregate"]
"""Searches of one record's lattice: :mod:`privrisk_spark.kernels.search.record_search`."""

Search = TableSearch | SingleSearch

_KEY_LIMIT = 2**62

_CANDIDATES_AT_ONCE = 2**24
"""Pairs of a combination of utilities and a node held at once. Does not change a result."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """One decision per record.

    Attributes
    ----------
    levels : ndarray of int8, shape (n, k)
        Chosen level of each attribute; at most the depth of the record's value.
    nodes : ndarray of int32, shape (n, k)
        The disclosed nodes.
    risk, risk_before : ndarray of float64, shape (n,)
        Risk at the chosen node and of the original record.
    utility : ndarray of float64, shape (n,)
    consistent : ndarray of int64, shape (n,)
        ``ρ`` of the chosen cell; a record the dictionary lacks counts itself. Of several dictionaries the worst, the
        smallest ``ρ_θ``; a dictionary of prior 0 does not count.
    feasible : ndarray of bool, shape (n,)
        False where nothing satisfies the constraint, as where even the original record has ``u < c``; such a record is
        suppressed.
    gap : ndarray of float64, shape (n,), or None
        What a better decision could gain at most, in units of the goal's objective; 0 where the decision is proved.
        None: all are.
    """

    levels: npt.NDArray[np.int8]
    nodes: IntArray
    risk: FloatArray
    risk_before: FloatArray
    utility: FloatArray
    consistent: LongArray
    feasible: BoolArray
    gap: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a decision depends on besides the record.

    Attributes
    ----------
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
        Node of each code at each level, padded with the root (the largest node); the last code is ⊥.
    code_depth : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
        Depth of each code: the levels its value can take.
    utility : tuple of k ndarrays of float64, shape (n_nodes_i,)
        Utility of each node, non-increasing upwards.
    sensitivity : Sensitivity
    model : {"I", "II", "III"}
    goal : LeastRisk, GreatestUtility, LeastPenalized or GreatestAggregate
        What is optimized, and under which constraint.
    search : {"exact", "aruba", "exhaustive"} or a search of single records
        ``exact`` and ``aruba`` find the least risk; ``exhaustive`` serves every goal.
    neighbourhood : {"swap", "cube"}
        Moves of ``aruba``.
    most_steps : int
        Boxes, nodes or cuts after which a search of one record ends with its best so far.
    """

    ancestor: tuple[IntArray, ...]
    code_depth: tuple[IntArray, ...]
    utility: tuple[FloatArray, ...]
    sensitivity: Sensitivity
    model: RiskModel
    goal: AnyGoal
    search: Search = "exact"
    neighbourhood: Neighbourhood = "swap"
    most_steps: int = 1_000_000

    @property
    def floor(self) -> float:
        """Utility below which no node is looked at."""
        return self.goal.floor if isinstance(self.goal, LeastRisk) else -np.inf

    @cached_property
    def profiles(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes with the same depth and utilities share a number."""
        return tuple(self._kinds(i, [utility]) for i, utility in enumerate(self.utility))

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes with the same depth, utilities and weights share a number."""
        pairs = zip(self.utility, self.sensitivity.weights, strict=True)
        return tuple(self._kinds(i, pair) for i, pair in enumerate(pairs))

    def _kinds(self, i: int, numbers: Sequence[FloatArray]) -> IntArray:
        """Codes of attribute ``i`` with the same depth, and the same numbers of the node at every level."""
        of_node = distinct_rows(numbers)[1]
        chain = [of_node[nodes] for nodes in self.ancestor_by_level[i]]
        return distinct_rows([self.code_depth[i], *chain])[1].astype(np.int32)

    @cached_property
    def ancestor_by_level(self) -> tuple[IntArray, ...]:
        """int32 (height_i + 1, n_leaves_i + 1) per attribute: :attr:`ancestor`, contiguous per level."""
        return tuple(np.ascontiguousarray(ancestor.T) for ancestor in self.ancestor)

    def chains(self, codes: Sequence[int]) -> list[FloatArray]:
        """Utility of each level of one record, per attribute; the last level is ⊥."""
        return [
            utility[ancestor[code, : depth[code] + 1]]
            for code, ancestor, depth, utility in zip(codes, self.ancestor, self.code_depth, self.utility, strict=True)
        ]

    def disclosed(self, i: int, codes: IntArray, levels: npt.NDArray[np.int8]) -> IntArray:
        """Node of attribute ``i`` of each code at its level."""
        ancestor = self.ancestor[i]
        return ancestor.ravel().take(codes * np.int64(ancestor.shape[1]) + levels)

    def greatest_utility(self, codes: IntArray) -> FloatArray:
        """Utility of the original records.

        Parameters
        ----------
        codes : ndarray of int32, shape (n, k)

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        total = np.zeros(len(codes))
        for i, (ancestor, utility) in enumerate(zip(self.ancestor, self.utility, strict=True)):
            total = total + utility[ancestor[codes[:, i], 0]]
        return total


def decide(
    problem: Problem,
    attacker: Attacker | Counts,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Decisions:
    """Choose the disclosure of every record.

    Parameters
    ----------
    problem : Problem
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

    Returns
    -------
    Decisions
        The decision of a record does not depend on which others are given with it.

    Raises
    ------
    InputError
        If the search does not serve the goal, or prunes and some dictionary's ``ρ`` is not monotone, or looks at one
        record and Φ is no function of a sum over attributes.
    """
    decided, kind = decide_kinds(problem, attacker, codes, personal=personal, record_weight=record_weight)
    levels = decided.levels[kind]
    return Decisions(
        levels=levels,
        nodes=np.column_stack([problem.disclosed(i, codes[:, i], levels[:, i]) for i in range(codes.shape[1])]),
        risk=decided.risk[kind],
        risk_before=decided.risk_before[kind],
        utility=decided.utility[kind],
        consistent=decided.consistent[kind],
        feasible=decided.feasible[kind],
        gap=_pick(decided.gap, kind),
    )


def decide_kinds(
    problem: Problem,
    attacker: Attacker | Counts,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
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
    if problem.search != "exhaustive" and not attacker.monotone:
        raise InputError(
            f"decision.method: '{problem.search}' needs risk that never rises when a value is generalized, and labels "
            "that are 'similar' do not give it; use 'exhaustive'."
        )
    if problem.search in ("exact", "aruba") and not isinstance(problem.goal, LeastRisk):
        raise InputError(f"decision.method: '{problem.search}' does not solve this problem.")
    form = problem.sensitivity.form
    personal, record_weight = problem.sensitivity.own(personal, record_weight)
    first, kind = kinds_of(problem, attacker, codes, personal, record_weight)
    if problem.search in get_args(SingleSearch):
        if form == "interaction" and problem.model != "II":
            raise InputError(
                f"decision.method: '{problem.search}' needs a sensitivity that is a sum over attributes; with the form "
                "'interaction' use 'exact' or 'exhaustive'."
            )
        # These searches bring packages that no other needs.
        from privrisk_spark.kernels.search.record_search import decide_singly

        of_kind = {"personal": _pick(personal, first), "record_weight": _pick(record_weight, first)}
        return decide_singly(problem, attacker, codes[first], **of_kind), kind
    return _decide_each(problem, attacker, codes[first], _pick(personal, first), _pick(record_weight, first)), kind


def _pick(values: FloatArray | None, rows: LongArray) -> FloatArray | None:
    return None if values is None else values[rows]


def kinds_of(
    problem: Problem,
    attacker: Attacker,
    codes: IntArray,
    personal: FloatArray | None,
    record_weight: FloatArray | None,
) -> tuple[LongArray, LongArray]:
    """One row of each kind of records that cannot be decided differently, and the kind of every row."""
    key, bound = np.zeros(len(codes), dtype=np.int64), 1
    for i in range(codes.shape[1]):
        tables = [problem.alike[i], *(counts.alike[i] for counts in attacker.possible)]
        kind_of_code = distinct_rows(tables)[1]
        kinds = int(kind_of_code.max()) + 1
        if bound > _KEY_LIMIT // kinds:
            first, key = distinct_keys(key, bound)
            bound = len(first)
        key = key * kinds + kind_of_code.take(codes[:, i])
        bound *= kinds
    weights = [] if personal is None else [np.ascontiguousarray(column) for column in personal.T]
    if record_weight is not None:
        weights.append(record_weight)
    if not weights:
        return distinct_keys(key, bound)
    # Sorting a hash once is much faster than every column; where two kinds share a hash, the columns are sorted.
    columns = [key, *(weight.view(np.int64) for weight in weights)]
    hashed = fingerprint.of_rows([column.view(np.uint64) for column in columns], len(key))
    first, member = distinct_keys((hashed >> np.uint64(1)).view(np.int64), 2**63)
    if all((column[first].take(member) == column).all() for column in columns):
        return first, member
    return distinct_rows(columns)


def _decide_each(
    problem: Problem,
    attacker: Attacker,
    codes: IntArray,
    personal: FloatArray | None,
    record_weight: FloatArray | None,
) -> Decisions:
    """Decide every record given, however alike."""
    n, k = codes.shape
    levels = np.zeros((n, k), dtype=np.int8)
    risk, risk_before, utility = np.zeros(n), np.zeros(n), np.zeros(n)
    consistent = np.zeros(n, dtype=np.int64)
    feasible = np.ones(n, dtype=np.bool_)
    for block in blocks(problem, codes):
        rows = block.rows
        records = Records(problem, attacker, block, codes[rows], _pick(personal, rows), _pick(record_weight, rows))
        best = records.search()
        nothing = np.flatnonzero(best.node < 0)
        if len(nothing):
            feasible[rows[nothing]] = False
            best.replace(nothing, records.only(nothing).at_top())
        levels[rows] = block.lattice.levels(best.node)
        risk_before[rows] = records.risk(slice(None), 0)[0]
        risk[rows], utility[rows], consistent[rows] = best.risk, best.utility, best.consistent
    nodes = np.column_stack([problem.disclosed(i, codes[:, i], levels[:, i]) for i in range(k)])
    return Decisions(levels, nodes, risk, risk_before, utility, consistent, feasible)


class Records:
    """Risk of one block of records at lattice nodes, and the search for the best.

    Parameters
    ----------
    problem : Problem
    attacker : Attacker
    block : Block
    codes : ndarray of int32, shape (n, k)
        Of the records of the block, in its order; weights likewise.
    personal : ndarray of float64, shape (n, k), or None
    record_weight : ndarray of float64, shape (n,), or None
    """

    def __init__(
        self,
        problem: Problem,
        attacker: Attacker,
        block: Block,
        codes: IntArray,
        personal: FloatArray | None,
        record_weight: FloatArray | None,
    ) -> None:
        self.problem, self.attacker, self.block = problem, attacker, block
        self.codes = codes
        self.columns = [np.ascontiguousarray(codes[:, i]) for i in range(codes.shape[1])]
        self.personal, self.record_weight = personal, record_weight
        self.absent: list[LongArray | None] = [None] * len(attacker.possible)
        bottom = [0] * codes.shape[1]
        for d, counts in enumerate(attacker.possible):
            absent = counts.consistent(self.columns, bottom, block.lattice.heights) == 0
            self.absent[d] = absent.astype(np.int64) if absent.any() else None

    @cached_property
    def weighing(self) -> tuple[list[IntArray], LongArray] | None:
        """Columns of one record per combination of weights, and the combination of every record.

        None where a record has weights of its own, or nearly all combinations differ.
        """
        if self.personal is not None or self.record_weight is not None:
            return None
        alike = [kind.take(column) for kind, column in zip(self.problem.alike, self.columns, strict=True)]
        first, member = distinct_rows(alike)
        if 2 * len(first) > len(member):
            return None
        return [column[first] for column in self.columns], member

    def only(self, rows: LongArray) -> Records:
        """Some of the records, ascending."""
        return Records(
            self.problem,
            self.attacker,
            self.block.only(rows),
            self.codes[rows],
            _pick(self.personal, rows),
            _pick(self.record_weight, rows),
        )

    def levels(self, node: int) -> list[int]:
        """Level vector of a node."""
        levels: list[int] = self.block.lattice.levels(np.array([node]))[0].tolist()
        return levels

    def sensitivity(self, rows: LongArray | slice, columns: Sequence[IntArray], levels: Sequence[int]) -> FloatArray:
        """Φ of some records, whose columns are given."""
        member = None
        if self.weighing is not None:
            examples, kind = self.weighing
            if len(examples[0]) <= len(columns[0]):
                columns, member = examples, kind[rows]
        nodes = [
            by_level[level].take(column)
            for by_level, level, column in zip(self.problem.ancestor_by_level, levels, columns, strict=True)
        ]
        phi = self.problem.sensitivity.phi(
            nodes,
            personal=None if self.personal is None else self.personal[rows],
            record_weight=None if self.record_weight is None else self.record_weight[rows],
        )
        return phi if member is None else phi.take(member)

    def risk(self, rows: LongArray | slice, node: int) -> tuple[FloatArray, LongArray]:
        """Risk of some records at one lattice node, and the smallest ``ρ_θ``."""
        phi, found = self._evaluated(rows, node)
        model = self.problem.model
        risks = [identification_risk(model, phi, consistent, dictionary_rows=n) for consistent, n in found]
        least = found[0][0]
        for consistent, _ in found[1:]:
            least = np.minimum(least, consistent)
        return self.attacker.risk(risks), least

    def _evaluated(
        self, rows: LongArray | slice, node: int
    ) -> tuple[FloatArray, list[tuple[LongArray, int | LongArray]]]:
        """Φ of some records at one lattice node, and ``ρ_θ`` and ``N_θ`` of each possible dictionary."""
        levels, heights = self.levels(node), self.block.lattice.heights
        columns = self.columns if isinstance(rows, slice) else [column.take(rows) for column in self.columns]
        phi = self.sensitivity(rows, columns, levels)
        evaluated: list[tuple[LongArray, int | LongArray]] = []
        for counts, absent in zip(self.attacker.possible, self.absent, strict=True):
            found = counts.consistent(columns, levels, heights)
            n: int | LongArray = counts.dictionary_rows
            if absent is not None:
                found, n = found + absent[rows], n + absent[rows]
            if self.problem.search == "exhaustive":
                # Nothing need be similar to a node; under a monotone ρ this changes nothing.
                found = np.maximum(found, 1)
            evaluated.append((found, n))
        return phi, evaluated

    @cached_property
    def least_sensitivity(self) -> FloatArray:
        """Smallest positive Φ of each record over its lattice; infinity where there is none."""
        least = np.full(len(self.columns[0]), np.inf)
        for node in range(self.block.lattice.n_nodes):
            phi = self.sensitivity(slice(None), self.columns, self.levels(node))
            np.minimum(least, phi, out=least, where=phi > 0)
        return least

    def weighed_risk(self, goal: GreatestAggregate, rows: LongArray, node: int, risk: FloatArray) -> FloatArray:
        """The risk whose inverse an aggregate weighs, of some records, their risk given."""
        none = np.flatnonzero(risk == 0)
        if goal.zero_phi == "exclude" or not len(none):
            return risk
        phi, found = self._evaluated(rows[none], node)
        risks = [
            least_positive_risk(
                self.problem.model,
                phi,
                consistent,
                dictionary_rows=n,
                least_sensitivity=self.least_sensitivity[rows[none]],
            )
            for consistent, n in found
        ]
        weighed = risk.copy()
        weighed[none] = self.attacker.risk(risks)
        return weighed

    def search(self) -> Incumbents:
        """Best node of every record by the problem's search, with ties settled over all feasible nodes."""
        if self.problem.search == "exhaustive":
            return self._best_of(self._feasible())
        best = self._best_of(self._candidates())
        again = np.flatnonzero(self._unsettled(best))
        if len(again):
            some = self.only(again)
            best.replace(again, some._best_of(some._feasible()))
        return best

    def at_top(self) -> Incumbents:
        """The top for every record."""
        best = Incumbents.none(len(self.columns[0]))
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
            yield profile, np.flatnonzero(feasible_nodes(self.block.lattice, chains, self.problem.floor))

    def _candidates(self) -> Iterator[tuple[int, LongArray]]:
        lattice, floor = self.block.lattice, self.problem.floor
        for profile, chains in self._profiles():
            if self.problem.search == "aruba":
                yield profile, walk_frontier(lattice, chains, floor, self.problem.neighbourhood)
            else:
                yield profile, maximal_nodes(lattice, feasible_nodes(lattice, chains, floor))

    def _best_of(self, candidates: Iterable[tuple[int, LongArray]]) -> Incumbents:
        """Best of each profile's candidate nodes, offered in ascending order to all records that have them."""
        kind = AggregateIncumbents if isinstance(self.problem.goal, GreatestAggregate) else Incumbents
        best = kind.none(len(self.columns[0]))
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
        risk, consistent = self.risk(rows, node)
        utility = np.repeat(self.block.utility(self.levels(node), profiles), size)
        goal = self.problem.goal
        if suppressing or isinstance(goal, LeastRisk):
            best.offer(rows, node, risk, utility, consistent)
        elif isinstance(goal, GreatestAggregate):
            assert isinstance(best, AggregateIncumbents)
            numbers = np.arange(len(self.columns[0])) if isinstance(rows, slice) else rows
            weighed = self.weighed_risk(goal, numbers, node, risk) if node else risk
            value = goal.objective(weighed, utility)
            if node:
                value[~goal.admits(weighed, utility)] = -np.inf
            best.offer_value(goal, rows, node, value, risk, utility, consistent)
        else:
            best.offer_for(goal, rows, node, risk, utility, consistent)

    def _unsettled(self, best: Incumbents) -> BoolArray:
        """Records with a rival of equal risk, or a flat edge below the best node."""
        again = best.rivals > 0
        strides = self.block.lattice.strides
        levels = self.block.lattice.levels(np.maximum(best.node, 0))
        for i in range(len(strides)):
            check = (best.node >= 0) & ~again & (levels[:, i] > 0)
            for node, rows in rows_by_value(np.where(check, best.node - strides[i], -1)):
                risk = self.risk(rows, node)[0]
                again[rows] = risk <= best.risk[rows] * (1 + TOLERANCE)
        return again
