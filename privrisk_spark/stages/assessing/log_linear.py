"""Population uniques by log-linear models: each set in a task, which holds its distinct records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.kernels.measures.log_linear import MOST_CELLS, Effects, uniques_at_risk
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.classes import kept_tables
from privrisk_spark.stages.assessing.columns import KeptSet
from privrisk_spark.stages.assessing.records import CLASS_SIZE

_EFFECTS: tuple[Effects, ...] = ("main effects", "two-way")


def collect_log_linear(
    scratch: Scratch, kept: Sequence[KeptSet], fraction: float, of: Sequence[Mapping[str, object]]
) -> list[list[Measured]]:
    """Estimate τ₁ and τ₂ of each set by either model.

    Parameters
    ----------
    kept : sequence of KeptSet
        Whose classes a task can hold, and do not overlap.
    fraction : float
        Share of the population in the table.
    of : sequence of mapping
        Parameters of the measures of each.

    Returns
    -------
    list of list of Measured
        In order.
    """
    held = tuple(kept)
    if not held:
        return []

    def read(number: int) -> Iterator[pa.Table]:
        classes = kept_tables(held[number].directory, [{"name": part} for part in held[number].parts])
        there = classes.column(CLASS_SIZE).to_numpy() > 0
        nodes = np.column_stack([classes.column(name).to_numpy()[there] for name in schemas.nodes(held[number].k)])
        sizes = classes.column(CLASS_SIZE).to_numpy()[there]
        told = []
        for effects in _EFFECTS:
            found = uniques_at_risk(nodes, sizes, fraction, effects)
            told.append(None if found is None else [found.tau1, found.tau2, *found.interval])
        yield report("", {"number": number, "told": told})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(held)), read, PARTS))
    parts.sort(key=lambda part: part["number"])
    return [list(_measured(part["told"], fraction, about)) for part, about in zip(parts, of, strict=True)]


def _measured(told: Sequence[Sequence[float] | None], fraction: float, of: Mapping[str, object]) -> Iterator[Measured]:
    for effects, found in zip(_EFFECTS, told, strict=True):
        about = {**of, "model": f"log-linear, {effects}", "fraction": fraction}
        if found is None:
            reason = {"reason": f"the contingency table has more than {MOST_CELLS:,} cells; assess smaller sets"}
            yield from (Measured(name, None, {**about, **reason}) for name in ("tau_one", "tau_two"))
            continue
        first, second, low, high = found
        yield Measured("tau_one", first, {**about, "interval": [low, high]})
        yield Measured("tau_two", second, about)
