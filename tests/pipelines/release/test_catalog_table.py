"""A table of Spark's catalog holds the newest release: written by the session's connector, read by ``spark.sql``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import connectors
import pytest
import small_release
from connector_packages import DELTA, ICEBERG
from connectors import ordered, published
from product import ROOT, Privrisk, Ran
from pyspark.sql import SparkSession

_READ = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.sql(f"SELECT * FROM {sys.argv[1]}").toArrow().to_pylist()
properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {sys.argv[1]}").toArrow().to_pylist()}
print(json.dumps([rows, properties]))
"""


_CREATE = """
import sys
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().sql(f"CREATE SCHEMA {sys.argv[1]}")
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv"
    file.write_text("\n".join(["age;city", *small_release.rows()[:500]]) + "\n")
    return file


@pytest.mark.on_spark("the embedded engine has no catalogs")
def test_release_into_a_catalog_is_the_newest_and_replaces_no_other_table(
    privrisk: Privrisk, spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    root, name = tmp_path / "x", "default.visits_public"

    def released(run_id: str, catalog: str = name) -> Ran:
        file = small_release.policy("risk", table, root, ("output.catalog", catalog))
        return privrisk(file, "--run-id", run_id, root=root)

    def read_rows() -> list[list[Any]]:
        return ordered(spark.table(name).toArrow().to_pylist())

    try:
        assert released("r1").code == 0
        assert read_rows() == ordered(published(root, "r1"))
        before = table.read_text()
        table.write_text(before + "20;Ulm\n" * 50)
        assert released("r2").code == 0
        assert len(read_rows()) == 550
        table.write_text(before)
        assert "Already released" in released("r1").out
        table.write_text(before + "20;Ulm\n" * 50)
        assert read_rows() == ordered(published(root, "r2"))
        spark.sql(f"DROP TABLE {name}")
        assert "Already released" in released("r2").out
        assert read_rows() == ordered(published(root, "r2"))

        spark.range(3).write.saveAsTable("default.of_others")
        refused = released("r3", "default.of_others")
        assert refused.code == 2
        said = " ".join(refused.err.split())
        assert "output.catalog: 'default.of_others' is a table or view that no release of this output.path made" in said
        assert not (root / "out/releases/r3").exists()
        assert spark.table("default.of_others").count() == 3
        # Nor that of another output.
        other = small_release.policy("risk", table, tmp_path / "y", ("output.catalog", name))
        assert privrisk(other, "--run-id", "r1", root=tmp_path / "y").code == 2
        assert read_rows() == ordered(published(root, "r2"))
        for wrong, rule in (("no_such.visits", "there is no schema 'no_such'"), ("a b", "is no table that this")):
            refused = released("r4", wrong)
            assert (refused.code, f"output.catalog: {rule}" in " ".join(refused.err.split())) == (2, True), refused.err
    finally:
        for one in (name, "default.of_others"):
            spark.sql(f"DROP TABLE IF EXISTS {one}")


@pytest.mark.on_embedded("Spark has catalogs")
def test_release_into_a_catalog_on_the_embedded_engine_is_refused(
    privrisk: Privrisk, table: Path, tmp_path: Path
) -> None:
    file = small_release.policy("risk", table, tmp_path / "x", ("output.catalog", "default.visits_public"))
    ran = privrisk(file, "--run-id", "r1", root=tmp_path / "x")
    assert ran.code == 2
    assert "output.catalog: the embedded engine has no catalogs" in " ".join(ran.err.split())


def settings(kind: str, place: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of Spark and variables of a process for a catalog: Derby with Parquet or Delta tables, or Iceberg."""
    found = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.io.encryption.enabled": "true",
    }
    if kind == "iceberg":
        jars, more = ICEBERG, connectors._ICEBERG | {"spark.sql.catalog.lake.warehouse": str(place / "lake")}
    else:
        jars, more = (DELTA, connectors._DELTA) if kind == "delta" else ({}, {})
        address = f"jdbc:derby:;databaseName={place}/metastore;create=true"
        more = more | {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": address,
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={place}",
        }
    if jars:
        found["spark.jars"] = ",".join(map(str, connectors.find_jars(jars)))
    variables = {"SPARK_CONF_DIR": str(place / "conf"), "PRIVRISK_ENGINE": "spark"}
    if kind == "iceberg":
        variables["PYTHONPATH"] = os.pathsep.join([str(connectors.PLACE / "spark"), str(ROOT)])
    return found | more, variables


@pytest.mark.parametrize(
    "kind",
    ["derby", "iceberg", pytest.param("delta", marks=pytest.mark.thorough("an Iceberg catalog replaces tables, too"))],
)
def test_release_into_a_catalog_is_read_by_another_session(kind: str, table: Path, tmp_path: Path) -> None:
    name = "lake.db.visits_public" if kind == "iceberg" else "visits_public"
    given, variables = settings(kind, tmp_path)
    (tmp_path / "conf").mkdir()
    lines = "".join(f"{key} {value}\n" for key, value in given.items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(lines)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}

    def run(*command: str) -> str:
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env={**kept, **variables}, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout

    root = tmp_path / "x"
    if kind == "iceberg":
        run("-c", _CREATE, name.rpartition(".")[0])
    file = small_release.policy("risk", table, root, ("output.catalog", name), ("output.path", str(root / "out")))
    for run_id in ("r1", "r2"):
        run("-m", "privrisk_spark.cli.app", "release", file, "--run-id", run_id, f"--set=output.vault={root}/vault")
        with table.open("a") as more:
            more.write("20;Ulm\n" * 50)
    rows, properties = json.loads(run("-c", _READ, name).splitlines()[-1])
    assert ordered(rows) == ordered(published(root, "r2"))
    assert len(rows) == 550
    manifest = json.loads((root / "out/manifest.json").read_text())
    assert properties["privrisk.run_id"] == manifest["run_id"] == "r2"
    assert len(properties["privrisk.catalog_release"]) == 64
