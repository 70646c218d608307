"""Types, codecs and encodings of Parquet as programs write them: what is read, what is refused, and with which fix.

The expected values are written down, so that both engines are compared with the same ones.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import policy_of, quasi
from pyspark.sql import SparkSession

from privrisk_spark.engine.batches import in_chunks
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.policy import Policy, Table
from privrisk_spark.tables.opening import open_table, read
from privrisk_spark.tables.parquet_types import as_plain, read_footer
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "data" / "other_programs"
DAY, NOON = dt.date(1582, 10, 4), dt.datetime(2026, 3, 1, 12, 30, 0, 5)
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
IDENTITY = UUID("0123abcd-0000-4000-8000-00000000ffff")


@dataclass(frozen=True)
class Case:
    """Values of a type.

    Attributes
    ----------
    kind : DataType of Arrow
    values : list
        As they are written.
    type : str
        As what Spark has the column.
    read : list or None
        The values as they are read; None if they are those that are written.
    fix : str
        Of the error if a column of the type is used; empty if it is read.
    """

    kind: pa.DataType
    values: list[Any]
    type: str
    read: list[Any] | None = None
    fix: str = ""


def same(kind: pa.DataType, type_: str, *values: Any) -> Case:
    return Case(kind, [*values, None], type_)


def unread(kind: pa.DataType, fix: str, *values: Any) -> Case:
    return Case(kind, [*values, None], "void", [None] * (len(values) + 1), fix)


def instant(moment: dt.datetime) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC)


NANOSECONDS = [-1, -1000, 1999, None]
MICROSECONDS = [BEFORE, BEFORE, dt.datetime(1970, 1, 1, 0, 0, 0, 1), None]
TIME = "write it as text, such as 08:30:00"
NUMBER = "write it as a number or text"
CASES: dict[str, Case] = {
    "string": same(pa.string(), "string", "ü", ""),
    "large_string": same(pa.large_string(), "string", "ü", ""),
    "string_view": same(pa.string_view(), "string", "ü", ""),
    "dictionary of texts": same(pa.dictionary(pa.int8(), pa.string()), "string", "a", "b", "a"),
    "dictionary of large texts": same(pa.dictionary(pa.int32(), pa.large_string()), "string", "a", "b", "a"),
    "dictionary of numbers": same(pa.dictionary(pa.int8(), pa.int64()), "bigint", 1, 2, 1),
    "json": same(pa.json_(), "string", "{}"),
    "uuid": Case(pa.uuid(), [IDENTITY.bytes, None], "string", [str(IDENTITY), None]),
    "null": Case(pa.null(), [None, None], "string"),
    "bool": same(pa.bool_(), "boolean", True, False),
    "int8": same(pa.int8(), "tinyint", -128),
    "int16": same(pa.int16(), "smallint", -(2**15)),
    "int32": same(pa.int32(), "int", -(2**31)),
    "int64": same(pa.int64(), "bigint", -(2**63)),
    "uint8": same(pa.uint8(), "smallint", 255),
    "uint16": same(pa.uint16(), "int", 2**16 - 1),
    "uint32": same(pa.uint32(), "bigint", 2**32 - 1),
    "uint64": Case(pa.uint64(), [2**64 - 1, None], "decimal(20,0)", [Decimal(2**64 - 1), None]),
    "float16": Case(pa.float16(), [np.float16(1.5), np.float16("nan"), None], "float", [1.5, None, None]),
    "float32": Case(pa.float32(), [1.5, float("nan"), None], "float", [1.5, None, None]),
    "double": Case(pa.float64(), [-0.0, float("nan"), None], "double", [-0.0, None, None]),
    "decimal32": same(pa.decimal32(5, 2), "decimal(5,2)", Decimal("-1.50")),
    "decimal64": same(pa.decimal64(18, 2), "decimal(18,2)", Decimal("-1.50")),
    "decimal128": same(pa.decimal128(38, 3), "decimal(38,3)", Decimal("0.001")),
    "decimal256 that fits": same(pa.decimal256(38, 2), "decimal(38,2)", Decimal("1.50")),
    "decimal256": unread(pa.decimal256(50, 2), "write it as decimal(38, 2) or as text", Decimal("1.50")),
    "date32": same(pa.date32(), "date", DAY, dt.date(9999, 12, 31)),
    "date64": Case(pa.date64(), [0, None], "date", [dt.date(1970, 1, 1), None]),
    "timestamp[s]": same(pa.timestamp("s"), "timestamp_ntz", dt.datetime(1, 1, 1)),
    "timestamp[ms]": same(pa.timestamp("ms"), "timestamp_ntz", dt.datetime(1582, 10, 4, 1)),
    "timestamp[us]": same(pa.timestamp("us"), "timestamp_ntz", NOON),
    "timestamp[ns]": Case(pa.timestamp("ns"), NANOSECONDS, "timestamp_ntz", MICROSECONDS),
    "timestamp[s, zone]": Case(
        pa.timestamp("s", "Europe/Berlin"), [0, None], "timestamp", [instant(dt.datetime(1970, 1, 1)), None]
    ),
    "timestamp[us, zone]": Case(
        pa.timestamp("us", "UTC"), [0, None], "timestamp", [instant(dt.datetime(1970, 1, 1)), None]
    ),
    "timestamp[ms, zone]": Case(
        pa.timestamp("ms", "Asia/Tokyo"), [0, None], "timestamp", [instant(dt.datetime(1970, 1, 1)), None]
    ),
    "timestamp[ns, zone]": Case(
        pa.timestamp("ns", "Europe/Berlin"), NANOSECONDS, "timestamp", [one and instant(one) for one in MICROSECONDS]
    ),
    "time32": unread(pa.time32("ms"), TIME, dt.time(8, 30)),
    "time64": unread(pa.time64("ns"), TIME, 1),
    "duration": unread(pa.duration("ns"), NUMBER, 1),
    "binary": same(pa.binary(), "binary", b"\xff", b""),
    "large_binary": same(pa.large_binary(), "binary", b"\xff"),
    "binary_view": same(pa.binary_view(), "binary", b"\xff"),
    "fixed binary": same(pa.binary(2), "binary", b"\xff\x00"),
    "list": same(pa.list_(pa.uint8()), "array<smallint>", [1, None], []),
    "large list": same(pa.large_list(pa.large_string()), "array<string>", ["a", None], []),
    "list view": unread(pa.list_view(pa.int8()), "write it as a list", [1]),
    "large list view": unread(pa.large_list_view(pa.int8()), "write it as a list", [1]),
    "fixed list": same(pa.list_(pa.int32(), 2), "array<int>", [1, 2]),
    "struct": same(
        pa.struct([("a", pa.timestamp("ms")), ("b", pa.list_(pa.decimal128(5, 1)))]),
        "struct<a:timestamp_ntz,b:array<decimal(5,1)>>",
        {"a": dt.datetime(2026, 1, 1), "b": [Decimal("1.5"), None]},
    ),
    "map": Case(
        pa.map_(pa.string(), pa.float16()), [[("a", np.float16(1.5))], None], "map<string,float>", [[("a", 1.5)], None]
    ),
    "list of timestamps[ns]": unread(pa.list_(pa.timestamp("ns")), "write its times in microseconds", [1]),
    "struct with a time": unread(pa.struct([("a", pa.time64("us")), ("b", pa.int8())]), TIME, {"a": None, "b": 1}),
}  # fmt: skip


def array_of(case: Case) -> pa.Array:
    if isinstance(case.kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(case.kind, pa.array(case.values, case.kind.storage_type))
    if pa.types.is_dictionary(case.kind):
        encoded = pa.array(case.values, case.kind.value_type).dictionary_encode()
        return encoded.cast(case.kind)
    return pa.array(case.values, case.kind)


def write(place: Path, case: Case, **options: Any) -> Table:
    """Write a column ``x`` of a type next to one that is read as it is."""
    array = array_of(case)
    place.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": array, "y": ["a"] * len(array)}), place / "part.parquet", **options)
    return Table(path=str(place))


ROLES: dict[str, dict[str, Any]] = {
    "quasi-identifier": quasi({"flat": True}),
    "released": {"role": "insensitive"},
    "record id": {"role": "identifier"},
    "weight": {"role": "weight"},
    "dropped": {"role": "insensitive", "action": "drop"},
}


def policy_with(role: str, path: str | None) -> Policy:
    columns = {"x": ROLES[role], "y": quasi({"flat": True})}
    table = {"path": path} | ({"record_id": "x"} if role == "record id" else {})
    risk = {"risk": {"sensitivity": {"form": "record", "record": "x"}}} if role == "weight" else {}
    return policy_of(columns, table=table, **risk)


def error_of(spark: SparkSession, policy: Policy) -> str:
    try:
        open_table(spark, policy)
    except SchemaError as error:
        return str(error)
    return ""


def outcome_of(spark: SparkSession, place: Path, name: str) -> list[str]:
    """Return the row of a type in the documents: the type, as what it is read, each role but dropped, and the fix."""
    case = CASES[name]
    table = write(place, case)
    errors = {role: error_of(spark, policy_with(role, table.path)) for role in ROLES}
    assert not errors.pop("dropped"), name
    for error in filter(None, errors.values()):
        assert error.startswith(f"table.path: '{place}': column 'x' is of type " if case.fix else "columns.x: "), error
        assert not case.fix or f"Fix: {case.fix}, or drop the column" in error
    assert not case.fix or all(errors.values()), name
    said = ["no" if error else "yes" for error in errors.values()]
    return [name, "not read" if case.fix else f"`{case.type}`", *said, case.fix or "-"]


def rows_of(spark: SparkSession, table: Table) -> list[Any]:
    """Return the values as stages take them, the files of a task in one chunk."""
    found = scan(table, read(spark, table, key="table"), [Wanted("v", "x", "value")])
    values: list[Any] = found.then(in_chunks, found.schema).frame().toArrow().column("v").to_pylist()
    return values


def exact(values: list[Any]) -> list[str]:
    return [repr(value.astimezone(dt.UTC) if getattr(value, "tzinfo", None) else value) for value in values]


READ = [name for name, case in CASES.items() if not case.fix]


@pytest.mark.parametrize("name", READ)
def test_read_values_of_every_type_are_those_that_were_written(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    table = write(tmp_path / "t", case)
    frame = read(spark, table, key="table")
    assert frame.schema["x"].dataType.simpleString() == case.type
    expected = case.values if case.read is None else case.read
    assert exact(rows_of(spark, table)) == exact(expected)


def documented(rows: list[list[str]]) -> list[str]:
    """Return the lines of the table in the documents; types of one outcome share a line."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for name, *outcome in rows:
        grouped.setdefault(tuple(outcome), []).append(name)
    return [f"| {', '.join(names)} | {' | '.join(outcome)} |" for outcome, names in grouped.items()]


