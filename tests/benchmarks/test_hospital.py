"""The floor of the hospital against a literal twin, its data, and a small run from end to end."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from math import exp
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from floors import measured, run_here

from benchmarks import __main__ as command
from benchmarks import hospital, hospital_data, hospital_floor
from benchmarks.measure import Measured

HEIGHTS = (6, 3, 1, 1)
WEIGHTS = (0.6, 0.5, 0.2, 0.4)


def rows_of(data: Path) -> list[dict[str, str]]:
    """All stays, the ward from the directory's name."""
    found = []
    for file in sorted((data / "table").rglob("*.parquet")):
        ward = unquote(file.parent.name.removeprefix("ward="))
        found += [row | {"ward": ward} for row in pq.ParquetFile(file).read().to_pylist()]
    return found


def path_of(i: int, value: str) -> tuple[str, ...]:
    if i == 0:
        return (*(value[: 6 - level] + "*" * level for level in range(6)), "*")
    return (value, value[:7], value[:4], "*") if i == 1 else (value, "*")


def naive(rows: list[dict[str, str]], utility_at_least: float):
    """Levels, risk, utility, count and released labels of each row; whether some edge below the best is flat."""
    records = [[path_of(i, str(row[name])) for i, name in enumerate(hospital_floor.ATTRIBUTES)] for row in rows]
    children: list[dict[tuple[str, ...], set[tuple[str, ...]]]] = [{} for _ in HEIGHTS]
    for record in records:
        for i, path in enumerate(record):
            for level in range(HEIGHTS[i]):
                children[i].setdefault(path[level + 1 :], set()).add(path[level:])

    @cache
    def weight(i: int, node: tuple[str, ...]) -> float:
        """Modified harmonic mean over children, root 0 (F12 section 3.2)."""
        if node == ("*",):
            return 0.0
        below = children[i].get(node)
        return WEIGHTS[i] if below is None else 1 / sum(1 / weight(i, child) for child in sorted(below))

    decided = []
    for record in records:
        nodes = []
        for levels in product(*(range(height + 1) for height in HEIGHTS)):
            utility = sum(HEIGHTS) - sum(levels)
            if utility < utility_at_least:
                continue
            value = [path[level:] for path, level in zip(record, levels, strict=True)]
            count = sum(
                all(path[level:] == node for path, level, node in zip(other, levels, value, strict=True))
                for other in records
            )
            risk = exp(sum(weight(i, node) for i, node in enumerate(value))) / count
            nodes.append((levels, risk, utility, count, [node[0] for node in value]))
        least = min(node[1] for node in nodes)
        tied = [node for node in nodes if node[1] <= least * (1 + 1e-12)]
        decided.append(min(tied, key=lambda node: (-node[2], node[0])))
    return decided


@pytest.mark.parametrize(
    ("rows", "persons", "utility"), [(60, 25, 6), (60, 25, 9), (40, 3, 4), (12, 12, 8), (5, 5, 11), (1, 1, 0)]
)
def test_the_floor_decides_as_its_literal_twin(tmp_path, rows, persons, utility):
    """Few rows make hierarchies full of nodes with a single child, where the best node lies below a maximal one."""
    hospital_data.generate(tmp_path / "data" / "table", persons=persons, rows=rows, seed=7)
    found = hospital_floor.floor(tmp_path / "data", tmp_path / "out", utility_at_least=utility)
    expected = naive(rows_of(tmp_path / "data"), utility)
    decisions, release = (
        pa.concat_tables(pq.ParquetFile(part).read() for part in sorted((tmp_path / "out" / name).iterdir()))
        for name in ("decisions", "release")
    )
    levels = zip(*(decisions[f"level_{name}"].to_pylist() for name in hospital_floor.ATTRIBUTES), strict=True)
    assert list(levels) == [row[0] for row in expected]
    np.testing.assert_allclose(decisions["risk"].to_numpy(), [row[1] for row in expected], rtol=1e-12)
    assert decisions["utility"].to_pylist() == [row[2] for row in expected]
    assert decisions["consistent"].to_pylist() == [row[3] for row in expected]
    labels = zip(*(release[name].to_pylist() for name in hospital_floor.ATTRIBUTES), strict=True)
    assert [list(row) for row in labels] == [row[4] for row in expected]
    assert (found.rows, found.mean_utility) == (rows, pytest.approx(np.mean([row[2] for row in expected])))
    if (rows, utility) == (12, 8):
        assert max(row[2] for row in expected) > utility, "some best nodes lie below maximal ones"


def test_a_utility_out_of_reach_and_foreign_postcodes_are_refused(tmp_path):
    data = hospital.prepare(20, tmp_path)
    with pytest.raises(ValueError, match="at most 11"):
        hospital_floor.floor(data, tmp_path / "out", utility_at_least=12)
    file = next((data / "table").rglob("*.parquet"))
    table = pq.ParquetFile(file).read()
    pq.write_table(table.set_column(3, "postcode", pa.array(["12a456"] * table.num_rows)), file)
    with pytest.raises(ValueError, match="six digits"):
        hospital_floor.floor(data, tmp_path / "out")


def test_the_table_is_partitioned_and_nearly_every_vector_is_its_own(tmp_path):
    data = hospital.prepare(20_000, tmp_path)
    assert hospital.prepare(20_000, tmp_path) == data
    rows = rows_of(data)
    assert len(rows) == len({row["stay_id"] for row in rows}) == 20_000
    assert {row["ward"] for row in rows} == set(hospital_data.WARDS)
    assert len({row["person_id"] for row in rows}) > 6_000
    vectors = {tuple(row[name] for name in hospital_floor.ATTRIBUTES) for row in rows}
    assert len(vectors) > 0.85 * len(rows)
    again = hospital.prepare(20_000, tmp_path / "again")
    files = sorted(path.relative_to(data) for path in data.rglob("*.parquet"))
    assert all((data / file).read_bytes() == (again / file).read_bytes() for file in files)
    assert "ward=obstetrics%2Fgynaecology" in {file.parent.name for file in files}


def test_the_published_sizes():
    assert (hospital.ROWS, hospital.persons(hospital.ROWS)) == (5_667_004, 2_000_000)
    assert round(hospital.persons(200_000), -4) == 70_000
    assert int(np.prod([height + 1 for height in HEIGHTS])) == hospital.HOSPITAL.lattice_nodes


def test_the_hospital_runs_against_its_floor(tmp_path, monkeypatch, capsys):
    def product(utility: int):
        def run(data: Path, out: Path) -> Measured:
            ran = measured(lambda: hospital_floor.floor(data, out / "vault", utility_at_least=utility))
            (out / "vault" / "summary.json").write_text('{"seconds": {"read": 0.25}}')
            return ran

        return run

    run_here(monkeypatch)
    monkeypatch.setattr(hospital, "run_product", product(6))
    target = tmp_path / "hospital.json"
    assert command.main(["hospital", "--rows", "300", "--cache", str(tmp_path), "--json", str(target)]) == 0
    (found,) = json.loads(target.read_text())
    assert found["parameters"]["records_compared"] == found["parameters"]["rows"] == 300
    assert (found["parameters"]["lattice_nodes"], found["parameters"]["utility_at_least"]) == (112, 6)
    monkeypatch.setattr(hospital, "run_product", product(5))
    assert command.main(["hospital", "--rows", "300", "--cache", str(tmp_path)]) == 1
    assert "records compared, these differ" in capsys.readouterr().err
