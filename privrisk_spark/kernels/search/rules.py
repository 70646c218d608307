"""Rules that disclose a fixed number of cells, by suppression alone, and the choice among listed rules.

LSFB06 §3 considers rules that disclose k cells in all (Δ1), k of every record (Δ2) or k of every attribute (Δ3). Under
a dictionary of product form, ``ρ(y) = N Π_j ρ_j(y_j) / N``, and the multiplicative sensitivity ``Φ = exp Σ w``, the
loss of a record is a constant times the product over its disclosed cells of the *exposure*

``γ_ij = exp(w_ij) · N / ρ_j(x_ij)  >= 1``  (LSFB06 Algorithm 1, step 3, with α_j(⊥)/α_j(x) = N/ρ_j).

So disclosing the cells of least exposure is optimal for Δ2, record by record (LSFB06 Theorem 2). The same order over
the whole table, or within each attribute, minimizes the *product* of the records' losses, that is their mean logarithm,
over Δ1 and Δ3. For the mean of the losses it is a heuristic there. A dictionary is hardly ever of product form: what a
choice of Δ2 leaves open against the dictionary itself, :func:`exposure_gap` bounds record by record.

A value that is ⊥ from the start is no cell to disclose (LSFB06 §2 makes no difference between missing and suppressed).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts, consistent_at
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import risk_of
from privrisk_spark.kernels.disclosure.risk import Attacker, identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import scaled
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, reaches

Scope = Literal["table", "record", "attribute"]
"""Δ1, Δ2, Δ3 of LSFB06."""

MOST_ALTERNATIVES = 256
"""Choices of k cells of a record that are all looked at to say what its own choice leaves open."""

# ------------------------------------------------------------------------------------------------------------ exposure


def log_exposure(weights: FloatArray, consistent: LongArray, dictionary_rows: int) -> FloatArray:
    """``ln γ`` of every cell.

    Parameters
    ----------
    weights : ndarray of float64, shape (n, k)
        ``w_ij``, non-negative.
    consistent : ndarray of int64, shape (n, k)
        ``ρ_j(x_ij)``, dictionary rows consistent with the cell alone. A cell with none counts as one row: the record's.
    dictionary_rows : int
        ``N``, positive.

    Returns
    -------
    ndarray of float64, shape (n, k)
    """
    rarity: FloatArray = np.log(max(dictionary_rows, 1)) - np.log(np.maximum(consistent, 1))
    return weights + rarity


def marginal_counts(counts: Counts, code_depth: Sequence[IntArray]) -> tuple[LongArray, ...]:
    """``ρ_j`` of every leaf code of every attribute disclosed alone.

    Parameters
    ----------
    code_depth : sequence of k ndarrays of int32, shape (n_leaves_i + 1,)

    Returns
    -------
    tuple of k ndarrays of int64, shape (n_leaves_i + 1,)
        The last is that of ⊥, ``N``.
    """
    nothing = [len(depth) - 1 for depth in code_depth]
    result = []
    for i, depth in enumerate(code_depth):
        codes = np.tile(np.array(nothing, dtype=np.int32), (len(depth), 1))
        codes[:, i] = np.arange(len(depth), dtype=np.int32)
        result.append(consistent_at(counts, code_depth, codes, [0] * len(code_depth)))
    return tuple(result)


@dataclass(frozen=True, eq=False)
class Exposure:
    """``ln γ`` of the cells of records, from what each value is alone.

    Attributes
    ----------
    consistent : tuple of k ndarrays of int64, shape (n_leaves_i + 1,)
        ``ρ_j`` of each leaf code, as :func:`marginal_counts` gives it.
    weights : tuple of k ndarrays of float64, shape (n_leaves_i + 1,)
        ``w_j`` of each leaf code; 0 where the risk does not depend on what is disclosed.
    code_depth : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
    """

    consistent: tuple[LongArray, ...]
    weights: tuple[FloatArray, ...]
    code_depth: tuple[IntArray, ...]
    dictionary_rows: int

    @classmethod
    def of(cls, disclosure: Disclosure, consistent: Sequence[LongArray], dictionary_rows: int) -> Exposure:
        """Exposure under the risk of a disclosure.

        Raises
        ------
        InputError
            If the loss is no product over cells: of the risk models I and II, under the sensitivity ``multiplicative``,
            ``constant``, or under model II any, it is.
        """
        form = "constant" if disclosure.model == "II" else disclosure.sensitivity.form
        if disclosure.model == "III" or form not in ("constant", "multiplicative"):
            raise InputError(
                "decision.method: 'minrisk' ranks cells by exp(w) N / ρ, which takes risk model I with the sensitivity "
                f"'multiplicative' or 'constant', or model II. Got model '{disclosure.model}' with '{form}'."
            )
        weights = tuple(
            np.zeros(len(ancestor)) if form == "constant" else of_node[ancestor[:, 0]]
            for ancestor, of_node in zip(disclosure.ancestor, disclosure.sensitivity.weights, strict=True)
        )
        return cls(tuple(consistent), weights, disclosure.code_depth, dictionary_rows)

    @cached_property
    def shared(self) -> tuple[FloatArray, ...]:
        """``ln γ`` of each leaf code where no weight is personal; NaN for ⊥."""
        pairs = zip(self.weights, self.consistent, self.code_depth, strict=True)
        return tuple(
            np.where(depth > 0, log_exposure(weight, rho, self.dictionary_rows), np.nan) for weight, rho, depth in pairs
        )

    @cached_property
    def rarity(self) -> tuple[FloatArray, ...]:
        """``ln N/ρ`` of each leaf code; NaN for ⊥."""
        return replace(self, weights=tuple(np.zeros(len(weight)) for weight in self.weights)).shared

    def cell_weights(self, codes: IntArray, personal: FloatArray | None) -> FloatArray:
        """``w_ij`` of every cell, shape (n, k)."""
        weights = np.column_stack([weight.take(codes[:, i]) for i, weight in enumerate(self.weights)])
        return weights if personal is None else scaled(weights, personal)

    def cells(self, codes: IntArray, personal: FloatArray | None = None) -> FloatArray:
        """``ln γ`` of every cell.

        Parameters
        ----------
        codes : ndarray of int32, shape (n, k)
        personal : ndarray of float64, shape (n, k), optional
            ``w'_{j,r}``, multiplies the weights.

        Returns
        -------
        ndarray of float64, shape (n, k)
            Not negative; NaN where the value is ⊥ from the start.
        """
        alone = self.shared if personal is None else self.rarity
        result: FloatArray = np.column_stack([of_code.take(codes[:, i]) for i, of_code in enumerate(alone)])
        return result if personal is None else result + self.cell_weights(codes, personal)


def least_exposed(exposure: FloatArray, disclosed: int, scope: Scope = "record") -> BoolArray:
    """Cells to disclose: those of least exposure (LSFB06 ``MinRisk`` for ``record``).

    Parameters
    ----------
    exposure : ndarray of float64, shape (n, k)
        γ or any increasing function of it; NaN where there is nothing to disclose.
    disclosed : int
        Cells to disclose in the table, per record, or per attribute; at least 0, and no more than there are.
    scope : {"table", "record", "attribute"}

    Returns
    -------
    ndarray of bool, shape (n, k)
        Equal exposures: the first attribute, then the first record, goes first. A record, or the table, with fewer
        cells to disclose than asked for discloses all it has.

    Raises
    ------
    InputError
        If more cells are asked for than a table of this shape has.
    """
    n, k = exposure.shape
    cells = {"table": n * k, "record": k, "attribute": n}[scope]
    if not 0 <= disclosed <= cells:
        raise InputError(f"disclosed: a {scope} has {cells} cells to disclose. Got {disclosed}.")
    result = np.zeros((n, k), dtype=np.bool_)
    match scope:
        case "record":
            chosen = np.argsort(exposure, axis=1, kind="stable")[:, :disclosed]
            np.put_along_axis(result, chosen, True, axis=1)
        case "attribute":
            chosen = np.argsort(exposure, axis=0, kind="stable")[:disclosed]
            np.put_along_axis(result, chosen, True, axis=0)
        case "table":
            by_attribute = np.argsort(exposure.T.ravel(), kind="stable")[:disclosed]
            result.T.flat[by_attribute] = True
    # NaN is sorted last.
    return result & ~np.isnan(exposure)


# ------------------------------------------------------------------------------------------------- records of one rule


def suppressing(disclosure: Disclosure, codes: IntArray, disclosed: BoolArray) -> LevelArray:
    """Levels that disclose some cells as they are and suppress the others.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    disclosed : ndarray of bool, shape (n, k)

    Returns
    -------
    ndarray of int8, shape (n, k)
    """
    return np.where(disclosed, 0, _depths(disclosure, codes)).astype(np.int8)


def generalizing(disclosure: Disclosure, codes: IntArray, rule: Sequence[int] | LevelArray) -> LevelArray:
    """Levels of a rule for all records, or of each record, cut at the depth of each value, int8 (n, k)."""
    return np.minimum(_depths(disclosure, codes), np.array(rule, dtype=np.int32)).astype(np.int8)


def _depths(disclosure: Disclosure, codes: IntArray) -> IntArray:
    return np.column_stack([depth.take(codes[:, i]) for i, depth in enumerate(disclosure.code_depth)])


def risks_at(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    levels: LevelArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> tuple[list[FloatArray], LongArray]:
    """Risk of records at given levels against each possible dictionary, and the smallest ``ρ_θ``.

    Absent records and cells that nothing is similar to count as
    :func:`privrisk_spark.kernels.search.table_search.decide` says.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    levels : ndarray of int8, shape (n, k)
        At most the depth of each value.
    personal : ndarray of float64, shape (n, k), optional
    record_weight : ndarray of float64, shape (n,), optional

    Returns
    -------
    risks : list of ndarrays of float64, shape (n,)
    consistent : ndarray of int64, shape (n,)
    """
    given = {"personal": personal, "record_weight": record_weight}
    phi = disclosure.sensitivity.phi(list(_nodes(disclosure, codes, levels).T), **given)
    risks, least = [], np.zeros(0, dtype=np.int64)
    for counts in attacker.possible:
        found = risk_of(disclosure, counts, codes, levels, **given)
        consistent = np.maximum(found.consistent, 1)
        rows = counts.dictionary_rows + found.absent.astype(np.int64)
        risks.append(identification_risk(disclosure.model, phi, consistent, dictionary_rows=rows))
        least = np.minimum(least, consistent) if len(risks) > 1 else consistent
    return risks, least


def _nodes(disclosure: Disclosure, codes: IntArray, levels: LevelArray) -> IntArray:
    return np.column_stack([disclosure.disclosed(i, codes[:, i], levels[:, i]) for i in range(codes.shape[1])])


def decide_at(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    levels: LevelArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Decisions:
    """Decisions whose levels a rule has chosen, with their true risk; arguments are those of :func:`risks_at`.

    Returns
    -------
    Decisions
        All feasible, with no gap.
    """
    given = {"personal": personal, "record_weight": record_weight}
    risks, consistent = risks_at(disclosure, attacker, codes, levels, **given)
    before, consistent_before = risks_at(disclosure, attacker, codes, np.zeros_like(levels), **given)
    return Decisions(
        levels=levels,
        nodes=_nodes(disclosure, codes, levels),
        risk=attacker.risk(risks),
        risk_before=attacker.risk(before),
        utility=utility_at(disclosure, codes, levels),
        consistent=consistent,
        consistent_before=consistent_before,
        feasible=np.ones(len(codes), dtype=np.bool_),
    )


def utility_at(disclosure: Disclosure, codes: IntArray, levels: LevelArray) -> FloatArray:
    """Utility of records at given levels, summed from the first attribute to the last, shape (n,)."""
    total = np.zeros(len(codes))
    for node, utility in zip(_nodes(disclosure, codes, levels).T, disclosure.utility, strict=True):
        total = total + utility[node]
    return total


# ---------------------------------------------------------------------------------------------------- Δ2 by its record


def alternatives(disclosure: Disclosure, codes: IntArray, disclosed: int) -> Iterator[tuple[LevelArray, BoolArray]]:
    """Every way to disclose so many cells of each record, if these are at most :data:`MOST_ALTERNATIVES`; else none.

    Yields
    ------
    levels : ndarray of int8, shape (n, k)
    possible : ndarray of bool, shape (n,)
        The record has a value in each of the cells.
    """
    k = codes.shape[1]
    if math.comb(k, disclosed) > MOST_ALTERNATIVES:
        return
    there = _depths(disclosure, codes) > 0
    for attributes in itertools.combinations(range(k), disclosed):
        shown = np.zeros(codes.shape, dtype=np.bool_)
        shown[:, attributes] = True
        possible: BoolArray = np.asarray(there[:, attributes].all(axis=1))
        yield suppressing(disclosure, codes, shown), possible


def min_risk(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    exposure: Exposure,
    disclosed: int,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Decisions:
    """Disclose the least exposed cells of every record (LSFB06 Algorithm 1, ``MinRisk``).

    Parameters
    ----------
    attacker : Attacker
        With one dictionary, of which the exposure is.
    codes : ndarray of int32, shape (n, k)
    disclosed : int
        Cells of each record; at most k.
    personal : ndarray of float64, shape (n, k), optional
    record_weight : ndarray of float64, shape (n,), optional

    Returns
    -------
    Decisions
        With the gap of :func:`exposure_gap`. A record with fewer values than asked for is suppressed.
    """
    given = {"personal": personal, "record_weight": record_weight}
    shown = least_exposed(exposure.cells(codes, personal), disclosed)
    feasible = (_depths(disclosure, codes) > 0).sum(axis=1) >= disclosed
    shown &= feasible[:, None]
    decided = decide_at(disclosure, attacker, codes, suppressing(disclosure, codes, shown), **given)
    gap = exposure_gap(disclosure, attacker, codes, exposure, disclosed, decided.risk, **given)
    return replace(decided, feasible=feasible, gap=np.where(feasible, gap, 0.0))


def exposure_gap(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    exposure: Exposure,
    disclosed: int,
    risk: FloatArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> FloatArray:
    """What a record could gain at most by other cells, against the dictionary as it is.

    Where the ways to choose so many cells are few, all are looked at, and the gap is exact. Else the risk of any choice
    ``S`` is bounded from below by single values: ``ρ(S) <= min_j ρ_j`` over ``S``, and ``Φ(S)`` holds the weights of
    the attribute ``j`` that attains it and of ``|S| - 1`` others.

    Parameters
    ----------
    disclosure, attacker, codes, exposure, disclosed, personal, record_weight
        As :func:`min_risk` takes them.
    risk : ndarray of float64, shape (n,)
        Of the choice made.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 where the choice is proved, up to rounding; nothing is claimed of records without cells enough.
    """
    given = {"personal": personal, "record_weight": record_weight}
    least = np.full(len(codes), np.inf)
    looked = False
    for levels, possible in alternatives(disclosure, codes, disclosed):
        found = attacker.risk(risks_at(disclosure, attacker, codes, levels, **given)[0])
        least = np.where(possible, np.minimum(least, found), least)
        looked = True
    if not looked:
        least = _least_by_values(disclosure, attacker, codes, exposure, disclosed, personal)
    with np.errstate(invalid="ignore"):
        return np.where(risk <= least * (1 + TOLERANCE), 0.0, risk - least)


def _least_by_values(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    exposure: Exposure,
    disclosed: int,
    personal: FloatArray | None,
) -> FloatArray:
    """A lower bound of the risk of any choice of cells, from the counts of single values."""
    (counts,) = attacker.possible
    absent = consistent_at(counts, disclosure.code_depth, codes, [0] * codes.shape[1]) == 0
    there = _depths(disclosure, codes) > 0
    alone = np.column_stack([of_code.take(codes[:, i]) for i, of_code in enumerate(exposure.consistent)])
    weights = np.where(there, exposure.cell_weights(codes, personal), np.inf)
    sums = np.cumsum(np.sort(weights, axis=1), axis=1)
    # The weights of j and of the least others: j is one of the least, or comes on top of one fewer.
    fewer = sums[:, [disclosed - 2]] if disclosed > 1 else 0.0
    least_with = np.maximum(sums[:, [disclosed - 1]], fewer + weights)
    phi = disclosure.sensitivity
    constant = phi.constant if disclosure.model != "II" and phi.form == "constant" else 1.0
    with np.errstate(over="ignore"):
        bound = constant * np.exp(least_with) / np.maximum(alone + absent[:, None], 1)
    result: FloatArray = np.where(there, bound, np.inf).min(axis=1)
    return result


# -------------------------------------------------------------------------------------------------------- listed rules


def choose_rule(risks: FloatArray, utilities: FloatArray, floor: float) -> int | None:
    """Listed rule of least risk among those of utility at least ``floor`` (F12 Algorithm 1).

    Parameters
    ----------
    risks, utilities : ndarray of float64, shape (n,)
        ``R(δ_j, θ)`` and ``U(δ_j)`` of each rule.

    Returns
    -------
    int or None
        Ties within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE`: higher utility, then the first of the list
        (F12 prints ``<=``, which takes the last). None if no rule reaches the floor.
    """
    feasible = np.flatnonzero(reaches(utilities, floor))
    if not len(feasible):
        return None
    tied = feasible[risks[feasible] <= risks[feasible].min() * (1 + TOLERANCE)]
    most = float(utilities[tied].max())
    return int(tied[utilities[tied] >= most - TOLERANCE * max(1.0, abs(most))][0])
