"""The embedded engine: Sail, a server of Spark Connect inside this process, which needs no Java.

The server listens on a port of loopback, as it takes neither a Unix socket nor a token (SECURITY.md). It executes
Python functions in threads of this process. It keeps everything in memory and writes no temporary file: a query that
would have to fails.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from typing import TYPE_CHECKING, TypeVar

from privrisk_spark import extras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

T = TypeVar("T")
U = TypeVar("U")

_SETTINGS = {
    "SAIL_RUNTIME__TEMPORARY_FILES__MAX_SIZE": "0",
    # A notebook is idle for hours.
    "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(10**9),
}
_LOG = {"RUST_LOG": "off"}
"""Its log would go to standard error and may quote values; a user who sets the variable has it."""

_TURNS = threading.Semaphore(os.cpu_count() or 1)

_LOCK = threading.Lock()
_OPEN: list[SparkSession] = []
"""The session of this process; empty if there is none."""


def is_installed() -> bool:
    """Return True if the packages of the extra ``embedded`` are installed."""
    return extras.is_installed("pysail") and extras.is_installed("grpc")


def is_embedded(spark: SparkSession) -> bool:
    """Return True if a session is that of this process's embedded engine."""
    return any(spark is one for one in _OPEN)


def runs_here() -> bool:
    """Return True if tasks run in threads of this process."""
    return bool(_OPEN)


def take_turns(task: Callable[[Iterable[T]], Iterator[U]], batches: Iterable[T]) -> Iterator[U]:
    """Yield the results of a task. At most as many tasks compute at a time as the machine has processors.

    The engine starts all tasks of a query at once. Without this function, each task holds a chunk in memory.

    Parameters
    ----------
    task : callable
        Yields the results of the batches it is given.
    batches : iterable
        Input of the task. Another task may compute while this one waits for a batch.
    """

    def wait_for_batches() -> Iterator[T]:
        source = iter(batches)
        while True:
            _TURNS.release()
            try:
                batch = next(source)
            except StopIteration:
                return
            finally:
                _TURNS.acquire()
            yield batch

    _TURNS.acquire()
    computes = True
    try:
        for made in task(wait_for_batches()):
            computes = False
            _TURNS.release()
            yield made
            _TURNS.acquire()
            computes = True
    finally:
        if computes:  # False if the engine closes the task
            _TURNS.release()


def build_embedded(name: str, settings: Mapping[str, str]) -> SparkSession:
    """Return the session of the embedded engine, which ends with this process.

    Parameters
    ----------
    name : str
        Application name.
    settings : mapping of setting to value
    """
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    with _LOCK:
        if not _OPEN:
            for variables, value in {**_SETTINGS, **_LOG}.items():
                os.environ.setdefault(variables, value)
            server = SparkConnectServer("127.0.0.1", 0)
            server.start(background=True)
            _, port = server.listening_address
            builder = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").appName(name)
            for key, value in settings.items():
                builder = builder.config(key, value)
            spark = builder.create()
            spark.client.set_retry_policies([])  # a server of this process does not come back
            _keep_signals()
            _OPEN.append(spark)

            def end() -> None:
                # In this order: a client whose server is gone waits for minutes.
                _OPEN.clear()
                spark.stop()
                server.stop()

            atexit.register(end)
        return _OPEN[0]


def _keep_signals() -> None:
    """Take the signals back that end the server: it must answer until what was interrupted has cleaned up."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)
