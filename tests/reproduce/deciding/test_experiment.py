"""Experiments on deciding end to end: figures of a policy's table, files, refusals, and nothing that leaks."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from naive_records import policy_of, quasi
from product import Privrisk
from pyspark.sql import SparkSession
from reproducing import reproduce

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import EngineError, SchemaError
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.planning.disclosure import sensitivity
from privrisk_spark.policy.reading import load
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.tables.opening import hierarchies_from_policy
from reproduce.deciding import experiment
from reproduce.deciding.results import MEASURED, Sizes, run_on
from reproduce.deciding.subject import Subject, counted
from reproduce.run import Source

pytestmark = pytest.mark.usefixtures("no_charts")

ROOT = Path(__file__).resolve().parents[3]
FEW = ("--rows=150", "--attributes=3", "--records=40", "--searches=2", "--seed=9", "--date=2026-01-02")
PLOTS = [
    "frontier", "visited", "time", "bounding", "risk-utility", "genetic-gap", "genetic-time", "models", "models-time",
    "bang-bang", "levels",
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """How a run of ``python -m reproduce deciding`` ended."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "deciding.json").read_text()))


Experiments = Callable[..., Made]


def run(output: Path, *arguments: str) -> Made:
    result = reproduce("deciding", *FEW, *arguments, f"--output={output}")
    return Made(result.exit_code, result.stdout, result.stderr, output)


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    """``experiments(*arguments, output=…)``."""

    def made(*arguments: str, output: Path = tmp_path / "experiments") -> Made:
        return run(output, *arguments)

    return made


