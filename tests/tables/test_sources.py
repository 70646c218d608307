"""Parquet read by tasks against Spark's own reading of the same files, and what is left to Spark."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import layouts, parts_of, policy_of, quasi, shuffled
from parts import at
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine import fingerprints as of_columns
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, materialized, write_ipc
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.number_texts import as_texts, column, dictionary_of, text_of
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.policy import Table
from privrisk_spark.tables import encode as encoding
from privrisk_spark.tables import row_groups, sources
from privrisk_spark.tables.encode import duplicates, encode, encode_dictionary, materialize
from privrisk_spark.tables.materialize import input_facts
from privrisk_spark.tables.opening import collect_hierarchies, read
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

DAY = dt.date
DAYS = [DAY(1, 1, 1), DAY(999, 12, 31), DAY(1582, 10, 4), DAY(1582, 10, 15), DAY(1969, 12, 31), DAY(9999, 12, 31)]
INEXACT = [0.0, -0.0, 1.5, 1 / 3, 1e300, -5e-324, math.inf, -math.inf, math.nan]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["", " ", "a", "A", "ü€😀", "two\nlines", "null", "NaN", "a" * 300]),
    "large": (pa.large_string(), ["", "b", "bb", "é"]),
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), DAYS),
    "float": (pa.float32(), [*INEXACT[:4], math.inf, math.nan]),
    "double": (pa.float64(), INEXACT),
}
NUMBERS = ["byte", "short", "int", "long", "float", "double"]
TEXTS = ["string", "large", "byte", "short", "int", "long", "flag", "day"]


def tables_of_all_types(n: int, seed: int) -> pa.Table:
    pick = random.Random(seed)
    columns = {"row": pa.array(range(seed * 1000, seed * 1000 + n), pa.int64())}
    for name, (kind, values) in VALUES.items():
        columns[name] = pa.array([pick.choice([*values, *values, None]) for _ in range(n)], kind)
    return pa.table(columns)


def opened(spark: Any, path: Path, **more: Any) -> tuple[Table, Any]:
    table = Table(path=str(path), **more)
    return table, read(spark, table, key="table")


def by_tasks(table: Table, frame: Any, wanted: list[Wanted]) -> bool:
    """Whether tasks read the files themselves."""
    return bool(scan(table, frame, wanted).steps)


def exact(value: Any) -> Any:
    """What tells values apart: -0.0 from 0.0, NaN from nothing."""
    return repr(value) if isinstance(value, float) else value


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    table = frame.toArrow()
    columns = [table.column(name).to_pylist() for name in table.column_names]
    return sorted((tuple(map(exact, row)) for row in zip(*columns, strict=True)), key=repr)


def rows_of_tasks(frame: Any) -> list[int]:
    """How many rows each task has."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})

    return [n for n in frame.mapInArrow(count, "n long").toArrow().column("n").to_pylist() if n]


def by_spark(frame: Any, wanted: list[Wanted], *, numbers: bool = False) -> Any:
    """The wanted columns as Spark reads them; NaN is missing. With ``numbers``, they are no texts yet."""
    kinds = {field.name: field.dataType for field in frame.schema}
    how = {
        "text": lambda name: how["value" if numbers and isinstance(kinds[name], T.NumericType) else "words"](name),
        "words": lambda name: text_of(column(name), kinds[name]),
        "number": lambda name: column(name).try_cast("double"),
        "value": lambda name: (
            F.nullif(column(name), F.lit(math.nan).cast(frame.schema[name].dataType))
            if isinstance(frame.schema[name].dataType, T.FloatType | T.DoubleType)
            else column(name)
        ),
    }
    return frame.select(*[how[w.kind](w.name).alias(w.alias) for w in wanted])


# ------------------------------------------------------------------------------------------ the same values


@pytest.mark.parametrize("encoded", ["dictionary", "plain", "overflowing"])
def test_every_type_is_read_as_spark_reads_it(spark, tmp_path, encoded, monkeypatch):
    """Nulls, several files, several row groups in a task and several tasks in a file, an empty row group and file."""
    monkeypatch.setattr(sources, "ROWS_PER_TASK", 40)
    directory = tmp_path / "a table"
    directory.mkdir()
    for number, sizes in enumerate([[25, 0, 25, 30, 1], [7], [0], []]):
        tables = [tables_of_all_types(n, 10 * number + i) for i, n in enumerate(sizes)]
        options = {"use_dictionary": encoded != "plain", "store_schema": number % 2 == 0}
        if encoded == "overflowing":
            # The writer gives its dictionary up in the middle of a column.
            options |= {"dictionary_pagesize_limit": 40, "data_page_size": 40, "write_batch_size": 5}
        schema = tables_of_all_types(0, 0).schema
        with pq.ParquetWriter(directory / f"f {number}.parquet", schema, **options) as writer:
            for table in tables:
                writer.write_table(table)
    table, frame = opened(spark, directory)
    wanted = [Wanted(f"v{i}", name, "value") for i, name in enumerate(["row", *VALUES])]
    wanted += [Wanted(f"n{i}", name, "number") for i, name in enumerate(NUMBERS)]
    wanted += [Wanted("d", "string", "value", distinct=True), Wanted("e", "string", "value")]
    found = scan(table, frame, wanted)
    assert found.steps
    rows = found.frame()
    assert [(f.name, f.dataType) for f in rows.schema] == [(f.name, f.dataType) for f in by_spark(frame, wanted).schema]
    expected = rows_of(by_spark(frame, wanted))
    assert rows_of(rows) == expected
    assert len(expected) == 88
    # 81 rows are three pieces, cut where that is nearest to thirds; what is small is read with its neighbour.
    sizes_of_tasks = rows_of_tasks(rows)
    assert sorted(sizes_of_tasks) == [25, 25, 38]


