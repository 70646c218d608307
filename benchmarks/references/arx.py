"""Optimal k-anonymity next to ARX: eight columns of Adult, k = 5, 2 % suppression, loss, from CSV to CSV."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from benchmarks.case_study import Result
from benchmarks.jobs import COLUMNS
from benchmarks.references.common import FILES, POLICY, adult, build, compare_result, execute, privrisk, table
from privrisk_spark.hierarchies.builders import build as build_hierarchy
from privrisk_spark.policy import reading
from privrisk_spark.policy.policy import Policy

ROWS = 30_162
K = 5
LIMIT = 0.02

_JARS = (
    "org.apache.pdfbox:pdfbox-app:2.0.1",
    "org.apache.hadoop:hadoop-core:1.2.1",
    "org.apache.poi:poi-ooxml-schemas:3.10-FINAL",
)
"""Libraries that ARX's repository does not contain."""

_LOSS_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Answer:
    """An anonymous table, as its program reports it and as its file contains it.

    Attributes
    ----------
    classes : dict of tuple of str to int
        Rows of each distinct record of the released quasi-identifiers; suppressed rows are those of ``*`` only.
    """

    levels: dict[str, int]
    loss: float
    classes: dict[tuple[str, ...], int]

    @property
    def suppressed(self) -> int:
        """Number of suppressed rows."""
        return self.classes.get(("*",) * len(COLUMNS), 0)

    @property
    def k(self) -> int:
        """Size of the smallest class that is not suppressed."""
        return min((size for record, size in self.classes.items() if set(record) != {"*"}), default=0)


def compare(source: Path, rows: int | None, cache: Path) -> tuple[Result, list[str]]:
    """Release the table by this project and by ARX.

    Parameters
    ----------
    source : Path
        Checkout of ARX.
    rows : int, optional
        30,162 if not given.

    Returns
    -------
    Result
    list of str
        Differences of the answers.
    """
    rows = ROWS if rows is None else rows
    program = build(cache / "references-arx", lambda place: _build(source, place))
    data = table(rows, cache)
    with tempfile.TemporaryDirectory(prefix="references-") as name:
        scratch = Path(name)
        write_hierarchies(reading.load([POLICY], environment=adult()), scratch / "hierarchies")
        classpath = f"{program}/classes:{program}/jars/*"
        execute("ARX", "javac", "-cp", classpath, "-d", scratch / "classes", FILES / "Anonymize.java")
        load = os.getloadavg()[0]
        places = {"output.path": scratch / "out", "output.vault": scratch / "vault", "table.path": data}
        settings = {"guarantee.k": K, "guarantee.suppression_limit": LIMIT, "output.format": "csv", **places}
        ours = privrisk("release", settings)
        java = ("java", "-cp", f"{scratch}/classes:{classpath}", "Anonymize")
        out = scratch / "arx.csv"
        reference = execute("ARX", *java, data, scratch / "hierarchies", out, str(K), str(LIMIT), *COLUMNS)
        summary = json.loads((scratch / "vault" / "summary.json").read_text(encoding="utf-8"))
        recoding, told = summary["recoding"], json.loads(reference.output)
        here = _answer(
            sorted((scratch / "out").rglob("data/*.csv")), ",", recoding["levels"], recoding["metric"]["value"]
        )
        there = _answer([out], ";", told["levels"], told["loss"])
    found = differences(here, there)
    more = {
        "levels": list(here.levels.values()),
        "suppressed": here.suppressed,
        "k": here.k,
        "loss": here.loss,
        "stages": summary["seconds"],
        "reference_search_seconds": told["search_seconds"],
    }
    return compare_result("references-arx", rows, load, ours, reference, found, **more), found


def write_hierarchies(policy: Policy, to: Path) -> None:
    """Write the hierarchies of a policy for ARX: ``NAME.csv`` has the labels of one value at every level in each line.

    Parameters
    ----------
    to : Path
        Directory to make.
    """
    to.mkdir()
    for name, column in policy.quasi_identifiers.items():
        hierarchy = build_hierarchy(column.hierarchy, name)
        paths = hierarchy.ancestor[: hierarchy.n_leaves].tolist()
        lines = [";".join(str(hierarchy.labels[node]) for node in path) + "\n" for path in paths]
        (to / f"{name}.csv").write_text("".join(lines), encoding="utf-8")


def differences(ours: Answer, reference: Answer) -> list[str]:
    """Return one line for each difference of two answers; levels may differ if several are optimal."""
    found = []
    if abs(ours.loss - reference.loss) > _LOSS_TOLERANCE:
        found.append(
            f"the least loss is {reference.loss} by ARX at {reference.levels}, {ours.loss} here at {ours.levels}."
        )
    if ours.suppressed != reference.suppressed:
        found.append(f"ARX suppresses {reference.suppressed} rows, this project {ours.suppressed}.")
    if min(ours.k, reference.k) < K:
        found.append(f"the smallest class has {reference.k} rows by ARX, {ours.k} here. It must have {K}.")
    if ours.levels == reference.levels and ours.classes != reference.classes:
        found.append("the levels are equal, but the released classes differ.")
    return found


def _answer(files: Sequence[Path], separator: str, levels: dict[str, int], loss: float) -> Answer:
    """Count the records of a release in CSV."""
    parse = pa.csv.ParseOptions(delimiter=separator)
    convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()), include_columns=list(COLUMNS))
    read = [pa.csv.read_csv(file, parse_options=parse, convert_options=convert) for file in files]
    counted = pa.concat_tables(read).group_by(list(COLUMNS)).aggregate([([], "count_all")])
    columns: list[list[Any]] = [counted.column(name).to_pylist() for name in COLUMNS]
    sizes = counted.column("count_all").to_pylist()
    return Answer(levels, loss, dict(zip(zip(*columns, strict=True), sizes, strict=True)))


def _build(source: Path, place: Path) -> None:
    """Compile ARX without its application, with the libraries of its repository and three of Maven."""
    jars, sources = place / "jars", place / "sources.txt"
    jars.mkdir(parents=True)
    for jar in (source / "lib").rglob("*.jar"):
        shutil.copy(jar, jars)
    for artifact in _JARS:
        copy = [f"-Dartifact={artifact}", f"-DoutputDirectory={jars}"]
        execute("ARX", "mvn", "--quiet", "--batch-mode", "dependency:copy", *copy)
    sources.write_text("\n".join(map(str, (source / "src" / "main").rglob("*.java"))), encoding="utf-8")
    options = ("-nowarn", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", place / "classes")
    execute("ARX", "javac", *options, f"@{sources}")
