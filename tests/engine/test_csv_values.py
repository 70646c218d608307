"""Values of CSV lines: as Spark's own parser reads them, or refused."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from privrisk_spark.engine.csv_values import CsvValues
from privrisk_spark.errors import SchemaError

OPTIONS = [
    {},
    {"sep": ";"},
    {"sep": ";", "nullvalue": "a"},
    {"sep": ";", "escape": '"'},
    {"sep": ";", "escape": '"', "nullvalue": "a", "emptyvalue": "b"},
    {"sep": "\t", "quote": "'", "emptyvalue": "a"},
    {"sep": "|", "nullvalue": "NA"},
]
KNOWN = [
    "x;1", "y;2;3", "z", '"a;b";2', '"a""b";2', 'a"b;2', '"a\\"b";2', 'a\\;b;2', '"";2', ";2", " x ; 2 ", "é;ü", "NA;2",
    '"NA";2', '"a\\\\";2', '"a\\nb";2', ";", "'a';2", 'x;""', "'';'a'", "a|b", '"a|b"|NA', "a,b", '"a,b",',
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.on_spark("the twin is Spark's own parser")
def test_csv_values_are_those_of_spark_or_unclear(spark: SparkSession, options: dict[str, str]) -> None:
    """All lines of up to five signs that mean something, and some longer ones."""
    separator, quote = options.get("sep", ","), options.get("quote", '"')
    signs = ["a", separator, quote, "\\"]
    lines = ["".join(line) for size in range(1, 6) for line in itertools.product(signs, repeat=size)] + KNOWN
    frame = spark.createDataFrame(list(enumerate(lines)), "i int, line string").coalesce(1)
    parsing = options | {"columnNameOfCorruptRecord": "whole"}
    row = F.from_csv("line", "a string, b string, whole string", parsing)
    expected = frame.select("i", row.alias("row")).orderBy("i").select("row.*").toArrow().to_pylist()
    exact = CsvValues(options, 2, "unclear")
    unclear = set()
    for i, line in enumerate(lines):
        try:
            columns, damaged = exact.split(pa.array([line]))
        except SchemaError:
            unclear.add(i)
            continue
        found = {"a": columns[0][0].as_py(), "b": columns[1][0].as_py(), "whole": damaged[0].as_py()}
        assert found == expected[i], line
    assert all(quote in lines[i] for i in unclear), "only quotes are unclear"
    assert len(unclear) < len(lines) / 2
    # A private run takes unclear lines as rows of missing values; others are read together as one by one.
    columns, damaged = CsvValues(options, 2, None).split(pa.array(lines))
    for i, row_of in enumerate(expected):
        there = (columns[0][i].as_py(), columns[1][i].as_py())
        assert there == ((None, None) if i in unclear else (row_of["a"], row_of["b"])), lines[i]
        assert (damaged[i].as_py() is None) == (i not in unclear and row_of["whole"] is None)


def test_csv_values_of_no_lines() -> None:
    columns, damaged = CsvValues({}, 3, "unclear").split(pa.array([], pa.string()))
    assert [column.to_pylist() for column in columns] == [[], [], []]
    assert damaged.to_pylist() == []
