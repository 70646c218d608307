"""Types of Parquet: as what each column of a file is read, on every engine, and the columns that cannot be read."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Footer", "Unreadable", "as_plain", "counts_days_otherwise", "encodes_plainly", "read_footer"]

_INSTANT = pa.timestamp("us", "UTC")
_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
_PLAIN_ENCODINGS = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
"""Those that the readers of both engines have in each of their versions."""
_AVAILABLE = {*_CODECS, "BROTLI", "LZ4", "LZ4_RAW"}

_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_OF_SPARK = re.compile(r'"(?:type|elementType|keyType|valueType)": "(interval [a-z ]+|variant|udt)"')
"""Types that Spark writes as others, as it notes in the file."""


@dataclass(frozen=True)
class Unreadable:
    """Why a column cannot be read.

    Attributes
    ----------
    kind : str
        Its type.
    """

    kind: str
    fix: str


@dataclass(frozen=True)
class Footer:
    """What a file says of its rows and columns.

    Attributes
    ----------
    groups : tuple of int
        Rows of its row groups.
    written : Schema of Arrow
        As the file itself says.
    types : mapping of column to DataType of Arrow
        As what tasks read it; in the order of the file. An unreadable column has no values.
    unreadable : mapping of column to Unreadable
    rounded : frozenset of str
        Columns whose times are in nanoseconds, which are rounded down to microseconds.
    unusual_columns : frozenset of str
        Columns of types that the engines' own readers may lack, or read as other types.
    other_calendar : bool
        Whether days before 1582 are counted by another calendar.
    by_spark : bool
        Whether Spark wrote it.
    unusual : bool
        Whether it has such columns, or codecs or encodings that the readers may lack.
    retyped : bool
        Whether the writer notes types of Arrow that are not those of the file, which the embedded engine takes.
    """

    groups: tuple[int, ...]
    written: pa.Schema
    types: Mapping[str, pa.DataType]
    unreadable: Mapping[str, Unreadable]
    rounded: frozenset[str]
    unusual_columns: frozenset[str]
    other_calendar: bool
    by_spark: bool
    unusual: bool
    retyped: bool

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.groups)


def read_footer(file: str | IO[bytes]) -> Footer:
    """Read the footer of a Parquet file.

    Parameters
    ----------
    file : str or file
        Its path, or the file opened.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If it cannot be read.
    """
    metadata = pq.read_metadata(file)
    schema, said = metadata.schema.to_arrow_schema(), metadata.metadata or {}
    leaves = (metadata.schema.column(i) for i in range(metadata.num_columns))
    noted = _read_notes(said.get(_SPARK, b"{}"))
    noted_types, other_calendar = said.get(b"ARROW:schema"), counts_days_otherwise(said)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(metadata.num_columns)]
    unusual = any(one.compression not in _CODECS or not set(one.encodings) <= _PLAIN_ENCODINGS for one in chunks)
    lost = {one.path_in_schema: one.compression for one in chunks if one.compression not in _AVAILABLE}
    types, unreadable, rounded, unusual_columns = {}, {}, set(), set()
    for field in schema:
        column = _Column(lost)
        types[field.name] = column.read(field.type, leaves, nested=False)
        of_spark = _OF_SPARK.search(json.dumps({"type": noted.get(field.name)}))
        if of_spark is not None:
            column.fault = Unreadable(of_spark[1], "cast it to a number or text")
        elif other_calendar and column.days:
            fix = "write it again by Spark 3 or later, or give --engine spark"
            column.fault = Unreadable(f"{field.type} that counts days before 1582 by another calendar", fix)
        if column.fault is not None:
            types[field.name], unreadable[field.name] = pa.null(), column.fault
        elif column.rounded:
            rounded.add(field.name)
        if column.unusual or column.rounded or column.fault is not None:
            unusual_columns.add(field.name)
    return Footer(
        groups=tuple(group.num_rows for group in groups),
        written=schema,
        types=types,
        unreadable=unreadable,
        rounded=frozenset(rounded),
        unusual_columns=frozenset(unusual_columns),
        other_calendar=other_calendar,
        by_spark=any(key.startswith(b"org.apache.spark") for key in said),
        unusual=unusual or bool(unusual_columns),
        retyped=noted_types is not None
        and pa.ipc.read_schema(pa.py_buffer(b64decode(noted_types))).types != schema.types,
    )


def _read_notes(said: bytes) -> dict[str, Any]:
    """Types of Spark by column, as Spark notes them; none if the note is damaged."""
    try:
        return {one["name"]: one["type"] for one in json.loads(said).get("fields", ())}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def counts_days_otherwise(said: Mapping[bytes, bytes]) -> bool:
    """Return True if the writer of a Parquet file counted days before 1582 by another calendar, as Spark 2 did.

    Parameters
    ----------
    said : mapping
        The file's own notes.
    """
    return b"org.apache.spark.legacyDateTime" in said or said.get(b"org.apache.spark.version", b"3") < b"3"


def encodes_plainly(metadata: pq.FileMetaData, groups: range) -> set[str]:
    """Return the columns of row groups that Arrow can read as dictionaries: other encodings it reads only as values."""
    found = {metadata.schema.column(i).path for i in range(metadata.num_columns)}
    for group in map(metadata.row_group, groups):
        chunks = map(group.column, range(group.num_columns))
        found -= {one.path_in_schema for one in chunks if not set(one.encodings) <= _PLAIN_ENCODINGS}
    return found


@dataclass
class _Column:
    """What is found of a column while its type is read."""

    lost: Mapping[str, str]
    fault: Unreadable | None = None
    rounded: bool = False
    unusual: bool = False
    days: bool = False

    def read(self, kind: pa.DataType, leaves: Iterator[pq.ColumnSchema], *, nested: bool) -> pa.DataType:
        """Return the type as which a column is read, and go on to the next column's leaves of the file."""
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_map(kind):
            key = self.read(kind.key_type, leaves, nested=True)
            return pa.map_(key, self.read(kind.item_type, leaves, nested=True))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(one.name, self.read(one.type, leaves, nested=True)) for one in kind])
        if pa.types.is_nested(kind):
            if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
                self.fault = Unreadable(str(kind), "write it as a list")  # Arrow's own conversion makes damaged ones
            return pa.list_(pa.field("element", self.read(kind.field(0).type, leaves, nested=True)))
        return self.read_leaf(kind, next(leaves), nested=nested)

    def read_leaf(self, kind: pa.DataType, leaf: pq.ColumnSchema, *, nested: bool) -> pa.DataType:
        """Return the type as which a column without fields is read."""
        logical = leaf.logical_type.type
        if leaf.path in self.lost:
            self.fault = Unreadable(f"{kind} with codec {self.lost[leaf.path]}", "write it with codec zstd")
        self.unusual |= logical == "UUID" or pa.types.is_null(kind) or pa.types.is_float16(kind)
        self.days |= pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        if leaf.physical_type == "INT96":  # an instant to all who write it, without a time zone by its type
            return _INSTANT
        if pa.types.is_timestamp(kind):
            self.rounded |= kind.unit == "ns"
            if nested and kind.unit == "ns":
                self.fault = Unreadable(f"list or struct with {kind}", "write its times in microseconds")
            return pa.timestamp("us", kind.tz and "UTC")
        if logical == "UUID":
            if nested:
                self.fault = Unreadable("list or struct with UUIDs", "write them as texts")
            return pa.string()
        if logical in ("ENUM", "JSON") or pa.types.is_null(kind) or kind in (pa.large_string(), pa.string_view()):
            return pa.string()
        if pa.types.is_decimal(kind) and kind.precision <= 38:
            return pa.decimal128(kind.precision, kind.scale)
        interval = leaf.converted_type == "INTERVAL"
        if interval or pa.types.is_duration(kind):
            self.fault = Unreadable("interval" if interval else str(kind), "write it as a number or text")
        elif pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or kind in _BINARIES:
            return pa.binary()
        elif pa.types.is_date(kind):
            return pa.date32()
        elif pa.types.is_float16(kind):
            return pa.float32()
        elif pa.types.is_time(kind):
            self.fault = Unreadable(str(kind), "write it as text, such as 08:30:00")
        elif pa.types.is_decimal(kind):
            self.fault = Unreadable(str(kind), f"write it as decimal(38, {min(kind.scale, 37)}) or as text")
        elif not (pa.types.is_string(kind) or pa.types.is_primitive(kind)):
            self.fault = Unreadable(str(kind), "write it as text")
        return _WIDER.get(kind, kind)


