"""The case study at one, two and four times its size: time should grow no faster than rows, memory hardly at all.

Each size is measured against the floor on the same files, in the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import case_study
from benchmarks.case_study import Result

FACTORS = (1, 2, 4)
TIME_AT_MOST = 1.1
MEMORY_AT_MOST = 1.2


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run the case study at each size.

    Parameters
    ----------
    rows : int, optional
        Rows of the first size; the published ones if not given.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One for each size; the parameters hold ``time_to_linear`` and ``memory_to_first``, see :func:`relative`.

    Raises
    ------
    BenchmarkError
        If a program fails, or the floor and the product decide differently. A target missed is no failure.
    """
    results: list[Result] = []
    for size in sizes(case_study.ROWS if rows is None else rows):
        results += case_study.against_floor({"growth": case_study.run_product}, rows=size, cache=cache)
    return relative(results)


def sizes(rows: int) -> list[int]:
    """Return the rows of each size."""
    return [rows * factor for factor in FACTORS]


def relative(results: Sequence[Result]) -> list[Result]:
    """Add to each result how it compares with the first, smallest one.

    ``time_to_linear`` is seconds per row, divided by those of the first; ``memory_to_first`` is peak memory, likewise.
    """
    first = results[0]
    compared = []
    for result in results:
        rows = result.parameters["rows"] / first.parameters["rows"]
        added = {
            "time_to_linear": round(result.seconds / first.seconds / rows, 3),
            "time_to_linear_at_most": TIME_AT_MOST,
            "memory_to_first": round(result.peak_mb / first.peak_mb, 3),
            "memory_to_first_at_most": MEMORY_AT_MOST,
        }
        compared.append(replace(result, parameters=result.parameters | added))
    return compared
