"""Rows that people can have become, to somebody who is told how a table was masked; in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, read_ipc, report, write_ipc
from privrisk_spark.extensions.attack.kernels.assignment import Owners
from privrisk_spark.extensions.attack.planning.masks import ToldMask
from privrisk_spark.extensions.attack.stages.distance import slices
from privrisk_spark.extensions.perturb.kernels.candidates import (
    Bounds,
    axis_bounds,
    axis_scores,
    candidates,
    rank_bounds,
    value_bounds,
)
from privrisk_spark.extensions.perturb.kernels.coding import rounded, top_bottom
from privrisk_spark.extensions.perturb.kernels.rank_swapping import swap_width
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.policy.masking import Microaggregation, RankSwapping, Rounding, TopBottom
from privrisk_spark.storage.part_files import map_array, write_array

ROWS, HOLDS, PEOPLE = "rows", "holds", "people"


def bounds_of(
    told: ToldMask,
    known: Mapping[str, FloatArray],
    masked: Mapping[str, FloatArray],
    people: LongArray,
    rows: LongArray,
) -> tuple[Bounds, FloatArray]:
    """What the masked values of known records can be, by one mask.

    Parameters
    ----------
    known : mapping of column to ndarray of float64, shape (m,)
        Values of distinct people; NaN where not known.
    masked : mapping of column to ndarray of float64, shape (p,)
        Of distinct protected rows; NaN where missing.
    people, rows : ndarray of int64
        How many there are of each.

    Returns
    -------
    bounds : Bounds
        Of the m.
    values : ndarray of float64, shape (p,)
        Of the protected rows, or their scores on the axis of the columns that are masked together.
    """
    mask, name = told.mask, told.columns[0]
    mine, theirs = known[name], masked[name]
    if isinstance(mask, RankSwapping):
        every = np.repeat(theirs, rows)
        return rank_bounds(mine, every, swap_width(int(np.count_nonzero(~np.isnan(every))), mask.percent)), theirs
    if isinstance(mask, Microaggregation):
        if len(told.columns) > 1:
            of_people, of_rows = (np.column_stack([of[column] for column in told.columns]) for of in (known, masked))
            mine, theirs = axis_scores(of_people, of_rows, people)
        return axis_bounds(mine, theirs), theirs
    if isinstance(mask, Rounding):
        mine = rounded(mine, float(mask.base))
    elif isinstance(mask, TopBottom):
        # Bounds that are quantiles are seen: nothing is beyond them.
        seen = float(np.nanmin(theirs, initial=np.inf)), float(np.nanmax(theirs, initial=-np.inf))
        given = tuple(None if end is None else float(end) for end in (mask.low, mask.high))
        mine = top_bottom(mine, *(seen if mask.quantiles is not None else given))
    return value_bounds(mine), theirs


def collect_possible(
    scratch: Scratch,
    bounds: Sequence[Bounds],
    values: Sequence[FloatArray],
    rows: LongArray,
    owners: Owners,
    *,
    compared: int,
    name: str,
) -> tuple[LongArray, FloatArray, LongArray]:
    """Count the rows that each person can have become, in tasks.

    Parameters
    ----------
    bounds : sequence of Bounds
        Of each pair of the owners, one for each mask.
    values : sequence of ndarray of float64, shape (p,)
        Of the distinct protected rows, by each mask.
    rows : ndarray of int64, shape (p,)
    owners : Owners
        People and their own rows.
    compared : int
        Values that are held against bounds, about; it does not change a result.
    name : str
        Of the directories.

    Returns
    -------
    rows : ndarray of int64, shape (n,)
        Candidates, ascending.
    probability : ndarray of float64, shape (n,)
        That the own one is drawn of them.
    people : ndarray of int64, shape (n,)
    """
    at, directory = scratch.directory(f"possible-{name}"), scratch.directory(f"counted-{name}")
    arrays = {of: np.column_stack([getattr(one, of) for one in bounds]) for of in ("low", "high", "told")}
    arrays |= {"values": np.column_stack(values), "rows": rows, "own": owners.record, "people": owners.persons}
    for of, array in arrays.items():
        write_array(array, at, f"{of}.npy")

    def count(part: tuple[int, int]) -> Iterator[pa.Table]:
        here = slice(*part)
        low, high, told, own, people = (
            np.ascontiguousarray(map_array(at, f"{of}.npy")[here]) for of in ("low", "high", "told", "own", "people")
        )
        file, of_file = (np.ascontiguousarray(map_array(at, f"{of}.npy")) for of in ("values", "rows"))
        every = [Bounds(low[:, j], high[:, j], told[:, j]) for j in range(low.shape[1])]
        found = candidates(every, file, rows=of_file, own=own)
        first, member = distinct_rows([found.rows, found.holds.astype(np.int64)])
        total = np.zeros(len(first), dtype=np.int64)
        np.add.at(total, member, people)
        told_of = {ROWS: found.rows[first], HOLDS: found.holds[first], PEOPLE: total}
        yield report(write_ipc(pa.table(told_of), directory), {})

    # Every task puts the file in order; there are as many as what they compare is worth.
    tasks = slices(len(owners.record), compared // max(1, len(owners.record)))
    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, tasks, count, PARTS))
    tables = pa.concat_tables([read_ipc(directory, part["name"]) for part in parts])
    counted = tables.group_by([ROWS, HOLDS]).aggregate([(PEOPLE, "sum")])
    counted = counted.sort_by([(ROWS, "ascending"), (HOLDS, "ascending")])
    left, holds = counted.column(ROWS).to_numpy(), counted.column(HOLDS).to_numpy(zero_copy_only=False)
    return left, np.where(holds, 1.0 / np.maximum(left, 1), 0.0), counted.column(f"{PEOPLE}_sum").to_numpy()
