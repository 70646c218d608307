"""Spark's own connectors for lake tables, from Maven, a Spark they fit and the oldest: which ones, how they are had.

``python tests/connector_packages.py DIRECTORY``, which is what ``make .venv/connectors`` does. It needs ``mvn``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

DELTA = {
    "io.delta:delta-spark_4.2_2.13:4.4.0": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
"""Coordinates and SHA-256 of the jars of Delta's connector, for the Spark of the environment."""

ICEBERG = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0": (
        "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242"
    ),
}
"""Of Iceberg's, which is there for Spark 4.1 at the newest; in Spark 4.2 its classes do not load."""

SPARK_OF_ICEBERG = "pyspark==4.1.4 --hash=sha256:bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73"

SPARKS = {
    "spark": SPARK_OF_ICEBERG,
    "spark-4.0": "pyspark==4.0.1 --hash=sha256:9d1f22d994f60369228397e3479003ffe2dd736ba79165003246ff7bd48e2c73",
}
"""Directories, and the Spark in each beside that of the environment; the second is the oldest that is supported."""

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jar(coordinates: str) -> str:
    """Return the name of a jar's file."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def fetch(directory: Path) -> None:
    """Make the directory hold the jars and, in directories of their own, the other versions of Spark."""
    if shutil.which("mvn") is None:
        sys.exit("Maven is needed for the connectors (Debian: apt-get install maven).")
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for coordinates, digest in {**DELTA, **ICEBERG}.items():
        copy = [
            "mvn",
            "-B",
            "-q",
            "-Dstyle.color=never",
            _COPY,
            f"-Dartifact={coordinates}",
            f"-DoutputDirectory={part.resolve()}",
        ]
        subprocess.run(copy, check=True)
        if hashlib.sha256((part / jar(coordinates)).read_bytes()).hexdigest() != digest:
            sys.exit(f"{coordinates} is not the jar that was pinned: its SHA-256 is another.")
    for place, package in SPARKS.items():
        asked = part / f"{place}.txt"
        asked.write_text(f"{package}\n")
        install = [str(Path(sys.executable).with_name("uv")), "pip", "install", "-q", "--compile-bytecode"]
        install += ["--python", sys.executable]
        install += ["--no-deps", "--require-hashes", "--target", str(part / place), "-r", str(asked)]
        subprocess.run(install, check=True)
    shutil.rmtree(directory, ignore_errors=True)
    part.rename(directory)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
