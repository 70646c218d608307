"""Boxes of one record's lattice, and the maximum of a supermodular function over one as a minimum cut.

For a box ``lo <= x <= hi`` let ``y_{i,s} = [x_i >= s]`` for ``lo_i < s <= hi_i`` and ``z = 1 - y``. Then

* ``ρ = Σ_g c_g Π_{i: g_i > lo_i} y_{i,g_i}`` over the rows ``g <= hi``;
* ``w_i(x_i) = w_i(hi_i) + Σ_s (w_i(s-1) - w_i(s)) z_{i,s}``, and ``d_i`` likewise, so that ``Φ·u^κ`` is a polynomial in
  ``z`` with coefficients >= 0 for κ = 0, 1, 2. Products within one attribute are functions of that attribute alone and
  so linear in its ``z``; what remains are products over different attributes.

``λρ + Φu^κ - αΦ`` is thus a constant, a linear function, and products of ``y`` or of ``z`` alone with coefficients
>= 0: a closure problem, whose maximum is a minimum cut (Picard 1976). ``y = 1`` is the source side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.min_cut import Cut, Network, minimum_cut

Ends = npt.NDArray[np.signedinteger] | int

CutExponent = Literal[0, 1, 2]

_LARGEST_CAPACITIES = 2**60
"""What the finite capacities sum to, at most and but for rounding."""

_ROUNDING = 2.0**-47
"""Bound on the relative error of the coefficients, which are sums of at most some thousand non-negative products."""


@dataclass(frozen=True, eq=False)
class Box:
    """Level vectors ``lo <= x <= lo + heights``, with what they count, cost and are worth.

    Attributes that have one level in the box are left out; ``x`` is counted from ``lo`` for the ``n`` others.

    Attributes
    ----------
    lo : ndarray of int64, shape (k,)
        Least level of every attribute of the record.
    attributes : ndarray of int64, shape (n,)
        Attributes with more than one level, ascending.
    columns : ndarray of int8, shape (n, m)
        Rows that are consistent with some but not all of the box: ``max(g_i - lo_i, 0)``, one attribute after the
        other.
    counts : ndarray of int64, shape (m,)
        Multiplicity of each row.
    always : int
        Rows that are consistent with all of the box.
    weights, utilities : tuple of n ndarrays of float64
        ``w_i`` and ``d_i`` of the levels in the box, non-negative and non-increasing.
    weight, utility : float
        What is to be added to the sums of these.
    """

    lo: LongArray
    attributes: LongArray
    columns: LevelArray
    counts: LongArray
    always: int
    weights: tuple[FloatArray, ...]
    utilities: tuple[FloatArray, ...]
    weight: float
    utility: float

    @cached_property
    def heights(self) -> LongArray:
        """int64 (n,): highest level of each attribute in the box."""
        return np.array([len(values) - 1 for values in self.weights], dtype=np.int64)

    @cached_property
    def levels(self) -> LongArray:
        """int64 (1, h + 1): levels up to the greatest height, for comparison with ``(n, h + 1)`` arrays."""
        return np.arange(int(self.heights.max(initial=0)) + 1)[None, :]

    def of_levels(self, x: LongArray) -> LongArray:
        """Level vector of the record for one of the box."""
        found = self.lo.copy()
        found[self.attributes] += x
        return found

    def consistent(self, x: LongArray) -> int:
        """``ρ`` at a level vector of the box."""
        inside = np.ones(self.columns.shape[1], dtype=np.bool_)
        for i in np.flatnonzero(x < self.heights):
            inside &= self.columns[i] <= x[i]
        return self.always + int(self.counts[inside].sum())

    def ends(self, values: tuple[FloatArray, ...], other: float) -> tuple[float, float]:
        """Sum of values at the bottom and at the top of the box."""
        return other + sum(float(v[0]) for v in values), other + sum(float(v[-1]) for v in values)

    def part(self, lo: LongArray, hi: LongArray) -> Box:
        """Cut out ``lo <= x <= hi``.

        Parameters
        ----------
        lo, hi : ndarray of int64, shape (n,)
            Counted from this box's ``lo``; ``0 <= lo <= hi <= heights``.
        """
        if not lo.any() and (hi == self.heights).all() and (hi > 0).all():
            return self
        possible = np.ones(self.columns.shape[1], dtype=np.bool_)
        for i in np.flatnonzero(hi < self.heights):
            possible &= self.columns[i] <= hi[i]
        low = lo.astype(np.int8)
        rows, kept = np.flatnonzero(possible), np.flatnonzero(hi > lo)
        columns = np.empty((len(kept), len(rows)), dtype=np.int8)
        demanding = np.zeros(len(rows), dtype=np.int8)
        for column, i in zip(columns, kept, strict=True):
            self.columns[i].take(rows, out=column)
            if low[i]:
                np.maximum(column, low[i], out=column)
                np.subtract(column, low[i], out=column)
            demanding |= column
        counts, always = self.counts[rows], self.always
        if not demanding.all():
            some = np.flatnonzero(demanding)
            always += int(counts.sum() - counts[some].sum())
            columns, counts = columns.take(some, axis=1), counts[some]
        fixed = np.flatnonzero(hi == lo)
        return Box(
            lo=self.of_levels(lo),
            attributes=self.attributes[kept],
            columns=columns,
            counts=counts,
            always=always,
            weights=tuple(self.weights[i][lo[i] : hi[i] + 1] for i in kept),
            utilities=tuple(self.utilities[i][lo[i] : hi[i] + 1] for i in kept),
            weight=self.weight + sum(float(self.weights[i][lo[i]]) for i in fixed),
            utility=self.utility + sum(float(self.utilities[i][lo[i]]) for i in fixed),
        )

    def merged(self) -> Box:
        """Count equal rows as one."""
        if not len(self.counts):
            return self
        first, member = distinct_rows(list(self.columns))
        if len(first) == len(member):
            return self
        counts = np.zeros(len(first), dtype=np.int64)
        np.add.at(counts, member, self.counts)
        columns = np.ascontiguousarray(self.columns[:, first])
        return Box(
            self.lo, self.attributes, columns, counts, self.always,
            self.weights, self.utilities, self.weight, self.utility,
        )  # fmt: skip

    def profiles(self, x: LongArray) -> Profiles:
        """ρ, Φ and u wherever at most one attribute differs from ``x``."""
        n, m = self.columns.shape
        counter = np.uint8 if n < 256 else np.uint16
        violated: npt.NDArray[np.unsignedinteger] = np.zeros(m, dtype=counter)
        which: npt.NDArray[np.unsignedinteger] = np.zeros(m, dtype=counter)
        for i, level in enumerate(x.tolist()):
            above = (self.columns[i] > level).view(np.uint8)
            violated += above
            # Wraps around, but is read only where a single attribute is violated.
            which += above * counter(i)
        width = self.levels.shape[1]
        consistent = np.full(n * width, 0.0)
        inside = np.flatnonzero(violated == 0)
        times = self.counts[inside]
        for i in range(n):
            consistent[i * width : (i + 1) * width] = np.bincount(
                self.columns[i].take(inside), weights=times, minlength=width
            )
        one = np.flatnonzero(violated == 1)
        attribute = which[one].astype(np.int64)
        consistent += np.bincount(
            attribute * width + self.columns[attribute, one], weights=self.counts[one], minlength=n * width
        )
        return Profiles(
            self.always + np.cumsum(consistent.reshape(n, width), axis=1),
            self.weight + _all_but_one(self.weights, x, width),
            self.utility + _all_but_one(self.utilities, x, width),
            self.levels <= self.heights[:, None],
        )


@dataclass(frozen=True, eq=False)
class Profiles:
    """ρ, Φ, u at ``x`` with ``x_i`` replaced by ``s``, as float64 (n, h + 1) arrays; ``inside`` if ``s <= h_i``."""

    consistent: FloatArray
    sensitivity: FloatArray
    utility: FloatArray
    inside: BoolArray


def _all_but_one(values: tuple[FloatArray, ...], x: LongArray, width: int) -> FloatArray:
    """``Σ_{j≠i} v_j(x_j) + v_i(s)``, without subtraction: what is 0 stays 0, and infinity harms no other sum."""
    here = np.array([of_level[level] for of_level, level in zip(values, x.tolist(), strict=True)])
    before = np.concatenate([[0.0], np.cumsum(here)[:-1]])
    after = np.concatenate([np.cumsum(here[::-1])[::-1][1:], [0.0]])
    replaced = np.zeros((len(values), width))
    for i, of_level in enumerate(values):
        replaced[i, : len(of_level)] = of_level
    total: FloatArray = (before + after)[: len(values), None] + replaced
    return total


@dataclass(frozen=True, eq=False)
class Closure:
    """``λρ + Φu^κ - αΦ`` on a box as a network.

    Attributes
    ----------
    network : Network
        Node ``v < len(attribute)`` is ``y`` of an attribute's level; rows, triples, source and sink follow.
    attribute : ndarray of int64, shape (n_variables,)
        Attribute of each ``y``, ascending, counted as the box counts.
    unit : float
        One unit of capacity.
    error : int
        Units by which the network's function may differ from the one asked for, at any level vector.
    """

    network: Network
    attribute: LongArray
    unit: float
    error: int

    def levels(self, source_side: BoolArray, n: int) -> LongArray:
        """``x_i``, the number of levels whose ``y`` is on the source's side."""
        return np.bincount(self.attribute, weights=source_side[: len(self.attribute)], minlength=n).astype(np.int64)


