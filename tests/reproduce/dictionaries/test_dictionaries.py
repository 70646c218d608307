"""Risk by dictionary and by rule, against loops over the rows; claims that can come out the other way."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproducing import reproduce

from reproduce.deciding.subject import Subject
from reproduce.dictionaries.claims import claims, risen
from reproduce.dictionaries.growth import Nested, grow
from reproduce.dictionaries.plots import plots
from reproduce.dictionaries.rules import every_rule
from reproduce.generated.clustered import keyed_uniforms

pytestmark = pytest.mark.usefixtures("no_charts")

SUBJECT = Subject.generated(5, 90, 3)
NESTED = Nested.of(SUBJECT, 5, (0.2, 0.5, 1.0))
GROWTH = grow(NESTED, NESTED, (0.3, 0.7))
RULES = every_rule(NESTED, (0.3, 0.7), 4)


def rows_of(at: int) -> list[tuple[int, ...]]:
    """Leaf codes of the rows of a dictionary."""
    order = np.argsort(keyed_uniforms(5, "order of rows", (90,)), kind="stable")
    every = np.repeat(np.arange(len(SUBJECT.counts)), SUBJECT.counts)[order]
    return [tuple(SUBJECT.vectors[i].tolist()) for i in every[: NESTED.sizes[at]]]


def node(attribute: int, code: int, level: int) -> int:
    ancestor = SUBJECT.axes[attribute].ancestor
    return int(ancestor[code, min(level, ancestor.shape[1] - 1)])


def risk(record: tuple[int, ...], levels: tuple[int, ...], people: list[tuple[int, ...]], *, multiply: bool) -> float:
    """Model I: Phi over the people consistent with what is shown."""
    shown = [node(i, code, level) for i, (code, level) in enumerate(zip(record, levels, strict=True))]
    consistent = sum(
        all(
            shown[i] in {node(i, code, at) for at in range(SUBJECT.axes[i].ancestor.shape[1])}
            for i, code in enumerate(one)
        )
        for one in people
    )
    weight = sum(float(SUBJECT.weights[i][shown[i]]) for i in range(len(shown)))
    return (math.exp(weight) if multiply else weight) / consistent


def mean_risk(at: int, levels: tuple[int, ...], *, multiply: bool) -> float:
    released, people = rows_of(0), rows_of(at)
    return sum(risk(record, levels, people, multiply=multiply) for record in released) / len(released)


def test_dictionaries_are_nested_and_hold_the_released_table() -> None:
    assert NESTED.sizes == (18, 45, 90)
    assert [counts.dictionary_rows for counts in NESTED.dictionaries] == [18, 45, 90]
    assert int(NESTED.times.sum()) == 18
    assert sorted(rows_of(0)) == sorted(
        row for row, n in zip(map(tuple, NESTED.codes.tolist()), NESTED.times.tolist(), strict=True) for _ in range(n)
    )


@pytest.mark.parametrize("form", ["linear", "multiplicative"])
def test_risk_is_that_of_a_loop_over_people(form: str) -> None:
    heights = SUBJECT.heights
    for a, k in enumerate(GROWTH.attributes.tolist()):
        levels = tuple(0 if i < k else heights[i] for i in range(3))
        for at in range(3):
            expected = mean_risk(at, levels, multiply=form == "multiplicative")
            assert getattr(GROWTH, form)[a, at] == pytest.approx(expected, rel=1e-12)


def test_every_rule_is_measured_once_in_order_of_risk() -> None:
    heights = SUBJECT.heights
    expected = []
    for levels in itertools.product(*(range(height + 1) for height in heights)):
        depth = [
            sum(
                max(int(SUBJECT.axes[i].code_depth[code]) - level, 0)
                for i, (code, level) in enumerate(zip(record, levels, strict=True))
            )
            for record in rows_of(0)
        ]
        expected.append((mean_risk(2, levels, multiply=True), sum(depth) / len(depth)))
    assert np.allclose(RULES.risk, sorted(one for one, _ in expected), rtol=1e-12)
    assert sorted(RULES.utility.tolist()) == pytest.approx(sorted(one for _, one in expected))
    for floor, least in zip(RULES.floors.tolist(), RULES.least_risk.tolist(), strict=True):
        assert least == pytest.approx(min(r for r, u in expected if u >= floor))
    for bound, most in zip(RULES.bounds.tolist(), RULES.greatest_utility.tolist(), strict=True):
        assert most == pytest.approx(max(u for r, u in expected if r <= bound * (1 + 1e-12)))


def verdicts(**changes: object) -> list[str]:
    return [one.verdict for one in claims("t", replace(GROWTH, **changes), RULES)]  # type: ignore[arg-type]


def test_claims_hold_here_and_can_fail() -> None:
    assert verdicts()[:5] == ["holds"] * 5
    assert verdicts(linear=GROWTH.linear[::-1])[0] != "holds"
    assert verdicts(linear=GROWTH.linear[:, ::-1])[1] != "holds"
    above = replace(GROWTH.curves, true=GROWTH.curves.estimated[None, :] * np.array([[1.0], [1.1], [1.2]]))
    assert verdicts(curves=above)[3].startswith("in 2 of 6")
    assert verdicts(curves=above)[4] == "does not hold"


def of_rules(**changes: object) -> list[str]:
    return [one.verdict for one in claims("t", GROWTH, replace(RULES, **changes))[5:7]]  # type: ignore[arg-type]


def test_claims_on_rules_compare_the_correlation_and_the_falls_with_what_is_printed() -> None:
    rising = np.arange(20.0)
    assert of_rules(risk=rising, utility=rising) == ["does not hold", "does not hold"]  # 1 is not 0.858, and no fall
    one_fall = np.array([*range(10), *range(8, 18)], dtype=np.float64)
    assert of_rules(risk=rising, utility=one_fall) == ["does not hold", "holds"]
    noise = np.where(np.arange(20) % 2, 3.5, -3.5)
    assert 0.83 < np.corrcoef(rising, rising + noise)[0, 1] < 0.9
    assert of_rules(risk=rising, utility=rising + noise) == ["holds", "does not hold"]


def test_the_number_of_points_below_the_line_is_told() -> None:
    above = replace(GROWTH.curves, true=GROWTH.curves.estimated[None, :] * np.array([[1.0], [1.1], [1.2]]))
    told = {plot.key: plot.found for plot in plots(replace(GROWTH, curves=above), RULES)}
    assert told["bound"].startswith("4 of 6 points lie below the line")


def test_steps_beside_what_is_not_known_are_left_out() -> None:
    assert risen(np.array([[1.0, np.nan, 3.0, 2.0]]), 1) == (0, 1)


def test_the_command_writes_the_same_twice(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        ran = reproduce("dictionaries", "--quick", "--output", str(tmp_path / name), "--date", "2026-01-02")
        assert ran.exit_code == 0, ran.output
        made.append({path.name: path.read_bytes() for path in (tmp_path / name).glob("dictionaries.*")})
    assert sorted(made[0]) == ["dictionaries.csv", "dictionaries.html", "dictionaries.json"]
    assert made[0] == made[1]
    told = json.loads(made[0]["dictionaries.json"])
    assert len(told["claims"]) == 8
    (printed,) = [one for one in told["claims"] if "0.858" in one["claim"]]
    assert printed["verdict"] == "does not hold", printed["evidence"]
    assert b"What is claimed, and what was found" in made[0]["dictionaries.html"]
