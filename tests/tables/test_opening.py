from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from naive_records import by, layouts, policy_of, quasi, together
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.session import held
from privrisk_spark.engine.settings import input_files
from privrisk_spark.engine.value_codes import resolve
from privrisk_spark.errors import HierarchyError, InputError, SchemaError
from privrisk_spark.policy.policy import Table
from privrisk_spark.tables import coverage
from privrisk_spark.tables.encode import encode, encode_dictionary
from privrisk_spark.tables.opening import check_columns, check_dictionary, collect_hierarchies, read

FLAT = {"flat": True}
TREE = {"*": {"north": ["a", "b"], "south": {"deep": ["c"]}, "d": {"e": ["f"]}}}


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return (frame.frame() if isinstance(frame, Batches) else frame).toArrow().to_pylist()


# ------------------------------------------------------------------------------------------ values and schema


def test_every_type_becomes_codes_with_the_declared_schema(spark):
    policy = policy_of(
        {
            "id": {"role": "identifier"},
            "day": quasi({"dates": ["day", "month", "year"]}),
            "name": quasi(FLAT),
            "age": quasi({"intervals": {"widths": [10]}}),
            "size": quasi(FLAT),
            "cost": quasi(FLAT),
            "left": quasi(FLAT),
            "w": {"role": "weight"},
            "note": {"role": "sensitive"},
            "extra": {"role": "insensitive", "action": "drop"},
        },
        table={"path": "in/table", "record_id": "id"},
        risk={"sensitivity": {"form": "record", "record": "w"}},
    )
    schema = (
        "id long, name string, age int, size double, cost decimal(6,2), day date, left boolean, w string, note string, "
        "extra string"
    )
    day = dt.date
    rows = [
        (1, "b", 31, 1.5, Decimal("2.50"), day(2020, 2, 29), True, "1", "x", "-"),
        (2, "a", 7, -0.25, Decimal("2.50"), day(1999, 12, 31), False, "2.5", None, "-"),
        (3, "", 12, 1e300, Decimal("-1.00"), day(2020, 2, 1), True, "nan", "", "-"),
        (4, "ü ", 5, 2.0, Decimal("0.00"), day(2019, 2, 1), False, "many", "y", "-"),
    ]
    frame = spark.createDataFrame(rows, schema)
    check_columns(frame, policy)
    hierarchies = collect_hierarchies(policy, frame, None)
    assert list(hierarchies) == ["day", "name", "age", "size", "cost", "left"]
    encoded = encode(frame, policy, hierarchies, blocks=True)
    wanted = T.StructType(
        [
            T.StructField("record_id", T.StringType()),
            T.StructField("block", T.BinaryType()),
            T.StructField("w0", T.DoubleType()),
            T.StructField("r0", T.StringType()),
            *[T.StructField(f"q{i}", T.IntegerType()) for i in range(6)],
        ]
    )

    # Leaves in canonical order: dates and interval values ascending, flat ones by text ("-1.00" < "0.00" < "2.50",
    # "-0.25" < "1.0E300" < "1.5" < "2.0", "" < "a" < "b" < "ü ", "false" < "true").
    def block(identity: str) -> bytearray:
        return bytearray(hashlib.sha256(identity.encode()).digest()[:16])

    expected = spark.createDataFrame(
        [
            ("1", block("1"), 1.0, "x", 3, 2, 3, 2, 2, 1),
            ("2", block("2"), 2.5, None, 0, 1, 1, 0, 2, 0),
            ("3", block("3"), math.nan, "", 2, 0, 2, 1, 0, 1),
            ("4", block("4"), None, "y", 1, 3, 0, 3, 1, 0),
        ],
        wanted,
    )
    assert encoded.schema == encoded.frame().schema == wanted
    assert_df_equality(encoded.frame(), expected, ignore_row_order=True, allow_nan_equality=True)
    plain = encode(frame, policy, hierarchies, blocks=False)
    assert plain.schema.names == [name for name in wanted.names if name != "block"]
    assert_df_equality(plain.frame(), expected.drop("block"), ignore_row_order=True, allow_nan_equality=True)


def test_nan_is_missing_and_is_no_leaf(spark):
    policy = policy_of({"x": quasi(FLAT), "y": quasi(FLAT), "z": {"role": "sensitive"}})
    rows = [(1.0, 1.0, 1.0), (math.nan, None, math.nan), (None, math.nan, None), (math.inf, -0.0, math.nan)]
    frames = layouts(spark, rows, "x double, y float, z double")
    hierarchies = collect_hierarchies(policy, frames[0], None)
    assert [list(h.code_of) for h in hierarchies.values()] == [["1", "Infinity"], ["0", "1"]]
    variants = together([encode(frame, policy, hierarchies, blocks=False).frame() for frame in frames])
    found = sorted((r["q0"], r["q1"], repr(r["r0"])) for r in variants[0])
    assert found == [(-2, -2, "None"), (-2, -2, "None"), (0, 1, "1.0"), (1, 0, "None")]
    # Two rows are alike then; each has an id of its own all the same.
    ids = [{r["record_id"] for r in variant} for variant in variants]
    assert ids[0] == ids[1] == ids[2]
    assert len(ids[0]) == 4


