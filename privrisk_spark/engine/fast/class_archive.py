"""Java's classes as one run loaded them, kept in a file that later runs map instead of loading and verifying classes.

Starting Java and Spark is a third of a small run, and most of it is the same twenty thousand classes again. Java can
write them to an archive at its exit (class data sharing), which takes it seconds: so it is made once, by
``privrisk prepare-java``, from a release of SYNTHETIC data, and holds nothing but code. Java itself ignores an archive
that does not fit the jars or the Java it meets; a run without one only starts later.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from privrisk_spark.engine import fast
from privrisk_spark.errors import EngineError

_COLLECTOR = "-XX:+UseSerialGC"

OPTIONS = f"-XX:TieredStopAtLevel=1 {_COLLECTOR} -XX:CompileThresholdScaling=4"
"""Of every Java program on one machine: one compiler tier for what runs often, and the smallest collector."""

READING_OPTIONS = _COLLECTOR
"""Of a Java that has many rows to read: both compiler tiers. The archives fit it, as they hold nothing compiled."""

_GIVEN = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Where a user gives Java options; an archive would be one more, and they may contradict each other."""

_PLAIN = re.compile(r"[\w./+@,:=-]+", re.ASCII)
"""Paths that no shell script on the way to Java takes apart."""

_ROWS = 1_000

_POLICY = """\
version: 1
run: {name: prepare-java}
table: {path: data/table, format: parquet, record_id: person_id}
columns:
  person_id: {role: identifier}
  name: {role: identifier}
  city: {role: quasi-identifier, hierarchy: {file: data/city.csv}}
  race: {role: quasi-identifier, hierarchy: {file: data/race.csv}}
  birthdate: {role: quasi-identifier, hierarchy: {dates: {steps: [day, month, year], domain: [1906-01-01, 2006-12-31]}}}
  income: {role: quasi-identifier, hierarchy: {file: data/income.csv}}
  diagnosis: {role: sensitive}
dictionary:
  kind: table
  path: data/population
  columns: {city: city, race: race, birthdate: {column: age, age_in: 2006, level: 2}}
risk: {model: I, sensitivity: {form: constant}}
utility: {measure: depth}
decision: {problem: min-risk, utility_at_least: 6}
output: {path: release, vault: vault}
"""


@dataclass(frozen=True)
class ClassArchive:
    """Where the archives of the Java, the jars and the options of this process lie, whether they exist or not.

    Attributes
    ----------
    directory : Path
        Its name changes with all of them, so an archive that does not fit is not found.
    """

    directory: Path

    @property
    def spark(self) -> Path:
        """Of the Java that is Spark."""
        return self.directory / "spark.jsa"

    @property
    def launcher(self) -> Path:
        """Of the small Java program that puts the command of the other together."""
        return self.directory / "launcher.jsa"

    @property
    def seal(self) -> Path:
        """What both files were when they were complete."""
        return self.directory / "seal.json"

    def facts(self) -> dict[str, list[int]]:
        """Size and time of change of both files, in bytes and ns."""
        found = {file.name: file.stat() for file in (self.spark, self.launcher)}
        return {name: [info.st_size, info.st_mtime_ns] for name, info in found.items()}

    def exists(self) -> bool:
        """Whether the archives are there, as they were made: Java checks their first bytes, and dies of the rest.

        They are code: they count only if nobody but the user could have written them.
        """
        try:
            info = self.directory.stat()
            sealed = json.loads(self.seal.read_text(encoding="utf-8")) == self.facts()
        except (OSError, ValueError):
            return False
        return sealed and info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def located() -> ClassArchive | None:
    """Where archives lie; None where Java, Spark or the place for them is not one that archives can be used with."""
    spark, java = _spark_home(), _java()
    if spark is None or java is None or not hasattr(os, "geteuid") or any(os.environ.get(name) for name in _GIVEN):
        return None
    try:
        jars = sorted(Path(spark, "jars").glob("*.jar"))
        files = [java, java.parent.parent / "release", *jars]
        facts = [(str(file), info.st_size, info.st_mtime_ns) for file in files if (info := file.stat())]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "privrisk_spark").absolute()
    except (OSError, RuntimeError):  # no such file, or nobody's home
        return None
    key = hashlib.sha256(repr((OPTIONS, os.environ.get("SPARK_CONF_DIR"), facts)).encode()).hexdigest()[:16]
    found = ClassArchive(cache / f"java-{key}")
    return found if jars and _PLAIN.fullmatch(str(found.directory)) else None


def stored() -> ClassArchive | None:
    """Archives that a run can use now."""
    found = located()
    return found if found is not None and found.exists() else None


def using(archive: Path) -> str:
    """Java options that map an archive, and say nothing if it does not fit."""
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable"


def make(archive: ClassArchive) -> None:
    """Run a release of synthetic data whose Java writes its classes at its exit, and move them to their place.

    Raises
    ------
    EngineError
        If the directory cannot be written, the release fails, or another process put its archives there meanwhile.
    """
    try:
        archive.directory.parent.mkdir(parents=True, exist_ok=True)
        # Beside their place, so that they can be moved there; with rights for the user alone.
        partial = Path(tempfile.mkdtemp(prefix=f"{archive.directory.name}.", dir=archive.directory.parent))
    except OSError as error:
        raise EngineError(f"{archive.directory.parent} cannot be written: {error.strerror}.") from error
    try:
        being = ClassArchive(partial)
        (partial / "policy.yaml").write_text(_POLICY, encoding="utf-8")
        record = "-XX:ArchiveClassesAtExit={} -Xlog:disable"
        given = {
            "SPARK_SUBMIT_OPTS": record.format(being.spark),
            "SPARK_LAUNCHER_OPTS": f"{OPTIONS} {record.format(being.launcher)}",
            # With the options of the runs that will map it.
            fast.SETTING: "1",
        }
        environment = os.environ | given | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        for command in (["synthesize", "data", "--rows", str(_ROWS)], ["release", "policy.yaml"]):
            # Java inherits the pipes, so this ends when Java has, not only the run.
            run = subprocess.run(
                [sys.executable, "-m", "privrisk_spark.cli.app", *command],
                cwd=partial,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode:
                last = (run.stderr.strip().splitlines() or ["a run failed"])[-1].removeprefix("privrisk: ")
                raise EngineError(f"Java's classes could not be stored: {last}")
        if not (being.spark.exists() and being.launcher.exists()):
            raise EngineError("Java's classes could not be stored: this Java wrote no archive.")
        for name in ("data", "release", "vault"):
            shutil.rmtree(partial / name, ignore_errors=True)
        (partial / "policy.yaml").unlink()
        being.seal.write_text(json.dumps(being.facts()), encoding="utf-8")
        with contextlib.suppress(FileNotFoundError):
            # What maps the earlier ones keeps them; what looks now finds none.
            os.replace(archive.directory, partial / "earlier")
        os.replace(partial, archive.directory)
        shutil.rmtree(archive.directory / "earlier", ignore_errors=True)
    except OSError as error:
        raise EngineError(f"Java's classes could not be stored: {error.strerror or type(error).__name__}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _java() -> Path | None:
    """The Java that Spark's scripts will start."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _spark_home() -> Path | None:
    """Spark as pyspark finds it."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    found = importlib.util.find_spec("pyspark")
    places = found.submodule_search_locations if found is not None else None
    return Path(next(iter(places))) if places else None
