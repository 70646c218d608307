"""Segments of an order masked by tasks, and what they found dealt back to the parts the records are held in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.engine.slices import read_slices, write_slices
from privrisk_spark.extensions.perturb.kernels.microaggregation import (
    blocks_along_first_axis,
    centroids,
    first_axis,
    information_loss,
    mdav,
    univariate_optimal,
    v_mdav,
)
from privrisk_spark.extensions.perturb.kernels.rank_swapping import partners_within, swap_width
from privrisk_spark.extensions.perturb.kernels.shuffling import shuffled
from privrisk_spark.extensions.perturb.planning import GAMMA, SAMPLED_ROWS, Arranged, Segment, segments_of
from privrisk_spark.extensions.perturb.results import BlockLoss
from privrisk_spark.extensions.perturb.stages.arranging import DRAW, PART, ROW, WORD, Arrangement
from privrisk_spark.extensions.perturb.stages.held import Held, patterns_of
from privrisk_spark.extensions.perturb.stages.keys import record_words
from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray
from privrisk_spark.kernels.random.normals import normals
from privrisk_spark.policy.masking import Microaggregation, RankSwapping
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True, eq=False)
class Solved:
    """Masked numbers of columns, by the part their records are held in.

    Attributes
    ----------
    names : tuple of str
        One of each segment.
    suppressed : int
        Values that are missing as too few records lack the same columns.
    """

    columns: tuple[str, ...]
    directory: PartDirectory
    names: tuple[str, ...]
    suppressed: int

    def of_part(self, number: int, rows: int) -> FloatArray:
        """Masked numbers of the records of a part, in a task: shape (rows, columns), NaN where missing."""
        result = np.full((rows, len(self.columns)), np.nan)
        found = read_slices(self.directory, self.names, number)
        if found is not None:
            at = found.column(ROW).to_numpy()
            for i in range(len(self.columns)):
                result[at, i] = found.column(f"m{i}").to_numpy()
        return result


def collect_solved(scratch: Scratch, held: Held, arrangement: Arrangement, *, store: str) -> Solved:
    """Mask the segments of an order, a task each.

    Parameters
    ----------
    store : str
        Name of a new directory in the scratch directory.
    """
    one, directory, n_parts = arrangement.one, scratch.directory(store), len(held.names)
    patterns = held.patterns[one.label]
    segments = segments_of(one, patterns)
    means, spread = held.scales(one.columns)
    middles, _ = held.scales(one.known)
    width = 0
    if isinstance(one.mask, RankSwapping):
        width = swap_width(sum(patterns.values()), one.mask.percent)

    def solve(number: int) -> Iterator[pa.Table]:
        segment = segments[number]
        table = arrangement.between(segment.begin, segment.end)
        values = np.column_stack([table.column(f"x{i}").to_numpy() for i in range(len(one.columns))])
        known = [table.column(f"z{i}").to_numpy() for i in range(len(one.known))]
        there = np.column_stack(known) if known else np.zeros((len(values), 0))
        there = np.where(np.isnan(there), middles, there)
        draws = table.column(DRAW).to_numpy()
        masked = _masked(one, segment, values, there, draws, (means, spread), width)
        lost = int(np.count_nonzero(np.isnan(masked) & ~np.isnan(values)))
        dealt = pa.table({ROW: table.column(ROW), **{f"m{i}": masked[:, i] for i in range(masked.shape[1])}})
        part = table.column(PART).to_numpy().astype(np.int64)
        yield report(write_slices(dealt, part, n_parts, directory), {"suppressed": lost})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(segments)), solve, PARTS))
    return Solved(
        one.columns, directory, tuple(part["name"] for part in parts), sum(part["suppressed"] for part in parts)
    )


def _masked(
    one: Arranged,
    segment: Segment,
    values: FloatArray,
    known: FloatArray,
    draws: WordArray,
    scales: tuple[FloatArray, FloatArray],
    width: int,
) -> FloatArray:
    """Masked values of a segment, in its order."""
    if segment.suppressed:
        return np.full_like(values, np.nan)
    mask = one.mask
    if isinstance(mask, RankSwapping):
        return values[partners_within(width, draws)]
    if isinstance(mask, Microaggregation):
        there = [i for i in range(values.shape[1]) if not (one.together and segment.pattern >> i & 1)]
        means, spread = scales
        points = (values[:, there] - means[there]) / spread[there]
        groups = _groups(mask, points if one.together else values[:, 0])
        result = np.full_like(values, np.nan)
        result[:, there] = centroids(values[:, there], groups)[groups]
        return result
    return shuffled(values, known, normals(draws)[:, None])


def _groups(mask: Microaggregation, points: FloatArray) -> LongArray:
    if mask.algorithm == "univariate":
        return univariate_optimal(points, mask.k)
    if mask.algorithm == "v-mdav":
        return v_mdav(points, mask.k, GAMMA if mask.gamma is None else mask.gamma)
    return mdav(points, mask.k)


def measure_block_loss(scratch: Scratch, held: Held, one: Arranged, key: bytes) -> BlockLoss:
    """Compare MDAV in blocks with MDAV over all records, on a sample that is drawn by key.

    Parameters
    ----------
    one : Arranged
        Columns that are aggregated in blocks.
    key : bytes
        Of the words of its records.

    Notes
    -----
    Of the sample a quarter is a block, far less than of a whole table, so that more groups lie at the edges of blocks.
    It is of the records that lack what most of them lack, mostly nothing.
    """
    patterns = held.patterns[one.label]
    pattern = min(patterns, key=lambda bits: (-patterns[bits], bits))
    there = [i for i in range(len(one.columns)) if not pattern >> i & 1]
    of_all = held.scales(one.columns)
    means, spread = (of[there] for of in of_all)
    below = min(1.0, SAMPLED_ROWS / patterns[pattern])
    limit = np.uint64(min(int(below * 2**64), 2**64 - 1))

    def read(number: int) -> Iterator[pa.Table]:
        table = held.part(number)
        words = record_words(key, table)
        numbers = held.numbers(table, one.columns)
        lacks, takes_part = patterns_of(one, numbers)
        rows = np.flatnonzero((words[:, 0] <= limit) & takes_part & (lacks == pattern))
        columns = {f"x{i}": numbers[rows, i] for i in there}
        # Signed, as Spark has no others; put back below.
        yield pa.table({**columns, WORD: words[rows, 0].view(np.int64), DRAW: words[rows, 1].view(np.int64)})

    schema = T.StructType(
        [
            *(T.StructField(f"x{i}", T.DoubleType()) for i in there),
            *(T.StructField(name, T.LongType()) for name in (WORD, DRAW)),
        ]
    )
    found = Batches.of_parts(scratch.spark, range(len(held.names)), read, schema).frame().toArrow()
    order = np.lexsort([found.column(name).to_numpy().view(np.uint64) for name in (DRAW, WORD)])
    columns = [found.column(f"x{i}").to_numpy() for i in there]
    points = ((np.column_stack(columns) - means) / spread)[order]
    assert isinstance(one.mask, Microaggregation)
    axis = first_axis(held.groups[one.label].correlation)
    scores = np.zeros(len(points))
    for j, i in enumerate(there):
        scores += axis[i] * points[:, j]
    block = blocks_along_first_axis(scores, max(2 * one.mask.k, len(points) // 4))
    groups, first = np.zeros(len(points), dtype=np.int64), 0
    for number in range(int(block.max()) + 1):
        rows = np.flatnonzero(block == number)
        groups[rows] = _groups(one.mask, points[rows]) + first
        first = int(groups[rows].max()) + 1
    exact = _groups(one.mask, points)
    return BlockLoss(one.label, len(points), information_loss(points, exact), information_loss(points, groups))