def test_odd_column_names(spark):
    odd = ["a.b", "a-b", "a b", "a`b", "AGE", "age", "select", "é", "`", "a.b.c", "*"]
    policy = policy_of(
        {name: quasi(FLAT) for name in odd} | {"w.w": {"role": "weight"}, "k`?": {"role": "sensitive"}},
        risk={"sensitivity": {"form": "record", "record": "w.w"}},
        dictionary={"kind": "table", "path": "in/other", "columns": {name: f"the.{name}" for name in odd}},
    )

    def text_schema(names: list[str]) -> T.StructType:
        return T.StructType([T.StructField(name, T.StringType()) for name in names])

    rows = [tuple(f"{side}{i}" for i in range(len(odd))) for side in "xy"]
    frame = spark.createDataFrame([(*rows[0], "2", "k"), (*rows[1], "3", "l")], text_schema([*odd, "w.w", "k`?"]))
    dictionary = spark.createDataFrame(rows, text_schema([f"the.{name}" for name in odd]))
    check_columns(frame, policy)
    hierarchies = collect_hierarchies(policy, frame, [(policy.dictionary, dictionary)])
    encoded = rows_of(encode(frame, policy, hierarchies, blocks=False))
    found = sorted((r["w0"], r["r0"], *[r[f"q{i}"] for i in range(len(odd))]) for r in encoded)
    assert found == [(2.0, "k", *[0] * len(odd)), (3.0, "l", *[1] * len(odd))]
    coded = encode_dictionary(dictionary, policy.dictionary, hierarchies)
    assert coded.schema.names == coded.frame().columns == schemas.dictionary_codes(len(odd))
    assert sorted(tuple(r.values()) for r in rows_of(coded)) == [(0,) * len(odd), (1,) * len(odd)]


def test_columns_may_have_the_names_the_stages_use(spark):
    names = ["content", "ordinal", "record_id", "block", "value", "code", "q0", "v0", "value0", "code0", "w0", "r0"]
    quasi_names, kept = names[:9], names[9:]
    policy = policy_of({name: quasi(FLAT) for name in quasi_names} | {name: {"role": "sensitive"} for name in kept})
    rows = [tuple(f"{name}-{i}" for name in names) for i in (0, 1, 1)]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in names))
    hierarchies = collect_hierarchies(policy, frame, None)
    found = rows_of(encode(frame, policy, hierarchies, blocks=True))
    assert sorted((*[r[f"q{i}"] for i in range(9)], r["r0"], r["r1"], r["r2"]) for r in found) == [
        (*[i] * 9, f"code0-{i}", f"w0-{i}", f"r0-{i}") for i in (0, 1, 1)
    ]
    assert len({r["record_id"] for r in found}) == 3


# ------------------------------------------------------------------------------------------ missing and unknown


def test_missing_and_unknown_values_under_every_null_policy(spark):
    names = ["own-value", "wildcard", "forbid", "suppress"]
    rows = [
        ("a", "a", "a", "a"),
        (None, None, None, None),
        ("?", "?", "?", "?"),
        (None, "c", None, "f"),
        ("f", None, "?", None),
    ]
    frame = spark.createDataFrame(rows, "p string, q string, r string, s string")
    raw, resolved, policies = [], [], []
    for turn in range(4):
        of = names[turn:] + names[:turn]
        unknown = "suppress" if turn % 2 else "error"
        policy = policy_of(
            {
                column: quasi({"tree": TREE}, nulls=nulls, unknown=unknown)
                for column, nulls in zip("pqrs", of, strict=True)
            }
        )
        hierarchies = collect_hierarchies(policy, frame, None)
        encoded = encode(frame, policy, hierarchies, blocks=False)
        raw.append(encoded)
        resolved.append(resolve(encoded, hierarchies, policy.quasi_identifiers, dictionary=False))
        policies.append((of, hierarchies))
    # Depth-first leaves a, b, c, f; then the null leaf where null is a value; the code after them is ⊥ at every level.
    code = {"a": 0, "b": 1, "c": 2, "f": 3}
    everything = together([rows.frame() for rows in (*raw, *resolved)])
    for found, after, (of, hierarchies) in zip(everything[:4], everything[4:], policies, strict=True):
        plain = [tuple(-2 if v is None else code.get(v, -1) for v in row) for row in rows]
        assert sorted(tuple(r[f"q{i}"] for i in range(4)) for r in found) == sorted(plain)
        wanted = []
        for row in rows:
            codes = []
            for value, nulls in zip(row, of, strict=True):
                n_leaves = 4 + (nulls == "own-value")
                codes.append(4 if value is None else code.get(value, n_leaves))
            wanted.append(tuple(codes))
        assert sorted(tuple(r[f"q{i}"] for i in range(4)) for r in after) == sorted(wanted)
        for hierarchy, nulls in zip(hierarchies.values(), of, strict=True):
            assert hierarchy.n_leaves == 4 + (nulls == "own-value")
            suppressed = hierarchy.ancestor[hierarchy.n_leaves]
            assert set(suppressed.tolist()) == {hierarchy.root}


