"""A masked release held against its table: every number against one of numpy, and what is refused by name."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from bad_input import ASSESSED, SECRET, Kind
from product import production_batches, release
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

pytestmark = pytest.mark.usefixtures("no_charts")

N = 90
NUMBERS = ("age", "income", "pay")
PUBLISHED = "--set=assess.release=published"


def rows() -> list[dict[str, Any]]:
    """Ages and incomes with gaps, pay that follows from the age, and a team by the pay."""
    pick = random.Random(17)
    found = []
    for i in range(N):
        age = float(pick.randint(20, 60))
        pay = round(100 * age + pick.gauss(0, 300))
        lost = i % 15 == 3
        income = None if lost else pick.gauss(2000, 400)
        found.append(
            {"who": f"p{i}", "age": None if lost else age, "income": income, "pay": pay, "team": "ab"[pay > 4000]}
        )
    return found


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Where a masked release lies with its vault and its policy."""
    root = tmp_path_factory.mktemp("masked")
    pq.write_table(pa.Table.from_pylist(rows()), root / "table.parquet")
    together = {"method": "microaggregation", "k": 4}
    document = {
        "version": 1,
        "run": {"name": "masked"},
        "table": {"path": str(root / "table.parquet"), "record_id": "who"},
        "columns": {
            "who": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "mask": together},
            "income": {"role": "quasi-identifier", "mask": together},
            "pay": {"role": "sensitive", "mask": {"method": "rank-swapping", "percent": 10}},
            "team": {"role": "insensitive"},
        },
        "assess": {"special_uniques": None, "adversary": None, "records": False},
        "guarantee": {"kind": "masked", "key": "env:MASKING_KEY"},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
    }
    (root / "policy.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with production_batches(spark), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKING_KEY", "ab" * 32)
        ran = release(str(root / "policy.yaml"), root=root)
    assert ran.code == 0, ran.err
    return root


def assessed(root: Path, *more: str, code: int = 0) -> tuple[dict[Any, Any], str]:
    """Numbers of an assessment by subject, measure, and the rest of what they are of; what was said."""
    place = root / f"assess-{abs(hash(more))}"
    result = CliRunner().invoke(app, ["assess", str(root / "policy.yaml"), f"--output={place}", *more])
    assert result.exit_code == code, result.output
    found = {}
    for one in json.loads((place / "measures.json").read_text()) if code < 2 else ():
        of = one["parameters"]
        key = "column", "share", "p", "model", "from"
        found[of["subject"], one["name"], *[of[name] for name in key if name in of]] = one["value"]
    return found, (place / "report.html").read_text() if code < 2 else result.stderr


def numbers(table: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.array([np.nan if row[name] is None else row[name] for row in table], float) for name in NUMBERS}


def test_every_number_is_that_of_numpy(masked: Path) -> None:
    classified = ("--set=assess.label=team", "--set=assess.classifiers={folds: 3}")
    found, page = assessed(masked, PUBLISHED, *classified, "--set=assess.intervals={pay: {p: 4}}")
    held = {row["who"]: row for row in pq.read_table(masked / "vault" / "decisions").to_pylist()}
    table = rows()
    sides = {"table": numbers(table), "release": numbers([held[row["who"]] for row in table])}
    for subject, of in sides.items():
        for name, values in of.items():
            known = np.sort(values[~np.isnan(values)])
            assert found[subject, "mean", name] == pytest.approx(known.mean())
            assert found[subject, "variance", name] == pytest.approx(known.var(ddof=1))
            for share in (0.05, 0.25, 0.5, 0.75, 0.95):
                assert found[subject, "quantile", name, share] == known[int(share * (len(known) - 1) + 1e-9)]
        whole = np.array([row for row in np.column_stack(list(of.values())) if not np.isnan(row).any()])
        assert found[subject, "covariance", "age, pay"] == pytest.approx(np.cov(whole.T)[0, 2])
        assert found[subject, "correlation", "age, income"] == pytest.approx(np.corrcoef(whole.T)[0, 1])
    x, y = sides["table"]["pay"], sides["release"]["pay"]
    assert found["release", "masked_distance", "pay"] == pytest.approx(
        np.abs(x - y).mean() / (np.sqrt(2) * x.std(ddof=1))
    )
    assert found["release", "sdid", "pay", 4] == np.mean(np.abs(x - y) <= 0.04 * x.std())
    assert 0 < found["release", "rid", "pay", 4] < found["release", "rid", "age", 10] <= 1
    assert found["release", "masked_distance", "age"] > 0
    # The pay keeps its mean and its variance, and is other people's.
    assert found["release", "mean_shift", "pay"] == 0
    assert found["release", "variance_ratio", "pay"] == 1
    classes = Counter((row["age"], row["income"]) for row in held.values())
    classes.pop((None, None), None)
    assert found["release", "k"] == min(classes.values()) >= 4
    assert found["release", "classes"] == len(classes)
    assert found["release", "suppressed_records"] == sum(row["age"] is None for row in held.values()) == 6
    assert found["release", "records"] == found["table", "records"] == N
    assert found["release", "prosecutor_mean"] == pytest.approx(len(classes) / (N - 6))
    # An age as a number tells the team; as one of forty categories it would hardly.
    for model in ("logistic-regression", "random-forest"):
        assert found["table", "classifier_accuracy", model] > 0.8
        assert found["release", "classifier_accuracy", model] > 0.65
    assert found["table", "majority_accuracy"] == found["release", "majority_accuracy"]
    assert "The release is masked" in page
    assert "true value of" in page


