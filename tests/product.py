"""Running the product in the test session: the command line in process, output in a scratch directory."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]


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


def release(*arguments: str, root: Path, output: str | None = None, vault: str | None = None) -> Ran:
    """``privrisk release`` in this process, output and vault under root unless they are said."""
    outputs = [f"--set=output.path={output or root / 'out'}", f"--set=output.vault={vault or root / 'vault'}"]
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