def test_leaves_from_the_data_are_limited_without_naming_a_value(spark, monkeypatch):
    monkeypatch.setattr(coverage, "MAX_LEAVES", 3)
    policy = policy_of({"x": quasi(FLAT), "y": quasi(FLAT)})
    frame = spark.createDataFrame([(f"planted-{i}", "same") for i in range(5)], "x string, y string")
    with pytest.raises(HierarchyError, match=r"^columns\.x\.hierarchy: .* more than 3 distinct") as caught:
        collect_hierarchies(policy, frame, None)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("most", [16, 15, 5])
def test_leaves_do_not_depend_on_who_reads(spark, tmp_path, monkeypatch, most):
    """Tasks collect them from files, partitions included, in one scan; what no row holds is no leaf.

    Of a table of no more rows than leaves are allowed, all that tasks find comes to the driver as it is.
    """
    monkeypatch.setattr(coverage, "MAX_LEAVES", most)
    names = ["txt", "day", "n", "yes", "ward", "year"]
    policy = policy_of({name: quasi(FLAT, nulls="suppress") for name in names}, table={"path": str(tmp_path / "t")})
    for number in range(4):
        directory = tmp_path / "t" / f"ward={['a%2Fb', 'c', '__HIVE_DEFAULT_PARTITION__', 'd'][number]}" / "year=2020"
        directory.mkdir(parents=True)
        held = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 0], pa.int32()), [f"x{number}", "planted", "ü"])
        days = pa.array([dt.date(2000 + number, 1, 1), None, dt.date(1999, 12, 31), None])
        numbers, flags = pa.array([number, 1, None, -1], pa.int64()), pa.array([True, None, False, True])
        content = pa.table({"txt": held, "day": days, "n": numbers, "yes": flags})
        pq.write_table(content, directory / "p.parquet", store_schema=False)
    frame = read(spark, policy.table, key="table")
    by_tasks = collect_hierarchies(policy, frame, None, given=False)
    by_spark = collect_hierarchies(policy, frame, None)
    monkeypatch.setattr(coverage, "MAX_LEAVES", 4)
    with pytest.raises(HierarchyError, match=r"more than 4 distinct"):
        collect_hierarchies(policy, frame, None, given=False)
    found = {name: list(hierarchy.code_of) for name, hierarchy in by_tasks.items()}
    assert found == {name: list(hierarchy.code_of) for name, hierarchy in by_spark.items()}
    assert found["txt"] == ["x0", "x1", "x2", "x3", "ü"]
    assert found["ward"] == ["a/b", "c", "d"]
    assert found["year"] == ["2020"]
    assert "planted" not in found["txt"]


def test_columns_of_one_table_are_scanned_once(spark, tmp_path, monkeypatch):
    names = [f"c{i}" for i in range(5)]
    policy = policy_of({name: quasi(FLAT) for name in names}, table={"path": str(tmp_path)})
    pq.write_table(pa.table({name: [f"{name}-{i}" for i in range(3)] for name in names}), tmp_path / "p.parquet")
    frame = read(spark, policy.table, key="table")
    scans = []
    real = coverage.scan
    monkeypatch.setattr(coverage, "scan", lambda *given: scans.append(real(*given)) or scans[-1])
    assert [h.n_leaves for h in collect_hierarchies(policy, frame, None, given=False).values()] == [3] * 5
    assert len(scans) == 1
    assert scans[0].steps, "tasks read the files themselves"


def test_leaves_come_from_table_and_dictionary_of_leaf_level_only(spark):
    policy = policy_of(
        {"x": quasi(FLAT), "y": quasi({"intervals": {"widths": [10]}})},
        dictionary={"kind": "table", "path": "in/o", "columns": {"x": "xx", "y": {"column": "yy", "level": 1}}},
    )
    frame = spark.createDataFrame([("b", 3), (None, 25)], "x string, y int")
    dictionary = spark.createDataFrame([("a", "0..9"), ("b", "nonsense")], "xx string, yy string")
    hierarchies = collect_hierarchies(policy, frame, [(policy.dictionary, dictionary)])
    assert [list(h.code_of) for h in hierarchies.values()] == [["a", "b"], ["3", "25"]]


