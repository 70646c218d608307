"""CSV tables in an object store, against Spark's own reading of the same files on a disk."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise, product
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.s3_server import BUCKET
from privrisk_spark.engine import csv_lines
from privrisk_spark.engine.csv_lines import _lines, csv_lines_frame
from privrisk_spark.engine.object_files import in_object_store
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.stages.tables.completeness import collect_files_read
from privrisk_spark.stages.tables.opening import read
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store


def put(root: Path, layout: dict[str, bytes]) -> tuple[str, str]:
    """The same files on a disk and in a store; returns both places."""
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    for name, content in layout.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        open_store(locate(uri, key="table.path")).upload(name, file)
    return str(root), uri


def same(found: DataFrame, expected: DataFrame) -> None:
    """Whatever their columns are named."""
    names = [f"c{i}" for i in range(len(found.columns))]
    assert_df_equality(found.toDF(*names), expected.toDF(*names), ignore_row_order=True, ignore_nullable=True)


HARD = (
    "id,a b,c.d\n"
    '1,"x, y",plain\r\n'
    '2,"says ""no""",\n'
    "\n   \n"
    '3,"back \\" slash",""\r'
    "4, blank ,ü€😀\n"
    "5,,a\u2028b\n"
    "6,un\"quoted,it's\n"
    "#7,no,comment"
).encode()


@pytest.mark.parametrize("part", [7, 50, 2**25])
@pytest.mark.parametrize(
    ("content", "options"),
    [
        (HARD, {"header": "true"}),
        (HARD, {}),
        (HARD, {"HEADER": "TRUE", "comment": "#", "mode": "PERMISSIVE"}),
        (b"\xef\xbb\xbf" + HARD, {"header": "true", "escape": '"'}),
        (HARD.replace(b",", b"\t"), {"header": "true", "sep": "\\t", "nullValue": "plain"}),
        (HARD.replace(b'"', b"'"), {"header": "true", "quote": "'"}),
        (b"#\n\nx;y\n1;2\n3;4\n", {"header": "true", "delimiter": ";", "comment": "#"}),
        (b"x\n1\n\n2", {"header": "true"}),
        (b"x,y\n1,2,3\n4\n\xff\xfe,\xc3\n5,6\n", {"header": "true"}),
    ],
)
@pytest.mark.on_spark("the twin is Spark's own parser")
def test_rows_are_those_of_sparks_reader(
    spark: SparkSession,
    endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    options: dict[str, Any],
    part: int,
) -> None:
    del endpoint
    monkeypatch.setattr(csv_lines, "PART", part)
    place, uri = put(tmp_path / "t", {"a.csv": content, "_SUCCESS": b""})
    table = Table(path=uri, format="csv", options=options)
    assert in_object_store(table)
    found, expected = csv_lines_frame(spark, table, key="table"), spark.read.options(**options).csv(place)
    assert found.columns == expected.columns
    same(found, expected)
    marked = csv_lines_frame(spark, table, key="table", damaged="bad.line")
    by_spark = (
        spark.read.options(**options, columnNameOfCorruptRecord="bad")
        .schema(", ".join(f"`{name}` STRING" for name in [*expected.columns, "bad"]))
        .csv(place)
    )
    assert marked.columns == [*found.columns, "bad.line"]
    same(marked, by_spark)


@pytest.mark.on_spark("the twin is Spark's own parser")
def test_csv_lines_frame_with_damaged_lines_returns_same_rows_for_each_subset_of_columns(
    spark: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    del endpoint
    _, uri = put(tmp_path / "t", {"a.csv": b'x,y,z\n1,2,3\n1\n1,2,3,4\n,,\n"1,2\n1,2,"3"4"\n'})
    frame = csv_lines_frame(spark, Table(path=uri, format="csv", options={"header": True}), key="table")
    whole = frame.toArrow().to_pylist()
    assert frame.count() == len(whole) == 6
    for chosen in (["x"], ["y"], ["z"], ["z", "x"], ["y", "z"]):
        assert frame.select(chosen).toArrow().to_pylist() == [{name: row[name] for name in chosen} for row in whole]


@pytest.mark.on_spark("the twin is Spark's own parser")
def test_several_files_compressed_ones_and_columns_in_the_names_of_directories(
    spark: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    del endpoint
    layout = {
        "day=2026-01-01/a.csv": b"x,y\n1,2\n",
        "day=2026-01-01/b.csv.gz": gzip.compress(b"x,y\n3,4\n"),
        "day=2026-01-02/c.csv.bz2": bz2.compress(b"x,y\n5,6\n7,8\n"),
        "day=2026-01-03/none.csv": b"x,y\n",
    }
    place, uri = put(tmp_path / "t", layout)
    found = csv_lines_frame(spark, Table(path=uri, format="csv", options={"header": True}), key="table")
    expected = spark.read.options(header=True).csv(place)
    expected = expected.withColumn("day", F.col("day").cast("string"))
    assert found.columns == ["x", "y", "day"]
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({"a.csv": b"x,y\n1,2\n", "b.csv": b"y,x\n1,2\n"}, "files a.csv and b.csv do not have the same columns"),
        ({"a.csv": b"x,X\n1,2\n"}, "has the column 'x' twice"),
        (
            {"a.csv": b"PLANTED" * 20_000 + b",x\n1,2\n"},
            "file a.csv has a first line that is not CSV, or has a value of",
        ),
        ({"a.csv": b"\n  \n"}, "there is no line in its files"),
        ({"a.csv": b"x\n1\n", "b.csv": b""}, "file b.csv has 0 bytes, so what it held is lost"),
        ({"a.csv": b"x\n1\n", "b.csv.zst": b"abc"}, "file b.csv.zst is compressed in a way that is not read here"),
        ({"a.csv.gz": gzip.compress(b"x\n" + b"PLANTED\n" * 99)[:-20]}, "file a.csv.gz is compressed, and damaged or"),
        ({"a.csv.bz2": b"PLANTED"}, "file a.csv.bz2 is compressed, and damaged or cut"),
        ({"other=1/a.csv": b"x\n1\n", "a.csv": b"x\n1\n"}, "not for the same columns as the others"),
    ],
)
def test_what_would_be_misread_is_refused_by_file(
    spark: SparkSession, endpoint: str, tmp_path: Path, layout: dict[str, bytes], said: str
) -> None:
    del endpoint
    _, uri = put(tmp_path / "t", layout)
    with pytest.raises(SchemaError) as told:
        csv_lines_frame(spark, Table(path=uri, format="csv", options={"header": True}), key="table").toArrow()
    assert said in str(told.value)
    assert "table.path" in str(told.value)
    assert "PLANTED" not in str(told.value)


