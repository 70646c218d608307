"""Releases that end before their time: what they are of, what they left, and copies of this process that are killed.

A copy costs a fork, where a process of its own would cost the start of Java; and Java goes on with what it was told, as
a cluster does.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_KEPT: list[Any] = []
"""What a copy must not collect: closing the parent's connection would close it for the parent too."""


@dataclass
class Copy:
    """A copy of this process at work."""

    pid: int

    def kill(self) -> bool:
        """Kill it; tell whether it was still at work."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        return os.WIFSIGNALED(status)


def copied(spark: SparkSession, work: Callable[[], int]) -> Copy:
    """Do work in a copy of this process, with connections of its own to Spark's Java; its result is the exit code."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    with warnings.catch_warnings():
        # From 3.12 on Python warns of forks of processes with threads: none of them is needed in the copy.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return Copy(pid)
    code = 99
    try:
        _KEPT.extend([list(client.deque), dict(vars(client.thread_connection))])
        client.deque.clear()
        vars(client.thread_connection).clear()
        code = work()
    finally:
        os._exit(code)


def killed_after(copy: Copy, seconds: float) -> bool:
    """Kill a copy after a while; tell whether it was still at work."""
    time.sleep(seconds)
    return copy.kill()


HEAD = """
version: 1
run: {{name: killed}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}}}
columns:
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [10, 50], domain: [0, 99]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}}}
output: {{path: out, vault: vault, files: 2}}
"""
KINDS = {
    "risk": "decision: {{problem: min-risk, utility_at_least: 1}}\n",
    "dp": """
guarantee:
  kind: dp
  epsilon: {{admit: 1, keep: 1}}
  delta: 1e-6
  public_rows: 4000
  schemes: [[1, 0], [2, 0], [1, 1]]
  objective: {{lambda: 0.001, tau: 1, phi_min: 1}}
  key: env:RELEASE_KEY
ledger: {{url: "sqlite:///{root}/ledger.db", lineage: killed, cap: {{epsilon: 2, delta: 1e-5}}}}
""",
}
CHARGED = [("reserved", "2"), ("bound", "2"), ("pinned", "2"), ("committed", "2")]


def policy(kind: str, table: Path, root: Path) -> str:
    root.mkdir()
    (root / "policy.yaml").write_text((HEAD + KINDS[kind]).format(table=table, root=root))
    return str(root / "policy.yaml")


def digests(root: Path) -> dict[str, str]:
    data = root / "out" / "releases" / "r1" / "data"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())}


def charged(root: Path) -> list[tuple[str, str]]:
    if not (root / "ledger.db").exists():
        return []
    ledger = sqlite3.connect(f"file:{root}/ledger.db?mode=ro", uri=True)
    try:
        return ledger.execute("select state, epsilon from events order by sequence").fetchall()
    finally:
        ledger.close()