# ------------------------------------------------------------------------------------------ identity


def test_nested_rows_that_differ_in_little_have_other_contents(spark):
    """Else the engine's order would say which of two different rows is the first."""
    policy = policy_of({"x": quasi(FLAT), "y": {"role": "sensitive"}})
    frame = spark.createDataFrame([("a",)] * 5, "x string").limit(1).selectExpr(
        "x",
        "explode(array("
        "named_struct('t', timestamp'2020-01-01 00:00:00.000001', 'm', map('k', cast(null as int))), "
        "named_struct('t', timestamp'2020-01-01 00:00:00.000002', 'm', map('k', cast(null as int))), "
        "named_struct('t', timestamp'2020-01-01 00:00:00.000002', 'm', cast(map() as map<string, int>)), "
        "named_struct('t', timestamp'2020-01-01 00:00:00.000002', 'm', cast(map() as map<string, int>)))) as y",
    )  # fmt: skip
    hierarchies = collect_hierarchies(policy, frame, None)
    rows = encode(frame, policy, hierarchies, blocks=False).frame().select("record_id").toArrow().column(0).to_pylist()
    assert sorted(row.rpartition("-")[2] for row in rows) == ["1", "1", "1", "2"]
    assert len({row.rpartition("-")[0] for row in rows}) == 3


