"""Fingerprints of Arrow columns of any type, and the identities of records as bytes."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
