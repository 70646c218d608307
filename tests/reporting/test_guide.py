"""The privacy officer's guide: its figures are those of the kernels, and refusals lead to it."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
from policies import DP, DROP, RISK, changed
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.errors import BudgetError, ConfigError, EngineError, Fault, InputError
from privrisk_spark.kernels.dp.crowd import certificate, keep_numerator, least_crowd, survival_rows
from privrisk_spark.ledger.accounting import composed
from privrisk_spark.ledger.losses import ReleaseEvents, Sampling
from privrisk_spark.policy.reading import parse
from privrisk_spark.reporting import guide


def test_the_table_of_crowds_is_that_of_the_kernels() -> None:
    rows = re.findall(
        r"^\| (\S+) \| 10⁻(\S) \| (\S+) \| (\d+) \| (\d+) \| (\d+) \|$", guide.text("crowd"), re.MULTILINE
    )
    assert len(rows) == 4
    for epsilon, power, kept, k, half, most in rows:
        fraction = Fraction(1) if kept == "0.632" else Fraction(1, 2)
        numerator = keep_numerator(epsilon, fraction)
        assert f"{numerator / 2**32:.3f}" == kept
        found = least_crowd(Fraction(1, 10 ** "⁰¹²³⁴⁵⁶⁷⁸⁹".index(power)), numerator, epsilon)
        assert found == int(k)
        assert [survival_rows(found, numerator, p) for p in (0.5, 0.99)] == [int(half), int(most)]


def test_what_epsilon_means_is_computed() -> None:
    said = " ".join(guide.text("epsilon").split())
    factors = re.search(r"e\^0.1 = (\S+) times, e\^0.5 = (\S+), e\^1 = (\S+), e\^2 = (\S+), e\^5 = (\S+)\.", said)
    assert factors is not None
    for epsilon, factor in zip((0.1, 0.5, 1, 2, 5), factors.groups(), strict=True):
        digits = len(factor.partition(".")[2])
        assert float(factor) == round(math.exp(epsilon), digits)
    guesses = re.search(r"e\^ε\): (\S+), (\S+), (\S+), (\S+), (\S+)\.", said)
    assert guesses is not None
    for epsilon, guess in zip((0.1, 0.5, 1, 2, 5), guesses.groups(), strict=True):
        assert float(guess) == round(math.exp(epsilon) / (1 + math.exp(epsilon)), 2)
    assert f"{1 - math.exp(-1):.1%}".replace("%", " %") in guide.text("not-promised")


def test_the_tighter_figure_of_the_budget_is_that_of_the_accounting() -> None:
    numerator = keep_numerator("0.7", Fraction(1, 2))
    found = least_crowd(Fraction(1, 10**9), numerator, "0.7")
    claimed = certificate(found, numerator, "0.7").delta
    one = ReleaseEvents(
        Sampling(numerator, found, Fraction("0.7"), claimed), None, Fraction(0), Fraction("0.7"), claimed
    )
    said = " ".join(guide.text("budget").split())
    assert "twelve releases of ε = 0.7 sum to 8.4 and come to about 0.9" in said
    assert round(composed([one] * 12, 1e-6), 1) == 0.9


REFUSED: list[tuple[tuple[str, Any], str]] = [
    (("guarantee.epsilon.keep", -1), "epsilon"),
    (("guarantee.delta", 1e-3), "delta"),
    (("guarantee.public_rows", 0), "delta"),
    (("guarantee.schemes", [[0, 1], [0, 1]]), "schemes"),
    (("guarantee.key", 3), "keys"),
    (("guarantee.mode", "magic"), "promise"),
    (("ledger", DROP), "budget"),
    (("columns.note", {"role": "sensitive"}), "columns"),
    (("columns.age.nulls", "forbid"), "columns"),
    (("checks", {"max_risk": 0.1}), "columns"),
    (("risk", {"model": "III"}), "columns"),
]


@pytest.mark.parametrize(("change", "section"), REFUSED)
def test_a_refusal_leads_to_its_section(change: tuple[str, Any], section: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(changed(DP, change))
    assert guide.section_of(caught.value) == section
    assert guide.told(caught.value).endswith(f"\n  why, and what to do: privrisk guide {section}")


def test_every_section_that_is_named_is_there() -> None:
    named = {section for _, section in guide._BY_KEY} | {section for _, section in REFUSED}
    assert named <= set(guide.sections())
    assert list(guide.sections()) == re.findall(r"^## (\S+)$", guide.text(), re.MULTILINE)
    for part in guide.sections().values():
        assert part.strip() in guide.text()


def test_other_errors_are_told_as_they_are() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(changed(RISK, ("decision.utility_at_least", "much")))
    assert guide.section_of(caught.value) is None
    assert guide.told(EngineError("The disk is full.")) == "privrisk: The disk is full."
    assert guide.section_of(BudgetError("no")) == "budget"
    assert guide.section_of(ConfigError([Fault("table", "x"), Fault("guarantee.deltas", "x")])) == "promise"
    assert guide.section_of(ConfigError([Fault("guarantees", "x")])) is None


def test_the_command_prints_a_section_or_says_which_there_are() -> None:
    whole = CliRunner().invoke(app, ["guide"])
    assert whole.exit_code == 0
    assert whole.stdout == guide.text()
    one = CliRunner().invoke(app, ["guide", "delta"])
    assert one.stdout == guide.text("delta")
    wrong = CliRunner().invoke(app, ["guide", "detla"])
    assert wrong.exit_code == 2
    assert "(did you mean 'delta'?). Got detla." in wrong.stderr
    with pytest.raises(InputError):
        guide.text("")