def test_derived_ids_are_unique_and_do_not_depend_on_the_layout(spark):
    policy = policy_of({"x": quasi(FLAT), "y": {"role": "sensitive"}, "z": {"role": "sensitive"}})
    rows = [("a", "b", ["p, q"]), ("a", "b", ["p, q"]), ("a", "b", ["p, q"]), ("a", "b", ["p", "q"]), ("ab", "", None)]
    rows += [
        ("a", None, None),
        ("a", "", None),
        (None, "a", None),
        (None, "a", None),
        ("a1:-", "-", []),
        ("a", "1:-", []),
    ]
    frames = layouts(spark, rows, "x string, y string, z array<string>")
    hierarchies = collect_hierarchies(policy, frames[0], None)
    variants = together([encode(frame, policy, hierarchies, blocks=True).frame() for frame in frames])

    def content(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["record_id"], row["q0"], repr(row["r0"]), repr(row["r1"]), row["block"]

    wanted = sorted(map(content, variants[0]))
    assert [sorted(map(content, variant)) for variant in variants[1:]] == [wanted, wanted]
    assert len({row["record_id"] for row in variants[0]}) == len(rows)
    assert len({row["block"] for row in variants[0]}) == len(rows)
    prefixes = {row["record_id"].rpartition("-")[0] for row in variants[0]}
    assert len(prefixes) == 8  # 11 rows, of which one stands three times and one twice
    assert sorted(row["record_id"].rpartition("-")[2] for row in variants[0]) == ["1"] * 8 + ["2", "2", "3"]


def test_blocks_are_a_function_of_the_given_id_alone(spark):
    policy = policy_of({"id": {"role": "identifier"}, "x": quasi(FLAT)}, table={"path": "in/table", "record_id": "id"})
    one = spark.createDataFrame([("i-1", "a"), ("i-2", "b"), ("ñ", None)], "id string, x string")
    other = spark.createDataFrame([("i-2", None), ("ñ", "a"), ("i-1", "b")], "id string, x string").repartition(4)
    hierarchies = collect_hierarchies(policy, one, None)
    found = together([encode(frame, policy, hierarchies, blocks=True).frame() for frame in (one, other)])
    blocks = [{row["record_id"]: row["block"] for row in rows} for rows in found]
    assert blocks[0] == blocks[1] == {i: hashlib.sha256(i.encode()).digest()[:16] for i in ("i-1", "i-2", "ñ")}
    assert by("record_id", found[0])["ñ"]["q0"] == schemas.NULL


@pytest.mark.parametrize("identity", [None, "id"])
def test_an_empty_table_stays_empty(spark, identity):
    policy = policy_of(
        {"id": {"role": "identifier"}, "x": quasi({"tree": TREE}), "y": {"role": "sensitive"}},
        table={"path": "in/table", "record_id": identity},
    )
    frame = spark.createDataFrame([], "id long, x string, y double")
    hierarchies = collect_hierarchies(policy, frame, None)
    encoded = encode(frame, policy, hierarchies, blocks=True)
    found = resolve(encoded, hierarchies, policy.quasi_identifiers, dictionary=False).frame().toArrow()
    assert found.num_rows == 0
    assert found.column_names == ["record_id", "block", "r0", "q0"]


# ------------------------------------------------------------------------------------------ refusals


def test_all_column_faults_are_named_at_once(spark):
    policy = policy_of(
        {
            "age": quasi(FLAT),
            "when": quasi(FLAT),
            "gone": {"role": "sensitive"},
            "w": {"role": "weight"},
            "lookup": {"role": "sensitive"},
            "lost": {"role": "identifier"},
        },
        risk={"sensitivity": {"form": "record", "record": "w"}},
    )
    schema = "age array<int>, when timestamp, Gone string, w boolean, lookup map<string,int>, lost map<string,int>"
    frame = spark.createDataFrame([], schema)
    with pytest.raises(SchemaError) as caught:
        check_columns(frame, policy)
    faults = str(caught.value).split(" | ")
    assert len(faults) == 6
    assert "columns.gone: the table has no such column (did you mean 'Gone'?); it has age, when, Gone" in faults[0]
    assert "the table's column 'Gone' has no role (did you mean 'gone'?)" in faults[1]
    assert faults[2].startswith("columns.age: a quasi-identifier must hold")
    assert faults[2].endswith("not array<int>.")
    assert faults[3].endswith("not timestamp; set columns.when.read: {cast: date} to take their days.")
    assert faults[4].startswith("columns.lookup: a released column must hold texts, numbers,")
    assert faults[4].endswith("not map<string,int>.")
    assert faults[5] == "columns.w: a weight must be a number, not boolean."


def test_a_csv_release_takes_no_nested_column(spark, tmp_path):
    output = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault"), "format": "csv"}
    columns = {"x": quasi(FLAT), "y": {"role": "sensitive"}, "z": {"role": "sensitive"}}
    frame = spark.createDataFrame([], "x string, y array<int>, z date")
    check_columns(frame, policy_of(columns))
    with pytest.raises(SchemaError, match=r"^columns\.y: .*csv.*not array<int>\.$"):
        check_columns(frame, policy_of(columns, output=output))


def test_what_cannot_be_read_is_named(spark, tmp_path):
    (tmp_path / "planted.csv").write_text("a,b\nsecret,2\n")
    (tmp_path / "empty").mkdir()
    unknown = (
        ("this format needs --engine spark", "there is nothing there", "this format needs --engine spark")
        if is_embedded(spark)
        else ("Spark says FAILED_READ_FILE", "Spark says UNABLE_TO_INFER_SCHEMA", "Spark says DATA_SOURCE_NOT_FOUND.")
    )
    cases = [
        (Table(path=str(tmp_path / "nope"), format="csv"), "cannot be read as csv: there is nothing there."),
        (Table(path=str(tmp_path / "planted.csv")), "file planted.csv cannot be read as parquet: it is damaged"),
        (Table(path=str(tmp_path / "planted.csv"), format="orc"), f"cannot be read as orc: {unknown[0]}"),
        (Table(path=str(tmp_path / "empty")), f"cannot be read as parquet: {unknown[1]}."),
        (Table(path="x", format="nonsense"), f"cannot be read as nonsense: {unknown[2]}"),
        (Table(catalog="no_such"), "cannot be read: Spark says TABLE_OR_VIEW_NOT_FOUND."),
    ]
    for given, message in cases:
        with pytest.raises(SchemaError) as caught:
            read(spark, given, key="dictionary")
        where = f"dictionary.path: '{given.path}'" if given.path else f"dictionary.catalog: '{given.catalog}'"
        where += ": " if message.startswith("file") else " "
        assert str(caught.value).startswith(where + message)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_credentials_in_a_path_are_not_repeated(spark):
    path = "s3a://AKIA:hunter2@bucket/in/t.csv?token=hunter2"
    given = Table(path=path, format="json")
    with pytest.raises(SchemaError, match=r"^table\.path: 's3a://bucket/in/t\.csv' cannot be read") as caught:
        read(spark, given, key="table")
    with pytest.raises(InputError, match=r"table\.path") as by_tasks:
        read(spark, Table(path=path, format="csv"), key="table")
    assert "hunter2" not in str(by_tasks.value)
    assert "hunter2" not in str(caught.value)
    assert ("--engine spark" if is_embedded(spark) else "no file system 's3a://'") in str(caught.value)


def test_reading_takes_formats_options_and_catalog_tables(spark, tmp_path):
    (tmp_path / "t.csv").write_text("a;b c\n1;x\n2;\n")
    given = Table(path=str(tmp_path / "t.csv"), format="csv", options={"sep": ";", "header": True})
    frame = read(spark, given, key="table")
    assert rows_of(frame) == [{"a": "1", "b c": "x"}, {"a": "2", "b c": None}]
    frame.createOrReplaceTempView("a_view")
    try:
        assert read(spark, Table(catalog="a_view"), key="table").columns == ["a", "b c"]
    finally:
        spark.catalog.dropTempView("a_view")


LINES = {
    "many fields": b";" * 25_000,
    "as many fields as there can be": b";" * (2**20 - 2),
    "more fields than there can be": b";" * (2**20 + 7),
    "few fields": b"70",
    "a long value": b"x" * 300_000 + b";7",
    "a longer line than there can be": b"x" * 3_000_000 + b";7",
    "an open quote": b'"7;x',
    "a quote inside": b'7"7;x',
    "no text": b"\xff\xfe\x00;x",
    "an empty line": b"",
    "the header again": b"a;b",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("last", [False, True])
def test_a_line_read_privately_is_one_row_or_none_and_leaves_the_others_alone(spark, tmp_path, line, last):
    others = [b"%d;x" % i for i in range(40)]
    lines = [b"a;b", *others]
    lines.insert(len(lines) if last else 20, line)
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines) + b"\n")
    given = Table(path=str(tmp_path / "t.csv"), format="csv", options={"sep": ";", "header": True})
    frame = read(spark, given, key="table", private=True)
    found = [row["a"] for row in rows_of(frame)]
    expected = [str(i) for i in range(40)]
    assert [a for a in found if a in expected] == expected
    assert len(found) <= 41
    assert frame.count() == len(found)
    assert frame.columns == ["a", "b"]


