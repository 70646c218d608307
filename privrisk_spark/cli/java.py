"""The command ``privrisk prepare-java``."""

from __future__ import annotations

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import EngineError


def prepare_java() -> None:
    """Store what Java loads at the start of a run (160 MB in the cache), so that runs with --fast start seconds sooner.

    Takes half a minute, once for each version of Java and Spark; nothing but speed depends on it.
    """
    from privrisk_spark.engine.failures import refuse_without_spark
    from privrisk_spark.engine.fast import class_archive

    with told_errors():
        refuse_without_spark()
        archive = class_archive.located()
        if archive is None:
            raise EngineError(
                "Java's classes cannot be stored: it needs Java and pyspark, no Java options in the environment, "
                "and a cache directory (XDG_CACHE_HOME) without blanks in its name."
            )
        class_archive.make(archive)
    echo(f"Java's classes are stored at {archive.directory}")
