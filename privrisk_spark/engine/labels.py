"""What Spark's web interface and history server call the jobs of a run: run id and stage, as its report does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
"""Spark hands a session's settings on to its jobs as their properties, and this is the one with a job's description."""


@dataclass
class _Labelled:
    """A session with open blocks: the description it had before the first, and theirs in the order of opening."""

    before: str | None
    texts: list[str] = field(default_factory=list)


_LOCK = threading.Lock()
_OPEN: WeakKeyDictionary[SparkSession, _Labelled] = WeakKeyDictionary()


def labels(spark: SparkSession) -> Callable[[str], AbstractContextManager[None]]:
    """Return what gives all jobs within a block a description; a session has the one it had after the block.

    Where runs of several threads share a session, its jobs bear the description of the block opened last, and the
    session has its own again after the last of them.

    Parameters
    ----------
    spark : SparkSession
    """
    return partial(_labelled, spark)


@contextmanager
def _labelled(spark: SparkSession, text: str) -> Iterator[None]:
    with _LOCK:
        held = _OPEN.setdefault(spark, _Labelled(spark.conf.get(_DESCRIPTION, None)))
        held.texts.append(text)
        spark.conf.set(_DESCRIPTION, text)
    try:
        yield
    finally:
        with _LOCK:
            held.texts.remove(text)
            now = held.texts[-1] if held.texts else held.before
            if not held.texts:
                _OPEN.pop(spark, None)
            if now is None:
                spark.conf.unset(_DESCRIPTION)
            else:
                spark.conf.set(_DESCRIPTION, now)