def test_texts_of_distinct_values_are_those_of_spark(spark, tmp_path):
    """What a text column becomes is left to who looks at its distinct values; the texts must be Spark's."""
    pq.write_table(tables_of_all_types(200, 3), tmp_path / "t.parquet")
    table, frame = opened(spark, tmp_path)
    wanted = [Wanted(name, name, "text") for name in TEXTS]
    found = scan(table, frame, wanted)
    assert found.steps

    def step(tables: Any) -> Any:
        for one in tables:
            parts = [dictionary_of(one.column(name)) for name in TEXTS]
            yield pa.table([as_texts(values).take(place) for values, place in parts], names=TEXTS)

    expected = by_spark(frame, wanted)
    assert rows_of(found.then(step, expected.schema).frame()) == rows_of(expected)


def test_codes_do_not_depend_on_who_reads(spark, tmp_path, monkeypatch):
    """ENCODED of the same files by tasks and by Spark: codes, weights, released columns, ids and the snapshot."""
    kinds = ["string", "large", "byte", "int", "long", "flag", "day"]
    kept = ["double", "float", "short"]
    columns = {"row": {"role": "identifier"}, "w": {"role": "weight"}}
    columns |= {name: quasi({"flat": True}, nulls="suppress") for name in kinds}
    columns |= {name: {"role": "sensitive"} for name in kept}
    sensitivity = {"form": "record", "record": "w"}
    where = {"path": str(tmp_path / "t"), "record_id": "row"}
    policy, other = (
        policy_of(columns, table=where | more, risk={"sensitivity": sensitivity})
        for more in ({}, {"options": {"mergeSchema": False}})
    )
    content = tables_of_all_types(120, 1)
    weights = pa.array([None if i % 7 == 0 else i / 3 for i in range(120)], pa.float64())
    content = content.select(["row", *kinds, *kept]).append_column("w", weights)
    (tmp_path / "t").mkdir()
    pq.write_table(content.slice(0, 70), tmp_path / "t" / "a.parquet", row_group_size=30)
    pq.write_table(content.slice(70), tmp_path / "t" / "b.parquet", use_dictionary=False)
    _, frame = opened(spark, tmp_path / "t")
    hierarchies = collect_hierarchies(policy, frame, None)
    # The second time values are unknown to the hierarchies.
    fewer = collect_hierarchies(policy, frame.limit(4), None)
    for known in (hierarchies, fewer):
        direct = encode(frame, policy, known, blocks=False)
        elsewhere = encode(frame, other, known, blocks=False)
        assert (len(direct.steps), len(elsewhere.steps)) == (2, 1)
        assert direct.schema == elsewhere.schema
        assert rows_of(direct.frame()) == rows_of(elsewhere.frame())
        snapshots = []
        for number, coded in enumerate((direct, elsewhere)):
            directory = tmp_path / f"{'all' if known is hierarchies else 'fewer'}-{number}"
            directory.mkdir()
            parts = parts_of(materialize(coded, at(directory), k=len(kinds), n_weights=1))
            facts = input_facts(parts, 0, kinds, ["w"])
            snapshots.append(facts)
        assert snapshots[0] == snapshots[1]
        assert snapshots[0].bad_weights == {"w": 18}
    assert snapshots[0].unknown["string"] > 10
    assert sum(snapshots[0].nulls.values()) > 20
    with_blocks = encode(frame, policy, hierarchies, blocks=True)
    assert len(with_blocks.steps) == 2, "tasks read the files themselves and hash the ids"
    for one in with_blocks.frame().select("record_id", "block").toArrow().to_pylist():
        identity = one["record_id"]
        assert one["block"] == (None if identity is None else sha256(identity.encode()).digest()[:16])
    assert rows_of(with_blocks.frame().drop("block")) == rows_of(
        encode(frame, other, hierarchies, blocks=False).frame()
    )


def test_dictionaries_are_coded_alike(spark, tmp_path):
    columns = {"x": quasi({"flat": {"values": ["a", "b"]}}), "y": quasi({"flat": {"values": ["1", "2"]}})}
    path = tmp_path / "other"
    path.mkdir()
    content = pa.table({"x.x": ["a", "b", None, "?"] * 9, "y": pa.array([1, 2, 3, None, 1, 2] * 6, pa.int16())})
    pq.write_table(content, path / "p.parquet", row_group_size=5)
    given = {"kind": "table", "path": str(path), "columns": {"x": "x.x", "y": "y"}}
    policy = policy_of(columns, dictionary=given)
    frame = read(spark, policy.dictionary, key="dictionary")
    hierarchies = collect_hierarchies(policy, frame, None)
    direct = encode_dictionary(frame, policy.dictionary, hierarchies)
    by_options = policy.dictionary.model_copy(update={"options": {"mergeSchema": False}})
    elsewhere = encode_dictionary(frame, by_options, hierarchies)
    assert (len(direct.steps), len(elsewhere.steps)) == (2, 1)
    found = rows_of(direct.frame())
    assert found == rows_of(elsewhere.frame())
    assert len(found) == 36
    assert {row[0] for row in found} == {0, 1, schemas.NULL, schemas.UNKNOWN}


ODD = ["a.b", "a`b", "a b", "a%20b", "a", "a.b.c", "é", "*", "a/b", "row.0", "[0]"]