def best_in_box(box: Box, trade_off: float, kappa: CutExponent, alpha: float) -> tuple[LongArray, LongArray, float]:
    """Maximize ``λρ + Φu^κ - αΦ`` over a box.

    Parameters
    ----------
    trade_off : float
        ``λ > 0``.
    kappa : {0, 1, 2}
    alpha : float
        ``α >= 0``.

    Returns
    -------
    least : ndarray of int64, shape (n,)
        The most specific maximizer as far as the arithmetic can tell: if the maximizers of the exact function have a
        least one, which as a sublattice they have, then ``least`` is at or below it.
    exact : ndarray of int64, shape (n,)
        The most specific maximizer of the network's function.
    resolution : float
        No level vector of the box has a value above that of ``exact`` by more than this.
    """
    closure = closure_network(box, trade_off, kappa, alpha)
    cut: Cut = minimum_cut(closure.network, negligible=2 * closure.error)
    n = len(box.attributes)
    least, exact = closure.levels(cut.nearly, n), closure.levels(cut.source_side, n)
    return least, exact, 2 * closure.error * closure.unit


def closure_network(box: Box, trade_off: float, kappa: CutExponent, alpha: float) -> Closure:
    """Build the network whose minimum cut maximizes ``λρ + Φu^κ - αΦ``.

    Notes
    -----
    ``c z_a z_b = c z_a - c z_a y_b`` costs one arc ``b -> a`` of capacity ``c`` and a linear coefficient; products of
    three, and rows of two or more, have a node of their own. Capacities are multiples of a unit, which divides ``λ``
    where the range of the coefficients allows it, so that rows are exact and only some thousand arcs are rounded.
    """
    product = _Products.of(box, kappa)
    attribute = product.attribute
    n_variables = len(attribute)
    first = np.searchsorted(attribute, np.arange(len(box.attributes)))

    magnitude = (
        trade_off * float(box.counts.sum())
        + alpha * float(product.weight.sum())
        + float(product.linear.sum() + product.pair.sum() + product.triple.sum())
    )
    # The finite capacities sum to twice that at most: a product of two is a reward once and a cost once.
    per_row = _LARGEST_CAPACITIES / 2 * (trade_off / magnitude) if magnitude > 0 else 1.0
    per_row = float(np.floor(per_row)) if per_row >= 1 else per_row
    unit = trade_off / per_row

    degree = np.count_nonzero(box.columns, axis=0)
    several = np.flatnonzero(degree > 1)
    row_node = n_variables + np.arange(len(several))
    vectors = np.ascontiguousarray(box.columns[:, several].T)
    in_row = (vectors + (first - 1).astype(np.int32))[vectors > 0]

    linear = alpha * product.weight - product.linear
    np.subtract.at(linear, product.pair_ends[0], product.pair)
    units = _units(linear, unit)
    alone = np.flatnonzero(degree == 1)
    its = (box.columns[:, alone] > 0).argmax(axis=0) if len(alone) else alone
    np.add.at(units, first[its] + box.columns[its, alone] - 1, _rows(box.counts[alone], per_row))

    triple_node = n_variables + len(several) + np.arange(len(product.triple))
    source = n_variables + len(several) + len(triple_node)
    sink = source + 1
    rewarded, charged = np.flatnonzero(units > 0), np.flatnonzero(units < 0)
    finite = [
        _arcs(source, row_node, _rows(box.counts[several], per_row)),
        _arcs(source, rewarded, units[rewarded]),
        _arcs(charged, sink, -units[charged]),
        _arcs(product.pair_ends[1], product.pair_ends[0], _units(product.pair, unit)),
        _arcs(triple_node, sink, _units(product.triple, unit)),
    ]
    infinite = 1 + sum(int(capacity.sum()) for _, _, capacity in finite)
    higher = np.flatnonzero(attribute[1:] == attribute[:-1]) + 1
    arcs = [
        *finite,
        _arcs(higher, higher - 1, infinite),
        _arcs(np.repeat(row_node.astype(np.int32), degree[several]), in_row, infinite),
        *(_arcs(ends, triple_node, infinite) for ends in product.triple_ends),
    ]
    tail, head, capacity = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
    network = Network(sink + 1, tail, head, capacity, source, sink)
    rounded = sum(len(capacity) for _, _, capacity in finite) - (len(several) if per_row >= 1 else 0)
    error = rounded // 2 + 1 + int(magnitude / unit * _ROUNDING) if magnitude > 0 else 0
    return Closure(network, attribute, unit, error)


