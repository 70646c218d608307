"""The physical plan of counting: one cost rule, from the hierarchies and, where they do not decide, from the data.

============  =====================================================================================================
``dense``     the whole histogram rolled up on the driver; needs a cell for every vector of distinguishable nodes
``sorted``    the distinct dictionary vectors on the driver and on every worker; needs room for them
``shuffle``   attribute-at-a-time joins and sums, distributed; needs room for nothing that grows
``iceberg``   as ``shuffle``, and only the cells with at least t rows
============  =====================================================================================================

The first that fits is the cheapest: a look-up costs an addition per attribute under ``dense``, a search under
``sorted`` and a share of a join under ``shuffle``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, dense_cells, incidence
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes, entity_of, possible_codes
from privrisk_spark.planning.search import decides_records
from privrisk_spark.policy.dictionaries import EstimatedDictionary, OneDictionary
from privrisk_spark.policy.policy import Counting, Policy

Plan = Literal["dense", "sorted", "shuffle", "iceberg"]

_TASK_BYTES = 2**28
"""What a task of the distributed plans holds, about."""


@dataclass(frozen=True)
class Cost:
    """Upper bounds of what a plan needs.

    Attributes
    ----------
    rows : int or None
        Rows shuffled or collected; None while the dictionary's size is not known.
    bytes : int or None
        Their size.
    memory : int or None
        Bytes held at once, on the driver and on each worker.
    refused : str
        Why the plan cannot be taken; empty if it can.
    """

    plan: Plan
    rows: int | None
    bytes: int | None
    memory: int | None
    refused: str = ""


@dataclass(frozen=True)
class PlanChoice:
    """The physical plan of counting one dictionary, and why.

    Attributes
    ----------
    cells : int
        Cells the dense plan would hold at once, at most.
    reason : str
        One sentence.
    costs : tuple of Cost
        Of every plan, in the order of preference.
    settled : bool
        False while the number of distinct vectors may still change the choice.
    """

    plan: Plan
    cells: int
    reason: str
    costs: tuple[Cost, ...]
    settled: bool = True

    @property
    def cost(self) -> Cost:
        """Cost of the chosen plan."""
        return next(cost for cost in self.costs if cost.plan == self.plan)


def choose_plan(
    counting: Counting,
    axes: Sequence[Axis],
    present: Sequence[npt.NDArray[np.int32]],
    *,
    similar: bool = False,
    entities: bool = False,
    frequent: bool = False,
    several: bool = False,
    single: bool = False,
    rows: int | None = None,
    vectors: int | None = None,
) -> PlanChoice:
    """Choose the plan of counting one dictionary.

    Parameters
    ----------
    counting : Counting
        Budgets, and a plan to force.
    axes : sequence of k Axis
    present : sequence of k ndarrays of int32
        Codes each attribute can have in the dictionary.
    similar : bool
        Whether the consistency of an attribute does not follow its hierarchy.
    entities : bool
        Whether distinct persons are counted, as vectors with signed counts under ``dense`` and ``sorted``.
    frequent : bool
        Whether only cells with at least t rows are wanted, so that ``iceberg`` will do.
    several : bool
        Whether it is one of several dictionaries, whose counts meet in one place.
    single : bool
        Whether records are decided one at a time, against the dictionary's distinct vectors.
    rows : int, optional
        Rows of the dictionary, or more.
    vectors : int, optional
        Distinct vectors of the dictionary, once they are counted.

    Raises
    ------
    InputError
        If the policy forces a plan that cannot be taken.
    """
    # Persons are written as more codes, and as more vectors than they have rows.
    held = [_with_joins(*pair) for pair in zip(axes, present, strict=True)] if entities else present
    cells = dense_cells(axes, held)
    bounds = [bound for bound in (None if entities else rows, prod(len(codes) for codes in held)) if bound is not None]
    distinct = vectors if vectors is not None else min(bounds)
    width = 4 * len(axes) + 8
    fits = f"{cells:,} cells against a budget of {counting.dense_cells:,}"
    room = f"{distinct:,} distinct vectors against a budget of {counting.sorted_vectors:,}"
    by_vectors = "keeps no vectors, which the search of one record's lattice reads" if single else ""
    alone = "counts of distinct persons add up along hierarchies alone" if entities and similar else ""
    dense = Cost(
        "dense", distinct, distinct * width, 16 * cells,
        alone or by_vectors or ("" if cells <= counting.dense_cells else f"needs {fits} (counting.dense_cells)"),
    )  # fmt: skip
    by_hierarchy = "" if not similar else "needs a consistency that follows the hierarchy"
    too_many = vectors is not None and vectors > counting.sorted_vectors
    in_order = Cost(
        "sorted", distinct, distinct * width, 2 * distinct * width,
        alone or by_hierarchy or (f"needs room for {room} (counting.sorted_vectors)" if too_many else ""),
    )  # fmt: skip
    expanded = distinct * _cells_of_a_vector(axes, present)
    apart = by_vectors or ("takes one dictionary, and there are several" if several else "")
    distributed = Cost("shuffle", expanded, expanded * 16, _TASK_BYTES, apart)
    costs = [dense, in_order, distributed]
    if frequent:
        costs[-1] = replace(distributed, plan="iceberg", refused=by_hierarchy)
    by_name = {cost.plan: cost for cost in costs}
    if counting.plan != "auto":
        forced = by_name.get(counting.plan)
        if forced is None or forced.refused:
            others = [cost.plan for cost in costs if not cost.refused]
            why = forced.refused if forced is not None else "is not for this policy"
            raise InputError(
                f"counting.plan: '{counting.plan}' {why}; use "
                + " or ".join(f"'{name}'" for name in (*others, "auto"))
                + "."
            )
        return PlanChoice(forced.plan, cells, f"forced by counting.plan; dense would hold {fits}", tuple(costs))
    chosen = next((cost for cost in costs if not cost.refused), None)
    if chosen is None:
        raise InputError(
            "counting.plan: there is none for this dictionary; "
            + " | ".join(f"{cost.plan} {cost.refused}" for cost in costs)
            + "."
        )
    by_sort = "the search reads vectors" if single else f"the cube does not fit: {fits}"
    reason = {
        "dense": f"the cube fits: {fits}",
        "sorted": f"{alone or by_sort}; {room}",
        "shuffle": alone or f"neither the cube nor the vectors fit: {fits}; {room}",
        "iceberg": f"neither the cube nor the vectors fit: {fits}; {room}",
    }[chosen.plan]
    settled = chosen.plan != "sorted" or vectors is not None or distinct <= counting.sorted_vectors
    return PlanChoice(chosen.plan, cells, reason, tuple(costs), settled)


def _with_joins(axis: Axis, present: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Codes of an attribute where persons are counted: those it can have, and the joins of them."""
    if not axis.known:
        return present
    n_nodes = len(axis.at_depth)
    return np.union1d(present, np.arange(n_nodes, n_nodes + len(axis.branching))).astype(np.int32)


