"""Jobs of a run are called by its stage in Spark's web interface, and the session has its own description after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from privrisk_spark.engine.labels import labels


def described(spark: SparkSession, name: str = "spark.job.description") -> str | None:
    """What the jobs of this moment are called, as a task knows it."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            context = TaskContext.get()
            assert context is not None
            yield pa.RecordBatch.from_pydict({"found": [context.getLocalProperty(name)]})

    found = spark.range(1).mapInArrow(look, "found string").toArrow().column("found")[0].as_py()
    return None if found is None else str(found)


@pytest.mark.on_spark("tasks of the embedded engine know no properties of their job")
def test_jobs_bear_the_name_of_their_stage_and_only_they(spark: SparkSession) -> None:
    labelled = labels(spark)
    assert described(spark) is None
    with labelled("privrisk r1: stage 1 of 7, read"):
        assert described(spark) == "privrisk r1: stage 1 of 7, read"
        assert described(spark, "spark.jobGroup.id") == "privrisk r1"
    assert described(spark) is None
    assert described(spark, "spark.jobGroup.id") is None
    with labelled("outer"), pytest.raises(ZeroDivisionError), labelled("inner"):
        raise ZeroDivisionError
    assert spark.conf.get("spark.job.description", None) is None
    spark.conf.set("spark.job.description", "somebody's notebook")
    spark.conf.set("spark.jobGroup.id", "notebook")
    try:
        with labelled("privrisk"):
            assert described(spark) == "privrisk"
        assert described(spark) == "somebody's notebook"
        assert described(spark, "spark.jobGroup.id") == "notebook"
    finally:
        spark.conf.unset("spark.job.description")
        spark.conf.unset("spark.jobGroup.id")


@pytest.mark.on_spark("the embedded engine counts no tasks")
def test_tasks_of_the_jobs_at_work_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Eight tasks, each of which waits until a file says that it may end."""
    place = str(tmp_path)

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        yield from batches
        while not Path(place, str(number)).exists():
            time.sleep(0.02)

    def until(expected: tuple[int, int] | None) -> None:
        end = time.monotonic() + 60
        while tasks() != expected:
            assert time.monotonic() < end, (tasks(), expected)
            time.sleep(0.05)

    with labels(spark)("privrisk") as tasks, ThreadPoolExecutor(1) as beside:
        assert tasks() is None
        job = beside.submit(lambda: spark.range(0, 8, 1, 8).mapInArrow(wait, "id long").toArrow().num_rows)
        until((0, 8))
        for number in (0, 1, 2):
            (tmp_path / str(number)).touch()
        until((3, 8))
        for number in range(3, 8):
            (tmp_path / str(number)).touch()
        assert job.result() == 8
        until(None)


@pytest.mark.on_spark("the embedded engine has no page of jobs")
def test_runs_of_two_threads_leave_the_session_its_own_description(spark: SparkSession) -> None:
    """Each opened while the other was open; the later one must not put back what the earlier one had set."""
    first, second = labels(spark)("privrisk a"), labels(spark)("privrisk b")
    with first:
        second.__enter__()
    assert spark.conf.get("spark.job.description") == "privrisk b"
    second.__exit__(None, None, None)
    assert spark.conf.get("spark.job.description", None) is None


class Client:
    """The part of a session of Spark Connect that labels ask, and a server that tells of queries."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []
        self.conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None, unset=lambda *_: None)
        self.registerProgressHandler, self.removeProgressHandler = self.handlers.append, self.handlers.remove

    def tell(self, query: str, *stages: tuple[int, int], done: bool = False) -> None:
        told = [SimpleNamespace(num_completed_tasks=ended, num_tasks=of) for ended, of in stages]
        for handler in self.handlers:
            handler(stages=told if stages else None, inflight_tasks=1, operation_id=query, done=done)


def test_a_server_of_spark_connect_tells_of_its_tasks() -> None:
    client: Any = type("Session", (Client,), {"__module__": "pyspark.sql.connect.session"})()
    with labels(client)("privrisk") as tasks:
        assert tasks() is None
        client.tell("a", (0, 8), (0, 0))
        client.tell("b", (1, 2))
        assert tasks() == (1, 10)
        client.tell("a", (8, 8), (3, 4))
        assert tasks() == (12, 14)
        client.tell("b", (2, 2), done=True)
        assert tasks() == (11, 12)
        client.tell("a", done=True)
        assert tasks() is None
    assert client.handlers == []
