"""Experiments in Python: the same results as the command's, on generated data and on a frame."""

from __future__ import annotations

import csv
import datetime as dt
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app
from reproduce.collection import NAMES, named
from reproduce.examples.worked import examples
from reproduce.sizes import Bounds, bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.date(2026, 1, 2)
SMALL = {"rows": 60, "attributes": 2, "records": 20, "searches": 1}
POLICY = pr.Policy(
    columns={
        "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
        "city": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
    },
    decision={"utility_at_least": 2},
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_one_is_what_the_command_writes(tmp_path: Path, temporary: Path) -> None:
    command = ["experiments", "dictionaries", "--quick", "--output", str(tmp_path / "there"), "--date", str(DAY)]
    assert CliRunner().invoke(app, command).exit_code == 0
    with pr.experiment(None, None, "dictionaries", quick=True, date=DAY) as found:
        for ending in ("csv", "html", "json"):
            name = f"dictionaries.{ending}"
            assert (found.place / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
        assert found.to_dict() == json.loads((found.place / "dictionaries.json").read_text())
        points = found.to_pandas()
        lines = (found.place / "dictionaries.csv").read_text().splitlines()
        assert list(points.columns) == next(csv.reader(lines))
        assert len(points) == len(lines) - 1 > 0
        assert repr(found) == "Experimented('dictionaries', tables=1)"
        assert "dictionaries" in found._repr_html_()
        assert found.result.private is False
    assert not list(temporary.iterdir())


def test_a_frame_is_an_experiments_table(spark: SparkSession, temporary: Path) -> None:
    frame = spark.createDataFrame([(20 + i % 30, ("Ulm", "Bonn")[i % 2]) for i in range(40)], "age int, city string")
    with pr.experiment(frame, POLICY, "deciding", sizes=SMALL) as found:
        assert found.result.private
        assert {"generated"} < set(found.to_pandas()["data"])
        assert found.result.sizes == SMALL | {"seed": 2012}
    assert not list(temporary.iterdir())


@pytest.mark.thorough("tests/experiments/test_collection.py::test_what_is_finished_is_not_run_again")
def test_all_go_on_where_they_were_but_not_on_a_frame(tmp_path: Path, spark: SparkSession) -> None:
    said: list[str] = []
    asked: dict[str, Any] = {"names": ["examples"], "quick": True, "output": tmp_path, "announce": said.append}
    found = pr.all_experiments(None, None, **asked)
    claims = found.to_pandas()
    assert len(claims) == len(examples())
    assert set(claims["experiment"]) == {"examples"}
    assert list(claims["word"]).count("does not hold") == 1
    assert json.loads(json.dumps(found.to_dict())) == json.loads((tmp_path / "experiments.json").read_text())
    assert repr(found) == f"ExperimentedAll(parts=1, claims={len(claims)}, failed=1)"
    assert "Worked examples" in found._repr_html_()
    pr.all_experiments(None, None, **asked)
    assert said == ["Experiment 1 of 1: examples.", "Experiment 1 of 1: examples was finished before."]
    frame = spark.createDataFrame([(20, "Ulm"), (31, "Bonn")] * 10, "age int, city string")
    said.clear()
    asked |= {"names": ["deciding"], "output": tmp_path / "own"}
    for _ in range(2):
        pr.all_experiments(frame, POLICY, **asked)
    assert said == ["Experiment 1 of 1: deciding."] * 2, "who knows whether it is the same frame"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "recodings"}, r"name: no experiment is named 'recodings' \(did you mean 'recoding'\?\)"),
        ({"sizes": {"row": 3}}, r"sizes\.row: is no size of this experiment \(did you mean 'rows'\?\)"),
        ({"sizes": {"rows": 0}}, r"sizes\.rows: must be at least 1, got 0"),
        ({"sizes": {"attributes": 11}}, r"sizes\.attributes: must be at most 10, got 11"),
        ({"sizes": {"seed": True}}, r"sizes\.seed: must be a whole number, got True"),
        ({"sizes": {"seed": 2.0}}, r"sizes\.seed: must be a whole number, got 2\.0"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str, temporary: Path) -> None:
    with pytest.raises(pr.errors.ConfigError, match=said):
        pr.experiment(None, None, **({"name": "recoding"} | given))
    assert not list(temporary.iterdir())


def test_a_frame_needs_a_policy_and_a_policy_a_table(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "age int")
    with pytest.raises(pr.errors.ConfigError, match="policy: a table is given, and no policy says"):
        pr.experiment(frame, None, "deciding")
    with pytest.raises(pr.errors.ConfigError, match="table: the policy names none"):
        pr.all_experiments(None, POLICY)
    with pytest.raises(pr.errors.ConfigError, match="names: no experiment is named nothing; there are examples"):
        pr.all_experiments(None, None, names=["nothing"])
    with pytest.raises(pr.errors.ConfigError, match="tables of its own"):
        pr.experiment(frame, POLICY, "examples")


@pytest.mark.parametrize("name", NAMES)
def test_the_command_has_the_same_sizes_and_bounds(name: str) -> None:
    group: Any = typer.main.get_command(app)
    options = {one.name: one for one in group.commands["experiments"].commands[name].params}
    usual = named(name).usual
    for key, allowed in bounds(usual).items():
        if name == "examples":
            assert key not in options, "nothing is drawn"
            continue
        assert Bounds(options[key].min, options[key].max) == allowed
        assert options[key].default == getattr(usual, key)
