from __future__ import annotations

import datetime as dt
import json
import pickle
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.builders import HierarchySpec, build, is_public
from privrisk_spark.hierarchies.paths import equal_labels
from privrisk_spark.hierarchies.text import Builder


class Column(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    hierarchy: HierarchySpec


def spec(**kind: Any) -> Builder:
    return Column.model_validate({"hierarchy": kind}).hierarchy


def faults(hierarchy: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Column.model_validate({"hierarchy": hierarchy})
    return {
        ".".join(str(key) for key in item["loc"]): item["msg"].removeprefix("Value error, ")
        for item in caught.value.errors()
    }


ALL_KINDS: list[dict[str, Any]] = [
    {"file": "h.csv", "separator": ","},
    {"tree": {"*": {"North": ["a", 1], "South": {"x": ["c"]}}}},
    {"tree_file": "h.yaml"},
    {"intervals": {"widths": [5, 10, 20], "bottom": 0, "top": 100}},
    {"intervals": {"widths": [0.5, 1.0], "origin": 0.25, "domain": [0.25, 3.25], "unit": 0.5}},
    {"intervals": {"cuts": [[0, 18, 40, 65], [0, 40]]}},
    {"mask": {"from": "left", "steps": 5, "character": "x", "length": 5, "domain": ["47906", "02139"]}},
    {"dates": ["day", "month", "quarter", "year", "decade"]},
    {"dates": {"steps": ["year", "decade"], "domain": ["1900", "2026"]}},
    {"order": {"values": ["none", "primary", "secondary", "higher"], "fanouts": [2, 2]}},
    {"flat": True},
    {"flat": {"values": ["yes", "no"]}},
]


# --------------------------------------------------------------------------------------- what is written


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: next(iter(kind)))
def test_a_dumped_policy_reads_back_as_itself(kind: dict[str, Any]) -> None:
    column = Column.model_validate({"hierarchy": kind})
    for document in (column.model_dump(), column.model_dump(mode="json", by_alias=True)):
        assert Column.model_validate(document) == column
    again = Column.model_validate(yaml.safe_load(yaml.safe_dump(column.model_dump(mode="json"))))
    assert again.model_dump_json() == column.model_dump_json()
    assert Column(hierarchy=column.hierarchy) == column  # an instance is accepted as it is


def test_specs_are_frozen_and_stay_equal_after_use() -> None:
    one, other = (spec(intervals={"widths": [5, 10]}) for _ in range(2))
    assert one.path("7") == ("7", "[5,10)", "[0,10)")
    assert one == other
    assert pickle.loads(pickle.dumps(one)).path("7") == one.path("7")
    with pytest.raises(ValidationError, match="frozen"):
        one.intervals = None  # type: ignore[attr-defined]


def test_schema_is_published_with_every_key_described() -> None:
    schema = Column.model_json_schema(by_alias=True)
    text = json.dumps(schema)
    for key in ("file", "tree", "tree_file", "intervals", "mask", "dates", "order", "flat"):
        assert f'"{key}"' in text
    assert "from" in schema["$defs"]["Mask"]["properties"]
    for name, definition in schema["$defs"].items():
        for key, item in definition["properties"].items():
            assert "description" in item, f"{name}.{key}"
    assert schema["$defs"]["Widths"]["properties"]["unit"]["default"] == 1
    assert schema["$defs"]["Order"]["properties"]["fanouts"]["minItems"] == 1


@pytest.mark.parametrize(
    ("hierarchy", "path", "message"),
    [
        ({"masks": {"steps": 2}}, "hierarchy", "got 'masks' (did you mean 'mask'?)"),
        (
            {"zzz": 1},
            "hierarchy",
            "one of file, tree, tree_file, intervals, mask, dates, order, flat; got 'zzz'",
        ),
        ({}, "hierarchy", "got none"),
        ("h.csv", "hierarchy", "a hierarchy must be a mapping with one of the keys file, tree"),
        ({"mask": {"steps": 2}, "flat": True}, "hierarchy", "must be of one kind; got mask, flat"),
        ({"tree": {"N": ["a"]}, "tree_file": "t"}, "hierarchy", "must be of one kind; got tree, tree_file"),
        ({"tree": None}, "hierarchy", "give exactly one of tree and tree_file"),
        ({"tree": {"N": ["a"], "S": ["a"]}}, "hierarchy.tree", "value 'a' has two parents 'N' and 'S'"),
        ({"file": ""}, "hierarchy.file", "at least 1 character"),
        ({"file": "h.csv", "separator": ";;"}, "hierarchy.separator", "match pattern"),
        ({"file": "h.csv", "seperator": ","}, "hierarchy.seperator", "not permitted"),
        ({"intervals": {}}, "hierarchy.intervals", "exactly one of widths and cuts"),
        (
            {"intervals": {"widths": [5], "cuts": [[1]]}},
            "hierarchy.intervals",
            "exactly one of widths and cuts",
        ),
        ({"intervals": {"widths": []}}, "hierarchy.intervals.widths", "at least one item"),
        ({"intervals": {"widths": [0]}}, "hierarchy.intervals.widths.0", "greater than 0"),
        ({"intervals": {"widths": [True]}}, "hierarchy.intervals.widths.0", "not true or false"),
        ({"intervals": {"widths": [float("inf")]}}, "hierarchy.intervals.widths.0", "finite"),
        (
            {"intervals": {"widths": [5, 12]}},
            "hierarchy.intervals.widths",
            "each of widths must be a larger multiple of the one before; got 12 after 5",
        ),
        ({"intervals": {"widths": [5, 5]}}, "hierarchy.intervals.widths", "got 5 after 5"),
        (
            {"intervals": {"widths": [5, 10], "bottom": 5}},
            "hierarchy.intervals.bottom",
            "bottom must be a boundary of every level; 5 is none of width 10",
        ),
        (
            {"intervals": {"widths": [5], "origin": 1, "top": 100}},
            "hierarchy.intervals.top",
            "100 is none of width 5",
        ),
        ({"intervals": {"widths": [5], "bottom": 10, "top": 10}}, "hierarchy.intervals.top", "above bottom"),
        (
            {"intervals": {"widths": [5], "domain": [9, 1]}},
            "hierarchy.intervals",
            "domain must go from low to high",
        ),
        (
            {"intervals": {"widths": [5], "domain": [0, 1], "unit": 0.3}},
            "hierarchy.intervals",
            "whole number of units",
        ),
        (
            {"intervals": {"widths": [5], "domain": [0, 2_000_000]}},
            "hierarchy.intervals",
            "domain must hold at most 2,000,000 values; 0 to 2000000 holds 2,000,001",
        ),
        ({"intervals": {"widths": [5], "unit": 0}}, "hierarchy.intervals.unit", "greater than 0"),
        ({"intervals": {"cuts": [[]]}}, "hierarchy.intervals.cuts.0", "at least one item"),
        (
            {"intervals": {"cuts": [[0, 5, 5]]}},
            "hierarchy.intervals.cuts",
            "cuts of level 1 must ascend; got 5 after 5",
        ),
        (
            {"intervals": {"cuts": [[0, 5], [0, 4]]}},
            "hierarchy.intervals.cuts",
            "cuts of level 2 must be among those of level 1; got 4",
        ),
        (
            {"intervals": {"cuts": [[0, 5], [0, 5]]}},
            "hierarchy.intervals.cuts",
            "must leave out some of level 1",
        ),
        ({"intervals": {"cuts": [[0]], "top": 5}}, "hierarchy.intervals.top", "not permitted"),
        ({"mask": {}}, "hierarchy.mask.steps", "required"),
        ({"mask": {"steps": 0}}, "hierarchy.mask.steps", "greater than or equal to 1"),
        ({"mask": {"steps": 127}}, "hierarchy.mask.steps", "less than 127"),
        ({"mask": {"steps": True}}, "hierarchy.mask.steps", "integer"),
        ({"mask": {"steps": 1, "from": "top"}}, "hierarchy.mask.from", "'right' or 'left'"),
        ({"mask": {"steps": 1, "side": "left"}}, "hierarchy.mask.side", "not permitted"),
        ({"mask": {"steps": 1, "character": "**"}}, "hierarchy.mask.character", "at most 1 character"),
        (
            {"mask": {"steps": 1, "domain": [[47906]]}},
            "hierarchy.mask.domain.0",
            "string",
        ),  # 02139 would be octal
        ({"mask": {"steps": 1, "length": 5, "domain": ["4790"]}}, "hierarchy.mask", "of 5 characters"),
        ({"mask": {"steps": 1, "domain": ["a", "a"]}}, "hierarchy.mask", "'a' is listed twice"),
        ({"dates": []}, "hierarchy.dates.steps", "at least one item"),
        ({"dates": ["week"]}, "hierarchy.dates.steps.0", "'day', 'month'"),
        (
            {"dates": ["day", "year", "month"]},
            "hierarchy.dates.steps",
            "steps must ascend along day, month, quarter, year, decade; got month after year",
        ),
        ({"dates": ["day", "day"]}, "hierarchy.dates.steps", "got day after day"),
        (
            {"dates": {"steps": ["month"], "domain": ["1990-01-01", "1991-01"]}},
            "hierarchy.dates.domain",
            "domain must hold dates of the form YYYY-MM; got '1990-01-01'",
        ),
        ({"dates": {"steps": ["year"], "domain": [2000, 1999]}}, "hierarchy.dates.domain", "first to last"),
        (
            {"dates": {"steps": ["day"], "domain": ["0001-01-01", "9999-12-31"]}},
            "hierarchy.dates.domain",
            "at most 2,000,000 values; this one holds 3,652,059",
        ),
        ({"order": {"values": ["a", "b"]}}, "hierarchy.order.fanouts", "required"),
        ({"order": {"values": ["a"], "fanouts": []}}, "hierarchy.order.fanouts", "at least one item"),
        (
            {"order": {"values": ["a"], "fanouts": [1]}},
            "hierarchy.order.fanouts.0",
            "greater than or equal to 2",
        ),
        ({"order": {"values": [], "fanouts": [2]}}, "hierarchy.order.values", "at least one item"),
        ({"order": {"values": ["a", "a"], "fanouts": [2]}}, "hierarchy.order.values", "'a' is listed twice"),
        ({"order": {"values": [None], "fanouts": [2]}}, "hierarchy.order.values.0", "write it in quotes"),
        ({"flat": False}, "hierarchy.flat", "must be true or a mapping"),
        (
            {"flat": {"values": ["a", "*"]}},
            "hierarchy.flat.values",
            "must not hold '*', the label of the root",
        ),
    ],
)
def test_a_wrong_policy_is_one_fault_at_its_key(hierarchy: Any, path: str, message: str) -> None:
    found = faults(hierarchy)
    assert list(found) == [path]
    assert message in found[path]


def test_all_faults_of_a_rule_are_reported_at_once() -> None:
    assert set(faults({"mask": {"steps": 0, "form": "left", "character": ""}})) == {
        "hierarchy.mask.steps",
        "hierarchy.mask.form",
        "hierarchy.mask.character",
    }


# -------------------------------------------------------------------------------------------- intervals


NUMBERS = st.one_of(
    st.integers(-300, 300).map(str),
    st.decimals(-300, 300, places=2).map(str),
    st.sampled_from(["-0", "-0.0", "1e2", "-2.5E-1", "+7", ".5", "5.", "0e999", "1e-40"]),
)


@settings(max_examples=200, deadline=None)
@given(
    value=NUMBERS,
    widths=st.lists(st.integers(2, 4), max_size=3),
    first=st.sampled_from(["0.25", "1", "5"]),
    origin=st.sampled_from(["0", "-3", "0.1"]),
    ends=st.tuples(st.integers(-3, 0), st.integers(1, 3)),
)
def test_widths_are_exact_arithmetic(
    value: str, widths: list[int], first: str, origin: str, ends: tuple[int, int]
) -> None:
    steps = [Fraction(first)]
    for factor in widths:
        steps.append(steps[-1] * factor)
    bottom, top = (Fraction(origin) + end * steps[-1] for end in ends)
    rule = spec(
        intervals={
            "widths": [float(step) for step in steps],
            "origin": float(origin),
            "bottom": float(bottom),
            "top": float(top),
        }
    )
    path = rule.path(value)
    assert path is not None
    assert Fraction(path[0]) == Fraction(value)
    assert len(path) == len(steps) + 1
    x = Fraction(value)
    for label, step in zip(path[1:], steps, strict=True):
        if label.startswith("<"):
            assert x < bottom == Fraction(label[1:])
        elif label.startswith(">="):
            assert x >= top == Fraction(label[2:])
        else:
            low, high = (Fraction(end) for end in label[1:-1].split(","))
            assert bottom <= low <= x < high <= top
            assert high - low == step
            assert (low - Fraction(origin)) % step == 0


def test_width_labels() -> None:
    rule = spec(intervals={"widths": [5, 10, 20], "bottom": 0, "top": 100})
    assert rule.path("39") == ("39", "[35,40)", "[30,40)", "[20,40)")
    assert rule.path("39.0") == ("39", "[35,40)", "[30,40)", "[20,40)")
    assert rule.path("20") == ("20", "[20,25)", "[20,30)", "[20,40)")  # closed on the left
    assert rule.path("-0") == ("0", "[0,5)", "[0,10)", "[0,20)")
    assert rule.path("-1") == ("-1", "<0", "<0", "<0")
    assert rule.path("100") == ("100", ">=100", ">=100", ">=100")
    open_ended = spec(intervals={"widths": [0.1, 100]})
    assert open_ended.path("0.3") == ("0.3", "[0.3,0.4)", "[0,100)")  # 0.3 / 0.1 is 2.999… in binary
    assert open_ended.path("-0.05") == ("-0.05", "[-0.1,0)", "[-100,0)")
    assert open_ended.path("1e2") == ("100", "[100,100.1)", "[100,200)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 39",
        "39 ",
        "nan",
        "inf",
        "-Infinity",
        "1_000",
        "1,5",
        "0x10",
        "٣",
        "1e9999",
        "1e99",
        "1e",
        "-",
        ".",
        "9" * 65,
    ],
)
@pytest.mark.parametrize("rule", [{"widths": [5]}, {"cuts": [[0]]}])
def test_what_is_not_a_number_is_not_understood(text: str, rule: dict[str, Any]) -> None:
    assert spec(intervals=rule).path(text) is None


