from __future__ import annotations

import math
import os
import random
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import at
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import (
    Batches,
    Scratch,
    broadcast_small,
    compact,
    decoded,
    grouped,
    in_chunks,
    materialized,
    part_name,
    read_ipc,
    report,
    together,
    write_ipc,
)
from privrisk_spark.engine.settings import JOINS, as_required

LONGS = [0, 1, -1, 2**31, -(2**62), 2**62, -(2**63), 2**63 - 1]


@st.composite
def columns_of(draw: st.DrawFn) -> list[list[Any]]:
    """Columns of few distinct values: small and large integers, floats with both zeros, booleans."""
    n = draw(st.integers(0, 25))
    value = st.sampled_from(
        [[0, 1, 2], [-(2**31), 2**31 - 1], LONGS, [0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324], [True, False]]
    )
    return [
        [draw(st.sampled_from(values)) for _ in range(n)] for values in draw(st.lists(value, min_size=1, max_size=9))
    ]


@given(columns_of())
def test_rows_are_grouped_as_a_dictionary_would(columns):
    n = len(columns[0])
    first, member = grouped([np.array(column) if n else np.zeros(0, dtype=np.int32) for column in columns])
    place: dict[tuple[Any, ...], int] = {}
    wanted_first = []
    wanted = []
    for i, row in enumerate(zip(*columns, strict=True)):
        if row not in place:
            place[row] = len(place)
            wanted_first.append(i)
        wanted.append(place[row])
    assert first.tolist() == wanted_first
    assert member.tolist() == wanted
    assert (first.dtype, member.dtype) == (np.int64, np.int64)


def test_keys_wider_than_a_word_do_not_collide():
    """Ranges of 2^40 in every column: the product wraps around 64 bits many times over."""
    pick = random.Random(4)
    rows = [tuple(pick.choice([0, 2**40, 2**20, 7]) for _ in range(12)) for _ in range(3000)]
    rows += rows[:500]
    first, member = grouped([np.array([row[i] for row in rows]) for i in range(12)])
    assert len(first) == len(set(rows))
    assert [rows[int(first[m])] for m in member] == rows
    # Pairs that differ in the first column alone, before many columns of thousands of distinct values.
    pairs = [(a, *[hash((i, j)) % 2**31 for j in range(5)]) for i in range(4096) for a in (0, 2**31)]
    first, member = grouped([np.array([row[i] for row in pairs]) for i in range(6)])
    assert len(first) == 8192
    assert member.tolist() == list(range(8192))


def test_parts_come_back_as_they_were(tmp_path):
    table = pa.table({
        "x": pa.array([1, None, 3], pa.int32()),
        "t": pa.array(["a", None, "b"]).dictionary_encode(),
        "z": [[1.0], None, []],
    })  # fmt: skip
    names = [write_ipc(table, at(tmp_path)), write_ipc(table.select(["t"]), at(tmp_path))]
    assert read_ipc(at(tmp_path), names[0]).equals(table)
    assert read_ipc(at(tmp_path), names[1]).equals(table.select(["t"]))
    held = read_ipc(at(tmp_path), write_ipc(table.slice(1, 1), at(tmp_path)))
    assert held.to_pylist() == [{"x": None, "t": None, "z": None}]
    empty = write_ipc(table.slice(0, 0), at(tmp_path))
    assert read_ipc(at(tmp_path), empty).num_rows == 0
    assert len({part_name("arrow") for _ in range(100)}) == 100


texts = st.lists(st.sampled_from(["a", "b", "", "ü", None]), max_size=12)


@given(st.lists(texts, min_size=1, max_size=4), st.integers(0, 20), st.integers(0, 20))
def test_small_dictionaries_are_those_of_the_rows_alone(parts, start, length):
    """What a row group's dictionary holds must not show what lay before it or how it came."""
    encoded = [
        pa.table({"t": pa.array(part, pa.string()).dictionary_encode(), "i": pa.array(range(len(part)), pa.int64())})
        for part in parts
    ]
    whole = together(encoded)
    rows = [value for part in parts for value in part][start : start + length]
    small = compact(whole.slice(start, length))
    column = small.column("t").combine_chunks()
    assert column.to_pylist() == rows
    assert column.dictionary.to_pylist() == list(dict.fromkeys(value for value in rows if value is not None))
    assert small.column("i").to_pylist() == whole.column("i").to_pylist()[start : start + length]
    assert decoded(small).schema.field("t").type == pa.string()
    assert decoded(small).column("t").to_pylist() == rows


