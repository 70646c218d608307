"""Record linkage: what is nearest to 10,000 records among 10,000 others in ten columns, and a release attacked whole.

``linkage-levels`` and ``linkage-numbers`` are kernels, beside a lean program of numpy that adds up tables of
differences, or multiplies matrices; both must find the same. ``linkage-release`` attacks a 5-anonymous release of the
case study's table, both ways and with both readings of a cell, by an intruder who knows years of birth.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import case_study
from benchmarks.case_study import BenchmarkError, Result
from benchmarks.measure import measure
from privrisk_spark.extensions.attack.kernels.differences import Difference, LevelDifference, NumberDifference
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray

RECORDS, COLUMNS = 10_000, 10
LEAVES = (2, 5, 7, 10, 12, 16, 20, 40, 75, 100)
KERNEL_SECONDS_AT_MOST, RELEASE_SECONDS_AT_MOST = 10.0, 120.0
RELEASED = 1_000_000


_POLICY = ("decision=null", "guarantee.kind=k-anonymity", "guarantee.k=5", "guarantee.suppression_limit=0.05")
_ATTACK = ("attack.intruder.levels={birthdate: 2}", "attack.exact_pairs=10000000000000")


def run(*, rows: int | None = None, cache: Path | None = None) -> list[Result]:
    """Run every part.

    Parameters
    ----------
    rows : int, optional
        Of the released table, and of the kernels at most 10,000; 1,000,000 if not given.
    cache : Path, optional
        As for the case study.

    Raises
    ------
    BenchmarkError
        If a program fails, or the floor and the product do not find the same. A target missed is no failure.
    """
    rows = RELEASED if rows is None else rows
    few = min(rows, RECORDS)
    return [levels(few), numbers(few), released(rows, cache)]


def levels(records: int) -> Result:
    """Columns of two levels, three in ten of their cells generalized, against the sum of ten tables."""
    draw = np.random.default_rng(case_study.SEED)
    trees = [Hierarchy.from_paths("a", [(f"v{i}", f"g{i // 5}") for i in range(n)]) for n in LEAVES]
    known = np.column_stack([draw.integers(0, tree.n_leaves, records) for tree in trees]).astype(np.int32)
    file = known.copy()
    for j, tree in enumerate(trees):
        up = draw.random(records) < 0.3
        file[up, j] = tree.parent[file[up, j]]
    distinct, rows = np.unique(file, axis=0, return_counts=True)
    differences: list[Difference] = []
    cells = np.empty(distinct.shape, dtype=np.int32)
    for j, tree in enumerate(trees):
        nodes, place = np.unique(distinct[:, j], return_inverse=True)
        cells[:, j] = place.reshape(-1)
        differences.append(LevelDifference(tree.at_depth, tree.n_under, nodes))
    floor_seconds, found = _timed(lambda: _by_tables(differences, cells, rows.astype(np.int64), known))
    return _kernel("linkage-levels", differences, cells, rows, known, floor_seconds, found)


def numbers(records: int) -> Result:
    """Columns of numbers with noise, all different, against a product of matrices."""
    draw = np.random.default_rng(case_study.SEED)
    known = draw.normal(size=(records, COLUMNS))
    file = known + 0.3 * draw.normal(size=known.shape)
    differences: list[Difference] = []
    cells, codes = np.empty(file.shape, dtype=np.int32), np.empty(known.shape, dtype=np.int32)
    for j in range(COLUMNS):
        values = np.unique(np.concatenate([known[:, j], file[:, j]]))
        nodes, place = np.unique(np.searchsorted(values, file[:, j]).astype(np.int32), return_inverse=True)
        cells[:, j], codes[:, j] = place.reshape(-1), np.searchsorted(values, known[:, j])
        differences.append(NumberDifference(values, values, nodes))
    rows = np.ones(records, dtype=np.int64)
    floor_seconds, found = _timed(lambda: _by_products(file, known))
    return _kernel("linkage-numbers", differences, cells, rows, codes, floor_seconds, found)


def released(rows: int, cache: Path | None = None) -> Result:
    """A release of the case study's table, attacked from start to end; its release stands beside it."""
    data = case_study.prepare(rows, cache)
    with tempfile.TemporaryDirectory(prefix="linkage-") as scratch:
        out = Path(scratch)
        options = [word for one in _POLICY for word in ("--set", one)]
        lean = case_study.release(case_study.POLICY, data, out, options)
        more = [word for one in _ATTACK for word in ("--set", one)]
        command = [sys.executable, "-m", "privrisk_spark.cli.app", "attack", str(case_study.POLICY), *options, *more,
                   "--output", str(out / "attack")]  # fmt: skip
        where = {"CASE_STUDY_DATA": str(data), "CASE_STUDY_OUT": str(out)}
        ran = case_study.checked("attack", measure(command, environment=where, directory=case_study.root()))
        document = json.loads((out / "attack" / "attack.json").read_text(encoding="utf-8"))
        return _result(
            "linkage-release",
            ran.seconds,
            lean.seconds,
            ran.peak_mb,
            {
                "rows": rows,
                "beside": "the release",
                "attacks": document["attacks"],
                "seconds_at_most": RELEASE_SECONDS_AT_MOST,
            },
        )


