"""What is killed at work: copies of this process, processes of their own, and executors of a cluster.

A copy costs a fork, where a process of its own would cost the start of Java; and Java goes on with what it was told, as
a cluster does. The embedded engine is part of the process, which cannot be forked with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from product import ROOT
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.engine.embedded import is_embedded

_KEPT: list[Any] = []
"""What a copy must not collect: closing the parent's connection would close it for the parent too."""


@dataclass
class Copy:
    """A copy of this process at work."""

    pid: int
    spark: SparkSession

    def kill(self) -> bool:
        """Kill it; tell whether it was still at work."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return os.WIFSIGNALED(self._ended())

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        return os.waitstatus_to_exitcode(self._ended())

    def _ended(self) -> int:
        """Wait for its status, and reset the session: copies share it, and one can restore the label of another."""
        _, status = os.waitpid(self.pid, 0)
        for name in ("spark.job.description", "spark.jobGroup.id"):
            self.spark.conf.unset(name)
        return status


@dataclass
class Program:
    """A process of its own at work, on the embedded engine."""

    process: subprocess.Popen[bytes]
    said: Path

    def kill(self) -> bool:
        """Kill it; tell whether it was still at work."""
        self.process.kill()
        return self.process.wait() == -signal.SIGKILL

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        return self.process.wait()

    def wait_until_begun(self) -> None:
        """Wait for the log line of the first stage, which is written after the imports."""
        while self.process.poll() is None and b"stage 1 of" not in self.said.read_bytes():
            time.sleep(0.02)


def started(spark: SparkSession, *arguments: str, place: Path) -> Copy | Program:
    """Start a command in a directory. Its output goes to the file ``said`` there.

    Parameters
    ----------
    spark : SparkSession
        Of Spark: a copy of this process runs the command. Of the embedded engine: a process of its own.
    *arguments : str
        Of ``privrisk``.
    """
    if not is_embedded(spark):
        return _copied(spark, lambda: _run(arguments, place))
    command = [sys.executable, "-c", "from privrisk_spark.cli.app import main; main()", *arguments]
    environment = {**os.environ, "PRIVRISK_ENGINE": "embedded", "PYTHONPATH": str(ROOT)}
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=said, stderr=said)
    return Program(process, place / "said")


def _run(arguments: Sequence[str], place: Path) -> int:
    os.chdir(place)
    ended = CliRunner().invoke(app, list(arguments))
    (place / "said").write_text(ended.output + ended.stderr)
    return ended.exit_code


def _copied(spark: SparkSession, work: Callable[[], int]) -> Copy:
    """Do work in a copy of this process, with connections of its own to Spark's Java; its result is the exit code."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    with warnings.catch_warnings():
        # From 3.12 on Python warns of forks of processes with threads: none of them is needed in the copy.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return Copy(pid, spark)
    code = 99
    try:
        _KEPT.extend([list(client.deque), dict(vars(client.thread_connection))])
        client.deque.clear()
        vars(client.thread_connection).clear()
        code = work()
    finally:
        os._exit(code)


def killed_after(one: Copy | Program, seconds: float) -> bool:
    """Kill a copy, or a program that has begun, after a while; tell whether it was still at work."""
    if isinstance(one, Program):
        one.wait_until_begun()
    time.sleep(seconds)
    return one.kill()


_FAILING = """
                    yield from apply_steps(batches)
                    _interrupted()
"""
_PLANTED = '''

def _interrupted() -> None:
    """Planted: eight first attempts of tasks end after their work, two of them with their executor."""
    import os
    import signal
    from pyspark import TaskContext
    # The first stage looks only whether workers reach the driver's files.
    if TaskContext.get().attemptNumber() > 0 or TaskContext.get().stageId() == 0:
        return
    for number in range(2):
        try:
            os.close(os.open(f"{MARKS}/killed-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        # A task's process is the child of a daemon, which is the executor's.
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat") as stat:
            executor = int(stat.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{executor}/cmdline") as line:
            if "CoarseGrainedExecutorBackend" in line.read():
                os.kill(executor, signal.SIGKILL)
        os._exit(1)
    for number in range(6):
        try:
            os.close(os.open(f"{MARKS}/failed-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        raise RuntimeError("planted")
'''


def failing_package(directory: Path, marks: Path) -> str:
    """The package as a zip for a cluster, with eight first attempts of tasks that end after their work, planted.

    Parameters
    ----------
    directory : Path
        Where it is made.
    marks : Path
        Made; all workers see it, and each planted end leaves a file there.
    """
    marks.mkdir()
    tree = directory / "tree"
    shutil.copytree(ROOT / "privrisk_spark", tree / "privrisk_spark", ignore=shutil.ignore_patterns("__pycache__"))
    batches = tree / "privrisk_spark" / "engine" / "batches.py"
    text = batches.read_text()
    usual = _FAILING.replace("                    _interrupted()\n", "")
    assert text.count(usual) == 1
    batches.write_text(text.replace(usual, _FAILING) + f'\n\nMARKS = "{marks}"\n' + _PLANTED)
    return shutil.make_archive(str(directory / "failing"), "zip", tree, "privrisk_spark")
