"""``privrisk assess`` next to sdcMicro's ``freqCalc`` and ``indivRisk``: eight columns of Adult, sampling weights.

The assessment leaves out special uniques and the adversary, which sdcMicro's two functions do not compute either.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.case_study import Result
from benchmarks.jobs import COLUMNS
from benchmarks.references.common import FILES, build, compare_result, execute, privrisk, table

ROWS = 10_000
APPROXIMATION = 0.014
"""Relative tolerance of individual risk for classes of more than two records, which sdcMicro approximates."""

_TOLERANCE = 1e-9
_SETTINGS = {
    "table.record_id": "id", "table.weight": "weight", "columns.id.role": "identifier", "columns.weight.role": "weight",
    "assess.special_uniques": "null", "assess.adversary": "null",
}  # fmt: skip


def compare(source: Path, rows: int | None, cache: Path) -> tuple[Result, list[str]]:
    """Measure the risk of each record by this project and by sdcMicro.

    Parameters
    ----------
    source : Path
        Checkout of sdcMicro.
    rows : int, optional
        10,000 if not given.

    Returns
    -------
    Result
    list of str
        Differences of the answers.
    """
    rows = ROWS if rows is None else rows
    library = build(cache / "references-r", lambda place: _build(source, place))
    data = table(rows, cache, weighted=True)
    with tempfile.TemporaryDirectory(prefix="references-") as name:
        scratch = Path(name)
        load = os.getloadavg()[0]
        out, answer = scratch / "assessment", scratch / "risk.csv"
        ours = privrisk("assess", {**_SETTINGS, "table.path": data}, "--output", out)
        script = ("Rscript", FILES / "risk.R")
        reference = execute("sdcMicro", *script, data, answer, *COLUMNS, environment={"R_LIBS": str(library)})
        stages = json.loads((out / "assessment.json").read_text(encoding="utf-8"))["stages"]
        names = ["id", "class_size", "weighted_population", "individual_risk"]
        here = pq.read_table(out / "records", columns=names)
        there = pa.csv.read_csv(answer).rename_columns(names)
    found, deviation = differences(here, there)
    more = {"risk_deviation": deviation, "stages": {stage["name"]: stage["seconds"] for stage in stages}}
    return compare_result("references-sdcmicro", rows, load, ours, reference, found, **more), found


def differences(ours: pa.Table, reference: pa.Table) -> tuple[list[str], float]:
    """Compare the risk of each record.

    Parameters
    ----------
    ours, reference : pyarrow.Table
        Columns ``id``, ``class_size``, ``weighted_population`` and ``individual_risk``, in any order of the rows.

    Returns
    -------
    list of str
        One line for each column that differs.
    float
        Largest relative deviation of the individual risk from that of the reference.
    """
    here, there = _by_id(ours), _by_id(reference)
    if not np.array_equal(here["id"], there["id"]):
        return ["the two programs do not have the same records."], float("nan")
    size = there["class_size"]
    allowed = {
        "class_size": np.zeros(len(size)),
        "weighted_population": np.full(len(size), _TOLERANCE),
        "individual_risk": np.where(size > 2, APPROXIMATION, _TOLERANCE),
    }
    deviation = {name: np.abs(here[name] / there[name] - 1) for name in allowed}
    found = []
    for name, limit in allowed.items():
        wrong = int(np.count_nonzero(~(deviation[name] <= limit)))  # NaN is a difference
        if wrong:
            found.append(f"{name} differs in {wrong} of {len(size)} records, by up to {np.max(deviation[name]):.3g}.")
    return found, float(np.max(deviation["individual_risk"]))


def _by_id(records: pa.Table) -> dict[str, np.ndarray]:
    """Return the columns as arrays, in the order of the ids as numbers."""
    numbered = records.set_column(0, "id", records.column("id").cast(pa.int64())).sort_by("id")
    return {name: numbered.column(name).to_numpy() for name in numbered.column_names}


def _build(source: Path, place: Path) -> None:
    """Install sdcMicro into a library of R; ``prettydoc``, which only its reports need, is left out."""
    copy = place.with_name("source")
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
    for file in (copy / "NAMESPACE", copy / "DESCRIPTION"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "prettydoc" not in line), encoding="utf-8")
    place.mkdir()
    execute("sdcMicro", "R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={place}", copy)
