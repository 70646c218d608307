"""A hospital's stays by rows: 5,667,004 of them, partitioned Parquet, leaves from the data, 112 lattice nodes.

The counterpart of the case study: nearly all vectors are distinct, so nothing that is shared between equal records
helps, and the table is its own dictionary, counted by the plan ``sorted``. The data is SYNTHETIC
(:mod:`benchmarks.hospital_data`), generated once and cached.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks import case_study, hospital_data
from benchmarks.case_study import Result, Subject
from benchmarks.hospital_floor import ATTRIBUTES
from benchmarks.measure import Measured

ROWS = 5_667_004
PERSONS = 2_000_000
SEED = 2026
POLICY = Path(__file__).with_name("hospital.yaml")


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the hospital.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; the persons are in proportion. 5,667,004 if not given; 200,000 are 70,583 persons.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If the floor or the product fails, or they decide differently.
    """
    rows = ROWS if rows is None else rows
    return case_study.against_floor({"hospital": run_product}, rows=rows, cache=cache, subject=HOSPITAL)


def persons(rows: int) -> int:
    """Return how many people a table of so many rows is about."""
    return max(1, round(rows * PERSONS / ROWS))


def prepare(rows: int, cache: Path | None = None) -> Path:
    """Return the directory of the data of this size, generating it beside its place if it is not there yet."""
    data = (cache or case_study.default_cache()) / f"hospital-{rows}-{persons(rows)}-seed{SEED}"
    if data.exists():
        return data
    data.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{data.name}.", dir=data.parent))
    try:
        hospital_data.generate(partial / "table", persons=persons(rows), rows=rows, seed=SEED)
        partial.rename(data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return data


def run_product(data: Path, out: Path) -> Measured:
    """Run the release job of the product on the same files, into ``out``."""
    return case_study.release(POLICY, data, out, [])


HOSPITAL = Subject(
    prepare=prepare,
    floor="benchmarks.hospital_floor",
    record_id="stay_id",
    attributes=ATTRIBUTES,
    lattice_nodes=112,
    utility_at_least=6,
)
