"""Modified-Aggregate (F12 §7.5): what a user shows another, ``max f(x) = λ ξ(x)/Φ(x) + u(x)^κ``.

Levels ``x`` count as everywhere in the kernels: 0 shows the value as it is, the height ``h_i`` shows nothing of it.
Rejecting an invitation is the level vector of all heights. ``ξ(x)`` is the number of common friends whose profile is
consistent with what is shown. Of a friend only the *agreement* matters: the least level of each attribute at which the
user's value covers the friend's.

* ``consistency="all"``: of all attributes, ``g_f <= x``. ξ is supermodular, and so is ``λξ + Φu^κ - αΦ``: the maximum
  is found exactly, by bounds where they suffice and by minimum cuts where not.
* ``consistency="any"``: of at least one attribute, as F12 §7.5.1 says in words. ξ is then submodular, not supermodular:
  Proposition 7.5.1 is false of it, as one friend with the agreement (1, 1) shows, and its proof is one of ``all``. The
  maximum is found by enumeration or by branch and bound, which proves it or leaves a gap. An attribute that is not
  shown is consistent with everyone, so one such attribute makes every friend count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels.level_boxes import bound, corner_boxes, loses, shrink
from privrisk_spark.extensions.network.kernels.level_search import search_pairs, started
from privrisk_spark.extensions.network.kernels.pair_lattice import Best, Pair, count, offer, pair_of, total
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LevelArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.closure import Box, CutExponent, best_in_box

Consistency = Literal["all", "any"]
ZeroPhi = Literal["exclude", "floor"]

ENUMERATED = 2**20
"""Largest lattice that is enumerated by default where boxes prove nothing, in nodes."""

BOXES = 1000
"""Boxes after which a search gives up by default where enumeration or nothing follows."""

BOXES_BEFORE_CUTS = 100
"""The same where cuts follow that cost about as much: under ``all`` and κ of 0 or 1."""

_AT_ONCE = 4096
"""Lattices up to this size are enumerated without trying boxes. Does not change a result."""

_ARCS = 1_000_000
"""Networks of more arcs are not built: a cut would take minutes."""

SMALLEST, LARGEST = 1e-60, 1e60
"""Between which weights, utilities and λ lie, unless they are 0: no figure of the search then leaves float64."""

_LARGEST_WORTH = 1e200

_PROVED = 1e-9
"""Largest relative resolution of the cuts under which an answer counts as proved."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of users of which the first decides what to show the second.

    Attributes
    ----------
    heights : ndarray of int8, shape (n, k)
        ``h_i`` of each pair's owner, at most ``H``; 0 where the owner has nothing to show, an attribute that counts
        nowhere.
    weights : ndarray of float64, shape (n, k, H + 1)
        ``w_i`` of each level: 0 or in [1e-60, 1e60], non-increasing up to ``h_i``; what is beyond is not read.
    utilities : ndarray of float64, shape (n, k, H + 1)
        ``d_i``, likewise.
    first : ndarray of int64, shape (n + 1,)
        Common friends of pair p are the rows ``first[p]:first[p + 1]`` of the agreements.
    agreements : ndarray of int8, shape (n_friends, k)
        ``g_f``, in ``[0, h_i]``; ``h_i`` where the friend has no value.
    """

    heights: LevelArray
    weights: FloatArray
    utilities: FloatArray
    first: LongArray
    agreements: LevelArray

    def __post_init__(self) -> None:
        n, k = self.heights.shape
        width = self.weights.shape[2] if self.weights.ndim == 3 else 0
        if self.weights.shape != (n, k, width) or self.utilities.shape != (n, k, width) or width < 1:
            raise InternalError("weights and utilities must have one row per pair and attribute, of one width")
        if len(self.first) != n + 1 or self.first[-1] != len(self.agreements) or self.agreements.shape[1:] != (k,):
            raise InternalError("agreements must have the rows that the pairs' first ones say, and k columns")
        if n and k and (int(self.heights.min()) < 0 or int(self.heights.max()) >= width):
            raise InternalError("heights must lie in [0, H]")
        owner = np.repeat(np.arange(n), np.diff(self.first))
        if len(owner) and k and ((self.agreements < 0) | (self.agreements > self.heights[owner])).any():
            raise InternalError("agreements must lie in the lattice")
        inside = np.arange(width) <= self.heights[:, :, None]
        for name, values in (("weights", self.weights), ("utilities", self.utilities)):
            rising = (values[:, :, 1:] > values[:, :, :-1]) & inside[:, :, 1:]
            usual = (values == 0) | ((values >= SMALLEST) & (values <= LARGEST))
            if not usual[inside].all() or rising.any():
                raise InternalError(f"{name} must be 0 or in [{SMALLEST:g}, {LARGEST:g}], and non-increasing")

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.heights)


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown in each pair, and what is proved about it.

    Attributes
    ----------
    levels : ndarray of int8, shape (n, k)
    objective : ndarray of float64, shape (n,)
        ``f``.
    bound : ndarray of float64, shape (n,)
        No candidate has a larger ``f``, but for rounding; equal to ``objective`` where that is proved.
    proved : ndarray of bool, shape (n,)
    sensitivity, utility : ndarray of float64, shape (n,)
        ``Φ(x)`` and ``u(x)``.
    consistent : ndarray of int64, shape (n,)
        ``ξ(x)``.
    visited : ndarray of int64, shape (n,)
        Nodes enumerated, or boxes and minimum cuts of the search.
    """

    levels: LevelArray
    objective: FloatArray
    bound: FloatArray
    proved: BoolArray
    sensitivity: FloatArray
    utility: FloatArray
    consistent: LongArray
    visited: LongArray

    @property
    def gap(self) -> FloatArray:
        """float64 (n,): by how much a better level vector may be better; 0 where proved."""
        return np.where(self.proved, 0.0, np.maximum(self.bound - self.objective, 0.0))

    def beside(self, exact: Shown) -> Shown:
        """The same, bounded by what another search proved of the same pairs."""
        proved = self.objective >= exact.bound * (1 - TOLERANCE)
        return replace(self, bound=exact.bound, proved=proved)