def test_a_table_of_the_catalog_that_is_parsed_from_texts_is_not_read_privately(spark, tmp_path):
    """Its options, such as multiLine, are those of the catalog, where no rule of the policy sees them."""
    rows = spark.createDataFrame([("1", "x")], "a string, b string")
    for name, form in (("parsed", "csv"), ("typed", "parquet")):
        rows.write.format(form).option("path", str(tmp_path / name)).saveAsTable(f"{name}_rows")
    rows.createOrReplaceTempView("view_of_rows")
    try:
        for name in ("typed_rows", "view_of_rows"):
            assert rows_of(read(spark, Table(catalog=name), key="table", private=True)) == [{"a": "1", "b": "x"}]
        assert read(spark, Table(catalog="parsed_rows"), key="table").columns == ["a", "b"]
        with pytest.raises(SchemaError, match=r"^table\.catalog: 'parsed_rows' is a table of the format csv, which"):
            read(spark, Table(catalog="parsed_rows"), key="table", private=True)
    finally:
        spark.catalog.dropTempView("view_of_rows")
        for name in ("parsed_rows", "typed_rows"):
            spark.sql(f"drop table {name}")


# ------------------------------------------------------------------------------------------ dictionary


def dictionary_policy(tmp_path: Any, columns: dict[str, Any], **quasi_more: Any) -> Any:
    return policy_of(
        {
            "born": quasi({"dates": ["day", "month", "year"]}, **quasi_more),
            "place": quasi({"tree": TREE}, **quasi_more),
            "sex": quasi({"flat": {"values": ["f", "m"]}}, **quasi_more),
        },
        dictionary={"kind": "table", "path": "in/other", "columns": columns},
    )


def labels_of(hierarchy: Any, code: int) -> str | None:
    return "outside" if code == hierarchy.n_nodes else hierarchy.labels[code]


def test_a_dictionary_may_be_renamed_coarser_and_mapped(spark, tmp_path):
    mapping = tmp_path / "places.csv"
    mapping.write_text("\ufeffN;north\nwest;deep\nnowhere;*\nfar;f\n", encoding="utf-8")
    policy = dictionary_policy(
        tmp_path,
        {"born": {"column": "age", "level": 2, "age_in": 2026}, "place": {"column": "area", "mapping": str(mapping)}},
    )
    born = [(dt.date(2000, 5, 1), "a", "f"), (dt.date(2000, 5, 2), "c", "m"), (dt.date(1990, 1, 1), "f", "m")]
    frame = spark.createDataFrame(born, "born date, place string, sex string")
    rows = [(26, "N"), (36, "west"), (25, "nowhere"), (None, None), (26, "a"), (36, "far")]
    dictionary = spark.createDataFrame(rows, "age int, area string")
    hierarchies = collect_hierarchies(policy, frame, [(policy.dictionary, dictionary)])
    coded = encode_dictionary(dictionary, policy.dictionary, hierarchies)
    assert coded.schema.names == coded.frame().columns == ["t0", "t1"]
    found = rows_of(resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True))
    shown = {(labels_of(hierarchies["born"], r["t0"]), labels_of(hierarchies["place"], r["t1"])) for r in found}
    # 25 is the age of nobody in the table, so its year is no node; 'a' is a leaf but not in the mapping.
    assert shown == {
        ("2000", "north"),
        ("1990", "deep"),
        ("outside", "*"),
        ("*", "*"),
        ("2000", "outside"),
        ("1990", "f"),
    }


