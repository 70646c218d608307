"""Values are tidied the same whoever reads them, one row for one row, and numbers recoded as a person would."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import policy_of, quasi

from privrisk_spark.errors import SchemaError
from privrisk_spark.planning.readings import Declared
from privrisk_spark.policy.dictionaries import DictionaryTable
from privrisk_spark.policy.policy import Policy, Table
from privrisk_spark.policy.values import BLANKS, Reading
from privrisk_spark.tables.opening import (
    check_columns,
    check_dictionary,
    collect_hierarchies,
    open_dictionary,
    open_table,
)
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan
from privrisk_spark.tables.tidying import collect_values_read, recoded, tidied

FLAT = {"flat": True}
TEXTS = [
    " m ", "M", "\u00a0m\t", "f", "F ", "?", " ? ", "", "   ", None, "straße ", "É", "a  b", "\ufeffm", "2", "x\ny\n"
]  # fmt: skip


def values(frame: Any, name: str = "x") -> list[Any]:
    return frame.select(name).toArrow().column(0).to_pylist()


def opened(frame: Any, lenient: bool = False, **reading: Any) -> Any:
    return tidied(frame, {"x": Declared("columns.x.read", Reading(**reading), lenient)})


def naive(text: str | None, reading: Reading) -> str | None:
    """Step by step, as the policy's page says."""
    if text is None:
        return None
    if reading.trim:
        text = text.strip(BLANKS)
    if reading.case is not None:
        text = text.upper() if reading.case == "upper" else text.lower()
    if text in reading.null_if:
        return None
    return reading.map.get(text, text)


@pytest.mark.parametrize(
    "given",
    [
        {"trim": True},
        {"case": "upper"},
        {"case": "lower"},
        {"null_if": ["", "?"]},
        {"map": {"m": "M", "M": "m"}},
        {"trim": True, "case": "upper", "null_if": ["", "?"], "map": {"M": "male", "F": "female", "MALE": "wrong"}},
    ],
)
def test_texts_are_tidied_step_by_step_in_the_order_told(spark, given):
    reading = Reading.model_validate(given)
    frame = spark.createDataFrame([(text,) for text in TEXTS], "x string")
    found = opened(frame, **given)
    assert values(found.rows) == [naive(text, reading) for text in TEXTS]
    (counted,) = collect_values_read(found)
    assert set(counted.changed) == set(given)
    if len(given) == 1:
        assert counted.changed == {next(iter(given)): sum(naive(text, reading) != text for text in TEXTS)}


def test_blanks_are_what_unicode_has_as_white_space():
    assert set(BLANKS) == {chr(i) for i in range(0x110000) if chr(i).isspace()} | {"\ufeff"}


def test_each_step_counts_what_it_changed_itself(spark):
    frame = spark.createDataFrame([(" m",), ("M",), ("?",), ("f ",), (None,)], "x string")
    found = opened(frame, trim=True, case="upper", null_if=["?"], map={"M": "male"})
    (counted,) = collect_values_read(found)
    assert counted.changed == {"trim": 2, "case": 2, "null_if": 1, "map": 2}


def test_instants_become_their_day_in_utc_before_the_epoch_too(spark):
    zone = dt.timezone(dt.timedelta(hours=5))
    instants = [
        dt.datetime(2020, 1, 1, 3, 0, tzinfo=zone),  # the day before, in UTC
        dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
        dt.datetime(1950, 6, 1, 0, 0, tzinfo=dt.UTC),
        None,
    ]
    frame = spark.createDataFrame(pa.table({"x": pa.array(instants, pa.timestamp("us", "UTC"))}))
    days = [dt.date(2019, 12, 31), dt.date(1969, 12, 31), dt.date(1950, 6, 1), None]
    assert values(opened(frame, cast="date").rows) == days
    plain = spark.createDataFrame(pa.table({"x": pa.array([dt.datetime(2020, 1, 1, 23, 30)], pa.timestamp("us"))}))
    assert values(opened(plain, cast="date").rows) == [dt.date(2020, 1, 1)]


def test_only_what_looks_like_a_date_is_one(spark):
    texts = [
        "2020-02-29",
        "2020-02-30",
        "2020-01-01T23:59:00+05:00",
        "2020-01-01 07:30:00.25 +0100",
        "2020-01-01 x",
        "2020-01-01T",
        "2020-01-01\n",
        "0000-01-01",
        "1950",
        "20-01-01",
        "2020-1-1",
        "٢٠٢٠-٠١-٠١",
        "",
    ]
    frame = spark.createDataFrame([(text,) for text in texts], "x string")
    day = dt.date(2020, 1, 1)
    found = opened(frame, lenient=True, cast="date")
    assert values(found.rows) == [dt.date(2020, 2, 29), None, day, day, *[None] * 9]
    assert collect_values_read(found)[0].uncast == 10
    with pytest.raises(SchemaError, match=r"^columns\.x\.read\.cast: 10 values are no dates .*null_if.*unknown: supp"):
        collect_values_read(opened(frame, cast="date"))
    named = opened(frame, null_if=[texts[1], *texts[4:]], cast="date")
    assert collect_values_read(named)[0].uncast == 0


