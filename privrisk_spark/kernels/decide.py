"""Deciding each record's disclosure: minimise the risk over its lattice subject to ``u(x) >= c`` (F12 eq 4.2).

Two searches share one evaluation:

* ``exact``: risk at the maximal feasible nodes, which hold an optimum because risk is non-increasing in every level;
* ``aruba``: risk at the frontier nodes, visited by moves from one of them (F12 Algorithm 3).

Status: *proved*. Both return the optimum of the problem as stated, for every risk model of
:mod:`privrisk_spark.kernels.risk` and every modular utility; the proof of connectivity is in
:func:`privrisk_spark.kernels.lattice.walk_frontier`.

Ties: lower risk, then higher utility, then the lexicographically smallest level vector, where numbers within
:data:`privrisk_spark.kernels.lattice.TOLERANCE` of each other count as equal. Risk may be flat along an edge (weight 0,
a node with a single child), so the best maximal node need not have the highest utility among the optimal ones. A record
whose best node has a flat edge below it, or a rival of equal risk, is decided again over all its feasible nodes.

Feasible nodes depend on a record only through the utility of its levels, so they are found once per *profile* of equal
utilities and the loop runs over lattice nodes outside, records inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.counting import Counts
from privrisk_spark.kernels.lattice import (
    TOLERANCE,
    Lattice,
    Neighbourhood,
    feasible_nodes,
    maximal_nodes,
    walk_frontier,
)
from privrisk_spark.kernels.risk import RiskModel, identification_risk
from privrisk_spark.kernels.sensitivity import Sensitivity

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Search = Literal["exact", "aruba"]


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
        ``ρ`` of the chosen cell; a record the dictionary lacks counts itself.
    feasible : ndarray of bool, shape (n,)
        False where even the original record has ``u < c``; such a record is suppressed.
    """

    levels: npt.NDArray[np.int8]
    nodes: IntArray
    risk: FloatArray
    risk_before: FloatArray
    utility: FloatArray
    consistent: LongArray
    feasible: BoolArray


@dataclass(frozen=True, eq=False)
class _Best:
    """The best node so far of each record."""

    node: LongArray
    risk: FloatArray
    utility: FloatArray
    rivals: IntArray

    @classmethod
    def none(cls, n: int) -> _Best:
        return cls(np.full(n, -1), np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n, dtype=np.int32))

    def offer(self, rows: LongArray | slice, node: int, risk: FloatArray, utility: FloatArray) -> None:
        """Take ``node`` for the rows where it is better; nodes must be offered in ascending order."""
        held_risk, held_utility = self.risk[rows], self.utility[rows]
        unset = self.node[rows] < 0
        lower = unset | (risk < held_risk * (1 - TOLERANCE))
        equal = ~lower & (risk <= held_risk * (1 + TOLERANCE))
        slack = TOLERANCE * np.maximum(1.0, np.abs(utility))
        better = lower | (equal & (utility > held_utility + slack))
        rivals = self.rivals[rows]
        self.rivals[rows] = np.where(lower, 0, rivals + equal)
        self.node[rows] = np.where(better, node, self.node[rows])
        self.risk[rows] = np.where(better, risk, held_risk)
        self.utility[rows] = np.where(better, utility, held_utility)


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
    floor : float
        ``c``, in units of the utility.
    search : {"exact", "aruba"}
    neighbourhood : {"swap", "cube"}
        Moves of ``aruba``.
    """

    ancestor: tuple[IntArray, ...]
    code_depth: tuple[IntArray, ...]
    utility: tuple[FloatArray, ...]
    sensitivity: Sensitivity
    model: RiskModel
    floor: float
    search: Search = "exact"
    neighbourhood: Neighbourhood = "swap"

    @cached_property
    def profiles(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes with the same depth and utilities share a number."""
        result = []
        for ancestor, depth, utility in zip(self.ancestor, self.code_depth, self.utility, strict=True):
            chain = np.column_stack([depth.astype(np.float64), utility[ancestor]])
            result.append(np.unique(chain, axis=0, return_inverse=True)[1].ravel().astype(np.int32))
        return tuple(result)

    def chains(self, codes: Sequence[int]) -> list[FloatArray]:
        """Utility of each level of one record, per attribute; the last level is ⊥."""
        return [
            utility[ancestor[code, : depth[code] + 1]]
            for code, ancestor, depth, utility in zip(codes, self.ancestor, self.code_depth, self.utility, strict=True)
        ]

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


@dataclass(frozen=True, eq=False)
class _Block:
    """Records whose values have the same depths, and so the same lattice."""

    rows: LongArray
    depths: tuple[int, ...]
    lattice: Lattice
    profiles: tuple[tuple[LongArray, list[FloatArray]], ...]


