"""What else reads tables reads lake tables by the same version: assessments and dry runs."""

from __future__ import annotations

import json
from pathlib import Path

import lakes
import pyarrow as pa
import pytest
import small_release
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app


def lake(place: Path) -> Path:
    lines = [line.split(";") for line in small_release.rows()]
    given = pa.table({"age": pa.array([int(age) for age, _ in lines], pa.int32()), "city": [city for _, city in lines]})
    return lakes.delta_versions(place, given.slice(0, 1000), given.slice(1000), partition_by=["city"])


@pytest.mark.usefixtures("spark")
def test_an_assessment_says_which_versions_it_read(privrisk: Privrisk, tmp_path: Path) -> None:
    table = {"path": str(lake(tmp_path / "lake")), "format": "delta"}
    population = {**table, "columns": {"age": "age", "city": "city"}}
    file = small_release.policy(
        "risk", Path("unused"), tmp_path / "x", ("table", {**table, "version": 0}), ("assess.population", population)
    )
    result = CliRunner().invoke(app, ["assess", file, "--output", str(tmp_path / "assessed")])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "assessed" / "assessment.json").read_text())
    versions = [stage["parameters"]["table_versions"] for stage in found["stages"] if stage["name"] == "read"]
    assert [{key: said["version"] for key, said in of.items()} for of in versions] == [
        {"table": 0, "assess.population": 1}
    ]


def test_a_dry_run_opens_the_table_and_keeps_no_version(privrisk: Privrisk, tmp_path: Path) -> None:
    table = {"path": str(lake(tmp_path / "lake")), "format": "delta"}
    file = small_release.policy("risk", Path("unused"), tmp_path / "x", ("table", table))
    ran = privrisk(file, "--dry-run", root=tmp_path / "x")
    assert ran.code == 0, ran.err
    assert not (tmp_path / "x" / "vault").exists()