def test_odd_names_and_paths(spark, tmp_path):
    """Dots, backticks, spaces and percents in columns and directories; 'a.b' stands beside a struct 'a' no more."""
    directory = tmp_path / "dir with spaces" / "50%25 #1 é+;x"
    directory.mkdir(parents=True)
    content = pa.table({name: [f"{name}-{i}" if i else None for i in range(4)] for name in ODD})
    pq.write_table(content, directory / "part 0%20.parquet")
    pq.write_table(content, directory / "part?1.parquet", use_dictionary=False)
    table, frame = opened(spark, directory)
    wanted = [Wanted(f"v{i}", name, "text") for i, name in enumerate(ODD)]
    assert by_tasks(table, frame, wanted)
    found = rows_of(scan(table, frame, wanted).frame())
    assert found == sorted(
        [tuple(f"{name}-{i}" if i else None for name in ODD) for i in range(4)] * 2, key=repr
    )  # fmt: skip
    assert found == rows_of(by_spark(frame, wanted))
    for path in (directory / "part?1.parquet", directory / "part 0%20.parquet"):
        # Spark takes a path with a question mark for a pattern; what it finds is what tasks read.
        table, frame = opened(spark, path)
        one = [Wanted("v", "a.b", "text")]
        assert rows_of(scan(table, frame, one).frame()) == rows_of(by_spark(frame, one))


def test_a_struct_beside_a_name_with_a_dot(spark, tmp_path):
    inner = pa.array([{"b": "inside", "c": 1}, None], pa.struct([("b", pa.string()), ("c", pa.int32())]))
    pq.write_table(pa.table({"a": inner, "a.b": ["flat", None], "c": ["x", "y"]}), tmp_path / "s.parquet")
    table, frame = opened(spark, tmp_path)
    wanted = [Wanted("v", "a.b", "text"), Wanted("c", "c", "value")]
    found = rows_of(scan(table, frame, wanted).frame())
    assert found == rows_of(by_spark(frame, wanted)) == [("flat", "x"), (None, "y")]
    wanted.append(Wanted("a", "a", "value"))
    assert by_tasks(table, frame, wanted)
    assert rows_of(scan(table, frame, wanted).frame()) == rows_of(by_spark(frame, wanted))


def test_numbers_beyond_what_a_double_holds_are_rounded(spark, tmp_path):
    values = [2**53 + 1, 2**63 - 1, -(2**63), -(2**53) - 1, None, 3]
    pq.write_table(pa.table({"w": pa.array(values, pa.int64())}), tmp_path / "w.parquet")
    table, frame = opened(spark, tmp_path)
    wanted = [Wanted("w0", "w", "number")]
    assert by_tasks(table, frame, wanted)
    assert rows_of(scan(table, frame, wanted).frame()) == rows_of(by_spark(frame, wanted))


def test_no_rows_and_no_files(spark, tmp_path):
    for name, files in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        for number in range(files):
            pq.write_table(tables_of_all_types(0, 0), tmp_path / name / f"{number}.parquet")
        table, frame = opened(spark, tmp_path / name)
        wanted = [Wanted("v", "string", "text"), Wanted("w", "long", "number")]
        assert by_tasks(table, frame, wanted)
        assert scan(table, frame, wanted).frame().toArrow().num_rows == 0
    with pq.ParquetWriter(tmp_path / "none.parquet", tables_of_all_types(0, 0).schema):
        pass
    table, frame = opened(spark, tmp_path / "none.parquet")
    assert scan(table, frame, wanted).frame().toArrow().num_rows == 0


def test_days_no_date_of_python_reaches(spark, tmp_path):
    """Spark writes years of five digits with a sign."""
    days = pa.array([2932896, 2932897, 4000000, -719162, -719163, -1500000, None], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"day": days}), tmp_path / "late.parquet")
    table, frame = opened(spark, tmp_path / "late.parquet")
    wanted = [Wanted("d", "day", "text")]
    assert by_tasks(table, frame, wanted)
    found = scan(table, frame, wanted).frame().toArrow().column(0)
    texts = as_texts(found.combine_chunks()).to_pylist()
    assert texts == by_spark(frame, wanted).toArrow().column(0).to_pylist()
    assert texts[1] == "+10000-01-01"


def test_files_spark_wrote_and_files_it_ignores(spark, tmp_path):
    frame = spark.range(50).select(
        F.col("id"), F.when(F.col("id") % 5 != 0, F.concat(F.lit("t-"), F.col("id") % 3)).alias("x"),
        F.expr("date_add(date'1970-01-01', cast(id * 100 as int))").alias("day"),
    )  # fmt: skip
    frame.repartition(3).write.parquet(str(tmp_path / "t"))
    (tmp_path / "t" / "_hidden.parquet").write_text("not read")
    (tmp_path / "t" / ".hidden.parquet").write_text("not read")
    table, found = opened(spark, tmp_path / "t")
    wanted = [Wanted("i", "id", "value"), Wanted("x", "x", "text"), Wanted("d", "day", "value")]
    assert by_tasks(table, found, wanted)
    assert rows_of(scan(table, found, wanted).frame()) == rows_of(frame.select("id", "x", "day"))
    first = min(path for path in (tmp_path / "t").glob("*.parquet") if path.name[0] not in "._")
    pattern, matched = opened(spark, tmp_path / "t" / f"{first.stem[:-1]}[{first.stem[-1]}]*.parquet")
    assert by_tasks(pattern, matched, wanted)
    assert 0 < len(rows_of(scan(pattern, matched, wanted).frame())) < 50
    assert rows_of(scan(pattern, matched, wanted).frame()) == rows_of(by_spark(matched, wanted))