def test_steps_run_in_one_task_in_their_order(spark, tmp_path):
    """The composition sees every row once, whatever the partitions, and yields what the last schema says."""

    def doubled(tables: Any) -> Any:
        for table in in_chunks(tables):
            yield table.append_column("y", pa.array(table.column("id").to_numpy() * 2))

    def odd(tables: Any) -> Any:
        for table in tables:
            kept = table.filter(pa.array(table.column("id").to_numpy() % 2 == 1)).select(["y"])
            # Dictionary-encoded columns go between steps and are plain to Spark.
            yield kept.append_column("t", pa.array([str(v) for v in kept.column("y").to_pylist()]).dictionary_encode())

    schema = T.StructType([T.StructField("y", T.LongType()), T.StructField("t", T.StringType())])
    for partitions in (1, 3, 30):
        start = Batches.of_frame(spark.range(0, 20, 1, partitions))
        assert start.frame() is start.base
        between = start.then(doubled, T.StructType([*start.schema.fields, T.StructField("y", T.LongType())]))
        found = between.then(odd, schema).frame()
        assert found.schema == schema
        rows = sorted(found.toArrow().to_pylist(), key=lambda r: r["y"])
        assert rows == [{"y": 2 * i, "t": str(2 * i)} for i in range(1, 20, 2)]
    # The first step was not touched by the second.
    assert sorted(r["y"] for r in between.frame().toArrow().to_pylist()) == list(range(0, 40, 2))


def test_every_part_is_read_by_a_task_of_its_own(spark, tmp_path):
    names = [write_ipc(pa.table({"x": [i] * i}), at(tmp_path)) for i in range(5)]
    schema = T.StructType([T.StructField("x", T.LongType())])
    frame = materialized(spark, at(tmp_path), names, schema).frame()

    def look(tables: Any) -> Any:
        found = [x for table in tables for x in table.column(0).to_pylist()]
        yield pa.RecordBatch.from_pydict({"found": [repr(found)]})

    tasks = frame.mapInArrow(look, "found string").toArrow().column(0).to_pylist()
    assert sorted(tasks, key=len) == [repr([i] * i) for i in range(5)]
    assert materialized(spark, at(tmp_path), [], schema).frame().toArrow().num_rows == 0


def test_scratch_keeps_frames_and_facts(spark, tmp_path):
    scratch = Scratch(spark, tmp_path)
    drawn = spark.range(20).select(F.rand().alias("x"))
    kept = scratch.write_frame(drawn, "drawn")
    first = sorted(r["x"] for r in kept.toArrow().to_pylist())
    assert sorted(r["x"] for r in kept.toArrow().to_pylist()) == first
    assert [(f.name, f.dataType) for f in kept.schema] == [(f.name, f.dataType) for f in drawn.schema]
    empty = scratch.write_frame(drawn.where("x > 2"), "empty")
    assert (empty.count(), empty.columns) == (0, ["x"])
    directory = scratch.directory("parts")
    with pytest.raises(FileExistsError):
        scratch.directory("parts")

    def step(tables: Any) -> Any:
        for table in tables:
            yield report(write_ipc(table, directory), {"rows": table.num_rows, "huge": 2**2000, "infinite": math.inf})

    parts = scratch.collect_parts(Batches.of_frame(spark.range(0, 9, 1, 3)).then(step, batches.PARTS))
    assert sum(part["rows"] for part in parts) == 9
    assert {part["huge"] for part in parts} == {2**2000}
    assert {part["infinite"] for part in parts} == {math.inf}
    assert sorted(part["name"] for part in parts) == sorted(path.name for path in (tmp_path / "parts").iterdir())


# ------------------------------------------------------------------------------------------------ joins


