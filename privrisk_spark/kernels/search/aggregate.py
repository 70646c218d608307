"""The aggregate model (F12 ch. 5): maximize ``f(x) = λ/r(x) + u(x)^κ``.

With ``1/r = ρ/Φ`` (risk model I) the maximum is found by Dinkelbach's iteration: for ``α`` the best value known,
``g_α = λρ + Φu^κ - αΦ`` exceeds 0 exactly where ``f`` exceeds ``α``. For an integer κ ``g_α`` is supermodular (F12
Proposition 5.2.2; ρ is, as a sum of products of increasing functions of one attribute each, and so is ``Φu^κ`` as a sum
of products of decreasing ones), and its maximum over a box is a minimum cut. F12's bisection over ``α`` is not needed.
Under model II ``Φ`` is 1.

Two ends of the model matter to its users. Full suppression has ``Φ = 0`` and an infinite ``1/r`` under F12's weights;
what is done about it, ``zero_phi`` says. And the model is nearly all-or-nothing: ``ρ/Φ`` grows geometrically along the
lattice and ``u`` only linearly, so that for most records the optimum jumps, as ``λ`` passes :func:`crossing`, from
"release as is" to "suppress all but one". The threshold model gives graded answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice
from privrisk_spark.kernels.search.closure import Box, CutExponent, Profiles, best_in_box
from privrisk_spark.kernels.search.enumeration import rho_of_nodes
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

ZeroPhi = Literal["exclude", "floor"]

ENUMERATED = 1_000_000
"""Largest lattice that is enumerated by default, in nodes; about 50 bytes are held for each."""

_PROVED = 1e-9
"""Largest relative resolution of the cuts under which an answer counts as proved."""

_LARGE = 200_000
"""Arcs of a network beyond which its box is divided: below, a cut takes milliseconds."""

_DEEPEST = 5
"""How often a box is divided."""


def aggregate(
    lattice: RecordLattice,
    *,
    trade_off: float,
    kappa: float = 1.0,
    zero_phi: ZeroPhi = "exclude",
    most_nodes: int = ENUMERATED,
    most_cuts: int | None = None,
) -> Answer:
    """Maximize ``f(x) = λ/r(x) + u(x)^κ`` for one record.

    Parameters
    ----------
    lattice : RecordLattice
        Of risk model I or II.
    trade_off : float
        ``λ >= 0``, finite: what ``1/r`` is worth in units of ``u^κ``.
    kappa : float
        ``κ``: 0, or at least 1. Beyond ``most_nodes`` it must be 0, 1 or 2. ``0^0`` is 1.
    zero_phi : {"exclude", "floor"}
        What a level vector of ``Φ = 0`` is, under model I. ``exclude``: no candidate; if all are such, the record is
        released as it is. ``floor``: one of ``1/r = ρ/φ``, with ``φ`` the smallest positive ``Φ`` of the lattice.
    most_nodes : int
        Largest lattice to be enumerated; larger ones are searched by cuts. The answer does not depend on it.
    most_cuts : int, optional
        Number of minimum cuts after which the search gives its best so far; the default is none.

    Returns
    -------
    Answer
        ``objective`` is ``f``. ``visited`` counts lattice nodes if they were enumerated, else minimum cuts. ``bound``
        includes what the integer capacities of the cuts leave open, usually a relative 1e-12 to 1e-10; ``status`` is
        ``proved`` if all cuts needed were made and that is at most 1e-9.

        Of level vectors with equal ``f`` the one with the highest utility is chosen, of those the lexicographically
        smallest; numbers within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE` of each other count as equal.
        (For λ > 0 equal ``f`` and ``u`` imply equal risk.)

    Raises
    ------
    InputError
        If the risk model is III, κ lies in (0, 1), the lattice is too large for a κ other than 0, 1, 2, there are
        several dictionaries, or Φ is not a sum of weights.

    Notes
    -----
    The region ``Φ > 0`` is a union of boxes. Within one, the maximizers of ``g_α`` form a sublattice; its least element
    has the highest utility of them and is the lexicographically smallest, so that one cut per box decides ties by the
    rule above. Enumeration and cuts can disagree only about level vectors whose values of ``f`` differ, but by less
    than :data:`~privrisk_spark.kernels.lattice.lattice.TOLERANCE` or the resolution of the cuts.

    References
    ----------
    F12 ch. 5; W. Dinkelbach, "On nonlinear fractional programming", Management Science 13 (1967); J.-C. Picard,
    "Maximal closure of a graph", Management Science 22 (1976).
    """
    lattice.plain("aggregate")
    objective = _Objective.of(lattice, trade_off, kappa, zero_phi)
    if objective.settled:
        return objective.as_it_is(lattice)
    if lattice.size <= most_nodes:
        return _Table.of(lattice).best(lattice, objective)
    if kappa not in (0, 1, 2):
        raise InputError(
            f"decision.kappa: a lattice of more than {most_nodes} nodes is searched for 0, 1 and 2 alone, not for "
            f"{kappa:g}; use one of these, or problem 'min-risk'."
        )
    return _Cuts(lattice, objective, most_cuts).search()


def optima(
    lattice: RecordLattice,
    trade_offs: Sequence[float],
    *,
    kappa: float = 1.0,
    zero_phi: ZeroPhi = "exclude",
    most_nodes: int = ENUMERATED,
) -> list[tuple[float, Answer]]:
    """Distinct answers of :func:`aggregate` over a sweep of ``λ``.

    Parameters
    ----------
    lattice, kappa, zero_phi, most_nodes
        As of :func:`aggregate`.
    trade_offs : sequence of float
        Values of ``λ``, in any order.

    Returns
    -------
    list of (float, Answer)
        In ascending order of ``λ``: the first value given at which the answer differs from that of the value before,
        and the answer there.
    """
    table = None
    found: list[tuple[float, Answer]] = []
    for trade_off in sorted(trade_offs):
        objective = _Objective.of(lattice, trade_off, kappa, zero_phi)
        if objective.settled or lattice.size > most_nodes:
            here = aggregate(lattice, trade_off=trade_off, kappa=kappa, zero_phi=zero_phi, most_nodes=most_nodes)
        else:
            table = table or _Table.of(lattice)
            here = table.best(lattice, objective)
        if not found or (here.levels != found[-1][1].levels).any():
            found.append((trade_off, here))
    return found


def crossing(lattice: RecordLattice, *, kappa: float = 1.0) -> float:
    """The ``λ`` at which a release as it is stops being better than the tops of the boxes with ``Φ > 0``.

    Parameters
    ----------
    lattice : RecordLattice
        Of risk model I or II.
    kappa : float
        As of :func:`aggregate`.

    Returns
    -------
    float
        ``λ* = min (u(0)^κ - u(x)^κ) / (1/r(x) - 1/r(0))`` over these tops, usually "suppress all but one"; infinity if
        none has a lower risk than the release as it is.
    """
    objective = _Objective.of(lattice, 1.0, kappa, "exclude")
    if objective.settled:
        return np.inf
    whole = _whole(lattice)
    bottom = np.zeros(lattice.k, dtype=np.int64)
    worth = lattice.utility(bottom) ** kappa
    safety = objective.inverse_risk(lattice, whole, bottom)
    least = np.inf
    for _, high in _corners(lattice, whole):
        gain = objective.inverse_risk(lattice, whole, high) - safety
        if gain > 0:
            least = min(least, (worth - lattice.utility(high) ** kappa) / gain)
    return float(least)


@dataclass(frozen=True)
class _Objective:
    """``f`` of one record.

    ``phi`` stands for a ``Φ`` of 0; NaN if such level vectors are no candidates. ``settled`` is the case whose answer
    is the release as it is: with λ = 0 it has the highest utility, and where ``Φ(0) = 0`` there is no risk at all.
    """

    trade_off: float
    kappa: float
    phi: float
    weighted: bool
    settled: bool

    @classmethod
    def of(cls, lattice: RecordLattice, trade_off: float, kappa: float, zero_phi: ZeroPhi) -> _Objective:
        if lattice.model == "III":
            raise InputError("risk.model: the aggregate model is defined for 'I' and 'II', not for 'III'.")
        if not 0 <= trade_off < np.inf:
            raise InputError(f"decision.lambda: must be finite and at least 0, not {trade_off:g}.")
        if not (kappa == 0 or 1 <= kappa < np.inf):
            raise InputError(f"decision.kappa: must be 0 or finite and at least 1, not {kappa:g}.")
        weighted = lattice.model == "I"
        bottom = np.zeros(lattice.k, dtype=np.int64)
        settled = trade_off == 0 or (weighted and lattice.sensitivity(bottom) == 0)
        phi = np.nan
        if zero_phi == "floor" and weighted and not settled:
            phi = min(float(values[values > 0][-1]) for values in lattice.weights if values[0] > 0)
        return cls(trade_off, kappa, phi, weighted, settled)

    def values(self, consistent: FloatArray | LongArray, sensitivity: FloatArray, utility: FloatArray) -> FloatArray:
        """``f`` of ρ, Φ and u; minus infinity for what is no candidate."""
        if self.weighted:
            sensitivity = np.where(sensitivity > 0, sensitivity, self.phi)
            value = self.trade_off * (consistent / sensitivity) + utility**self.kappa
            return np.where(np.isnan(value), -np.inf, value)
        return self.trade_off * consistent + utility**self.kappa

    def inverse_risk(self, lattice: RecordLattice, whole: Box, levels: LongArray) -> float:
        """``1/r`` of a level vector with ``Φ > 0``."""
        return whole.consistent(levels) / (lattice.sensitivity(levels) if self.weighted else 1.0)

    def as_it_is(self, lattice: RecordLattice) -> Answer:
        """The settled answer; its objective is the utility's part alone."""
        bottom = np.zeros(lattice.k, dtype=np.int64)
        value = lattice.utility(bottom) ** self.kappa
        return answer(lattice, bottom, objective=value, bound=value, visited=0, proved=True)


@dataclass(frozen=True, eq=False)
class _Table:
    """ρ, Φ and u of every node of a lattice."""

    lattice: Lattice
    consistent: LongArray
    sensitivity: FloatArray
    utility: FloatArray

    @classmethod
    def of(cls, record: RecordLattice) -> _Table:
        """Evaluate all nodes."""
        lattice = Lattice(tuple(record.heights.tolist()))
        (consistent,) = rho_of_nodes(record)
        return cls(lattice, consistent, lattice.utility(record.weights), lattice.utility(record.utilities))

    def best(self, record: RecordLattice, objective: _Objective) -> Answer:
        """Best node."""
        value = objective.values(self.consistent, self.sensitivity, self.utility)
        highest = float(value.max())
        tied = np.flatnonzero(value >= highest * (1 - TOLERANCE))
        utility = self.utility[tied]
        most = float(utility.max())
        node = tied[(utility >= most - TOLERANCE * max(1.0, most)).argmax()]
        levels = self.lattice.levels(np.array([node]))[0]
        found = float(value[node])
        return answer(record, levels, objective=found, bound=found, visited=self.lattice.n_nodes, proved=True)


def _whole(lattice: RecordLattice) -> Box:
    """The lattice as a box; under model II with ``Φ = 1``."""
    weighted = lattice.model == "I"
    return Box(
        lo=np.zeros(lattice.k, dtype=np.int64),
        attributes=np.arange(lattice.k),
        columns=np.ascontiguousarray(lattice.vectors[1:].T),
        counts=lattice.counts[1:],
        always=int(lattice.counts[0]),
        weights=tuple(values if weighted else np.zeros(len(values)) for values in lattice.weights),
        utilities=lattice.utilities,
        weight=0.0 if weighted else 1.0,
        utility=0.0,
    )


def _corners(lattice: RecordLattice, whole: Box) -> list[tuple[LongArray, LongArray]]:
    """Bottom and top of disjoint boxes that make up ``0 < Φ < ∞``; with ``Φ = 1`` of the whole lattice.

    Each box holds the level vectors whose first attribute of positive weight is a certain one, in the order of ``1/r``
    at the top of the box. Any order will do; in this one the boxes with the least to gain are the largest, and most of
    the others are settled without a cut. An infinite weight is left at the first level of a finite one.
    """
    high = lattice.heights
    if lattice.model == "II":
        return [(np.zeros(lattice.k, dtype=np.int64), high)]
    last = np.array([np.count_nonzero(values > 0) - 1 for values in lattice.weights], dtype=np.int64)
    low = np.array([np.count_nonzero(np.isinf(values)) for values in lattice.weights], dtype=np.int64)
    if (low > high).any():
        return []
    if (last == high).any():
        return [(low, high)]
    tops = []
    for i in np.flatnonzero(low <= last).tolist():
        top = high.copy()
        top[i] = last[i]
        tops.append((whole.consistent(top) / float(lattice.weights[i][last[i]]), i, top))
    found = []
    bottom = low.copy()
    for _, i, top in sorted(tops, key=lambda one: one[:2]):
        found.append((bottom.copy(), top))
        bottom[i] = last[i] + 1
    return found


@dataclass(frozen=True)
class _Unproved:
    """A box of which it is to be proved that ``f <= α``; ``f <= most`` and ``Φ >= least_phi`` in it are known."""

    alpha: float
    most: float
    least_phi: float


def _halves(box: Box) -> list[Box]:
    """Divide a box where ``Φ`` and ``u`` fall the most; the halves then shrink, as one end of each is far away."""
    fall = np.zeros(len(box.attributes))
    for values in (box.weights, box.utilities):
        falls = np.array([of_level[0] - of_level[-1] for of_level in values])
        fall += falls / max(float(falls.sum()), np.finfo(float).tiny)
    i = int(fall.argmax())
    low, high = np.zeros_like(box.heights), box.heights.copy()
    low[i], high[i] = (box.heights[i] + 1) // 2, (box.heights[i] - 1) // 2
    return [box.part(np.zeros_like(low), high), box.part(low, box.heights)]


class _Cuts:
    """Search of a large lattice: local ascent, then one proof by cuts for each box."""

    def __init__(self, lattice: RecordLattice, objective: _Objective, most_cuts: int | None) -> None:
        self.lattice, self.objective, self.most_cuts = lattice, objective, most_cuts
        self.whole = _whole(lattice)
        self.exponent: CutExponent = 0 if objective.kappa == 0 else 1 if objective.kappa == 1 else 2
        self.cuts = 0
        self.levels = np.zeros(lattice.k, dtype=np.int64)
        self.utility = lattice.utility(self.levels)
        self.value = self.value_of(self.levels)
        self.highest = self.bound = self.value

    def search(self) -> Answer:
        """Best level vector, and what is proved about it."""
        corners = _corners(self.lattice, self.whole)
        self.ascend()
        for _, high in corners:
            self.offer(high)
        self.ascend()
        for low, high in corners:
            self.prove(self.whole.part(low, high))
        if np.isfinite(self.objective.phi):
            zero = np.array([np.count_nonzero(values > 0) for values in self.lattice.weights], dtype=np.int64)
            if (zero <= self.lattice.heights).all():
                self.prove(replace(self.whole.part(zero, self.lattice.heights), weight=self.objective.phi))
        bound = max(self.bound, self.highest)
        return answer(
            self.lattice,
            self.levels,
            objective=self.value,
            bound=bound,
            visited=self.cuts,
            proved=bound <= self.value * (1 + _PROVED),
        )

    def value_of(self, levels: LongArray) -> float:
        """``f``."""
        sensitivity, utility = self.lattice.sensitivity(levels), self.lattice.utility(levels)
        consistent = np.array([self.whole.consistent(levels)])
        return float(self.objective.values(consistent, np.array([sensitivity]), np.array([utility]))[0])

    def offer(self, levels: LongArray) -> bool:
        """Take a level vector if it is better; whether its ``f`` is."""
        value, utility = self.value_of(levels), self.lattice.utility(levels)
        if value < self.highest * (1 - TOLERANCE):
            return False
        higher = value > self.highest * (1 + TOLERANCE)
        # Ties are against the highest value seen, which never falls: no chain of ties leads downwards.
        self.highest = max(self.highest, value)
        if self.value >= self.highest * (1 - TOLERANCE):
            slack = TOLERANCE * max(1.0, self.utility)
            if utility < self.utility - slack:
                return False
            if utility <= self.utility + slack and levels.tolist() >= self.levels.tolist():
                return False
        self.levels, self.utility, self.value = levels, utility, value
        return higher

    def ascend(self) -> None:
        """Change one attribute at a time while that makes ``f`` larger."""
        while True:
            profiles = self.whole.profiles(self.levels)
            values = self.objective.values(profiles.consistent, profiles.sensitivity, profiles.utility)
            values[~profiles.inside] = -np.inf
            attribute, level = divmod(int(values.argmax()), values.shape[1])
            levels = self.levels.copy()
            levels[attribute] = level
            if not self.offer(levels):
                return

    def prove(self, box: Box) -> None:
        """Find what in a box is better, until it is proved that nothing is."""
        while (most := self.most_in(box)) >= self.highest * (1 - TOLERANCE):
            whole = _Unproved(self.highest, most, box.ends(box.weights, box.weight)[1])
            if not self.improved(box, whole, 0):
                return

    def improved(self, box: Box, whole: _Unproved, depth: int) -> bool:
        """Whether a larger ``f`` than ``α`` was found in a part of a box; if not, what is proved is noted."""
        rest = self.shrunk(box, whole.alpha)
        if self.most_in(rest) < whole.alpha * (1 - TOLERANCE):
            return False
        if not len(rest.attributes):
            return self.offer(rest.lo)
        if depth < _DEEPEST and self.arcs(rest) > _LARGE:
            return any(self.improved(half, whole, depth + 1) for half in _halves(rest))
        if self.cuts == self.most_cuts:
            self.bound = max(self.bound, whole.most)
            return False
        self.cuts += 1
        least, exact, resolution = best_in_box(rest.merged(), self.objective.trade_off, self.exponent, whole.alpha)
        higher = self.offer(rest.of_levels(exact))
        if (least != exact).any():
            higher |= self.offer(rest.of_levels(least))
        if not higher:
            self.bound = max(self.bound, min(whole.most, whole.alpha + resolution / whole.least_phi))
        return higher

    def most_in(self, box: Box) -> float:
        """What ``f`` cannot exceed in a box, by the monotonicity of its parts."""
        phi = box.ends(box.weights, box.weight)[1]
        utility = box.ends(box.utilities, box.utility)[0]
        consistent = box.always + int(box.counts.sum())
        return float(self.objective.trade_off * consistent / phi + utility**self.objective.kappa)

    def arcs(self, box: Box) -> int:
        """About how large the network of a box is."""
        variables = int(box.heights.sum())
        return box.columns.size + (variables**3 // 2 if self.exponent == 2 else variables**2 // 2)

    def shrunk(self, box: Box, alpha: float) -> Box:
        """The part of a box that holds all maximizers of ``g_α``.

        ``g_α`` is supermodular: what raising one attribute gains at the bottom it gains everywhere, and what lowering
        one gains at the top it gains everywhere. So levels that lose against a higher one at the bottom, or against a
        lower one at the top, are in no maximizer; all attributes may be cut at once, as the gains only grow.
        """
        while len(box.attributes):
            value, slack = self.gains(box.profiles(np.zeros_like(box.heights)), alpha)
            lo = (value >= value.max(axis=1, keepdims=True) - slack).argmax(axis=1)
            value, slack = self.gains(box.profiles(box.heights), alpha)
            near = value >= value.max(axis=1, keepdims=True) - slack
            hi = value.shape[1] - 1 - near[:, ::-1].argmax(axis=1)
            if not lo.any() and (hi == box.heights).all():
                break
            box = box.part(lo, np.maximum(lo, hi))
        return box

    def gains(self, profiles: Profiles, alpha: float) -> tuple[FloatArray, float]:
        """``g_α`` of each profile, and by how much its values may be wrong."""
        reward = self.objective.trade_off * profiles.consistent
        worth = profiles.utility**self.objective.kappa
        value = reward + profiles.sensitivity * (worth - alpha)
        size = np.where(profiles.inside, reward + profiles.sensitivity * (worth + alpha), 0.0)
        return np.where(profiles.inside, value, -np.inf), TOLERANCE * float(size.max())
