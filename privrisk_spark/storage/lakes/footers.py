"""Footers of a version's files, held against what its log or metadata says of them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.storage.lakes.snapshot import Asked, DataFile, Places, Value, name_of
from privrisk_spark.storage.table_files import ObjectFile

__all__ = ["FIELD_ID", "Listed", "Names", "Widened", "data_files", "known", "plain"]

FIELD_ID = b"PARQUET:field_id"
"""Key of a column's id in the metadata of its field, as Arrow reads a file."""

_AT_ONCE = 8
"""Footers that are fetched at the same time."""


@dataclass(frozen=True)
class Listed:
    """A file as the log or the metadata lists it.

    Attributes
    ----------
    size : int
        Bytes.
    rows : int or None
        None where it is not said.
    values : mapping of column to Value
        Of its partition.
    local : str or None
        Column of its partition whose time the log has without an offset; taken for UTC in ``values``.
    deleted : ndarray of int64, shape (d,), or None
        Positions of rows that the table does not have any more, ascending.
    """

    file: str | ObjectFile
    size: int
    rows: int | None
    values: Mapping[str, Value]
    local: str | None = None
    deleted: Places | None = field(default=None, compare=False)


Names = Callable[[pa.Schema], Mapping[str, str]]
"""Which column of a file is which of the table, from the file's schema; raises ValueError saying what is wrong."""

Widened = Callable[[pa.DataType, pa.DataType], bool]
"""Whether a type in a file has become another one in the table, whose values hold it."""


def data_files(
    asked: Asked,
    schema: pa.Schema,
    listed: Sequence[Listed],
    names: Names,
    *,
    values_first: bool,
    widened: Widened | None = None,
) -> tuple[DataFile, ...]:
    """Read the footers of files.

    Parameters
    ----------
    schema : Schema of Arrow
        Of the table.
    values_first : bool
        Whether values of a file's partition are believed rather than the file.

    Raises
    ------
    SchemaError
        Naming the first file that is not what is said of it, or holds a column in a type the table has not.
    """
    for column in schema:
        if not known(column.type):
            raise asked.fault(
                f"cannot be read: column '{column.name}' is of type {column.type}, which is not read here; read the "
                "table by Spark with its connector (table.catalog), or write it anew with another type."
            )

    def read(one: Listed) -> DataFile:
        return _data_file(asked, schema, one, names, values_first=values_first, widened=widened)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(read, listed))


def _data_file(
    asked: Asked,
    schema: pa.Schema,
    listed: Listed,
    names: Names,
    *,
    values_first: bool,
    widened: Widened | None,
) -> DataFile:
    def fault(what: str) -> Exception:
        return asked.fault(f"cannot be read: file {name_of(listed.file)} {what}")

    metadata = _footer(listed, fault)
    if listed.rows is not None and metadata.num_rows != listed.rows:
        raise fault(f"holds {metadata.num_rows:,} rows, and the table says {listed.rows:,}; write the table anew.")
    if listed.local is not None and not str(metadata.created_by).startswith(_IN_UTC):
        raise fault(
            f"has a time without an offset in the partition column '{listed.local}'. It is a time of the session that "
            "wrote it, whose zone is not noted. Write the table anew with "
            "spark.databricks.delta.write.utcTimestampPartitionValues = true, or read it by Spark with Delta's "
            "connector (table.catalog) in a session of that zone."
        )
    said = metadata.metadata or {}
    if any(key.startswith(b"org.apache.spark.legacy") for key in said) or said.get(_SPARK, b"3") < b"3":
        raise fault("was written by a Spark before 3.0, which counts old days otherwise; rewrite the table's files.")
    in_file = metadata.schema.to_arrow_schema()
    try:
        found = dict(names(in_file))
    except ValueError as error:
        raise fault(f"{error}; rewrite the table's files.") from None
    if values_first:
        found = {column: name for column, name in found.items() if column not in listed.values}
    for column, name in found.items():
        has, wanted = in_file.field(name).type, schema.field(column).type
        physical = _physical(metadata, name)
        if not _alike(plain(has), wanted, physical) and not (widened and widened(plain(has), wanted)):
            raise fault(f"has column '{column}' as {has}, and the table as {wanted}; rewrite the table's files.")
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    values = {column: listed.values.get(column) for column in schema.names if column not in found}
    if listed.deleted is None or not len(listed.deleted):
        return DataFile(listed.file, groups, found, values)
    if listed.deleted[-1] >= metadata.num_rows:
        raise fault(f"holds {metadata.num_rows:,} rows, and rows beyond them are deleted; write the table anew.")
    ends = np.cumsum(groups)
    deleted = tuple(np.split(listed.deleted, np.searchsorted(listed.deleted, ends[:-1])))
    deleted = tuple(part - (end - rows) for part, end, rows in zip(deleted, ends, groups, strict=True))
    left = tuple(rows - len(part) for rows, part in zip(groups, deleted, strict=True))
    return DataFile(listed.file, left, found, values, deleted)


