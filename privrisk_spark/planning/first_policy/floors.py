"""The floor that is proposed: a share of the greatest utility, by what it does to a sample of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.kernels.search.floors import Floored, FloorSearch, highest_floor
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of, greatest_utility
from privrisk_spark.planning.first_policy.hierarchies import tidied_rows
from privrisk_spark.planning.search import lattice_size
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.first_policy import FloorFigures, FloorTable

MOST_LOOKS = 4_000_000
"""Rows that are decided times generalizations of each, at most; but always :data:`LEAST_DECIDED` rows."""

LEAST_DECIDED = 1_000
COUNTED_ROWS = 30_000
"""Rows of the sample that others are decided against, at most."""

ALIKE = 5
"""Rows that a released row should fit; in a table of fewer than a hundred rows two."""

FEW = 0.05
"""Most rows that may fit fewer, as a share."""

SHARES = tuple(share / 20 for share in range(2, 19))
"""Of the greatest utility: the floors that are tried."""

_BESIDE = 2
"""Floors told beside the one proposed lie so many twentieths below and above it."""


def encoded(policy: Policy, sample: Mapping[str, Sequence[str | None]]) -> tuple[dict[str, Hierarchy], IntArray]:
    """Return the hierarchies of a sample's values, and its codes.

    Parameters
    ----------
    sample : mapping of quasi-identifier to texts
        As the table has them; they are tidied as the policy says.

    Returns
    -------
    hierarchies : dict of quasi-identifier to Hierarchy
    codes : ndarray of int32, shape (n, k)
        Leaf codes; ⊥ for what is missing or outside the hierarchy.
    """
    hierarchies: dict[str, Hierarchy] = {}
    columns = []
    for name, column in policy.quasi_identifiers.items():
        read = {} if column.read is None else column.read.model_dump()
        texts = tidied_rows(sample[name], read)
        hierarchy = build(column.hierarchy, name, values={text for text in texts if text is not None})
        suppressed = len(hierarchy.ancestor) - 1
        codes = hierarchy.encode(texts)
        columns.append(np.where(codes < 0, suppressed, codes).astype(np.int32))
        hierarchies[name] = hierarchy
    return hierarchies, np.column_stack(columns)


def propose_floor(policy: Policy, sample: Mapping[str, Sequence[str | None]], *, table_rows: int) -> FloorTable:
    """Propose a floor, and tell what it and two others would give.

    It is the highest share of the greatest utility, in steps of a twentieth, at which no more than :data:`FEW` of the
    rows fit fewer than :data:`ALIKE` rows; the lowest where none does.

    Parameters
    ----------
    policy : Policy
        With a floor, which is not looked at.
    sample : mapping of quasi-identifier to texts
        At least one row.
    table_rows : int
        Of the table.
    """
    hierarchies, codes = encoded(policy, {name: texts[:COUNTED_ROWS] for name, texts in sample.items()})
    of_axes = axes(policy, hierarchies)
    alike = ALIKE if table_rows >= 100 else 2
    decided = min(len(codes), max(LEAST_DECIDED, MOST_LOOKS // lattice_size(hierarchies)))
    disclosure = disclosure_of(policy, hierarchies, of_axes)
    search = FloorSearch(disclosure, of_axes, codes, alike=alike, decided=decided)
    greatest = greatest_utility(policy, hierarchies)
    at = cache(search.at)
    floors = [_written(share * greatest) for share in SHARES]
    found = highest_floor(at, floors, few=FEW)
    chosen = 0 if found is None else found
    last = len(floors) - 1
    places = sorted({max(0, chosen - _BESIDE), chosen, min(last, chosen + _BESIDE)})
    names = list(hierarchies)
    figures = {place: _figures(at(floors[place]), SHARES[place], greatest, names) for place in places}
    if found is None:
        reason = (
            f"At every floor that was tried more than {100 * FEW:.0f} % of the rows fit fewer than {alike}; the "
            "lowest is proposed."
        )
    else:
        reason = (
            f"Proposed is the highest floor, in steps of a twentieth, at which at most {100 * FEW:.0f} % of the rows "
            f"fit fewer than {alike}."
        )
    return FloorTable(
        greatest=greatest,
        rows=len(codes),
        decided=decided,
        table_rows=table_rows,
        alike=alike,
        before=at(floors[chosen]).mean_before,
        chosen=figures[chosen],
        figures=tuple(figures.values()),
        reason=reason,
    )


def _written(floor: float) -> float:
    """A floor with three digits, rounded down: a share of the greatest utility must stay within reach."""
    text = f"{floor:.3g}"
    rounded = float(text)
    return rounded if rounded <= floor else float(f"{floor * (1 - 0.005):.3g}")


def _figures(found: Floored, share: float, greatest: float, names: Sequence[str]) -> FloorFigures:
    return FloorFigures(
        share=share,
        floor=found.floor,
        mean_risk=found.mean_risk,
        greatest_risk=found.greatest_risk,
        few_alike=found.few_alike,
        kept=found.utility / greatest if greatest else 0.0,
        suppressed_rows=found.infeasible,
        suppressed={name: round(share, 6) for name, share in zip(names, found.suppressed.tolist(), strict=True)},
    )
