"""The published case study: 5,667,004 records against a register of 9,857,623 people, 300 lattice nodes.

The data is SYNTHETIC (``privrisk_spark.pipelines.synthetic.population``), generated once and cached. The floor and
the product run as child processes on the same files, each timed from its start to its end, and a ratio is reported only
if both decided the same for every record of a sample.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.floor import ATTRIBUTES
from benchmarks.measure import Measured, measure
from privrisk_spark.pipelines.synthetic import population

ROWS = 5_667_004
DICTIONARY_ROWS = 9_857_623
LATTICE_NODES = 300
UTILITY_AT_LEAST = 8
SEED = 2026
POLICY = Path(__file__).with_name("case-study.yaml")

Product = Callable[[Path, Path], Measured]
"""Runs a release of the data in one directory into another."""


@dataclass(frozen=True)
class Subject:
    """What a benchmark of the release job decides, and the floor that decides the same.

    Attributes
    ----------
    prepare : callable
        Makes the data of so many rows in a cache directory, if it is not there, and returns its directory.
    floor : str
        Module of the floor.
    record_id : str
        Column of the decisions: a letter and a number given out at random.
    floor_options : tuple of str
        Given to the floor after its arguments.
    """

    prepare: Callable[[int, Path | None], Path]
    floor: str
    record_id: str
    attributes: tuple[str, ...]
    lattice_nodes: int
    utility_at_least: float
    floor_options: tuple[str, ...] = ()


_FLOOR_RUNS = 3
_SAMPLE = 100_000  # records compared, about
_RISK_TOLERANCE = 1e-9  # relative; the order in which Φ is summed differs


class BenchmarkError(RuntimeError):
    """The benchmark cannot report: a program failed, or the two programs do not agree."""


@dataclass(frozen=True)
class Result:
    """One line of the benchmark table.

    Attributes
    ----------
    seconds : float
        Wall time of the product, from starting the process to its end.
    floor_seconds : float
        Median wall time of the floor, likewise.
    peak_mb : float
        Peak resident memory of the product's process tree, MiB.
    parameters : dict
        Sizes and circumstances.
    """

    name: str
    seconds: float
    floor_seconds: float
    peak_mb: float
    parameters: dict[str, Any]

    @property
    def ratio(self) -> float:
        """``seconds / floor_seconds``, of what was measured: rounding is for the table and the file."""
        return self.seconds / self.floor_seconds

    def to_json(self) -> dict[str, Any]:
        """Return what the file says: seconds of four significant digits, and the ratio of the unrounded ones."""
        return {
            "name": self.name,
            "seconds": float(f"{self.seconds:.4g}"),
            "floor_seconds": float(f"{self.floor_seconds:.4g}"),
            "ratio": float(f"{self.ratio:.4g}"),
            "peak_mb": self.peak_mb,
            "parameters": self.parameters,
        }


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the register grows in proportion. The published sizes if not given.
    cache : Path, optional
        Where generated data is kept; ``$XDG_CACHE_HOME/privrisk_spark`` if not given.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If the floor or the product fails, or they decide differently.
    """
    return against_floor({"case-study": run_product}, rows=ROWS if rows is None else rows, cache=cache)


