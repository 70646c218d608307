"""CSV tables read by tasks: local files and files in an object store, on both engines."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, SchemaError
from privrisk_spark.policy.csv_dialect import parse_csv_dialect
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.tables import csv_rows
from privrisk_spark.tables.csv_rows import CsvDamage, collect_csv_damage, read_csv_table
from privrisk_spark.tables.csv_tables import write_csv
from privrisk_spark.tables.csv_values import find_csv_records
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.source_files import is_csv_by_tasks

Row = tuple[str | None, ...]


def write(root: Path, layout: Mapping[str, bytes]) -> str:
    for name, content in layout.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return str(root)


def rows_of(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.collect()]


def open_bytes(spark: SparkSession, root: Path, content: bytes, **options: Any) -> DataFrame:
    write(root, {"t.csv": content})
    return read_csv_table(spark, Table(path=str(root / "t.csv"), format="csv", options=options), key="table")


def rows_of_module(text: str, *, sep: str = ",") -> list[Row]:
    """Rows by Python's own reader; it does not tell an empty value from two quotes, so both are missing."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True)
    return [tuple(value or None for value in row) for row in rows if any(value.strip() for value in row)]


HARD = (
    "id,a b,c.d\n"
    '1,"x, y",plain\r\n'
    '2,"says ""no""",\n'
    "\n   \n"
    '3,"back \\ slash",""\r'
    "4, blank ,ü€😀\n"
    "5,,a\u2028b\n"
    "6,5\" pipe,it's\n"
    '7,"""",\'\n'
    '8,"a"",""b",NA'
)


@pytest.mark.parametrize("part", [7, 50, 2**25])
@pytest.mark.parametrize("form", ["", "gz", "bz2", "store"])
def test_read_csv_table_of_hard_values_returns_rows_of_the_csv_module(
    spark: SparkSession, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, part: int
) -> None:
    del endpoint
    monkeypatch.setattr(csv_rows, "PART", part)
    content = HARD.encode()
    packed = {"gz": gzip.compress, "bz2": bz2.compress}.get(form, bytes)(content)
    path = write(tmp_path / "t", {f"a.csv.{form}" if form in ("gz", "bz2") else "a.csv": packed, "_SUCCESS": b""})
    if form == "store":
        path = f"s3://{BUCKET}/{uuid4().hex}"
        open_store(locate(path, key="table.path")).upload("a.csv", tmp_path / "t" / "a.csv")
    found = read_csv_table(spark, Table(path=path, format="csv", options={"header": True}), key="table")
    names, *expected = rows_of_module(HARD)
    assert tuple(found.columns) == names
    assert sorted((tuple(value or None for value in row) for row in rows_of(found)), key=str) == sorted(
        expected, key=str
    )


