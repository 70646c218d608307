"""Worked examples come out as printed, and what does not is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.experiments.examples.results import claim, findings
from privrisk_spark.experiments.examples.worked import Example, examples

EXAMPLES = examples()


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: f"{one.source}: {one.what}")
def test_a_printed_number_is_found(one: Example) -> None:
    assert one.agrees, (one.printed, one.found)


@pytest.mark.parametrize(
    ("printed", "found", "digits", "cut", "agrees"),
    [
        (1.004, 1.00449, 3, False, True),
        (1.004, 1.00451, 3, False, False),
        (0.438, 0.4389, 3, True, True),
        (0.438, 0.4389, 3, False, False),
        (13, 13.0, 0, False, True),
        (13, float("nan"), 0, False, False),
    ],
)
def test_a_number_agrees_to_the_decimals_that_are_printed(
    printed: float, found: float, digits: int, cut: bool, agrees: bool
) -> None:
    assert Example("s", "w", printed, found, digits, cut).agrees is agrees


def test_a_number_that_does_not_agree_is_told() -> None:
    wrong = replace(EXAMPLES[0], found=7.1)
    assert claim(wrong).verdict == "does not hold"
    told = findings((wrong, *EXAMPLES[1:]))
    assert told.tables[0].text.startswith(f"{len(EXAMPLES)} numbers; {len(EXAMPLES) - 1} come out")


def test_the_command_writes_its_files(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["experiments", "examples", "--output", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    told = json.loads((tmp_path / "out" / "examples.json").read_text())
    assert [one["verdict"] for one in told["claims"]] == ["holds"] * len(EXAMPLES)
