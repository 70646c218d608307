"""Worked examples come out as printed, and what does not is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproducing import reproduce

from reproduce.examples.results import claim, findings
from reproduce.examples.walks import FIGURE, Walk, aruba, basic_top_down
from reproduce.examples.worked import Example, examples

EXAMPLES = examples()
WRONG = [one for one in EXAMPLES if one.what == "risk of the optimal node, f"]
"""What is printed wrongly: the optimum of the figure is e."""


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: f"{one.source}: {one.what}")
def test_a_printed_number_is_found(one: Example) -> None:
    assert one.agrees is (one not in WRONG), (one.printed, one.found)


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
    assert told.tables[0].text.startswith(f"{len(EXAMPLES)} numbers; {len(EXAMPLES) - 2} come out")


def test_the_command_writes_its_files(tmp_path: Path) -> None:
    ran = reproduce("examples", "--output", str(tmp_path / "out"))
    assert ran.exit_code == 0, ran.output
    told = json.loads((tmp_path / "out" / "examples.json").read_text())
    assert len(told["claims"]) == len(EXAMPLES)
    assert [one["claim"] for one in told["claims"] if one["verdict"] != "holds"] == ["risk of the optimal node, f: 62"]


def test_walks_are_those_of_the_printed_table() -> None:
    """Figure 4.5: the queue's nodes, and the visited nodes of both algorithms."""
    assert basic_top_down() == Walk("tsrpqoklmgnhdijefb", "e", 16)
    walk = aruba()
    assert walk.visited[:4] == "acfj"
    assert [set(walk.visited[4:7]), set(walk.visited[7:])] == [set("ein"), set("bdhm")]
    assert (walk.found, walk.steps) == ("e", 3)


@pytest.mark.parametrize("seed", range(20))
def test_visits_do_not_depend_on_the_nodes_that_are_in_the_picture_only(seed: int) -> None:
    """Any risk and utility of them that lie between their neighbours', below the least risk of a feasible node."""
    draw = np.random.default_rng(seed)
    figure = dict(FIGURE)
    for at in sorted((at for at, (name, _, _) in FIGURE.items() if name in "gmnhid"), key=sum):
        above = [figure[one] for one in ((at[0] - 1, at[1]), (at[0], at[1] - 1)) if one in figure]
        risk, utility = (max(values) for values in list(zip(*above, strict=True))[1:])
        figure[at] = (FIGURE[at][0], int(draw.integers(risk, 55)), int(draw.integers(utility, 18)))
    assert len(basic_top_down(figure).visited) == 18
    assert basic_top_down(figure).found == "e"
    assert set(aruba(figure).visited) == set("acfjeinbdhm")


def test_a_figure_with_another_optimum_is_walked_to_it() -> None:
    other = {**FIGURE, (3, 2): ("e", 62, 21), (4, 1): ("f", 60, 18)}
    assert (basic_top_down(other).found, aruba(other).found) == ("f", "f")
