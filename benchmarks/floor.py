"""The floor of the case study: the leanest single-process numpy/pyarrow program that gives the same answer.

It knows the case study and nothing else: no missing values, balanced hierarchies without single children,
one weight per leaf of an attribute, a register that has city, race and the year of birth. What it does not
know it refuses. It imports nothing of ``privrisk_spark``, so it is also an independent check of its
decisions.

Why it can be lean:

- Under depth utility every maximal feasible level vector has the same sum of levels, and since the weights
  strictly fall and counts do not fall along a chain, the least risk is at one of them, and no
  node below ties with it.
- The register has neither income nor the day of birth, so the count of a node depends on city, race and
  year of birth at three levels: at most 30 cuboids of one small cube. Of the birthdate and income levels
  that share a cuboid, only the ones with the least sum of weights can win, and those weights depend only on
  the sizes of the nodes above the leaf. So a decision is one of a few candidates per (city, race, year,
  sizes) cell.
- Text stays in dictionary codes from the Parquet file in to the Parquet file out.

Run ``python -m benchmarks.floor DATA OUT [UTILITY] [--in-pieces]``.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

ATTRIBUTES = ("city", "race", "birthdate", "income")
WEIGHTS = {"city": 0.3, "race": 0.4, "birthdate": 0.5, "income": 0.75}
REFERENCE_YEAR = 2006
FIRST_BIRTH_YEAR = 1906
TIE = 1e-12  # relative difference of two risks that counts as none

_YEARS = REFERENCE_YEAR - FIRST_BIRTH_YEAR + 1
_BLOCK = 8192  # cells decided at a time, so that the candidates stay in the processor's cache

_Ints = npt.NDArray[np.integer[Any]]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FloorResult:
    """What the floor did.

    Attributes
    ----------
    cells : int
        Cells (city, race, year of birth) that were decided: those with at least one record, in pieces all.
    mean_risk, mean_utility : float
        Over records.
    seconds : dict of str to float
        By phase, in order; ``import`` is not in it.
    """

    rows: int
    dictionary_rows: int
    cells: int
    mean_risk: float
    mean_utility: float
    seconds: dict[str, float]


@dataclass(frozen=True)
class Tree:
    """A balanced hierarchy: nodes by leaf and level; label, size (leaves under it) and weight by node."""

    ancestor: npt.NDArray[np.int32]
    label: pa.Array
    size: npt.NDArray[np.int64]
    weight: _Floats

    @property
    def height(self) -> int:
        """Levels above the leaves."""
        return int(self.ancestor.shape[1]) - 1


@dataclass(frozen=True)
class Records:
    """One part of the table, in codes; ``cell`` is the index into the decisions."""

    kept: pa.Table
    cell: npt.NDArray[np.int64]
    leaf: dict[str, npt.NDArray[np.int32]]


@dataclass(frozen=True)
class _Decisions:
    """By cell: index of the level vector in ``levels``, risk, and count of consistent register rows."""

    levels: npt.NDArray[np.int8]
    utility: _Floats
    node: npt.NDArray[np.uint16]
    risk: _Floats
    consistent: npt.NDArray[np.int64]


def floor(
    data_dir: str | Path, out_dir: str | Path, *, utility_at_least: float = 8, in_pieces: bool = False
) -> FloorResult:
    """Decide, release and record the case study.

    Writes ``release/part-*.parquet`` (city, race, birthdate, income as labels, diagnosis) and
    ``decisions/part-*.parquet`` (person_id, ``level_*``, risk, utility, consistent), in the order of the
    table.

    Parameters
    ----------
    data_dir : str or Path
        What ``privrisk_spark.pipelines.synthetic.population.generate(…, nulls=False)`` wrote.
    out_dir : str or Path
        Created if absent.
    utility_at_least : float, default 8
        Least sum of remaining depths, at most 13.
    in_pieces : bool, default False
        For tables that memory does not hold: decide every cell first, then read and write one file after another
        (a thread).

    Raises
    ------
    ValueError
        If the data is outside what the floor knows, or the utility cannot be reached.
    """
    data, out = Path(data_dir), Path(out_dir)
    clock = [perf_counter()]
    seconds: dict[str, float] = {}

    def lap(phase: str) -> None:
        clock.append(perf_counter())
        seconds[phase] = clock[-1] - clock[-2]

    trees = {name: read_tree(data / f"{name}.csv", WEIGHTS[name]) for name in ("city", "race", "income")}
    trees["birthdate"] = calendar(WEIGHTS["birthdate"])
    keys = Keys(trees)
    lap("hierarchies")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        counts = pool.map(keys.count, sorted((data / "population").glob("*.parquet")))
        cube = np.sum(list(counts), axis=0)
        lap("count")
        for name in ("release", "decisions"):
            (out / name).mkdir(parents=True, exist_ok=True)
        files = sorted((data / "table").glob("*.parquet"))
        if in_pieces:
            decided = np.arange(keys.cells)
            decisions = _decide(keys, cube, decided, utility_at_least, pool.map)
            lap("decide")
            jobs = enumerate(files)
            sums = list(pool.map(lambda job: _write(keys, decisions, out, job[0], keys.read(job[1])), jobs))
            lap("read and write")
        else:
            parts = list(pool.map(keys.read, files))
            lap("read")
            seen = np.zeros((keys.cells, keys.groups), dtype=np.bool_)
            for part in parts:
                seen.ravel()[part.cell] = True
            decided = np.flatnonzero(seen.any(axis=1))
            decisions = _decide(keys, cube, decided, utility_at_least, pool.map)
            lap("decide")
            sums = list(pool.map(lambda job: _write(keys, decisions, out, *job), enumerate(parts)))
            lap("write")
    rows, risk, utility = np.sum(sums, axis=0)
    return FloorResult(
        rows=int(rows),
        dictionary_rows=int(cube.sum()),
        cells=len(decided),
        mean_risk=float(risk / rows),
        mean_utility=float(utility / rows),
        seconds={phase: round(value, 4) for phase, value in seconds.items()},
    )


def read_tree(path: Path, leaf_weight: float) -> Tree:
    """Read an ARX hierarchy; a node is known by its path to the root, not by its label."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter=";"))
    codes: dict[tuple[str, ...], int] = {}
    height = len(rows[0]) - 1
    ancestor = np.empty((len(rows), height + 1), dtype=np.int32)
    for level in range(height + 1):
        for leaf, row in enumerate(rows):
            ancestor[leaf, level] = codes.setdefault(tuple(row[level:]), len(codes))
    return _tree(ancestor, [path[0] for path in codes], leaf_weight)


