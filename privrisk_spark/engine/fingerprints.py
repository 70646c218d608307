"""Fingerprints of Arrow columns of any type, identities of records as bytes, and the digest of a given frame."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.number_texts import whole_text
from privrisk_spark.engine.schemas import BLOCK
from privrisk_spark.kernels.arrays import ByteArray, WordArray
from privrisk_spark.kernels.numeric import fingerprint


def fingerprints(values: pa.ChunkedArray) -> WordArray:
    """Fingerprint of each value of a column; a missing one has its own."""
    array = one_chunk(values)
    if pa.types.is_dictionary(array.type):
        of_value = np.append(fingerprints(pa.chunked_array([array.dictionary])), np.uint64(1))
        of_row: WordArray = of_value[array.indices.fill_null(len(array.dictionary)).to_numpy(False)]
        return of_row
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        places, content = text_bytes(array)
        result = fingerprint.of_bytes(content, places)
    elif pa.types.is_integer(array.type):
        result = fingerprint.of_integers(array.fill_null(0).to_numpy(zero_copy_only=False))
    elif pa.types.is_floating(array.type):
        doubles = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        result = fingerprint.of_integers(np.ascontiguousarray(doubles).view(np.int64))
    elif pa.types.is_nested(array.type):
        texts = [None if value is None else json.dumps(value, default=str) for value in array.to_pylist()]
        return fingerprints(pa.chunked_array([pa.array(texts, pa.string())]))
    else:
        return fingerprints(pa.chunked_array([array.cast(pa.string())]))
    if array.null_count:
        result = np.where(array.is_null().to_numpy(zero_copy_only=False), np.uint64(1), result)
    return result


def present(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Rows of a column with a value; NaN is missing."""
    valid = values.is_valid()
    if pa.types.is_floating(values.type):
        valid = pc.and_(valid, pc.invert(pc.is_nan(values)).fill_null(False))
    mask: npt.NDArray[np.bool_] = valid.to_numpy()
    return mask


def one_chunk(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], values.type)
    return array


def text_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each text or byte string begins and ends, and the bytes of all."""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return places, np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)


def record_blocks(table: pa.Table) -> ByteArray:
    """Blocks of records as a byte matrix; one buffer per chunk."""
    column = table.column(BLOCK).combine_chunks().cast(pa.binary(16))
    array = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    start = array.offset * 16
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)[start : start + 16 * len(array)]
    return raw.reshape(-1, 16)


_PIECE = 22
"""Bits of a row's hash that are summed at once: sums stay below 2^63 up to 2^41 rows."""


def collect_frame_digest(frame: DataFrame, *, times: str | None = None) -> str:
    """Return a digest of a frame's content: the names and types of its columns, and its rows in any order.

    It is a function of the data, without a key: keep it where the data may be kept.

    Parameters
    ----------
    frame : DataFrame
        Its rows are computed once; only a few numbers come back.
    times : str, optional
        Column that holds how many rows each row stands for.

    Returns
    -------
    str
        32 hexadecimal digits. Two frames that differ in one row have the same digest with probability 2^-64.
    """
    fields = frame.schema.fields
    renamed = frame.toDF(*[f"c{i}" for i in range(len(fields))])  # two columns may have one name
    of_rows = F.lit(1).cast("long")
    words = {}
    for i, field in enumerate(fields):
        if times is not None and field.name == times:
            of_rows = F.col(f"c{i}")
        else:
            words[i] = _word(F.col(f"c{i}"), field.dataType)
    # The hash passes over a missing value, so that of (null, 1) and (1, null) would be the same.
    row = F.xxhash64(F.lit(0), *words.values(), *[word.isNull() for word in words.values()])
    pieces = [F.shiftright("h", at).bitwiseAND(F.lit(2 ** min(_PIECE, 64 - at) - 1)) for at in range(0, 64, _PIECE)]
    hashed = renamed.select(row.alias("h"), of_rows.alias("n"))
    (found,) = hashed.agg(F.sum("n"), *[F.sum(piece * F.col("n")) for piece in pieces]).collect()
    columns = [[fields[i].name, fields[i].dataType.simpleString()] for i in words]
    return hashlib.sha256(json.dumps([columns, *found]).encode()).hexdigest()[:32]


def _word(value: Column, kind: T.DataType) -> Column:
    """Return a column as one of a type that Spark hashes by its exact value."""
    if isinstance(kind, T.StringType):
        return value.cast("binary")  # a collation would make other texts equal
    if isinstance(kind, T.ArrayType | T.MapType | T.StructType | T.VariantType):
        return whole_text(value, kind)
    wide = isinstance(kind, T.DecimalType) and kind.precision > _DIGITS_OF_LONG
    if wide or isinstance(kind, T.DayTimeIntervalType | T.YearMonthIntervalType):
        return value.cast("string")  # the engines hash these differently, or not at all
    return value


_DIGITS_OF_LONG = 18
"""Digits of a decimal that fits 64 bits."""