def test_very_large_and_small_numbers_are_exact() -> None:
    rule = spec(intervals={"widths": [0.000001]})
    path = rule.path("123456789012345678901234567890.0000019")
    assert path is not None
    assert path[1] == "[123456789012345678901234567890.000001,123456789012345678901234567890.000002)"
    assert spec(intervals={"widths": [5]}).path("-1e-60") == ("-1.0E-60", "[-5,0)")


@settings(max_examples=100, deadline=None)
@given(value=NUMBERS, points=st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), data=st.data())
def test_cuts_nest(value: str, points: list[int], data: st.DataObject) -> None:
    finer = sorted(points)
    coarser = sorted(data.draw(st.lists(st.sampled_from(finer), min_size=1, max_size=len(finer) - 1, unique=True)))
    path = spec(intervals={"cuts": [finer, coarser]}).path(value)
    assert path is not None
    x = Fraction(value)
    for label, cuts in zip(path[1:], (finer, coarser), strict=True):
        low = max((cut for cut in cuts if cut <= x), default=None)
        high = min((cut for cut in cuts if cut > x), default=None)
        want = f"<{high}" if low is None else f">={low}" if high is None else f"[{low},{high})"
        assert label == want


def test_interval_domain() -> None:
    rule = spec(intervals={"widths": [5, 10], "domain": [0, 120]})
    assert rule.declared() == [str(age) for age in range(121)]
    assert rule.path("121") is None
    assert rule.path("39.0") == rule.path("39") == ("39", "[35,40)", "[30,40)")  # as the domain writes it
    assert rule.path("39.5") is None
    assert rule.path("039") is None
    h = build(rule, "age", values=["999"])
    assert (h.n_leaves, h.height, h.public) == (121, 3, True)
    # A unit written with a decimal declares values written with one, as a column of doubles shows them.
    halves = spec(intervals={"widths": [1], "domain": [-1, 1], "unit": 0.5})
    assert halves.declared() == ["-1.0", "-0.5", "0.0", "0.5", "1.0"]
    assert halves.path("0.0") == ("0.0", "[0,1)")
    assert halves.path("0") == halves.path("0.0")