@pytest.mark.parametrize(
    ("cast", "kind", "given", "found"),
    [
        ("integer", "string", ["7", "+7", "-0", "7.0", "1e3", " 7", "9" * 19, "7d", "٧"], [7, 7, 0, *[None] * 6]),
        ("integer", "string", ["9223372036854775807", "9223372036854775808", "0" * 30 + "7"], [2**63 - 1, None, 7]),
        ("integer", "double", [34.0, 34.5, math.nan, 1e300, None], [34, None, None, None, None]),
        ("integer", "double", [2.0**63, -(2.0**63), 2.0**62], [None, -(2**63), 2**62]),
        ("integer", "float", [2.0**63, -(2.0**63), 2.0**62], [None, -(2**63), 2**62]),
        ("number", "string", ["1e400", "-1e400", "1e308", "1e-400"], [None, None, 1e308, 0.0]),
        ("number", "string", ["7", "7.5", ".5", "1e3", "7d", "NaN", "Infinity", "x"], [7, 7.5, 0.5, 1000, *[None] * 4]),
        ("number", "int", [1, None], [1.0, None]),
    ],
)
def test_only_what_looks_like_a_number_is_one(spark, cast, kind, given, found):
    frame = spark.createDataFrame([(value,) for value in given], f"x {kind}")
    assert values(opened(frame, lenient=True, cast=cast).rows) == found


@pytest.mark.parametrize(
    ("marks", "given", "found"),
    [
        (
            {"decimal": ",", "thousands": "."},
            [
                "1.234",
                "1.234,56",
                "1234,5",
                "-12",
                "1.23",
                "1.2345",
                "1234.567",
                "1,5.000",
                "12,",
                ",5",
                "1.234.567",
                "x",
            ],
            [1234.0, 1234.56, 1234.5, -12.0, None, None, None, None, None, None, 1234567.0, None],
        ),
        ({"decimal": ","}, ["1,5", "1.5", "1.234,5"], [1.5, None, None]),
        ({"decimal": ".", "thousands": "'"}, ["1'234.5", "1234.5", "1'23"], [1234.5, 1234.5, None]),
        ({"decimal": ",", "thousands": "\u202f"}, ["1\u202f234,5", "1 234,5"], [1234.5, None]),
    ],
)
def test_tidied_with_marks_of_numbers_reads_numbers_of_that_form_only(spark, marks, given, found):
    frame = spark.createDataFrame([(value,) for value in given], "x string")
    assert values(opened(frame, lenient=True, number=marks).rows) == found
    with pytest.raises(SchemaError, match=rf"^columns\.x\.read\.cast: {found.count(None)} values are no numbers"):
        collect_values_read(opened(frame, number=marks))
    whole = [None if value is None or value % 1 else int(value) for value in found]
    assert values(opened(frame, lenient=True, number=marks, cast="integer").rows) == whole


def test_tidied_null_if_of_many_numbers_finds_zero_of_either_sign(spark):
    """From some number of values on, the engines look numbers up by their bits."""
    frame = spark.createDataFrame([(0.0,), (-0.0,), (7.0,), (1.5,)], "x double")
    for more in ([], [str(n) for n in range(20, 40)]):
        assert values(opened(frame, null_if=["0", "1.5", *more]).rows) == [None, None, 7.0, None]


def test_numbers_can_mean_a_missing_value_and_keep_their_type(spark):
    frame = spark.createDataFrame([(-9,), (3,), (None,)], "x int")
    found = opened(frame, null_if=["-9"])
    assert (found.rows.schema["x"].dataType.simpleString(), values(found.rows)) == ("int", [None, 3, None])
    named = opened(frame, map={"3": "three"})
    assert values(named.rows) == ["-9", "three", None]


@pytest.mark.parametrize(
    ("kind", "given", "fault"),
    [
        ("int", {"trim": True}, r"^columns\.x\.read\.trim: the column holds int, not texts"),
        ("int", {"case": "upper"}, r"^columns\.x\.read\.case: "),
        ("boolean", {"cast": "date"}, r"only texts, dates or timestamps can be read as a date, not boolean"),
        ("timestamp", {"cast": "integer"}, r"only texts or numbers can be read as a integer, not timestamp"),
        ("array<int>", {"null_if": ["1"]}, r"values of the type array<int> have no text"),
    ],
)
def test_a_type_that_cannot_be_read_so_is_named(spark, kind, given, fault):
    with pytest.raises(SchemaError, match=fault):
        opened(spark.createDataFrame([], f"x {kind}"), **given)