@pytest.mark.parametrize("nulls", ["own-value", "wildcard", "forbid", "suppress"])
def test_nulls_of_a_dictionary_under_every_null_policy(spark, tmp_path, nulls):
    policy = dictionary_policy(
        tmp_path, {"born": {"column": "year", "level": 2}, "place": "place", "sex": "sex"}, nulls=nulls
    )
    frame = spark.createDataFrame([(dt.date(2000, 5, 1), "a", "f")], "born date, place string, sex string")
    rows = [(None, None, None), (2000, "a", "*"), (1999, "north", "f"), (None, "*", "x")]
    dictionary = spark.createDataFrame(rows, "year int, place string, sex string")
    hierarchies = collect_hierarchies(policy, frame, [(policy.dictionary, dictionary)])
    coded = encode_dictionary(dictionary, policy.dictionary, hierarchies)
    clean = resolve(coded, hierarchies, policy.quasi_identifiers, dictionary=True)
    found = together([coded.frame(), clean.frame()])
    assert sum(r[f"t{i}"] == schemas.NULL for r in found[0] for i in range(3)) == 4
    shown = sorted(tuple(str(labels_of(h, r[f"t{i}"])) for i, h in enumerate(hierarchies.values())) for r in found[1])
    missing = "None" if nulls == "own-value" else "*"
    # '*' is how a suppressed value is written; 'north' is a node, but not at the level the dictionary was said to hold.
    assert shown == sorted(
        [
            (missing, missing, missing),
            ("2000", "a", "*"),
            ("outside", "outside", "f"),
            (missing, "*", "outside"),
        ]
    )


def test_what_is_wrong_with_a_dictionary_is_named(spark, tmp_path):
    frame = spark.createDataFrame([(dt.date(2000, 5, 1), "a", "f")], "born date, place string, sex string")
    dictionary = spark.createDataFrame([], "age int, area string")
    files = {"twice": "x;a\nx;b\n", "ragged": "x;a\ny\n", "unknown": "x;nort\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin").write_bytes(b"\xe9;a\n")
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"place": "Area"}, SchemaError, r"no column 'Area' \(did you mean 'area'\?\); it has age, area"),
        ({"place": {"column": "area", "level": 9}}, HierarchyError, r"place\.level: must be at most 3.* Got 9"),
        ({"place": {"column": "area", "level": 1, "age_in": 2000}}, HierarchyError, r"age_in: .* must be years"),
        (
            {"place": {"column": "area", "mapping": str(tmp_path / "none")}},
            HierarchyError,
            r"mapping: .*/none' cannot be read \(No such file or directory\)",
        ),
        (
            {"place": {"column": "area", "mapping": str(tmp_path / "latin")}},
            HierarchyError,
            r"cannot be read \(it is not UTF-8 text\)",
        ),
        (
            {"place": {"column": "area", "mapping": str(tmp_path / "twice")}},
            HierarchyError,
            r"maps a dictionary value twice",
        ),
        ({"place": {"column": "area", "mapping": str(tmp_path / "ragged")}}, HierarchyError, r"line 2 must be"),
        ({"place": {"column": "area", "mapping": str(tmp_path / "unknown")}}, HierarchyError, r"did you mean 'north'"),
    ]
    for columns, error, message in cases:
        policy = dictionary_policy(tmp_path, columns)
        hierarchies = collect_hierarchies(policy, frame, None)

        def use(policy: Any = policy, hierarchies: Any = hierarchies) -> None:
            check_dictionary(dictionary, policy.dictionary)
            encode_dictionary(dictionary, policy.dictionary, hierarchies)

        with pytest.raises(error, match=message):
            use()


# ------------------------------------------------------------------------------------------ malformed lines

LINES = 'a,b,c,d\n1,2,3,x\n1,2,3,y\n1,2\n\n   \n1\n1,2,3,z,9\n,,,\n"1,2,3,q\n1,zz,3,w\n1,2,3,"u"v"\n'
OBJECTS = (
    '{"a":1,"b":2,"c":{"x":1}}\n{"a":1,"b":"zz","c":{"x":1}}\n{"a":1,"b"\n\n{"a":1,"b":3,"c":{"x":"u"}}\n[1]\n'
    '{"a":1} zz\n{"a":4,"b":5,"c":null}\n'
)


def every_subset(frame: Any) -> dict[tuple[int, ...], Any]:
    """Return the rows of each subset of columns; an error in place of rows that cannot be read."""
    found: dict[tuple[int, ...], Any] = {}
    for size in range(len(frame.columns) + 1):
        for chosen in itertools.combinations(range(len(frame.columns)), size):
            try:
                rows = frame.select(*(frame.columns[i] for i in chosen)).collect() if chosen else frame.count()
            except (PySparkException, Py4JJavaError, SchemaError):
                rows = "error"
            found[chosen] = rows if isinstance(rows, str | int) else [tuple(row) for row in rows]
    return found


