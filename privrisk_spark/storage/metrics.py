"""The metrics table of a vault: what each stage of each run took, a file an attempt, read as one Parquet table."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["METRICS", "METRICS_SCHEMA", "write_metrics"]

METRICS: Final = "metrics"
"""Directory of a vault."""

METRICS_SCHEMA: Final = pa.schema(
    [
        ("run_id", pa.string()),
        ("attempt", pa.string()),
        ("run", pa.string()),
        ("date", pa.date32()),
        ("guarantee", pa.string()),
        ("stage", pa.string()),
        ("number", pa.int32()),
        ("stages", pa.int32()),
        ("started", pa.timestamp("us", tz="UTC")),
        ("seconds", pa.float64()),
        ("rows", pa.int64()),
        ("ended", pa.string()),
        ("version", pa.string()),
    ]
)
"""Columns: whose run and attempt; which stage of how many; when it began and how long it took; rows of the table, where
the guarantee allows to keep them; ``done``, or the class of the error that ended it; version of this package."""


def write_metrics(directory: Path, attempt: str, run_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of one attempt, for the owner alone; what others wrote stays.

    Parameters
    ----------
    directory : Path
        Of a vault; it is there.
    attempt, run_id : str
        Together they name the file.
    rows : sequence of dict
        By the names of `METRICS_SCHEMA`.
    """
    place = directory / METRICS
    place.mkdir(mode=0o700, exist_ok=True)
    known = [{**row, "started": dt.datetime.fromtimestamp(row["started"], dt.UTC)} for row in rows]
    draft = place / f".{run_id}~{attempt}.parquet"
    pq.write_table(pa.Table.from_pylist(known, METRICS_SCHEMA), draft)
    draft.chmod(0o600)
    os.replace(draft, place / f"{run_id}~{attempt}.parquet")