def test_open_table_column_of_any_type_matters_only_if_its_role_uses_it(spark: SparkSession, tmp_path: Path) -> None:
    """The documents list the same outcomes."""
    expected = documented([outcome_of(spark, tmp_path / name, name) for name in CASES])
    page = (ROOT / "docs" / "files.md").read_text()
    found = page.partition("## Types of Parquet\n")[2].partition("\n## ")[0]
    lines = [line for line in found.splitlines() if line.startswith("| ")][1:]
    assert lines == expected, "\n".join(expected)


def test_read_several_unreadable_columns_names_all_of_them(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.table({"b": pa.array([1], pa.time64("us")), "a": pa.array([1], pa.duration("s")), "y": ["a"]})
    pq.write_table(times, tmp_path / "t.parquet")
    with pytest.raises(SchemaError) as refused:
        read(spark, Table(path=str(tmp_path)), key="table")
    assert [fault.path for fault in refused.value.faults] == ["table.path"] * 2
    assert read(spark, Table(path=str(tmp_path)), key="dictionary", columns={"y"}).columns == ["b", "a", "y"]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_read_every_codec(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    table = write(tmp_path / "t", CASES["string"], compression=codec)
    assert rows_of(spark, table) == CASES["string"].values
    frame = read(spark, table, key="table")
    assert sorted(map(repr, frame.toArrow().column("x").to_pylist())) == sorted(map(repr, CASES["string"].values))


def test_read_codec_that_arrow_lacks_names_the_column(spark: SparkSession, tmp_path: Path) -> None:
    """A column without a use may have it; the file is not damaged."""
    table = write(tmp_path / "t", CASES["int64"])
    file = tmp_path / "t" / "part.parquet"
    snappy, lzo = b"\x19\x18\x01x\x15\x02", b"\x19\x18\x01x\x15\x06"  # in the footer, after the column's path
    assert file.read_bytes().count(snappy) == 1
    file.write_bytes(file.read_bytes().replace(snappy, lzo))
    with pytest.raises(SchemaError, match=r"column 'x' is of type int64 with codec LZO, which cannot be read\. Fix: "):
        read(spark, table, key="table")
    assert read(spark, table, key="table", used={"y"}).toArrow().column("x").null_count == 2


ENCODINGS = {
    "DELTA_BYTE_ARRAY": "string",
    "DELTA_LENGTH_BYTE_ARRAY": "large_string",
    "DELTA_BINARY_PACKED": "int64",
    "BYTE_STREAM_SPLIT": "double",
    "RLE": "bool",
    "PLAIN": "string",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_read_every_encoding(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    """A file of the same table with a dictionary is read by the same task."""
    case = CASES[ENCODINGS[encoding]]
    table = write(tmp_path / "t", case, use_dictionary=False, column_encoding={"x": encoding})
    write(tmp_path / "u", case)
    (tmp_path / "u" / "part.parquet").rename(tmp_path / "t" / "other.parquet")
    expected = exact((case.values if case.read is None else case.read) * 2)
    assert sorted(exact(rows_of(spark, table))) == sorted(expected)
    frame = read(spark, table, key="table")
    assert frame.toArrow().num_rows == len(expected)


def test_read_files_with_other_arrow_types_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """Programs write the same type of Parquet with other notes for Arrow."""
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    for number, kind in enumerate(kinds):
        pq.write_table(pa.table({"x": pa.array(["a", None]).cast(kind)}), tmp_path / f"{number}.parquet")
    assert sorted(rows_of(spark, Table(path=str(tmp_path))), key=repr) == ["a"] * 4 + [None] * 4


def test_read_merged_files_have_missing_values_for_the_columns_they_lack(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"y": ["b"], "x": pa.array([2], pa.timestamp("ns"))}), tmp_path / "b.parquet")
    table = Table(path=str(tmp_path), options={"mergeSchema": True})
    found = read(spark, table, key="table").toArrow()
    assert found.column_names == ["x", "y"]
    assert sorted(found.column("y").to_pylist(), key=repr) == ["b", None]


@pytest.mark.on_spark("the embedded engine refuses the option")
@pytest.mark.parametrize("case", ["timestamp[ns]", "uuid", "float16", "time64", "time32", "decimal256"])
def test_read_types_only_tasks_read_with_options_of_spark_names_column_and_fix(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    path = write(tmp_path / "t", CASES[case]).path
    (tmp_path / "t" / "part.txt").write_text("no Parquet")
    wanted = r"Spark says [A-Z_]+ of 'x' \([^)]+\)+\. Fix: give the table's path without options"
    with pytest.raises(SchemaError, match=wanted):
        read(spark, Table(path=path, options={"pathGlobFilter": "*.parquet"}), key="table")


def test_read_several_columns_of_one_name_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([1], pa.timestamp("ns"))
    pq.write_table(pa.Table.from_arrays([times, times], ["x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r"file t\.parquet has several columns 'x'"):
        read(spark, Table(path=str(tmp_path)), key="table")


EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "pandas": {
        "id": "p0", "seen": BEFORE, "city": "Ulm", "score": 0.5, "half": 0.0, "small": 1, "stay": None, "none": None
    },
    "pandas_brotli": {"id": "p0", "city": "Ulm", "age": 41.0},
    "duckdb": {
        "id": "00000000-0000-4000-8000-000000000000", "city": "Ulm", "sex": "f", "opened": None, "stay": None,
        "seen": BEFORE, "large": 0.0, "count": Decimal(0), "price": Decimal("0.25"), "note": '{"a": 1}',
        "codes": [0, None], "pair": {"a": 0, "b": "x"},
    },
    "polars": {
        "id": "p0", "city": "Ulm", "sex": "f", "seen": BEFORE, "day": DAY, "opened": None, "stay": None,
        "count": Decimal(0), "price": Decimal("1.25"), "codes": [1, 2], "none": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_read_files_of_other_programs(spark: SparkSession, name: str) -> None:
    table = Table(path=str(FILES / f"{name}.parquet"))
    frame = read(spark, table, key="table", used={"id"})
    assert frame.toArrow().to_pylist()[0] == EXPECTED[name]
    unread_columns = [column for column in ("opened", "stay") if column in EXPECTED[name]]
    if unread_columns:
        with pytest.raises(SchemaError) as refused:
            read(spark, table, key="table")
        assert len(refused.value.faults) == len(unread_columns)


def test_read_footer_interval_of_duckdb_is_unreadable(tmp_path: Path) -> None:
    duckdb.sql(f"copy (select to_days(3) as x) to '{tmp_path}/t.parquet'")
    found = read_footer(f"{tmp_path}/t.parquet")
    assert found.unreadable["x"].kind == "interval"


@pytest.mark.parametrize("kind", ["interval day to second", "variant", {"type": "udt", "class": "Point"}])
def test_read_footer_types_that_spark_writes_as_others_are_unreadable(tmp_path: Path, kind: Any) -> None:
    """Spark notes them in the file; their values are numbers to every other reader."""
    fields = [{"name": name, "type": of, "nullable": True, "metadata": {}} for name, of in (("x", kind), ("y", "long"))]
    noted = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    pq.write_table(pa.table({"x": [1], "y": [2]}).replace_schema_metadata(noted), tmp_path / "t.parquet")
    assert set(read_footer(f"{tmp_path}/t.parquet").unreadable) == {"x"}


@pytest.mark.parametrize("note", ["no JSON", "[]", '{"fields": [1]}', '{"fields": [{"name": "a"}]}'])
def test_read_footer_with_damaged_notes_of_spark_ignores_them(tmp_path: Path, note: str) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": note})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_footer(str(tmp_path / "t.parquet")).types == {"a": pa.int64()}


def test_as_plain_slices_keep_their_values() -> None:
    """Arrays of a batch may begin in the middle of their buffers."""
    nanoseconds = pa.array([5, None, -1, 1001], pa.timestamp("ns"))
    assert as_plain(nanoseconds[2:], pa.timestamp("us")).cast(pa.int64()).to_pylist() == [-1, 1]
    identities = pa.array([bytes(16), None, IDENTITY.bytes], pa.binary(16))
    assert as_plain(identities[1:], pa.string()).to_pylist() == [None, str(IDENTITY)]