def decide(
    problem: Problem,
    counts: Counts,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Decisions:
    """Choose the disclosure of every record.

    Parameters
    ----------
    problem : Problem
    counts : Counts
        Of the attacker's dictionary. A record with no consistent row at level 0 is absent from it and is added:
        its ``ρ`` is one more at every level, which keeps risk monotone.
    codes : ndarray of int32, shape (n, k)
        Leaf codes; best given once per distinct record.
    personal : ndarray of float64, shape (n, k), optional
        Personal weights ``w_{j,r}``.
    record_weight : ndarray of float64, shape (n,), optional
        ``w_r`` of the record form.

    Returns
    -------
    Decisions
        The decision of a record does not depend on which others are given with it.
    """
    n, k = codes.shape
    levels = np.zeros((n, k), dtype=np.int8)
    nodes = np.zeros((n, k), dtype=np.int32)
    risk, risk_before, utility = np.zeros(n), np.zeros(n), np.zeros(n)
    consistent = np.zeros(n, dtype=np.int64)
    feasible = np.ones(n, dtype=np.bool_)
    for block in _blocks(problem, codes):
        rows = block.rows
        evaluate = _Evaluation(problem, counts, block, codes[rows], _pick(personal, rows), _pick(record_weight, rows))
        best = evaluate.search()
        feasible[rows] = best.node >= 0
        chosen = np.where(best.node >= 0, best.node, block.lattice.n_nodes - 1)
        levels[rows] = block.lattice.levels(chosen)
        risk_before[rows] = evaluate.at_bottom[0]
        risk[rows], utility[rows], consistent[rows], nodes[rows] = evaluate.of_nodes(chosen)
    return Decisions(levels, nodes, risk, risk_before, utility, consistent, feasible)


def _pick(values: FloatArray | None, rows: LongArray) -> FloatArray | None:
    return None if values is None else values[rows]


def _blocks(problem: Problem, codes: IntArray) -> Iterator[_Block]:
    n, k = codes.shape
    signature = np.zeros(n, dtype=np.int64)
    for i in range(k):
        signature = signature * (int(problem.profiles[i].max()) + 1) + problem.profiles[i][codes[:, i]]
        if signature.size and signature.max() > 2**40:
            signature = np.unique(signature, return_inverse=True)[1].ravel()
    order = np.argsort(signature, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(signature[order]) != 0])[:n])
    members = np.split(order, starts[1:]) if len(starts) else []
    by_depth: dict[tuple[int, ...], list[LongArray]] = {}
    for member in members:
        one = codes[member[0]]
        depths = tuple(int(problem.code_depth[i][one[i]]) for i in range(k))
        by_depth.setdefault(depths, []).append(member)
    for depths, parts in by_depth.items():
        rows = np.concatenate(parts)
        profiles = []
        begin = 0
        for part in parts:
            span = np.arange(begin, begin + len(part))
            profiles.append((span, problem.chains([int(c) for c in codes[part[0]]])))
            begin += len(part)
        yield _Block(rows, depths, Lattice(depths), tuple(profiles))