def calendar(leaf_weight: float) -> Tree:
    """Return the hierarchy day, month, year, ``*`` of all days of birth."""
    days = np.arange(f"{FIRST_BIRTH_YEAR}-01-01", f"{REFERENCE_YEAR + 1}-01-01", dtype="datetime64[D]")
    months = days.astype("datetime64[M]")
    years = days.astype("datetime64[Y]")
    month = len(days) + (months - months[0]).astype(np.int32)
    year = month[-1] + 1 + (years - years[0]).astype(np.int32)
    root = np.full(len(days), year[-1] + 1, dtype=np.int32)
    labels = [*days.astype(str), *np.unique(months).astype(str), *np.unique(years).astype(str), "*"]
    return _tree(np.stack([np.arange(len(days), dtype=np.int32), month, year, root], axis=1), labels, leaf_weight)


def _tree(ancestor: npt.NDArray[np.int32], labels: list[str], leaf_weight: float) -> Tree:
    """Add sizes and weights: with equal leaf weights w the modified harmonic mean is w / size, root 0."""
    size = np.bincount(ancestor.ravel(), minlength=len(labels))
    if not (np.diff(size[ancestor], axis=1) > 0).all():
        raise ValueError("The floor needs hierarchies in which no node has a single child.")
    weight = leaf_weight / size
    weight[ancestor[:, -1]] = 0.0
    return Tree(ancestor, _text(labels), size, weight)


def _text(labels: list[str]) -> pa.Array:
    """Return a string array; ``pa.array`` would import pandas first, which takes longer than counting."""
    values = [label.encode() for label in labels]
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


