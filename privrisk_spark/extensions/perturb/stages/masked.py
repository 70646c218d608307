"""Every record masked and written: as TUPLES to be released, and with its id for the vault; what that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import to_arrow_type

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, materialized, part_name, report, write_ipc
from privrisk_spark.engine.number_texts import SPELLED, as_texts, dictionary_of
from privrisk_spark.engine.tuples import TupleParts, write_tuples
from privrisk_spark.errors import SchemaError
from privrisk_spark.extensions.perturb.kernels.coding import rounded, top_bottom
from privrisk_spark.extensions.perturb.kernels.noise import additive, correlated
from privrisk_spark.extensions.perturb.kernels.pram import perturbed
from privrisk_spark.extensions.perturb.planning import NoiseGroup, transitions
from privrisk_spark.extensions.perturb.results import BlockLoss, MaskedColumn, MaskingFacts, Moments
from privrisk_spark.extensions.perturb.stages.held import Held, matrix_of, mean_of
from privrisk_spark.extensions.perturb.stages.keys import MaskKeys, record_words
from privrisk_spark.extensions.perturb.stages.numbers import doubles_of, values_of
from privrisk_spark.extensions.perturb.stages.solving import Solved
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.measures.interval_disclosure import Deviation, IntervalTally, within
from privrisk_spark.kernels.numeric.covariance import CrossMoments
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.random.keyed import uniforms
from privrisk_spark.kernels.random.normals import normals
from privrisk_spark.policy.masking import Pram, Rounding, TopBottom
from privrisk_spark.storage.parts import PartDirectory

PERCENT = 10.0
"""Of the standard deviation, or of the ranks, in which the interval about a masked value is measured."""


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """The masked records.

    Attributes
    ----------
    tuples : TupleParts
        What is to be released.
    decision_names : tuple of str
        Parts with the id of each record and the values it is released with.
    compared : Batches
        ``o<i>`` and ``m<i>``, numbers of released column i before and after.
    parts : tuple of mapping
        What tasks found.
    """

    tuples: TupleParts
    decisions: PartDirectory
    decision_names: tuple[str, ...]
    compared: Batches
    parts: tuple[Mapping[str, Any], ...]


def collect_masked(
    scratch: Scratch,
    held: Held,
    solved: Sequence[Solved],
    keys: MaskKeys,
    bounds: Mapping[str, tuple[float | None, float | None]],
    *,
    record_id: str,
    files: int,
) -> MaskedRows:
    """Mask every record, and write it.

    Parameters
    ----------
    solved : sequence of Solved
        Of what depends on an order.
    bounds : mapping of column to its low and high bound
        Of the columns that are coded at top or bottom.
    record_id : str
        Name of the ids in the vault.
    files : int
        Files of the release.

    Raises
    ------
    SchemaError
        If a transition matrix lacks values that are there.
    """
    plan, columns = held.plan, held.columns
    chances = _chances(held)
    rounding = {name: float(mask.base) for name, mask in plan.masks.items() if isinstance(mask, Rounding)}
    of_noise = {name: keys.of(f"noise {name}") for group in plan.noise for name in group.columns}
    of_chance = {name: keys.of(f"pram {name}") for name in chances}
    widths = {name: held.deviations[name].width(PERCENT) for name in plan.numbers}
    kinds = {name: held.schema[f"r{held.position(name)}"].dataType for name in columns}
    numeric = plan.masked_numbers
    tuples, decisions = scratch.directory("tuples"), scratch.directory("decision-parts")
    while record_id in columns:  # one that was derived has no name of its own
        record_id = f"{record_id}_"
    compared = scratch.directory("compared")

    def masked_numbers(table: pa.Table, number: int) -> dict[str, FloatArray]:
        found: dict[str, FloatArray] = {}
        for one in solved:
            values = one.of_part(number, table.num_rows)
            found |= {name: values[:, i] for i, name in enumerate(one.columns)}
        for group in plan.noise:
            drawn = np.column_stack([normals(record_words(of_noise[name], table)[:, 0]) for name in group.columns])
            values = _noisy(held, group, held.numbers(table, group.columns), drawn)
            found |= {name: values[:, i] for i, name in enumerate(group.columns)}
        for name, (low, high) in bounds.items():
            own = held.numbers(table, [name])[:, 0]
            found[name] = own if low is None and high is None else top_bottom(own, low, high)
        for name, base in rounding.items():
            found[name] = rounded(held.numbers(table, [name])[:, 0], base)
        return found

    def mask_part(number: int) -> Iterator[pa.Table]:
        table = held.part(number)
        released = {name: table.column(f"r{held.position(name)}") for name in columns}
        facts: dict[str, Any] = {"columns": {}, "clipped": 0}
        after: dict[str, FloatArray] = {}
        for name, values in masked_numbers(table, number).items():
            # Of a column whose values are exchanged, what is exchanged are values, none of which needs to be rounded.
            made, clipped = values_of(values, kinds[name], released[name].type)
            facts["clipped"] += clipped
            released[name] = pa.chunked_array([made])
            after[name], _ = doubles_of(released[name])
            facts["columns"][name] = _compared(held.numbers(table, [name])[:, 0], after[name], widths[name])
        for name, (categories, matrix) in chances.items():
            drawn = uniforms(record_words(of_chance[name], table)[:, 0])
            made, changed = _by_chance(released[name], categories, matrix, drawn)
            facts["columns"][name] = {"missing": made.null_count, "changed": changed}
            released[name] = pa.chunked_array([made])
        facts["together"] = CrossMoments.of(matrix_of(after, numeric, table.num_rows))
        out = {f"r{i}": released[name] for i, name in enumerate(columns)}
        ones = pa.array(np.ones(table.num_rows, dtype=np.int64))
        facts["tuples"] = write_tuples(pa.table(out | {schemas.N_ROWS: ones}), tuples, files=files)
        facts["decisions"] = part_name("parquet")
        with decisions.writing(facts["decisions"]) as path:
            own = pa.table({record_id: table.column(schemas.RECORD_ID), **released})
            pq.write_table(own, path, store_schema=False)
        pairs: dict[str, FloatArray] = {}
        for name in numeric:
            pairs[f"o{held.position(name)}"] = held.numbers(table, [name])[:, 0]
            pairs[f"m{held.position(name)}"] = after[name]
        yield report(write_ipc(pa.table(pairs), compared), facts)

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(held.names)), mask_part, PARTS))
    fields = [T.StructField(f"{o}{held.position(name)}", T.DoubleType()) for name in numeric for o in ("o", "m")]
    names = [part["name"] for part in parts]
    return MaskedRows(
        TupleParts(tuples, tuple(part["tuples"] for part in parts), schemas.tuples(held.schema, 0)),
        decisions,
        tuple(part["decisions"] for part in parts),
        materialized(scratch.spark, compared, names, T.StructType(fields)),
        tuple(parts),
    )


def _noisy(held: Held, group: NoiseGroup, values: FloatArray, drawn: FloatArray) -> FloatArray:
    share = group.mask.share
    if len(group.columns) > 1:
        assert share is not None
        return correlated(values, drawn, held.groups["+".join(group.columns)].covariance, share)
    (name,) = group.columns
    deviation = group.mask.deviation
    if deviation is None:
        assert share is not None
        deviation = (share * float(held.deviations[name].variance)) ** 0.5
    return additive(values[:, 0], drawn[:, 0], deviation)[:, None]


def _chances(held: Held) -> dict[str, tuple[list[str], FloatArray]]:
    """Categories and transition matrix of every column that is post-randomized."""
    found, faults = {}, []
    for name, mask in held.plan.masks.items():
        if isinstance(mask, Pram):
            counts, kind = held.categories[name], held.schema[f"r{held.position(name)}"].dataType
            found[name] = transitions(mask, counts, numbers=isinstance(kind, SPELLED))
            categories = set(found[name][0])
            if len(categories) < len(found[name][0]):
                faults.append(f"columns.{name}.mask.matrix: two rows are of one value, such as 1 and 1.0; leave one.")
            try:
                pa.array(categories, pa.string()).cast(to_arrow_type(kind))
            except pa.ArrowInvalid:
                rule = f"a row is of a value that a column of {kind.simpleString()} cannot hold; leave it out"
                faults.append(f"columns.{name}.mask.matrix: {rule}.")
            rows = sum(times for category, times in counts.items() if category not in categories)
            if rows:
                faults.append(
                    f"columns.{name}.mask.matrix: {rows:,} rows have a value that has no row in it; give it one, or "
                    "write invariant: {keep: 0.8}."
                )
    if faults:
        raise SchemaError(" | ".join(faults))
    return found


def _by_chance(
    values: pa.ChunkedArray, categories: Sequence[str], matrix: FloatArray, drawn: FloatArray
) -> tuple[pa.Array, int]:
    """Values drawn by a transition matrix, and how many of them are others than before."""
    distinct, place = dictionary_of(values)
    known = pa.array(list(categories), pa.string())
    number = np.append(pc.index_in(as_texts(distinct), value_set=known).to_numpy(zero_copy_only=False), -1)
    codes = number[place.fill_null(len(distinct)).to_numpy(zero_copy_only=False)].astype(np.int32)
    if not len(categories):
        return pa.nulls(len(codes), values.type), 0
    became = perturbed(codes, matrix, drawn)
    texts = known.take(pa.array(np.maximum(became, 0), mask=became < 0))
    return texts.cast(values.type), int(np.count_nonzero(became != codes))


def _compared(before: FloatArray, after: FloatArray, width: float) -> dict[str, Any]:
    both = ~(np.isnan(before) | np.isnan(after))
    apart = np.abs(before[both] - after[both])
    return {
        "missing": int(np.count_nonzero(np.isnan(after))),
        "changed": int(
            np.count_nonzero(both & (before != after)) + np.count_nonzero(np.isnan(after) & ~np.isnan(before))
        ),
        "deviation": Deviation.of(after),
        "apart": ExactMean.of(apart, np.ones(len(apart), dtype=np.int64)),
        "within": IntervalTally.of(before, after, within(before, after, width)),
    }


def masking_facts(
    held: Held,
    rows: MaskedRows,
    solved: Sequence[Solved],
    losses: Sequence[BlockLoss],
    by_rank: Mapping[str, IntervalTally],
) -> MaskingFacts:
    """Put together what tasks found.

    Parameters
    ----------
    by_rank : mapping of column to IntervalTally
        Interval disclosure by ranks.
    """
    numeric = held.plan.masked_numbers
    after = folded_dicts(CrossMoments.empty(len(numeric)), [part["together"] for part in rows.parts])
    places = [held.plan.numbers.index(name) for name in numeric]
    before = held.together.correlation[np.ix_(places, places)]
    return MaskingFacts(
        rows=held.rows,
        columns=tuple(_column(held, rows, name, by_rank.get(name)) for name in held.plan.masks),
        numbers=numeric,
        correlations_before=_rows_of(before),
        correlations_after=_rows_of(after.correlation),
        losses=tuple(losses),
        suppressed=sum(one.suppressed for one in solved),
        clipped=sum(part["clipped"] for part in rows.parts),
        percent=PERCENT,
    )


def _rows_of(matrix: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


def _column(held: Held, rows: MaskedRows, name: str, by_rank: IntervalTally | None) -> MaskedColumn:
    found = [part["columns"][name] for part in rows.parts]
    said = held.plan.masks[name]
    plain = MaskedColumn(
        name,
        said.method,
        held.missing[name],
        sum(one["missing"] for one in found),
        sum(one["changed"] for one in found),
    )
    if name not in held.deviations:
        return plain
    before = _moments(held.deviations[name])
    after = _moments(folded_dicts(Deviation.empty(), [one["deviation"] for one in found]))
    apart = folded_dicts(ExactMean.empty(), [one["apart"] for one in found]).mean
    near = folded_dicts(IntervalTally.empty(), [one["within"] for one in found])
    return replace(
        plain,
        before=before,
        after=after,
        il1s=apart / (2**0.5 * before.deviation) if before.deviation > 0 else None,
        disclosed_by_rank=None if by_rank is None else by_rank.share,
        disclosed_by_deviation=near.share,
    )


def _moments(found: Deviation) -> Moments:
    return Moments(found.weight, mean_of(found), float(found.variance) ** 0.5)


def bounds_of(mask: TopBottom) -> tuple[float | None, float | None]:
    """Return the bounds a policy gives as values."""
    return (
        None if mask.low is None else float(mask.low),
        None if mask.high is None else float(mask.high),
    )
