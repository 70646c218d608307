"""All records in one order, in parts, without a shuffle: the same order however the records are spread.

A task sorts the records of a part; another one gathers a range of the order from all parts. Equal records are ordered
by words that are drawn for them by key, 128 bits, so that an order neither shows how records came nor depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, read_ipc, report, write_ipc
from privrisk_spark.extensions.perturb.kernels.microaggregation import first_axis
from privrisk_spark.extensions.perturb.planning import Arranged
from privrisk_spark.extensions.perturb.stages.held import Held, patterns_of
from privrisk_spark.extensions.perturb.stages.keys import record_words
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.policy.masking import Shuffle
from privrisk_spark.storage.parts import PartDirectory

ROWS_PER_RANGE = 2**20
"""Records of a range, about; does not change a result."""

_MARKS = 64  # records of a part from which the bounds of ranges are chosen

PART, ROW, WORD, DRAW = "part", "row", "word", "draw"
"""Where a record is held; the words that order equal ones, and that are drawn for it."""


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Records in order, in consecutive ranges.

    Attributes
    ----------
    one : Arranged
        For which they are in order.
    ranges : tuple of (str, int, int)
        Name of each range, the rank of its first record and that after its last.
    """

    one: Arranged
    directory: PartDirectory
    ranges: tuple[tuple[str, int, int], ...]

    def between(self, begin: int, end: int) -> pa.Table:
        """Read the records of some ranks, in a task: ``part``, ``row``, ``draw``, ``x<i>`` columns, ``z<i>`` known."""
        pieces = []
        for name, first, after in self.ranges:
            low, high = max(begin, first), min(end, after)
            if high > low:
                pieces.append(read_ipc(self.directory, name).slice(low - first, high - low))
        return pa.concat_tables(pieces).combine_chunks()


def collect_arrangement(scratch: Scratch, held: Held, one: Arranged, key: bytes, *, store: str) -> Arrangement:
    """Put the records that take part in order.

    By value for one column; for several together by what is missing, then along the first principal axis of the
    standardized columns; for a shuffle by chance.

    Parameters
    ----------
    key : bytes
        Of the words of its records.
    store : str
        Name of new directories in the scratch directory.
    """
    sorted_parts, directory = scratch.directory(f"{store}-parts"), scratch.directory(store)
    means, spread = held.scales(one.columns)
    axis = first_axis(held.groups[one.label].correlation) if one.together else np.ones(1)

    def keys(numbers: FloatArray, pattern: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
        if isinstance(one.mask, Shuffle):
            return []
        if not one.together:
            return [numbers[:, 0]]
        score = np.zeros(len(numbers))
        for i in range(numbers.shape[1]):  # in the order of the columns: a product of matrices rounds otherwise
            score += np.where(np.isnan(numbers[:, i]), 0.0, axis[i] * (numbers[:, i] - means[i]) / spread[i])
        return [pattern, score + 0.0]

    def sort_part(number: int) -> Iterator[pa.Table]:
        table = held.part(number)
        numbers, known = held.numbers(table, one.columns), held.numbers(table, one.known)
        pattern, there = patterns_of(one, numbers)
        rows = np.flatnonzero(there)
        words = record_words(key, table)[rows]
        of_rows = [of[rows] for of in keys(numbers, pattern)]
        order = np.lexsort((words[:, 1], words[:, 0], *reversed(of_rows)))
        columns = {f"k{i}": of[order] for i, of in enumerate(of_rows)}
        columns |= {WORD: words[order, 0], DRAW: words[order, 1]}
        columns |= {PART: np.full(len(order), number, dtype=np.int32), ROW: rows[order].astype(np.int64)}
        columns |= {f"x{i}": numbers[rows[order], i] for i in range(numbers.shape[1])}
        columns |= {f"z{i}": known[rows[order], i] for i in range(known.shape[1])}
        marks = np.linspace(0, len(order) - 1, min(_MARKS, len(order))).astype(np.int64)
        leading = [columns[name] for name in _leading(len(of_rows))]
        facts = {"rows": len(order), "marks": [[of[at].item() for of in leading] for at in marks.tolist()]}
        yield report(write_ipc(pa.table(columns), sorted_parts), facts)

    parts = _collect_tasks(scratch, range(len(held.names)), sort_part)
    names = tuple(part["name"] for part in parts)
    total = sum(part["rows"] for part in parts)
    ranges = max(1, -(-total // ROWS_PER_RANGE))
    marks = sorted(mark for part in parts for mark in part["marks"])
    bounds = [marks[len(marks) * i // ranges] for i in range(1, ranges)] if marks else []

    def gather(number: int) -> Iterator[pa.Table]:
        pieces = []
        for name in names:
            table = read_ipc(sorted_parts, name)
            low = _place(table, bounds[number - 1]) if number else 0
            high = _place(table, bounds[number]) if number < len(bounds) else table.num_rows
            pieces.append(table.slice(low, max(0, high - low)))
        here = pa.concat_tables(pieces).combine_chunks()
        leading = [here.column(name).to_numpy() for name in reversed(_leading(_n_keys(here)))]
        ordered = here.take(pa.array(np.lexsort(leading)))
        kept = [name for name in ordered.column_names if not name.startswith("k") and name != WORD]
        yield report(write_ipc(ordered.select(kept), directory), {"rows": here.num_rows, "number": number})

    found = sorted(_collect_tasks(scratch, range(len(bounds) + 1) if names else range(0), gather), key=_number)
    ends = np.cumsum([0, *(part["rows"] for part in found)]).tolist()
    placed = tuple((part["name"], ends[i], ends[i + 1]) for i, part in enumerate(found))
    return Arrangement(one, directory, placed)


def _collect_tasks(scratch: Scratch, numbers: range, task: Any) -> list[dict[str, Any]]:
    return scratch.collect_parts(Batches.of_parts(scratch.spark, numbers, task, PARTS))


def _number(part: dict[str, Any]) -> int:
    number: int = part["number"]
    return number


def _leading(keys: int) -> list[str]:
    return [*(f"k{i}" for i in range(keys)), WORD, DRAW]


def _n_keys(table: pa.Table) -> int:
    return sum(name.startswith("k") for name in table.column_names)


def _place(table: pa.Table, bound: Sequence[float]) -> int:
    """First row of a sorted part that does not come before a bound."""
    low, high = 0, table.num_rows
    for name, value in zip(_leading(_n_keys(table)), bound, strict=True):
        column = table.column(name).chunk(0).to_numpy()[low:high] if high > low else np.zeros(0)
        of_kind = np.asarray(value, dtype=column.dtype)
        low, high = low + int(np.searchsorted(column, of_kind)), low + int(np.searchsorted(column, of_kind, "right"))
    return low