PARTITIONS = {
    "texts": [
        "a",
        "b",
        "c d",
        "e%2Ff",
        "%C3%A9",
        "é",
        "a=b",
        "50%25",
        "%5Bx%5D",
        "__HIVE_DEFAULT_PARTITION__",
        "null",
        "*",
    ],
    "mixed": ["01", "1", "x", "__HIVE_DEFAULT_PARTITION__"],
    "whole": ["0", "1", "-7", "2147483647", "__HIVE_DEFAULT_PARTITION__"],
    "long": ["1", "2147483648", "-9223372036854775808"],
    "days": ["2020-02-29", "1999-12-31", "__HIVE_DEFAULT_PARTITION__"],
    "zeros": ["007", "7", "8"],
    "plus": ["+5", "6"],
    "doubles": ["1.5", "2"],
    "times": ["2020-01-01 00:00:00", "2020-01-02 10:00:00"],
    "beyond": ["9223372036854775808", "1"],
    "missing": ["__HIVE_DEFAULT_PARTITION__"],
}


@pytest.mark.parametrize(
    "inferred", [pytest.param("true", marks=pytest.mark.on_spark("the embedded engine infers no types")), "false"]
)
@pytest.mark.parametrize("case", PARTITIONS)
def test_partitions_are_read_as_spark_reads_them(spark, tmp_path, case, inferred):
    """Columns in the names of directories, by the rules of Hive: types, escapes, missing values."""
    for number, value in enumerate(PARTITIONS[case]):
        directory = tmp_path / "t" / f"W w={value}" / f"second={number % 2}"
        directory.mkdir(parents=True)
        content = pa.table({"x": [f"{number}-{i}" for i in range(3)], "y": pa.array([number, None, 1], pa.int32())})
        pq.write_table(content, directory / "p.parquet")
    key = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = spark.conf.get(key)
    spark.conf.set(key, inferred)
    try:
        table, frame = opened(spark, tmp_path / "t")
        if not is_embedded(spark):  # of which tasks read the table
            assert frame.schema == spark.read.parquet(table.path).schema
        wanted = [Wanted("w", "W w", "text"), Wanted("p", "W w", "value"), *X, Wanted("y", "y", "number")]
        wanted += [Wanted("d", "second", "text", distinct=True), Wanted("s", "second", "value")]
        found = scan(table, frame, wanted)
        known = isinstance(frame.schema["W w"].dataType, T.StringType | T.IntegerType | T.LongType | T.DateType)
        plain = inferred == "false" or case not in ("zeros", "plus")
        assert bool(found.steps) == (known and plain), frame.schema["W w"]
        expected = rows_of(by_spark(frame, wanted))
        values = [want for want in wanted if want.kind != "text"]
        assert rows_of(scan(table, frame, values).frame()) == rows_of(by_spark(frame, values))

        def step(tables: Any) -> Any:
            for one in tables:
                texts = []
                for name in one.column_names:
                    distinct, place = dictionary_of(one.column(name))
                    texts.append(as_texts(distinct).take(place) if name in "wd" else one.column(name))
                yield pa.table(texts, names=one.column_names)

        schema = by_spark(frame, wanted).schema
        assert rows_of(found.then(step, schema).frame()) == expected
        assert len(expected) == 3 * len(PARTITIONS[case])
    finally:
        spark.conf.set(key, before)


def test_small_files_are_read_together(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "_FEW_ROWS", 10)
    for number in range(9):
        (tmp_path / f"w={number}").mkdir()
        pq.write_table(pa.table({"x": ["a"] * 4}), tmp_path / f"w={number}" / "p.parquet")
    table, frame = opened(spark, tmp_path)
    rows = scan(table, frame, [Wanted("w", "w", "value"), *X]).frame()
    sizes = rows_of_tasks(rows)
    assert sorted(sizes) == [4, 8, 8, 8, 8]
    assert len(set(rows_of(rows))) == 9


# ------------------------------------------------------------------------------------------ left to Spark


def falls_back(spark: Any, table: Table, wanted: list[Wanted]) -> list[tuple[Any, ...]]:
    frame = read(spark, table, key="table")
    assert not by_tasks(table, frame, wanted)
    found = rows_of(scan(table, frame, wanted).frame())
    assert found == rows_of(by_spark(frame, wanted, numbers=True))
    return found


X = [Wanted("v", "x", "value")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us", tz="UTC"), [dt.datetime(1999, 1, 1, 12, 30, 0, 123456, dt.UTC), None]),
        (pa.timestamp("us"), [dt.datetime(1999, 1, 1, 12, 30), None]),
        (pa.decimal128(10, 2), [Decimal("1.50"), None]),
        (pa.binary(), [b"x\xff", None]),
        (pa.list_(pa.string()), [["a", None], None]),
        (pa.uint8(), [255, None]),
        (pa.uint32(), [2**32 - 1, None]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", None]),
    ],
    ids=str,
)
def test_scan_values_of_other_types_are_those_of_spark(spark, tmp_path, kind, values):
    array = pa.array(values).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)
    pq.write_table(pa.table({"x": array, "y": ["a", "b"]}), tmp_path / "t.parquet")
    table, frame = opened(spark, tmp_path)
    wanted = [*X, Wanted("y", "y", "text")]
    assert by_tasks(table, frame, wanted)
    found = scan(table, frame, wanted).frame()
    assert found.schema == by_spark(frame, wanted).schema
    assert rows_of(found) == rows_of(by_spark(frame, wanted))


