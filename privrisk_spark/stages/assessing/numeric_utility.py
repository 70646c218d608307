"""Utility of masked numbers: two passes over records beside their released forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Scratch, in_chunks, report
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.measures.numeric_utility import (
    NumericMeans,
    NumericSpread,
    column_utility,
    correlation_change,
    eigenvalue_change,
)
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.matched import Matched


def collect_numeric_utility(
    scratch: Scratch, matched: Matched, columns: Sequence[str], of: Mapping[str, object]
) -> Iterator[Measured]:
    """Distance, moments, correlations and eigenvalues of masked numbers against the original ones.

    Parameters
    ----------
    matched : Matched
        With the numbers ``x<j>`` and ``y<j>`` of the j-th column.
    columns : sequence of str
        Names of the columns, by number.
    of : mapping
        Parameters of the measures.
    """
    if not columns:
        return
    p = len(columns)

    def averaged(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield report("", {"means": NumericMeans.of(_side(table, "x", p), _side(table, "y", p))})

    parts = scratch.collect_parts(matched.rows.then(averaged, PARTS))
    means = folded(NumericMeans.empty(p), [from_json(NumericMeans, part["means"]) for part in parts])

    def spread_about(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            found = NumericSpread.of(_side(table, "x", p), _side(table, "y", p), means)
            yield report("", {"spread": found})

    parts = scratch.collect_parts(matched.rows.then(spread_about, PARTS))
    spread = folded(NumericSpread.empty(p), [from_json(NumericSpread, part["spread"]) for part in parts])
    constant = {"reason": "the column does not vary, or no record has a number on both sides"}
    each = column_utility(means, spread)
    for name, attribute in (("masked_distance", "il1s"), ("mean_shift", "mean_shift"), ("variance_ratio",) * 2):
        for column, found in zip(columns, each, strict=True):
            value = getattr(found, attribute)
            yield Measured(name, value, {**of, "column": column, **(constant if value is None else {})})
    if p > 1:
        for name, value in (
            ("correlation_change", correlation_change(spread)),
            ("eigenvalue_change", eigenvalue_change(spread)),
        ):
            yield Measured(name, value, {**of, **(constant if value is None else {})})


def _side(table: pa.Table, side: str, p: int) -> FloatArray:
    """Numbers of the original records, ``x``, or of their masked forms, ``y``; float64 (n, p)."""
    return np.column_stack([table.column(f"{side}{j}").to_numpy() for j in range(p)])
