"""What Spark's web interface and history server call the jobs of a run: run id and stage, as its report does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_DESCRIPTION, _GROUP = "spark.job.description", "spark.jobGroup.id"
"""Spark hands a session's settings on to its jobs as their properties: these are a job's description and its group."""


@dataclass
class _Labelled:
    """A session with open blocks: description and group it had before the first, and theirs in the order of opening."""

    before: tuple[str | None, str | None]
    texts: list[str] = field(default_factory=list)


_LOCK = threading.Lock()
_OPEN: WeakKeyDictionary[SparkSession, _Labelled] = WeakKeyDictionary()


def labels(spark: SparkSession) -> Callable[[str], AbstractContextManager[Callable[[], tuple[int, int] | None]]]:
    """Return what gives all jobs within a block a description; a session has the one it had after the block.

    What stands before the first colon, the run, is the jobs' group, by which they are listed and can be cancelled.

    Who enters the block gets what tells how many tasks of the session's jobs have ended, of how many; None where Spark
    does not say, as with Spark Connect or while no job runs.

    Where runs of several threads share a session, its jobs bear the description of the block opened last, and the
    session has its own again after the last of them.

    Parameters
    ----------
    spark : SparkSession
    """
    return partial(_labelled, spark)


@contextmanager
def _labelled(spark: SparkSession, text: str) -> Iterator[Callable[[], tuple[int, int] | None]]:
    with _LOCK:
        held = _OPEN.setdefault(spark, _Labelled((spark.conf.get(_DESCRIPTION, None), spark.conf.get(_GROUP, None))))
        held.texts.append(text)
    try:
        _call(spark, text, _group(text))
        yield partial(_tasks, spark)
    finally:
        with _LOCK:
            held.texts.remove(text)
            if held.texts:
                _call(spark, held.texts[-1], _group(held.texts[-1]))
            else:
                _OPEN.pop(spark, None)
                _call(spark, *held.before)


def _group(text: str) -> str:
    return text.partition(":")[0]


def _call(spark: SparkSession, description: str | None, group: str | None) -> None:
    for name, value in ((_DESCRIPTION, description), (_GROUP, group)):
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def _tasks(spark: SparkSession) -> tuple[int, int] | None:
    """Tasks of the Spark stages at work, and of those of their jobs that have ended."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
    stages = [tracker.getStageInfo(number) for job in jobs for number in job.stageIds]
    # Those that are skipped, as their output is there already, never begin.
    begun = [one for one in stages if one is not None and one.numActiveTasks + one.numCompletedTasks > 0]
    total = sum(one.numTasks for one in begun)
    return (sum(one.numCompletedTasks for one in begun), total) if total else None
