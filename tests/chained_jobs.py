"""Commands one after the other in one Spark session, as a driver that spark-submit started; told is how each ended.

Run as a program with one argument: a JSON list of lists of words.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from privrisk_spark.cli.app import app


def ended(words: list[str]) -> int:
    """Do what a person would type after ``privrisk``; return the exit code."""
    try:
        app(args=words, prog_name="privrisk")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    SparkSession.builder.getOrCreate()
    for words in json.loads(sys.argv[1]):
        sys.stderr.write(f"{' '.join(words[:2])}: exit code {ended(words)}\n")
