"""The case study on a standalone cluster of two one-core executors, against the same job on ``local[2]``.

Both are submitted by spark-submit with the same options but the master, and timed from the submission to the end of the
driver; the cluster is up before. Peak memory on the cluster is that of driver, master, workers and executors together.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import case_study
from benchmarks.case_study import Result
from benchmarks.measure import Measured, measure
from benchmarks.standalone import Cluster, standalone

EXECUTORS = 2
TIME_AT_MOST = 1.2

EXECUTOR_MEMORY = "1g"
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What the README recommends for executors of one core."""

_SETTINGS = {
    "spark.executor.cores": "1",
    "spark.executor.memory": EXECUTOR_MEMORY,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": str(2 * EXECUTORS),
}


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study on ``local[2]`` and on a cluster.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        ``cluster-local`` and ``cluster``, each against the floor; the parameters hold ``time_to_local``.

    Raises
    ------
    BenchmarkError
        If a program fails, or decides differently from the floor. A target missed is no failure.
    ClusterError
        If the cluster does not come up.
    """
    rows = case_study.ROWS if rows is None else rows
    with tempfile.TemporaryDirectory(prefix="cluster-") as name:
        directory = Path(name)
        package = packed(directory)
        with standalone(directory, workers=EXECUTORS, memory=EXECUTOR_MEMORY) as cluster:
            products = {
                "cluster-local": partial(submit, cluster, f"local[{EXECUTORS}]", package),
                "cluster": partial(submit, cluster, cluster.address, package),
            }
            results = case_study.against_floor(products, rows=rows, cache=cache)
            executors = cluster.master_log().count("Launching executor")
    if executors < EXECUTORS:
        raise case_study.BenchmarkError(f"{executors} of {EXECUTORS} executors took part.")
    return relative(results)


def relative(results: Sequence[Result], time_at_most: float = TIME_AT_MOST) -> list[Result]:
    """Add ``time_to_local``, seconds divided by those of the first result."""
    return [
        replace(
            result,
            parameters=result.parameters
            | {
                "executors": EXECUTORS,
                "time_to_local": round(result.seconds / results[0].seconds, 3),
                "time_to_local_at_most": time_at_most,
            },
        )
        for result in results
    ]


def packed(directory: Path) -> Path:
    """Write what spark-submit sends to executors into a directory."""
    return Path(shutil.make_archive(str(directory / "package"), "zip", case_study.root(), "privrisk_spark"))


def command(submit: str, master: str, package: Path, options: Sequence[str] = ()) -> list[str]:
    """Return the command that submits the release job."""
    settings = [argument for name, value in _SETTINGS.items() for argument in ("--conf", f"{name}={value}")]
    job = ["jobs/release.py", "--config", str(case_study.POLICY), "--run-id", "case-study", *options]
    return [submit, "--master", master, *settings, "--py-files", str(package), *job]


def submit(
    cluster: Cluster, master: str, package: Path, data: Path, out: Path, *, options: Sequence[str] = ()
) -> Measured:
    """Run the release job on a master.

    Parameters
    ----------
    master : str
        That of the cluster, or a local one.
    package : Path
        From :func:`packed`.
    options : sequence of str
        More of the release job.

    Raises
    ------
    BenchmarkError
        If it fails.
    """
    paths = {"CASE_STUDY_DATA": str(data), "CASE_STUDY_OUT": str(out)}
    others = dict.fromkeys(set(os.environ) - set(cluster.environment))
    on_cluster = master == cluster.address
    measured = measure(
        command(cluster.submit, master, package, options),
        environment={**others, **cluster.environment, **paths},
        directory=case_study.root(),
        beside=cluster.processes if on_cluster else (),
    )
    return case_study.checked("cluster" if on_cluster else "local run", measured)