@pytest.mark.parametrize("kind", ASSESSED, ids=lambda kind: kind.what.replace(" ", "-"))
def test_it_is_told_what_is_wrong_and_what_would_do(masked: Path, kind: Kind) -> None:
    """One line that names the key or the column, and no record's value."""
    kind.change(masked)
    arguments = [one.format(root=masked) for one in kind.arguments]
    given = [] if any("assess.release=" in one for one in arguments) else [PUBLISHED]
    _, said = assessed(masked, *given, *arguments, code=kind.code)
    (line,) = [line for line in said.splitlines() if " INFO " not in line]
    assert kind.said in line
    assert SECRET not in said


def test_what_a_vault_that_is_gone_leaves(masked: Path) -> None:
    """What needs to know which record became which row is not computed, and the page says why."""
    gone = f"--set=output.vault={masked / 'no-vault'}"
    found, page = assessed(masked, PUBLISHED, gone, "--set=assess.thresholds={rid: 0.9}", code=1)
    assert found["release", "mean", "pay"] == found["table", "mean", "pay"]
    assert found["release", "rid", "pay"] is None
    assert found["release", "k"] >= 4
    assert "the vault no longer tells whose the rows of the release are" in page


def test_a_masked_table_of_another_program_is_matched_by_its_ids(masked: Path) -> None:
    """Renamed, as texts, in another order: its numbers are those of the release it is a copy of."""
    held = pq.read_table(masked / "vault" / "decisions").to_pylist()
    texts = [{"id": row["who"], "pay": str(row["pay"]), "years": row["age"], "income": row["income"]} for row in held]
    pq.write_table(pa.Table.from_pylist(texts[::-1]), masked / "theirs.parquet")
    theirs = f"--set=assess.release={{path: {masked / 'theirs.parquet'}, record_id: id, columns: {{age: years}}}}"
    found, _ = assessed(masked, theirs)
    ours, _ = assessed(masked, PUBLISHED)
    wanted = {key: value for key, value in ours.items() if key[0] == "release"}
    assert {key: value for key, value in found.items() if key[0] == "release"} == wanted


def test_a_masked_table_whose_ids_are_texts_of_numbers_is_matched_to_numeric_ids(masked: Path) -> None:
    table = [{**row, "who": i} for i, row in enumerate(rows())]
    pq.write_table(pa.Table.from_pylist(table), masked / "numbered.parquet")
    of_table = f"--set=table={{path: {masked / 'numbered.parquet'}, record_id: who}}"
    found = []
    for form in ("{}", "{}.0"):
        texts = [{**row, "who": form.format(row["who"])} for row in table]
        pq.write_table(pa.Table.from_pylist(texts[::-1]), masked / "texts.parquet")
        theirs = f"--set=assess.release={{path: {masked / 'texts.parquet'}, record_id: who}}"
        found.append(assessed(masked, of_table, theirs)[0])
    assert found[0] == found[1]
    assert {"rid", "mean_shift"} <= {key[1] for key in found[0]}, sorted(map(str, found[0]))


@pytest.mark.thorough("tests/stages/assessing/test_matched.py")
def test_windows_of_masks_are_searched_above_exact_pairs(masked: Path) -> None:
    """90 people and rows are 24,300 comparisons of three columns; two windows that are searched take far fewer."""
    tried = ("--set=attack.methods=[transparency]", "--set=attack.intruder.columns=[age, income, pay]")

    def attacked(limit: int, code: int = 0) -> Any:
        place = masked / f"attack-{limit}"
        options = ["attack", str(masked / "policy.yaml"), f"--output={place}", *tried]
        result = CliRunner().invoke(app, [*options, f"--set=attack.exact_pairs={limit}"])
        assert result.exit_code == code, result.output
        return json.loads((place / "attack.json").read_text())["measures"] if not code else result.stderr

    found = attacked(2_500)
    assert found == attacked(10**10)
    of = {"method": "transparency", "attack": "person", "distance": "intersection"}
    assert next(m["value"] for m in found if m["name"] == "correct_links" and of.items() <= m["parameters"].items()) > 0
    assert "'transparency' holds up to" in attacked(1, code=2)