# ------------------------------------------------------------------------------------ masks, orders, flat


def test_mask() -> None:
    right = spec(mask={"from": "right", "steps": 5})
    assert right.path("47906") == ("47906", "4790*", "479**", "47***", "4****")  # then the root, not *****
    assert right.path("479") == ("479", "47*", "4**")
    assert right.path("4") == ("4",)
    assert right.path("") is None
    assert right.path("*") is None
    assert spec(mask={"from": "left", "steps": 2, "character": "#"}).path("47906") == (
        "47906",
        "#7906",
        "##906",
    )
    assert spec(mask={"steps": 2, "length": 5}).path("4790") is None
    fixed = spec(mask={"steps": 1, "domain": ["b1", "a1", "a2"]})
    assert fixed.declared() == ("b1", "a1", "a2")
    assert fixed.path("c1") is None


@pytest.mark.parametrize("rule", [{"flat": True}, {"mask": {"steps": 2}}, {"intervals": {"widths": [5, 10]}}])
@pytest.mark.parametrize("values", [None, [], iter(())])
def test_a_column_without_values_is_refused_for_what_it_is(rule: Any, values: Any) -> None:
    """Not for values that are not understood: there are none, and any would have been."""
    with pytest.raises(HierarchyError, match=r"hierarchy of 'x': .* every one is missing, .* Declare the values"):
        build(spec(**rule), "x", values=values, null_leaf=True)