def _array(values: npt.NDArray[Any]) -> pa.Array:
    """Return a numeric array over the same memory."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


class Keys:
    """Cells of the case study: (city, race, year of birth) and, within, the group of node sizes.

    Attributes
    ----------
    cells : int
        Number of (city, race, year) cells; a cell is ``(city * races + race) * years + year``.
    groups : int
        Number of groups; a group is ``month class * income classes + income class``, where records of one
        year and group have the same node sizes, so the same weights, at every level of birthdate and
        income.
    """

    def __init__(self, trees: dict[str, Tree]) -> None:
        self.trees = trees
        day, income = trees["birthdate"], trees["income"]
        self.cities, self.races = len(trees["city"].ancestor), len(trees["race"].ancestor)
        self.cells = self.cities * self.races * _YEARS
        self.year_of_day = day.ancestor[:, 2] - day.ancestor[0, 2]
        _, self._month_class = np.unique(day.size[day.ancestor[:, 1]], return_inverse=True)
        _, self._income_class = np.unique(income.size[income.ancestor], axis=0, return_inverse=True)
        classes = int(self._income_class.max()) + 1
        self.groups = (int(self._month_class.max()) + 1) * classes
        # a leaf of each attribute adds its share to the key of a record
        self.share = {
            "city": np.arange(self.cities, dtype=np.int64) * self.races * _YEARS * self.groups,
            "race": np.arange(self.races, dtype=np.int64) * _YEARS * self.groups,
            "birthdate": (self.year_of_day * self.groups + self._month_class * classes).astype(np.int64),
            "income": self._income_class.astype(np.int64),
        }
        self._code = {
            name: {label: code for code, label in enumerate(trees[name].label.to_pylist()[:leaves])}
            for name, leaves in (("city", self.cities), ("race", self.races))
        }
        amounts = np.array(income.label.to_pylist()[: len(income.ancestor)], dtype=np.int64)
        self._income_code = np.full(amounts.max() + 1, -1, dtype=np.int32)
        self._income_code[amounts] = np.arange(len(amounts))
        self._first_day = int(np.datetime64(f"{FIRST_BIRTH_YEAR}-01-01", "D").astype(np.int64))

    def representatives(self, years: npt.NDArray[np.bool_]) -> list[tuple[int, int, int]]:
        """Return (group, a birthdate leaf of it, an income leaf of it) for each group of the years."""
        days = np.flatnonzero(years[self.year_of_day])
        months, first_day = np.unique(self._month_class[days], return_index=True)
        incomes, first_income = np.unique(self._income_class, return_index=True)
        return [
            (int(month) * len(incomes) + int(income), int(days[day]), int(leaf))
            for month, day in zip(months, first_day, strict=True)
            for income, leaf in zip(incomes, first_income, strict=True)
        ]

    def count(self, path: Path) -> npt.NDArray[np.int64]:
        """Count the rows of a part of the register by (city, race, year of birth)."""
        rows = _read(path, ["city", "race", "age"])
        cell = self._leaf(rows, "city", self.races * _YEARS)
        cell += self._leaf(rows, "race", _YEARS)
        year = REFERENCE_YEAR - FIRST_BIRTH_YEAR - _numbers(rows, "age")
        if year.min() < 0 or year.max() >= _YEARS:
            raise ValueError(f"The floor needs ages from 0 to {_YEARS - 1}.")
        cell += year
        return np.bincount(cell, minlength=self.cells).reshape(self.cities, self.races, _YEARS)

    def read(self, path: Path) -> Records:
        """Read a part of the table in codes."""
        rows = _read(path, ["person_id", *ATTRIBUTES, "diagnosis"])
        leaf = {name: self._leaf(rows, name, 1) for name in ("city", "race")}
        leaf["birthdate"] = _numbers(rows, "birthdate") - self._first_day
        leaf["income"] = self._income_code.take(_numbers(rows, "income"))
        if leaf["income"].min() < 0 or leaf["birthdate"].min() < 0:
            raise ValueError("The floor needs every income and birthdate in its hierarchy.")
        cell = self.share["city"].take(leaf["city"])
        for name in ATTRIBUTES[1:]:
            cell += self.share[name].take(leaf[name])
        return Records(rows.select(["person_id", "diagnosis"]), cell, leaf)

    def _leaf(self, rows: pa.Table, name: str, factor: int) -> npt.NDArray[np.int32]:
        """Return the leaf codes of a text column times a factor; only the file's dictionary is looked up."""
        column = rows[name].chunk(0)
        code = self._code[name]
        codes = [code[label] * factor for label in column.dictionary.to_pylist()]
        return np.array(codes, dtype=np.int32).take(_values(column.indices))


def _read(path: Path, columns: list[str]) -> pa.Table:
    text = [name for name in ("city", "race", "diagnosis") if name in columns]
    with pq.ParquetFile(path, read_dictionary=text, memory_map=True) as file:
        rows = file.read(columns, use_threads=False)
    rows = rows.unify_dictionaries().combine_chunks()
    if any(column.null_count for column in rows.columns):
        raise ValueError("The floor needs a table and a register without missing values.")
    return rows


def _numbers(rows: pa.Table, name: str) -> npt.NDArray[np.int32]:
    return _values(rows[name].chunk(0).view(pa.int32()))


