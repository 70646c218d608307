"""Small disclosures, their counts, and records of them: for tests of risk at given levels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility

Rows = np.ndarray


def counts_of(axes: list[Axis], rows: Rows, plan: str = "dense") -> Counts:
    rows = np.asarray(rows, dtype=np.int32).reshape(-1, len(axes))
    vectors, n = np.unique(rows, axis=0, return_counts=True)
    make = DenseCounts.roll_up if plan == "dense" else SortedCounts.group
    return make(axes, vectors.astype(np.int32), n.astype(np.int64))


def disclosure_of(
    hierarchies: list[Hierarchy], *, form: str = "linear", model: str = "I", weights: Any = None
) -> Disclosure:
    weights = weights or [1.0] * len(hierarchies)
    return Disclosure(
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(Axis(h.at_depth, h.ancestor).code_depth for h in hierarchies),
        utility=tuple(node_utility("depth", h.depth, h.n_under) for h in hierarchies),
        sensitivity=Sensitivity(
            form,  # type: ignore[arg-type]
            tuple(
                harmonic_weights(h.parent, h.depth, h.n_leaves, np.full(h.n_leaves, w))
                for h, w in zip(hierarchies, weights, strict=True)
            ),
        ),
        model=model,  # type: ignore[arg-type]
    )


@st.composite
def disclosures(draw: st.DrawFn, models: tuple[str, ...] = ("I", "II")) -> tuple[list[Hierarchy], Disclosure]:
    hierarchies = draw(several_hierarchies())
    form = draw(st.sampled_from(["constant", "linear", "record", "multiplicative"]))
    weights = [draw(st.sampled_from([0.0, 0.3, 2.0, math.inf])) for _ in hierarchies]
    return hierarchies, disclosure_of(hierarchies, form=form, model=draw(st.sampled_from(models)), weights=weights)


def leaf_rows(draw: Any, hierarchies: list[Hierarchy], least: int, most: int) -> Rows:
    n = draw(st.integers(least, most))
    rows = [[draw(st.integers(0, h.n_leaves - 1)) for h in hierarchies] for _ in range(n)]
    return np.array(rows, dtype=np.int32).reshape(-1, len(hierarchies))