@pytest.fixture(scope="module")
def on_generated_data(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Without a policy, its charts drawn: ``no_charts`` begins with the first test."""
    return run(tmp_path_factory.mktemp("generated") / "experiments")


def without_times(document: Any) -> Any:
    if isinstance(document, dict):
        found = "" if document.get("measured") is True else "found"
        return {
            name: without_times(item)
            for name, item in document.items()
            if name not in MEASURED and (name != "found" or found)
        }
    return [without_times(item) for item in document] if isinstance(document, list) else document


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def test_generated_data_need_no_policy(on_generated_data: Made, tmp_path: Path) -> None:
    made = on_generated_data
    assert made.code == 0, made.err
    assert "never publish" not in made.out
    names = {".privrisk.json", "deciding.json", "deciding.csv", "deciding.html", "status.json"}
    assert {path.name for path in made.directory.iterdir()} == names
    assert stat.S_IMODE(made.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.directory.iterdir()} == {0o600}
    document = made.document
    assert document["sizes"] == {"rows": 150, "attributes": 3, "records": 40, "searches": 2, "seed": 9}
    (one,) = document["experiments"]
    expected = run_on(Subject.generated(9, 150, 3), Sizes(150, 3, 40, 2, 9))
    np.testing.assert_allclose(one["risk_utility"]["risk"], expected.risk_utility.risk)
    np.testing.assert_allclose(one["effort"]["by_floor"]["part"], expected.effort.by_floor.part)
    np.testing.assert_allclose(one["genetic"]["mean_gap"], expected.genetic.mean_gap)
    np.testing.assert_allclose(one["trade_off"]["retained"], expected.trade_off.retained)
    assert [plot["key"] for plot in document["plots"]] == PLOTS
    assert all(plot["found"].endswith(".") for plot in document["plots"])
    sources = {claim["source"] for claim in document["claims"]}
    assert sources == {plot["figure"] for plot in document["plots"]}, "every figure claims something"
    lines = list(csv.DictReader((made.directory / "deciding.csv").read_text().splitlines()))
    assert {line["experiment"] for line in lines} == set(PLOTS)
    shares = [float(line["y"]) for line in lines if line["experiment"] == "frontier" and "floor" in line["panel"]]
    assert shares == one["effort"]["by_floor"]["share"]
    assert {line["measured"] for line in lines if line["experiment"] == "time"} == {"yes"}
    page = (made.directory / "deciding.html").read_text()
    assert page.count("<svg") == page.count('role="img"') == page.count("The chart as a table") == len(PLOTS)
    for key in PLOTS:
        assert f'<title id="{key}-0-title">' in page
        assert f'<desc id="{key}-0-description">' in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    if BROWSER is not None:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000"]  # fmt: skip
        picture = tmp_path / "page.png"
        shot = [*command, f"--screenshot={picture}", "--window-size=1000,2000"]
        page_of = (made.directory / "deciding.html").as_uri()
        subprocess.run([*shot, page_of], capture_output=True, timeout=120, check=True)
        assert picture.stat().st_size > 50_000, "a blank page is smaller"


@pytest.mark.thorough("tests/reproduce/adversary/test_experiment.py::test_a_policy_adds_its_table")
def test_a_policy_adds_its_table(
    experiments: Experiments, privrisk: Privrisk, small: Path, tmp_path: Path, endpoint: str, on_generated_data: Made
) -> None:
    """Tasks hand each other its rows where all of them reach."""
    assert endpoint
    del privrisk  # its session is this test's
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex))
    nowhere = experiments(str(small), "--set=run.scratch=s3://no-such-bucket/x", output=tmp_path / "nowhere")
    assert nowhere.code == 2
    assert "there is no such bucket" in nowhere.err
    made = experiments(str(small), f"--set=run.scratch={store.location}")
    assert made.code == 0, made.err
    assert not list(store.entries())
    assert "never publish" in made.out
    document = made.document
    generated, one = document["experiments"]
    assert (generated["data"], one["data"]) == ("generated", "small")
    # Another run finds the same.
    assert [without_times(generated)] == without_times(on_generated_data.document["experiments"])
    assert one["attributes"] == ["age", "sex", "city"]
    policy = load([small])
    hierarchies = {name: h for name, h in hierarchies_from_policy(policy).items() if h is not None}
    lines = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines(), delimiter=";"))
    codes = np.array([[h.code_of[line[name]] for name, h in hierarchies.items()] for line in lines], dtype=np.int32)
    subject = Subject(
        "small",
        tuple(hierarchies),
        tuple(Axis(h.at_depth, h.ancestor) for h in hierarchies.values()),
        sensitivity(policy.risk.sensitivity, hierarchies).weights,
        tuple(h.depth.astype(np.float64) for h in hierarchies.values()),
        *counted(codes),
    )
    expected = run_on(subject, Sizes(150, 3, 40, 2, 9))
    np.testing.assert_allclose(one["risk_utility"]["anonymous_risk"], expected.risk_utility.anonymous_risk)
    np.testing.assert_allclose(one["risk_utility"]["chosen"], expected.risk_utility.chosen)
    np.testing.assert_allclose(one["effort"]["by_attributes"]["visited"], expected.effort.by_attributes.visited)
    assert "60 rows" in one["basis"]
    page = (made.directory / "deciding.html").read_text()
    assert page.count(": not drawn.") == 2 * len(PLOTS)
    assert "Keep inside the trusted zone" in page
    # No value of a record is anywhere.
    for path in made.directory.iterdir():
        assert not re.search(r"Ulm|Bonn|Kiel|p17\b", path.read_text())


def test_read_of_a_source_takes_values_as_the_policy_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([dt.time(8, 30)] * 2, pa.time64("us"))
    pq.write_table(pa.table({"x": [" a", "b "], "at": times}), tmp_path / "t.parquet")
    columns = {"x": quasi({"flat": {"values": ["a", "b"]}}, read={"trim": True}), "at": {"role": "insensitive"}}
    policy = policy_of(columns, table={"path": str(tmp_path / "t.parquet")})
    unused: Any = None
    with pytest.raises(SchemaError, match="column 'at' is of type time64"):
        Source(spark, policy, unused, unused).read()
    columns["at"]["action"] = "drop"
    policy = policy_of(columns, table={"path": str(tmp_path / "t.parquet")})
    assert Source(spark, policy, unused, unused).read().toArrow().column("x").to_pylist() == ["a", "b"]


def test_what_is_left_out_is_said(
    experiments: Experiments, privrisk: Privrisk, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del privrisk
    document = yaml.safe_load(small.read_text())
    document["risk"] = {"sensitivity": {"form": "multiplicative", "weights": {"age": 0.5}}}
    document["utility"] = {"measure": "leaves"}
    document["dictionary"] = {"kind": "self", "consistency": "compatible"}
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    monkeypatch.setattr(experiment, "MOST_NODES", 12)
    made = experiments(str(small))
    assert made.code == 0, made.err
    notes = " ".join(made.document["notes"])
    assert "'multiplicative'; here its weights are added" in notes
    assert "utility is 'leaves'; here it is depth" in notes
    assert "dictionary is not used" in notes
    assert "the first 2 of 3 attributes" in notes
    assert made.document["experiments"][1]["attributes"] == ["age", "sex"]


def test_what_is_refused(experiments: Experiments, small: Path, tmp_path: Path) -> None:
    for option in ("--rows=0", "--attributes=1", "--attributes=11", "--records=0", "--searches=0", "--seed=-1"):
        made = experiments(option)
        assert made.code == 2, option
    assert experiments("--rows=many").code == 2

    def refused(made: Made, part: str) -> None:
        assert made.code == 2, made.err
        assert part in made.err, made.err

    refused(experiments("--set=a.b=1"), "--set: changes a policy, and none is named")
    refused(experiments("--date=2026-13-01"), "--date")
    refused(experiments(str(tmp_path / "none.yaml")), "none.yaml")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "letter.txt").write_text("mine")
    refused(experiments(output=kept), "--output: has other content than the experiments of an earlier run")
    assert [path.name for path in kept.iterdir()] == ["letter.txt"]
    refused(experiments(str(small), output=tmp_path / "out"), "--output: must be neither output.path")
    refused(experiments(str(small), output=tmp_path / "table.csv"), "--output")
    assert not (tmp_path / "experiments").exists()


def test_an_engine_failure_is_told_and_leaves_no_scratch(
    experiments: Experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineError("It broke.")

    monkeypatch.setattr(experiment, "run_on", fail)
    made = experiments()
    assert made.code == 3
    assert {path.name for path in made.directory.iterdir()} == {".privrisk.json", "status.json"}
    assert json.loads((made.directory / "status.json").read_text())["code"] == 3
