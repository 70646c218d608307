"""The benchmark of k-anonymity: its floor against a literal search, and figures only where both programs agree."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import case_study, kanon, kanon_floor
from benchmarks.floor import ATTRIBUTES
from benchmarks.measure import Measured

ROWS = 240


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return case_study.prepare(ROWS, tmp_path_factory.mktemp("cache"))


def table(data: Path) -> list[tuple[tuple[str, ...], ...]]:
    """Every row as the paths of its values to the root."""
    paths: dict[str, dict[str, tuple[str, ...]]] = {}
    for name in ("city", "race", "income"):
        with (data / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            paths[name] = {row[0]: tuple(row) for row in csv.reader(lines, delimiter=";")}
    rows = []
    for part in sorted((data / "table").glob("*.parquet")):
        for row in pq.ParquetFile(part).read(list(ATTRIBUTES)).to_pylist():
            day = str(row["birthdate"])
            path = {name: paths[name][str(row[name])] for name in paths}
            path["birthdate"] = (day, day[:7], day[:4], "*")
            rows.append(tuple(path[name] for name in ATTRIBUTES))
    return rows


def literal(data: Path, k: int, limit: int) -> tuple[float, int, tuple[int, ...]]:
    """Loss, suppressed rows and levels of the best scheme, from every node."""
    rows, leaves = table(data), [Counter[tuple[str, ...]]() for _ in ATTRIBUTES]
    for i, name in enumerate(ATTRIBUTES):
        if name == "birthdate":
            days = np.arange("1906-01-01", "2007-01-01", dtype="datetime64[D]").astype(str)
            every = [(day, day[:7], day[:4], "*") for day in days.tolist()]
        else:
            with (data / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
                every = [tuple(row) for row in csv.reader(lines, delimiter=";")]
        leaves[i].update(path[level:] for path in every for level in range(len(path)))
    domains = [max(of.values()) for of in leaves]
    best: tuple[float, int, tuple[int, ...]] | None = None
    for levels in itertools.product(*(range(len(path)) for path in rows[0])):
        nodes = [tuple(path[level:] for path, level in zip(row, levels, strict=True)) for row in rows]
        sizes = Counter(nodes)
        lost = [sizes[node] < k for node in nodes]
        if sum(lost) > limit:
            continue
        product = 1.0
        for i, domain in enumerate(domains):
            share = sum(1 if gone else leaves[i][node[i]] / domain for node, gone in zip(nodes, lost, strict=True))
            product *= 1 + (share / len(rows) - 1 / domain) / (1 - 1 / domain)
        found = (round(product ** (1 / len(domains)) - 1, 12), sum(lost), levels)
        best = found if best is None or found < best else best
    assert best is not None
    return best


@pytest.mark.parametrize(("k", "limit"), [(2, 0), (3, 40), (5, 12), (5, 120)])
def test_the_floor_finds_the_optimum_and_writes_it(data: Path, tmp_path: Path, k: int, limit: int) -> None:
    found = kanon_floor.floor(data, tmp_path, k=k, limit=limit)
    loss, suppressed, levels = literal(data, k, limit)
    assert (round(found.loss, 12), found.suppressed, found.levels) == (loss, suppressed, levels)
    assert 0 < found.nodes <= case_study.LATTICE_NODES
    written = [row for part in sorted((tmp_path / "release").glob("*.parquet")) for row in
               pq.ParquetFile(part).read(list(ATTRIBUTES)).to_pylist()]  # fmt: skip
    got = [tuple(row[name] for name in ATTRIBUTES) for row in written]
    nodes = [tuple(path[level:] for path, level in zip(row, levels, strict=True)) for row in table(data)]
    sizes = Counter(nodes)
    expected = [("*",) * 4 if sizes[node] < k else tuple(path[0] for path in node) for node in nodes]
    assert got == expected


def test_the_floor_says_that_nothing_keeps_the_limit(data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.kanon_floor", str(data), str(tmp_path), str(ROWS + 1), "0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=case_study.root())
    assert (ended.returncode, ended.stderr) == (1, "No scheme keeps the limit.\n")


@pytest.mark.thorough(
    "the floor is held against the literal optimum above; the product in tests/pipelines/release/test_recoded.py"
)
def test_the_product_is_measured_where_it_agrees_with_the_floor(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best, by_risk = kanon.optimum(ROWS, data.parent)
    assert (best.name, by_risk.name) == ("kanon", "kanon-by-risk")
    assert best.seconds > best.floor_seconds > 0
    told = best.parameters
    loss, suppressed, levels = literal(data, kanon.K, kanon.SUPPRESSED * ROWS // 100)
    assert (round(told["loss"], 12), told["suppressed"], tuple(told["levels"])) == (loss, suppressed, levels)
    assert told["decide_to_count"] > 0

    true = kanon._floor

    def other(*given: Any) -> tuple[Measured, dict[str, Any]]:
        ran, found = true(*given)
        return ran, found | {"suppressed": found["suppressed"] + 1}

    monkeypatch.setattr(kanon, "_floor", other)
    with pytest.raises(case_study.BenchmarkError, match="The floor found"):
        kanon.optimum(ROWS, data.parent)


def test_growth_is_seconds_per_row_over_those_of_the_first() -> None:
    first = case_study.Result("kanon-mondrian", 10.0, 1.0, 1.0, {"rows": 100})
    found = kanon.growth([first, replace(first, seconds=22.0, parameters={"rows": 200})])
    assert [one.parameters["time_to_linear"] for one in found] == [1.0, 1.1]


def test_the_large_lattice_is_searched_in_a_process_of_its_own() -> None:
    assert kanon.census(50).lattice.n_nodes >= 10**7
    command = [sys.executable, "-m", "benchmarks.kanon", "300", "15"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=case_study.root())
    told = json.loads(ended.stdout)
    assert told["lattice_nodes"] == kanon.census(50).lattice.n_nodes
    assert told["suppressed"] <= 15
    assert told["proved"] == (told["gap"] == 0)
