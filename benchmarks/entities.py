"""Counting persons by the plan ``shuffle``, which needs no memory for cells or vectors, at one and four times the size.

The visits are those of ``persons``. The floor is the product again, by rows and the same plan; what has to grow no
faster than rows is the time by persons.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import case_study, growth, persons
from benchmarks.case_study import Result

FACTORS = (1, 4)
TIME_AT_MOST = 1.2

_OPTIONS = ("--set=counting.plan=shuffle",)


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Release each size by rows, then by persons.

    Parameters
    ----------
    rows : int, optional
        Visits of the first size; 5,667,004 if not given. There are 5.667 a person.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One for each size; the parameters hold ``time_to_linear`` and ``memory_to_first`` as those of ``growth``.

    Raises
    ------
    BenchmarkError
        If a program fails, or a count of persons is wrong. A target missed is no failure.
    """
    first = persons.ROWS if rows is None else rows
    population = case_study.prepare(first, cache)  # has the people of the largest size too
    results = [
        persons.against_rows("entities", population, first * factor, _OPTIONS, {"plan": "shuffle"})
        for factor in FACTORS
    ]
    aim = {"time_to_linear_at_most": TIME_AT_MOST}
    return [replace(one, parameters=one.parameters | aim) for one in growth.relative(results)]
