"""A standalone Spark cluster on loopback: a master and workers of one core each, for as long as a block runs."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_PATIENCE = 120  # seconds until all workers are there
_POLL = 0.5
_LEAST, _USUAL_FIRST = 10_000, 32_768  # of ports that are tried; of those that the system gives, where it does not say


class ClusterError(RuntimeError):
    """The cluster did not come up."""


def _spark_home() -> str:
    """Where Spark is installed, which is not imported for that: tests that need no Spark look for ports here."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ClusterError("pyspark is not installed.")
    return str(Path(found.origin).parent)


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes
    ----------
    address : str
        ``spark://…`` of the master.
    environment : dict of str to str
        For spark-submit: nothing of the caller's own Spark settings.
    processes : tuple of int
        Master and workers; executors are their children.
    directory : Path
        Holds their logs, such as ``master.log``, and the workers' directories.
    """

    address: str
    environment: dict[str, str]
    processes: tuple[int, ...]
    directory: Path

    @property
    def submit(self) -> str:
        """Path of spark-submit."""
        return str(Path(self.environment["SPARK_HOME"], "bin", "spark-submit"))

    def master_log(self) -> str:
        """Return what the master has said so far."""
        return (self.directory / "master.log").read_text(encoding="utf-8", errors="replace")


def submit_environment(logs: Path) -> dict[str, str]:
    """Return the environment of this process without its Spark settings, fit for Spark's own programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "SPARK_HOME": _spark_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOG_DIR": str(logs),
    }


@contextmanager
def standalone(
    directory: Path,
    *,
    workers: int = 2,
    memory: str = "1g",
    java_options: str | None = None,
    hidden: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """Start a cluster and stop it at the end.

    Parameters
    ----------
    directory : Path
        For logs and the workers' directories.
    workers : int, default 2
        One core each.
    memory : str, default "1g"
        What each worker may give to executors.
    java_options : str, optional
        For every Java process of the cluster, those of submitted jobs among them.
    hidden : Path, optional
        Directory in whose place every worker sees an empty one of its own, as if its machine had another disk. Needs
        the right to make mount namespaces.
    variables : mapping of str to str, optional
        More of the environment of every process of the cluster, and of submitted jobs.

    Raises
    ------
    ClusterError
        If the workers do not register in two minutes.
    """
    environment = submit_environment(directory / "logs") | dict(variables or {})
    if java_options is not None:
        environment["JAVA_TOOL_OPTIONS"] = java_options
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> None:
        program = str(Path(environment["SPARK_HOME"], "bin", "spark-class"))
        command = [program, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *arguments]
        if hidden is not None and kind == "worker.Worker":
            command = [*_NAMESPACE, str(hidden), *command]
        with (directory / f"{name}.log").open("wb") as log:
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))

    try:
        start("master", "master.Master", "--port", str(port), "--webui-port", str(free_port()))
        for number in range(1, workers + 1):
            place = ["--work-dir", str(directory / f"work{number}"), "--webui-port", str(free_port())]
            start(f"worker{number}", "worker.Worker", "--cores", "1", "--memory", memory, *place, address)
        cluster = Cluster(address, environment, tuple(process.pid for process in started), directory)
        deadline = time.monotonic() + _PATIENCE
        while cluster.master_log().count("Registering worker") < workers:
            if time.monotonic() > deadline or any(process.poll() is not None for process in started):
                raise ClusterError(f"The cluster did not come up: {cluster.master_log()[-2000:]}")
            time.sleep(_POLL)
        yield cluster
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_NAMESPACE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
"""Runs a program with an empty file system over the first argument, which nobody else sees."""


def can_hide(directory: Path) -> bool:
    """Tell whether this user may let a program see an empty directory in place of another."""
    try:
        return subprocess.run([*_NAMESPACE, str(directory), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def free_port() -> int:
    """Return a port of loopback that nobody listens on, and that the system gives to nobody who asks for any port.

    A server may begin to listen on it much later.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(given.read_text().split()[0]) if given.exists() else _USUAL_FIRST
    while True:
        port = _LEAST + secrets.randbelow(first - _LEAST)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