def test_tasks_and_spark_read_the_same_of_the_same_files(spark, tmp_path):
    """Tasks open plain Parquet files themselves, where values are as they were written."""
    rows = pa.table({"x": list(TEXTS), "n": range(len(TEXTS))})
    pq.write_table(rows, tmp_path / "rows.parquet")
    table = Table(path=str(tmp_path / "rows.parquet"))
    policy = policy_of(
        {"x": quasi(FLAT, read={"trim": True, "case": "upper", "null_if": ["", "?"]}), "n": {"role": "sensitive"}},
        table={"path": table.path},
    )
    whole = open_table(spark, policy)
    wanted = [Wanted("a", "x", "text"), Wanted("b", "n", "number")]
    by_policy, by_spark = (scan(given, whole.rows, wanted).frame() for given in (table, None))
    assert by_policy.toArrow().to_pylist() == by_spark.toArrow().to_pylist()
    assert values(by_policy, "a") == [naive(text, policy.columns["x"].read) for text in TEXTS]
    # A column that is read as it is still comes from the tasks themselves.
    assert scan(table, whole.rows, [Wanted("b", "n", "number")]).steps
    leaves = collect_hierarchies(policy, whole.rows)["x"].labels
    assert {"M", "F", "STRASSE"} <= set(leaves)
    assert not {" m ", "f", "?"} & set(leaves)


def test_a_dictionary_is_tidied_like_a_table(spark, tmp_path):
    pq.write_table(pa.table({"who": ["m ", "F"], "c": [1, 2]}), tmp_path / "known.parquet")
    dictionary = DictionaryTable.model_validate(
        {"path": str(tmp_path / "known.parquet"), "columns": {"x": {"column": "who", "read": {"trim": True}}}}
    )
    found = open_dictionary(spark, dictionary, key="dictionary")
    assert values(found.rows, "who") == ["m", "F"]
    assert values(found.as_read, "who") == ["m ", "F"]
    assert collect_values_read(found)[0].key == "dictionary.columns.x.read"
    assert collect_values_read(found)[0].changed == {"trim": 1}


def test_a_table_nobody_tidies_is_the_frame_itself(spark):
    frame = spark.createDataFrame([("a",)], "x string")
    assert tidied(frame, {}).rows is frame
    assert recoded(frame, policy_of({"x": quasi(FLAT)})) is frame


# ------------------------------------------------------------------------------------------ hints


def test_a_real_other_column_is_no_misspelling(spark):
    """Both have a role; whoever asks for ``cost2`` did not mean ``cost``."""
    policy = policy_of({"cost": quasi(FLAT), "cost2": {"role": "sensitive"}})
    with pytest.raises(SchemaError) as caught:
        check_columns(spark.createDataFrame([], "cost string, costs string"), policy)
    faults = str(caught.value).split(" | ")
    assert "(did you mean 'costs'?)" in faults[0]
    assert "(did you mean 'cost2'?)" in faults[1]
    with pytest.raises(SchemaError) as caught:
        check_columns(spark.createDataFrame([], "cost string, cost2 string, cost3 string"), policy)
    assert "did you mean" not in str(caught.value)
    assert "cost3: {role: insensitive, action: drop} to leave it out" in str(caught.value)
    dictionary = DictionaryTable.model_validate({"path": "in/d", "columns": {"a": "city", "b": "city2"}})
    with pytest.raises(SchemaError, match=re.escape("no column 'city2'; it has city, name")):
        check_dictionary(spark.createDataFrame([], "city string, name string"), dictionary)


def test_a_timestamp_is_told_how_it_becomes_a_quasi_identifier(spark):
    with pytest.raises(SchemaError, match=r"not timestamp; set columns\.x\.read: \{cast: date\} to take their days\."):
        check_columns(spark.createDataFrame([], "x timestamp"), policy_of({"x": quasi(FLAT)}))


# ------------------------------------------------------------------------------------------ recoding


def recoding(kind: str, numbers: list[Any], spark: Any, **release: Any) -> Any:
    policy: Policy = policy_of({"q": quasi(FLAT), "x": {"role": "sensitive", "release": release}})
    return recoded(spark.createDataFrame([(value, "q") for value in numbers], f"x {kind}, q string"), policy)