@settings(max_examples=60, deadline=None)
@given(
    values=st.sets(st.text("ab*", max_size=5), min_size=1),
    steps=st.integers(1, 6),
    side=st.sampled_from(["left", "right"]),
)
def test_masks_of_any_length_keep_apart(values: set[str], steps: int, side: str) -> None:
    rule = spec(mask={"from": side, "steps": steps})
    understood = sorted(value for value in values if value not in ("", "*"))
    if not understood:
        with pytest.raises(HierarchyError, match="no value of the column is understood"):
            build(rule, "zip", values=values)
        return
    if list(equal_labels([path for value in understood if (path := rule.rule.path(value))])):
        with pytest.raises(HierarchyError, match="two different nodes have one label"):
            build(rule, "zip", values=values)
        return
    h = build(rule, "zip", values=values)
    assert tuple(h.code_of) == h.labels[: h.n_leaves]
    assert sorted(h.code_of) == understood
    for value, code in h.code_of.items():
        assert h.depth[code] == min(steps, len(value) - 1) + 1
        for level in range(h.depth[code]):
            node = h.ancestor[code, level]
            kept = value[: len(value) - level] if side == "right" else value[level:]
            same = [
                other
                for other in understood
                if len(other) == len(value) and (other[: len(kept)] if side == "right" else other[level:]) == kept
            ]
            under = h.labels[h.first_leaf[node] : h.last_leaf[node]]
            assert set(under) == set(same) if level else under == (value,)


