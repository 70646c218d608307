"""Contracts: a rule is decided by its fact, and written down where nothing of the table is, and nothing is fetched."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.extensions.perturb.results import MaskedColumn, MaskingFacts
from privrisk_spark.extensions.perturb.stages.contracts import masked_rules
from privrisk_spark.json_values import as_json
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import InputFacts, ReleaseFacts
from privrisk_spark.stages.publishing.contracts import validate
from privrisk_spark.stages.publishing.suites import Contract, column_suite, fact_suite

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
with warnings.catch_warnings():
    # It and its marshmallow warn about their own future on import and on use.
    warnings.simplefilter("ignore")
    import great_expectations as gx
    import great_expectations.expectations as gxe
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

NAMES = ["a.b", "<script>alert(1)</script>", "`c`", "struct.field", "plain & simple"]


class Schema:
    """What validation looks at of a frame."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class Frame:
    def __init__(self, names: list[str]) -> None:
        self.schema = Schema(names)


def validated(contract: Contract, there: list[str], vault: Path, *, columns: list[str] = NAMES) -> list[bool]:
    rules = [
        FactRule("rows", "there are rows", at_least=1),
        FactRule("share of <b>", "at most half & no more", None, 0.5, "warning"),
    ]
    frame: Any = Frame(there)
    vault.mkdir(exist_ok=True)
    facts = {"rows": 3, "share of <b>": math.inf}
    checks = validate(contract, facts=facts, rules=rules, frame=frame, columns=columns, vault=vault)
    assert [(check.name, check.level) for check in checks] == [
        ("columns", "error"), ("rows", "error"), ("share of <b>", "warning"),
    ]  # fmt: skip
    return [check.passed for check in checks]


def test_columns_are_compared_by_their_whole_names(tmp_path: Path) -> None:
    """Dots, back-ticks and blanks are parts of names; only a release has an order."""
    turned = NAMES[::-1]
    assert validated("input", NAMES, tmp_path) == [True, True, False]
    assert validated("input", turned, tmp_path) == [True, True, False]
    assert validated("release", NAMES, tmp_path) == [True, True, False]
    assert validated("release", turned, tmp_path) == [False, True, False]
    for contract in ("input", "release"):
        assert validated(contract, NAMES[:-1], tmp_path)[0] is False
        assert validated(contract, [*NAMES, "one more"], tmp_path)[0] is False


@given(st.floats(), st.none() | st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False))
def test_a_rule_holds_between_its_ends_and_never_for_nan(value: float, least: float | None, most: float | None) -> None:
    holds = FactRule("f", "t", least, most).holds(value)
    too_small = least is not None and value < least
    too_large = most is not None and value > most
    assert holds == (not math.isnan(value) and not too_small and not too_large)


def test_what_is_written_is_a_suite_for_a_program_and_a_page_that_fetches_nothing(tmp_path: Path) -> None:
    validated("input", ["<i>other</i>", *NAMES[1:]], tmp_path)
    place = tmp_path / "contracts"
    names = ("input-columns", "input-facts")
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert set(written) == {"contracts/input.html", *(f"contracts/{n}{r}.json" for n in names for r in ("", "-result"))}
    columns, facts = (json.loads((place / f"{name}.json").read_text()) for name in names)
    assert [one["kwargs"]["column"] for one in facts["expectations"]] == ["rows", "share of <b>"]
    assert set(columns["expectations"][0]["kwargs"]["column_set"]) == set(NAMES)
    for suite in (columns, facts):  # Great Expectations reads it back
        again = gx.ExpectationSuite(name=suite["name"], expectations=suite["expectations"])
        assert len(again.expectations) == len(suite["expectations"])
    outcomes = [json.loads((place / f"{name}-result.json").read_text()) for name in names]
    assert [one["success"] for one in outcomes] == [False, False]
    assert [one["success"] for one in outcomes[1]["results"]] == [True, False]
    assert outcomes[1]["statistics"]["success_percent"] == 50
    page = (place / "input.html").read_text()
    assert "2 of 3 rules do not hold" in page
    assert "share of &lt;b&gt;" in page
    assert "&lt;i&gt;other&lt;/i&gt;" in page
    assert "<script" not in page
    assert not re.findall(r"(?:src|href|url)\s*[=(]", page)