def _values(array: pa.Array) -> npt.NDArray[np.int32]:
    """Return the memory of an int32 array (``to_numpy`` would import pandas as well)."""
    return np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array)]


def _decide(
    keys: Keys,
    cube: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int64],
    utility_at_least: float,
    run: Callable[..., Iterable[Any]],
) -> _Decisions:
    """Decide every group of every cell that has a record.

    Ties: lower risk, then higher utility (all candidates have the same), then the lexicographically
    smallest level vector; risks within ``TIE`` are equal. A cell the register lacks is counted as if the
    record were in it.
    """
    heights = [keys.trees[name].height for name in ATTRIBUTES]
    steps = min(math.floor(sum(heights) - utility_at_least), sum(heights))
    if steps < 0:
        raise ValueError(f"The utility must be at most {sum(heights)}. Got {utility_at_least}.")
    levels = np.array(list(itertools.product(*(range(height + 1) for height in heights))), dtype=np.int8)
    feasible = np.flatnonzero(levels.sum(axis=1) == steps)
    cuboids = _cuboids(keys, cube, levels[feasible])
    decisions = _Decisions(
        levels=levels,
        utility=(sum(heights) - levels.sum(axis=1)).astype(np.float64),
        node=np.empty(keys.cells * keys.groups, dtype=np.uint16),
        risk=np.empty(keys.cells * keys.groups),
        consistent=np.empty(keys.cells * keys.groups, dtype=np.int64),
    )
    leap = np.bincount(keys.year_of_day) == 366
    jobs = []
    for kind in (False, True):
        inner = [_inner(keys, levels, feasible, cuboids, *leaves) for leaves in keys.representatives(leap == kind)]
        mine = cells[leap[cells % _YEARS] == kind]
        jobs += [(inner, mine[start : start + _BLOCK]) for start in range(0, len(mine), _BLOCK)]
    for _ in run(lambda job: _decide_block(keys, cube, cuboids, decisions, *job), jobs):
        pass
    return decisions


@dataclass(frozen=True)
class _Cuboid:
    """Counts at one level of city and race, by year or over all years, and what a cell needs to read them.

    ``candidates`` are the positions, among the feasible nodes, of those that take their count from here.
    """

    candidates: npt.NDArray[np.int64]
    by_year: bool
    count: npt.NDArray[np.int64]
    city_offset: npt.NDArray[np.int64]
    race_offset: npt.NDArray[np.int64]
    city_factor: _Floats
    race_factor: _Floats


def _cuboids(keys: Keys, cube: npt.NDArray[np.int64], candidates: npt.NDArray[np.int8]) -> list[_Cuboid]:
    """Roll the counts up, one axis at a time, to the cuboids the candidates need, in lexicographic order."""
    city, race, top = keys.trees["city"], keys.trees["race"], keys.trees["birthdate"].height
    outer = np.stack([candidates[:, 0], candidates[:, 1], candidates[:, 2] == top], axis=1)
    wanted = np.unique(outer, axis=0).tolist()
    cuboids = []
    for city_level, some in itertools.groupby(wanted, key=lambda item: item[0]):
        by_city, city_node = _rolled(cube, city, city_level, axis=0)
        for _, race_level, whole in some:
            counts, race_node = _rolled(by_city, race, race_level, axis=1)
            counts = counts.sum(axis=2, keepdims=True) if whole else counts
            cuboids.append(
                _Cuboid(
                    candidates=np.flatnonzero((outer == (city_level, race_level, whole)).all(axis=1)),
                    by_year=not whole,
                    count=counts.ravel(),
                    city_offset=city_node * (counts.shape[1] * counts.shape[2]),
                    race_offset=race_node * counts.shape[2],
                    city_factor=np.exp(city.weight[city.ancestor[:, city_level]]),
                    race_factor=np.exp(race.weight[race.ancestor[:, race_level]]),
                )
            )
    return cuboids


