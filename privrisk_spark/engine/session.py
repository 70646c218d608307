"""The Spark session of a run: that of the frame a user gives, the one that is there, or a local one of its own.

Every other module takes the session of the frame it is given.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast, get_args

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import is_remote_only

from privrisk_spark.engine.embedded import build_embedded, is_embedded, is_installed
from privrisk_spark.engine.settings import (
    ENCRYPTION,
    JOINS,
    REQUIRED,
    as_required,
    check_encryption,
    encrypts,
    fixed,
    whole_rows_if_parsed,
)
from privrisk_spark.errors import ConfigError, Fault, listing
from privrisk_spark.policy.run import Engine
from privrisk_spark.storage.directories import is_file
from privrisk_spark.storage.documents import read
from privrisk_spark.storage.local_directory import LocalDirectory, places

_LOG = logging.getLogger(__name__)

ENGINE = "PRIVRISK_ENGINE"
"""Environment variable that overrides ``run.engine``; the option ``--engine`` sets it."""

ENGINES: tuple[str, ...] = get_args(Engine)

# What suits one machine; a cluster's own configuration comes with spark-submit.
_LAPTOP = {
    # Below this largest number Spark adds up the bytes of a batch anew for every row it hands to Python, which takes
    # longer than handing it over. What bounds a batch is its number of rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Driver and executor are one process: a machine that sleeps for minutes has not lost either.
    "spark.network.timeout": "604800s",
}


@contextmanager
def held(
    table: DataFrame | None,
    name: str,
    *,
    encrypt: bool,
    retries: bool = False,
    engine: Engine = "auto",
) -> Iterator[tuple[SparkSession, DataFrame | None]]:
    """Hold a session under the settings a run relies on, and the table as its own settings make it.

    Parameters
    ----------
    table : DataFrame or None
        None is a table the policy names, which is read by the session that is there, or by a new one.
    name : str
        Application name of a new session.
    encrypt : bool
        Whether the run's keys travel inside tasks: a session that is there must encrypt then what it keeps on local
        disks, and is only warned of otherwise. A new one always does.
    retries : bool
        See :func:`build`.
    engine : {"auto", "embedded", "spark"}
        See :func:`asked_engine`.

    Yields
    ------
    tuple of SparkSession and (DataFrame or None)

    Raises
    ------
    ConfigError
        Naming a setting the session lacks and does not let be set, or an engine that the session is not of.
    """
    check_frame(table)
    with ExitStack() as stack:
        spark = obtain(name, None if table is None else table.sparkSession, retries=retries, engine=engine)
        if encrypt:
            check_encryption(spark)
        elif not encrypts(spark):
            _LOG.warning(
                "%s is off in this session: Spark keeps values of the table readable on local disks while it runs",
                ENCRYPTION,
            )
        # PySpark's own log of failed expressions quotes values, and goes to standard error.
        PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
        given = None if table is None else fixed(table)
        stack.enter_context(as_required(spark))
        yield spark, None if given is None else whole_rows_if_parsed(given)


def check_frame(table: object) -> None:
    """Refuse a table that is no DataFrame of a session.

    Parameters
    ----------
    table : object
        Given in place of a policy's table; None if there is none.

    Raises
    ------
    ConfigError
    """
    if table is not None and not hasattr(table, "sparkSession"):
        got = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
        rule = f"must be a DataFrame of a Spark session. Got {got}"
        raise ConfigError([Fault("table", f"{rule}. Fix: make one, such as pr.session().read.csv(…)")])


def obtain(
    name: str, given: SparkSession | None = None, *, retries: bool = False, engine: Engine = "auto"
) -> SparkSession:
    """Return a given session, that of this process, or a new one.

    Parameters
    ----------
    name : str
        Application name of a new session.
    retries : bool
        See :func:`build`.
    engine : {"auto", "embedded", "spark"}
        See :func:`asked_engine`.

    Raises
    ------
    ConfigError
        If the session is not of the engine that is asked for.
    """
    asked = asked_engine(engine)
    spark = existing() if given is None else given
    if spark is None:
        spark = build(name, retries=retries, engine=asked)
        _LOG.info("engine: %s", engine_of(spark))
    elif asked != "auto" and is_embedded(spark) != (asked == "embedded"):
        rule = f"must be auto, or the engine of the session that this process has. Got '{asked}'"
        raise ConfigError([Fault("run.engine", rule)])
    return spark


def existing() -> SparkSession | None:
    """Return the session of this process, if there is one."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def asked_engine(engine: Engine) -> Engine:
    """Return the engine that a run asks for. The environment variable overrides the policy.

    Parameters
    ----------
    engine : {"auto", "embedded", "spark"}
        ``run.engine`` of the policy.

    Raises
    ------
    ConfigError
        If the variable has another value.
    """
    given = os.environ.get(ENGINE, "").strip()
    if not given:
        return engine
    if given not in ENGINES:
        raise ConfigError([Fault(ENGINE, f"must be one of {listing(ENGINES)}. Got {given[:60]!r}")])
    return cast("Engine", given)