def by_great_expectations(title: str, asked: list[Any], holds: list[bool], observed: list[Any]) -> dict[str, Any]:
    """The documents as Great Expectations itself writes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [
            ExpectationValidationResult(
                success=held,
                expectation_config=expectation.configuration,
                result={"observed_value": value},
                exception_info={"raised_exception": False, "exception_traceback": None, "exception_message": None},
            )
            for expectation, held, value in zip(asked, holds, observed, strict=True)
        ]
        result = ExpectationSuiteValidationResult(
            success=all(holds),
            results=results,
            suite_name=title,
            statistics={
                "evaluated_expectations": len(holds),
                "successful_expectations": sum(holds),
                "unsuccessful_expectations": len(holds) - sum(holds),
                "success_percent": 100 * sum(holds) / len(holds) if holds else None,
            },
            meta={},
        )
        suite = gx.ExpectationSuite(title, expectations=asked)
        return {"suite": as_json(suite.to_json_dict()), "result": as_json(result.to_json_dict())}


def test_documents_equal_those_of_great_expectations() -> None:
    ordered = gxe.ExpectTableColumnsToMatchOrderedList(column_list=NAMES)
    anyhow = gxe.ExpectTableColumnsToMatchSet(column_set=NAMES, exact_match=True)
    assert column_suite("release", NAMES, NAMES, True) == by_great_expectations(
        "release columns", [ordered], [True], [NAMES]
    )
    assert column_suite("input", NAMES, ["x"], False) == by_great_expectations(
        "input columns", [anyhow], [False], [["x"]]
    )
    assert fact_suite("input", [], {}) == by_great_expectations("input facts", [], [], [])
    ends: list[tuple[float | None, float | None]] = [(None, 3), (1, None), (0.5, 0.5), (0, math.inf), (2, 9)]
    rules = [FactRule(f"{NAMES[0]} {i}", f"rule & <{i}>", least, most) for i, (least, most) in enumerate(ends)]
    facts = {rule.name: value for rule, value in zip(rules, (3, 0.5, 0.5, math.nan, 2**60), strict=True)}
    asked = [
        gxe.ExpectColumnValuesToBeBetween(
            column=rule.name, min_value=rule.at_least, max_value=rule.at_most, notes=rule.text
        )
        for rule in rules
    ]
    holds = [True, False, True, False, False]
    assert fact_suite("release", rules, facts) == by_great_expectations(
        "release facts", asked, holds, [float(value) for value in facts.values()]
    )


def test_great_expectations_comes_to_the_same_outcome(tmp_path: Path) -> None:
    """On a table of the facts: what is written down as held, it finds to hold."""
    facts = {"a": 3.0, "b": 0.5, "c": 1.0, "d": 2.0}
    rules = [
        FactRule("a", "", 3, 3), FactRule("b", "", None, 0.5), FactRule("c", "", 1.5, None), FactRule("d", "", 0, 1.99),
    ]  # fmt: skip
    written = fact_suite("release", rules, facts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = (
            gx.get_context(mode="ephemeral").data_sources.add_pandas("facts").add_dataframe_asset("facts")
            .add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": pd.DataFrame([facts])})
        )  # fmt: skip
        suite = gx.ExpectationSuite(name="x", expectations=written["suite"]["expectations"])
        theirs = {r.expectation_config.kwargs["column"]: r.success for r in batch.validate(suite).results}
    ours = {r["expectation_config"]["kwargs"]["column"]: r["success"] for r in written["result"]["results"]}
    assert ours == theirs == {"a": True, "b": True, "c": False, "d": False}


def test_classes_of_values_are_held_against_what_microaggregation_proves() -> None:
    read = InputFacts(9, 0, 0, 0, {}, {}, {}, {}, "snapshot")
    found = ReleaseFacts(rows=9, classes=3, min_class_size=1, off_hierarchy={}, label_rows={}, min_telling_size=3)
    none = MaskingFacts(9, (), (), (), ())
    asked = partial(masked_rules, read, masked=none, as_decided=True)
    assert kept_to(*asked(found, proved_k=3)) == {
        "released rows": True,
        "masked values in other rows": True,
        "smallest class with values": True,
    }
    assert kept_to(*asked(found, proved_k=4))["smallest class with values"] is False
    assert kept_to(*asked(replace(found, rows=8), proved_k=None))["released rows"] is False
    nothing = replace(found, min_telling_size=None)
    assert kept_to(*asked(nothing, proved_k=4))["smallest class with values"], "no row has a value"


def test_masked_rules_refuse_columns_without_a_changed_value_and_other_values_in_the_files() -> None:
    read = InputFacts(100, 0, 0, 0, {}, {}, {}, {}, "snapshot")
    found = ReleaseFacts(rows=100, classes=3, min_class_size=1, off_hierarchy={}, label_rows={})
    columns = [("same", 0, 0), ("few", 50, 2), ("some", 0, 5), ("nothing", 100, 0)]
    masked = tuple(MaskedColumn(name, "rounding", missing, missing, changed) for name, missing, changed in columns)
    facts = MaskingFacts(100, masked, (), (), ())
    assert facts.changed == {"same": 0.0, "few": 0.04, "some": 0.05}
    rules, values = masked_rules(read, found, facts, as_decided=False, proved_k=None)
    assert kept_to(rules, values) == {
        "released rows": True,
        "masked values in other rows": False,
        "changed values of same": False,
        "share of changed values of same": False,
        "changed values of few": True,
        "share of changed values of few": False,
        "changed values of some": True,
        "share of changed values of some": True,
    }
    warnings = {rule.name for rule in rules if rule.level == "warning"}
    assert warnings == {f"share of changed values of {name}" for name in ("same", "few", "some")}


def kept_to(rules: list[FactRule], values: dict[str, float | int]) -> dict[str, bool]:
    return {rule.name: rule.holds(float(values[rule.name])) for rule in rules}
