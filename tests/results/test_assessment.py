from __future__ import annotations

from dataclasses import replace

import pytest

from privrisk_spark.extensions.attack.results.attacks import AttackResult
from privrisk_spark.json_values import as_json
from privrisk_spark.results.assessment import Assessment, Measured, Subject, judged


def subject(name: str, *values: tuple[str, float | None, dict[str, object]]) -> Subject:
    measured = [Measured(name, value, {"subject": "table", "set": of, **more}) for of, value, more in values]
    return Subject("table", "the table", tuple(measured))


NOBODY: dict[str, object] = {"none": "no record is unique in the table"}
TOO_MANY: dict[str, object] = {"reason": "too many distinct records"}


@pytest.mark.parametrize(
    ("values", "passed", "observed"),
    [
        ([("a", 0.1, {}), ("b", 0.3, {})], False, 0.3),
        ([("a", 0.1, {}), ("b", 0.1, {})], True, 0.1),
        # Of nobody anything is true.
        ([("a", None, NOBODY)], True, None),
        ([("a", None, NOBODY), ("b", 0.1, {})], True, 0.1),
        ([("a", None, NOBODY), ("b", 0.3, {})], False, 0.3),
        # What is not known of a set is not met by it, however well the others do.
        ([("a", 0.1, {}), ("b", None, TOO_MANY)], False, None),
        ([("a", None, NOBODY), ("b", None, TOO_MANY)], False, None),
        ([], False, None),
        # One of several values of a set is enough to know it.
        ([("a", 0.1, {}), ("a", None, TOO_MANY)], True, 0.1),
        # What is sure of those that the value leaves out.
        ([("a", 0.1, {"at_most": 0.5})], False, 0.5),
        ([("a", None, {"at_most": 0.2})], True, 0.2),
    ],
)
def test_thresholds_are_met_by_every_set(
    values: list[tuple[str, float | None, dict[str, object]]], passed: bool, observed: float | None
) -> None:
    (verdict,) = judged({"population_unique_share": 0.2}, subject("population_unique_share", *values))
    assert (verdict.passed, verdict.observed) == (passed, observed)
    if not passed and values:
        assert verdict.parameters["set"] == values[-1][0]


def test_a_notebook_shows_the_worst_set_of_each_measure() -> None:
    measured = [
        Measured(name, value, {"subject": "table", "set": of})
        for of, k, mean in (("mild", 9, 0.1), ("sharp", 1, 0.7))
        for name, value in (("records", 20), ("k", k), ("prosecutor_mean", mean))
    ]
    whole = Assessment("t", "r", "2020-01-01", "0", (Subject("table", "the table", tuple(measured)),), (), "")
    shown = whole._repr_html_()
    assert "table, set sharp" in shown
    assert "0.7" in shown
    assert "mild" not in shown


def test_results_without_a_threshold_have_neither_passed_nor_failed() -> None:
    """``assert found.passed`` must fail then: nothing was asked."""
    verdicts = judged({"k": 2}, subject("k", ("a", 1.0, {})))
    found = Assessment("t", "r", "2020-01-01", "0", (), (), "")
    assert found.passed is None
    assert as_json(found)["passed"] is None
    assert replace(found, verdicts=tuple(verdicts)).passed is False
    attacked = AttackResult("t", "r", "2020-01-01", "0", "a release", 1, 1, {}, {}, (), None)
    assert attacked.passed is None
    assert replace(attacked, at_most=0.1).passed is False, "nothing is known to be met that was not tried"