def _arcs(tail: Ends, head: Ends, capacity: LongArray | int) -> tuple[IntArray, IntArray, LongArray]:
    tails, heads, capacities = np.broadcast_arrays(np.atleast_1d(tail), head, capacity)
    return tails.astype(np.int32, copy=False), heads.astype(np.int32, copy=False), capacities.astype(np.int64)


def _units(amounts: FloatArray, unit: float) -> LongArray:
    return np.rint(amounts / unit).astype(np.int64)


def _rows(counts: LongArray, per_row: float) -> LongArray:
    # Without rows the unit may be below any of theirs.
    exact = per_row >= 1 and len(counts)
    return counts * int(per_row) if exact else np.rint(counts * per_row).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Products:
    """``Φu^κ`` of a box as a polynomial in ``z``, but for its constant, and ``Φ``.

    Attributes
    ----------
    attribute : ndarray of int64, shape (n_variables,)
        Attribute of each ``z``, ascending, and within it by level.
    weight, linear : ndarray of float64, shape (n_variables,)
        Linear coefficients of ``Φ`` and of ``Φu^κ``.
    pair_ends, triple_ends : tuple of ndarrays of int64
        Variables of each product, of different and ascending attributes.
    pair, triple : ndarray of float64
        Their coefficients, positive.
    """

    attribute: LongArray
    weight: FloatArray
    linear: FloatArray
    pair_ends: tuple[LongArray, LongArray]
    pair: FloatArray
    triple_ends: tuple[LongArray, LongArray, LongArray]
    triple: FloatArray

    @classmethod
    def of(cls, box: Box, kappa: CutExponent) -> _Products:
        """Expand ``(W + A)(U + D)^κ``: W and U are the sums at the top of the box, A and D what is above them."""
        attribute = np.repeat(np.arange(len(box.attributes)), box.heights)
        above_weight = [values - values[-1] for values in box.weights]
        above_utility = [values - values[-1] for values in box.utilities]
        top_weight = box.weight + sum(float(values[-1]) for values in box.weights)
        top_utility = box.utility + sum(float(values[-1]) for values in box.utilities)

        def falls(weights: int, utilities: int) -> FloatArray:
            """Coefficients in ``z`` of ``A_i^weights D_i^utilities``, for every attribute."""
            parts = [-np.diff(a**weights * d**utilities) for a, d in zip(above_weight, above_utility, strict=True)]
            return np.concatenate(parts) if parts else np.zeros(0)

        a, d = falls(1, 0), falls(0, 1)
        ends = np.nonzero(attribute[:, None] < attribute[None, :])
        i, j = ends
        pair, triple_ends, triple = np.zeros(0), _NO_TRIPLES, np.zeros(0)
        if kappa == 0:
            linear = a
        elif kappa == 1:
            linear = top_weight * d + top_utility * a + falls(1, 1)
            pair = a[i] * d[j] + d[i] * a[j]
        else:
            both, squares = falls(1, 1), falls(0, 2)
            linear = (
                top_weight * (2 * top_utility * d + squares) + top_utility**2 * a + 2 * top_utility * both + falls(1, 2)
            )
            pair = (
                2 * top_weight * d[i] * d[j]
                + 2 * top_utility * (a[i] * d[j] + d[i] * a[j])
                + a[i] * squares[j]
                + squares[i] * a[j]
                + 2 * (both[i] * d[j] + d[i] * both[j])
            )
            triple_ends, triple = _triples(attribute, a, d)
        positive = np.flatnonzero(pair > 0)
        return cls(attribute, a, linear, (i[positive], j[positive]), pair[positive], triple_ends, triple)