def join_of(frame: Any) -> tuple[str, str]:
    """Return the join that Spark ran, and the side it built a table of (nothing where it sorted both)."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan().toString()
    (line,) = (line for line in plan.split("== Initial Plan ==")[0].splitlines() if "Join" in line)
    side = re.search("BuildLeft|BuildRight", line)
    return line.split("Join")[0].split()[-1], "" if side is None else side.group()


@pytest.fixture
def eager(spark: SparkSession) -> Iterator[None]:
    """Spark broadcasts what it takes for small, as it does by default, whatever started this session."""
    before = {name: spark.conf.get(name, None) for name in JOINS}
    for name in JOINS:
        spark.conf.set(name, "10MB")
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("rows", [10, 10**9])
@pytest.mark.on_spark("the plan is that of Java")
def test_join_of_rows_that_tasks_read_broadcasts_only_what_is_marked_as_small(spark, tmp_path, rows):
    """Spark takes rows that tasks read for a few bytes: it would broadcast the table."""
    name = write_ipc(pa.table({"a": np.arange(20) % 10}), at(tmp_path))
    table = materialized(spark, at(tmp_path), [name], T.StructType([T.StructField("a", T.LongType())])).frame()
    Scratch(spark, tmp_path).write_frame(spark.range(10).selectExpr("id as a", "id + 1 as b"), "few")
    few = spark.read.parquet(str(tmp_path / "few"))
    assert join_of(table.join(few, "a", "inner"))[0] == "BroadcastHash", "the hazard is gone; so may be the settings"
    with as_required(spark):
        joined = table.join(broadcast_small(few, rows), "a", "left")
        assert join_of(joined) == (("BroadcastHash", "BuildRight") if rows == 10 else ("SortMerge", ""))
        assert join_of(table.join(few, "a", "inner")) == ("SortMerge", "")


@pytest.mark.on_spark("the plan is that of Java")
def test_texts_count_for_what_they_take_in_memory(spark):
    """A frame that compresses well is not small."""
    numbers, texts = spark.range(1), spark.createDataFrame([("a",)], "a string")
    rows = batches.BROADCAST_BYTES // 100
    assert "ResolvedHint" in broadcast_small(numbers, rows)._jdf.queryExecution().analyzed().toString()
    assert "ResolvedHint" not in broadcast_small(texts, rows)._jdf.queryExecution().analyzed().toString()


def test_of_frame_with_dots_and_backticks_in_names_keeps_them(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "x"), (2, None)], "`a.b` int, `c``d` string")
    rows = Batches.of_frame(frame)
    assert rows.then(lambda tables: tables, frame.schema).frame().toArrow().sort_by("a.b").to_pylist() == [
        {"a.b": 1, "c`d": "x"}, {"a.b": 2, "c`d": None},
    ]  # fmt: skip
    assert rows.frame().schema == frame.schema


@pytest.mark.on_embedded("tasks of Spark are processes")
def test_take_turns_limits_tasks_to_the_number_of_processors(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Functions of a test are copied for a task, modules are not.
    counted: Any = SimpleNamespace(at_work=0, most=0, lock=threading.Lock())
    monkeypatch.setitem(sys.modules, "counted_tasks", counted)

    def read(number: int) -> Iterator[pa.Table]:
        counted: Any = sys.modules["counted_tasks"]
        for _ in range(3):
            with counted.lock:
                counted.at_work += 1
                counted.most = max(counted.most, counted.at_work)
            time.sleep(0.005)
            with counted.lock:
                counted.at_work -= 1
            yield pa.table({"id": pa.array([number])})

    def after(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        yield from tables

    schema = T.StructType([T.StructField("id", T.LongType())])
    made = Batches.of_parts(spark, range(6), read, schema)
    # Tasks wait for other tasks here.
    again = Batches.of_frame(made.frame().repartition(5)).then(after, schema).frame()
    assert again.join(made.frame(), "id").count() == 6 * 9
    assert 1 <= counted.most <= (os.cpu_count() or 1)


@pytest.mark.on_embedded("tasks of Spark are processes")
def test_take_turns_after_failed_and_closed_tasks_has_all_turns(spark: SparkSession) -> None:
    schema = T.StructType([T.StructField("id", T.LongType())])

    def read(number: int) -> Iterator[pa.Table]:
        yield pa.table({"id": pa.array([number])})
        if number:
            raise ValueError(number)
        yield from (pa.table({"id": pa.array([i])}) for i in range(100))

    for _ in range(2 * (os.cpu_count() or 1)):
        with pytest.raises(PySparkException):
            Batches.of_parts(spark, [1, 2, 3], read, schema).frame().toArrow()
        assert Batches.of_parts(spark, [0, 0], read, schema).frame().limit(1).toArrow().num_rows == 1
    assert Batches.of_parts(spark, [0], read, schema).frame().toArrow().num_rows == 101