def test_order() -> None:
    rule = spec(order={"values": ["none", "primary", "secondary", "bachelor", "master"], "fanouts": [2, 2]})
    assert rule.path("primary") == ("primary", "none..primary", "none..bachelor")
    assert rule.path("master") == ("master", "master", "master")  # a group of one
    assert rule.path("phd") is None
    h = build(rule, "school")
    assert h.labels[: h.n_leaves] == ("none", "primary", "secondary", "bachelor", "master")
    assert h.height == 3
    assert spec(order={"values": [1, 2], "fanouts": [2]}).declared() == ("1", "2")


def test_flat() -> None:
    rule = spec(flat=True)
    assert rule.path("anything") == ("anything",)
    assert rule.path("*") is None
    h = build(rule, "a", values=["b", "a", "b", "*"], null_leaf=True)
    assert h.labels == ("a", "b", None, "*")
    assert spec(flat={"values": ["yes", "no"]}).path("maybe") is None


# -------------------------------------------------------------------------------------------------- dates


@given(day=st.dates())
def test_dates_follow_the_calendar(day: dt.date) -> None:
    path = spec(dates=["day", "month", "quarter", "year", "decade"]).path(day.isoformat())
    quarter = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3, 8: 3, 9: 3, 10: 4, 11: 4, 12: 4}[day.month]
    year = day.isoformat()[:4]
    assert path == (day.isoformat(), day.isoformat()[:7], f"{year}-Q{quarter}", year, f"{year[:3]}0s")


