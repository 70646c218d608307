"""The Spark session of an entry point; every other module takes the session of the frame it is given."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from privrisk_spark.engine.fast import class_archive

# What a release relies on: not a user's choice.
_REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.caseSensitive": "true",
    # A type inferred from all directory names would change with one of them, and lose leading zeros.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}

# Workers take and give back the same large arrays all the time: kept, their pages are filled with zeros only once.
_WORKERS = {
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**31),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(2**26),
}

# What suits one machine; a cluster's own configuration comes with spark-submit.
_LAPTOP = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.python.daemon.module": "privrisk_spark.engine.fast.worker_daemon",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def build(name: str, *, encrypt: bool, retries: bool = False) -> SparkSession:
    """Return the session spark-submit prepared, or a local one.

    Parameters
    ----------
    name : str
        Application name.
    encrypt : bool
        Encrypt what Spark spills, shuffles and broadcasts to local disks; always on for a differentially private
        release, whose keys travel inside tasks.
    retries : bool
        Let a new local session, too, try a failed task again; tasks that are told to fail then are not logged.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    settings = dict(_REQUIRED)
    if "SPARK_REMOTE" not in os.environ:
        settings |= _WORKERS
    if "SPARK_ENV_LOADED" not in os.environ and "SPARK_REMOTE" not in os.environ:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Tasks do the heavy work outside Java, which had better start fast.
        archive = class_archive.stored()
        stored = ("", "") if archive is None else map(class_archive.using, (archive.spark, archive.launcher))
        java, launcher = (f"{class_archive.OPTIONS} {one}".rstrip() for one in stored)
        # For the small Java program that puts the real one's command together.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", launcher)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
        settings |= _LAPTOP | {"spark.sql.shuffle.partitions": str(max(4, 2 * cores))}
        settings["spark.driver.extraJavaOptions"] = java
        if retries:
            # Read where Java is started, so that a session which is there already keeps the master it has.
            os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[*,4] pyspark-shell")
            settings["spark.log.level"] = "FATAL"
    if encrypt:
        settings["spark.io.encryption.enabled"] = "true"
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
