"""Record ids of tables without an id column: the content of the row, and its ordinal among identical rows.

Identical rows are exchangeable, so any ordinals among them give the same rows. They are therefore counted chunk by
chunk; of the table only the distinct contents of each chunk are brought together, by ranges, and no row is shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    PARTS,
    Batches,
    Scratch,
    grouped,
    in_chunks,
    part_name,
    read_ipc,
    report,
    write_ipc,
)
from privrisk_spark.engine.fingerprints import one_chunk, text_bytes
from privrisk_spark.engine.number_texts import as_texts, column, dictionary_of, framed_text
from privrisk_spark.kernels.arrays import ByteArray, LongArray
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

__all__ = [
    "BLOCK_BYTES",
    "HASHES_PER_TASK",
    "collect_numbered",
    "content",
    "contents_of",
    "identity_blocks",
    "numbered",
    "told_apart",
]

BLOCK_BYTES = 16
"""Of ``block``, which keyed draws are made from."""

HASHES_PER_TASK = 4_000_000

_CONTENT, _SAME_ID, _ORDINAL = "content", "same_id", "ordinal"


def content(frame: DataFrame) -> Column:
    """128 bits of SHA-256 of a row, hex; rows differ in it iff they differ in any column."""
    fields = [framed_text(column(field.name), field.dataType) for field in frame.schema.fields]
    return F.substring(F.sha2(F.concat(*fields), 256), 1, 32)


def numbered(rows: DataFrame) -> DataFrame:
    """Complete the record ids of rows that have the content of their row in place of it, by a shuffle of the rows."""
    ordinal = F.row_number().over(Window.partitionBy(schemas.RECORD_ID).orderBy(schemas.RECORD_ID))
    return rows.withColumn(schemas.RECORD_ID, F.concat_ws("-", schemas.RECORD_ID, ordinal))


def contents_of(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return what :func:`content` returns, of all columns of a chunk; each kind of identical rows is hashed once.

    Parameters
    ----------
    columns : sequence of pyarrow.ChunkedArray
        Values that :func:`privrisk_spark.engine.number_texts.as_texts` writes as Spark does.

    Returns
    -------
    pyarrow.DictionaryArray of string
    """
    fields, places = [], []
    for values in columns:
        distinct, place = dictionary_of(values)
        texts = as_texts(distinct).cast(pa.binary())
        lengths = pc.binary_length(texts).cast(pa.string()).cast(pa.binary())
        field = pc.binary_join_element_wise(lengths, texts, b":").fill_null(b"-")
        fields.append(pa.concat_arrays([field, pa.array([b"-"], pa.binary())]))
        places.append(place.fill_null(len(texts)).to_numpy(zero_copy_only=False))
    first, member = grouped(places)
    parts = [field.take(pa.array(place[first])) for field, place in zip(fields, places, strict=True)]
    hashes = _hashes(pc.binary_join_element_wise(*parts, b""))[:, :BLOCK_BYTES]
    return pa.DictionaryArray.from_arrays(pa.array(member.astype(np.int32)), _hex(hashes.tobytes()))


def identity_blocks(ids: pa.ChunkedArray) -> pa.Array:
    """Return the first 16 bytes of SHA-256 of each text; a missing one has none."""
    array = one_chunk(ids)
    blocks = np.ascontiguousarray(_hashes(array)[:, :BLOCK_BYTES])
    offsets = pa.py_buffer(np.arange(0, BLOCK_BYTES * (len(array) + 1), BLOCK_BYTES, dtype=np.int32))
    there = pa.array(~array.is_null().to_numpy(zero_copy_only=False)).buffers()[1] if array.null_count else None
    return pa.BinaryArray.from_buffers(pa.binary(), len(array), [there, offsets, pa.py_buffer(blocks)])


def _hashes(texts: pa.Array) -> ByteArray:
    """SHA-256 of each text."""
    places, letters = text_bytes(texts)
    whole = letters.data
    hashes = b"".join([sha256(whole[start:end]).digest() for start, end in pairwise(places.tolist())])
    return np.frombuffer(hashes, dtype=np.uint8).reshape(-1, 32)


def _hex(letters: bytes) -> pa.Array:
    """Write every 16 bytes as a text."""
    n = len(letters) // BLOCK_BYTES
    offsets = np.arange(0, 2 * BLOCK_BYTES * n + 1, 2 * BLOCK_BYTES, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters.hex().encode()))