def _rolled(
    cube: npt.NDArray[np.int64], tree: Tree, level: int, axis: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the counts with one axis rolled up to a level, and the new index of each leaf."""
    _, index = np.unique(tree.ancestor[:, level], return_inverse=True)
    shape = list(cube.shape)
    shape[axis] = int(index.max()) + 1
    rolled = np.zeros(shape, dtype=np.int64)
    before: tuple[Any, ...] = (slice(None),) * axis
    for leaf, node in enumerate(index.tolist()):
        rolled[(*before, node)] += cube[(*before, leaf)]
    return rolled, index


def _inner(
    keys: Keys,
    levels: npt.NDArray[np.int8],
    feasible: npt.NDArray[np.int64],
    cuboids: list[_Cuboid],
    group: int,
    day: int,
    income: int,
) -> tuple[int, _Floats, npt.NDArray[np.uint16]]:
    """Return, for one group, factor and node of the best birthdate and income levels of each cuboid."""
    dates, incomes = keys.trees["birthdate"], keys.trees["income"]
    by_date, by_income = dates.weight[dates.ancestor[day]], incomes.weight[incomes.ancestor[income]]
    phi = np.exp(by_date[levels[feasible, 2]] + by_income[levels[feasible, 3]])
    factor = np.empty(len(cuboids))
    node = np.empty(len(cuboids), dtype=np.uint16)
    for k, cuboid in enumerate(cuboids):
        mine = phi[cuboid.candidates]
        best = cuboid.candidates[np.argmax(mine <= mine.min() * (1 + TIE))]
        factor[k], node[k] = phi[best], feasible[best]
    return group, factor, node


def _decide_block(
    keys: Keys,
    cube: npt.NDArray[np.int64],
    cuboids: list[_Cuboid],
    decisions: _Decisions,
    inner: list[tuple[int, _Floats, npt.NDArray[np.uint16]]],
    cells: npt.NDArray[np.int64],
) -> None:
    """Decide all groups of some cells, whose years are all leap years or all not."""
    rest, year = np.divmod(cells, _YEARS)
    city, race = np.divmod(rest, keys.races)
    count = np.empty((len(cuboids), len(cells)), dtype=np.int64)
    outer = np.empty(count.shape)
    absent = cube.ravel().take(cells) == 0
    for k, cuboid in enumerate(cuboids):
        at = cuboid.city_offset.take(city) + cuboid.race_offset.take(race)
        if cuboid.by_year:
            at += year
        np.add(cuboid.count.take(at), absent, out=count[k])
        np.divide(cuboid.city_factor.take(city) * cuboid.race_factor.take(race), count[k], out=outer[k])
    risk = np.empty_like(outer)
    choice = np.empty(len(cells), dtype=np.int64)
    column = np.arange(len(cells))
    for group, factor, node in inner:
        np.multiply(outer, factor[:, None], out=risk)
        least = risk.min(axis=0)
        limit = least * (1 + TIE)
        for k in reversed(range(len(cuboids))):
            np.copyto(choice, k, where=risk[k] <= limit)
        at = cells * keys.groups + group
        decisions.node[at] = node.take(choice)
        decisions.risk[at] = least
        decisions.consistent[at] = count[choice, column]


def _write(keys: Keys, decisions: _Decisions, out: Path, part: int, records: Records) -> tuple[int, float, float]:
    """Write one part of the release and of the decisions; return its rows and the sums of their risk and utility."""
    node = decisions.node.take(records.cell)
    columns = {"person_id": records.kept["person_id"]}
    released = {}
    for i, name in enumerate(ATTRIBUTES):
        tree = keys.trees[name]
        level = decisions.levels[:, i].copy().take(node)
        columns[f"level_{name}"] = _array(level)
        value = tree.ancestor.ravel().take(records.leaf[name] * np.int32(tree.height + 1) + level)
        released[name] = pa.DictionaryArray.from_arrays(_array(value), tree.label)
    released["diagnosis"] = records.kept["diagnosis"]
    risk, utility = decisions.risk.take(records.cell), decisions.utility.take(node)
    columns["risk"] = _array(risk)
    columns["utility"] = _array(utility)
    columns["consistent"] = _array(decisions.consistent.take(records.cell))
    file = f"part-{part:05d}.parquet"
    pq.write_table(pa.table(released), out / "release" / file, store_schema=False, write_statistics=False)
    repeated = [*(f"level_{name}" for name in ATTRIBUTES), "utility"]
    pq.write_table(pa.table(columns), out / "decisions" / file, use_dictionary=repeated, write_statistics=False)
    return len(records.cell), float(risk.sum()), float(utility.sum())


def main(arguments: list[str]) -> int:
    """Run the floor and print its result as JSON; return the exit code."""
    in_pieces = arguments[-1:] == ["--in-pieces"]
    given = arguments[: len(arguments) - in_pieces]
    if len(given) not in (2, 3):
        print("usage: python -m benchmarks.floor DATA OUT [UTILITY] [--in-pieces]", file=sys.stderr)
        return 2
    result = floor(*given[:2], utility_at_least=float(given[2]) if given[2:] else 8, in_pieces=in_pieces)
    print(json.dumps(asdict(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