_BINARIES = (pa.large_binary(), pa.binary_view())


def as_plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a file's column as the type as which they are read; what is a dictionary stays one.

    Parameters
    ----------
    array : Array of Arrow
    kind : DataType of Arrow
        The type in a :class:`Footer`, or a wider one.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if array.type.equals(kind):
        return array
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), as_plain(array.dictionary, kind))
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        whole = array.cast(pa.int64())
        rounded = np.floor_divide(whole.fill_null(0).to_numpy(zero_copy_only=False), 1000)
        return pa.array(rounded, mask=array.is_null().to_numpy(zero_copy_only=False)).cast(kind)
    if pa.types.is_fixed_size_binary(array.type) and pa.types.is_string(kind):
        return _uuid_texts(array)
    return array.cast(kind)


_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_DIGITS = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuid_texts(array: pa.Array) -> pa.Array:
    """Return UUIDs of 16 bytes as texts of 36 small letters, digits and dashes."""
    raw = np.frombuffer(b"".join(array.fill_null(bytes(16)).to_pylist()), dtype=np.uint8).reshape(-1, 16)
    texts = np.full((len(raw), 36), ord("-"), dtype=np.uint8)
    texts[:, _DIGITS[0::2]], texts[:, _DIGITS[1::2]] = _HEX[raw >> 4], _HEX[raw & 15]
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(texts.view("S36").ravel().astype(object), pa.binary(), mask=missing).cast(pa.string())