def test_read_csv_table_of_empty_texts_takes_them_for_missing_unless_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = open_bytes(spark, tmp_path, b'a,b\n"",x\n,y\n"NA",NA\n', header=True)
    assert rows_of(frame) == [(None, "x"), (None, "y"), ("NA", "NA")]
    frame = open_bytes(spark, tmp_path, b'a,b,c\n"1","x",', header=True, nullValue="NA", emptyValue="none")
    assert rows_of(frame) == [("1", "x", None)]
    frame = open_bytes(spark, tmp_path, b'a,b\n"",x\n,y\n"NA",NA\n', header=True, nullValue="NA", emptyValue="none")
    assert rows_of(frame) == [("none", "x"), (None, "y"), (None, None)]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"a\tb\n1\t2\n", {"header": "TRUE", "sep": "\\t"}, [("1", "2")]),
        (b"a\tb\n1\t2\n \t \n\t\n  \n", {"header": True, "sep": "\t"}, [("1", "2"), (" ", " "), (None, None)]),
        (b"x;1\n", {"delimiter": ";"}, [("x", "1")]),
        (b"'a;b';2\n", {"sep": ";", "quote": "'"}, [("a;b", "2")]),
        (b'5" x;"2\n', {"sep": ";", "quote": ""}, [('5" x', '"2')]),
        (b'a,"say \\"no\\""\n', {"escape": "\\"}, [("a", 'say "no"')]),
        (b"#\n\n#x\n1,2\n", {"comment": "#"}, [("1", "2")]),
        (b"Report 2026\n\nx,y\n1,2\n", {"header": True, "skipRows": 2}, [("1", "2")]),
        (b"\xef\xbb\xbfx,y\n1,2\n", {"header": True}, [("1", "2")]),
        (b"\xef\xbb\xbf1,2\n", {}, [("1", "2")]),
        (b"x,y\r1,2\r", {"header": True}, [("1", "2")]),
        (b'x,y\n1,"two\r\nlines"\n3,"and ""\n"" two"\n', {"header": True, "multiLine": True},
         [("1", "two\r\nlines"), ("3", 'and "\n" two')]),
        (b'5" pipe,3\n"two\n2"" lines",""\na"",x"y"\n', {"multiLine": True},
         [('5" pipe', "3"), ('two\n2" lines', None), ('a""', 'x"y"')]),
        (b'5" pipe,3\n6" pipe,""\na"",x"y"\n', {}, [('5" pipe', "3"), ('6" pipe', None), ('a""', 'x"y"')]),
        ("x;y\n1;Köln €\n".encode("cp1252"), {"header": True, "sep": ";", "encoding": "windows-1252"},
         [("1", "Köln €")]),
        ("x;y\n1;Köln €\n".encode("utf-16"), {"header": True, "sep": ";", "encoding": "UTF-16"}, [("1", "Köln €")]),
        ("\ufeffx;y\r\n1;Köln\r\n".encode("utf-16-le"), {"header": True, "sep": ";", "charset": "UTF-16LE"},
         [("1", "Köln")]),
        ("x,y\n1,東京\n".encode("shift_jis"), {"header": True, "encoding": "Shift_JIS"}, [("1", "東京")]),
    ],
)  # fmt: skip
def test_read_csv_table_of_dialects_returns_values(
    spark: SparkSession, tmp_path: Path, content: bytes, options: dict[str, Any], expected: list[Row]
) -> None:
    frame = open_bytes(spark, tmp_path, content, **options)
    assert rows_of(frame) == expected
    assert not any("\ufeff" in name for name in frame.columns)
    damage = collect_csv_damage(spark, Table(path=str(tmp_path / "t.csv"), format="csv", options=options), key="table")
    assert damage == CsvDamage(len(expected), 0, 0, 0, 0)


def test_read_csv_table_of_frame_of_pandas_returns_it(spark: SparkSession, tmp_path: Path) -> None:
    given = pd.DataFrame({"a": ["x\ny", 'q"r', "s,t", None], "b": ["1", "010", " 2 ", ""]})
    given.to_csv(tmp_path / "t.csv", index=False, quoting=csv.QUOTE_ALL, na_rep="NA")
    table = Table(path=str(tmp_path / "t.csv"), format="csv", options={"header": True, "multiLine": True})
    found = rows_of(read_csv_table(spark, table, key="table"))
    assert found == [("x\ny", "1"), ('q"r', "010"), ("s,t", " 2 "), ("NA", None)]


