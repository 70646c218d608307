"""One number is one value, whatever the type that a table, a dictionary or a linkage table holds it in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from naive_records import policy_of, quasi
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.value_codes import as_text_column, ids_are_numbers, labels_of
from privrisk_spark.planning.readings import readings_of
from privrisk_spark.tables import coverage
from privrisk_spark.tables.encode import encode, encode_dictionary
from privrisk_spark.tables.links import OpenLinks, collect_links
from privrisk_spark.tables.opening import collect_hierarchies
from privrisk_spark.tables.tidying import collect_values_read, tidied

FLAT = {"flat": True}
NUMBERS = (10, 34, -5, 0)
FORMS: dict[str, tuple[T.DataType, list[Any]]] = {
    "int": (T.IntegerType(), [10, 34, -5, 0]),
    "long": (T.LongType(), [10, 34, -5, 0]),
    "double": (T.DoubleType(), [10.0, 34.0, -5.0, -0.0]),
    "float": (T.FloatType(), [10.0, 34.0, -5.0, 0.0]),
    "decimal": (T.DecimalType(6, 2), [Decimal("10.00"), Decimal("34.00"), Decimal("-5.00"), Decimal("0.00")]),
    "text": (T.StringType(), ["10.0", "34.0", "-5.0", "0.0"]),
    "exponent": (T.StringType(), ["1e1", "3.4E1", "-5", "-0.0"]),
}
HIERARCHIES = {
    "flat": FLAT,
    "mask": {"mask": {"steps": 1}},
    "listed": {"flat": {"values": ["10", "34", "-5", "0"]}},
    "written with decimals": {"flat": {"values": ["10.0", "34.0", "-5.0", "0.0"]}},
    "tree": {"tree": {"*": {"more": ["10", "34"], "less": ["-5", "0"]}}},
    "widths": {"intervals": {"widths": [10]}},
    "domain": {"intervals": {"widths": [10], "domain": [-10, 40]}},
    "cuts": {"intervals": {"cuts": [[0, 20]], "domain": [-10, 40]}},
    "order": {"order": {"values": ["-5", "0", "10", "34"], "fanouts": [2]}},
    "file": {"file": "tree.csv"},
    "tree_file": {"tree_file": "tree.yaml"},
    "halves": {"intervals": {"widths": [10], "domain": [-10, 40], "unit": 0.5}},
}


def frame_of(spark: Any, form: str, forms: Mapping[str, tuple[T.DataType, list[Any]]] = FORMS) -> Any:
    kind, values = forms[form]
    schema = T.StructType([T.StructField("n", T.IntegerType()), T.StructField("x", kind)])
    return spark.createDataFrame(list(enumerate(values)), schema).coalesce(1)


def codes_of(rows: Any) -> list[int]:
    table = rows.frame().toArrow()
    code, number = ("q0", "record_id") if "q0" in table.column_names else ("t0", "id")
    return [of for _, of in sorted(zip(table.column(number).to_pylist(), table.column(code).to_pylist(), strict=True))]


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
def test_encode_one_number_of_any_type_gives_one_code(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hierarchy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tree.csv").write_text("10;more;*\n34;more;*\n-5;less;*\n0;less;*\n")
    Path("tree.yaml").write_text("'*': {more: [10, 34], less: [-5, 0]}\n")
    pairs = [(a, b) for a, b in itertools.product(FORMS, repeat=2) if {a, b} & {"int", "double", "decimal", "long"}]
    pairs = pairs if hierarchy == "flat" else pairs[::5]
    for table, other in [*pairs, *[("text", "exponent")] * ("intervals" in HIERARCHIES[hierarchy])]:
        policy = policy_of(
            {"n": {"role": "identifier"}, "x": quasi(HIERARCHIES[hierarchy])},
            table={"path": "in/table", "record_id": "n"},
            dictionary={"kind": "table", "path": "in/other", "columns": {"x": "x"}},
        )
        of_table, of_other = frame_of(spark, table), frame_of(spark, other)
        known = policy.dictionary
        hierarchies = collect_hierarchies(policy, of_table, [(known, of_other)])
        found = codes_of(encode(of_table, policy, hierarchies, blocks=False))
        assert min(found) >= 0, (table, other)
        assert len(set(found)) == len(NUMBERS), (table, other)
        assert codes_of(encode_dictionary(of_other, known, hierarchies, identity="n")) == found, (table, other)
        assert hierarchies["x"].n_leaves in (4, 51, 101), (table, other)


def test_encode_codes_of_two_text_columns_stay_different(spark: Any) -> None:
    policy = policy_of({"x": quasi(FLAT)}, dictionary={"kind": "table", "path": "in/other", "columns": {"x": "x"}})
    table = spark.createDataFrame([("010",), ("10",), ("1.10",), ("1.1",)], "x string")
    other = spark.createDataFrame([("10.0",)], "x string")
    hierarchies = collect_hierarchies(policy, table, [(policy.dictionary, other)])
    assert set(hierarchies["x"].code_of) == {"010", "10", "1.10", "1.1", "10.0"}
    numbers = spark.createDataFrame([(10,)], "x int")
    hierarchies = collect_hierarchies(policy, table, [(policy.dictionary, numbers)])
    assert set(hierarchies["x"].code_of) == {"010", "10", "1.1"}, "a leading zero makes a code of a number"


TRUTHS: dict[str, tuple[T.DataType, list[Any]]] = {
    "boolean": (T.BooleanType(), [True, False]),
    "python": (T.StringType(), ["True", "False"]),
    "capitals": (T.StringType(), ["TRUE", "FALSE"]),
}


@pytest.mark.parametrize(
    "hierarchy", [FLAT, {"flat": {"values": ["True", "FALSE"]}}, {"tree": {"*": ["true", "false"]}}]
)
def test_encode_true_and_false_in_any_letters_give_one_code(spark: Any, hierarchy: dict[str, Any]) -> None:
    for table, other in [("boolean", "boolean"), ("boolean", "python"), ("capitals", "boolean")]:
        policy = policy_of(
            {"n": {"role": "identifier"}, "x": quasi(hierarchy)},
            table={"path": "in/table", "record_id": "n"},
            dictionary={"kind": "table", "path": "in/other", "columns": {"x": "x"}},
        )
        of_table, of_other = frame_of(spark, table, TRUTHS), frame_of(spark, other, TRUTHS)
        hierarchies = collect_hierarchies(policy, of_table, [(policy.dictionary, of_other)])
        found = codes_of(encode(of_table, policy, hierarchies, blocks=False))
        assert sorted(found) == [0, 1], (table, other)
        assert codes_of(encode_dictionary(of_other, policy.dictionary, hierarchies, identity="n")) == found
        assert list(hierarchies["x"].encode([str(value) for value in TRUTHS[other][1]])) == found


@pytest.mark.parametrize("form", TRUTHS)
def test_read_null_if_and_map_of_booleans_match_any_letters(spark: Any, form: str) -> None:
    written = {"capitals": ["TRUE", "FALSE"]}.get(form, ["True", "False"])
    read = {"null_if": written[:1], "map": {written[1]: "no"}}
    policy = policy_of({"n": {"role": "insensitive", "action": "drop"}, "x": quasi(FLAT, read=read)})
    opened = tidied(frame_of(spark, form, TRUTHS), readings_of(policy))
    assert opened.rows.orderBy("n").toArrow().column("x").to_pylist() == [None, "no"]


IDS: dict[str, tuple[T.DataType, list[Any]]] = {
    name: (kind, [*values[:2], *values[3:]]) for name, (kind, values) in FORMS.items()
}


@pytest.mark.parametrize("table", ["int", "long", "double", "decimal"])
@pytest.mark.parametrize("links", IDS)
def test_collect_links_texts_of_one_number_name_one_record(spark: Any, tmp_path: Path, table: str, links: str) -> None:
    linkage = {
        "path": "in/links",
        "record_id": "x",
        "probability": "n",
        "columns": {"job": {"hierarchy": FLAT, "column": "job"}},
    }
    policy = policy_of(
        {"x": {"role": "identifier"}, "age": quasi(FLAT)}, table={"path": "in/t", "record_id": "x"}, linkage=linkage
    )
    of_table = frame_of(spark, table, IDS).withColumn("age", F.lit("30"))
    of_links = frame_of(spark, links, IDS).select("x", F.lit(0.5).alias("n"), F.lit("clerk").alias("job"))
    encoded = encode(of_table, policy, collect_hierarchies(policy, of_table, None), blocks=False)
    numbers = ids_are_numbers((of_table, "x"))
    opened = OpenLinks(policy.linkage, of_links, None)
    found = collect_links(Scratch(spark, tmp_path), encoded, opened, numbers=numbers)
    assert sorted(found.links.toArrow().column("record_id").to_pylist()) == ["0", "10", "34"]


def test_as_text_column_of_codes_keeps_leading_zeros() -> None:
    codes = pa.chunked_array([["010", "10.0", None], ["A1", "1e1"]])
    assert as_text_column(codes, "record_id").to_pylist() == ["010", "10.0", None, "A1", "1e1"]
    assert as_text_column(codes, "record_id", numbers=True).to_pylist() == ["010", "10", None, "A1", "10"]


def test_labels_of_leaves_from_doubles_have_no_decimals(spark: Any) -> None:
    policy = policy_of({"x": quasi(FLAT)})
    table = spark.createDataFrame([(34.0,), (-0.0,), (0.0,), (0.5,), (1e7,)], "x double")
    hierarchies = collect_hierarchies(policy, table, None)
    assert list(hierarchies["x"].code_of) == ["0", "0.5", "10000000", "34"]
    lookup, _ = labels_of(hierarchies["x"])
    assert lookup.numbers


@pytest.mark.parametrize("form", FORMS)
def test_read_null_if_and_map_of_numbers_compare_numbers(spark: Any, form: str) -> None:
    texts = {"text": ["10.0", "34.0"], "exponent": ["1e1", "3.4E1"]}.get(form, ["10", "34.0"])
    policy = policy_of(
        {
            "n": {"role": "insensitive", "action": "drop"},
            "x": quasi(FLAT, read={"null_if": texts[:1], "map": {texts[1]: "many"}}),
        }
    )
    opened = tidied(frame_of(spark, form), readings_of(policy))
    found = opened.rows.orderBy("n").toArrow().column("x").to_pylist()
    assert found[:2] == [None, "many"]
    if form not in ("text", "exponent"):
        assert found[2:] == ["-5", "0"]
    (read,) = collect_values_read(opened)
    assert read.changed == {"null_if": 1, "map": 1}


@pytest.mark.parametrize(
    ("table", "other", "reason"),
    [
        ([str(n) for n in range(200)], [f"{n}.0" for n in range(200)], "Likely reason: decimals"),
        ([f"{n:05}" for n in range(200)], [str(n) for n in range(300)], "Likely reason: leading zeros"),
        ([f"{n:05}" for n in range(200)], list(range(300)), "Likely reason: leading zeros"),
        (["Ulm", "Bonn"], ["ULM ", "BONN", "KIEL"], "Likely reason: case, or blanks"),
        (["Ulm", "Bonn"], ["DE1", "DE2"], "Check that both columns mean the same"),
        (["Ulm", "Bonn"], ["Ulm", "x", "y", "z"], None),
        ([str(n) for n in range(200)], list(range(200)), None),
        (list(range(200)), [f"{n}.0" for n in range(200)], None),
        (["Ulm"], [], None),
    ],
)
def test_collect_hierarchies_of_a_dictionary_that_matches_nothing_warns(
    spark: Any, monkeypatch: pytest.MonkeyPatch, table: list[Any], other: list[Any], reason: str | None
) -> None:
    policy = policy_of({"x": quasi(FLAT)}, dictionary={"kind": "table", "path": "in/other", "columns": {"x": "y"}})
    frames = [
        spark.createDataFrame(
            [(value,) for value in of], f"{name} {'int' if of and isinstance(of[0], int) else 'string'}"
        )
        for name, of in (("x", table), ("y", other))
    ]
    logged: list[str] = []
    monkeypatch.setattr(coverage.LOGGER, "warning", lambda form, *of: logged.append(form % of))
    collect_hierarchies(policy, frames[0], [(policy.dictionary, frames[1])])
    assert len(logged) == (reason is not None)
    for warning in logged:
        assert warning.startswith("dictionary.columns.x: only 0 of the dictionary's ")
        assert str(reason) in warning
        assert not {"Ulm", "DE1", "00007"} & set(warning.split())
