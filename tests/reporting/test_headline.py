"""The first screen, by kind of release: who is named, and what an edition may not tell is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.headline import compared, headline
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import AttributeLevels, Guarantee, Histogram, Summary

LEVELS = (
    AttributeLevels("age", 2, ("as it is", "decade", "suppressed"), (10, 20, 70)),
    AttributeLevels("sex", 1, ("as it is", "suppressed"), (90, 10)),
)
NOTHING = Histogram((0.0, 1.0), (1,))
DECISIONS = DecisionFacts(
    100, 100, 3, 0, Summary(0.5, 1.0, 0.1), Summary(0.02, 0.2, 0.0), Summary(6.0, 8.0, 2.0), LEVELS, NOTHING, NOTHING
)
RELEASED = ReleaseFacts(rows=97, classes=12, min_class_size=1, off_hierarchy={}, label_rows={}, unique_by_cells=4)
QUASI: dict[str, Any] = {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["a", "b"]}}}


def policy(**changed: Any) -> Policy:
    given: dict[str, Any] = {
        "version": 1,
        "run": {"name": "x"},
        "table": {"path": "t.csv", "format": "csv", "record_id": "id"},
        "columns": {
            "id": {"role": "identifier"},
            "age": QUASI,
            "sex": QUASI,
            "illness": {"role": "sensitive"},
            "cost": {"role": "sensitive", "release": {"round": 10}},
        },
        "decision": {"problem": "min-risk", "utility_at_least": 1},
        "output": {"path": "out", "vault": "vault"},
    }
    return Policy.model_validate({**given, **changed})


def screen(kind: Any, asked: Policy, *, measured: DecisionFacts | None = DECISIONS, **parameters: object) -> list[str]:
    guarantee = Guarantee(kind, "x", "proved", parameters)
    found = headline(asked, guarantee, RELEASED, measured=measured, levels=LEVELS, utility_max=12.0)
    return [found.released, found.safe, found.lost]


def test_every_column_is_in_one_place() -> None:
    released, safe, lost = screen("risk", policy())
    assert released.startswith("97 rows. 2 columns, ")
    assert ": age, sex." in released
    assert "Released as they are: illness." in released
    assert "Made coarser for all rows alike: cost." in released
    assert released.endswith("Left out: id.")
    assert "the original table" in safe
    assert safe.endswith("Not safe from a reader who knows values of illness, cost.")
    assert lost == (
        "Of the utility of the table, 50 % is left on average. Suppressed in most rows: age (70 %). "
        "Exact in most rows: sex (90 %). 3 records suppressed as a whole."
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("k-anonymity", "at least 7 rows look alike"),
        ("as-published", "Nothing is guaranteed."),
        ("masked", "Nothing is proved"),
    ],
)
def test_each_kind_says_to_whom_it_is_safe(kind: str, text: str) -> None:
    assert text in screen(kind, policy(), k=7)[1]


def test_an_edition_without_exact_figures_tells_none() -> None:
    """Planted: the utility of a private release in its public edition."""
    lost = screen("dp", policy(), measured=None)[2]
    assert "utility" not in lost
    assert "3 records" not in lost
    found = compared(RELEASED, rows=None, measured=None, risk_before=False, utility_max=None)
    assert all(one.before is None for one in found)
    assert [one.after for one in found] == [97, 12, 1, 4]


def test_the_risk_before_is_for_the_vault_alone() -> None:
    shown = {
        one.name: one for one in compared(RELEASED, rows=100, measured=DECISIONS, risk_before=True, utility_max=12.0)
    }
    assert (shown["mean weighted risk"].before, shown["mean weighted risk"].after) == (0.5, 0.02)
    assert (shown["mean utility of a record"].before, shown["mean utility of a record"].after) == (12.0, 6.0)
    chance = replace(DECISIONS, identified_before=DECISIONS.risk_after, identified_after=DECISIONS.risk_before)
    given = {"rows": 100, "measured": chance, "risk_before": True, "utility_max": 12.0}
    names = [one.name for one in compared(RELEASED, **given)]
    assert names[1:5:2] == ["mean probability that a record is found", "mean weighted risk"]
    names = [one.name for one in compared(RELEASED, **given, model="II")]
    assert [name for name in names if name.startswith("mean")] == [names[1], "mean utility of a record"]
    public = compared(RELEASED, rows=None, measured=DECISIONS, risk_before=False, utility_max=12.0)
    assert all(one.before is None for one in public)
    assert "of 12" in next(one.remark for one in public if one.name.startswith("mean utility"))


@pytest.mark.parametrize("model", ["I", "II", "III"])
def test_no_number_that_may_be_above_one_stands_without_its_unit(model: RiskModel) -> None:
    given: dict[str, Any] = {"rows": 100, "risk_before": True, "utility_max": 12.0, "utility_unit": "nats"}
    units = {one.name: one.remark for one in compared(RELEASED, measured=DECISIONS, model=model, **given)}
    assert units["mean utility of a record"] == "in nats"
    for name, unit in units.items():
        assert ("Φ" in unit) == ("weighted risk" in name), name
