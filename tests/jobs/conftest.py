"""Running the product in the test session: the command line in process, output in a scratch directory."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli import app

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str
    root: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.root / "out" / "manifest.json").read_text()))

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.root / "vault" / "summary.json").read_text()))

    @property
    def status(self) -> dict[str, Any]:
        return dict(json.loads((self.root / "vault" / "status.json").read_text()))

    @property
    def data(self) -> Path:
        return self.root / "out" / str(self.manifest["data"]["path"])


Privrisk = Callable[..., Ran]


def release(*arguments: str, root: Path) -> Ran:
    """``privrisk release`` in this process, output and vault under root."""
    outputs = [f"--set=output.path={root / 'out'}", f"--set=output.vault={root / 'vault'}"]
    result = CliRunner().invoke(app, ["release", *arguments, *outputs])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr, root)


@contextmanager
def production_batches(spark: SparkSession) -> Iterator[None]:
    """Batches as large as in production, and the project's root as working directory."""
    batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
    usual = spark.conf.get(batch)
    spark.conf.set(batch, "10000")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield
    spark.conf.set(batch, usual)
    logging.getLogger("privrisk_spark").handlers.clear()


@pytest.fixture
def privrisk(spark: SparkSession, tmp_path: Path) -> Iterator[Privrisk]:
    """``privrisk(*arguments, root=…)``: output and vault under root, production batch size, the test's own session."""

    def run(*arguments: str, root: Path = tmp_path) -> Ran:
        return release(*arguments, root=root)

    with production_batches(spark):
        yield run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A policy over a small table with a sensitive column; returns the policy file."""
    rows = ["id;age;sex;city;diagnosis"]
    for i in range(60):
        rows.append(f"p{i};{20 + i % 30};{'FM'[i % 2]};{['Ulm', 'Bonn', 'Kiel'][i % 3]};{'abc'[i % 3]}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"""
version: 1
run: {{name: small}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 10, 20], domain: [0, 99]}}}}}}
  sex: {{role: quasi-identifier, hierarchy: {{flat: {{values: [F, M]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}}}
  diagnosis: {{role: sensitive}}
decision: {{problem: min-risk, utility_at_least: 3}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
"""
    )
    return policy
