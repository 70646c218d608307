"""Packages of Maven for tests: connectors of Spark for lake tables, Hadoop, and other versions of Spark.

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

HADOOP = {
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0": (
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"
    ),
    "org.junit.jupiter:junit-jupiter-api:5.13.4": "d1bb81abfd9e03418306b4e6a3390c8db52c58372e749c2980ac29f0c08278f1",
    "org.junit.platform:junit-platform-commons:1.13.4": (
        "1c25ca641ebaae44ff3ad21ca1b2ef68d0dd84bfeb07c4805ba7840899b77408"
    ),
    "org.opentest4j:opentest4j:1.3.0": "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",
    "org.apiguardian:apiguardian-api:1.1.2": "b509448ac506d607319f182537f0b35d71007582ec741832a1f111e5b5b70b38",
    "org.mockito:mockito-core:4.11.0": "4b909690cab288c761eb94c0bf0e814496cf3921d8affac84cd87774530351e5",
    "junit:junit:4.13.2": "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1": "4b48ea084e5232b9d79ebca1887b9de037b124931807cd60710748c2aee08cc9",
    "org.bouncycastle:bcprov-jdk18on:1.78.1": "add5915e6acfc6ab5836e1fd8a5e21c6488536a8c1f21f386eeb3bf280b702d7",
    "org.bouncycastle:bcutil-jdk18on:1.78.1": "d9fa56f97b0f761ce3bc8d9d74c5d7137a987bf5bd3abfe1003f9bafa45a1d2f",
}
"""Of the cluster of HDFS and YARN that tests start; with the jars of Spark."""

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
    for coordinates, digest in {**DELTA, **ICEBERG, **HADOOP}.items():
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