def run_both(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study on the embedded engine and on local Spark, against one floor.

    Parameters and errors are those of :func:`run`.

    Returns
    -------
    list of Result
        Of the embedded engine, then of Spark.
    """
    products: dict[str, Product] = {"case-study": run_product, "case-study-spark": run_on_spark}
    return against_floor(products, rows=ROWS if rows is None else rows, cache=cache)


def against_floor(
    products: Mapping[str, Product], *, rows: int, cache: Path | None = None, subject: Subject | None = None
) -> list[Result]:
    """Run the floor, then programs on the same data, and compare what each decided with the floor.

    Parameters
    ----------
    products : mapping of name to Product
        Run in this order.
    rows : int
        Rows of the table.
    cache : Path, optional
        As for :func:`run`.
    subject : Subject, optional
        The case study if not given.

    Returns
    -------
    list of Result
        One for each program.

    Raises
    ------
    BenchmarkError
        If a program fails, or decides differently.
    """
    subject = subject or CASE_STUDY
    data = subject.prepare(rows, cache)
    results = []
    with tempfile.TemporaryDirectory(prefix="case-study-") as scratch:
        load = os.getloadavg()[0]
        lean, fast = _run_floor(subject, data, Path(scratch, "floor"))
        floor = statistics.median(run.seconds for run in fast)
        for name, product in products.items():
            out = Path(scratch, "product")
            out.mkdir()
            ran = product(data, out)
            compared = compare(Path(scratch, "floor", "decisions"), _decisions_in(out), rows=rows, subject=subject)
            stages = stage_seconds(out)
            shutil.rmtree(out)
            results.append(
                Result(
                    name=name,
                    seconds=ran.seconds,
                    floor_seconds=floor,
                    peak_mb=round(ran.peak_mb, 1),
                    parameters={
                        "rows": rows,
                        "dictionary_rows": lean["dictionary_rows"],
                        "lattice_nodes": subject.lattice_nodes,
                        "utility_at_least": subject.utility_at_least,
                        "seed": SEED,
                        "synthetic": True,
                        "processors": len(os.sched_getaffinity(0)),
                        "load_before": round(load, 2),
                        "modules_compiled": modules_compiled(),
                        "records_compared": compared,
                        "mean_risk": lean["mean_risk"],
                        "stages": stages,
                        "outside_stages": round(ran.seconds - sum(stages.values()), 3),
                        "floor_all_seconds": [round(run.seconds, 3) for run in fast],
                        "floor_phases": lean["seconds"],
                        "floor_peak_mb": round(max(run.peak_mb for run in fast), 1),
                    },
                )
            )
    return results


def stage_seconds(out: Path) -> dict[str, float]:
    """Seconds of each stage as the product's vault has them; what they leave of the total is start and end.

    Raises
    ------
    BenchmarkError
        If the vault has no summary.
    """
    path = out / "vault" / "summary.json"
    if not path.exists():
        raise BenchmarkError("The product must write vault/summary.json.")
    seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))["seconds"]
    return seconds


def modules_compiled() -> bool:
    """Whether child processes find the big packages compiled; they start several seconds later where not."""
    specs = [importlib.util.find_spec(name) for name in ("numpy", "pandas", "pyarrow", "great_expectations")]
    return all(spec is not None and spec.cached is not None and Path(spec.cached).exists() for spec in specs)


def dictionary_rows(rows: int) -> int:
    """Return the size of the register that goes with a table of so many rows."""
    return round(rows * DICTIONARY_ROWS / ROWS)


def default_cache() -> Path:
    """Return ``$XDG_CACHE_HOME/privrisk_spark``, or ``~/.cache/privrisk_spark``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "privrisk_spark")


