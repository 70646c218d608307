"""The case study from an S3 server on loopback to the same, against the same job on local files.

Table, register, output and scratch directory are in the store; hierarchies and vault are files. The server is one
Python process on the same cores: what it takes of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import obstore
from obstore.store import S3Store

from benchmarks import case_study
from benchmarks.case_study import Result
from benchmarks.measure import Measured
from benchmarks.s3_server import ACCESS, BUCKET, ENVIRONMENT, SECRET, server
from benchmarks.standalone import free_port

TIME_AT_MOST = 1.5

_SOURCES = {"table": "table", "dictionary": "population"}
"""Part of the policy, and its directory in the data."""


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study on local files and on an object store.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        ``object-store-local`` and ``object-store``, each against the floor; the parameters hold ``time_to_local``.

    Raises
    ------
    BenchmarkError
        If a program fails, or decides differently from the floor. A target missed is no failure.
    ServerError
        If the server does not come up.
    """
    rows = case_study.ROWS if rows is None else rows
    data = case_study.prepare(rows, cache)
    with server(free_port()) as endpoint:
        upload(data, endpoint)
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint}
        products: dict[str, case_study.Product] = {
            "object-store-local": case_study.run_product,
            "object-store": partial(_on_store, environment),
        }
        local, stored = case_study.against_floor(products, rows=rows, cache=cache)
    compared = {
        "time_to_local": round(stored.seconds / local.seconds, 3),
        "time_to_local_at_most": TIME_AT_MOST,
    }
    return [local, replace(stored, parameters=stored.parameters | compared)]


def upload(data: Path, endpoint: str) -> None:
    """Put table and register into the bucket of a server."""
    store = S3Store(
        BUCKET,
        endpoint=endpoint,
        access_key_id=ACCESS,
        secret_access_key=SECRET,
        region="us-east-1",
        client_options={"allow_http": True},
    )
    for place in _SOURCES.values():
        for file in sorted((data / place).glob("*.parquet")):
            obstore.put(store, f"{place}/{file.name}", file)


def placed(release: str = "release") -> list[str]:
    """Return the options of a release job that reads, writes and releases in the bucket, the release below a name."""
    places = {f"{part}.path": place for part, place in _SOURCES.items()}
    places |= {"output.path": release, "run.scratch": "scratch"}
    return [f"--set={key}=s3://{BUCKET}/{place}" for key, place in places.items()]


def _on_store(environment: Mapping[str, str], data: Path, out: Path) -> Measured:
    """Run the release job with all that may be large on the store."""
    return case_study.release(case_study.POLICY, data, out, placed(), environment)
