"""The benchmark of sharing: the floor and the product decide the same, and a figure is only where they do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import sharing
from benchmarks.case_study import BenchmarkError

USERS = 800


@pytest.mark.thorough("test_another_answer_is_no_figure; every run of the benchmark itself compares both")
def test_floor_and_product_decide_the_same_and_find_the_same_risks(tmp_path: Path) -> None:
    found = sharing.decided(sharing.prepare(USERS, 10, tmp_path), "hard")
    assert found.name == "sharing-hard-10"
    assert found.parameters["with_common_friends"] > found.parameters["pairs"] // 2
    assert found.parameters["rows"] == USERS
    spread = sharing.diffused(sharing.prepare(USERS, 1, tmp_path))
    assert 0 < spread.parameters["error"] <= 1.5e-6
    assert spread.parameters["showing"] <= USERS // 50


def test_hard_pairs_are_two_steps_apart_and_differ(tmp_path: Path) -> None:
    place = sharing.prepare(USERS, 1, tmp_path).place
    for name in ("hard", "uniform", "hard-4", "told"):
        table = pq.read_table(place / f"{name}.parquet")
        pairs = list(zip(table.column("u").to_pylist(), table.column("v").to_pylist(), strict=True))
        assert len(set(pairs)) == len(pairs) > 30
        assert all(u != v for u, v in pairs)
    assert pq.read_table(place / "hard-4.parquet").num_rows > 3 * pq.read_table(place / "hard.parquet").num_rows
    assert sharing.prepare(USERS, 1, tmp_path).place == place


def test_the_first_users_who_show_are_taken_with_all_their_pairs(tmp_path: Path) -> None:
    pairs = tmp_path / "told.parquet"
    pq.write_table(pa.table({"u": ["c", "c", "a", "b", "b"], "v": ["a", "b", "b", "a", "c"]}), pairs)
    taken = pq.read_table(sharing._first(str(pairs), 2, tmp_path / "some.parquet"))
    assert taken.to_pydict() == {"u": ["c", "c", "a"], "v": ["a", "b", "b"]}


def test_another_answer_is_no_figure(tmp_path: Path) -> None:
    rows = {"u": ["a", "b"], "v": ["b", "a"], "common_friends": [1, 2], "level_a0": [0, 1], "loss": [0.5, 0.0]}
    for name in ("held", "timed"):
        (tmp_path / name / "decisions").mkdir(parents=True)
        pq.write_table(pa.table(rows), tmp_path / name / "decisions" / "part.parquet")
    floor = tmp_path / "floor.parquet"
    pq.write_table(pa.table(rows), floor)
    sharing._compare(tmp_path / "held", floor, timed=tmp_path / "timed")
    for name, other in (("common_friends", [1, 3]), ("level_a0", [1, 1]), ("loss", [0.5, 1e-6])):
        pq.write_table(pa.table({**rows, name: other}), floor)
        with pytest.raises(BenchmarkError, match="do not decide the same"):
            sharing._compare(tmp_path / "held", floor, timed=tmp_path / "timed")
    spread = {"u": ["a"], "v": ["b"], "reached": [1.25]}
    pq.write_table(
        pa.table({"u": ["a"], "v": ["b"], "loss": [2.5], "utility": [2.0]}), tmp_path / "held/decisions/part.parquet"
    )
    pq.write_table(pa.table(spread), floor)
    sharing._hold_spread(tmp_path / "held", floor)
    for other in (1.2501, 1.2499):
        pq.write_table(pa.table({**spread, "reached": [other]}), floor)
        with pytest.raises(BenchmarkError, match="risk of a level"):
            sharing._hold_spread(tmp_path / "held", floor)
