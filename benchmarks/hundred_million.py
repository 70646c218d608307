"""A table of 100,000,000 rows against the case study's register of 9,857,623 people: in how much memory, how fast.

There are more rows than people, so the rows are about people of another draw of the same country, made a chunk at a
time. The floor goes through the table file by file (``benchmarks.floor --in-pieces``), so neither program holds it.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import case_study
from benchmarks.case_study import Result
from privrisk_spark.pipelines.synthetic import population

ROWS = 100_000_000
RATIO_AT_MOST = 4.0
PEAK_MB_AT_MOST = 4 * 1024.0

_FILES = 64  # about as many rows in each as in the case study's
_PART = 1_562_500  # rows of a file at the full size; smaller tables have fewer files


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Release the table.

    Parameters
    ----------
    rows : int, optional
        Rows of the table; 100,000,000 if not given. The register grows in proportion.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One result. Both programs do the same rows, so its ratio is that of their seconds per row.

    Raises
    ------
    BenchmarkError
        If a program fails, or decides differently from the floor. A target missed is no failure.
    """
    products = {"hundred-million": case_study.run_product}
    rows = ROWS if rows is None else rows
    (found,) = case_study.against_floor(products, rows=rows, cache=cache, subject=SUBJECT)
    aims = {"ratio_at_most": RATIO_AT_MOST, "peak_mb_at_most": PEAK_MB_AT_MOST}
    return [replace(found, parameters=found.parameters | aims)]


def dictionary_rows(rows: int) -> int:
    """Return the size of the register that goes with a table of so many rows."""
    return max(1, round(rows * case_study.DICTIONARY_ROWS / ROWS))


def prepare(rows: int, cache: Path | None = None) -> Path:
    """Return the directory of the data of this size, generating it if it is not there yet.

    Like the case study's it is moved to its place when complete. Memory holds the chunk that is drawn, and four bytes a
    row.
    """
    people = dictionary_rows(rows)
    seed = case_study.SEED
    data = (cache or case_study.default_cache()) / f"hundred-million-{rows}-{people}-seed{seed}"
    if data.exists():
        return data
    data.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{data.name}.", dir=data.parent))
    try:
        whole, register = partial / "whole", partial / "register"
        files = min(_FILES, -(-rows // _PART))
        population.generate(whole, people=rows, rows=rows, seed=seed + 1, nulls=False, files=files)
        some = min(4, people)
        population.generate(register, people=people, rows=some, seed=seed, nulls=False, files=some)
        shutil.rmtree(whole / "population")
        (register / "population").rename(whole / "population")
        (whole / population.MANIFEST).rename(whole / "SYNTHETIC-table.md")
        (register / population.MANIFEST).rename(whole / "SYNTHETIC-population.md")
        whole.rename(data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return data


SUBJECT = replace(case_study.CASE_STUDY, prepare=prepare, floor_options=("--in-pieces",))