@pytest.mark.parametrize(
    ("steps", "value", "path"),
    [
        (["day", "month", "year"], "1990-05-17", ("1990-05-17", "1990-05", "1990")),
        (["day", "decade"], "2000-02-29", ("2000-02-29", "2000s")),
        (["day"], "2000-02-29", ("2000-02-29",)),
        (["month", "quarter", "year"], "1990-04", ("1990-04", "1990-Q2", "1990")),
        (["quarter", "decade"], "1999-Q4", ("1999-Q4", "1990s")),
        (["year", "decade"], "1990", ("1990", "1990s")),
        (["decade"], "1990s", ("1990s",)),
        (["day"], "1900-02-29", None),
        (["day"], "1990-13-01", None),
        (["day"], "0000-01-01", None),
        (["day"], "19900517", None),
        (["day"], "1990-5-17", None),
        (["day"], "1990-05-17T00:00:00", None),
        (["day"], "1990-05", None),
        (["month"], "1990-00", None),
        (["month"], "1990-05-17", None),
        (["quarter"], "1990-Q5", None),
        (["year"], "0000", None),
        (["year"], "90", None),
        (["year"], "١٩٩٠", None),
        (["decade"], "1995s", None),
    ],
)
def test_date_forms(steps: list[str], value: str, path: tuple[str, ...] | None) -> None:
    assert spec(dates=steps).path(value) == path


@pytest.mark.parametrize(
    ("steps", "first", "last", "count"),
    [
        (["day", "year"], "1999-12-30", "2000-03-01", 63),  # 2 + 31 + 29 + 1
        (["month", "year"], "1999-11", "2001-02", 16),
        (["quarter", "year"], "1999-Q3", "2001-Q1", 7),
        (["year", "decade"], "0998", "1002", 5),
        (["decade"], "0990s", "1010s", 3),
    ],
)
def test_date_domains(steps: list[str], first: str, last: str, count: int) -> None:
    rule = spec(dates={"steps": steps, "domain": [first, last]})
    declared = rule.declared()
    assert declared is not None
    assert (len(declared), declared[0], declared[-1]) == (count, first, last)
    assert list(declared) == sorted(set(declared))
    assert all(rule.path(value) is not None for value in declared)
    assert spec(dates=steps).path(declared[0]) == rule.path(declared[0])
    assert build(rule, "d").n_leaves == count
    assert spec(dates={"steps": steps, "domain": [declared[1], last]}).path(first) is None
    assert spec(dates={"steps": steps, "domain": [first, declared[-2]]}).path(last) is None


def test_yaml_dates_and_years_need_no_quotes() -> None:
    text = "hierarchy: {dates: {steps: [day, year], domain: [1900-01-01, 2026-12-31]}}"
    rule = Column.model_validate(yaml.safe_load(text)).hierarchy
    declared = rule.declared()
    assert declared is not None
    assert len(declared) == (dt.date(2026, 12, 31) - dt.date(1900, 1, 1)).days + 1


# -------------------------------------------------------------------------------------------------- build


