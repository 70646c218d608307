"""Frequencies of persons who have several rows, against those of rows of the same table.

The table is made of the case study's people: 1,000,000 of them, and 5,667,004 visits, heavy-tailed (a visit's person is
drawn with weight ``rank^-0.6``), each with the person's city, race and age; a tenth of them moved for some visits,
and three visits of ten have an income of their own, in steps of 10,000. The table is its own dictionary, and its cells
fit the plan ``dense``.

The floor is the product itself, releasing the same table by rows: ``ratio`` says what counting persons costs. The
counts are held against a literal count of the distinct persons at the cells of some records.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import Measured, measure

ROWS = case_study.ROWS
ROWS_A_PERSON = ROWS / 1_000_000
LATTICE_NODES = 240
RATIO_AT_MOST = 3.0
"""At any size; 2 from 5 million rows on."""
POLICY = Path(__file__).with_name("persons.yaml")

_INCOME_STEP = 10_000
_REFERENCE_YEAR = 2006
_CHECKED = 25  # records whose persons are counted literally
_FILES = 4


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Release the table by rows, then by persons.

    Parameters
    ----------
    rows : int, optional
        Visits; 5,667,004 if not given. There are 5.667 a person.
    cache : Path, optional
        As for the case study.

    Returns
    -------
    list of Result
        One result.

    Raises
    ------
    BenchmarkError
        If a program fails, or a count of persons is wrong. A target missed is no failure.
    """
    size = ROWS if rows is None else rows
    population = case_study.prepare(size, cache)
    return [against_rows("persons", population, size, [], {"ratio_at_most": RATIO_AT_MOST})]


def against_rows(
    name: str, population: Path, rows: int, options: Sequence[str], more: Mapping[str, float | str]
) -> Result:
    """Release visits of some of the case study's people by rows, then by persons.

    Parameters
    ----------
    name : str
        Of the result.
    population : Path
        The people.
    rows : int
        Visits.
    options : sequence of str
        Of both releases.
    more : mapping of str to float or str
        More parameters of the result.

    Raises
    ------
    BenchmarkError
        If a program fails, or a count of persons is wrong.
    """
    people = max(1, round(rows / ROWS_A_PERSON))
    data = prepare(population, rows, people)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as scratch:
        by_rows = _release(population, data, Path(scratch, "rows"), [*options, "--set=table.entity_id=null"])
        out = Path(scratch, "persons")
        ran = _release(population, data, out, options)
        checked = check(population, data / "table", out / "vault" / "decisions")
        stages = {kind: case_study.stage_seconds(Path(scratch, kind)) for kind in ("rows", "persons")}
    return Result(
        name=name,
        seconds=ran.seconds,
        floor_seconds=by_rows.seconds,
        peak_mb=round(ran.peak_mb, 1),
        parameters={
            "rows": rows,
            "dictionary_rows": people,
            "lattice_nodes": LATTICE_NODES,
            **more,
            "records_checked": checked,
            "stages": stages["persons"],
            "stages_of_rows": stages["rows"],
            "floor_peak_mb": round(by_rows.peak_mb, 1),
            "load_before": round(load, 2),
            "synthetic": True,
        },
    )


def _release(population: Path, data: Path, out: Path, options: Sequence[str]) -> Measured:
    command = [sys.executable, "-m", "privrisk_spark.cli.app", "release", str(POLICY), "--run-id", "persons"]
    paths = {"CASE_STUDY_DATA": str(population), "PERSONS_DATA": str(data), "PERSONS_OUT": str(out)}
    ran = measure([*command, *options], environment=paths, directory=case_study.root())
    return case_study.checked("product", ran)