def _by_tables(differences: Sequence[Difference], cells: IntArray, rows: Any, known: IntArray) -> tuple[Any, Any]:
    """Add up the differences of every pair, a thousand known records at a time."""
    weight, least, tied = 1 / len(differences), [], []
    for begin in range(0, len(known), 1000):
        part = known[begin : begin + 1000]
        total = np.zeros((len(part), len(cells)))
        for j, one in enumerate(differences):
            total += weight * one.of(part[:, j])[:, cells[:, j]]
        near = total.min(axis=1)
        least.append(near)
        tied.append((total <= (near + 1e-9 * (1 + near))[:, None]) @ rows)
    return np.concatenate(least), np.concatenate(tied)


def _by_products(file: FloatArray, known: FloatArray) -> tuple[Any, Any]:
    """Mean squares by products of matrices; numbers that are all different have no ties."""
    of_file, least = (file * file).sum(axis=1), []
    for begin in range(0, len(known), 500):
        part = known[begin : begin + 500]
        about = of_file[None, :] - 2 * part @ file.T
        near = about.argmin(axis=1)
        least.append(((part - file[near]) ** 2).mean(axis=1))
    return np.concatenate(least), np.ones(len(known), dtype=np.int64)


def _timed(program: Any) -> tuple[float, Any]:
    start = perf_counter()
    found = program()
    return perf_counter() - start, found


def _kernel(
    name: str,
    differences: Sequence[Difference],
    cells: IntArray,
    rows: Any,
    known: IntArray,
    floor: float,
    expected: Any,
) -> Result:
    weights = np.full(len(differences), 1 / len(differences))
    searched = SearchedFile(tuple(differences), weights, cells, np.asarray(rows, dtype=np.int64))
    seconds, found = _timed(lambda: searched.linked(known))
    if not (np.allclose(found.distance, expected[0], atol=1e-9) and np.array_equal(found.rows, expected[1])):
        raise BenchmarkError(f"{name}: the floor and the kernel do not find the same.")
    more = {"rows": len(known), "columns": len(differences), "seconds_at_most": KERNEL_SECONDS_AT_MOST}
    return _result(name, seconds, floor, 0.0, more)


def _result(name: str, seconds: float, floor: float, peak_mb: float, more: dict[str, Any]) -> Result:
    return Result(
        name=name,
        seconds=seconds,
        floor_seconds=floor,
        peak_mb=round(peak_mb, 1),
        parameters={
            "seed": case_study.SEED,
            "processors": len(os.sched_getaffinity(0)),
            "load_before": round(os.getloadavg()[0], 2),
            **more,
        },
    )