def assert_same_rows(frame: Any) -> Any:
    found = every_subset(frame)
    whole = found[tuple(range(len(frame.columns)))]
    for chosen, rows in found.items():
        if whole == "error":
            assert rows == "error", chosen
        else:
            expected = [tuple(row[i] for i in chosen) for row in whole] if chosen else len(whole)
            assert rows == expected, chosen
    return whole


@pytest.mark.parametrize(
    ("mode", "rows"),
    [("PERMISSIVE", 9), ("permissive", 9), ("DROPMALFORMED", 4), ("dropmalformed", 4), ("FAILFAST", 0)],
)
def test_read_csv_in_each_mode_returns_same_rows_for_each_subset_of_columns(spark, tmp_path, mode, rows):
    (tmp_path / "t.csv").write_text(LINES)
    table = Table(path=str(tmp_path / "t.csv"), format="csv", options={"header": True, "MODE": mode})
    found = assert_same_rows(read(spark, table, key="table"))
    assert found == "error" if mode == "FAILFAST" else len(found) == rows


@pytest.mark.parametrize(("mode", "rows"), [("PERMISSIVE", 9), ("DROPMALFORMED", 4), ("FAILFAST", 0)])
@pytest.mark.parametrize("opened", ["catalog", "given"])
@pytest.mark.on_spark("the rows are those of Spark's own parser")
def test_typed_csv_of_catalog_or_caller_returns_same_rows_for_each_subset_of_columns(
    spark, tmp_path, opened, mode, rows
):
    (tmp_path / "t.csv").write_text(LINES)
    parsed = spark.read.schema("a int, b int, c int, d string").options(header=True, mode=mode).csv(str(tmp_path))
    if opened == "given":
        with held(parsed, "test", encrypt=False) as (_, frame):
            found = assert_same_rows(frame)
    else:
        parsed.createOrReplaceTempView("lines_to_parse")
        try:
            found = assert_same_rows(read(spark, Table(catalog="lines_to_parse"), key="dictionary"))
        finally:
            spark.catalog.dropTempView("lines_to_parse")
    assert found == "error" if mode == "FAILFAST" else len(found) == rows


@pytest.mark.parametrize(("mode", "rows"), [("PERMISSIVE", 7), ("DROPMALFORMED", 3), ("FAILFAST", 0)])
@pytest.mark.on_spark("the rows are those of Spark's own parser")
def test_typed_json_of_catalog_returns_same_rows_for_each_subset_of_columns(spark, tmp_path, mode, rows):
    (tmp_path / "t.json").write_text(OBJECTS)
    parsed = spark.read.schema("a int, b int, c struct<x: int>").options(mode=mode).json(str(tmp_path / "t.json"))
    parsed.createOrReplaceTempView("objects_to_parse")
    try:
        found = assert_same_rows(read(spark, Table(catalog="objects_to_parse"), key="table"))
    finally:
        spark.catalog.dropTempView("objects_to_parse")
    assert found == "error" if mode == "FAILFAST" else len(found) == rows


@pytest.mark.parametrize("values", [["u", "v"], [7, 8]])
def test_read_of_a_column_that_spark_uses_itself_names_the_column(spark, tmp_path, values):
    """Spark would fail on texts, and put numbers of rows in the place of numbers."""
    pq.write_table(pa.table({"_tmp_metadata_row_index": values, "b": [1, 2]}), tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("row_numbers")
    try:
        for table in (Table(path=str(tmp_path / "t.parquet")), Table(catalog="row_numbers")):
            with pytest.raises(SchemaError, match="has the column '_tmp_metadata_row_index', a name that Spark keeps"):
                read(spark, table, key="table")
    finally:
        spark.catalog.dropTempView("row_numbers")


def test_parquet_of_caller_is_read_by_column(spark, tmp_path):
    """Columns nobody asks for are not read: of a wide table this is most of its bytes."""
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "t.parquet")
    given = spark.read.parquet(str(tmp_path))
    with held(given, "test", encrypt=False) as (_, frame):
        assert frame is given


@pytest.mark.on_spark("the rows are those of Spark's own parser; tests/engine/test_kept_rows.py has the other engine")
def test_held_frame_of_another_session_is_computed_once_and_still_names_its_files(spark, tmp_path):
    (tmp_path / "t.csv").write_text(LINES)
    usual = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        given = spark.read.options(header=True, mode="DROPMALFORMED").csv(str(tmp_path))
        with held(given, "test", encrypt=False) as (_, frame):
            assert len(assert_same_rows(frame)) == 5
            assert input_files(frame) == given.inputFiles() != []
    finally:
        spark.conf.set("spark.sql.session.timeZone", usual)
