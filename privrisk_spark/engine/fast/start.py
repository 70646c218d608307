"""Starting a session while Python imports what the run will need, and without looking for garbage meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from pyspark.sql import SparkSession

from privrisk_spark.engine import fast
from privrisk_spark.engine.batches import collect_nothing


@contextmanager
def started(build: Callable[[], SparkSession], prepare: Callable[[], object] | None = None) -> Iterator[SparkSession]:
    """Start a session.

    Parameters
    ----------
    build : callable
        Starts it.
    prepare : callable, optional
        Imports what the run needs later. Called only if fast starts are asked for, in a thread of its own; who needs
        the same packages first, waits.

    Yields
    ------
    SparkSession
    """
    frozen = fast.on("collector")
    if frozen:
        # Imports make no garbage worth looking for.
        gc.disable()
    try:
        if not fast.on("imports"):
            spark = build()
            _thaw(frozen)
            yield spark
            return
        with ThreadPoolExecutor(3) as threads:
            building = threads.submit(build)
            preparing = threads.submit(_prepared, prepare, frozen)
            spark = building.result()
            # The first task finds a worker that has imported what it needs.
            warming: Future[None] = threads.submit(collect_nothing, spark)
            yield spark
        preparing.result()
        warming.result()
    finally:
        if frozen:
            gc.enable()


def _prepared(prepare: Callable[[], object] | None, frozen: bool) -> None:
    try:
        if prepare is not None:
            prepare()
    finally:
        _thaw(frozen)


def _thaw(frozen: bool) -> None:
    """Look for garbage again, but not among what was imported."""
    if frozen:
        gc.freeze()
        gc.enable()