def _cells_of_a_vector(axes: Sequence[Axis], present: Sequence[npt.NDArray[np.int32]]) -> int:
    """Cells a dictionary vector is consistent with, on average over the codes an attribute can have."""
    return max(1, round(prod(_mean_classes(axis, codes) for axis, codes in zip(axes, present, strict=True))))


def _mean_classes(axis: Axis, codes: npt.NDArray[np.int32]) -> float:
    _, matrix = incidence(axis, codes)
    return float(matrix.nnz / max(1, matrix.shape[1]))


def plans_in_words(choices: Mapping[str, PlanChoice]) -> str:
    """Return the plan of the dictionary, or of each by name."""
    plans = {name: choice.plan for name, choice in choices.items()}
    return (
        ", ".join(f"{name}: {plan}" for name, plan in plans.items()) if len(plans) > 1 else next(iter(plans.values()))
    )


def explained(choice: PlanChoice, *, name: str) -> list[str]:
    """Lines for a person: the plan of one dictionary, and what each would cost at most."""
    later = "" if choice.settled else "; 'shuffle' instead if the distinct vectors turn out too many"
    lines = [f"counting plan of {name}: {choice.plan} ({choice.reason}){later}"]
    for cost in choice.costs:
        if cost.refused:
            lines.append(f"  {cost.plan}: {cost.refused}")
        else:
            assert cost.rows is not None
            assert cost.bytes is not None
            assert cost.memory is not None
            lines.append(
                f"  {cost.plan}: at most {cost.rows:,} rows, {_size(cost.bytes)} moved, {_size(cost.memory)} held"
            )
    return lines


def _size(number: int) -> str:
    """Bytes for a person."""
    return f"{number / 2**20:,.1f} MiB" if number >= 2**20 else f"{number / 2**10:,.1f} KiB"


def plan_of(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    one: OneDictionary,
    *,
    rows: int | None = None,
    vectors: int | None = None,
) -> PlanChoice:
    """Choose the plan of one of the policy's dictionaries; see :func:`privrisk_spark.planning.counting.choose_plan`."""
    return choose_plan(
        policy.counting,
        axes(policy, hierarchies, one),
        possible_codes(hierarchies, one),
        similar=policy.dictionary.consistency == "similar",
        entities=entity_of(policy, one) is not None,
        frequent=not policy.decides,
        several=len(policy.dictionaries) > 1 or compared(policy),
        single=policy.decision is not None and decides_records(decision_of(policy).choice(hierarchies).method),
        rows=rows,
        vectors=vectors,
    )


def compared(policy: Policy) -> bool:
    """Whether the decisions are held against a second dictionary, by counts the driver holds."""
    return isinstance(policy.dictionary, EstimatedDictionary) and policy.dictionary.against is not None
