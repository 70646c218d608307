"""Counting the cells of every scheme without a shuffle of rows.

A task counts the rows it reads under one scheme after the other and writes the cells, in order, as parts in scratch. A
second task then gathers a range of a scheme's cells from all parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, in_chunks, read_ipc, report, write_ipc
from privrisk_spark.kernels.dp.scheme_cells import SchemeCells, standing
from privrisk_spark.kernels.numeric.packing import gathered
from privrisk_spark.storage.parts import PartDirectory

ROWS_HELD = 2**22
"""Rows counted together; does not change a result."""

CELLS_PER_TASK = 2**19
"""Cells of parts that a task gathers, about; does not change a result."""

_MARK = 2**15
"""Every so many cells of a part its place is told, to divide cells evenly."""


def count_cells(rows: Batches, ancestor: Sequence[npt.NDArray[np.int32]], schemes: Sequence[Sequence[int]],
                directory: PartDirectory) -> Batches:  # fmt: skip
    """Count cells within each task, write them as parts, a scheme each, and return PARTS.

    Parameters
    ----------
    rows : Batches
        With the codes of ENCODED.
    ancestor : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
    schemes : sequence of sequence of int
        At least one.
    """
    names = schemas.codes(len(ancestor))
    cells_of = [SchemeCells.of(ancestor, scheme) for scheme in schemes]
    stands = standing(ancestor, schemes)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks((table.select(names) for table in tables), rows=ROWS_HELD):
            codes = [table.column(name).to_numpy() for name in names]
            times = None
            if not all(cells.dense(table.num_rows) for cells in cells_of):
                # Sorting once what many schemes would sort.
                codes = [of[code] for of, code in zip(stands, codes, strict=True)]
                first, member = grouped(codes)
                codes, times = [code[first] for code in codes], np.bincount(member, minlength=len(first))
            for number, cells in enumerate(cells_of):
                words, counts = cells.counted(codes, times)
                columns = {f"w{i}": pa.array(word) for i, word in enumerate(words)}
                name = write_ipc(pa.table({**columns, schemas.N_ROWS: pa.array(counts)}), directory)
                marks = words[0][::_MARK].tolist()
                yield report(name, {"scheme": number, "cells": len(counts), "marks": marks})

    return rows.then(step, PARTS)


@dataclass(frozen=True)
class _Range:
    """Cells of a scheme whose first word is in ``[low, high)``; None is no bound."""

    scheme: int
    low: int | None
    high: int | None
    parts: tuple[str, ...]


def divided(parts: Sequence[Mapping[str, Any]]) -> list[list[_Range]]:
    """Divide the cells of parts among tasks.

    Parameters
    ----------
    parts : sequence of mapping
        Names and facts of :func:`count_cells`.

    Returns
    -------
    list of list of _Range
        Of each task.
    """
    tasks: list[list[_Range]] = []
    room = 0
    for scheme in sorted({part["scheme"] for part in parts}):
        own = [part for part in parts if part["scheme"] == scheme]
        names = tuple(part["name"] for part in own)
        total = sum(part["cells"] for part in own)
        n = -(-total // CELLS_PER_TASK)
        marks = np.sort(np.array(list(itertools.chain.from_iterable(part["marks"] for part in own)), dtype=np.int64))
        inner = np.unique(marks[len(marks) * np.arange(1, n) // max(n, 1)]).tolist()
        bounds = [None, *inner, None]
        for low, high in itertools.pairwise(bounds):
            size = total // (len(bounds) - 1)
            if not tasks or size > room:
                tasks.append([])
                room = CELLS_PER_TASK
            tasks[-1].append(_Range(scheme, low, high, names))
            room -= size
    return tasks


def collect_cells(
    scratch: Scratch,
    rows: Batches,
    ancestor: Sequence[npt.NDArray[np.int32]],
    schemes: Sequence[Sequence[int]],
    *,
    name: str = "cells",
) -> Batches:
    """Return CELLS with exact counts: the non-empty cells of every scheme, each once; a table has those of one scheme.

    Parameters
    ----------
    rows : Batches
        With the codes of ENCODED, resolved.
    ancestor : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
    schemes : sequence of sequence of int
        At least one.
    name : str
        Of the directory in scratch, which must not be there yet.
    """
    directory = scratch.directory(name)
    tasks = int(rows.base.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    parts = scratch.collect_parts(count_cells(rows.within(tasks), ancestor, schemes, directory))
    k = len(ancestor)
    cells_of = [SchemeCells.of(ancestor, scheme) for scheme in schemes]

    def read(ranges: Sequence[_Range]) -> Iterator[pa.Table]:
        for one in ranges:
            cells = cells_of[one.scheme]
            words, counts = gathered(*_slices(directory, one, cells.packing.n_words), distinct=False)
            arrays = [np.full(len(counts), one.scheme, dtype=np.int32), *cells.unpacked(words), counts]
            names = [schemas.SCHEME, *schemas.nodes(k), schemas.N_ROWS]
            yield pa.Table.from_arrays([pa.array(array) for array in arrays], names=names)

    return Batches.of_parts(scratch.spark, divided(parts), read, schemas.cells(k, noisy=False))


def _slices(
    directory: PartDirectory, cells: _Range, n_words: int
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """Words and counts of a range of cells, of all parts one after another."""
    held = []
    for name in cells.parts:
        table = read_ipc(directory, name)
        first = table.column(0).to_numpy()
        begin = 0 if cells.low is None else int(np.searchsorted(first, cells.low))
        end = len(first) if cells.high is None else int(np.searchsorted(first, cells.high))
        held.append([column.to_numpy()[begin:end] for column in table.columns])
    columns = [np.concatenate(pieces) for pieces in zip(*held, strict=True)]
    return columns[:n_words], columns[n_words]
