"""CSV lines are those of Spark's own writer, and come back as they were."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from naive_records import parts_of
from parts import at
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.failures import named
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.policy import Output
from privrisk_spark.stages.publishing import csv_files
from privrisk_spark.stages.publishing.csv_files import write_csv_files, write_empty_csv
from privrisk_spark.tables.csv_tables import collect_csv_header, csv_frame
from privrisk_spark.tables.released import read_csv_parts

LETTERS = ["a", " ", '"', "\\", ",", "\n", "\r", "\t", "'", "#", "ü", "\u2028", "\0", "😀", "="]
TEXTS = [None, *("".join(some) for n in range(3) for some in itertools.product(LETTERS, repeat=n))]
NAMES = ['ke,pt"1', " b", "c", "d", "e", "f", "g", "h", "i"]
KINDS = ("string", "string", "double", "decimal(20,8)", "timestamp", "boolean", "date", "long", "float")


def rows() -> list[tuple[Any, ...]]:
    pick = random.Random(1)
    return [
        (
            0,
            text,
            pick.choice(TEXTS),
            pick.choice([0.0, -0.0, 1.5, 1e300, 1 / 3, None, math.inf, math.nan, 1e-5]),
            pick.choice([None, Decimal("1.10"), Decimal("-0.01"), Decimal("0.00000001")]),
            pick.choice([None, dt.datetime(1999, 1, 1, 1, 2, 3, 120000), dt.datetime(1600, 1, 1)]),
            pick.choice([None, True, False]),
            pick.choice([None, dt.date(2000, 1, 2), dt.date(1, 1, 1)]),
            pick.choice([None, 5, -7]),
            pick.choice([None, 1.5, 1e-3]),
        )
        for text in TEXTS
    ]


@pytest.mark.on_spark("the twin is Spark's own writer")
def test_the_bytes_are_those_of_sparks_writer_and_every_text_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    schema = ", ".join(["`file` int", *(f"`{name}` {kind}" for name, kind in zip(NAMES, KINDS, strict=True))])
    given = rows()
    frame = spark.createDataFrame(given, schema).coalesce(1)
    own, by_spark = at(tmp_path / "own"), tmp_path / "spark"
    release, header = Batches.of_frame(frame), collect_csv_header(spark, NAMES)
    (part,) = parts_of(write_csv_files(Scratch(spark, tmp_path), release, own, header))
    untrimmed = {"ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
    frame.drop("file").write.options(header=True, escape='"', **untrimmed).csv(str(by_spark))
    (file,) = by_spark.glob("part-*.csv")
    assert (tmp_path / "own" / part["name"]).read_bytes() == file.read_bytes()
    output = Output(path="o", vault="v", format="csv")
    found = read_csv_parts(spark, output, own, [part["name"]], NAMES).toArrow().to_pylist()
    assert [(row[NAMES[0]], row[NAMES[1]]) for row in found] == [row[1:3] for row in given]
    quoted = write_csv_files(Scratch(spark, tmp_path).below("again"), release, own, header, quote_formulas=True)
    names = [part["name"] for part in parts_of(quoted)]
    again = read_csv_parts(spark, output.model_copy(update={"quote_formulas": True}), own, names, NAMES)
    assert again.toArrow().to_pylist() == found
    shown = read_csv_parts(spark, output, own, names, NAMES).toArrow().column(NAMES[0]).to_pylist()
    assert not [text for text in shown if text and text[0] in "=\t\r"]


def test_what_is_no_file_of_a_release_is_refused_without_its_values(spark: SparkSession, tmp_path: Path) -> None:
    parts = at(tmp_path / "parts")
    whole = write_empty_csv(parts, collect_csv_header(spark, ["x", "y"]))

    def read(columns: list[str]) -> list[dict[str, Any]]:
        with named():
            found: list[dict[str, Any]] = (
                csv_frame(spark, [whole], parts.path, columns, where="o").toArrow().to_pylist()
            )
        return found

    assert read(["x", "y"]) == []
    with pytest.raises(SchemaError, match="o has a file with other columns than the release"):
        read(["y", "x"])
    for damage in ("secret,1,2\n", "secret\n"):
        Path(parts.path(whole)).write_text(f"x,y\n1,2\n{damage}")
        with pytest.raises(SchemaError, match="o has a file that is damaged or cut") as refused:
            read(["x", "y"])
        assert "secret" not in str(refused.value)


def test_write_csv_files_of_numbers_keeps_files_and_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded engine moves the batches of a query to other tasks, in any order."""
    n, collect_parts = 60_000, Scratch.collect_parts
    monkeypatch.setattr(batches, "CHUNK_ROWS", 10_000)
    monkeypatch.setattr(csv_files, "CHUNK_ROWS", 7_000)
    monkeypatch.setattr(Scratch, "collect_parts", lambda *given: collect_parts(*given)[::-1])

    def read(number: int) -> Iterator[pa.Table]:
        for begin in range(0, n, 10_000):
            numbers = np.arange(number * n + begin, number * n + begin + 10_000)
            yield pa.table([np.full(10_000, number, dtype=np.int32), numbers / 8, numbers.astype(str)], names=names)

    names = ["file", "x", "y"]
    schema = T.StructType([T.StructField("file", T.IntegerType()), T.StructField("x", T.DoubleType()),
                           T.StructField("y", T.StringType())])  # fmt: skip
    release, own = Batches.of_parts(spark, range(3), read, schema), at(tmp_path / "own")
    parts = parts_of(write_csv_files(Scratch(spark, tmp_path), release, own, "x,y"))
    assert sorted(part["file"] for part in parts) == [0, 1, 2]
    for part in parts:
        numbers = range(part["file"] * n, (part["file"] + 1) * n)
        wanted = "".join(f"{number / 8},{number}\n" for number in numbers)
        assert (tmp_path / "own" / part["name"]).read_text() == "x,y\n" + wanted


def test_a_single_missing_value_is_an_empty_line(spark: SparkSession, tmp_path: Path) -> None:
    """Readers skip it: the count of a release's rows does not come out, and it is refused."""
    frame = spark.createDataFrame([(0, "a"), (0, None), (0, "")], "file int, x string").coalesce(1)
    (part,) = parts_of(write_csv_files(Scratch(spark, tmp_path), Batches.of_frame(frame), at(tmp_path / "own"), "x"))
    assert (tmp_path / "own" / part["name"]).read_text() == 'x\na\n\n""\n'
