"""Copies of this process that are killed at work.

A copy costs a fork, where a process of its own would cost the start of Java; and Java goes on with what it was told, as
a cluster does.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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
