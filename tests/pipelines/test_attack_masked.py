"""An attack on a masked release: numbers are compared as numbers, and the vault tells whose each row is."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import naive_masking
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

N = 80


def rows() -> list[dict[str, Any]]:
    pick = random.Random(8)
    return [
        {"who": f"p{i}", "age": float(pick.randint(20, 60)), "income": pick.gauss(2000, 400), "sex": pick.choice("fm")}
        for i in range(N)
    ]


def policy(root: Path, noise: float, **masks: dict[str, Any]) -> str:
    pq.write_table(pa.Table.from_pylist(rows()), root / "table.parquet")
    columns = {
        "who": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "mask": {"method": "noise", "deviation": noise}},
        "income": {
            "role": "quasi-identifier",
            "mask": {"method": "noise", "deviation": 100 * noise},
            # Of other use: what is masked is in none of its intervals.
            "hierarchy": {"intervals": {"widths": [1000], "domain": [0, 9999]}},
        },
        "sex": {"role": "quasi-identifier", "mask": {"method": "none"}},
    }
    for name, mask in masks.items():
        columns[name]["mask"] = mask
    document = {
        "version": 1,
        "run": {"name": "masked"},
        "table": {"path": str(root / "table.parquet"), "record_id": "who"},
        "columns": columns,
        "guarantee": {"kind": "masked"},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
    }
    file = root / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(file)


def attacked(file: str, root: Path, *more: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["attack", file, f"--output={root / 'attack'}", *more])
    assert result.exit_code == 0, result.output
    return dict(json.loads((root / "attack" / "attack.json").read_text()))


def scaled(table: np.ndarray) -> np.ndarray:
    return np.asarray((table - table.mean(axis=0)) / table.std(axis=0))


def found(document: dict[str, Any], begins: str, cells: str = "nearest", **more: str) -> float:
    wanted = {"method": "distance", "attack": begins, "cells": cells, **more}
    (one,) = [m for m in document["measures"] if m["name"] == "correct_links" and m["parameters"] == wanted]
    return float(one["value"])


@pytest.mark.parametrize("noise", [1.0, 5.0])
def test_as_many_are_found_as_two_loops_find(privrisk: Privrisk, tmp_path: Path, noise: float) -> None:
    file = policy(tmp_path, noise)
    ran = privrisk(file)
    assert ran.code == 0, ran.err
    document = attacked(file, tmp_path)
    masked = {row["who"]: row for row in pq.read_table(tmp_path / "vault" / "decisions").to_pylist()}
    people = rows()
    before = np.array([[row["age"], row["income"]] for row in people])
    after = np.array([[masked[row["who"]][name] for name in ("age", "income")] for row in people])
    sex = np.array([row["sex"] for row in people])
    # Squares of the differences in standard deviations, and 0 or 1 of what is equal or not (T20).
    near: np.ndarray = (((before[:, None] - after[None]) / before.std(axis=0)) ** 2).sum(axis=2)
    near += sex[:, None] != sex[None]
    own = np.arange(N)
    wanted = tuple(int(np.count_nonzero(near.argmin(axis=axis) == own)) for axis in (1, 0))
    assert (found(document, "person"), found(document, "row")) == wanted
    assert wanted[0] > 0
    # Each file by its own mean and deviation: the other reading of T20, which noise makes another one.
    gaps: np.ndarray = ((scaled(before)[:, None] - scaled(after)[None]) ** 2).sum(axis=2)
    gaps += sex[:, None] != sex[None]
    by_own = tuple(int(np.count_nonzero(gaps.argmin(axis=axis) == own)) for axis in (1, 0))
    each = {"standardization": "each_file"}
    assert (found(document, "person", **each), found(document, "row", **each)) == by_own
    assert document["known"]["age"] == "as a number"
    assert document["known"]["sex"] == "by levels of its hierarchy"


def test_rows_without_values_do_not_draw_everybody_away(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes a lost number for any number finds people by the others; by the nearest one he finds hardly any."""
    file = policy(tmp_path, 1.0)
    table = [
        {**row, "income": None if i % 9 == 0 else row["income"], "age": None if i % 18 == 0 else row["age"]}
        for i, row in enumerate(rows())
    ]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "table.parquet")
    monkeypatch.setenv("MASKING_KEY", "ab" * 32)
    changed = ("--set=columns.sex={role: insensitive}", "--set=guarantee.key=env:MASKING_KEY")
    ran = privrisk(file, *changed)
    assert ran.code == 0, ran.err
    document = attacked(file, tmp_path, *changed)
    masked = {row["who"]: row for row in pq.read_table(tmp_path / "vault" / "decisions").to_pylist()}

    def squared(one: float | None, other: float | None, mean: float, deviation: float) -> float:
        """A number that is not known is one with the mean and the deviation of all."""
        if one is None or other is None:
            there = [value for value in (one, other) if value is not None]
            return 2 - len(there) + sum(((value - mean) / deviation) ** 2 for value in there)
        return ((one - other) / deviation) ** 2

    of = {name: [row[name] for row in table if row[name] is not None] for name in ("age", "income")}
    moments = {name: (float(np.mean(values)), float(np.std(values))) for name, values in of.items()}
    apart = np.array(
        [
            [sum(squared(one[name], masked[two["who"]][name], *moments[name]) for name in moments) for two in table]
            for one in table
        ]
    )
    for axis, begins in ((1, "person"), (0, "row")):
        least = apart.min(axis=axis, keepdims=True)
        tied = apart <= least + 1e-9
        right = sum(tied[i, i] / (tied[i] if axis else tied[:, i]).sum() for i in range(N))
        assert found(document, begins, "uniform") == pytest.approx(right, abs=1e-9)
        assert right > max(N / 3, 2 * found(document, begins))