@pytest.fixture
def arx_file(tmp_path: Path) -> str:
    path = tmp_path / "h.csv"
    path.write_text("b;N;*\na;N;*\nc;*;*\n")
    return str(path)


def test_files_and_trees_build(arx_file: str, tmp_path: Path) -> None:
    rule = spec(file=arx_file)
    assert rule.declared() == ["b", "a", "c"]
    assert rule.path("a") == ("a", "N")
    assert rule.path("z") is None
    h = build(rule, "city", values=["z"], null_leaf=True)
    assert h.labels == ("b", "a", "c", None, "N", "*")
    tree = tmp_path / "t.yaml"
    tree.write_text("N: [b, a]\n'c': c\n")
    assert spec(tree_file=str(tree)).path("a") == ("a", "N")
    inline = build(spec(tree={"N": ["b", "a"], "S": ["c"]}), "city")
    assert inline.labels == ("b", "a", "c", "N", "S", "*")


def test_a_refused_file_names_attribute_and_path(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("a;N;*\na;S;*\n")
    with pytest.raises(
        HierarchyError, match=r"hierarchy of 'city', file '.*h\.csv', line 2: value 'a' has two parents"
    ):
        build(spec(file=str(path)), "city")
    with pytest.raises(HierarchyError, match=r"hierarchy of 'city', file '.*gone\.yaml': the file cannot be read"):
        build(spec(tree_file=str(tmp_path / "gone.yaml")), "city")


def test_public_means_declared_and_reads_no_file() -> None:
    public = {json.dumps(kind): is_public(spec(**kind)) for kind in ALL_KINDS}  # h.csv and h.yaml do not exist
    from_data = [kind for kind, declared in public.items() if not declared]
    assert from_data == [
        json.dumps(kind)
        for kind in (
            {"intervals": {"widths": [5, 10, 20], "bottom": 0, "top": 100}},
            {"intervals": {"cuts": [[0, 18, 40, 65], [0, 40]]}},
            {"dates": ["day", "month", "quarter", "year", "decade"]},
            {"flat": True},
        )
    ]
    for kind in ALL_KINDS:
        if not {"file", "tree_file"} & set(kind):
            rule = spec(**kind)
            declared = rule.declared()
            assert is_public(rule) == (declared is not None)
            for value in declared or ():
                path = rule.path(value)
                assert path is not None
                assert path[0] == value


@pytest.mark.parametrize(
    ("kind", "values", "order"),
    [
        (
            {"intervals": {"widths": [5, 10]}},
            ["10", "9", "-1", "9.0", "2", "x"],
            ["-1", "2", "9", "10"],
        ),
        ({"flat": True}, ["10", "9", "b", "a"], ["10", "9", "a", "b"]),
        ({"dates": ["day", "year"]}, ["2000-01-02", "1999-12-31", "nope"], ["1999-12-31", "2000-01-02"]),
    ],
)
def test_one_set_of_values_gives_one_numbering(kind: dict[str, Any], values: list[str], order: list[str]) -> None:
    rule = spec(**kind)
    h = build(rule, "a", values=values)
    other = build(rule, "a", values=iter([*reversed(values), *values]))
    assert list(h.code_of) == order
    assert other.labels == h.labels
    assert other.parent.tolist() == h.parent.tolist()
    assert not h.public


def test_no_understood_value_is_an_error_without_values() -> None:
    for values in (["planted-canary"], [], None):
        with pytest.raises(HierarchyError, match="hierarchy of 'age': no value of the column") as caught:
            build(spec(intervals={"widths": [5]}), "age", values=values)
        assert "canary" not in str(caught.value)
        assert "a number such as 39" in str(caught.value)


def test_a_hundred_thousand_values_build_in_seconds() -> None:
    # About 1 s on a laptop; a quadratic loop would take minutes.
    start = time.perf_counter()
    h = build(spec(intervals={"widths": [5, 10, 20, 100]}), "x", values=[str(i / 10) for i in range(100_000)])
    h.ancestor, h.at_depth, h.n_under  # noqa: B018
    assert time.perf_counter() - start < 20
    assert h.n_leaves == 100_000
