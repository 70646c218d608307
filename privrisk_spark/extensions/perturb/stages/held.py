"""Records held as parts with the numbers that are masked, and what is known of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, decoded, in_chunks, read_ipc, report, write_ipc
from privrisk_spark.engine.number_texts import as_texts, dictionary_of
from privrisk_spark.errors import SchemaError
from privrisk_spark.extensions.perturb.planning import MOST_CATEGORIES, Arranged, MaskPlan
from privrisk_spark.extensions.perturb.stages.numbers import doubles_of
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.measures.interval_disclosure import Deviation
from privrisk_spark.kernels.numeric.covariance import CrossMoments
from privrisk_spark.kernels.numeric.exact_sums import UNIT_BITS
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.policy.masking import Pram
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True, eq=False)
class Held:
    """Records as HELD, in parts, and what is known of all of them.

    Attributes
    ----------
    names : tuple of str
        Of the parts.
    schema : StructType
        Of the table as it was encoded: ids and released columns.
    columns : tuple of str
        Released columns, in their order.
    missing : dict of column to records without a value
        Of the masked ones.
    deviations : dict of column to Deviation
        Of the numbers.
    together : CrossMoments
        Of all numbers.
    groups : dict of label or columns to CrossMoments
        Of columns that are masked together.
    categories : dict of column to counts of its texts
        Of the columns that are post-randomized.
    patterns : dict of label to records by pattern
        Of what is arranged.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    schema: T.StructType
    columns: tuple[str, ...]
    plan: MaskPlan
    rows: int
    missing: dict[str, int]
    deviations: dict[str, Deviation]
    together: CrossMoments
    groups: dict[str, CrossMoments]
    categories: dict[str, dict[str, int]]
    patterns: dict[str, dict[int, int]]

    def position(self, name: str) -> int:
        """Position of a released column."""
        return self.columns.index(name)

    def frame(self, spark: SparkSession) -> Batches:
        """Hand the numbers to Spark."""
        names = schemas.doubles(self.position(name) for name in self.plan.numbers)
        parts, schema = self.names, T.StructType([T.StructField(name, T.DoubleType()) for name in names])

        def read(name: str) -> Iterator[pa.Table]:
            yield read_ipc(self.directory, name).select(names)

        return Batches.of_parts(spark, parts, read, schema)

    def part(self, number: int) -> pa.Table:
        """Map a part, in a task."""
        return read_ipc(self.directory, self.names[number])

    def numbers(self, table: pa.Table, names: Sequence[str]) -> FloatArray:
        """Numbers of columns of a part, shape (n, c)."""
        held = [table.column(f"d{self.position(name)}").to_numpy() for name in names]
        result: FloatArray = np.column_stack(held) if held else np.zeros((table.num_rows, 0))
        return result

    def scales(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Means of columns, and their standard deviations, 1 of a column of one value."""
        means = np.array([mean_of(self.deviations[name]) for name in names])
        spread = np.array([float(self.deviations[name].variance) ** 0.5 for name in names])
        return means, np.where(spread > 0, spread, 1.0)


def mean_of(moments: Deviation) -> float:
    """Correctly rounded mean; 0 of nothing."""
    return float(Fraction(moments.total, moments.weight << UNIT_BITS)) if moments.weight else 0.0


def patterns_of(one: Arranged, numbers: FloatArray) -> tuple[LongArray, BoolArray]:
    """Return which columns each record lacks, and whether it takes part at all.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n, c)
        Of its columns, NaN where missing.

    Returns
    -------
    ndarray of int64, shape (n,)
        As :class:`privrisk_spark.extensions.perturb.planning.Segment` has it.
    ndarray of bool, shape (n,)
        A record without any value does not.
    """
    lacks: BoolArray = np.isnan(numbers)
    there: BoolArray = np.asarray(~lacks.all(axis=1), dtype=np.bool_)
    if one.together:
        bits: LongArray = np.zeros(len(numbers), dtype=np.int64)
        for i in range(numbers.shape[1]):
            bits |= lacks[:, i].astype(np.int64) << i
        return bits, there
    return np.zeros(len(numbers), dtype=np.int64), there


def collect_held(scratch: Scratch, encoded: Batches, columns: Sequence[str], plan: MaskPlan) -> Held:
    """Write the records with their numbers, and learn what the masks need of all of them.

    Parameters
    ----------
    encoded : Batches
        ENCODED, with ``block``.
    columns : sequence of str
        Released columns, in their order.

    Raises
    ------
    SchemaError
        If there are values that cannot be masked, or too many categories.
    """
    directory, names = scratch.directory("held"), tuple(columns)
    numbers = [names.index(name) for name in plan.numbers]
    chances = [name for name, mask in plan.masks.items() if isinstance(mask, Pram)]
    together = _together(plan)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in in_chunks(tables):
            table = decoded(rows)
            found, beyond = {}, {}
            for name, j in zip(plan.numbers, numbers, strict=True):
                found[name], beyond[name] = doubles_of(table.column(f"r{j}"))
                table = table.append_column(f"d{j}", pa.array(found[name]))
            n = table.num_rows
            finite = {name: np.where(np.isinf(of), np.nan, of) for name, of in found.items()}

            patterns = {}
            for one in plan.arranged:
                pattern, there = patterns_of(one, matrix_of(finite, one.columns, n))
                values, times = np.unique(pattern[there], return_counts=True)
                patterns[one.label] = dict(zip(map(str, values.tolist()), times.tolist(), strict=True))
            facts: dict[str, Any] = {
                "rows": table.num_rows,
                "beyond": beyond,
                "missing": {
                    name: int(np.count_nonzero(np.isnan(found[name])))
                    if name in found
                    else table.column(f"r{names.index(name)}").null_count
                    for name in plan.masks
                },
                "deviations": {name: Deviation.of(of) for name, of in finite.items()},
                "together": CrossMoments.of(matrix_of(finite, plan.numbers, n)),
                "groups": {label: CrossMoments.of(matrix_of(finite, of, n)) for label, of in together.items()},
                "categories": {name: _counts(table.column(f"r{names.index(name)}")) for name in chances},
                "patterns": patterns,
            }
            yield report(write_ipc(table, directory), facts)

    parts = scratch.collect_parts(encoded.then(step, PARTS))
    _refuse_beyond(plan, parts)
    categories = {name: _summed(part["categories"][name] for part in parts) for name in chances}
    _refuse_many(categories)
    return Held(
        directory,
        tuple(part["name"] for part in parts),
        encoded.schema,
        names,
        plan,
        sum(part["rows"] for part in parts),
        {name: sum(part["missing"][name] for part in parts) for name in plan.masks},
        {name: folded_dicts(Deviation.empty(), [part["deviations"][name] for part in parts]) for name in plan.numbers},
        folded_dicts(CrossMoments.empty(len(numbers)), [part["together"] for part in parts]),
        {
            label: folded_dicts(CrossMoments.empty(len(of)), [part["groups"][label] for part in parts])
            for label, of in together.items()
        },
        categories,
        {
            one.label: {
                int(pattern): rows for pattern, rows in _summed(part["patterns"][one.label] for part in parts).items()
            }
            for one in plan.arranged
        },
    )


def matrix_of(columns: Mapping[str, FloatArray], names: Sequence[str], rows: int) -> FloatArray:
    """Columns by name as a matrix, shape (rows, number of names)."""
    return np.column_stack([columns[name] for name in names]) if names else np.zeros((rows, 0))


def _together(plan: MaskPlan) -> dict[str, tuple[str, ...]]:
    """Columns of which covariances are needed, by label, and of noise by their names."""
    return {
        **{one.label: one.columns for one in plan.arranged if one.together},
        **{"+".join(group.columns): group.columns for group in plan.noise if len(group.columns) > 1},
    }


def _counts(values: pa.ChunkedArray) -> dict[str, int]:
    distinct, place = dictionary_of(values)
    texts = as_texts(distinct).to_pylist()
    if len(texts) > MOST_CATEGORIES:
        return dict.fromkeys(texts[: MOST_CATEGORIES + 1], 1)
    times = np.bincount(pc.drop_null(place).to_numpy(zero_copy_only=False), minlength=len(texts))
    found: Counter[str] = Counter()
    for text, n in zip(texts, times, strict=True):
        found[text] += int(n)  # 0.0 and -0.0 have one text
    return {text: n for text, n in found.items() if n}


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _refuse_beyond(plan: MaskPlan, parts: Sequence[Mapping[str, Any]]) -> None:
    faults = []
    for name in plan.numbers:
        beyond = sum(part["beyond"][name] for part in parts)
        if beyond:
            faults.append(
                f"columns.{name}.mask: {beyond:,} values are infinite or beyond 2^53 and cannot be masked as numbers; "
                f"say what they mean in columns.{name}.read.null_if or .map, or mend them."
            )
    if faults:
        raise SchemaError(" | ".join(faults))


def _refuse_many(categories: Mapping[str, Mapping[str, int]]) -> None:
    faults = [
        f"columns.{name}.mask: 'pram' takes a column of at most {MOST_CATEGORIES:,} categories, and there are more; "
        f"make it coarser when it is read (columns.{name}.read.map), or choose another method."
        for name, counts in categories.items()
        if len(counts) > MOST_CATEGORIES
    ]
    if faults:
        raise SchemaError(" | ".join(faults))