class _Evaluation:
    """Risk and utility of one block of records at lattice nodes."""

    def __init__(
        self,
        problem: Problem,
        counts: Counts,
        block: _Block,
        codes: IntArray,
        personal: FloatArray | None,
        record_weight: FloatArray | None,
    ) -> None:
        self.problem, self.counts, self.block = problem, counts, block
        self.codes = [np.ascontiguousarray(codes[:, i]) for i in range(codes.shape[1])]
        self.personal, self.record_weight = personal, record_weight
        self.absent = np.zeros(len(codes), dtype=np.int64)
        everyone = slice(None)
        at_level_0 = self.count(everyone, np.zeros(codes.shape[1], dtype=np.int64))
        self.absent = (at_level_0 == 0).astype(np.int64)
        self.at_bottom = self.at(everyone, 0)

    def count(self, rows: LongArray | slice, levels: LongArray) -> LongArray:
        columns = [code[rows] for code in self.codes]
        found = self.counts.consistent(columns, [int(level) for level in levels], self.block.depths)
        return found + self.absent[rows]

    def at(self, rows: LongArray | slice, node: int) -> tuple[FloatArray, FloatArray, LongArray, list[IntArray]]:
        """Risk, utility, ``ρ`` and disclosed nodes of some records at one lattice node."""
        levels = self.block.lattice.levels(np.array([node]))[0]
        nodes = [
            np.ascontiguousarray(ancestor[:, level])[code[rows]]
            for ancestor, level, code in zip(self.problem.ancestor, levels, self.codes, strict=True)
        ]
        utility = np.zeros(len(nodes[0]))
        for table, of_attribute in zip(self.problem.utility, nodes, strict=True):
            utility += table[of_attribute]
        consistent = self.count(rows, levels)
        phi = self.problem.sensitivity.phi(
            nodes,
            personal=None if self.personal is None else self.personal[rows],
            record_weight=None if self.record_weight is None else self.record_weight[rows],
        )
        n = self.counts.dictionary_rows + self.absent[rows]
        if self.problem.model == "III" and self.absent.any():
            risk = np.empty(len(phi))
            for rows_of_dictionary in np.unique(n):
                same = n == rows_of_dictionary
                risk[same] = identification_risk(
                    "III", phi[same], consistent[same], dictionary_rows=int(rows_of_dictionary)
                )
        else:
            risk = identification_risk(self.problem.model, phi, consistent, dictionary_rows=self.counts.dictionary_rows)
        return risk, utility, consistent, nodes

    def of_nodes(self, chosen: LongArray) -> tuple[FloatArray, FloatArray, LongArray, IntArray]:
        """Risk, utility, ``ρ`` and disclosed nodes of every record at its own lattice node."""
        n = len(chosen)
        risk, utility = np.zeros(n), np.zeros(n)
        consistent = np.zeros(n, dtype=np.int64)
        nodes = np.zeros((n, len(self.codes)), dtype=np.int32)
        for node, rows in _grouped(chosen):
            risk[rows], utility[rows], consistent[rows], disclosed = self.at(rows, node)
            nodes[rows] = np.column_stack(disclosed)
        return risk, utility, consistent, nodes

    def search(self) -> _Best:
        """Best node of every record by the problem's search, with ties settled over all feasible nodes."""
        best = _Best.none(len(self.absent))
        self._offer(best, self._candidates(self.block.profiles), None)
        again = self._unsettled(best)
        if again.any():
            settled = _Best.none(len(again))
            everything = ((span, self._feasible(chains)) for span, chains in self.block.profiles)
            self._offer(settled, everything, again)
            for name in ("node", "risk", "utility"):
                getattr(best, name)[again] = getattr(settled, name)[again]
        return best

    def _feasible(self, chains: list[FloatArray]) -> LongArray:
        return np.flatnonzero(feasible_nodes(self.block.lattice, chains, self.problem.floor))

    def _candidates(
        self, profiles: Sequence[tuple[LongArray, list[FloatArray]]]
    ) -> Iterator[tuple[LongArray, LongArray]]:
        lattice, floor = self.block.lattice, self.problem.floor
        for span, chains in profiles:
            if self.problem.search == "aruba":
                yield span, walk_frontier(lattice, chains, floor, self.problem.neighbourhood)
            else:
                yield span, maximal_nodes(lattice, feasible_nodes(lattice, chains, floor))

    def _offer(self, best: _Best, candidates: Iterator[tuple[LongArray, LongArray]], only: BoolArray | None) -> None:
        """Evaluate candidate nodes in ascending order, each for all records that have it as a candidate."""
        spans: dict[int, list[LongArray]] = {}
        everyone = len(self.absent)
        for span, nodes in candidates:
            rows = span if only is None else span[only[span]]
            if len(rows):
                for node in nodes.tolist():
                    spans.setdefault(node, []).append(rows)
        for node in sorted(spans):
            parts = spans[node]
            # Spans of a node are disjoint, so as many rows as there are is all of them: no gather then.
            everybody = sum(len(part) for part in parts) == everyone
            rows_here: LongArray | slice = slice(None) if everybody else np.concatenate(parts)
            risk, utility, _, _ = self.at(rows_here, node)
            best.offer(rows_here, node, risk, utility)

    def _unsettled(self, best: _Best) -> BoolArray:
        """Records with a rival of equal risk, or a flat edge below the best node."""
        again = best.rivals > 0
        strides = self.block.lattice.strides
        levels = self.block.lattice.levels(np.maximum(best.node, 0))
        for i in range(len(strides)):
            check = (best.node >= 0) & ~again & (levels[:, i] > 0)
            for node, rows in _grouped(np.where(check, best.node - strides[i], -1)):
                risk = self.at(rows, node)[0]
                again[rows] |= risk <= best.risk[rows] * (1 + TOLERANCE)
        return again


def _grouped(values: LongArray) -> Iterator[tuple[int, LongArray]]:
    """Rows of each distinct non-negative value, ascending."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(ordered) != 0])[: len(ordered)])
    for start, rows in zip(starts, np.split(order, starts[1:]) if len(starts) else [], strict=True):
        if ordered[start] >= 0:
            yield int(ordered[start]), rows
