"""Experiments on sharing end to end: files, what they hold, and that only times differ between two runs."""

from __future__ import annotations

import csv
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from reproducing import reproduce

from reproduce.sharing import diffusing
from reproduce.sharing.aggregate import ENUMERATED, EXACT, LAYERS, LEFT_OUT, LETTER

pytestmark = pytest.mark.usefixtures("no_charts")

PLOTS = [
    "sharing-value", "sharing-time", "sharing-nodes", "sharing-gap", "sharing-shown", "sharing-access", "sharing-small",
    "sharing-connected", "sharing-trust", "sharing-diffusion", "sharing-limits", "sharing-diffusion-time",
]  # fmt: skip
MEASURED = {"sharing-time", "sharing-diffusion-time"}


def run(*arguments: str, output: Path) -> Any:
    ran = reproduce("sharing", *arguments, "--date=2026-01-02", f"--output={output}")
    assert ran.exit_code == 0, ran.output
    return json.loads((output / "sharing.json").read_text())


def without_times(value: Any) -> Any:
    """A document without what is measured: seconds, and sentences that tell of time."""
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key not in ("seconds", "found", "verdict")}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return "" if isinstance(value, str) and "CPU time" in value else value


def test_a_quick_run_writes_page_table_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusing, "NETWORKS", (16, 32))
    first, second = (run("--quick", output=tmp_path / name) for name in ("one", "two"))
    place = tmp_path / "one"
    assert {path.name for path in place.iterdir()} == {
        ".privrisk.json",
        "sharing.json",
        "sharing.csv",
        "sharing.html",
        "status.json",
    }
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert without_times(first) == without_times(second)
    assert first["sizes"] == {"users": 1000, "pairs": 60, "attributes": 20, "seed": 2012}
    runs = {(one["method"], one["consistency"], one["k"]) for one in first["modified_aggregate"]}
    methods = (EXACT, LEFT_OUT, ENUMERATED, LAYERS, LETTER)
    assert runs == {(method, of, k) for method in methods for of in ("all", "any") for k in (10, 20)}
    assert first["supermodular"]["counterexamples"]["any"]["counts"] == [0, 1, 1, 1]
    assert first["supermodular"]["counterexamples"]["all"] is None
    assert [plot["key"] for plot in first["plots"]] == PLOTS
    assert {plot["key"] for plot in first["plots"] if plot["measured"]} == MEASURED
    lines = list(csv.DictReader((place / "sharing.csv").read_text().splitlines()))
    assert {line["experiment"] for line in lines} == set(PLOTS)
    assert {line["experiment"] for line in lines if line["measured"] == "yes"} == MEASURED
    other = list(csv.DictReader((tmp_path / "two" / "sharing.csv").read_text().splitlines()))
    assert [line for line in lines if line["measured"] == "no"] == [line for line in other if line["measured"] == "no"]
    page = (place / "sharing.html").read_text()
    assert page.count(": not drawn.") == page.count("The chart as a table") == len(PLOTS)
    assert "What is claimed, and what was found" in page
    assert "never publish" not in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "<script" not in page
    # What is only looked up comes after the charts.
    assert page.index('id="claims"') < page.index('id="sharing-value"') < page.index('id="decisions"')


def test_sizes_are_obeyed_and_another_seed_is_another_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusing, "NETWORKS", (12, 24))
    few = ("--users=150", "--pairs=20", "--attributes=3")
    first, second = (run(*few, f"--seed={seed}", output=tmp_path / str(seed)) for seed in (1, 2))
    assert first["sizes"] == {"users": 150, "pairs": 20, "attributes": 3, "seed": 1}
    assert {one["k"] for one in first["modified_aggregate"]} == {3}
    assert first["drawn_evenly"]["pairs"] == 20
    assert first["pairs"] != second["pairs"]
    assert first["access_control"] != second["access_control"]
    assert first["diffusion"]["edges"] != second["diffusion"]["edges"]


@pytest.mark.parametrize("wrong", ["--users=10", "--pairs=1", "--attributes=1", "--attributes=91", "--seed=-1"])
def test_sizes_that_make_no_sense_are_refused(wrong: str, tmp_path: Path) -> None:
    ran = reproduce("sharing", wrong, f"--output={tmp_path / 'out'}")
    assert ran.exit_code == 2
    assert not (tmp_path / "out").exists()
