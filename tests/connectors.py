"""Spark's own connectors for lake tables: a session with one of them in a process of its own, asked by SQL."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_release
import yaml
from connector_packages import DELTA, ICEBERG, jar
from product import ROOT, Privrisk, Ran
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.storage.lakes.opening import open_snapshot
from privrisk_spark.storage.lakes.snapshot import Asked
from privrisk_spark.tables.row_groups import lake_frame

PLACE = Path(os.environ.get("PRIVRISK_CONNECTORS", Path(sys.prefix, "connectors")))
"""Where ``make .venv/connectors`` puts them."""

_PROGRAM = Path(__file__).with_name("connector_program.py")

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A log of a few files, not of a few millions.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}


class RefusedError(Exception):
    """The connector did not do what it was asked for."""


@dataclass(frozen=True)
class Connector:
    """A session with a connector."""

    process: subprocess.Popen[bytes]
    log: Path

    def __call__(self, sql: str) -> list[dict[str, Any]]:
        """Execute a statement. Return the rows of SELECT and DESCRIBE; `SOURCE table` is described as a run sees it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(sql).encode() + b"\n")
            self.process.stdin.flush()
            rows, error = pickle.load(self.process.stdout)
        except (OSError, EOFError):
            pytest.fail(f"the connector's session is gone: {self.log.read_text()[-3000:]}")
        if error is not None:
            raise RefusedError(error)
        assert isinstance(rows, list)
        return rows


@contextmanager
def delta(directory: Path) -> Iterator[Connector]:
    """Delta's, in the Spark of the tests; what it writes for itself is in a directory."""
    with _session(directory, DELTA, _DELTA, {}) as found:
        yield found


@contextmanager
def iceberg(directory: Path) -> Iterator[Connector]:
    """Iceberg's, in a Spark it fits, with a catalog ``lake`` of the tables in ``directory/lake``."""
    settings = {**_ICEBERG, "spark.sql.catalog.lake.warehouse": str(directory / "lake")}
    with _session(directory, ICEBERG, settings, {"PYTHONPATH": str(PLACE / "spark")}) as found:
        yield found


def find_jars(jars: Mapping[str, str]) -> list[Path]:
    """Return the files of jars; without them the test is skipped, or fails where they are required."""
    files = [PLACE / jar(coordinates) for coordinates in jars]
    missing = [file for file in files if not file.is_file()]
    if missing:
        reason = f"{missing[0].name} is not in {PLACE} (make .venv/connectors)"
        if "connectors" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    return files


@contextmanager
def _session(
    directory: Path, jars: Mapping[str, str], settings: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[Connector]:
    files = find_jars(jars)
    packages = os.pathsep.join([*environment.get("PYTHONPATH", "").split(os.pathsep), str(ROOT)]).lstrip(os.pathsep)
    given = {
        "spark.jars": ",".join(map(str, files)),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        **settings,
    }
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    log = directory / "connector.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), json.dumps(given)],
            env={**usual, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC", **environment, "PYTHONPATH": packages},
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
        ) as process,
    ):
        yield Connector(process, log)  # which ends when nothing more can be asked


def published(root: Path, run_id: str, **more: Any) -> list[dict[str, Any]]:
    """Rows of a release below a root, each with more columns."""
    rows = pq.read_table(root / "out" / "releases" / run_id / "data").to_pylist()
    return [{**row, **more} for row in rows]


def ordered(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Rows in an order of their own, whatever the order of their columns is."""
    return sorted(sorted(row.items()) for row in rows)


def by_tasks(spark: SparkSession, asked: Asked) -> list[dict[str, Any]]:
    """Rows of a version as the tasks of a run read them, in the order of ``id``."""
    rows: list[dict[str, Any]] = lake_frame(spark, open_snapshot(asked)).orderBy("id").toArrow().to_pylist()
    return rows


def released_alike(
    privrisk: Privrisk, connector: Connector, place: Path, form: str, table: str, path: Path
) -> dict[str, Any]:
    """Assert that a release of a table is, byte for byte, that of its rows; return what its manifest says of the table.

    The connector writes the table, partitioned, and deletes some rows in a second commit.
    """
    lines = [line.split(";") for line in small_release.rows()]
    names = {"age": pa.array([int(age) for age, _ in lines], pa.int32()), "city": [city for _, city in lines]}
    rows = pa.table({"id": [f"r{i}" for i in range(len(lines))], **names})
    pq.write_table(rows, place / "all.parquet")
    pq.write_table(rows.slice(500), place / "left.parquet")
    connector(f"CREATE TABLE {table} USING {form} PARTITIONED BY (city) AS SELECT * FROM parquet.`{place}/all.parquet`")
    connector(f"DELETE FROM {table} WHERE CAST(substr(id, 2) AS INT) < 500")

    def released(root: Path, form: str, path: Path) -> Ran:
        changes = [
            ("table", {"path": str(path), "format": form, "record_id": "id"}),
            ("columns.id", {"role": "identifier"}),
        ]
        ran = privrisk(small_release.policy("risk", path, root, *changes), "--run-id", "r1", root=root)
        assert ran.code == 0, ran.err
        return ran

    plain = released(place / "plain", "parquet", place / "left.parquet")
    of_lake = released(place / "of-lake", form, path)
    assert small_release.digests(of_lake.root) == small_release.digests(plain.root)
    assert of_lake.manifest["rows"] == len(lines) - 500
    return dict(of_lake.manifest["input"]["table"])


def first_release(privrisk: Privrisk, connector: Connector, place: Path, form: str, table: str, path: Path) -> None:
    """Assert that ``privrisk init`` recognizes a table and profiles its newest rows, and that a release follows.

    The connector writes the table and deletes some rows in a second commit, which the profile must not count.
    """
    rows = pa.table(
        {
            "person_id": [f"P{10_000 + i}" for i in range(80)],
            "age": pa.array([20 + i % 40 for i in range(80)], pa.int32()),
            "sex": ["fm"[i % 2] for i in range(80)],
            "country": ["DE"] * 60 + ["NL"] * 20,
        }
    )
    pq.write_table(rows, place / "people.parquet")
    connector(
        f"CREATE TABLE {table} USING {form} PARTITIONED BY (country) AS SELECT * FROM parquet.`{place}/people.parquet`"
    )
    connector(f"DELETE FROM {table} WHERE country = 'NL'")
    ran = CliRunner().invoke(app, ["init", str(path), "--out", str(place / "first")])
    assert ran.exit_code == 0, ran.stderr
    assert ": 60 rows, 4 columns: 1 identifiers" in ran.stdout
    policy = yaml.safe_load((place / "first" / "policy.yaml").read_text())
    assert policy["table"]["format"] == form
    assert (policy["table"]["path"], policy["table"]["record_id"]) == (str(path), "person_id")
    assert policy["columns"]["age"]["role"] == policy["columns"]["sex"]["role"] == "quasi-identifier"
    made = privrisk(str(place / "first" / "policy.yaml"), root=place)
    assert made.code == 0, made.err
    assert made.manifest["rows"] == 60
    assert made.manifest["input"]["table"]["format"] == form
    assert "person_id" not in pq.read_table(made.data).column_names