_SPARK = b"org.apache.spark.version"

_IN_UTC = ("delta-rs", "parquet-rs")
"""How files begin to name their writer that the package deltalake wrote: its times without an offset are in UTC."""


def _footer(listed: Listed, fault: Callable[[str], Exception]) -> pq.FileMetaData:
    gone = "is gone; if the table was vacuumed or its snapshots expired, take a newer version and a new run id."
    try:
        if isinstance(listed.file, ObjectFile):
            with listed.file.reader() as opened:
                size = opened.seek(0, 2)
                metadata = pq.read_metadata(opened)
        else:
            there = Path(listed.file).stat()
            if not stat.S_ISREG(there.st_mode):
                raise fault("is no file but a directory, pipe, socket or device; restore the table.")
            size, metadata = there.st_size, pq.read_metadata(listed.file)
    except FileNotFoundError:
        raise fault(gone) from None
    except (pa.ArrowException, OSError) as error:
        what = error.strerror if isinstance(error, OSError) and error.errno is not None else "it is damaged or cut"
        raise fault(f"is not readable as parquet ({what}); restore it.") from None
    if size != listed.size:
        raise fault(f"has {size:,} bytes, and the table says {listed.size:,}: it is not the file that was committed.")
    return metadata


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without what makes no difference to its values: offsets of 64 bits, nullability, names of items."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(of.name, plain(of.type)) for of in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    return kind


def known(kind: pa.DataType) -> bool:
    """Tell whether a plain type is one that a lake table may have here."""
    if pa.types.is_list(kind):
        return known(kind.value_type)
    if pa.types.is_map(kind):
        return known(kind.key_type) and known(kind.item_type)
    if pa.types.is_struct(kind):
        return all(known(of.type) for of in kind)
    if pa.types.is_timestamp(kind):
        return kind.unit == "us" and kind.tz in (None, "UTC")
    return kind in _SIMPLE or pa.types.is_decimal128(kind)


_SIMPLE = {
    *(pa.string(), pa.binary(), pa.bool_(), pa.date32()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
}


def _alike(has: pa.DataType, wanted: pa.DataType, physical: str | None) -> bool:
    """Whether values of a file are those of the table, as they are or in another unit of time."""
    if has == wanted:
        return True
    if not (pa.types.is_timestamp(has) and pa.types.is_timestamp(wanted)):
        return False
    if physical == "INT96":  # of no time zone by its type, and an instant by all who write it
        return wanted.tz is not None
    return has.unit in ("ms", "us") and (has.tz is None) == (wanted.tz is None)


def _physical(metadata: pq.FileMetaData, name: str) -> str | None:
    schema = metadata.schema
    found = [schema.column(i) for i in range(metadata.num_columns) if schema.column(i).path == name]
    return str(found[0].physical_type) if found else None
