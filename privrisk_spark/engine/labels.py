"""What Spark's web interface and history server call the jobs of a run: run id and stage, as its report does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
"""Spark hands a session's settings on to its jobs as their properties, and this is the one with a job's description."""


def labels(spark: SparkSession) -> Callable[[str], AbstractContextManager[None]]:
    """Return what gives all jobs within a block a description; a session has the one it had after the block.

    Parameters
    ----------
    spark : SparkSession
    """
    return partial(_labelled, spark)


@contextmanager
def _labelled(spark: SparkSession, text: str) -> Iterator[None]:
    before = spark.conf.get(_DESCRIPTION, None)
    spark.conf.set(_DESCRIPTION, text)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_DESCRIPTION)
        else:
            spark.conf.set(_DESCRIPTION, before)
