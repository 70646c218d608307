"""What :mod:`connectors` starts: a Spark session that answers statements on its standard input, one a line."""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

USUAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
}


def described(spark: SparkSession, name: str) -> list[dict[str, Any]]:
    """What a manifest lists of a table of this session's catalog, and how a budget account and an output know it."""
    from privrisk_spark.policy.policy import ReleaseTable
    from privrisk_spark.tables.completeness import collect_files_read
    from privrisk_spark.tables.opening import read
    from privrisk_spark.tables.sources import files_only_spark_knows, files_read

    table = ReleaseTable(catalog=name)
    frame = read(spark, table, key="table", private=True)
    found = collect_files_read(spark, table, frame, key="table")
    assert found is not None
    return [
        {
            "manifest": {"files": found.expected, **(found.version or {})},
            "account": files_read(table, frame),
            "output": [str(place) for place in files_only_spark_knows(spark, None, {"table": table})["table"]],
        }
    ]


def answer(spark: SparkSession, sql: str) -> tuple[list[dict[str, Any]] | None, str | None]:
    try:
        if sql.startswith("SOURCE "):
            return described(spark, sql.removeprefix("SOURCE ")), None
        frame = spark.sql(sql)
        # What is said of other statements may be nothing, or nothing that Arrow takes.
        return (frame.toArrow().to_pylist() if sql.startswith(("SELECT", "DESCRIBE")) else []), None
    except PySparkException as error:
        return None, str(error)
    except Exception as error:  # of Java, where the connector's own throws
        return None, f"{type(error).__name__}: {error}"


def main(settings: dict[str, str]) -> None:
    # What Java prints does not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    builder = SparkSession.builder.master("local[1]").appName("connector")
    for name, value in {**USUAL, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        pickle.dump(answer(spark, json.loads(line)), answers)
        answers.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