def test_texts_of_inexact_numbers_and_numbers_of_texts_are_sparks(spark, tmp_path):
    content = pa.table({"f": INEXACT, "g": pa.array(INEXACT, pa.float32()), "t": ["1.5", "nan", "many", *"abcdef"]})
    pq.write_table(content.append_column("b", pa.array([True] * 9)), tmp_path / "t.parquet")
    table = Table(path=str(tmp_path))
    wanted = [Wanted("v", "f", "text"), Wanted("w", "g", "text")]
    falls_back(spark, table, wanted)
    doubles, floats = scan(table, read(spark, table, key="table"), wanted).frame().toArrow().itercolumns()
    texts = as_texts(doubles.combine_chunks()).to_pylist()
    assert "1.0E300" in texts
    assert None in texts, "NaN is missing"
    assert "0.33333334" in as_texts(floats.combine_chunks()).to_pylist()
    assert ("1.5",) in falls_back(spark, table, [Wanted("v", "t", "number")])
    falls_back(spark, table, [Wanted("v", "b", "number")])


@pytest.mark.on_spark("the embedded engine refuses such directories")
def test_partitions_only_spark_understands_are_left_to_it(spark, tmp_path):
    """A partition alone, doubtful escapes, a directory that is no partition, and partitions of a pattern."""
    content = pa.table({"x": ["a", "b"]})
    named = {
        "escape": ["w=a%2", "w=b"],
        "sign": ["w=%+1", "w=b"],
        "column": ["w%41=a", "w%41=b"],
        "plain": ["w=a/v=1", "w=b/v=2"],
    }
    for case, directories in named.items():
        for directory in directories:
            (tmp_path / case / directory).mkdir(parents=True)
            pq.write_table(content, tmp_path / case / directory / "p.parquet")
    for case, name in (("escape", "w"), ("sign", "w"), ("column", "wA")):
        assert len(falls_back(spark, Table(path=str(tmp_path / case)), [Wanted("w", name, "text"), *X])) == 4, case
    falls_back(spark, Table(path=str(tmp_path / "plain")), [Wanted("w", "w", "text"), Wanted("v", "v", "text")])
    pattern = Table(path=str(tmp_path / "plain" / "w=a" / "v=[12]"))
    table, frame = pattern, read(spark, pattern, key="table")
    assert by_tasks(table, frame, X), "the directories hold nothing that is asked for"
    below = Table(path=str(tmp_path / "plain" / "w=a"))
    found = read(spark, below, key="table")
    wanted = [Wanted("p", "v", "text"), *X]
    assert "w" not in found.columns
    assert by_tasks(below, found, wanted), "names above the table's path are no columns"
    assert rows_of(scan(below, found, wanted).frame()) == rows_of(by_spark(found, wanted))


def test_directories_of_other_partitions_are_left_to_spark(spark, tmp_path):
    """Spark itself may refuse them; nothing is made up for a file that lacks a partition."""
    for directory in ("w=a", "w=b"):
        (tmp_path / directory).mkdir()
        pq.write_table(pa.table({"x": ["a"]}), tmp_path / directory / "p.parquet")
    frame = spark.read.parquet(str(tmp_path))
    wanted = [Wanted("w", "w", "text"), *X]
    assert by_tasks(Table(path=str(tmp_path)), frame, wanted)
    (tmp_path / "w=b").rename(tmp_path / "v=b")
    moved = spark.read.schema("x string, w string").parquet(str(tmp_path / "w=a"), str(tmp_path / "v=b"))
    assert not by_tasks(Table(path=str(tmp_path)), moved, wanted)


@pytest.mark.on_spark("the embedded engine refuses such directories")
def test_a_directory_name_wins_over_the_column_of_its_files(spark, tmp_path):
    """A file may hold its partition's column, too, with anything in it; Spark believes the directory."""
    for value in (1, 2):
        (tmp_path / f"x={value}").mkdir()
        content = pa.table({"x": pa.array([7, 8], pa.int32()), "y": ["a", "b"]})
        pq.write_table(content, tmp_path / f"x={value}" / "p.parquet")
    table, frame = opened(spark, tmp_path)
    wanted = [*X, Wanted("y", "y", "text")]
    assert rows_of(by_spark(frame, wanted)) == [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b")]
    assert rows_of(scan(table, frame, wanted).frame()) == rows_of(by_spark(frame, wanted))


@pytest.mark.on_spark("the embedded engine refuses such files")
def test_files_that_differ(spark, tmp_path):
    cases = {
        "missing": [pa.table({"x": ["a", "b"], "y": ["c", "d"]}), pa.table({"y": ["e"]})],
        "renamed": [pa.table({"x": ["a", "b"]}), pa.table({"X": ["e"]})],
        "twice": [pa.table({"x": ["a", "b"]}), pa.table([["c"], ["d"]], names=["X", "z"])],
        "null": [pa.table({"x": ["a", "b"]}), pa.table({"x": pa.array([b"c"], pa.binary())})],
    }
    for name, tables in cases.items():
        (tmp_path / name).mkdir()
        for number, content in enumerate(tables):
            pq.write_table(content, tmp_path / name / f"{number}.parquet")
        table = Table(path=str(tmp_path / name))
        frame = spark.read.schema("x string").parquet(table.path)
        assert not by_tasks(table, frame, X), name
        assert rows_of(scan(table, frame, X).frame()) == rows_of(by_spark(frame, X))
    narrow = tmp_path / "narrow"
    narrow.mkdir()
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), narrow / "0.parquet")
    pq.write_table(pa.table({"x": pa.array([2], pa.int64())}), narrow / "1.parquet")
    frame = spark.read.schema("x long").parquet(str(narrow))
    assert not by_tasks(Table(path=str(narrow)), frame, X)
    assert rows_of(scan(Table(path=str(narrow)), frame, X).frame()) == [(1,), (2,)]