def test_nobody_is_in_a_class_of_masked_values(privrisk: Privrisk, tmp_path: Path) -> None:
    """The masked row of a person is not in the class that is known of him: nothing is inferred from it."""
    file = policy(tmp_path, 5.0)
    as_it_is = ("--set=columns.ill={role: sensitive}",)
    table = pq.read_table(tmp_path / "table.parquet")
    pq.write_table(table.append_column("ill", pa.array(["flu", "cold"] * (N // 2))), tmp_path / "table.parquet")
    assert privrisk(file, *as_it_is).code == 0
    document = attacked(file, tmp_path, *as_it_is, "--set=attack.methods=[distance, homogeneity]")
    assert document["methods"] == ["distance"]
    said = (
        "Not tried: 'homogeneity', as the protected table has no sensitive column that is released as it is and "
        "holds a value, or masked"
    )
    assert said in " ".join(document["notes"])


def test_a_later_run_takes_the_vault_away(privrisk: Privrisk, tmp_path: Path) -> None:
    file = policy(tmp_path, 1.0)
    assert privrisk(file).code == 0
    for path in (tmp_path / "vault" / "decisions").iterdir():
        path.unlink()
    (tmp_path / "vault" / "decisions").rmdir()
    result = CliRunner().invoke(app, ["attack", file, f"--output={tmp_path / 'attack'}"])
    assert result.exit_code == 2
    assert "the vault no longer holds the decisions" in result.stderr


def by_method(document: dict[str, Any], way: str) -> float:
    wanted = {"method": "transparency", "attack": "person", "distance": way}
    (one,) = [m for m in document["measures"] if m["name"] == "correct_links" and m["parameters"] == wanted]
    return float(one["value"])


def released(root: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What is known of people, and what each of them became."""
    masked = {row["who"]: row for row in pq.read_table(root / "vault" / "decisions").to_pylist()}
    names = ("age", "income", "sex")
    return [tuple(row[q] for q in names) for row in rows()], [
        tuple(masked[row["who"]][q] for q in names) for row in rows()
    ]


def right(candidates: list[set[int]]) -> float:
    return sum(1 / len(one) for i, one in enumerate(candidates) if i in one)


TOLD = "--set=attack.methods=[distance, transparency]"


@pytest.mark.parametrize("percent", [2.5, 20])
def test_whoever_knows_that_ranks_were_swapped_intersects_them(
    privrisk: Privrisk, tmp_path: Path, percent: float
) -> None:
    """Nin, Herranz and Torra: the rows within so many ranks in every column, and of the same sex."""
    swap = {"method": "rank-swapping", "percent": percent}
    file = policy(tmp_path, 1.0, age=swap, income=swap)
    ran = privrisk(file)
    assert ran.code == 0, ran.err
    document = attacked(file, tmp_path, TOLD)
    before, after = released(tmp_path)
    width = int(N * percent / 100)
    near = naive_masking.rank_candidates([r[:2] for r in before], [r[:2] for r in after], [width, width])
    wanted = [{j for j in of if after[j][2] == before[i][2]} for i, of in enumerate(near)]
    assert all(i in of for i, of in enumerate(wanted))
    assert by_method(document, "intersection") == pytest.approx(right(wanted), abs=1e-9)
    assert "as it is known how each was masked" in " ".join(document["attacks"])
    assert not [one for one in document["measures"] if one["parameters"].get("distance") == "repetition"]
    other = ["attack", file, f"--output={tmp_path / 'attack'}", TOLD, "--set=columns.age.mask.percent=9"]
    result = CliRunner().invoke(app, other)
    assert result.exit_code == 2
    assert "columns.age.mask: 'transparency' takes the masks that the release was made with" in result.stderr


def test_whoever_knows_that_columns_were_aggregated_projects_or_repeats_it(privrisk: Privrisk, tmp_path: Path) -> None:
    """Ages apart, for which the centroids about a value are sure; then both together, for which they are a guess."""
    apart = {"method": "microaggregation", "k": 4, "algorithm": "univariate"}
    coded = {"method": "top-bottom", "quantiles": [0.1, 0.9]}
    file = policy(tmp_path, 1.0, age=apart, income=coded)
    assert privrisk(file).code == 0
    document = attacked(file, tmp_path, TOLD)
    before, after = released(tmp_path)
    low, high = min(row[1] for row in after), max(row[1] for row in after)
    near = naive_masking.axis_candidates([row[:1] for row in before], [row[:1] for row in after])

    def others(of: set[int], i: int) -> set[int]:
        coded_to = min(max(before[i][1], low), high)
        return {j for j in of if after[j][2] == before[i][2] and abs(after[j][1] - coded_to) < 1e-6}

    wanted = [others(of, i) for i, of in enumerate(near)]
    assert all(i in of for i, of in enumerate(wanted))
    assert by_method(document, "intersection") == pytest.approx(right(wanted), abs=1e-9)
    again = [others({j for j in range(N) if after[j][0] == after[i][0]}, i) for i in range(N)]
    assert by_method(document, "repetition") == pytest.approx(right(again), abs=1e-9)
    assert right(again) >= right(wanted)

    together = {"method": "microaggregation", "k": 4}
    file = policy(tmp_path, 1.0, age=together, income=together)
    assert privrisk(file).code == 0
    document = attacked(file, tmp_path, TOLD)
    before, after = released(tmp_path)
    numbers, shown = (np.array([row[:2] for row in of]) for of in (before, after))
    spread = numbers.std(axis=0)
    # Two standardized columns: the first axis is their sum or their difference, as they are correlated.
    sign = np.sign(np.corrcoef(numbers.T)[0, 1])
    scores, centres = (((of / spread) @ np.array([1.0, sign])).round(9)[:, None] for of in (numbers, shown))
    near = naive_masking.axis_candidates(scores.tolist(), centres.tolist())
    wanted = [{j for j in of if after[j][2] == before[i][2]} for i, of in enumerate(near)]
    assert by_method(document, "intersection") == pytest.approx(right(wanted), abs=1e-9)
    alike = [{j for j in range(N) if after[j] == after[i]} for i in range(N)]
    assert by_method(document, "repetition") == pytest.approx(right(alike), abs=1e-9)


def test_masks_that_leave_every_row_possible_are_said(privrisk: Privrisk, tmp_path: Path) -> None:
    file = policy(tmp_path, 1.0)
    assert privrisk(file).code == 0
    known = "--set=attack.intruder.columns=[age, income]"
    document = attacked(file, tmp_path, TOLD, known)
    assert "leave every row possible" in " ".join(document["notes"])
    assert document["methods"] == ["distance"]
    # The sex stays as it is: of its rows one is drawn.
    document = attacked(file, tmp_path, TOLD)
    assert by_method(document, "intersection") == pytest.approx(2)


def test_a_masked_sensitive_number_is_compared_if_it_is_known(privrisk: Privrisk, tmp_path: Path) -> None:
    """Two columns of noise, of which one is sensitive: found is what two loops find by all three columns."""
    file = policy(tmp_path, 1.0)
    sensitive = "--set=columns.income={role: sensitive, mask: {method: noise, deviation: 100}}"
    assert privrisk(file, sensitive).code == 0
    document = attacked(file, tmp_path, sensitive, "--set=attack.intruder.columns=[age, income, sex]")
    before, after = released(tmp_path)
    numbers, shown = (np.array([row[:2] for row in of]) for of in (before, after))
    sex = np.array([row[2] for row in before])
    near: np.ndarray = (((numbers[:, None] - shown[None]) / numbers.std(axis=0)) ** 2).sum(axis=2)
    near += sex[:, None] != sex[None]
    assert found(document, "person") == int(np.count_nonzero(near.argmin(axis=1) == np.arange(N)))
    assert document["known"]["income"] == "as a number"
