"""An attack on a masked release: numbers are compared as numbers, and the vault tells whose each row is."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import naive_masking
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import production_batches, release
from shared import without_charts
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = 80
KEY = "ab" * 32


def rows() -> list[dict[str, Any]]:
    pick = random.Random(8)
    return [
        {"who": f"p{i}", "age": float(pick.randint(20, 60)), "income": pick.gauss(2000, 400), "sex": pick.choice("fm"),
         "ill": ("flu", "cold")[i % 2]}
        for i in range(N)
    ]  # fmt: skip


def policy(root: Path, noise: float, table: list[dict[str, Any]], **masks: dict[str, Any]) -> str:
    pq.write_table(pa.Table.from_pylist(table), root / "table.parquet")
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
        "ill": {"role": "sensitive"},
    }
    for name, mask in masks.items():
        columns[name]["mask"] = mask
    document = {
        "version": 1,
        "run": {"name": "masked"},
        "table": {"path": str(root / "table.parquet"), "record_id": "who"},
        "columns": columns,
        "guarantee": {"kind": "masked", "key": "env:MASKING_KEY"},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
    }
    file = root / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(file)


@dataclass(frozen=True)
class Masked:
    """A masked release of the table, which tests share and none changes."""

    root: Path
    file: str
    changed: tuple[str, ...]

    @property
    def values(self) -> dict[str, dict[str, Any]]:
        """What each person's values became, by the vault."""
        return {row["who"]: row for row in pq.read_table(self.root / "vault" / "decisions").to_pylist()}

    @property
    def pairs(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What is known of people, and what each of them became."""
        became, names = self.values, ("age", "income", "sex")
        return [tuple(row[q] for q in names) for row in rows()], [
            tuple(became[row["who"]][q] for q in names) for row in rows()
        ]

    def attack(self, *more: str, output: Path | None = None) -> Any:
        place = output or self.root / "attack"
        return CliRunner().invoke(app, ["attack", self.file, f"--output={place}", *self.changed, *more])

    def attacked(self, *more: str) -> dict[str, Any]:
        result = self.attack(*more)
        assert result.exit_code == 0, result.output
        return dict(json.loads((self.root / "attack" / "attack.json").read_text()))


Release = Callable[..., Masked]


@pytest.fixture(scope="module")
def masked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """``masked(noise, changes, table=…, age=…)``: released once, with a fixed key, for all who ask for it."""
    made: dict[str, Masked] = {}

    def make(noise: float, *changed: str, table: list[dict[str, Any]] | None = None, **masks: Any) -> Masked:
        asked = repr((noise, changed, table, masks))
        if asked not in made:
            root = tmp_path_factory.mktemp("masked")
            file = policy(root, noise, table or rows(), **masks)
            ran = release(file, *changed, root=root)
            assert ran.code == 0, ran.err
            made[asked] = Masked(root, file, changed)
        return made[asked]

    with production_batches(spark), without_charts(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKING_KEY", KEY)
        yield make


def only(**asked: str) -> tuple[str, ...]:
    """Options that try nothing but what a test looks at."""
    return tuple(f"--set=attack.{key}=[{value}]" for key, value in asked.items())


def scaled(table: np.ndarray) -> np.ndarray:
    return np.asarray((table - table.mean(axis=0)) / table.std(axis=0))


def found(document: dict[str, Any], begins: str, cells: str = "nearest", **more: str) -> float:
    wanted = {"method": "distance", "attack": begins, "cells": cells, **more}
    (one,) = [m for m in document["measures"] if m["name"] == "correct_links" and m["parameters"] == wanted]
    return float(one["value"])


@pytest.mark.parametrize(
    "noise", [pytest.param(1.0, marks=pytest.mark.thorough("the same steps as with more noise")), 5.0]
)
def test_as_many_are_found_as_two_loops_find(masked: Release, noise: float) -> None:
    made = masked(noise)
    document = made.attacked(*only(cells="nearest"))
    values = made.values
    people = rows()
    before = np.array([[row["age"], row["income"]] for row in people])
    after = np.array([[values[row["who"]][name] for name in ("age", "income")] for row in people])
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


@pytest.mark.thorough("tests/extensions/attack/stages/test_distance.py")
def test_rows_without_values_do_not_draw_everybody_away(masked: Release) -> None:
    """Whoever takes a lost number for any number finds people by the others; by the nearest one he finds hardly any."""
    table = [
        {**row, "income": None if i % 9 == 0 else row["income"], "age": None if i % 18 == 0 else row["age"]}
        for i, row in enumerate(rows())
    ]
    made = masked(1.0, "--set=columns.sex={role: insensitive}", table=table)
    document = made.attacked(*only(standardization="people"))
    values = made.values

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
            [sum(squared(one[name], values[two["who"]][name], *moments[name]) for name in moments) for two in table]
            for one in table
        ]
    )
    for axis, begins in ((1, "person"), (0, "row")):
        least = apart.min(axis=axis, keepdims=True)
        tied = apart <= least + 1e-9
        right = sum(tied[i, i] / (tied[i] if axis else tied[:, i]).sum() for i in range(N))
        assert found(document, begins, "uniform") == pytest.approx(right, abs=1e-9)
        assert right > max(N / 3, 2 * found(document, begins))


@pytest.mark.thorough("tests/extensions/attack/stages/test_classes.py")
def test_nobody_is_in_a_class_of_masked_values(masked: Release) -> None:
    """The masked row of a person is not in the class that is known of him: nothing is inferred from it."""
    document = masked(5.0).attacked(*only(methods="distance, homogeneity", cells="nearest", standardization="people"))
    assert document["methods"] == ["distance"]
    said = (
        "Not tried: 'homogeneity', as the protected table has no sensitive column that is released as it is and "
        "holds a value, or masked"
    )
    assert said in " ".join(document["notes"])


def test_a_later_run_takes_the_vault_away(masked: Release, tmp_path: Path) -> None:
    made = masked(1.0)
    shutil.copytree(made.root / "vault", tmp_path / "vault")
    shutil.rmtree(tmp_path / "vault" / "decisions")
    result = made.attack(f"--set=output.vault={tmp_path / 'vault'}", output=tmp_path / "attack")
    assert result.exit_code == 2
    assert "the vault no longer holds the decisions" in result.stderr


def by_method(document: dict[str, Any], way: str) -> float:
    wanted = {"method": "transparency", "attack": "person", "distance": way}
    (one,) = [m for m in document["measures"] if m["name"] == "correct_links" and m["parameters"] == wanted]
    return float(one["value"])


def right(candidates: list[set[int]]) -> float:
    return sum(1 / len(one) for i, one in enumerate(candidates) if i in one)


TOLD = only(methods="transparency")


@pytest.mark.parametrize(
    "percent", [2.5, pytest.param(20, marks=pytest.mark.thorough("the same steps in larger windows"))]
)
def test_whoever_knows_that_ranks_were_swapped_intersects_them(masked: Release, percent: float) -> None:
    """Nin, Herranz and Torra: the rows within so many ranks in every column, and of the same sex."""
    swap = {"method": "rank-swapping", "percent": percent}
    made = masked(1.0, age=swap, income=swap)
    document = made.attacked(*TOLD)
    before, after = made.pairs
    width = int(N * percent / 100)
    near = naive_masking.rank_candidates([r[:2] for r in before], [r[:2] for r in after], [width, width])
    wanted = [{j for j in of if after[j][2] == before[i][2]} for i, of in enumerate(near)]
    assert all(i in of for i, of in enumerate(wanted))
    assert by_method(document, "intersection") == pytest.approx(right(wanted), abs=1e-9)
    assert "as it is known how each was masked" in " ".join(document["attacks"])
    assert not [one for one in document["measures"] if one["parameters"].get("distance") == "repetition"]
    result = made.attack(*TOLD, "--set=columns.age.mask.percent=9")
    assert result.exit_code == 2
    assert "columns.age.mask: 'transparency' takes the masks that the release was made with" in result.stderr


def test_whoever_knows_that_columns_were_aggregated_projects_or_repeats_it(masked: Release) -> None:
    """Ages apart, for which the centroids about a value are sure; then both together, for which they are a guess."""
    apart = {"method": "microaggregation", "k": 4, "algorithm": "univariate"}
    coded = {"method": "top-bottom", "quantiles": [0.1, 0.9]}
    made = masked(1.0, age=apart, income=coded)
    document = made.attacked(*TOLD)
    before, after = made.pairs
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
    made = masked(1.0, age=together, income=together)
    document = made.attacked(*TOLD)
    before, after = made.pairs
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


@pytest.mark.thorough("tests/extensions/attack/planning/test_masks.py")
def test_masks_that_leave_every_row_possible_are_said(masked: Release) -> None:
    made = masked(1.0)
    both = only(methods="distance, transparency", cells="nearest", standardization="people")
    document = made.attacked(*both, "--set=attack.intruder.columns=[age, income]")
    assert "leave every row possible" in " ".join(document["notes"])
    assert document["methods"] == ["distance"]
    # The sex stays as it is: of its rows one is drawn.
    document = made.attacked(*TOLD)
    assert by_method(document, "intersection") == pytest.approx(2)


@pytest.mark.thorough("test_as_many_are_found_as_two_loops_find, without the sensitive column")
def test_a_masked_sensitive_number_is_compared_if_it_is_known(masked: Release) -> None:
    """Two columns of noise, of which one is sensitive: found is what two loops find by all three columns."""
    made = masked(1.0, "--set=columns.income={role: sensitive, mask: {method: noise, deviation: 100}}")
    few = only(cells="nearest", standardization="people")
    document = made.attacked(*few, "--set=attack.intruder.columns=[age, income, sex]")
    before, after = made.pairs
    numbers, shown = (np.array([row[:2] for row in of]) for of in (before, after))
    sex = np.array([row[2] for row in before])
    near: np.ndarray = (((numbers[:, None] - shown[None]) / numbers.std(axis=0)) ** 2).sum(axis=2)
    near += sex[:, None] != sex[None]
    assert found(document, "person") == int(np.count_nonzero(near.argmin(axis=1) == np.arange(N)))
    assert document["known"]["income"] == "as a number"