def prepare(rows: int, cache: Path | None = None) -> Path:
    """Return the directory of the data of this size, generating it if it is not there yet.

    It is generated beside its place and moved there when complete, so an interrupted run leaves nothing to
    trust.
    """
    people = dictionary_rows(rows)
    data = (cache or default_cache()) / f"case-study-{rows}-{people}-seed{SEED}"
    manifest = data / population.MANIFEST
    if manifest.exists() and population.COMPLETE in manifest.read_text(encoding="utf-8"):
        return data
    shutil.rmtree(data, ignore_errors=True)
    data.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{data.name}.", dir=data.parent))
    try:
        population.generate(partial, people=people, rows=rows, seed=SEED, nulls=False, files=min(4, rows))
        partial.rename(data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return data


CASE_STUDY = Subject(prepare, "benchmarks.floor", "person_id", ATTRIBUTES, LATTICE_NODES, UTILITY_AT_LEAST)


def _run_floor(subject: Subject, data: Path, out: Path) -> tuple[dict[str, Any], list[Measured]]:
    """Run the floor several times: what it printed last, and all measurements."""
    arguments = [str(data), str(out), str(subject.utility_at_least), *subject.floor_options]
    command = [sys.executable, "-m", subject.floor, *arguments]
    runs = [checked("floor", measure(command, directory=root())) for _ in range(_FLOOR_RUNS)]
    lean: dict[str, Any] = json.loads(runs[-1].output)
    return lean, runs


def run_product(data: Path, out: Path) -> Measured:
    """Run the release job of the product on the same files, into ``out``, on the embedded engine."""
    return release(POLICY, data, out, ["--engine", "embedded"])


def run_on_spark(data: Path, out: Path) -> Measured:
    """Run it on local Spark with its settings as they are."""
    return release(POLICY, data, out, ["--engine", "spark"])


def release(
    policy: Path, data: Path, out: Path, options: Sequence[str], environment: Mapping[str, str] | None = None
) -> Measured:
    """Run the release job by a policy that has data and output in its environment, and more in it where given."""
    command = [sys.executable, "-m", "privrisk_spark.cli.app", "release", str(policy), "--run-id", policy.stem]
    places = {"CASE_STUDY_DATA": str(data), "CASE_STUDY_OUT": str(out)}
    return checked(
        "product", measure([*command, *options], environment={**places, **(environment or {})}, directory=root())
    )


def checked(program: str, measured: Measured) -> Measured:
    """Return what was measured.

    Raises
    ------
    BenchmarkError
        If the program failed.
    """
    if measured.exit_code:
        raise BenchmarkError(f"The {program} ended with exit code {measured.exit_code}: {measured.errors.strip()}")
    return measured


def root() -> Path:
    """Return the directory that holds the packages and the jobs."""
    return Path(__file__).resolve().parent.parent


def _decisions_in(out: Path) -> Path:
    """Return the one ``decisions`` directory below the product's output."""
    found = sorted(path for path in out.rglob("decisions") if path.is_dir())
    if len(found) != 1:
        raise BenchmarkError(f"The product must write one 'decisions' directory. Found {len(found)}.")
    return found[0]


def compare(floor: Path, product: Path, *, rows: int, sample: int = _SAMPLE, subject: Subject = CASE_STUDY) -> int:
    """Compare two directories of decisions on the same sample of records.

    Levels, utility and count must be equal, risk within 1e-9 relative. The sample are the records whose
    number is a multiple of a step; numbers were given out at random.

    Parameters
    ----------
    floor, product : Path
        Parquet with the record id, ``level_*``, risk, utility, consistent.
    rows : int
        Rows each must have.
    sample : int
        About how many records to compare.
    subject : Subject
        What was decided.

    Returns
    -------
    int
        Records compared.

    Raises
    ------
    BenchmarkError
        If a row is missing or any value differs; names columns and numbers of rows, no values.
    """
    for name, directory in (("floor", floor), ("product", product)):
        have = sum(pq.ParquetFile(part).metadata.num_rows for part in _parts(directory))
        if have != rows:
            raise BenchmarkError(f"The {name} decided {have} rows instead of {rows}.")
    step = max(rows // sample, 1)
    ours, theirs = _sampled(floor, step, subject), _sampled(product, step, subject)
    identity = subject.record_id
    if not np.array_equal(ours[identity], theirs[identity]):
        raise BenchmarkError("The floor and the product do not hold the same records.")
    wrong = {}
    for name, expected in ours.items():
        given = theirs[name]
        allowed = _RISK_TOLERANCE * np.abs(expected) if name == "risk" else 0
        equal = np.abs(given - expected) <= allowed  # written so that NaN is a difference
        if not equal.all():
            wrong[name] = int(np.count_nonzero(~equal))
    if wrong:
        columns = ", ".join(f"{name} in {count}" for name, count in wrong.items())
        raise BenchmarkError(f"Of {len(ours[identity])} records compared, these differ: {columns}.")
    return len(ours[identity])


def _parts(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.parquet"))


def _sampled(directory: Path, step: int, subject: Subject) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the sampled records, ordered by record."""
    identity = subject.record_id
    names = [identity, *(f"level_{name}" for name in subject.attributes), "risk", "utility", "consistent"]
    pieces = []
    for part in _parts(directory):
        rows = pq.ParquetFile(part).read(names)
        number = pc.cast(pc.utf8_slice_codeunits(rows[identity], 1), pa.int64()).to_numpy()
        pieces.append(rows.set_column(0, identity, pa.array(number)).filter(pa.array(number % step == 0)))
    table = pa.concat_tables(pieces, promote_options="permissive").sort_by(identity)
    return {name: table[name].to_numpy() for name in names}
