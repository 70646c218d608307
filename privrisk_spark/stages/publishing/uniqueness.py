"""Columns that are kept: how many rows have a value no other row has, alone and together with the released cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.batches import Batches, Scratch, map_array, write_array
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.uniqueness import between, counted, singles
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
    directory : PartDirectory
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
    there = [word[_present(column)] for word, column in zip(words, kept, strict=True)]
    sizes = []
    for j, values in enumerate([*there, whole]):
        part = counted(values)
        write_array(part, directory, f"{name}.{j}.npy")
        sizes.append(part.shape[1])
    return sizes


def _present(values: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows with a value; NaN is missing."""
    valid = values.is_valid()
    if pa.types.is_floating(values.type):
        valid = pc.and_(valid, pc.invert(pc.is_nan(values)).fill_null(False))
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]] = valid.to_numpy()
    return mask


def measure_uniques(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], sizes: Sequence[int]
) -> list[int]:
    """Count the values that one row alone has, from the parts of all chunks.

    Parameters
    ----------
    scratch : Scratch
    directory : PartDirectory
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