_NO_TRIPLES = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def _triples(
    attribute: LongArray, a: FloatArray, d: FloatArray
) -> tuple[tuple[LongArray, LongArray, LongArray], FloatArray]:
    """Products ``2(a_i d_j d_l + d_i a_j d_l + d_i d_j a_l)`` of three different attributes."""
    i, j = np.nonzero(attribute[:, None] < attribute[None, :])
    order = np.argsort(attribute[j], kind="stable")
    i, j = i[order], j[order]
    mixed, plain = a[i] * d[j] + d[i] * a[j], d[i] * d[j]
    # Pairs that end before the attribute of l come first.
    before = np.searchsorted(attribute[j], attribute)
    firsts, seconds, thirds, costs = [_NO_TRIPLES[0]], [_NO_TRIPLES[0]], [_NO_TRIPLES[0]], [np.zeros(0)]
    for third, n in enumerate(before.tolist()):
        cost = 2 * (mixed[:n] * d[third] + plain[:n] * a[third])
        positive = np.flatnonzero(cost > 0)
        firsts.append(i[positive])
        seconds.append(j[positive])
        thirds.append(np.full(len(positive), third))
        costs.append(cost[positive])
    return (np.concatenate(firsts), np.concatenate(seconds), np.concatenate(thirds)), np.concatenate(costs)