def collect_numbered(scratch: Scratch, rows: Batches, *, blocks: bool) -> Batches:
    """Complete the record ids of rows that have the content of their row in place of it.

    Parameters
    ----------
    rows : Batches
        ENCODED with a content as ``record_id``.
    blocks : bool
        Add ``block``.

    Returns
    -------
    Batches
        ENCODED; a part a task. Rows of any layout get the same ids.
    """
    directory = scratch.directory("contents")
    parts = scratch.collect_parts(_written(rows, directory))
    names, n = tuple(part["name"] for part in parts), sum(part["rows"] for part in parts)
    ranges = scratch.collect_parts(_numbered(scratch, directory, names, tasks=max(1, -(-n // HASHES_PER_TASK))))
    counted = [part["name"] for part in sorted(ranges, key=lambda part: part["range"])]

    def read(number: int) -> Iterator[pa.Table]:
        name = names[number]
        table = read_ipc(directory, name)
        before = np.concatenate([_slice(directory, name, number) for name in counted])
        place = table.column(_CONTENT).to_numpy()
        ordinal = pa.array(table.column(_ORDINAL).to_numpy() + before[place])
        texts = _hex(map_array(directory, f"{name}.keys.npy").astype(">u8").tobytes())
        ids = pc.binary_join_element_wise(texts.take(pa.array(place)), ordinal.cast(pa.string()), "-")
        done = table.drop_columns([_CONTENT, _ORDINAL]).add_column(0, schemas.RECORD_ID, ids)
        yield done.add_column(1, schemas.BLOCK, identity_blocks(done.column(0))) if blocks else done

    fields = list(rows.schema.fields)
    if blocks:
        fields.insert(1, T.StructField(schemas.BLOCK, T.BinaryType()))
    return Batches.of_parts(scratch.spark, range(len(names)), read, T.StructType(fields))


def _written(rows: Batches, directory: PartDirectory) -> Batches:
    """Write chunks with the place of each row's content among those of the chunk, in their order, and its ordinal."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            texts, place = dictionary_of(table.column(schemas.RECORD_ID))
            letters = bytes.fromhex("".join(texts.to_pylist()))
            keys = np.frombuffer(letters, dtype=">u8").astype(np.uint64).reshape(-1, 2)
            order = np.lexsort((keys[:, 1], keys[:, 0]))
            rank = np.empty(len(order), dtype=np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            member = rank[place.to_numpy(zero_copy_only=False)]
            times = np.bincount(member, minlength=len(order)).astype(np.int64)
            ordinal = np.empty(len(member), dtype=np.int64)
            first = np.cumsum(times) - times
            ordinal[np.argsort(member, kind="stable")] = np.arange(len(member)) - np.repeat(first, times) + 1
            held = table.drop_columns([schemas.RECORD_ID])
            held = held.append_column(_CONTENT, pa.array(member)).append_column(_ORDINAL, pa.array(ordinal))
            name = write_ipc(held, directory)
            write_array(keys[order], directory, f"{name}.keys.npy")
            write_array(times, directory, f"{name}.times.npy")
            yield report(name, {"rows": table.num_rows})

    return rows.then(step, PARTS)


def _numbered(scratch: Scratch, directory: PartDirectory, names: Sequence[str], *, tasks: int) -> Batches:
    """Count, for each content of each part, its rows in earlier parts; a task does a range of contents."""
    width = 2**64 // tasks + 1

    def read(number: int) -> Iterator[pa.Table]:
        low, high = np.uint64(number * width), np.uint64(min((number + 1) * width, 2**64) - 1)
        keys, times = [], []
        for name in names:
            of_part = map_array(directory, f"{name}.keys.npy")
            begin, end = np.searchsorted(of_part[:, 0], low, "left"), np.searchsorted(of_part[:, 0], high, "right")
            keys.append(of_part[begin:end])
            times.append(map_array(directory, f"{name}.times.npy")[begin:end])
        written = part_name("npy")
        write_array(np.cumsum([0, *map(len, keys)]), directory, f"{written}.at")
        write_array(_rows_before(np.concatenate(keys), np.concatenate(times)), directory, written)
        yield report(written, {"range": number})

    return Batches.of_parts(scratch.spark, range(tasks if names else 0), read, PARTS)


def _rows_before(keys: npt.NDArray[np.uint64], times: LongArray) -> LongArray:
    """Sum the times of equal keys that come earlier."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered, before = keys[order], np.cumsum(times[order]) - times[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    of_first = before[np.flatnonzero(new)][np.cumsum(new) - 1] if len(new) else before
    result = np.empty(len(order), dtype=np.int64)
    result[order] = before - of_first
    return result


def _slice(directory: PartDirectory, counted: str, part: int) -> LongArray:
    """Rows in earlier parts of the contents that a part has in a range."""
    begin, end = map_array(directory, f"{counted}.at")[part : part + 2]
    return map_array(directory, counted)[begin:end]


_REPEATED = b"repeated id"
"""Another function than the one of ids, so that no id can be made up whose row shares the draws of such a row."""


def told_apart(encoded: Batches) -> DataFrame:
    """Return ENCODED with a ``block`` of its own for every row whose id is missing, or another row's too.

    Under differential privacy a missing or repeated id must not decide how a run ends, as one row decides whether there
    is one. Every such row is known instead by its content and its ordinal among identical rows, as rows without ids
    are: identical rows are exchangeable, and which ids are repeated depends on the table alone, never on a draw. So
    with one row more or less every row still has draws of its own, and the law of the release is the one that is
    proved. Rows with an id of their own keep their draws.

    Parameters
    ----------
    encoded : Batches
        With ``block``.
    """
    rows = encoded.frame()
    of_row = content(rows.drop(schemas.BLOCK)).alias(_CONTENT)
    # Rows without an id are no group of their own: all of a table may be such.
    alike = F.coalesce(F.col(schemas.RECORD_ID), F.col(_CONTENT))
    identical = Window.partitionBy(_CONTENT).orderBy(_CONTENT)
    numbered = (
        rows.select("*", of_row)
        .withColumn(_SAME_ID, F.count(F.lit(1)).over(Window.partitionBy(alike)))
        .withColumn(_ORDINAL, F.row_number().over(identical))
    )

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            missing = table.column(schemas.RECORD_ID).is_null().to_pylist()
            same, ordinals, contents, blocks = (
                table.column(name).to_pylist() for name in (_SAME_ID, _ORDINAL, _CONTENT, schemas.BLOCK)
            )
            own = [
                _block(contents[i], ordinals[i]) if missing[i] or same[i] > 1 else blocks[i]
                for i in range(table.num_rows)
            ]
            at = table.column_names.index(schemas.BLOCK)
            yield table.set_column(at, schemas.BLOCK, pa.array(own, pa.binary())).select(names)

    names = encoded.schema.fieldNames()
    return Batches.of_frame(numbered).then(step, encoded.schema).frame()


def _block(row: str, ordinal: int) -> bytes:
    return blake2b(f"{row}-{ordinal}".encode(), digest_size=BLOCK_BYTES, person=_REPEATED).digest()
