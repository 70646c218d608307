"""Texts of floating-point numbers on every engine, as Spark writes them; the expected ones are those of Java 25."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine.number_texts import as_double, equal_texts, exact_text, number_text, plain_text, whole_text
from privrisk_spark.hierarchies.numbers import equal_text, read_number, spellings

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


def test_as_double_of_a_text_takes_no_number_of_java_only(spark: SparkSession) -> None:
    texts = ["7", " 7.5 ", "1e3", "Infinity", "-inf", "7d", "1e3F ", "0x1p3", "7L", "seven", None]
    frame = spark.createDataFrame([(text,) for text in texts], "x string")
    found = frame.select(as_double(F.col("x"), T.StringType())).toArrow().column(0).to_pylist()
    assert found == [7.0, 7.5, 1000.0, math.inf, -math.inf, *[None] * 6]


NUMBERS = [
    0.0, -0.0, 34.0, -34.0, 24.5, 0.1, 1e-3, 1e-7, 1.5e-7, -9.9e-4, 1e7, 12345678.5, 1e15, 1e16, 1e22, 1.5e37, 1e38,
    1.5e300, 1e-37, 1.25e-40, -math.inf, math.inf, 2.0**53, 100.0, 0.30000000000000004, 2.5e-323, 9.99e-39, 1e-38,
    999999999999999.9, 1e15 - 1, -1.7976931348623157e308, 9.999999999999999e37, 2.0**63, None,
]  # fmt: skip
# Java writes 4.9E-324 and 9.9E-324 for the two smallest doubles, 5e-324 and 1e-323.

# Before 19 it does not write the shortest text of some floats.
FLOATS = [of for of in NUMBERS if not (of and (1e8 < abs(of) < 1e300 or abs(of) < 1e-40))]
DECIMALS = [Decimal(of) for of in ("0", "-5", "34.000000001", "1e-9", "1e28", "12345678.5")]
HARD: dict[T.DataType, list[Any]] = {
    T.DoubleType(): NUMBERS,
    T.FloatType(): FLOATS,
    T.DecimalType(38, 9): DECIMALS,
    T.DecimalType(38, 0): [Decimal("9" * 38), Decimal(100), Decimal(0)],
    T.LongType(): [2**63 - 1, -(2**63), 0, 100, None],
    T.ByteType(): [-128, 0, 10],
    T.BooleanType(): [True, False, None],
}


@pytest.mark.parametrize("kind", HARD, ids=str)
def test_number_text_equal_texts_and_equal_text_of_one_value_are_equal(spark: SparkSession, kind: T.DataType) -> None:
    frame = spark.createDataFrame([(of,) for of in HARD[kind]], T.StructType([T.StructField("x", kind)]))
    table = frame.select("x", exact_text(F.col("x"), kind), number_text(F.col("x"), kind)).toArrow()
    values, exact, found = (column.combine_chunks() for column in table.columns)
    equal = equal_texts(values).to_pylist()
    assert equal_texts(exact).to_pylist() == equal_texts(found).to_pylist() == equal
    assert [of and equal_text(of) for of in exact.to_pylist()] == equal
    for text, of in zip(found.to_pylist(), equal, strict=True):
        assert text == of or text in spellings(of)


def test_equal_texts_of_one_number_are_one_text_for_all_types() -> None:
    same = [
        pa.array([10]), pa.array([10.0]), pa.array([10.0], pa.float32()), pa.array([Decimal("10.00")]),
        pa.array(["10.0"]), pa.array(["1e1"]), pa.array(["+10"]), pa.array(["10."]), pa.array(["1.0E1"]),
    ]  # fmt: skip
    assert {text for of in same for text in equal_texts(of).to_pylist()} == {"10"}
    assert equal_texts(pa.array([0.0, -0.0])).to_pylist() == ["0", "0"]
    assert equal_texts(pa.array(["-0.0", "-0", ".5", "1e-1"])).to_pylist() == ["0", "0", "0.5", "0.1"]
    digits = ["1" * 39, "2" * 64, "3" * 38]
    assert equal_texts(pa.array(digits)).to_pylist() == [equal_text(text) for text in digits]
    assert [str(read_number(text)) for text in ("-0", "0e999", "-0.0")] == ["0"] * 3


def test_equal_texts_of_codes_and_words_are_those_texts() -> None:
    codes = ["010", "00", "0010.0", "1.2.3", "e1", "NO", "12:30", "1_000", "0x1F", "", " 10", "a1.0", None]
    assert equal_texts(pa.array(codes)).to_pylist() == codes
