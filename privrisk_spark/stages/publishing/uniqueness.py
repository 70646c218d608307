"""Columns that are kept: rows, or persons, with a value no other has, alone and together with the cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, part_name, report
from privrisk_spark.engine.fingerprints import fingerprints, present
from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.uniqueness import alone, between, counted, singles, spanned
from privrisk_spark.results.facts import ReleaseFacts
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

VALUES_PER_TASK = 4_000_000


def write_values(
    kept: Sequence[pa.ChunkedArray], cells: Sequence[LongArray], directory: PartDirectory, name: str
) -> list[int]:
    """Write the counted values of a chunk: of each kept column, and of rows as a whole.

    Parameters
    ----------
    kept : sequence of chunked arrays
    cells : sequence of ndarrays
        Released cells as numbers that tell them apart.
    name : str
        Of the part the chunk is written as.

    Returns
    -------
    list of int
        Distinct values of each, without missing ones; rows last.
    """
    if not kept:
        return []
    words = [fingerprints(column) for column in kept]
    whole = fingerprint.of_rows([*map(fingerprint.of_integers, cells), *words], len(words[0]))
    there = [word[present(column)] for word, column in zip(words, kept, strict=True)]
    sizes = []
    for j, values in enumerate([*there, whole]):
        part = counted(values)
        write_array(part, directory, f"{name}.{j}.npy")
        sizes.append(part.shape[1])
    return sizes


def measure_uniques(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], sizes: Sequence[int]
) -> list[int]:
    """Count the values that one row alone has, from the parts of all chunks.

    Parameters
    ----------
    names : sequence of str
        Of the parts.
    sizes : sequence of int
        Distinct values of each column over the parts, as :func:`write_values` counted them.

    Returns
    -------
    list of int
        In the order of ``sizes``. Values are told apart by 64 bits, so a count may be too low by a few in billions.
    """
    held = tuple(names)
    pieces = [
        (j, number, ranges)
        for j, size in enumerate(sizes)
        for ranges in [max(1, -(-size // VALUES_PER_TASK))]
        for number in range(ranges)
    ]

    def found(piece: tuple[int, int, int]) -> int:
        j, number, ranges = piece
        return singles([between(map_array(directory, f"{name}.{j}.npy"), number, ranges) for name in held])

    def read(piece: tuple[int, int, int]) -> Iterator[pa.Table]:
        yield pa.table({"column": pa.array([piece[0]], pa.int64()), "uniques": pa.array([found(piece)], pa.int64())})

    result = [0] * len(sizes)
    if sum(sizes) <= VALUES_PER_TASK:
        for piece in pieces:
            result[piece[0]] += found(piece)
        return result
    schema = T.StructType([T.StructField(name, T.LongType()) for name in ("column", "uniques")])
    for row in Batches.of_parts(scratch.spark, pieces, read, schema).frame().toArrow().to_pylist():
        result[row["column"]] += row["uniques"]
    return result


def measure_unique_persons(
    scratch: Scratch, members: Batches, released: ReleaseFacts, kept: Sequence[str], *, k: int
) -> ReleaseFacts:
    """Count persons instead of rows: who has a value that nobody else has, however many rows have it.

    Parameters
    ----------
    members : Batches
        MEMBERS with persons and their kept values, of all released rows.

    Returns
    -------
    ReleaseFacts
        With ``persons``, and each ``unique_by_*`` the persons with at least one row of values that exactly one person
        has. Persons and values are told apart by 64 bits.
    """
    directory = scratch.directory("values-of-persons")
    parts = scratch.collect_parts(_values_of_persons(members, directory, k=k, kept=len(kept)))
    names = tuple(part["name"] for part in parts)
    n_values = len(kept) + 3
    pieces = [
        (j, number, ranges)
        for j in range(n_values)
        for ranges in [max(1, -(-sum(part["values"][j] for part in parts) // VALUES_PER_TASK))]
        for number in range(ranges)
    ]

    def found(piece: tuple[int, int, int]) -> WordArray:
        j, number, ranges = piece
        return alone([between(map_array(directory, f"{name}.{j}.npy"), number, ranges) for name in names])

    if len(pieces) == n_values:
        *of_kept, cells, both, persons = (len(found(piece)) for piece in pieces)
    else:
        # A person may have such values in several ranges, and counts once.
        own = scratch.directory("persons-alone")

        def write(piece: tuple[int, int, int]) -> Iterator[pa.Table]:
            name, who = part_name("npy"), found(piece)
            write_array(counted(who), own, name)
            yield report(name, {"value": piece[0], "persons": len(who)})

        written = scratch.collect_parts(Batches.of_parts(scratch.spark, pieces, write, PARTS))
        *of_kept, cells, both, persons = _measure_distinct(scratch, own, written, n_values)
    return replace(
        released,
        persons=persons,
        unique_by_kept=dict(zip(kept, of_kept, strict=True)),
        unique_by_cells=cells,
        unique_by_all=both,
    )


def _measure_distinct(
    scratch: Scratch, own: PartDirectory, written: Sequence[dict[str, Any]], n_values: int
) -> list[int]:
    """Distinct words of the counted parts of each value."""
    held = [tuple(part["name"] for part in written if part["value"] == j) for j in range(n_values)]
    pieces = [
        (j, number, ranges)
        for j in range(n_values)
        for total in [sum(part["persons"] for part in written if part["value"] == j)]
        for ranges in [max(1, -(-total // VALUES_PER_TASK))]
        for number in range(ranges)
    ]

    def read(piece: tuple[int, int, int]) -> Iterator[pa.Table]:
        j, number, ranges = piece
        words = [between(map_array(own, name), number, ranges)[0] for name in held[j]]
        distinct = len(counted(np.concatenate(words))[0])
        yield pa.table({"column": pa.array([j], pa.int64()), "persons": pa.array([distinct], pa.int64())})

    schema = T.StructType([T.StructField(name, T.LongType()) for name in ("column", "persons")])
    result = [0] * n_values
    for row in Batches.of_parts(scratch.spark, pieces, read, schema).frame().toArrow().to_pylist():
        result[row["column"]] += row["persons"]
    return result


def _values_of_persons(members: Batches, directory: PartDirectory, *, k: int, kept: int) -> Batches:
    """Write who has each kept value, released cells, both, and themselves, a part a chunk; return PARTS."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            persons = fingerprints(table.column(schemas.ENTITY))
            nodes = [table.column(name).to_numpy() for name in schemas.nodes(k)]
            cells = fingerprint.of_rows([fingerprint.of_integers(node) for node in nodes], table.num_rows)
            name, sizes = part_name("npy"), []
            columns = [table.column(of) for of in schemas.kept_words(kept)]
            there = [column.is_valid().to_numpy() for column in columns]
            words = [column.fill_null(0).to_numpy().view(np.uint64) for column in columns]
            both = fingerprint.of_rows([cells, words[-1]], table.num_rows)
            every = [*zip(words[:-1], there[:-1], strict=True), *((of, slice(None)) for of in (cells, both, persons))]
            for j, (word, rows) in enumerate(every):
                part = spanned(word[rows], persons[rows])
                write_array(part, directory, f"{name}.{j}.npy")
                sizes.append(part.shape[1])
            yield report(name, {"values": sizes})

    return members.then(step, PARTS)
