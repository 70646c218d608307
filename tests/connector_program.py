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


def answer(spark: SparkSession, sql: str) -> tuple[list[dict[str, Any]] | None, str | None]:
    try:
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