def engine_of(spark: SparkSession) -> str:
    """Return what executes the plans of a session, in words."""
    if is_embedded(spark):
        return "embedded"
    return f"Spark ({spark.conf.get('spark.master', 'Connect')})"


def build(name: str, *, retries: bool = False, engine: Engine = "auto") -> SparkSession:
    """Return the session spark-submit prepared, or that of a server, or a new one of this machine.

    The first that applies: the server of ``SPARK_REMOTE``, what spark-submit started, a configured master, the
    embedded engine, local Spark. ``embedded`` and ``spark`` ask for one of the last two.

    Spark encrypts what it spills, shuffles and broadcasts to local disks, unless it is one of Spark Connect, whose
    server decides. Local Spark keeps it in a directory of this process (:mod:`privrisk_spark.storage.local_directory`).

    Parameters
    ----------
    name : str
        Application name.
    retries : bool
        Let new local Spark, too, try a failed task again.
    engine : {"auto", "embedded", "spark"}

    Raises
    ------
    ConfigError
        If the engine is not installed, or the environment says another.
    """
    remote, submitted = "SPARK_REMOTE" in os.environ, "SPARK_ENV_LOADED" in os.environ
    placed = remote or submitted or _has_master()
    if engine == "embedded" and placed:
        raise ConfigError(
            [Fault("run.engine", "must be auto or spark under spark-submit, SPARK_REMOTE or a master. Got 'embedded'")]
        )
    if engine == "embedded" and not is_installed():
        rule = "the embedded engine is not installed. Fix: pip install 'privrisk-spark[embedded]'"
        raise ConfigError([Fault("run.engine", rule)])
    settings = {**REQUIRED, **JOINS}
    if engine != "spark" and not placed and is_installed():
        return build_embedded(name, settings)
    if not remote and is_remote_only():
        rule = "Spark is not installed here, only its client. Fix: pip install 'privrisk-spark[embedded]' or '[spark]'"
        raise ConfigError([Fault("run.engine", rule)])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if not remote:
        settings[ENCRYPTION] = "true"
    with ExitStack() as stack:
        if not remote and not submitted:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
            settings |= _LAPTOP | {"spark.sql.shuffle.partitions": str(max(4, 2 * cores))}
            if retries:
                # Read where Java is started, so that a session which is there already keeps the master it has.
                os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[*,4] pyspark-shell")
            settings |= stack.enter_context(_own_directory())
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def _has_master() -> bool:
    """Return True if the environment or Spark's own configuration names a master."""
    if "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "") or "MASTER" in os.environ:
        return True
    places = [os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME") and f"{os.environ['SPARK_HOME']}/conf"]
    defaults = next((Path(place, "spark-defaults.conf") for place in places if place), None)
    lines = [] if defaults is None else (read(defaults) or b"").decode(errors="replace").splitlines()
    return any(line.replace("=", " ").split()[:1] == ["spark.master"] for line in lines)


def own_directory() -> Path:
    """Return a directory of this process for its owner alone, removed when it ends or, after a kill, by the next."""
    return _local_directory().paths[0]


def own_log() -> Path | None:
    """Return the file in which a session that this process built says what went wrong; None where there is none."""
    if not _local_directory.cache_info().currsize:
        return None
    log = _local_directory().log
    return log if is_file(log) else None


@functools.cache
def _local_directory() -> LocalDirectory:
    return LocalDirectory(places())


@contextmanager
def _own_directory() -> Iterator[dict[str, str]]:
    """Settings by which a session that starts meanwhile writes to a directory of this process alone."""
    directory = _local_directory()
    paths = [str(path) for path in directory.paths]
    options = f'"-Djava.io.tmpdir={paths[0]}"'
    if "SPARK_CONF_DIR" not in os.environ:
        from privrisk_spark.engine.java_logging import write_configuration

        options += f' "-Dlog4j2.configurationFile={write_configuration(directory)}"'
    # Spark prefers what the environment says to any setting; Java takes it from ours when it starts.
    before = os.environ.get("SPARK_LOCAL_DIRS")
    os.environ["SPARK_LOCAL_DIRS"] = ",".join(paths)
    try:
        # Beside the options of the user's own configuration, not in place of them.
        yield {"spark.driver.defaultJavaOptions": options}
    finally:
        if before is None:
            del os.environ["SPARK_LOCAL_DIRS"]
        else:
            os.environ["SPARK_LOCAL_DIRS"] = before
