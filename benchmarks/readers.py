"""The case study through Spark's own readers, against the same rows in plain Parquet, which tasks read themselves.

Table and register are read as CSV, and as Delta tables by Delta's connector for Spark, whose jars
``make .venv/connectors`` fetches.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured

TIME_AT_MOST = 2.0

_SOURCES = {"table": "table", "dictionary": "population"}
"""Part of the policy, and its directory in the data."""

_JARS = ("delta-spark_*.jar", "delta-storage-*.jar")
_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""What Delta's documentation asks of a session; and a log of one commit is not read in fifty tasks."""


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study on plain Parquet, on CSV and on Delta tables.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        ``readers-parquet``, ``readers-csv`` and ``readers-delta``, each against the floor; the parameters hold
        ``time_to_plain``.

    Raises
    ------
    BenchmarkError
        If the connector is not there, a program fails, or decides differently from the floor. A target missed is no
        failure.
    """
    jars = connector(connectors())
    rows = case_study.ROWS if rows is None else rows
    copies = prepare(case_study.prepare(rows, cache))
    products: dict[str, case_study.Product] = {
        "readers-parquet": case_study.run_product,
        "readers-csv": partial(_on_csv, copies / "csv"),
        "readers-delta": partial(_on_delta, copies / "delta", jars),
    }
    return relative(case_study.against_floor(products, rows=rows, cache=cache))


def relative(results: Sequence[Result]) -> list[Result]:
    """Add ``time_to_plain``, seconds divided by those of the first result."""
    plain = results[0].seconds
    aims = {"time_to_plain_at_most": TIME_AT_MOST}
    return [
        replace(one, parameters=one.parameters | {"time_to_plain": round(one.seconds / plain, 3)} | aims)
        for one in results
    ]


def connectors() -> Path:
    """Return where the jars of connectors are: ``$PRIVRISK_CONNECTORS``, or beside the environment of this Python."""
    return Path(os.environ.get("PRIVRISK_CONNECTORS") or Path(sys.prefix, "connectors"))


def connector(directory: Path) -> list[Path]:
    """Return the jars of Delta's connector.

    Raises
    ------
    BenchmarkError
        If one of them is not in the directory.
    """
    jars = []
    for pattern in _JARS:
        found = sorted(directory.glob(pattern))
        if not found:
            raise BenchmarkError(
                f"No {pattern} is in {directory}: fetch Delta's connector with 'make .venv/connectors', or say by "
                "PRIVRISK_CONNECTORS where it is."
            )
        jars.append(found[-1])
    return jars


def prepare(data: Path) -> Path:
    """Return the directory of the same rows as CSV and as Delta tables, making it if it is not there yet.

    The Delta tables are copies of the Parquet files with a log beside them.
    """
    copies = data.with_name(f"readers-of-{data.name}")
    if copies.exists():
        return copies
    part = Path(tempfile.mkdtemp(prefix=f"{copies.name}.", dir=data.parent))
    try:
        for place in _SOURCES.values():
            (part / "csv" / place).mkdir(parents=True)
            for file in sorted((data / place).glob("*.parquet")):
                _write_csv(file, part / "csv" / place / f"{file.stem}.csv")
            shutil.copytree(data / place, part / "delta" / place)
            convert_to_deltalake(str(part / "delta" / place))
        part.rename(copies)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return copies


def _write_csv(source: Path, target: Path) -> None:
    """Write the lines that Spark would: no value needs quotes."""
    plain = pc.WriteOptions(quoting_style="none", quoting_header="none")
    with pq.ParquetFile(source) as rows, pc.CSVWriter(target, rows.schema_arrow, write_options=plain) as lines:
        for batch in rows.iter_batches():
            lines.write_batch(batch)


def _on_csv(copies: Path, data: Path, out: Path) -> Measured:
    """Run the release job on CSV files."""
    changes: dict[str, str] = {}
    for part, place in _SOURCES.items():
        changes |= {f"{part}.path": str(copies / place), f"{part}.format": "csv", f"{part}.options.header": "true"}
    return _released(changes, data, out, {})


def _on_delta(copies: Path, jars: Sequence[Path], data: Path, out: Path) -> Measured:
    """Run the release job on tables of Spark's catalog, in a session with the connector."""
    changes = {f"{part}.path": "null" for part in _SOURCES}
    changes |= {f"{part}.catalog": f"delta.`{copies / place}`" for part, place in _SOURCES.items()}
    settings = [argument for name, value in _SETTINGS.items() for argument in ("--conf", f"{name}={value}")]
    # Of a local run the master would be this one without them.
    submitted = ["--master", "local[*,4]", "--jars", ",".join(map(str, jars)), *settings, "pyspark-shell"]
    return _released(changes, data, out, {"PYSPARK_SUBMIT_ARGS": " ".join(submitted)})


def _released(changes: Mapping[str, str], data: Path, out: Path, environment: Mapping[str, str]) -> Measured:
    options = [f"--set={key}={value}" for key, value in changes.items()]
    return case_study.release(case_study.POLICY, data, out, options, environment)