def prepare(population: Path, rows: int, people: int) -> Path:
    """Return the directory of the visits of so many of the case study's people, making it if it is not there yet."""
    data = population.with_name(f"persons-{rows}-{people}-of-{population.name}")
    if data.exists():
        return data
    partial = Path(tempfile.mkdtemp(prefix=f"{data.name}.", dir=data.parent))
    try:
        (partial / "table").mkdir()
        lines = (population / "income.csv").read_text(encoding="utf-8").splitlines()
        coarse = [line for line in lines if int(line.split(";")[0]) % _INCOME_STEP == 0]
        paths = [";".join([line.split(";")[0], *line.split(";")[2:]]) for line in coarse]
        (partial / "income.csv").write_text("\n".join(paths) + "\n", encoding="utf-8")
        _write(population, partial / "table", rows, people)
        partial.rename(data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return data


def _write(population: Path, out: Path, rows: int, people: int) -> None:
    names = ["person_id", "city", "race", "birthdate", "income", "diagnosis"]
    someone = pq.read_table(population / "table", columns=names).slice(0, people)
    born = pc.year(someone.column("birthdate"))
    age = pc.subtract(_REFERENCE_YEAR, born).cast(pa.int32())
    income = pa.array(someone.column("income").to_numpy() // _INCOME_STEP * _INCOME_STEP)
    someone = someone.drop(["birthdate", "income"]).append_column("age", age).append_column("income", income)
    rng = np.random.Generator(np.random.Philox(key=case_study.SEED))
    weight = np.arange(1, people + 1) ** -0.6
    # Everybody is there once; the other visits are drawn.
    drawn = rng.choice(people, size=max(rows - people, 0), p=weight / weight.sum())
    who = rng.permutation(np.concatenate([np.arange(min(people, rows)), drawn]))
    moved = (who % 10 == 0) & (rng.random(rows) < 0.5)
    home = np.where(moved, (who + 1) % people, who)
    earned = np.where(rng.random(rows) < 0.3, rng.integers(0, people, rows), who)
    of = {"person_id": who, "city": home, "race": who, "age": who, "income": earned, "diagnosis": earned}
    visits = pa.table({"visit_id": pc.cast(pa.array(np.arange(rows)), pa.string())})
    for name in of:
        visits = visits.append_column(name, someone.column(name).take(pa.array(of[name])))
    step = -(-rows // _FILES)
    for i in range(_FILES):
        pq.write_table(visits.slice(i * step, step), out / f"part-{i}.parquet", row_group_size=2**18)


def check(population: Path, table: Path, decisions: Path, *, records: int = _CHECKED) -> int:
    """Count the distinct persons of some records' cells literally, and compare.

    Returns
    -------
    int
        Records compared.

    Raises
    ------
    BenchmarkError
        If a count is another one.
    """
    visits = pq.read_table(table)
    person = visits.column("person_id").combine_chunks().dictionary_encode().indices.to_numpy()
    number = pc.cast(visits.column("visit_id"), pa.int64()).to_numpy()
    places = {"city": population, "race": population, "income": table.parent}
    at_level = {name: _by_level(visits.column(name), name, places.get(name)) for name in _NAMES}
    row_of = np.empty(len(number), dtype=np.int64)
    row_of[number] = np.arange(len(number))
    decided = pq.read_table(decisions, columns=["visit_id", "consistent", *(f"level_{name}" for name in _NAMES)])
    step = max(1, decided.num_rows // records)
    sample = decided.take(pa.array(np.arange(0, decided.num_rows, step)))
    for record in sample.to_pylist():
        row = row_of[int(record["visit_id"])]
        alike = np.ones(len(number), dtype=np.bool_)
        for name in _NAMES:
            values = at_level[name][record[f"level_{name}"]]
            alike &= values == values[row]
        if len(np.unique(person[alike])) != record["consistent"]:
            raise BenchmarkError("A number of persons is not the literal one.")
    return int(sample.num_rows)


_NAMES = ("city", "race", "age", "income")


def _by_level(column: pa.ChunkedArray, name: str, place: Path | None) -> list[npt.NDArray[Any]]:
    """A column's values at each level, as numbers."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if place is None:
        paths = {value: [value, str(int(value) // 5), str(int(value) // 20), "*"] for value in values}
    else:
        lines = (place / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        paths = {line.split(";")[0]: line.split(";") for line in lines}
    result = []
    for level in range(len(next(iter(paths.values())))):
        _, numbered = np.unique([paths[value][level] for value in values], return_inverse=True)
        result.append(numbered[encoded.indices.to_numpy()])
    return result
