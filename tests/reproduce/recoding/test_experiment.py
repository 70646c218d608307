"""Experiments on recoding end to end: figures of a policy's table, files, refusals, and nothing that leaks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from product import Privrisk
from reproducing import reproduce

from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.planning.disclosure import sensitivity
from privrisk_spark.policy.reading import load
from privrisk_spark.tables.opening import hierarchies_from_policy
from reproduce.deciding.subject import Subject, counted
from reproduce.recoding import experiment
from reproduce.recoding.results import RecodingSizes, run_on

pytestmark = pytest.mark.usefixtures("no_charts")

FEW = ("--rows=200", "--attributes=3", "--records=40", "--seed=9", "--date=2026-01-02")
PLOTS = ["recoding-frontier", "recoding-loss", "recoding-nodes", "recoding-time", "recoding-risk"]


@dataclass(frozen=True)
class Made:
    """How a run of ``python -m reproduce recoding`` ended."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "recoding.json").read_text()))


Experiments = Callable[..., Made]


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    """``experiments(*arguments, output=…)``."""

    def made(*arguments: str, output: Path = tmp_path / "experiments") -> Made:
        result = reproduce("recoding", *FEW, *arguments, f"--output={output}")
        return Made(result.exit_code, result.stdout, result.stderr, output)

    return made


def test_generated_data_need_no_policy(experiments: Experiments) -> None:
    made = experiments("--suppressed=10")
    assert made.code == 0, made.err
    assert "never publish" not in made.out
    names = {".privrisk.json", "recoding.json", "recoding.csv", "recoding.html", "status.json"}
    assert {path.name for path in made.directory.iterdir()} == names
    document = made.document
    assert document["sizes"] == {"rows": 200, "attributes": 3, "records": 40, "suppressed": 10, "seed": 9}
    (one,) = document["experiments"]
    expected = run_on(Subject.generated(9, 200, 3), RecodingSizes(200, 3, 40, 10, 9))
    assert one["limit"] == expected.limit == 20
    assert [outcome["levels"] for outcome in one["outcomes"]] == [list(of.levels) for of in expected.outcomes]
    np.testing.assert_allclose(one["frontier"]["recoded_risk"], expected.frontier.recoded_risk)
    listed = [claim for claim in document["claims"] if not claim["claim"].startswith("The lattice can be pruned")]
    assert [claim["verdict"] for claim in listed] == [
        claim["verdict"] if claim["evidence"].find("CPU time") >= 0 else of.verdict
        for claim, of in zip(listed, expected.claims, strict=True)
    ]
    assert [plot["key"] for plot in document["plots"]] == PLOTS
    lines = list(csv.DictReader((made.directory / "recoding.csv").read_text().splitlines()))
    assert {line["experiment"] for line in lines} == set(PLOTS)
    assert {line["measured"] for line in lines if line["experiment"] == "recoding-time"} == {"yes"}
    page = (made.directory / "recoding.html").read_text()
    assert page.count(": not drawn.") == page.count("The chart as a table") == len(PLOTS)
    assert all(claim["claim"] in page for claim in document["claims"])
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "<script" not in page


@pytest.mark.thorough("tests/reproduce/adversary/test_experiment.py::test_a_policy_adds_its_table")
def test_a_policy_adds_its_table(
    experiments: Experiments, privrisk: Privrisk, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del privrisk  # its session is this test's
    document = yaml.safe_load(small.read_text())
    document["risk"] = {"model": "II"}
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    made = experiments(str(small))
    assert made.code == 0, made.err
    assert "never publish" in made.out
    generated, one = made.document["experiments"]
    assert (generated["data"], one["data"]) == ("generated", "small")
    assert (generated["frontier"]["model"], one["frontier"]["model"]) == ("I", "II")
    assert one["attributes"] == ["age", "sex", "city"]
    policy = load([small])
    hierarchies = {name: h for name, h in hierarchies_from_policy(policy).items() if h is not None}
    lines = list(csv.DictReader((small.parent / "table.csv").read_text().splitlines(), delimiter=";"))
    codes = np.array([[h.code_of[line[name]] for name, h in hierarchies.items()] for line in lines], dtype=np.int32)
    subject = Subject(
        "small",
        tuple(hierarchies),
        tuple(Axis(h.at_depth, h.ancestor) for h in hierarchies.values()),
        sensitivity(policy.risk.sensitivity, hierarchies).weights,
        tuple(h.depth.astype(np.float64) for h in hierarchies.values()),
        *counted(codes),
    )
    expected = run_on(subject, RecodingSizes(200, 3, 40, 5, 9), model="II")
    assert [of["levels"] for of in one["outcomes"]] == [list(of.levels) for of in expected.outcomes]
    np.testing.assert_allclose(one["frontier"]["recoded_risk"], expected.frontier.recoded_risk)
    page = (made.directory / "recoding.html").read_text()
    assert page.count(": not drawn.") == 2 * len(PLOTS)
    assert "Keep inside the trusted zone" in page
    for path in made.directory.iterdir():
        assert not re.search(r"Ulm|Bonn|Kiel|p17\b", path.read_text())
    monkeypatch.setattr(experiment, "MOST_NODES", 12)
    fewer = experiments(str(small))
    assert fewer.code == 0, fewer.err
    assert "the first 2 of 3 attributes" in " ".join(fewer.document["notes"])


def test_what_is_refused(experiments: Experiments, small: Path) -> None:
    for option in ("--rows=0", "--attributes=1", "--records=0", "--suppressed=-1", "--suppressed=101", "--seed=-1"):
        assert experiments(option).code == 2, option
    document = yaml.safe_load(small.read_text())
    document["table"]["entity_id"] = "person"
    document["columns"]["person"] = {"role": "identifier"}
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    made = experiments(str(small))
    assert made.code == 2
    assert "table.entity_id: must be left out: local recoding counts rows" in made.err
