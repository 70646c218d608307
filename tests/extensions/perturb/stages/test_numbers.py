"""Columns as numbers and back: types, missing values, what leaves a type's range."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from privrisk_spark.errors import SchemaError
from privrisk_spark.extensions.perturb.planning import MaskPlan
from privrisk_spark.extensions.perturb.stages.numbers import check_types, doubles_of, values_of
from privrisk_spark.policy.masking import Noise, Pram

KINDS = [
    (T.ByteType(), pa.int8(), [3, None, -128, 127]),
    (T.ShortType(), pa.int16(), [3, None, -5, 9]),
    (T.IntegerType(), pa.int32(), [3, None, -5, 2**31 - 1]),
    (T.LongType(), pa.int64(), [3, None, -5, 2**53]),
    (T.FloatType(), pa.float32(), [0.5, None, -5.25, 1e30]),
    (T.DoubleType(), pa.float64(), [0.1, None, -5.25, 1e300]),
    (
        T.DecimalType(15, 2),
        pa.decimal128(15, 2),
        [Decimal("0.10"), None, Decimal("-5.25"), Decimal("9999999999999.99")],
    ),
    (T.DateType(), pa.date32(), [dt.date(2000, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
]


@pytest.mark.parametrize(
    ("kind", "like", "values"), KINDS, ids=lambda one: str(one) if isinstance(one, T.DataType) else ""
)
def test_values_that_are_not_masked_come_back_as_they_were(
    kind: T.DataType, like: pa.DataType, values: list[Any]
) -> None:
    numbers, beyond = doubles_of(pa.chunked_array([pa.array(values[:2], like), pa.array(values[2:], like)]))
    assert beyond == 0
    assert np.isnan(numbers[1])
    made, clipped = values_of(numbers, kind, like)
    assert clipped == 0
    assert made.type == like
    assert made.to_pylist() == pa.array(values, like).to_pylist()


def test_infinite_and_huge_values_are_counted() -> None:
    assert doubles_of(pa.chunked_array([pa.array([math.inf, -math.inf, math.nan, 1.0])]))[1] == 2
    assert doubles_of(pa.chunked_array([pa.array([2**53, 2**53 + 1, -(2**60)])]))[1] == 2


def test_whole_numbers_and_days_are_rounded_and_kept_in_their_range() -> None:
    made, clipped = values_of(np.array([1.5, 2.5, 200.0, -129.0, math.nan]), T.ByteType(), pa.int8())
    assert made.to_pylist() == [2, 2, 127, -128, None]
    assert clipped == 2
    made, clipped = values_of(np.array([0.4, 5e6]), T.DateType(), pa.date32())
    assert made.to_pylist() == [dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
    assert clipped == 1
    made, clipped = values_of(np.array([1.005, 123.456, 1e9]), T.DecimalType(5, 2), pa.decimal128(5, 2))
    assert made.to_pylist() == [Decimal("1.00"), Decimal("123.46"), Decimal("999.99")]
    assert clipped == 1


def test_columns_that_cannot_be_masked_are_refused_by_name() -> None:
    noise, pram = Noise(method="noise", share=0.1), Pram.model_validate({"method": "pram", "invariant": {"keep": 0.8}})
    plan = MaskPlan({"a": noise, "b": noise, "c": pram, "d": noise}, ("a", "b", "d"), (), (), None)
    table = T.StructType(
        [
            T.StructField("a", T.StringType()),
            T.StructField("b", T.TimestampType()),
            T.StructField("c", T.TimestampType()),
            T.StructField("d", T.DecimalType(20, 2)),
        ]
    )
    with pytest.raises(SchemaError) as raised:
        check_types(plan, table)
    said = str(raised.value).split(" | ")
    assert "columns.a.mask: 'noise' is for numbers and days, and the column holds string; set columns.a.read" in said[0]
    assert "set columns.b.read: {cast: date}" in said[1]
    assert "columns.d.mask" in said[3]
    assert "of more than 15 digits" in said[3]
    assert "columns.c.mask: 'pram' is for texts" in said[2]
    assert "set columns.c.read: {cast: date}" in said[2]
