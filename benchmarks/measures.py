"""Every measure of ``privrisk assess`` on the case study's table, against the time its records take to count.

The table is the case study's with two more columns: savings, and how many people a record stands for. It is held
against the register and a masked release of itself: quasi-identifiers recoded to one level each, savings with noise,
diagnoses kept, records in another order, each with its id. So there are all measures of identity disclosure (population
table, sampling weights, special uniques), of the classes' sensitive values, of numeric values by rank and deviation,
and of utility; but not concealment, whose graph of consistent records is for small tables.

Figures are the job's own stages: ``seconds`` are measure, compare and attack, ``floor_seconds`` are encode and count,
and the target of the ratio is 2. Nothing is written for each record.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure

RATIO_AT_MOST = 2.0
POLICY = Path(__file__).with_name("measures.yaml")
COUNTING, MEASURING = ("encode", "count"), ("measure", "compare", "identify", "attack", "tell")
LEVELS = {"city": 1, "race": 1, "income": 1}
"""Released level of each quasi-identifier that has a file; of birth dates, the year."""

NOISE = 0.1
"""Standard deviation of what is added to a record's savings, of that of the savings."""

KINDS = (
    *("k_map", "weighted_population", "special_uniques", "t_closeness", "rid", "sdid"),
    *("c_avg", "kl_divergence", "non_uniform_entropy", "classification_metric"),
)
"""Measures that show that nothing was left out, one or more of each kind."""

_COMPLETE = "complete"


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the assessment, then the release of the case study, whose count is told beside.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the register grows in proportion. The published sizes if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If a program fails or a family of measures is missing. A target missed is no failure.
    """
    rows = case_study.ROWS if rows is None else rows
    data = case_study.prepare(rows, cache)
    masked = prepare(data)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="measures-") as scratch:
        out = Path(scratch, "assessment")
        ran = run_product(data, masked, out)
        stages, measured = stage_seconds(out), number_of_measures(out)
        usual = Path(scratch, "case-study")
        case_study.run_product(data, usual)
        counting_there = case_study.stage_seconds(usual)["count"]
    seconds, floor = (sum(stages[name] for name in names) for names in (MEASURING, COUNTING))
    return [
        Result(
            name="measures",
            seconds=seconds,
            floor_seconds=floor,
            peak_mb=round(ran.peak_mb, 1),
            parameters={
                "rows": rows,
                "dictionary_rows": case_study.dictionary_rows(rows),
                "measures": measured,
                "ratio_at_most": RATIO_AT_MOST,
                "stages": stages,
                "outside_stages": round(ran.seconds - sum(stages.values()), 3),
                "total_seconds": round(ran.seconds, 3),
                "case_study_count": counting_there,
                "load_before": round(load, 2),
                "processors": len(os.sched_getaffinity(0)),
                "seed": case_study.SEED,
                "synthetic": True,
            },
        )
    ]


def run_product(data: Path, masked: Path, out: Path) -> Measured:
    """Run the assessment of the data, into ``out``."""
    command = [sys.executable, "-m", "privrisk_spark.cli.app", "assess", str(POLICY), "--output", str(out)]
    paths = {"CASE_STUDY_DATA": str(data), "MEASURES_DATA": str(masked)}
    return case_study.checked(
        "assessment",
        measure([*command, "--run-id", "measures"], environment=paths, directory=case_study.root()),
    )


def stage_seconds(out: Path) -> dict[str, float]:
    """Seconds of each stage as the assessment has them.

    Raises
    ------
    BenchmarkError
        If it lacks one.
    """
    path = out / "assessment.json"
    stages = json.loads(path.read_text(encoding="utf-8"))["stages"] if path.exists() else []
    seconds: dict[str, float] = {stage["name"]: stage["seconds"] for stage in stages}
    missing = {*COUNTING, *MEASURING}.difference(seconds)
    if missing:
        raise BenchmarkError(f"assessment.json must have the stages {', '.join(sorted(missing))}.")
    return seconds


def number_of_measures(out: Path) -> int:
    """Return how many measures there are.

    Raises
    ------
    BenchmarkError
        If one of :data:`KINDS` is missing.
    """
    measured = json.loads((out / "measures.json").read_text(encoding="utf-8"))
    missing = set(KINDS).difference(one["name"] for one in measured if one["value"] is not None)
    if missing:
        raise BenchmarkError(f"measures.json must hold {', '.join(sorted(missing))}.")
    return len(measured)


def prepare(data: Path) -> Path:
    """Return the directory of the table and its release, made of the case study's data if they are not there yet.

    Part ``i`` is drawn from the generator of the seed and ``i``, in the order of its rows.
    """
    masked = data.with_name(data.name.replace("case-study", "measures"))
    if (masked / _COMPLETE).exists():
        return masked
    shutil.rmtree(masked, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{masked.name}.", dir=masked.parent))
    try:
        (partial / "table").mkdir()
        (partial / "release").mkdir()
        labels = {name: _labels(data / f"{name}.csv", level) for name, level in LEVELS.items()}
        people = case_study.DICTIONARY_ROWS / case_study.ROWS
        for i, part in enumerate(sorted((data / "table").glob("*.parquet"))):
            rng = np.random.default_rng([case_study.SEED, i])
            table = _with_columns(pq.read_table(part), rng, people)
            pq.write_table(table, partial / "table" / part.name)
            pq.write_table(_released(table, rng, labels), partial / "release" / part.name)
        (partial / _COMPLETE).write_text("SYNTHETIC data: see the case study it is made of.\n", encoding="utf-8")
        partial.rename(masked)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return masked


def _labels(path: Path, level: int) -> pa.Table:
    """Value and label of each line of a hierarchy file."""
    options = pa.csv.ReadOptions(autogenerate_column_names=True)
    read = pa.csv.read_csv(path, read_options=options, parse_options=pa.csv.ParseOptions(delimiter=";"))
    return read.select([0, level]).rename_columns(["value", "label"])


def _with_columns(table: pa.Table, rng: np.random.Generator, people: float) -> pa.Table:
    """Savings of about a third of the income times a log-normal factor, in whole units; weights near their mean."""
    income = table.column("income").to_numpy()
    savings = np.rint((income + 5_000) / 3 * rng.lognormal(0.0, 1.0, len(income)))
    weight = np.round(people * rng.uniform(0.8, 1.2, len(income)), 3)
    return table.append_column("savings", pa.array(savings)).append_column("people", pa.array(weight))


def _released(table: pa.Table, rng: np.random.Generator, labels: Mapping[str, pa.Table]) -> pa.Table:
    """Recode every quasi-identifier to one level, add noise to the savings, and shuffle."""
    columns = {"person_id": table.column("person_id")}
    for name, of in labels.items():
        columns[name] = of.column("label").take(pc.index_in(table.column(name), value_set=of.column("value")))
    columns["birthdate"] = pc.cast(pc.year(table.column("birthdate")), pa.string())
    savings = table.column("savings").to_numpy()
    columns["savings"] = pa.array(np.rint(savings + rng.normal(0.0, NOISE * savings.std(), len(savings))))
    columns["diagnosis"] = table.column("diagnosis")
    return pa.table(columns).take(pa.array(rng.permutation(table.num_rows)))