@pytest.mark.parametrize("line", [b"5,6\n", b"5\n", b'5,"6" \n', b"5,\xff\n"])
@pytest.mark.on_spark("the twin is Spark's own parser")
def test_damaged_lines_are_counted_as_on_a_disk(
    spark: SparkSession, endpoint: str, tmp_path: Path, line: bytes
) -> None:
    del endpoint
    place, uri = put(tmp_path / "t", {"a.csv": b"x,y\n1,2\n" + line})
    options: dict[str, Any] = {"header": True, "mode": "PERMISSIVE"}
    here, there = (Table(path=path, format="csv", options=options) for path in (place, uri))
    by_spark = spark.read.options(**options).csv(place)
    stored = csv_lines_frame(spark, there, key="table")
    assert collect_files_read(spark, there, stored, key="table") == collect_files_read(
        spark, here, by_spark, key="table"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"multiLine": True}, {"inferSchema": True}, {"encoding": "latin1"}, {"mode": "DROPMALFORMED"}, {"sep": "::"},
        {"sep": '"'}, {"quote": ""}, {"lineSep": ";"}, {"comment": "é"}, {"pathGlobFilter": "*.csv"},
        {"header": "maybe"},
    ],
)  # fmt: skip
def test_what_spark_reads_otherwise_is_left_to_it(options: dict[str, Any]) -> None:
    assert not in_object_store(Table(path="s3://bucket/t", format="csv", options=options))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_bucket_that_is_not_there_is_named_by_its_key(spark: SparkSession, endpoint: str, form: str) -> None:
    """No run of a schedule tries again what only a change of the policy mends."""
    del endpoint
    table = Table(path="s3a://no-such-bucket/x", format=form)
    with pytest.raises(SchemaError, match=r"^table\.path: 's3://no-such-bucket/x': there is no such bucket or cont"):
        read(spark, table, key="table")


def test_a_header_behind_many_blank_lines_is_refused_as_no_task_would_drop_it(
    spark: SparkSession, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del endpoint
    monkeypatch.setattr(csv_lines, "PART", 7)
    _, uri = put(tmp_path / "t", {"a.csv": b"\n" * 7 + b"x,y\n1,2\n"})
    with pytest.raises(SchemaError, match=r"file a\.csv has nothing but blank lines(?s:.*)in its first 7 bytes"):
        csv_lines_frame(spark, Table(path=uri, format="csv", options={"header": True}), key="table")


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
        return BytesIO(self.held)


def test_every_line_is_read_once_wherever_parts_and_blocks_end() -> None:
    """Of all short files; a byte that is no text is three that are."""
    contents = [bytes(text) for size in range(5) for text in product(b"a\n\r\xff", repeat=size)]
    for content, part, block in product([*contents, "ü\r\nbc\n\rü".encode()], (1, 2, 3), (1, 2, 3)):
        file: Any = Held(content)
        pieces = [
            piece
            for start in range(0, len(content), part)
            for piece in _lines(file, start, min(start + part, len(content)), "here", "utf-8", block=block)
        ]
        assert b"".join(pieces) == content.replace(b"\xff", "\ufffd".encode()), (content, part, block)
        for piece, behind in pairwise(pieces):
            whole = piece.endswith(b"\n") or (piece.endswith(b"\r") and not behind.startswith(b"\n"))
            assert whole, (content, part, block, "a line and its end are in one piece")