def modified_aggregate(
    pairs: Pairs,
    *,
    trade_off: float,
    kappa: float = 1.0,
    consistency: Consistency = "all",
    zero_phi: ZeroPhi = "exclude",
    most_nodes: int = ENUMERATED,
    most_boxes: int | None = None,
    most_cuts: int | None = None,
) -> Shown:
    """Maximize ``f(x) = λ ξ(x)/Φ(x) + u(x)^κ`` for every pair.

    Parameters
    ----------
    trade_off : float
        ``λ``: 0 or in [1e-60, 1e60].
    kappa : float
        ``κ``: 0, or at least 1; ``0^0`` is 1. Minimum cuts are for 0, 1 and 2; for others ``all`` may leave a gap.
    consistency : {"all", "any"}
    zero_phi : {"exclude", "floor"}
        What a level vector of ``Φ = 0`` is, rejecting most of all. ``exclude``: no candidate, as in F12, whose layers
        begin at the smallest positive Φ; if all are such, everything is shown. ``floor``: one of ``Φ = φ``, with ``φ``
        that smallest one.
    most_nodes : int
        Largest lattice to be enumerated; 0 for none. An answer that is proved does not depend on it.
    most_boxes : int, optional
        Boxes into which a larger lattice is divided before the search goes on by enumeration, by cuts, or ends; by
        default :data:`BOXES` or :data:`BOXES_BEFORE_CUTS`.
    most_cuts : int, optional
        Minimum cuts for each pair, under ``all`` and a κ of 0, 1 or 2; by default as many as are needed.

    Returns
    -------
    Shown
        Of level vectors with equal ``f`` the one with the highest utility, of those the lexicographically smallest;
        numbers within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE` of each other count as equal. Where a
        search ends early, there may be another one that is as good and comes first.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    if trade_off != 0 and not SMALLEST <= trade_off <= LARGEST:
        raise InputError(f"sharing.lambda: must be 0 or in [{SMALLEST:g}, {LARGEST:g}], not {trade_off:g}.")
    if not (kappa == 0 or 1 <= kappa < np.inf):
        raise InputError(f"sharing.kappa: must be 0 or finite and at least 1, not {kappa:g}.")
    most = float(np.where(pairs.heights > 0, pairs.utilities[:, :, 0], 0.0).sum(axis=1).max(initial=0.0))
    if most > 1 and kappa * math.log(most) > math.log(_LARGEST_WORTH):
        raise InputError(f"sharing.kappa: {kappa:g} makes utilities of up to {most:g} too large; choose a smaller one.")
    cuts_follow = consistency == "all" and kappa in (0, 1, 2) and most_cuts != 0
    if most_boxes is None:
        most_boxes = BOXES_BEFORE_CUTS if cuts_follow and kappa < 2 else BOXES
    question = (float(trade_off), float(kappa), consistency == "any", zero_phi == "floor")
    heights, agreements = np.ascontiguousarray(pairs.heights), np.ascontiguousarray(pairs.agreements)
    weights, utilities = np.ascontiguousarray(pairs.weights), np.ascontiguousarray(pairs.utilities)
    levels, figures, counts = search_pairs(
        heights, weights, utilities, pairs.first, agreements, *question, most_nodes, most_boxes, _AT_ONCE
    )
    proved = figures[:, 1] <= figures[:, 0] * (1 + TOLERANCE)
    if cuts_follow:
        for p in np.flatnonzero(counts[:, 2] == 0).tolist():
            rows = agreements[pairs.first[p] : pairs.first[p + 1]]
            pair, attributes = pair_of(heights[p], weights[p], utilities[p], rows, *question)
            best, left, cuts = _by_cuts(pair, most_cuts)
            levels[p, attributes] = best.levels
            figures[p] = best.figures[0], left, total(pair.weights, best.levels), total(pair.utilities, best.levels)
            counts[p, :2] = count(pair, best.levels), counts[p, 1] + cuts
            proved[p] = left <= best.figures[0] * (1 + _PROVED)
    return Shown(
        levels=levels,
        objective=figures[:, 0].copy(),
        bound=np.where(proved, figures[:, 0], figures[:, 1]),
        proved=proved,
        sensitivity=figures[:, 2].copy(),
        utility=figures[:, 3].copy(),
        consistent=counts[:, 0].copy(),
        visited=counts[:, 1].copy(),
    )


def _by_cuts(pair: Pair, most_cuts: int | None) -> tuple[Best, float, int]:
    """Search by one minimum cut for each box that nothing cheaper settles; the best, its bound, the cuts.

    As :func:`privrisk_spark.kernels.search.aggregate.aggregate` does for a record of a table.
    """
    best = started(pair)
    whole = _box_of(pair)
    exponent: CutExponent = 0 if pair.kappa == 0 else 1 if pair.kappa == 1 else 2
    left, cuts = -np.inf, 0
    for low, high, base in zip(*corner_boxes(pair), strict=True):
        while True:
            alpha = float(best.figures[2])
            lo, hi = low.copy(), high.copy()
            most = bound(pair, lo, hi, base, alpha * (1 - TOLERANCE))
            if loses(pair, best, most, lo):
                break
            shrink(pair, lo, hi, base, alpha)
            if offer(pair, best, lo) | offer(pair, best, hi):
                continue
            most = min(most, bound(pair, lo, hi, base, alpha * (1 - TOLERANCE)))
            if (lo == hi).all() or loses(pair, best, most, lo):
                break
            part = whole.part(lo, hi).merged()
            variables = int(part.heights.sum())
            if cuts == most_cuts or part.columns.size + variables ** (exponent + 1) // 2 > _ARCS:
                left = max(left, most)
                break
            cuts += 1
            part = replace(part, weight=part.weight + base)
            least, exact, resolution = best_in_box(part, pair.trade_off, exponent, alpha)
            if not offer(pair, best, part.of_levels(exact)) | offer(pair, best, part.of_levels(least)):
                phi = base + total(pair.weights, hi)
                left = max(left, min(most, alpha + resolution / phi))
                break
    return best, max(left, float(best.figures[2])), cuts


def _box_of(pair: Pair) -> Box:
    some = pair.rows.any(axis=1)
    return Box(
        lo=np.zeros(len(pair.heights), dtype=np.int64),
        attributes=np.arange(len(pair.heights)),
        columns=np.ascontiguousarray(pair.rows[some].T),
        counts=np.ones(int(some.sum()), dtype=np.int64),
        always=int((~some).sum()),
        weights=tuple(values[: h + 1] for values, h in zip(pair.weights, pair.heights.tolist(), strict=True)),
        utilities=tuple(values[: h + 1] for values, h in zip(pair.utilities, pair.heights.tolist(), strict=True)),
        weight=0.0,
        utility=0.0,
    )
