"""The case study on a cluster of two one-core executors that share no disk, against the same job on ``local[2]``.

Each worker has an empty file system of its own where the driver has its directory, as if it were another machine.
Table, register, scratch and release are in an S3 server on loopback; hierarchies and vault are the driver's. The job on
``local[2]`` is measured on local files, which is what the target is held against, and in the store too, to tell what
the store costs from what the cluster does. Everything is on the same two cores, the server among it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import case_study, cluster, object_store
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.cluster import EXECUTOR_MEMORY, EXECUTORS
from benchmarks.measure import Measured
from benchmarks.s3_server import ENVIRONMENT, server
from benchmarks.standalone import Cluster, ClusterError, can_hide, free_port, standalone

TIME_AT_MOST = 1.4


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study on ``local[2]``, on files and in a store, and on a cluster without a shared disk.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        ``cluster-apart-local``, ``cluster-apart-stored`` and ``cluster-apart``, each against the floor; the parameters
        hold ``time_to_local`` and ``time_to_stored``.

    Raises
    ------
    BenchmarkError
        If a program fails, or decides differently from the floor, or a worker sees the driver's directory. A target
        missed is no failure.
    ClusterError
        If the cluster does not come up, or this user may not make mount namespaces.
    ServerError
        If the server does not come up.
    """
    rows = case_study.ROWS if rows is None else rows
    data = case_study.prepare(rows, cache)
    with tempfile.TemporaryDirectory(prefix="cluster-") as name, server(free_port()) as endpoint:
        directory = Path(name)
        driver = directory / "driver"
        driver.mkdir()
        if not can_hide(driver):
            raise ClusterError("This user may not make mount namespaces (unshare --mount), which stand for machines.")
        object_store.upload(data, endpoint)
        with standalone(
            directory,
            workers=EXECUTORS,
            memory=EXECUTOR_MEMORY,
            hidden=driver,
            variables={**ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint},
        ) as started:
            package = cluster.packed(driver)
            refuse_shared(started.processes[1:], driver)  # the first is the master
            local = f"local[{EXECUTORS}]"
            products = {
                "cluster-apart-local": partial(cluster.submit, started, local, package),
                "cluster-apart-stored": partial(_on_store, started, local, package, driver / "stored"),
                "cluster-apart": partial(_on_store, started, started.address, package, driver / "apart"),
            }
            results = case_study.against_floor(products, rows=rows, cache=cache)
            executors = started.master_log().count("Launching executor")
    if executors < EXECUTORS:
        raise BenchmarkError(f"{executors} of {EXECUTORS} executors took part.")
    return relative(results)


def relative(results: Sequence[Result]) -> list[Result]:
    """Add ``time_to_local`` and ``time_to_stored``, seconds divided by those of the first and the second result."""
    stored = results[1].seconds
    return [
        replace(one, parameters=one.parameters | {"time_to_stored": round(one.seconds / stored, 3)})
        for one in cluster.relative(results, TIME_AT_MOST)
    ]


def refuse_shared(processes: Sequence[int], directory: Path) -> None:
    """Refuse workers that see what is in a directory.

    Raises
    ------
    BenchmarkError
        If there is one.
    """
    for process in processes:
        if any(Path(f"/proc/{process}/root{directory}").iterdir()):
            raise BenchmarkError(f"A worker sees the driver's directory {directory}.")


def _on_store(started: Cluster, master: str, package: Path, place: Path, data: Path, out: Path) -> Measured:
    """Run the release job in the store, with what is the driver's below a place that it alone sees."""
    hierarchies, made = place / "data", place / "out"
    hierarchies.mkdir(parents=True)
    for file in data.glob("*.csv"):
        shutil.copy(file, hierarchies)
    ran = cluster.submit(started, master, package, hierarchies, made, options=object_store.placed(f"out-{place.name}"))
    shutil.move(made / "vault", out / "vault")
    return ran
