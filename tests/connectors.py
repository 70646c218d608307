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

import pytest
from connector_packages import DELTA, ICEBERG, jar

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
        """Do what a statement says; of a SELECT or DESCRIBE its rows."""
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

    def fails(self, sql: str) -> str:
        """What is said of a statement that fails."""
        with pytest.raises(RefusedError) as caught:
            self(sql)
        return str(caught.value)


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


@contextmanager
def _session(
    directory: Path, jars: Mapping[str, str], settings: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[Connector]:
    files = [PLACE / jar(coordinates) for coordinates in jars]
    missing = [file for file in files if not file.is_file()]
    if missing:
        reason = f"{missing[0].name} is not in {PLACE} (make .venv/connectors)"
        if "connectors" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
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
            env={**usual, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC", **environment},
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
        ) as process,
    ):
        yield Connector(process, log)  # which ends when nothing more can be asked
