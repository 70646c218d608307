"""Settings of a new session that only save seconds: how Java starts, who forks workers, how they keep memory."""

from __future__ import annotations

import os

from privrisk_spark.engine import fast
from privrisk_spark.engine.fast import class_archive

_ALLOCATORS = {
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**31),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(2**26),
}
"""Workers take and give back the same large arrays all the time: kept, their pages are filled with zeros only once."""

_DAEMON = {"spark.python.daemon.module": "privrisk_spark.engine.fast.worker_daemon"}


def settings(*, local: bool, reads: bool = False) -> dict[str, str]:
    """Return what is asked for, as settings of a session that is not built yet.

    Parameters
    ----------
    local : bool
        Whether this process starts Java itself, on this machine.
    reads : bool
        Whether Java will read many rows, which its second compiler makes two to three times as fast.

    Returns
    -------
    dict of setting to value
        Empty unless fast starts are asked for.
    """
    found: dict[str, str] = {}
    if fast.on("allocators"):
        found |= _ALLOCATORS
    if not local:
        return found
    if fast.on("workers"):
        found |= _DAEMON
    archive = class_archive.stored() if fast.on("classes") else None
    if archive is not None or fast.on("java"):
        # An archive fits the collector it was made with alone.
        stored = ("", "") if archive is None else map(class_archive.using, (archive.spark, archive.launcher))
        options = (class_archive.READING_OPTIONS if reads else class_archive.OPTIONS, class_archive.OPTIONS)
        java, launcher = (f"{one} {used}".rstrip() for one, used in zip(options, stored, strict=True))
        # For the small Java program that puts the real one's command together.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", launcher)
        found["spark.driver.extraJavaOptions"] = java
    return found
