"""``pr.compose``: what the command reports, as a value, of a frame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from naive_releases import decisions, tables, writer
from product import Privrisk
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app


def test_releases_of_a_lineage_compose_as_the_command_says(
    spark: SparkSession, privrisk: Privrisk, tmp_path: Path
) -> None:
    write = writer(tmp_path)
    for day, (rows, age, city) in enumerate(zip(tables()[:2], (0, 1), (1, 0), strict=True), 1):
        wanted = {"decision": {"problem": "min-risk", "utility_at_least": 2 * city or 2}}
        wanted["utility"] = {"measure": "depth", "weights": {"age": age, "city": city}}
        decisions(privrisk(str(write(rows, day, history=[], **wanted)), root=tmp_path))
    now = tables()[-1]
    file = str(write(now, 9, history={"lineage": "composed"}))
    told = CliRunner().invoke(app, ["assess", file, "--history", "--output", str(tmp_path / "told")])
    assert told.exit_code == 0, told.output

    frame = spark.createDataFrame([(i, age, city) for i, (age, city) in now.items()], "id string, age int, city string")
    with pr.compose(frame, pr.load(file)) as found:
        said = json.loads((tmp_path / "told" / "composition.json").read_text())
        assert json.loads(json.dumps(found.to_dict())) == said
        rows_of = found.to_pandas()
        assert rows_of["run_id"].tolist() == [*(one["release"]["run_id"] for one in said["releases"]), None]
        every = [*said["releases"], said["together"]]
        assert rows_of["mean_risk"].tolist() == [one["risk"]["mean"] for one in every]
        assert rows_of[["records", "changed"]].values.tolist() == [[one["records"], one["changed"]] for one in every]
        assert (found.risen, len(found.releases)) == (said["risen"], 2)
        assert found.together.risk.mean > max(one.risk.mean for one in found.releases)
        assert said["paragraph"] in repr(found)
        assert "all together" in found._repr_html_()
        private = found.place.parent
    assert not private.exists()


def test_without_a_history_there_is_nothing_to_compose(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    policy = pr.load(str(writer(tmp_path)(tables()[0], 1)))
    with pytest.raises(pr.errors.ConfigError, match="history: is required"):
        pr.compose(spark.createDataFrame([("a", 1, "Ulm")], "id string, age int, city string"), policy)
    assert {file.suffix for file in tmp_path.iterdir()} == {".csv", ".yaml"}, "nothing is left"
