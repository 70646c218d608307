"""Exact search of one record's lattice by boxes ``lo <= x <= hi``, for lattices too large to enumerate.

Write ``r(x) = Φ(x) · f(ρ(x))`` with ``f`` non-increasing: ``1/ρ`` for model I, ``ln(N/ρ)`` for model III, and for
model II ``1/ρ`` with Φ = 1; of several dictionaries, the expectation or the largest of theirs, which is non-increasing
too. Over a box ``f(ρ(x)) >= f(ρ(hi))`` and ``u(x) <= u(lo)``, so with ``F = f(ρ(hi))``

* *least risk*: ``r(x) >= F · min {Φ(x) : u(x) >= c}``. Where ``hi`` itself reaches the floor, ``r(hi)`` is the least;
* *greatest utility*: ``u(x) <= max {u(x) : F Φ(x) <= c}``; and nothing is admitted where ``r(hi) > c``;
* *penalized risk*: ``r(x) - λ u(x) >= Σ_i min {F w_i(s) - λ d_i(s) : lo_i <= s <= hi_i}``; where Φ is the exponential
  of the sum S of weights, by its tangents ``exp(S) >= exp(t) (1 + S - t)``.

The first two are multiple-choice knapsacks; of an exponential Φ the sum of weights is what is bounded. Their linear
relaxation (Sinha and Zoltners 1979) is solved by its dual: for every slope ``λ >= 0``

``min {Σ w_i(x_i) : u(x) >= c} >= λ c + Σ_i min {w_i(s) - λ d_i(s) : lo_i <= s <= hi_i}``,

concave and piecewise linear in λ, with its breaks at slopes ``(w_i(s) - w_i(t)) / (d_i(s) - d_i(t))``. The minimizers
between any two levels are tabulated once for these slopes, or for some of them where there are very many, so that a
bound is a binary search among them.

Boxes are opened in ascending order of their bound, halved along the attribute whose utility differs most between
``lo`` and ``hi``; ``hi`` is lowered to what the floor of utility, given or reached, leaves possible.

Of the dictionary, a level vector of utility at least c generalizes no row g with ``u(g) < c``, and in a box none with
``u(g ∨ lo) < c``, g ∨ lo being the least level vector that is at least both. For the least risk the former rows are
left out from the start, and the latter where a box has few rows left.

Where ``f(ρ)`` is 0 at ``lo``, as in model III where every row is consistent, it is 0 in the whole box, and so is the
risk, whatever Φ is: ``lo`` has the most utility and comes before all others, and is the best of the box for every
objective.

Where ``f(ρ)`` is positive, and the same at ``lo`` as that bound of it, it is the same at every level vector of the box
that may be the answer, and the knapsack is all there is. If utilities are multiples of one unit, as with the utility
``depth``, it is solved by dynamic programming over the units lost, ties included: many values have equal weights, and
their boxes would be opened one by one otherwise.

Infinite weights. Nothing with a finite risk is below the first levels of a finite weight, so the search begins there;
if nothing there satisfies the floor of utility, or all that does has a Φ too large for a float, every level vector that
does has infinite risk, and the record itself has the highest utility. Only in model III may an infinite Φ cost
nothing, where every row is consistent, so there such weights are refused.

Ties. A box is dropped only if no level vector of it is better than the best so far under the whole tie rule of the
objective: its bound exceeds the best value by more than the tolerance; or is within the tolerance, and ``u(lo)`` (for
the greatest utility: ``r(hi)``) shows that the second criterion is worse, or equal and ``lo`` comes not before the best
in lexicographic order, as every level vector of the box is at least ``lo``. So when no box is left, the answer is the
one enumeration gives, ties included. (Equality within a tolerance is not transitive: of three numbers apart by little
less than it, which is taken depends on the order they come in, here as in any other search.)

Where the least risk is flat, ``lo`` is raised to the levels from which on ``r(hi with x_i = s)`` does not exceed the
best risk, since risk is non-increasing in every level.

Status: *proved* for every modular utility and the risk models above, by the bounds given here.

References
----------
P. Sinha, A. A. Zoltners, "The multiple-choice knapsack problem", Operations Research 27(3), 1979.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.disclosure.objective import GreatestUtility, LeastRisk, Objective
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, reaches
from privrisk_spark.kernels.search.boxes.arrays import record_of
from privrisk_spark.kernels.search.boxes.search import SearchResult, search
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

MOST_BOXES = 1_000_000
"""Boxes evaluated before the best so far is returned with the bound that remains."""

_FEW_ROWS = 128
"""Most consistent rows of a box at which they are looked at one by one. Changes boxes visited, not a proved result."""

_ROOM = 256
"""Open boxes that there is room for at first. Left to a default, it would be compiled as another function."""


def branch_and_bound(lattice: RecordLattice, objective: Objective, *, most_boxes: int = MOST_BOXES) -> Answer | None:
    """Best level vector of one record.

    Parameters
    ----------
    lattice : RecordLattice
        Of any size, against any number of dictionaries. Weights may be infinite but in model III.
    objective : LeastRisk or GreatestUtility or LeastPenalized
    most_boxes : int
        At least 1. A count, not a time, so that results can be reproduced.

    Returns
    -------
    Answer or None
        ``visited`` counts boxes. ``proved``: the optimum, ties included. ``heuristic``: the limit was reached, and
        no level vector is better than ``bound``; where that equals the objective within the tolerance, only the tie is
        not settled. None if nothing satisfies the constraint.

    Raises
    ------
    InputError
        If a weight is infinite in model III, or the limit is not positive.
    """
    if most_boxes < 1:
        raise InputError(f"most_boxes must be at least 1. Got {most_boxes}.")
    record = record_of(lattice, objective)
    found = None if record is None else search(record, most_boxes, _FEW_ROWS, _ROOM)
    best = None if found is None or not found.any else _answer(lattice, objective, found)
    infinite = any(np.isinf(w[0]) for w in lattice.weights) and lattice.model == "I"
    if not infinite or isinstance(objective, GreatestUtility) or (best is not None and np.isfinite(best.risk)):
        return best
    # Nothing of finite risk was found above the infinite weights, which were left out.
    bottom = np.zeros(lattice.k, dtype=np.int64)
    if isinstance(objective, LeastRisk) and not reaches(np.array([lattice.utility(bottom)]), objective.floor)[0]:
        return None
    bound, proved = (np.inf, True) if best is None else (best.bound, best.status == "proved")
    visited = 1 if found is None else max(1, found.visited)
    return answer(lattice, bottom, objective=np.inf, bound=bound, visited=visited, proved=proved)


def root_bound(lattice: RecordLattice, objective: Objective) -> float:
    """What no level vector that satisfies the constraint can better: the bound of the whole lattice as one box.

    Parameters
    ----------
    objective : LeastRisk or GreatestUtility or LeastPenalized

    Returns
    -------
    float
        In units of the objective. Infinite, on the side of no hope, if nothing satisfies the constraint.
    """
    found = branch_and_bound(lattice, objective, most_boxes=1)
    if found is None:
        return -np.inf if isinstance(objective, GreatestUtility) else np.inf
    return found.bound


def _answer(lattice: RecordLattice, objective: Objective, found: SearchResult) -> Answer:
    # As the contract evaluates, whose sums these are too.
    risk, utility = np.array([lattice.risk(found.levels)]), np.array([lattice.utility(found.levels)])
    value = float(objective.value(risk, utility)[0])
    sign = -1.0 if isinstance(objective, GreatestUtility) else 1.0
    slack = TOLERANCE * (abs(value) if isinstance(objective, LeastRisk) else max(1.0, abs(value)))
    proved = found.bound == np.inf or found.bound > sign * value + slack
    bound = value if proved else sign * min(found.bound, sign * value)
    return answer(lattice, found.levels, objective=value, bound=bound, visited=found.visited, proved=proved)