def test_numbers_are_rounded_to_the_nearest_multiple(spark):
    doubles = [0.04, 0.05, 0.15, 0.25, -0.05, 0.3, 1e300, 123.456, 1.5e-7, -2e-300, 123456789.25, 1e17]
    assert values(recoding("double", [*doubles, math.nan, None], spark, round=0.1)) == [
        0.0, 0.1, 0.2, 0.3, -0.1, 0.3, 1e300, 123.5, 0.0, 0.0, 123456789.3, 1e17, None, None,
    ]  # fmt: skip
    narrow = [0.04, 0.05, 0.15, 0.35, -0.35, 0.45, 16777216.0, math.nan]
    rounded = values(recoding("float", narrow, spark, round=0.1))
    assert [None if one is None else round(one, 6) for one in rounded] == [
        0.0, 0.1, 0.2, 0.4, -0.4, 0.5, 16777216.0, None,
    ]  # fmt: skip
    assert values(recoding("double", [1.5e-7, -2.6e-7, 5e-9], spark, round="0.0000001")) == [2e-7, -3e-7, 0.0]
    assert values(recoding("double", [12345678901234567.0, 5e17], spark, round=100)) == [12345678901234600.0, 5e17]
    integers = [*range(-160, 161, 7), 150, 50, -50, 2**31 - 1]
    found = values(recoding("int", integers, spark, round=100))
    assert found == [int((Decimal(n) / 100).quantize(0, ROUND_HALF_UP) * 100) for n in integers]
    wide = [Decimal("0.00000000015"), Decimal("-99999999999999999.999999999999999999"), Decimal(10) ** 18]
    assert values(recoding("decimal(38,18)", wide, spark, round="0.0000000001")) == [
        Decimal("0.0000000002"), Decimal(-(10**17)), Decimal(10) ** 18
    ]  # fmt: skip
    exact = [Decimal("2.50"), Decimal("-2.50"), Decimal("9999.99"), Decimal("2.49")]
    assert values(recoding("decimal(6,2)", exact, spark, round=5)) == [Decimal(n) for n in (5, -5, 10000, 0)]


@pytest.mark.on_embedded("Spark without Connect sends no plans")
def test_recoded_with_round_makes_a_small_plan(spark):
    """Nested formulas would take 650 KB for each column, and seconds."""
    frame = recoding("double", [0.15], spark, bottom_code=0, top_code=900, round=0.1)
    assert frame._plan.to_proto(spark.client).ByteSize() < 50_000
    assert frame.columns == ["x", "q"]


def test_numbers_are_coded_at_bottom_and_top_and_keep_their_type(spark):
    found = recoding("int", [-5, 0, 7, 90, 200, None], spark, bottom_code=0, top_code=90)
    assert (found.schema["x"].dataType.simpleString(), values(found)) == ("int", [0, 0, 7, 90, 90, None])
    assert values(recoding("double", [1.5, math.inf, math.nan], spark, top_code=10)) == [1.5, 10.0, None]
    assert values(recoding("tinyint", [1, 127], spark, top_code=1000)) == [1, 127]
    assert values(recoding("double", [1.0, 99.0, 950.0], spark, top_code=900, round=100)) == [0.0, 100.0, 900.0]


def test_numbers_become_the_interval_they_are_in(spark):
    numbers = [-1.0, 0.0, 99.9, 100.0, 1e9, None, math.nan]
    labels = ["<0", "[0,100)", "[0,100)", ">=100", ">=100", None, None]
    assert values(recoding("double", numbers, spark, intervals=[0, 100])) == labels
    assert values(recoding("int", [4, 5], spark, intervals=[5])) == ["<5", ">=5"]


def test_numbers_whose_multiple_their_type_does_not_hold_stay_as_they_are(spark, capfd):
    """And nobody is told of them: an engine's error would quote the number."""
    long = Decimal("98765432109876543210987654321098765432")
    for kind, value, step in (("decimal(38,0)", long, 10), ("bigint", 2**63 - 1, 10), ("bigint", -(2**63), 10)):
        assert values(recoding(kind, [value, None], spark, round=step)) == [value, None]
    told = capfd.readouterr()
    assert "98765432109" not in told.out + told.err


def test_what_cannot_be_recoded_is_named(spark):
    for kind, release, fault in (
        ("string", {"round": 5}, r"only numbers can be recoded.*holds string; set columns\.x\.read: \{cast: number\}"),
        ("date", {"round": 5}, r"only numbers can be recoded.*holds date\."),
        ("int", {"round": 0.5}, r"columns\.x\.release\.round: must have at most 0 decimals.* Got 0\.5"),
        ("decimal(6,2)", {"top_code": 0.125}, r"release\.top_code: must have at most 2 decimals"),
        (
            "decimal(4,2)",
            {"bottom_code": 100},
            r"release\.bottom_code: must be a number the column's type decimal\(4,2\)",
        ),
        ("tinyint", {"bottom_code": 300}, r"release\.bottom_code: must be a number the column's type tinyint holds"),
        ("smallint", {"top_code": -40000}, r"release\.top_code: must be a number the column's type smallint holds"),
        ("double", {"top_code": 95, "round": 10}, r"release\.top_code: must be a multiple of .*release\.round"),
    ):
        with pytest.raises(SchemaError, match=fault):
            recoding(kind, [], spark, **release)
