"""Where the aggregate model of a run jumps: the crossings of its records, measured over the whole table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.counts import SpreadVectors, StoredAttacker, StoredCounts
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.kernels.search.crossing import crossings
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import Section

_PER_DECADE = 50
"""Steps in which quantiles are counted: they are right to 2.4 %."""


@dataclass(frozen=True)
class CrossingFacts:
    """Crossings ``λ*`` of the records of a table.

    Attributes
    ----------
    trade_off : float
        The policy's ``λ``.
    passed : int
        Records whose crossing ``λ`` has reached.
    never : int
        Records without a crossing, released as they are whatever ``λ``.
    least, most : float
        Of those that have one; infinity and minus infinity if none has.
    quantiles : tuple of float
        The 10th, 50th and 90th percentile of those that have one, within 2.4 %; empty if none has.
    """

    trade_off: float
    rows: int
    passed: int
    never: int
    least: float
    most: float
    quantiles: tuple[float, ...]

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]], trade_off: float) -> CrossingFacts:
        """Put the facts of the parts together."""
        steps: Counter[int | None] = Counter()
        for part in parts:
            steps.update({None if step is None else int(step): rows for step, rows in part["steps"]})
        order = sorted(steps, key=lambda step: -inf if step is None else step)
        cumulative = np.cumsum([steps[step] for step in order])
        there = int(cumulative[-1]) if len(order) else 0
        at = [order[int(np.searchsorted(cumulative, ceil(q * there)))] for q in (0.1, 0.5, 0.9) if there]
        least = min((part["least"] for part in parts), default=inf)
        most = max((part["most"] for part in parts), default=-inf)
        return cls(
            trade_off=trade_off,
            rows=sum(part["rows"] for part in parts),
            passed=sum(part["passed"] for part in parts),
            never=sum(part["rows"] for part in parts) - there,
            least=least,
            most=most,
            quantiles=tuple(min(max(0.0 if step is None else 10 ** (step / _PER_DECADE), least), most) for step in at),
        )

    def section(self) -> Section:
        """Return the facts for the vault's report."""
        text = (
            "The aggregate model is nearly all or nothing. As λ passes a record's crossing λ*, its optimum jumps from "
            "the release as it is to the suppression of all but about one attribute; hardly anything between is ever "
            f"best. At λ = {self.trade_off:g} that is so of {self.passed:,} of {self.rows:,} records. For graded "
            "answers use the problem 'min-risk' with a floor of utility, or 'max-utility' with a ceiling of risk."
        )
        facts: dict[str, str | int | float] = {"records past their crossing": self.passed}
        if self.quantiles:
            low, median, high = self.quantiles
            facts |= {
                "smallest crossing": self.least,
                "10th percentile (within 2.4 %)": low,
                "median (within 2.4 %)": median,
                "90th percentile (within 2.4 %)": high,
                "largest crossing": self.most,
            }
        facts["records without a crossing"] = self.never
        figures = {
            "lambda": self.trade_off,
            "rows": self.rows,
            "passed": self.passed,
            "never": self.never,
            "least": self.least if self.quantiles else None,
            "most": self.most if self.quantiles else None,
            "percentiles_10_50_90": list(self.quantiles),
        }
        return Section("crossing", "All or nothing", text, "tested", facts, figures=as_json(figures))


def collect_crossings(
    scratch: Scratch,
    encoded: Batches,
    disclosure: Disclosure,
    objective: GreatestAggregate,
    policy: Policy,
    attributes: Sequence[str],
    counted: Sequence[StoredCounts | SpreadVectors],
) -> CrossingFacts | None:
    """Measure the crossings of a table's records.

    Parameters
    ----------
    encoded : Batches
        The table, resolved.
    objective : GreatestAggregate
        That was decided by.
    attributes : sequence of k str

    Returns
    -------
    CrossingFacts or None
        None if a dictionary's counts are left distributed, as they are not kept then.
    """
    stored = [counts for counts in counted if isinstance(counts, StoredCounts)]
    if len(stored) < len(counted):
        return None
    trade_off, k = objective.trade_off, len(attributes)
    attacker, weights = StoredAttacker.of(policy, stored), WeightColumns.of_policy(policy, list(attributes))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            given = floats(table, schemas.weights(weights.n))
            found = crossings(
                disclosure,
                objective,
                attacker.load(),
                integers(table, schemas.codes(k)),
                personal=weights.personal(given),
                record_weight=weights.of_record(given),
            )
            yield report("crossings", _facts(found, trade_off))

    return CrossingFacts.of(scratch.collect_parts(encoded.then(step, PARTS)), trade_off)


def _facts(crossing: np.ndarray[Any, np.dtype[np.float64]], trade_off: float) -> dict[str, Any]:
    """Facts of a chunk; a crossing of 0 has no step of its own."""
    finite = crossing[np.isfinite(crossing)]
    positive = finite[finite > 0]
    step, rows = np.unique(np.rint(np.log10(positive) * _PER_DECADE).astype(np.int64), return_counts=True)
    steps: list[tuple[int | None, int]] = list(zip(step.tolist(), rows.tolist(), strict=True))
    if len(positive) < len(finite):
        steps.append((None, len(finite) - len(positive)))
    return {
        "rows": len(crossing),
        "passed": int(np.count_nonzero(crossing <= trade_off)),
        "least": float(finite.min(initial=inf)),
        "most": float(finite.max(initial=-inf)),
        "steps": steps,
    }