@pytest.mark.on_spark("the embedded engine refuses such files")
def test_dates_of_old_writers_are_left_to_spark(spark, tmp_path):
    """Spark 2 counted days by another calendar before 1582; such a file says who wrote it."""
    content = pa.table({"x": pa.array([DAY(1000, 1, 1), DAY(2000, 1, 1)])})
    for name, more in (("old", {"org.apache.spark.version": "2.4.8"}),
                       ("legacy", {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}),
                       ("new", {"org.apache.spark.version": "3.5.0"})):  # fmt: skip
        (tmp_path / name).mkdir()
        pq.write_table(content.replace_schema_metadata(more), tmp_path / name / "p.parquet")
        table, frame = opened(spark, tmp_path / name)
        expected = rows_of(by_spark(frame, X))
        assert (expected[0] == (DAY(1000, 1, 1),)) == (name == "new")
        assert rows_of(scan(table, frame, X).frame()) == expected, name


@pytest.mark.on_embedded("Spark reads these")
def test_read_what_the_embedded_engine_cannot_read_as_spark_is_refused(spark, tmp_path):
    """Dates of Spark 2, a column in files and names, directories without a name, types that differ, other formats."""
    days = pa.table({"x": pa.array([DAY(1000, 1, 1)])}).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    cases = {
        "old/p": (days, "counts days before 1582 by another calendar.* or give --engine spark"),
        "twice/x=1/p": (pa.table({"x": [7]}), "has the column 'x' twice"),
        "other/w=a%2/p": (pa.table({"x": ["a"]}), "not named column=value"),
        "types/p": (pa.table({"x": ["a"]}), "file q.parquet has column 'x' of type binary, and"),
    }
    for name, (content, said) in cases.items():
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(content, path)
        if name == "types/p":
            pq.write_table(pa.table({"x": [b"a"]}), path.with_stem("q"))
        with pytest.raises(SchemaError, match=said):
            read(spark, Table(path=str(tmp_path / name.split("/")[0])), key="table")
    for table in (
        Table(path=str(tmp_path / "types"), format="json"),
        Table(path=str(tmp_path / "types"), options={"modifiedAfter": "2020-01-01T00:00:00"}),
    ):
        with pytest.raises(SchemaError, match="--engine spark"):
            read(spark, table, key="table")


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_scan_with_a_dictionary_column_converts_the_others(spark, tmp_path, kind):
    """The embedded engine reads dictionaries by a path of its own."""
    columns = {
        "g": pa.array(["a", "b", "a"]).cast(kind),
        "w": pa.array([1, 2, 3]),
        "v": pa.array([1.0, math.nan, None]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = Table(path=str(tmp_path / "t.parquet"), format="parquet")
    wanted = [Wanted("g", "g", "text"), Wanted("w", "w", "number"), Wanted("v", "v", "value")]
    found = scan(table, read(spark, table, key="table"), wanted)
    assert [field.dataType for field in found.schema.fields] == [T.StringType(), T.DoubleType(), T.DoubleType()]
    rows = [tuple(row.values()) for row in found.frame().toArrow().to_pylist()]
    assert sorted(rows, key=repr) == [("a", 1.0, 1.0), ("a", 3.0, None), ("b", 2.0, None)]


def test_read_parquet_ignores_options_of_other_formats(spark, tmp_path):
    for name, number in (("a", 1), ("__HIVE_DEFAULT_PARTITION__", 2)):
        (tmp_path / f"w={name}").mkdir()
        pq.write_table(pa.table({"x": pa.array([number], pa.uint8())}), tmp_path / f"w={name}" / "p.parquet")
    found = read(spark, Table(path=str(tmp_path), options={"sep": ";", "header": True}), key="table")
    assert sorted(map(tuple, found.collect())) == [(1, "a"), (2, None)]


def test_other_formats_options_and_catalog_tables(spark, tmp_path):
    pq.write_table(pa.table({"x": ["a", None]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("x\na\n\n")
    assert falls_back(spark, Table(path=str(tmp_path / "t.parquet"), options={"mergeSchema": True}), X)
    csv = Table(path=str(tmp_path / "t.csv"), format="csv", options={"header": True})
    frame = read(spark, csv, key="table")
    assert by_tasks(csv, frame, X), "tasks parse the lines"
    assert not by_tasks(csv, frame.where("x > ''"), X)
    assert rows_of(scan(csv, frame, X).frame()) == [("a",)]
    if not is_embedded(spark):
        spark.read.parquet(str(tmp_path / "t.parquet")).write.orc(str(tmp_path / "t.orc"))
        assert len(falls_back(spark, Table(path=str(tmp_path / "t.orc"), format="orc"), X)) == 2
    spark.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("of_a_file")
    try:
        assert len(falls_back(spark, Table(catalog="of_a_file"), X)) == 2
    finally:
        spark.catalog.dropTempView("of_a_file")
    # An expression only Spark can compute.
    table, frame = opened(spark, tmp_path / "t.parquet")
    found = scan(table, frame, X, more=[F.lit(1).alias("one")])
    assert not found.steps
    assert rows_of(found.frame()) == [(1, "a"), (1, None)]


# ------------------------------------------------------------------------------------------ value codes


def test_codes_of_values_in_every_encoding():
    codes = ValueCodes.of({"b": 0, "a": 1, "": 2, "7": 3})
    cases = [
        (["a", "b", None, "", "x", "a", " a", "A"], [1, 0, -2, 2, -1, 1, -1, -1]),
        ([None, None], [-2, -2]),
        ([], []),
        (["x"], [-1]),
    ]
    for values, wanted in cases:
        whole = pa.array(values, pa.string())
        variants = [
            pa.chunked_array([whole]),
            pa.chunked_array([whole.dictionary_encode()]),
            pa.chunked_array([whole.slice(0, 1), whole.slice(1)]),
            pa.chunked_array([pa.array(["x", *values]).slice(1)]) if values else pa.chunked_array([], pa.string()),
            pa.chunked_array([whole.cast(pa.large_string())]),
        ]
        for variant in variants:
            found = codes.encoded(variant)
            assert found.dtype == np.int32
            assert found.tolist() == wanted
    # A dictionary with values no row has, one twice, and one that is missing itself.
    odd = pa.DictionaryArray.from_arrays(pa.array([4, 0, None, 3, 2, 1]), pa.array(["a", "unseen", None, "a", "b"]))
    assert codes.encoded(pa.chunked_array([odd])).tolist() == [0, 1, -2, 1, -2, -1]
    assert codes.encoded(pa.chunked_array([pa.array([7, None, 8], pa.int16())])).tolist() == [3, -2, -1]
    nothing = ValueCodes.of({})
    assert nothing.encoded(pa.chunked_array([pa.array(["a", None])])).tolist() == [-1, -2]


# ------------------------------------------------------------------------------------------ fingerprints in tasks


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
STRUCTS = [{"p": p, "q": q} for p, q in ((1, 0.0), (1, -0.0), (1, math.nan), (None, None))] + [None]


def fingerprints(array: Any) -> list[int]:
    return [int(value) for value in of_columns.fingerprints(pa.chunked_array([array]))]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["", "a", "a\0", "1", None, "ü", "null"]),
        (pa.binary(), [b"", b"a", b"a\0", b"\xff", None]),
        (pa.int64(), [0, 1, -1, 2**63 - 1, None]),
        (pa.float64(), [0.0, -0.0, 1.0, math.inf, math.nan, None]),
        (pa.float32(), [0.0, -0.0, 1.0, math.nan, None]),
        (pa.bool_(), [True, False, None]),
        (pa.date32(), [DAY(1970, 1, 1), DAY(1970, 1, 2), None]),
        (pa.decimal128(30, 10), [Decimal(0), Decimal("0.0000000001"), None]),
        (pa.timestamp("us", tz="UTC"), [EPOCH, EPOCH + dt.timedelta(microseconds=1), None]),
        (pa.list_(pa.string()), [["a", "b"], ["a, b"], ["a"], [], [None], [""], None]),
        (pa.struct([("p", pa.int64()), ("q", pa.float64())]), STRUCTS),
    ],
    ids=str,
)
def test_values_are_told_apart_and_layouts_are_not(kind, values):
    whole = pa.array(values, kind)
    found = fingerprints(whole)
    assert len(set(found)) == len(values)
    twice = pa.array([*values[1:], *values, *values], kind)
    assert fingerprints(twice) == [*found[1:], *found, *found]
    assert fingerprints(twice.slice(len(values) - 1, len(values))) == found
    pieces = pa.chunked_array([whole.slice(0, 2), whole.slice(2, 0), whole.slice(2)])
    assert [int(value) for value in of_columns.fingerprints(pieces)] == found
    assert list(of_columns.fingerprints(pa.chunked_array([], kind))) == []
    if not pa.types.is_nested(kind):
        encoded = twice.dictionary_encode()
        assert fingerprints(encoded) == fingerprints(twice)
        assert fingerprints(encoded.slice(3, 4)) == fingerprints(twice)[3:7]
    if pa.types.is_string(kind):
        assert fingerprints(whole.cast(pa.large_string())) == found


KEPT = [["x", None], [], None, ["x"]]
SCHEMA = "record_id string, block binary, w0 double, r0 string, r1 double, r2 array<string>, q0 int, q1 int"


def encoded_rows(n: int = 40) -> list[tuple[Any, ...]]:
    pick = random.Random(2)
    return [
        (f"i{i}", b"0123456789abcdef", pick.choice([0.0, 2.5]), pick.choice(["", "n", None]),
         pick.choice([-0.0, 0.0, math.nan, None]), pick.choice(KEPT), pick.randrange(-2, 3), pick.randrange(-2, 3))
        for i in range(n)
    ]  # fmt: skip


def pinned_facts(spark: Any, frame: Any, directory: Path) -> tuple[Any, list[dict[str, Any]]]:
    directory.mkdir()
    parts = parts_of(materialize(Batches.of_frame(frame), at(directory), k=2, n_weights=1))
    rows = sum(part["rows"] for part in parts)
    found = duplicates(spark, [part["name"] for part in parts], rows, at(directory)).frame().toArrow()
    return input_facts(parts, sum(found.column(0).to_pylist()), ["x", "y"], ["w"]), parts


def test_the_facts_of_the_input_do_not_depend_on_the_layout(spark, tmp_path):
    rows = encoded_rows()
    rows += [(again, *rows[i][1:]) for again, i in (("i3", 4), ("i3", 5), ("i9", 9), (None, 0), (None, 1))]
    facts = [pinned_facts(spark, frame, tmp_path / str(i)) for i, frame in enumerate(layouts(spark, rows, SCHEMA))]
    assert facts[0][0] == facts[1][0] == facts[2][0]
    assert len(facts[2][1]) > len(facts[1][1]) >= 4 or len(facts[0][1]) > 1
    one = facts[0][0]
    assert (one.rows, one.null_ids, one.duplicate_ids) == (45, 2, 3)
    assert one.nulls == {"x": sum(row[6] == -2 for row in rows), "y": sum(row[7] == -2 for row in rows)}
    # The same content again has the same snapshot; a change of one cell, also of -0.0 to 0.0, has another.
    seen = {one.snapshot}
    for place, value in ((0, "I0"), (2, 7.0), (3, "N"), (4, 0.0), (4, None), (5, ["x", ""]), (6, 3), (7, 3)):
        changed = list(rows)
        at = next(i for i, row in enumerate(rows) if repr(row[4]) == "-0.0")
        changed[at] = (*rows[at][:place], value, *rows[at][place + 1 :])
        frame = spark.createDataFrame(shuffled(changed, 3), SCHEMA).repartition(2)
        seen.add(pinned_facts(spark, frame, tmp_path / f"changed-{place}-{value}")[0].snapshot)
    assert len(seen) == 9
    # A block is a function of the id: it does not count.
    other = [(row[0], b"another 16 bytes", *row[2:]) for row in rows]
    assert pinned_facts(spark, spark.createDataFrame(other, SCHEMA), tmp_path / "blocks")[0] == one


def test_repeated_ids_are_found_wherever_they_lie(spark, tmp_path, monkeypatch):
    """Over parts, over the ranges of fingerprints of several tasks, and more than twice."""
    ids = [f"id-{i}" for i in range(300)]
    tables = [ids[:100], ids[100:200], [*ids[200:], "id-5", "id-5"], ["id-150", "id-5", None, None], [None]]
    rows = [(identity, number) for number, of in enumerate(tables) for identity in of]
    frame = spark.createDataFrame(rows, "record_id string, part int").repartition(5, "part").select("record_id")
    frame = frame.withColumn("q0", F.lit(0))
    parts = parts_of(materialize(Batches.of_frame(frame), at(tmp_path), k=1, n_weights=0))
    names = [part["name"] for part in parts]
    assert len(names) > 3
    counted = []
    for per_task in (4_000_000, 150, 40, 7):
        monkeypatch.setattr(encoding, "HASHES_PER_TASK", per_task)
        found = duplicates(spark, names, 307, at(tmp_path)).frame().toArrow().column(0).to_pylist()
        assert len(found) == -(-307 // per_task)
        counted.append(sum(found))
    assert counted == [4] * 4
    assert sum(part["null_ids"] for part in parts) == 3
    # Nothing but the parts that are named is looked at.
    few = min(parts, key=lambda part: part["rows"])["name"]
    assert sum(duplicates(spark, [few], 2, at(tmp_path)).frame().toArrow().column(0).to_pylist()) == 0
    assert duplicates(spark, [], 0, at(tmp_path)).frame().toArrow().column(0).to_pylist() == [0]


def test_the_least_and_the_greatest_fingerprint_belong_to_a_range(spark, tmp_path, monkeypatch):
    """Ranges meet without a gap or an overlap, whatever their number."""
    for tasks in (1, 2, 3, 7):
        monkeypatch.setattr(encoding, "HASHES_PER_TASK", 1)
        width = 2**64 // tasks + 1
        edges = {min(max(n * width + d, 0), 2**64 - 1) for n in range(tasks + 1) for d in (-1, 0, 1)}
        hashes = np.array(sorted([*edges, *edges]), dtype=np.uint64)
        np.save(tmp_path / f"{tasks}.ids.npy", hashes)
        found = duplicates(spark, [str(tasks)], tasks, at(tmp_path)).frame().toArrow().column(0).to_pylist()
        assert len(found) == tasks
        assert sum(found) == len(edges)


def test_what_a_lost_attempt_left_behind_is_not_read(spark, tmp_path):
    """Parts count if a task reported them: a retry's twin lies beside them and is neither read nor kept."""
    rows = encoded_rows(12)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(2)
    coded = Batches.of_frame(frame)
    wanted, parts = pinned_facts(spark, frame, tmp_path / "once")
    reported = parts_of(materialize(coded, at(tmp_path / "once"), k=2, n_weights=1))
    names = [part["name"] for part in reported]
    write_ipc(pa.table({"half": [1]}), at(tmp_path / "once"))
    (tmp_path / "once" / "part-torn.arrow").write_bytes(b"ARROW1")
    assert len(list((tmp_path / "once").iterdir())) == 4 * len(parts) + 2
    assert not set(names) & {part["name"] for part in parts}
    found = materialized(spark, at(tmp_path / "once"), names, coded.schema)
    assert rows_of(found.frame()) == rows_of(frame)
    again = duplicates(spark, names, 12, at(tmp_path / "once")).frame().toArrow().column(0).to_pylist()
    assert input_facts(reported, sum(again), ["x", "y"], ["w"]) == wanted
    at(tmp_path / "once").take(names, tmp_path / "taken")
    assert sorted(path.name for path in (tmp_path / "taken").iterdir()) == sorted(names)
    found = materialized(spark, at(tmp_path / "taken"), names, coded.schema)
    assert rows_of(found.frame()) == rows_of(frame)


def test_parts_that_are_pinned_are_evaluated_no_more(spark, tmp_path):
    """Rows drawn at random, as a source that changes would give them, stay what they were."""
    drawn = (F.rand() * 1e9).cast("int").alias("q0")
    frame = spark.range(20).select(F.col("id").cast("string").alias("record_id"), drawn)
    coded = Batches.of_frame(frame)
    parts = parts_of(materialize(coded, at(tmp_path), k=1, n_weights=0))
    held = materialized(spark, at(tmp_path), [part["name"] for part in parts], coded.schema)
    first = rows_of(held.frame())
    assert len(first) == 20
    assert rows_of(held.frame()) == first
    assert rows_of(materialized(spark, at(tmp_path), [], coded.schema).frame()) == []
