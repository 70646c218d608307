"""Deciding records one at a time, for lattices too large to enumerate for the whole table.

A record is put against the dictionary's distinct vectors once (:mod:`privrisk_spark.kernels.search.dictionary_view`),
and one of the searches of one record's lattice finds its level vector, with a bound:

===================== ======================================================== ==============================
search                finds                                                    status
===================== ======================================================== ==============================
``branch_and_bound``  least risk, greatest utility or least penalized risk     proved, unless it was cut short
``btda``              least risk (F12 Algorithm 2)                             proved, unless it was cut short
``aggregate``         greatest ``λ/r + u^κ`` by minimum cuts (F12 ch. 5)        proved, unless rounding forbids
``genetic``           low risk (F12 Algorithm 4)                               heuristic, with a lower bound
``approximate``       low risk by a linear relaxation (F12 Algorithm 5)        heuristic, with a lower bound
===================== ======================================================== ==============================

A lattice so small that all its nodes are sooner looked at than bounded is enumerated by ``branch_and_bound``: one box,
whole. The answer and its ties are the same.

The limit is a count of boxes, nodes or cuts, not a time, so that results can be reproduced. The genetic search takes
its randomness from one fixed table of numbers for every record: no secret is in it, and alike records are decided
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import cast, get_args

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LevelArray
from privrisk_spark.kernels.counting.consistent import SortedCounts
from privrisk_spark.kernels.disclosure.decisions import AfterHistory, Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import AnyObjective, GreatestAggregate, LeastRisk
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.disclosure.sensitivity import scaled
from privrisk_spark.kernels.numeric.fingerprint import mixed
from privrisk_spark.kernels.random.keyed import uniforms
from privrisk_spark.kernels.search.aggregate import aggregate
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.dictionary_view import DictionaryRows, rows_of
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.genetic import genetic, uniforms_per_individual
from privrisk_spark.kernels.search.method import RecordMethod, Search, TableMethod
from privrisk_spark.kernels.search.node_search import btda
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer
from privrisk_spark.kernels.search.relaxation import approximate

_ROUNDING = 1e-9
"""A gap smaller than that, relative to the objective, is none: of a search cut short only the tie is open then."""

_ENUMERATED = 2**15
"""Lattices that are sooner enumerated than bounded, in nodes: one box, looked at whole. Does not change an answer."""

GENERATIONS, POPULATION = 60, 60
"""Of the genetic search."""


def lattice_search(
    method: RecordMethod, objective: AnyObjective, most_steps: int
) -> Callable[[RecordLattice], Answer | None]:
    """Return the search of one record's lattice.

    Parameters
    ----------
    method : {"branch_and_bound", "btda", "genetic", "approximate", "aggregate"}
    objective : LeastRisk, GreatestUtility, LeastPenalized or GreatestAggregate
    most_steps : int
        Boxes, nodes or minimum cuts after which a search ends with its best so far.

    Returns
    -------
    callable
        Of a RecordLattice; None where nothing satisfies the constraint.

    Raises
    ------
    InputError
        If the method does not serve the objective.
    """
    if isinstance(objective, GreatestAggregate):
        if method == "aggregate":
            return lambda lattice: aggregate(
                lattice,
                trade_off=objective.trade_off,
                kappa=objective.kappa,
                zero_phi=objective.zero_phi,
                most_cuts=most_steps,
            )
    elif method == "branch_and_bound":
        return lambda lattice: (
            enumerate_nodes(lattice, objective)
            if lattice.size <= min(most_steps, _ENUMERATED)
            else branch_and_bound(lattice, objective, most_boxes=most_steps)
        )
    elif isinstance(objective, LeastRisk):
        if method == "btda":
            return lambda lattice: btda(lattice, objective, most_nodes=most_steps)
        if method == "genetic":
            return lambda lattice: genetic(lattice, objective, _numbers(uniforms_per_individual(lattice)))
        if method == "approximate":
            return lambda lattice: approximate(lattice, objective)
    raise InputError(f"decision.method: '{method}' does not solve this problem.")


@lru_cache(maxsize=8)
def _numbers(per_individual: int) -> FloatArray:
    """One table of numbers in (0, 1) for all lattices of a size."""
    words = mixed(np.arange((1 + GENERATIONS) * POPULATION * per_individual, dtype=np.uint64))
    return uniforms(words).reshape(1 + GENERATIONS, POPULATION, per_individual)


def decide_records(
    disclosure: Disclosure,
    search: Search,
    attacker: Attacker,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
    history: LevelArray | None = None,
) -> Decisions:
    """Decide every record given, one after the other.

    Takes what :func:`privrisk_spark.kernels.search.table_search.decide` takes.

    Parameters
    ----------
    search : Search
        By a method of this module.
    attacker : Attacker
        With dictionaries counted by the plan ``sorted``, whose vectors are looked at.
    codes : ndarray of int32, shape (n, k)
    personal, record_weight : ndarray of float64, optional
    history : ndarray of int8, shape (n, k), optional

    Returns
    -------
    Decisions
        With ``gap``. A record for which nothing satisfies the constraint is suppressed.

    Raises
    ------
    InputError
        If the method does not serve the objective, or takes no several dictionaries, multiplicative sensitivity or
        infinite weights.
    """
    rows: list[DictionaryRows] = []
    for counts in attacker.possible:
        if not isinstance(counts, SortedCounts):
            raise InputError(f"counting.plan: decision.method '{search.method}' needs 'sorted'.")
        rows.append(rows_of(counts))
    if search.method in get_args(TableMethod):
        raise InternalError(f"'{search.method}' is no search of one record's lattice")
    best = lattice_search(cast("RecordMethod", search.method), search.objective, search.most_steps)
    n, k = codes.shape
    levels = np.zeros((n, k), dtype=np.int8)
    risk, risk_before, utility, gap = (np.zeros(n) for _ in range(4))
    consistent, consistent_before = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    feasible = np.ones(n, dtype=np.bool_)
    alone, out = np.zeros(n), np.zeros(n)
    for r in range(n):
        own = record_lattice(
            disclosure,
            attacker,
            rows,
            codes[r],
            personal=None if personal is None else personal[r],
            record_weight=1.0 if record_weight is None else float(record_weight[r]),
        )
        lattice = own if history is None else own.after(history[r])
        found = best(lattice)
        feasible[r] = found is not None
        if found is None:
            found = answer(own, own.heights, objective=np.nan, bound=np.nan, visited=0, proved=True)
        levels[r], risk[r], utility[r], consistent[r] = found.levels, found.risk, found.utility, found.consistent
        as_it_is = np.zeros(k, dtype=np.int8)
        risk_before[r], consistent_before[r] = own.risk(as_it_is), own.consistent(as_it_is)
        if history is not None:
            alone[r], out[r] = found.risk, own.risk(history[r])
            if not feasible[r]:
                # Suppressed whole, it leaves what is out as it is.
                risk[r], consistent[r] = out[r], own.consistent(history[r])
        # An infinite gap is none of rounding.
        gap[r] = 0.0 if np.isfinite(found.gap) and found.gap <= _ROUNDING * abs(found.objective) else found.gap
    nodes = np.column_stack([disclosure.disclosed(i, codes[:, i], levels[:, i]) for i in range(k)])
    after = None
    if history is not None:
        after = AfterHistory(alone, out, ~feasible & search.objective.admits(alone, utility))
    return Decisions(levels, nodes, risk, risk_before, utility, consistent, consistent_before, feasible, gap, after)


def record_lattice(
    disclosure: Disclosure,
    attacker: Attacker,
    rows: Sequence[DictionaryRows],
    codes: Sequence[int] | IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: float = 1.0,
) -> RecordLattice:
    """Put one record against the dictionaries.

    Parameters
    ----------
    attacker : Attacker
        Whose rule and prior count.
    rows : sequence of DictionaryRows
        Of every dictionary that is possible.
    codes : sequence of k int
    personal : ndarray of float64, shape (k,), optional
        Personal weights ``w_j`` of the linear form.
    record_weight : float
        ``w_r`` of the record form.
    """
    sensitivity = disclosure.sensitivity
    # Risk model II asks nothing of the sensitivity, whatever it is.
    form = "constant" if disclosure.model == "II" else sensitivity.form
    weights: list[FloatArray] = []
    for i, code in enumerate(codes):
        chain = disclosure.ancestor[i][code, : disclosure.code_depth[i][code] + 1]
        root = len(sensitivity.weights[i]) - 1
        if form == "constant":
            of_level = np.full(len(chain), sensitivity.constant if i == 0 else 0.0)
        elif form == "record":
            of_level = scaled((chain != root).astype(np.float64), np.float64(record_weight))
        else:
            of_level = sensitivity.weights[i][chain]
            of_level = of_level if personal is None else scaled(of_level, personal[i])
        weights.append(of_level)
    utilities = disclosure.chains([int(code) for code in codes])
    return RecordLattice.of_dictionaries(
        [(one.levels([int(code) for code in codes]), one.counts) for one in rows],
        weights,
        utilities,
        model=disclosure.model,
        exponential=form == "multiplicative",
        rule=attacker.rule,
        prior=tuple(q for q in attacker.prior if q > 0),
    )
