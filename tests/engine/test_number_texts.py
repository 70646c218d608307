"""Texts of floating-point numbers on every engine, as Spark writes them; the expected ones are those of Java 25."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine.number_texts import as_double, exact_text, plain_text, whole_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = {
    0.0: "0.0", 1.5: "1.5", 0.001: "0.001", 9999999.5: "9999999.5", 1e7: "1.0E7", 123456789.25: "1.2345678925E8",
    1e15: "1.0E15", 1e16: "1.0E16", 1.5e300: "1.5E300", 0.00099: "9.9E-4", 1e-5: "1.0E-5", 1.25e-7: "1.25E-7",
    math.inf: "Infinity",
}  # fmt: skip


@pytest.mark.parametrize("kind", [T.DoubleType(), T.FloatType()])
def test_exact_text_of_a_number_is_the_text_that_spark_writes(spark: SparkSession, kind: T.DataType) -> None:
    texts = {of: text for of, text in TEXTS.items() if kind == T.DoubleType() or of in (0, 1.5, 1e7, 1.25e-7, math.inf)}
    texts |= {-of: f"-{text}" for of, text in texts.items() if of}
    given = [*texts, math.nan, None]
    frame = spark.createDataFrame([(of,) for of in given], T.StructType([T.StructField("x", kind)]))
    found = frame.select(exact_text(F.col("x"), kind)).toArrow().column(0).to_pylist()
    assert found == [*texts.values(), "NaN", None]


def test_plain_text_of_a_number_has_no_exponent(spark: SparkSession) -> None:
    given = ["1.5", "1.0E7", "1.2345678925E8", "-1.0E17", "1.5E-7", "-9.9E-4", "-5.0E-10", None]
    frame = spark.createDataFrame([(text,) for text in given], "x string")
    found = frame.select(plain_text(F.col("x")).try_cast("decimal(38,18)")).toArrow().column(0).to_pylist()
    assert found == [None if text is None else Decimal(text) for text in given]


def test_plain_text_of_infinity_is_no_decimal(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("Infinity",), ("NaN",)], "x string")
    found = frame.select(plain_text(F.col("x")).try_cast("decimal(30,12)")).toArrow().column(0).to_pylist()
    assert found == [None, None]


def test_as_double_of_a_decimal_is_the_nearest_double(spark: SparkSession) -> None:
    texts = ["100000000000000000.000000000000", "123456789.300000000000", "-0.000000000001", None]
    frame = spark.createDataFrame([(text,) for text in texts], "x string").select(F.col("x").cast("decimal(38,12)"))
    found = frame.select(as_double(F.col("x"), frame.schema["x"].dataType)).toArrow().column(0).to_pylist()
    assert found == [1e17, 123456789.3, -1e-12, None]


def test_whole_text_of_nested_values_differs_if_they_do(spark: SparkSession) -> None:
    schema = "x array<double>, s struct<a:decimal(4,2),b:array<struct<z:float>>>, b binary"
    rows = [
        ([1.5, 1e7, None], (Decimal("1.50"), [(1e-5,), None]), b"\xff"),
        ([], (None, None), b""),
        (None, None, None),
    ]
    frame = spark.createDataFrame(rows, schema)
    texts = [whole_text(F.col(field.name), field.dataType).alias(field.name) for field in frame.schema]
    assert [tuple(row.values()) for row in frame.select(*texts).toArrow().to_pylist()] == [
        ("3:1.55:1.0E7-", "4:1.5011:8:6:1.0E-5-", "FF"),
        ("", "--", ""),
        (None, None, None),
    ]