@pytest.mark.parametrize("seed", range(3))
def test_read_csv_table_with_quotes_in_values_returns_what_pandas_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Of values that other programs write without quotes around them, next to quoted ones of several lines."""
    pick = random.Random(seed)
    plain, quoted = ['5" pipe', 'a""b', "x", 'say "no"', '6"'], ['"two\nlines"', '"2"" pipe\n"', '"a,""\n"",b"']
    values = [[pick.choice(plain + quoted) for _ in "xy"] for _ in range(200)]
    content = "x,y\n" + "".join(f"{x},{y}\n" for x, y in values)
    monkeypatch.setattr(csv_rows, "BLOCK", 37)
    frame = open_bytes(spark, tmp_path, content.encode(), header=True, multiLine=True)
    expected = pd.read_csv(io.StringIO(content), dtype=str)
    assert rows_of(frame) == list(expected.itertuples(index=False, name=None))


def test_read_csv_table_of_a_release_of_ours_returns_its_texts(spark: SparkSession, tmp_path: Path) -> None:
    """Quotes, separators, backslashes and line ends come back."""
    texts = ["plain", 'says "no"', "a,b", "back\\slash", '\\"', "two\nlines", " blanks ", "=1+1", "ü€😀", "'"]
    given = spark.createDataFrame([(f"{i:02}", text) for i, text in enumerate(texts)], "id string, text string")
    place = write_csv(Scratch(spark, tmp_path), given, "release")
    table = Table(path=str(place), format="csv", options={"header": True, "multiLine": True})
    assert sorted(rows_of(read_csv_table(spark, table, key="table"))) == rows_of(given.orderBy("id"))
    assert collect_csv_damage(spark, table, key="table") == CsvDamage(len(texts), 0, 0, 0, 0)


DAMAGED = b'x,y,z\n1,2,3\n1\n1,2,3,4\n,,\n"1,2\n1,2,"3"4\n9,\xff,9\n'


def test_read_csv_table_of_damaged_lines_fills_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    frame = open_bytes(spark, tmp_path, DAMAGED, header=True, mode="PERMISSIVE")
    none = (None, None, None)
    whole = [("1", "2", "3"), ("1", None, None), ("1", "2", "3"), none, none, none, ("9", "\ufffd", "9")]
    assert rows_of(frame) == whole
    assert frame.count() == 7
    for chosen in ([0], [1], [2], [2, 0], [1, 2]):
        names = [frame.columns[i] for i in chosen]
        assert rows_of(frame.select(names)) == [tuple(row[i] for i in chosen) for row in whole]


def test_read_csv_table_in_other_modes_drops_or_refuses_damaged_lines(spark: SparkSession, tmp_path: Path) -> None:
    frame = open_bytes(spark, tmp_path, DAMAGED, header=True, mode="dropmalformed")
    assert rows_of(frame) == [("1", "2", "3"), (None, None, None), ("9", "\ufffd", "9")]
    assert rows_of(frame.select("y")) == [("2",), (None,), ("\ufffd",)]
    strict = open_bytes(spark, tmp_path, DAMAGED, header=True, mode="FAILFAST")
    for names in (["x"], ["x", "y", "z"]):
        with pytest.raises(SchemaError, match=r"a line is malformed, and options\.mode is FAILFAST"), named():
            strict.select(names).toArrow()


@pytest.mark.parametrize("part", [5, 2**25])
def test_collect_csv_damage_counts_each_kind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(csv_rows, "PART", part)
    write(tmp_path, {"t.csv": DAMAGED})
    table = Table(path=str(tmp_path), format="csv", options={"header": True})
    assert collect_csv_damage(spark, table, key="table") == CsvDamage(7, 4, 1, 2, 1)


def test_read_csv_table_of_several_files_adds_columns_of_directories(spark: SparkSession, tmp_path: Path) -> None:
    layout = {
        "day=2026-01-01/a.csv": b"x,y\n1,2\n",
        "day=2026-01-01/b.csv.gz": gzip.compress(b"x,y\n3,4\n"),
        "day=2026-01-02/c.CSV.BZ2": bz2.compress(b"x,y\n5,6\n7,8\n"),
        "day=2026-01-03/none.csv": b"x,y\n",
    }
    table = Table(path=write(tmp_path / "t", layout), format="csv", options={"header": True})
    found = read_csv_table(spark, table, key="table")
    assert found.columns == ["x", "y", "day"]
    assert sorted(rows_of(found)) == [
        ("1", "2", "2026-01-01"), ("3", "4", "2026-01-01"), ("5", "6", "2026-01-02"), ("7", "8", "2026-01-02"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ"])
def test_read_csv_table_of_a_compressed_file_reads_beyond_its_size(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    write(tmp_path, {name: gzip.compress(b"x\n" + b"1\n" * 10_000)})
    table = Table(path=str(tmp_path), format="csv", options={"header": True})
    assert read_csv_table(spark, table, key="table").count() == 10_000


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"a.csv": b"x,y\n1,2\n", "b.csv": b"y,x\n1,2\n"}, "files a.csv and b.csv do not have the same columns"),
        ({"a.csv": b"x,X\n1,2\n"}, "has the column 'X' twice|has the column 'x' twice"),
        ({"a.csv": b'"PLANTED,x\n1,2\n'}, "file a.csv has a first line that is not CSV(?s:.*)multiLine: true"),
        ({"a.csv": b"\n  \n"}, "its files have no rows and no header"),
        ({"a.csv": b"x\n1\n", "b.csv.ZST": b"abc"}, "file b.csv.ZST is compressed in a way that is not read here"),
        ({"a.csv.gz": gzip.compress(b"x\n" + b"PLANTED\n" * 99)[:-20]}, "file a.csv.gz is compressed, and damaged or"),
        ({"a.csv.bz2": b"PLANTED"}, "file a.csv.bz2 is compressed, and damaged or cut"),
        ({"other=1/a.csv": b"x\n1\n", "a.csv": b"x\n1\n"}, "not for the same columns as the others"),
        ({"a.csv": b"x\n1\n", "old/b.csv": b"x\n2\n"}, "there are 2 data files, and Spark reads 1 of them"),
        ({"a.csv": "\ufeffx\nPLANTED\n".encode("utf-16-be")}, "file a.csv is in UTF-16"),
        ({"a.csv": "x\nPLANTED\n".encode("utf-16")}, "file a.csv is in UTF-16. Fix: set table.options.encoding"),
    ],
)
def test_read_csv_table_of_misleading_files_names_the_file(
    spark: SparkSession, tmp_path: Path, layout: dict[str, bytes], message: str
) -> None:
    table = Table(path=write(tmp_path / "t", layout), format="csv", options={"header": True})
    with pytest.raises(SchemaError, match=message) as told, named():
        read_csv_table(spark, table, key="table").toArrow()
    assert "table.path" in str(told.value)
    assert "PLANTED" not in str(told.value)


def test_read_csv_table_of_a_quote_that_does_not_end_is_refused_by_its_size(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 1000)
    monkeypatch.setattr(csv_rows, "BLOCK", 100)
    content = b'x\n1\n"PLANTED\n' + b"2\n" * 999
    write(tmp_path, {"t.csv": content})
    table = Table(path=str(tmp_path), format="csv", options={"header": True, "multiLine": True})
    layout = csv_rows._find_layout(table, "table")
    with pytest.raises(SchemaError, match="a row of more than 1,000 bytes: a quote that does not end"):
        list(csv_rows._read_blocks(layout, *layout.parts[0]))


def test_read_csv_table_privately_drops_a_row_of_any_length(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 3 * 2**20)
    write(tmp_path, {"t.csv": b"x\n1\n" + b"2" * 2**24 + b"\n3\n"})
    table = Table(path=str(tmp_path), format="csv", options={"header": True})
    assert rows_of(read_csv_table(spark, table, key="table", private=True)) == [("1",), ("3",)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"inferSchema": True},
            "table.options.inferSchema: is an unknown option of csv, whose values are texts",
        ),
        ({"sep": "::"}, "table.options.sep: must be one ASCII character, and no line end. Got '::'"),
        ({"sep": '"'}, "table.options.sep: must differ from quote and comment"),
        ({"comment": "é"}, "table.options.comment: must be one ASCII character"),
        ({"header": "maybe"}, "table.options.header: .*boolean.* Got 'maybe'"),
        ({"encoding": "klingon"}, "table.options.encoding: must be an encoding that Python knows"),
        ({"mode": "SOMEHOW"}, "table.options.mode: 'PERMISSIVE', 'DROPMALFORMED' or 'FAILFAST'. Got 'SOMEHOW'"),
        ({"sep": ";", "delimiter": ","}, "table.options.delimiter: sets the same as sep"),
        ({"multiLine": True, "escape": "\\"}, "table.options.multiLine: goes with doubled quotes only"),
        ({"seperator": ";"}, "table.options.seperator: is an unknown option of csv"),
        ({"encoding": "hex"}, "table.options.encoding: must be an encoding that Python knows"),
        ({"comment": '"'}, "table.options.comment: must differ from quote"),
        ({"multiLine": True, "comment": "#"}, "table.options.comment: must be left out with multiLine"),
        ({"skipRows": -1}, "table.options.skipRows: .*greater than or equal to 0"),
    ],
)
def test_parse_csv_dialect_of_wrong_options_names_each(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_csv_dialect(options, "table.options")


def test_is_csv_by_tasks_leaves_places_that_only_spark_reaches(tmp_path: Path) -> None:
    write(tmp_path, {"a.csv": b"x\n"})
    paths = {
        str(tmp_path): True, f"{tmp_path}/*.csv": True, "s3://bucket/t": True, "hdfs://name/t": True,
        "s3://bucket/t*": False, "dbfs://t": False,
    }  # fmt: skip
    assert {path: is_csv_by_tasks(Table(path=path, format="csv")) for path in paths} == paths
    assert not is_csv_by_tasks(Table(path=str(tmp_path), format="parquet"))
    assert not is_csv_by_tasks(Table(catalog="t", format="csv"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_read_of_a_bucket_that_does_not_exist_names_its_key(spark: SparkSession, endpoint: str, form: str) -> None:
    """No run of a schedule tries again what only a change of the policy mends."""
    del endpoint
    table = Table(path="s3a://no-such-bucket/x", format=form)
    with pytest.raises(SchemaError, match=r"^table\.path: 's3://no-such-bucket/x': there is no such bucket or cont"):
        read(spark, table, key="table")


@dataclass
class Held:
    """A file in memory."""

    held: bytes
    name: str = "t.csv"

    @property
    def size(self) -> int:
        return len(self.held)

    compressed = False

    def content(self) -> IO[bytes]:
        return io.BytesIO(self.held)


@pytest.mark.parametrize("multi_line", [False, True])
def test_read_blocks_yields_every_record_once_wherever_parts_and_blocks_end(
    monkeypatch: pytest.MonkeyPatch, multi_line: bool
) -> None:
    """Of all short files; a byte that is no text is three that are."""
    dialect = parse_csv_dialect({"multiLine": multi_line}, "table.options")
    contents = [bytes(text) for size in range(5) for text in product(b'a\n\r\xff"', repeat=size)]
    for content, part, block in product([*contents, "ü\r\nbc\n\rü".encode()], (1, 2, 3), (1, 2, 3)):
        monkeypatch.setattr(csv_rows, "PART", part)
        monkeypatch.setattr(csv_rows, "BLOCK", block)
        file: Any = Held(content)
        layout = csv_rows._Layout("here", dialect, [file], (0,), ("x",), (), [{}])
        pieces = [piece for of in layout.parts for piece in csv_rows._read_blocks(layout, *of)]
        whole = content.replace(b"\xff", "\ufffd".encode())
        assert b"".join(pieces) == whole, (content, part, block)
        records = find_csv_records(whole, dialect)
        in_pieces = [
            piece[a:b]
            for piece in pieces
            for found in [find_csv_records(piece, dialect)]
            for a, b in zip(found.starts, found.ends, strict=True)
        ]
        assert in_pieces == [whole[a:b] for a, b in zip(records.starts, records.ends, strict=True)], (content, part)
