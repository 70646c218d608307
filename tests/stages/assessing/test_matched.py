"""Records beside their released forms: the join in tasks against a dictionary of records in plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.stages.assessing import matched
from privrisk_spark.stages.assessing.classes import Layout

RECORDS = T.StructType(
    [
        T.StructField("record_id", T.StringType()),
        *(T.StructField(name, T.IntegerType()) for name in ("n0", "n1", "r0")),
        T.StructField("entity", T.StringType()),
        T.StructField("sample_weight", T.DoubleType()),
    ]
)
RELEASED = T.StructType(
    [
        T.StructField("record_id", T.StringType()),
        *(T.StructField(name, T.IntegerType()) for name in ("n0", "n1", "s0")),
        T.StructField("n_rows", T.LongType()),
        T.StructField("y0", T.DoubleType()),
    ]
)


def frames(spark, records, released):
    def of(rows, schema, parts):
        return Batches.of_frame(spark.createDataFrame(rows, schema).repartition(parts))

    table = matched.as_doubles(of(records, RECORDS, 3), ["r0"])
    return table, of(released, RELEASED, 2)


def randomly(n: int, seed: int):
    rng = random.Random(seed)
    records = [
        (f"p{i}", rng.randrange(5), rng.randrange(5), rng.choice([None, i]), f"e{i % 7}", rng.random())
        for i in range(n)
    ]
    ids = [*rng.sample(range(n), n // 2), *range(n, n + 5)]  # half of them, and five of nobody
    released = [
        (f"p{i}", rng.randrange(5), rng.randrange(5), rng.randrange(3), 1, rng.choice([None, float(i)])) for i in ids
    ]
    released += [(released[0][0], 4, 4, 2, 1, 0.5), (None, 0, 0, 0, 1, 0.5)]  # one twice, one without id
    return records, released


def plain(value):
    return None if value is None or math.isnan(value) else value


@pytest.mark.parametrize("per_bucket", [7, 1_000_000])
def test_released_rows_find_their_records(spark, tmp_path, monkeypatch, per_bucket):
    monkeypatch.setattr(matched, "ROWS_PER_BUCKET", per_bucket)
    records, released = randomly(60, 1)
    layout = Layout((5, 5), (2,), persons=True, weighted=True)
    table, release = frames(spark, records, released)
    found = matched.collect_matched(Scratch(spark, tmp_path), table, release, layout, {"y0": "r0"}, len(records))
    rows = found.rows.frame().toArrow().to_pylist()
    of = {record[0]: record for record in records}
    expected = Counter()
    for identity, n0, n1, s0, times, y0 in released:
        record = of.get(identity, (None, -1, -1, None, None if identity is None else f"?{identity}", 0.0))
        expected[identity, n0, n1, s0, times, y0, *record[1:5], round(record[5] * 1e6)] += 1
    names = ("record_id", "n0", "n1", "s0", "n_rows", "y0", "o0", "o1", "x0", "entity", "millionths")
    held = Counter(tuple(plain(row[name]) if name in ("x0", "y0") else row[name] for name in names) for row in rows)
    assert held == expected
    assert found.absent == 60 - 30
    assert found.rows.frame().columns == [*layout.schema.fieldNames(), "record_id", "o0", "o1", "x0", "y0"]


@pytest.mark.parametrize("empty", ["table", "release"])
def test_a_side_without_rows(spark, tmp_path, empty):
    records, released = randomly(20, 2)
    table, release = frames(spark, *(([], released) if empty == "table" else (records, [])))
    layout = Layout((5, 5), (2,), persons=True, weighted=True)
    found = matched.collect_matched(Scratch(spark, tmp_path), table, release, layout, {"y0": "r0"}, 20)
    rows = found.rows.frame().toArrow()
    assert rows.num_rows == (len(released) if empty == "table" else 0)
    assert set(rows.column("o0").to_pylist()) <= {-1}
    assert found.absent == (0 if empty == "table" else 20)


def test_an_id_that_two_records_have_is_refused_and_not_shown(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(matched, "ROWS_PER_BUCKET", 5)
    records, released = randomly(20, 3)
    table, release = frames(spark, [*records, records[4]], released)
    with pytest.raises(InputError, match="1 records have an id that another record has") as refused:
        matched.collect_matched(Scratch(spark, tmp_path), table, release, Layout((5, 5), (2,)), {}, 21)
    assert "p4" not in str(refused.value)


def test_numbers_of_any_kind_are_doubles(spark):
    rows = Batches.of_frame(spark.sql("SELECT CAST(1.25 AS DECIMAL(9, 2)) AS a, 7L AS b, 'x' AS c"))
    assert matched.as_doubles(rows, ["a", "b"]).frame().toArrow().to_pylist() == [{"a": 1.25, "b": 7.0, "c": "x"}]
    assert pa.types.is_float64(matched.as_doubles(rows, ["a"]).frame().toArrow().schema.field("a").type)
