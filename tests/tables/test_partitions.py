"""Names of directories: those Spark writes, and what is read from them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from privrisk_spark.tables.partitions import MISSING, directory_name, partition_texts, partition_values

TEXTS = [
    *map(chr, range(1, 256)),
    "a/../b",
    "..",
    ".",
    "a=b",
    "50%",
    "%41",
    " x ",
    "Zürich",
    "日本",
    "\U0001f600",
    "a:b",
]


@pytest.mark.on_spark("the twin is Java's own function")
def test_names_are_those_spark_writes(spark: SparkSession) -> None:
    escape = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName  # type: ignore[union-attr]
    unescape = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.unescapePathName  # type: ignore[union-attr]
    for text in TEXTS:
        name = directory_name(text, text)
        assert name == f"{escape(text)}={escape(text)}"
        assert unescape(name.rpartition("=")[2]) == text
    assert directory_name("c", None) == f"c={MISSING}"


@pytest.mark.on_spark("the twin is Spark's own writer")
def test_spark_itself_gives_an_empty_text_the_name_of_a_missing_value(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("", 1), (None, 2), ("a", 3)], "c string, x int")
    rows.write.partitionBy("c").parquet(str(tmp_path / "t"))
    assert {path.name for path in (tmp_path / "t").glob("c=*")} == {"c=a", f"c={MISSING}"}


@given(st.lists(st.tuples(st.text(min_size=1), st.none() | st.text(min_size=1)), min_size=1, max_size=3))
def test_what_is_named_is_read_and_stays_below(pairs: list[tuple[str, str | None]]) -> None:
    wanted = {column: text for column, text in pairs if text != MISSING}
    file = PurePosixPath(*[directory_name(column, text) for column, text in wanted.items()], "part-00000.parquet")
    assert len(file.parts) == len(wanted) + 1
    assert not {"..", "."} & set(file.parts)
    assert partition_texts(str(file), named_by_us=True) == wanted


def test_columns_that_are_escaped_are_read_of_our_own_names_alone() -> None:
    file = f"{directory_name('a/b', '1')}/p.parquet"
    assert partition_texts(file) is None
    assert partition_texts(file, named_by_us=True) == {"a/b": "1"}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (T.BooleanType(), "true", True),
        (T.BooleanType(), "True", None),
        (T.BooleanType(), "1", None),
        (T.ByteType(), "-128", -128),
        (T.ByteType(), "128", None),
        (T.ShortType(), "32767", 32767),
        (T.IntegerType(), "007", None),
        (T.IntegerType(), "0x1F", None),
        (T.LongType(), "-9223372036854775808", -(2**63)),
        (T.DateType(), "0001-01-01", dt.date(1, 1, 1)),
        (T.DateType(), "2026-1-1", None),
        (T.DateType(), "0000-01-01", None),
        (T.DoubleType(), "1.5", None),
    ],
)
def test_values_are_read_by_their_types_or_not_at_all(kind: T.DataType, text: str, value: Any) -> None:
    found = partition_values([f"c={text}/p.parquet"], {"c": kind})
    assert found == (None if value is None else [{"c": value}])
