"""What Spark's web interface and history server call the jobs of a run: run id and stage, as its report does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from privrisk_spark.engine.embedded import is_embedded

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import StageInfo

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
    does not say, as while no job runs. A server of Spark Connect says it of its own accord every other second.

    Where runs of several threads share a session, its jobs bear the description of the block opened last, and the
    session has its own again after the last of them.
    """
    return partial(_labelled, spark)


@contextmanager
def _labelled(spark: SparkSession, text: str) -> Iterator[Callable[[], tuple[int, int] | None]]:
    if is_embedded(spark):  # it has no page that lists jobs
        yield lambda: None
        return
    with _LOCK:
        held = _OPEN.setdefault(spark, _Labelled((spark.conf.get(_DESCRIPTION, None), spark.conf.get(_GROUP, None))))
        held.texts.append(text)
    told: Any = _Told() if type(spark).__module__.startswith("pyspark.sql.connect") else None
    try:
        _call(spark, text, _group(text))
        if told is not None:
            spark.registerProgressHandler(told)
        yield partial(_tasks, spark) if told is None else told.tasks
    finally:
        if told is not None:
            spark.removeProgressHandler(told)
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


class _Told:
    """What a server of Spark Connect has told of the stages of the queries at work."""

    def __init__(self) -> None:
        self._of: dict[str | None, tuple[int, int]] = {}

    def __call__(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        """Take what the server says, from whatever thread waits for its answer."""
        del inflight_tasks
        begun = [one for one in stages or () if one.num_tasks > 0]
        if done or not begun:
            self._of.pop(operation_id, None)
            return
        self._of[operation_id] = (sum(one.num_completed_tasks for one in begun), sum(one.num_tasks for one in begun))

    def tasks(self) -> tuple[int, int] | None:
        """Tasks that have ended, and all of them."""
        found = list(self._of.values())
        return (sum(ended for ended, _ in found), sum(of for _, of in found)) if found else None


def _tasks(spark: SparkSession) -> tuple[int, int] | None:
    """Tasks of the Spark stages at work, and of those of their jobs that have ended."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
    stages = [tracker.getStageInfo(number) for job in jobs for number in job.stageIds]
    # Those that are skipped, as their output is there already, never begin.
    begun = [one for one in stages if one is not None and one.numActiveTasks + one.numCompletedTasks > 0]
    total = sum(one.numTasks for one in begun)
    return (sum(one.numCompletedTasks for one in begun), total) if total else None
