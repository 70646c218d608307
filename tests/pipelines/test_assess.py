"""``privrisk assess`` end to end: every number recomputed, exit codes, refusals, and nothing that leaks."""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import random
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive_assess as naive
import numpy as np
import pandas as pd
import pytest
import yaml
from product import ROOT, Privrisk
from pyspark.sql import SparkSession
from shared import drawing, without_charts
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

ROWS = 48
PLANTED = "zQxCanary"
NAMES = ["age", "sex", "city"]
THRESHOLDS = [0.05, 0.2, 0.5]
AGES = {str(i): (str(i), "young" if i < 6 else "old", "*") for i in range(12)}
CITIES = {"Ulm": ("Ulm", "south", "*"), "Bonn": ("Bonn", "north", "*"), "Kiel": ("Kiel", "north", "*")}
SEXES = {"F": ("F", "*"), "M": ("M", "*")}
WARDS = {"eye": ("eye", "head", "*"), "ear": ("ear", "head", "*"), "leg": ("leg", "*"), "arm": ("arm", "*")}
LEGS = ("leg", "arm")
PATHS = {"age": AGES, "sex": SEXES, "city": CITIES}
TREES = {name: naive.Tree(paths) for name, paths in PATHS.items()}


@dataclass(frozen=True)
class Assessed:
    """How a run of ``privrisk assess`` ended."""

    code: int
    out: str
    err: str
    place: Path

    @property
    def measures(self) -> list[dict[str, Any]]:
        return list(json.loads((self.place / "measures.json").read_text()))

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.place / "assessment.json").read_text()))

    @property
    def status(self) -> dict[str, Any]:
        return dict(json.loads((self.place / "status.json").read_text()))

    def records(self, name: str = "records") -> pd.DataFrame:
        return pd.read_parquet(self.place / name)

    def figures(self, subject: str = "table", set_name: str = "all") -> naive.Figures:
        found: naive.Figures = {}
        for one in self.measures:
            given = one["parameters"]
            if (given["subject"], given["set"]) != (subject, set_name):
                continue
            key: Hashable = next(
                (given[name] for name in ("column", "attributes", "model", "from") if name in given), None
            )
            key = given.get("threshold", key) if "share_above" in one["name"] and key is None else key
            assert (one["name"], key) not in found
            found[one["name"], key] = float(one["value"]) if isinstance(one["value"], str) else one["value"]
        return found


Assess = Callable[..., Assessed]


@pytest.fixture(scope="module")
def assess(spark: SparkSession) -> Iterator[Assess]:
    """``assess(policy, *arguments, output=…)`` in the tests' own session."""
    with pytest.MonkeyPatch.context() as patch, without_charts():
        patch.chdir(ROOT)
        batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
        usual = spark.conf.get(batch)
        spark.conf.set(batch, "10000")

        def run(policy: Path, *arguments: str, output: Path | None = None) -> Assessed:
            place = output or policy.parent / policy.stem
            result = CliRunner().invoke(app, ["assess", str(policy), *arguments, f"--output={place}"])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            return Assessed(result.exit_code, result.stdout, result.stderr, place)

        yield run
        spark.conf.set(batch, usual)
        logging.getLogger("privrisk_spark").handlers.clear()


def write_tree(path: Path, paths: naive.Paths) -> dict[str, str]:
    columns = max(map(len, paths.values()))
    padded = [(*one, *one[-1:] * (columns - len(one))) for one in paths.values()]
    path.write_text("".join(";".join(one) + "\n" for one in padded))
    return {"file": str(path)}


def people() -> pd.DataFrame:
    pick = random.Random(13)
    rows = [
        {
            "id": f"p{i}",
            "who": f"w{i // 2 if i < 16 else i}",
            "weight": pick.choice([1.5, 2.25, 10.0, 0.0]),
            "age": str(pick.randint(0, 11)) if i % 5 else "3",
            "sex": pick.choice("FM"),
            "city": pick.choice(["Ulm", "Bonn", "Bonn", "Kiel"]),
            "income": pick.choice([float(pick.randint(8, 14)), 100.0]),
            "diagnosis": pick.choice(["a", "b", "c", "c", "c", None]),
            "ward": pick.choice(["eye", "ear", LEGS[i % 2]]),
            "label": pick.choice(["x", "y"]),
        }
        for i in range(ROWS)
    ]
    table = pd.DataFrame(rows)
    table.loc[3, "income"] = math.nan
    return table


def masked(table: pd.DataFrame) -> pd.DataFrame:
    """As another program might: renamed columns, local recoding, noise, records in another order."""
    pick = random.Random(31)
    up = {name: {leaf: path[1] for leaf, path in paths.items()} for name, paths in PATHS.items()}
    released = pd.DataFrame(
        {
            "key": table["id"],
            "years": [up["age"][a] if i % 3 else a for i, a in enumerate(table["age"])],
            "sex": ["*" if i % 4 else s for i, s in enumerate(table["sex"])],
            "town": [up["city"][c] if i % 5 else "*" for i, c in enumerate(table["city"])],
            "diagnosis": table["diagnosis"],
            "ward": table["ward"],
            "label": table["label"],
            "pay": [
                None if i == 7 else v + pick.choice([-1, 0, 0, 2]) for i, v in enumerate(table["income"].fillna(9))
            ],
        }
    )
    return released.sample(frac=1, random_state=1).reset_index(drop=True)


def in_files(table: pd.DataFrame, path: Path, files: int) -> Path:
    path.mkdir()
    shuffled = table.sample(frac=1, random_state=files)
    for i in range(files):
        shuffled.iloc[i::files].to_parquet(path / f"part-{i}.parquet", index=False)
    return path


@dataclass(frozen=True)
class World:
    """A table, a masked form of it, the people it is of, and a policy."""

    root: Path
    table: pd.DataFrame
    masked: pd.DataFrame
    register: pd.DataFrame
    document: dict[str, Any]

    def policy(self, name: str, **parts: Any) -> Path:
        """Policy with keys replaced; one that is None is left out."""
        document = {key: value for key, value in (self.document | parts).items() if value is not None}
        path = self.root / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def columns(self, **changed: Any) -> dict[str, Any]:
        return {**self.document["columns"], **changed}

    @property
    def release(self) -> dict[str, Any]:
        renamed = {"age": "years", "city": "town"}
        return {"path": str(self.root / "masked.parquet"), "columns": renamed, "record_id": "key"}

    @property
    def pairs(self) -> list[tuple[naive.Row, naive.Row]]:
        after = {row["key"]: row for row in released(self.masked)}
        return [(row, after[row["id"]]) for row in rows_of(self.table)]


def rows_of(table: pd.DataFrame) -> list[naive.Row]:
    """Rows with None for what is missing."""
    return [
        {name: None if value is None or value != value else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def released(table: pd.DataFrame) -> list[naive.Row]:
    return rows_of(table.rename(columns={"years": "age", "town": "city"}))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("assess")
    table = people()
    in_files(table, root / "table", 4)
    release = masked(table)
    release.to_parquet(root / "masked.parquet", index=False)
    pick = random.Random(4)
    register = pd.DataFrame(
        {
            "years": [str(pick.randint(0, 11)) for _ in range(60)],
            "town": [pick.choice(list(CITIES)) for _ in range(60)],
            "n": [pick.randint(1, 3) for _ in range(60)],
        }
    )
    register.to_parquet(root / "register.parquet", index=False)
    quasi = {
        name: {"role": "quasi-identifier", "hierarchy": write_tree(root / f"{name}.csv", paths)}
        for name, paths in PATHS.items()
    }
    document = {
        "version": 1,
        "run": {"name": "world"},
        "table": {"path": str(root / "table"), "record_id": "id"},
        "columns": {
            "id": {"role": "identifier"},
            "who": {"role": "identifier"},
            "weight": {"role": "insensitive"},
            **quasi,
            "income": {"role": "sensitive"},
            "diagnosis": {"role": "sensitive"},
            "ward": {"role": "sensitive"},
            "label": {"role": "insensitive", "action": "drop"},
        },
    }
    return World(root, table, release, register, document)


PREDICTED = {"classifier_accuracy", "majority_accuracy"}
ATTACK = {"access_threshold", "sunk_threshold", "least_group_size", "least_penalty"}


def agree(found: naive.Figures, expected: naive.Figures, *, besides: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Every figure is there, no other is, and they are equal."""
    assert {key for key in found if key[0] not in besides} == set(expected)
    for key, value in expected.items():
        assert found[key] == (value if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)), key


def groups(rows: list[naive.Row], names: list[str], person: str | None = None) -> Counter[int]:
    found: Counter[int] = Counter()
    for held in naive.grouped(rows, names).values():
        found[naive.size_of(held, person)] += naive.size_of(held, person)
    return found


FULL = {
    "label": "label",
    "household": "who",
    "classifiers": {"sample": 30, "folds": 3},
    "k": 3,
    "concealment": True,
    "intervals": {"income": {"masked": "pay", "p": 15}},
    "sensitive": {"ward": {"distance": "hierarchical"}, "diagnosis": {"c": 1.5}},
}


@pytest.fixture(scope="module")
def full(world: World) -> Path:
    """Everything that can be asked of a table and a masked form of it."""
    asked = json.loads(json.dumps(FULL))
    asked["sensitive"]["ward"]["hierarchy"] = write_tree(world.root / "ward.csv", WARDS)
    return world.policy("full", assess={**asked, "release": world.release})


@pytest.fixture(scope="module")
def compared(assess: Assess, full: Path) -> Assessed:
    """What is asked of both, with its charts drawn."""
    with drawing():
        ran = assess(full)
    assert ran.code == 0, ran.err
    return ran


# Missing values are one more value, after the last.
DOMAINS = {"diagnosis": ["a", "b", "c", None], "ward": list(WARDS)}


def attributes(rows: list[naive.Row], names: list[str], **more: Any) -> naive.Figures:
    return naive.attribute(
        rows, names, "diagnosis", DOMAINS["diagnosis"], distance="equal", c=1.5, **more
    ) | naive.attribute(rows, names, "ward", DOMAINS["ward"], distance="hierarchical", tree=naive.Tree(WARDS), **more)


def incomes(rows: list[naive.Row]) -> list[Any]:
    values = {row["income"] for row in rows}
    return sorted(value for value in values if value is not None) + ([None] if None in values else [])


def homes(rows: list[naive.Row], household: list[Any], lost: tuple[str, ...] = ()) -> naive.Figures:
    """Household risk of records that are found with 1/f; those that are suppressed whole are not."""
    sizes = {key: len(held) for key, held in naive.grouped(rows, NAMES).items()}
    keys = [tuple(row[name] for name in NAMES) for row in rows]
    most, mean = naive.households([0.0 if key == lost else 1 / sizes[key] for key in keys], household)
    return {("household_risk_max", None): most, ("household_risk_mean", None): mean}


def test_every_figure_of_the_table(compared: Assessed, world: World) -> None:
    rows = rows_of(world.table)
    expected = naive.identity(rows, NAMES, k=3, thresholds=THRESHOLDS)
    expected |= naive.special(rows, NAMES, size=3, fraction=0.1)
    expected |= attributes(rows, NAMES)
    expected |= naive.attribute(rows, NAMES, "income", incomes(rows), distance="ordered")
    expected |= naive.joint(rows, NAMES, {"income": 3.0, "diagnosis": 1.5, "ward": 3.0})
    expected |= homes(rows, [row["who"] for row in rows])
    expected |= naive.sizes_utility(rows, NAMES, k=3, label="label", suppressed=("*",) * 3)
    expected |= naive.Adversary().attacks(groups(rows, NAMES))
    agree(compared.figures(), expected, besides=ATTACK | PREDICTED)
    found = compared.figures()
    assert [found[name, None] for name in ("access_threshold", "sunk_threshold")] == [48, 54]


def test_every_figure_of_a_release_by_other_software(compared: Assessed, world: World) -> None:
    table, rows, pairs = rows_of(world.table), released(world.masked), world.pairs
    expected = naive.identity(rows, NAMES, k=3, thresholds=THRESHOLDS)
    expected |= naive.special(rows, NAMES, size=3, fraction=0.1)
    expected |= attributes(rows, NAMES)
    expected |= naive.joint(rows, NAMES, {"diagnosis": 1.5, "ward": 3.0})
    who = {row["id"]: row["who"] for row in table}
    expected |= homes(rows, [who[row["key"]] for row in rows])
    expected |= naive.sizes_utility(rows, NAMES, k=3, label="label", suppressed=("*",) * 3)
    expected |= naive.cells(rows, NAMES, TREES)
    expected["kl_divergence", None] = naive.divergence(table, rows, NAMES, TREES)
    expected |= naive.entropy(pairs, NAMES, TREES)
    expected |= naive.concealment(pairs, NAMES, TREES)
    pay = [after["pay"] for _, after in pairs]
    expected |= naive.intervals([before["income"] for before, _ in pairs], pay, pay, 15, "income")
    numbers = [[[math.nan if one is None else one] for one in side] for side in ([b["income"] for b, _ in pairs], pay)]
    known = naive.numeric(*numbers)
    expected |= {(name, "income"): known[name][0] for name in ("mean_shift", "variance_ratio")}
    expected["masked_distance", "income"] = known["il1s"][0]
    expected |= naive.Adversary().attacks(groups(rows, NAMES))
    expected["suppressed_records", None] = 0
    agree(compared.figures("release"), expected, besides=ATTACK | PREDICTED)
    # The bound is met by groups of that size, and by no smaller ones; by that fine, and by no less.
    found, planner = compared.figures("release"), naive.Adversary()
    chance = [planner.succeeds(g) * (planner.known(g) > naive.TOLERANCE) for g in range(60)]
    assert found["least_group_size", None] == 1 + max(g for g, p in enumerate(chance) if p > 0.05) == 48

    def attacked(penalty: float) -> float:
        other = naive.Adversary()
        other.penalty = penalty
        return max(other.succeeds(g) * (other.known(g) > naive.TOLERANCE) for g in groups(rows, NAMES))

    assert attacked(found["least_penalty", None] * (1 + 1e-6)) <= 0.05 < attacked(found["least_penalty", None] * 0.999)


def test_records_of_both(compared: Assessed, world: World) -> None:
    planner = naive.Adversary()
    for directory, rows, key in (
        ("records", rows_of(world.table), "id"),
        ("released-records", released(world.masked), "key"),
    ):
        told = compared.records(directory).set_index("id")
        assert sorted(told.index) == sorted(row["id"] for row in rows_of(world.table))
        for held in naive.grouped(rows, NAMES).values():
            size = len(held)
            for row in held:
                one = told.loc[row[key]]
                assert (one["class_size"], one["prosecutor"]) == (size, 1 / size)
                wards = Counter(row["ward"] for row in held)
                assert one["l_distinct_ward"] == len(wards)
                assert one["alpha_ward"] == pytest.approx(max(wards.values()) / size)
                entropy = -sum(n / size * math.log(n / size) for n in wards.values())
                assert one["l_entropy_ward"] == pytest.approx(math.exp(entropy))
                assert 0 <= one["t_closeness_diagnosis"] <= 1
                assert one["p_reid"] == pytest.approx(planner.succeeds(size)) == pytest.approx(one["risk"])
                assert one["expected_payoff"] == pytest.approx(planner.known(size))
    assert {stat.S_IMODE(path.stat().st_mode) for path in compared.place.iterdir() if path.is_file()} == {0o600}
    assert stat.S_IMODE(compared.place.stat().st_mode) == 0o700
    assert not [path for path in compared.place.iterdir() if path.name.startswith(".scratch")]


def test_classifiers_predict_the_label_of_a_sample(
    compared: Assessed, assess: Assess, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label that is a column's value is known from it in the table, and not from what the release tells of it."""
    told = [one for one in compared.measures if one["name"] in PREDICTED]
    assert [one["parameters"]["subject"] for one in told] == ["table"] * 3 + ["release"] * 3
    assert {one["parameters"]["sample"] for one in told} == {30}
    table, hidden = world.table.copy(), world.masked.copy()
    table["label"] = table["sex"]
    hidden["label"] = hidden["key"].map(dict(zip(table["id"], table["sex"], strict=True)))
    hidden["sex"] = "*"
    table.to_parquet(world.root / "labelled.parquet", index=False)
    hidden.to_parquet(world.root / "hidden.parquet", index=False)
    source = {"path": str(world.root / "labelled.parquet"), "record_id": "id"}
    asked: dict[str, Any] = {"classifiers": {}, "label": "label", "adversary": None, "special_uniques": None}
    asked["release"] = {"path": str(world.root / "hidden.parquet"), "columns": world.release["columns"]}
    policy = world.policy("labelled", table=source, assess=asked)
    ran = assess(policy)
    assert ran.code == 0, ran.err
    before, after = ran.figures("table"), ran.figures("release")
    for model in ("logistic-regression", "random-forest"):
        assert before["classifier_accuracy", model] >= 0.95
        assert after["classifier_accuracy", model] < 0.85
    monkeypatch.setitem(sys.modules, "sklearn", None)
    ran = assess(policy, output=world.root / "without")
    assert ran.code == 2
    assert "privrisk-spark[ml]" in ran.err


def test_records_without_a_household_are_alone(assess: Assess, world: World) -> None:
    """A sensitive column names the household, and is missing in some records; a record that is lost has no risk."""
    rows = rows_of(world.table)
    quiet: dict[str, Any] = {"household": "diagnosis", "adversary": None, "special_uniques": None, "records": False}
    table, lost = with_suppressed(world, 3)
    table.to_parquet(world.root / "alone.parquet", index=False)
    given = {**world.release, "path": str(world.root / "alone.parquet")}
    of = {row["id"]: row["diagnosis"] for row in rows}
    ran = assess(world.policy("alone-release", assess={**quiet, "release": given}))
    assert ran.code == 0, ran.err
    expected = homes(rows, [row["diagnosis"] for row in rows])
    assert {key: value for key, value in ran.figures().items() if key in expected} == pytest.approx(expected)
    expected = homes(lost, [of[row["key"]] for row in lost], ("*",) * 3)
    found = ran.figures("release")
    assert {key: value for key, value in found.items() if key in expected} == pytest.approx(expected)
    # Without the records' ids nothing is known, and a threshold would be missed.
    ran = assess(world.policy("alone-unnamed", assess={**quiet, "release": {**given, "record_id": None}}))
    assert ran.code == 0, ran.err
    assert ran.figures("release")["household_risk_max", None] is None


def test_assess_release_ids_as_texts_of_numbers_match_numeric_ids(assess: Assess, world: World) -> None:
    number = {name: i for i, name in enumerate(world.table["id"])}
    world.table.assign(id=world.table["id"].map(number)).to_parquet(world.root / "numbered.parquet", index=False)
    source = {"path": str(world.root / "numbered.parquet"), "record_id": "id"}
    found = []
    for form in ("{}", "{}.0"):
        keys = [form.format(number[key]) for key in world.masked["key"]]
        world.masked.assign(key=keys).to_parquet(world.root / "texts.parquet", index=False)
        asked = {"release": {**world.release, "path": str(world.root / "texts.parquet")}, "records": False}
        ran = assess(world.policy("numbered", table=source, assess=asked), output=world.root / f"numbered{len(found)}")
        assert ran.code == 0, ran.err
        found.append(ran.figures("release"))
    assert found[0] == found[1]


def test_the_same_bytes_however_the_rows_lie(compared: Assessed, assess: Assess, world: World, full: Path) -> None:
    path = in_files(world.table, world.root / "table-11", 11)
    ran = assess(full, f"--set=table.path={path}", "--run-id=other", output=world.root / "full-11")
    assert ran.code == 0, ran.err
    assert (ran.place / "measures.json").read_bytes() == (compared.place / "measures.json").read_bytes()
    assert ran.document["worst_classes"] == compared.document["worst_classes"]
    for name in ("records", "released-records"):
        mine, theirs = (one.records(name).sort_values("id", ignore_index=True) for one in (ran, compared))
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)


def test_the_report_and_the_form_of_measures(compared: Assessed) -> None:
    page = (compared.place / "report.html").read_text()
    assert compared.document["paragraph"] in page.replace("&#39;", "'")
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert {frozenset(one) for one in compared.measures} == {
        frozenset({"name", "value", "unit", "parameters", "status"})
    }
    assert {one["status"] for one in compared.measures} <= {"tested", "heuristic"}
    assert compared.status["phase"] == "assessed"
    assert compared.status["code"] == 0


def test_persons_a_population_and_sets(assess: Assess, world: World) -> None:
    rows = rows_of(world.table)
    register = {
        "path": str(world.root / "register.parquet"),
        "columns": {"age": "years", "city": "town"},
        "weight": "n",
    }
    sets = {"two": ["city", "age"], "a/../b c": ["sex"]}
    asked = {"population": register, "sets": sets, "adversary": {"group": "unknown"}, "worst": 2}
    ran = assess(
        world.policy("persons", table={**world.document["table"], "entity_id": "who"}, assess=asked), "--explain"
    )
    assert ran.code == 0, ran.err
    assert "set 'two': city, age" in ran.out
    known = rows_of(world.register.rename(columns={"years": "age", "town": "city"}))
    assert len({row["who"] for row in rows}) < ROWS
    for name, columns in sets.items():
        expected = naive.identity(rows, columns, k=5, thresholds=THRESHOLDS, person="who")
        expected |= naive.special(rows, columns, size=3, fraction=0.1)
        expected |= naive.population(rows, columns, known, TREES, thresholds=THRESHOLDS, person="who", times="n")
        for column, distance, domain in (
            ("income", "ordered", incomes(rows)),
            ("diagnosis", "equal", DOMAINS["diagnosis"]),
            ("ward", "equal", DOMAINS["ward"]),
        ):
            expected |= naive.attribute(rows, columns, column, domain, distance=distance, person="who")
        expected |= naive.joint(rows, columns, dict.fromkeys(("income", "diagnosis", "ward"), 3.0), person="who")
        expected |= naive.sizes_utility(rows, columns, k=5, label=None, suppressed=("*",) * len(columns))
        sizes_of = [naive.size_of(held, "who") for held in naive.grouped(rows, columns).values()]
        expected["c_avg", None] = sum(sizes_of) / len(sizes_of) / 5
        found = ran.figures(set_name=name)
        people = sum(row["n"] for row in known)
        sizes: Counter[int] = Counter()
        for key, held in naive.grouped(rows, columns).items():
            fits = [
                one["n"]
                for one in known
                if all(one.get(of, value) == value for of, value in zip(columns, key, strict=True))
            ]
            sizes[sum(fits)] += naive.size_of(held, "who")
        expected |= naive.Adversary().attacks(sizes, people=people)
        agree(found, expected, besides=ATTACK)
    assert any(one["name"] == "uncovered_records" and one["value"] for one in ran.measures)
    worst = [one for one in ran.document["worst_classes"] if one["name"] == "k"]
    assert [one["parameters"]["set"] for one in worst] == ["two"] * 2 + ["a/../b c"] * 2
    told = ran.records()
    assert list(told.columns[:3]) == ["id", "class_size", "population_size"]
    assert told.loc[told["population_size"] == 0, "journalist"].isna().all()
    assert len(told) == ROWS


def test_persons_of_a_release_that_names_its_records(assess: Assess, world: World) -> None:
    """Their owners are the table's; released nodes hold all people of the population under them."""
    table = {**world.document["table"], "entity_id": "who"}
    register = {
        "path": str(world.root / "register.parquet"),
        "columns": {"age": "years", "city": "town"},
        "weight": "n",
    }
    asked = {"release": world.release, "population": register, "adversary": None}
    ran = assess(world.policy("released-persons", table=table, assess=asked))
    assert ran.code == 0, ran.err
    owner = dict(zip(world.table["id"], world.table["who"], strict=True))
    rows = [{**row, "who": owner[row["key"]]} for row in released(world.masked)]
    known = rows_of(world.register.rename(columns={"years": "age", "town": "city"}))
    expected = naive.identity(rows, NAMES, k=5, thresholds=THRESHOLDS, person="who")
    expected |= naive.population(rows, NAMES, known, TREES, thresholds=THRESHOLDS, person="who", times="n")
    found = ran.figures("release")
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    # A missing cell of a release is a suppressed one.
    blank = world.masked.assign(town=world.masked["town"].replace({"*": None}))
    blank.to_parquet(world.root / "blank.parquet", index=False)
    nameless = {**world.release, "path": str(world.root / "blank.parquet"), "record_id": None}
    other = assess(world.policy("released-rows", table=table, assess={"release": nameless, "records": False}))
    assert other.code == 0, other.err
    expected = naive.identity(rows, NAMES, k=5, thresholds=THRESHOLDS) | naive.cells(rows, NAMES, TREES)
    found = other.figures("release")
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert any("does not name its records" in note for note in other.document["notes"])


def test_weights_and_an_adversary_nobody_fines(assess: Assess, world: World) -> None:
    adversary = {"fines": None, "cost_exploit": 0}
    ran = assess(
        world.policy(
            "weights",
            table={**world.document["table"], "weight": "weight"},
            columns=world.columns(weight={"role": "weight"}),
            assess={"adversary": adversary},
        )
    )
    assert ran.code == 0, ran.err
    rows = rows_of(world.table)
    found = ran.figures()
    expected = naive.weighted(rows, NAMES, "weight")
    expected |= naive.Adversary(fines=None, exploit=0).attacks(groups(rows, NAMES))
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-7)
    told = ran.records().set_index("id")
    for held in naive.grouped(rows, NAMES).values():
        total = math.fsum(row["weight"] for row in held)
        risk = naive.expected_inverse(len(held), len(held) / max(total, len(held)))
        for row in held:
            assert told.loc[row["id"], "weighted_population"] == pytest.approx(total)
            assert told.loc[row["id"], "individual_risk"] == pytest.approx(risk, rel=1e-7)


def test_a_sampling_fraction(assess: Assess, world: World) -> None:
    unlimited = {"fines": 1, "cost_exploit": 0}
    ran = assess(world.policy("fraction", assess={"sampling_fraction": 0.1, "adversary": unlimited}))
    assert ran.code == 0, ran.err
    rows, found = rows_of(world.table), ran.figures()
    sizes = groups(rows, NAMES)
    risks = {f: naive.expected_inverse(f, 0.1) for f in sizes}
    model = "negative binomial"
    (name,) = [key for measure, key in found if measure == "individual_risk_max" and str(key).startswith("negative")]
    assert model in str(name).replace("-", " ")
    assert found["individual_risk_max", name] == pytest.approx(max(risks.values()))
    assert found["individual_risk_mean", name] == pytest.approx(sum(n * risks[f] for f, n in sizes.items()) / ROWS)
    assert found["estimated_journalist_max", "scaling"] == pytest.approx(0.1 / min(sizes))
    expected = naive.Adversary(exploit=0).attacks({round(f / 0.1): n for f, n in sizes.items()})
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    uniques = {key for measure, key in found if measure == "estimated_population_uniques"}
    assert len(uniques) == 3
    # By independence of the three columns.
    shares = {of: Counter(row[of] for row in rows) for of in NAMES}
    alone = [held[0] for held in naive.grouped(rows, NAMES).values() if len(held) == 1]
    others = [9 * ROWS * math.prod(shares[of][row[of]] / ROWS for of in NAMES) for row in alone]
    model = "log-linear, main effects"
    assert found["tau_one", model] == pytest.approx(sum(math.exp(-d) for d in others))
    assert found["tau_two", model] == pytest.approx(sum((1 - math.exp(-d)) / d for d in others))
    assert 0 < found["tau_one", "log-linear, two-way"] < len(alone)
    # Which of the three to believe is said, in a tenth of the population Pitman's.
    (believed,) = [one for one in ran.measures if one["name"] == "estimated_population_uniques" and _rule(one)]
    assert believed["parameters"]["model"] == "pitman"
    low, high = believed["parameters"]["interval"]
    assert 0 <= low < believed["value"] < high <= 10 * ROWS
    people = round(believed["value"])
    assert f"{people:,} people are estimated to be alone with their values" in ran.document["paragraph"]
    assert "the one to believe is that of the model pitman" in ran.document["paragraph"]


def _rule(one: dict[str, Any]) -> bool:
    return "Dankar" in one["parameters"].get("rule", "")


def test_nobody_is_concerned_where_no_record_is_unique(assess: Assess, world: World) -> None:
    bounds = {"estimated_population_unique_share": 0.01}
    asked = {"sets": {"alike": ["sex"]}, "sampling_fraction": 0.1, "thresholds": bounds, "records": False}
    ran = assess(world.policy("nobody", assess=asked))
    assert ran.code == 0, ran.err
    found = ran.figures(set_name="alike")
    assert found["uniques", None] == 0
    assert {value for (name, _), value in found.items() if name == "estimated_population_uniques"} == {0}
    (verdict,) = ran.document["verdicts"]
    assert (verdict["passed"], verdict["observed"]) == (True, None)
    assert '<td class="number">none</td>' in (ran.place / "report.html").read_text()


# ----------------------------------------------------------------------------------------------- missing values


def holed(table: pd.DataFrame) -> pd.DataFrame:
    """Missing values of each kind of record: unique without them, and equal to others without them."""
    pick = random.Random(2)
    rows = table.copy()
    rows["age"] = [a if int(a) % 4 == 0 else "4" for a in rows["age"]]
    for name in NAMES:
        rows[name] = [None if pick.random() < 0.12 else value for value in rows[name]]
    rows.loc[0, NAMES] = None
    return rows


@pytest.mark.parametrize(
    "kinds", [("suppress", "own-value", "suppress"), ("wildcard",) * 3, ("wildcard", "suppress", "own-value")]
)
def test_missing_values_are_in_k_as_the_policy_says(assess: Assess, world: World, kinds: tuple[str, ...]) -> None:
    table = holed(world.table)
    path = world.root / f"holed-{'-'.join(kinds)}.parquet"
    table.to_parquet(path, index=False)
    of = dict(zip(NAMES, kinds, strict=True))
    columns = world.columns(
        weight={"role": "weight"},
        **{name: {**world.document["columns"][name], "nulls": kind} for name, kind in of.items()},
    )
    source = {**world.document["table"], "path": str(path), "weight": "weight"}
    ran = assess(world.policy("holed", table=source, columns=columns, assess={}), output=path.with_suffix(""))
    assert ran.code == 0, ran.err
    rows = [
        {**row, **{name: "*" if row[name] is None and of[name] != "own-value" else row[name] for name in NAMES}}
        for row in rows_of(table)
    ]
    wild = [name for name, kind in of.items() if kind == "wildcard"]
    expected = naive.identity(rows, NAMES, k=5, thresholds=THRESHOLDS, wild=wild)
    expected |= naive.weighted(rows, NAMES, "weight", wild=wild)
    found = ran.figures()
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-7)
    # A record is in the records with the class size it was counted by, and the attack is on groups of that size.
    told = ran.records()
    assert len(told) == ROWS
    assert told["class_size"].min() == found["k", None]
    assert (told["class_size"] == 1).sum() == found["uniques", None]
    worst = [one["value"] for one in ran.document["worst_classes"] if one["name"] == "k"]
    assert worst[0] == found["k", None]
    assert told["p_reid"].mean() == pytest.approx(found["p_reid_mean", None])


def test_missing_values_that_are_forbidden(assess: Assess, world: World) -> None:
    table = holed(world.table)
    table.to_parquet(world.root / "forbidden.parquet", index=False)
    columns = world.columns(city={**world.document["columns"]["city"], "nulls": "forbid"})
    source = {**world.document["table"], "path": str(world.root / "forbidden.parquet")}
    ran = assess(world.policy("forbidden", table=source, columns=columns))
    assert ran.code == 2
    assert "columns.city" in ran.err
    assert ran.status["code"] == 2


def test_where_missing_values_may_be_any_each_person_is_in_a_crowd_once(assess: Assess, world: World) -> None:
    table = holed(world.table)
    path = world.root / "holed-persons.parquet"
    table.to_parquet(path, index=False)
    kinds = dict(zip(NAMES, ("wildcard", "wildcard", "own-value"), strict=True))
    columns = world.columns(
        **{name: {**world.document["columns"][name], "nulls": kind} for name, kind in kinds.items()}
    )
    source = {**world.document["table"], "path": str(path), "entity_id": "who"}
    ran = assess(world.policy("both", table=source, columns=columns, assess={}), output=path.with_suffix(""))
    assert ran.code == 0, ran.err
    rows = [
        {**row, **{name: "*" if row[name] is None and kinds[name] == "wildcard" else row[name] for name in NAMES}}
        for row in rows_of(table)
    ]
    wild = [name for name, kind in kinds.items() if kind == "wildcard"]
    expected = naive.identity(rows, NAMES, k=5, thresholds=THRESHOLDS, person="who", wild=wild)
    found = ran.figures()
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-7)
    assert expected != naive.identity(rows, NAMES, k=5, thresholds=THRESHOLDS, wild=wild)


# --------------------------------------------------------------------------------------------------- thresholds


def test_thresholds_make_the_exit_code(assess: Assess, compared: Assessed, world: World, full: Path) -> None:
    found = compared.figures("release")
    less, place = "--set=assess.classifiers=null", world.root / "met"
    met = {"k": found["k", None], "prosecutor_mean": 0.9, "alpha": 1, "rid": 1, "t_closeness": 0.999}
    ran = assess(full, f"--set=assess.thresholds={json.dumps(met)}", less, output=place)
    assert ran.code == 0, ran.err
    assert "yes" in ran.document["paragraph"]
    assert all(verdict["passed"] for verdict in ran.document["verdicts"])
    missed = {**met, "k": found["k", None] + 1, "k_map": 1}
    thresholds = f"--set=assess.thresholds={json.dumps(missed)}"
    again = assess(full, thresholds, less, "--set=assess.records=false", output=place)
    assert again.code == 1
    assert again.status["code"] == 1
    assert again.document["paragraph"].startswith("No: this release misses 2 of 6 thresholds.")
    verdicts = {one["name"]: one for one in again.document["verdicts"]}
    assert [name for name, one in verdicts.items() if not one["passed"]] == ["k", "k_map"]
    assert verdicts["k_map"]["observed"] is None
    assert again.out.count("MISSED") == 2
    # Nothing of the earlier run is left that this one did not say.
    assert not (again.place / "records").exists()
    assert not (again.place / "released-records").exists()
    unknown = assess(full, "--set=assess.thresholds={prosecutor_maximum: 1}", output=world.root / "never")
    assert unknown.code == 2
    assert "assess.thresholds.prosecutor_maximum" in unknown.err
    assert "did you mean 'prosecutor_max'?" in unknown.err
    assert not (world.root / "never").exists()


def test_people_the_population_lacks_are_no_proof(assess: Assess, world: World) -> None:
    """k-map is held to 3 only if those whom the population lacks cannot be fewer."""
    register = pd.DataFrame(
        {"years": [str(a) for a in range(1, 12)] * 9, "town": (["Ulm"] * 11 + ["Bonn"] * 11 + ["Kiel"] * 11) * 3}
    )
    register.to_parquet(world.root / "lacking.parquet", index=False)
    given = {"path": str(world.root / "lacking.parquet"), "columns": {"age": "years", "city": "town"}}
    bounds = {"k_map": 3, "journalist_max": 0.4}
    asked = {"population": given, "thresholds": bounds, "records": False, "sets": {"two": ["age", "city"]}}
    ran = assess(world.policy("lacking", assess=asked))
    assert ran.code in (0, 1), ran.err
    rows = rows_of(world.table)
    lacking = [len(held) for key, held in naive.grouped(rows, ["age", "city"]).items() if key[0] == "0"]
    found = ran.figures(set_name="two")
    assert found["k_map", None] == 3
    assert found["uncovered_records", None] == sum(lacking) > 0
    assert min(lacking) < 3
    assert ran.code == 1
    assert [one["observed"] for one in ran.document["verdicts"]] == [1 / min(lacking), min(lacking)]
    worst = [one for one in ran.document["worst_classes"] if one["name"] == "k_map"]
    assert [one["value"] for one in worst] == ([0] * len(lacking) + [3] * 10)[:10]
    assert {one["labels"][0] for one in worst if not one["value"]} == {"0"}


# ------------------------------------------------------------------------------------------- a published example


def test_the_published_example(assess: Assess, tmp_path: Path) -> None:
    """Thirteen records, their 4-anonymous release and the figures printed of it (G. Raschia 2023).

    C_avg 1.08, C_dsc 57, C_prc 0.44, C_gil 0.438 (0.4387 cut), and everybody aged 30 to 39 has cancer: 5 of 13.
    """
    rows = [
        *[("13053", 28, "Russian", "Heart"), ("13068", 29, "American", "Heart")],
        *[("13068", 21, "Japanese", "Viral"), ("13053", 23, "American", "Viral")],
        *[("14853", 50, "Indian", "Cancer"), ("14853", 55, "Russian", "Heart")],
        *[("14850", 47, "American", "Viral"), ("14850", 59, "American", "Viral")],
        *[("13053", 31, "American", "Cancer"), ("13053", 37, "Indian", "Cancer")],
        *[
            ("13068", 36, "Japanese", "Cancer"),
            ("13068", 32, "American", "Cancer"),
            ("13068", 35, "American", "Cancer"),
        ],
    ]
    pd.DataFrame(
        [(str(i), z, str(a), n, d) for i, (z, a, n, d) in enumerate(rows)],
        columns=["id", "zip", "age", "nation", "disease"],
    ).to_parquet(tmp_path / "table.parquet")
    released = [
        (str(i), "130**" if z < "14" else "1485*", "<30" if a < 30 else "[30,40)" if a < 40 else ">=40", "*", d)
        for i, (z, a, _, d) in enumerate(rows)
    ]
    pd.DataFrame(released, columns=["id", "zip", "age", "nation", "disease"]).to_parquet(tmp_path / "release.parquet")
    zips = {f"{z:05d}": (*(f"{z:05d}"[: 5 - i] + "*" * i for i in range(5)), "*") for z in range(100_000)}
    # Steps to the root: 5 of zip codes, 3 of ages, 1 of nationalities; what is released is on 2 or 1, 1, 1.
    ages = {
        str(a): (str(a), "<30" if a < 30 else "[30,40)" if a < 40 else ">=40", "under 40" if a < 40 else "from 40", "*")
        for a in range(100)
    }
    nations = {n: (n, "*") for n in ["Russian", "American", "Japanese", "Indian", *(f"other {i}" for i in range(6))]}
    quasi = {
        name: {"role": "quasi-identifier", "hierarchy": write_tree(tmp_path / f"{name}.csv", paths)}
        for name, paths in (("zip", zips), ("age", ages), ("nation", nations))
    }
    document = {
        "version": 1,
        "run": {"name": "example"},
        "table": {"path": str(tmp_path / "table.parquet"), "record_id": "id"},
        "columns": {"id": {"role": "identifier"}, **quasi, "disease": {"role": "sensitive"}},
        "assess": {
            "release": {"path": str(tmp_path / "release.parquet"), "record_id": "id"},
            "k": 4,
            "label": "disease",
            "concealment": True,
            "thresholds": {"k": 4},
        },
    }
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    ran = assess(policy)
    assert ran.code == 0, ran.err
    found = ran.figures("release")
    assert round(found["c_avg", None], 2) == 1.08
    assert found["discernibility", None] == 57
    assert round(found["precision", None], 2) == 0.44
    assert found["generalized_information_loss", None] == pytest.approx(17.1094 / 39)
    assert found["k", None] == found["one_k", None] == found["k_one", None] == found["k_concealment", None] == 4
    assert found["homogeneity_share", "disease"] == pytest.approx(5 / 13)
    assert found["p_sensitive", "disease"] == 1
    assert found["classification_metric", None] == pytest.approx(4 / 13)
    assert found["classification_penalty", None] == 16
    assert found["prosecutor_mean", None] == pytest.approx(3 / 13)
    volumes = [100 * 30 * 10] * 4 + [10 * 60 * 10] * 4 + [100 * 10 * 10] * 5
    assert found["penalty_mean", None] == pytest.approx(1 - sum(1 / v for v in volumes) / 13)
    sizes = [4] * 4 + [4] * 4 + [5] * 5
    spread = np.log([(1 / 13) / (f / v / 13) for f, v in zip(sizes, volumes, strict=True)])
    assert found["kl_divergence", None] == pytest.approx(float(spread.mean()))
    assert ran.figures()["k", None] == 1


# ------------------------------------------------------------------------------------- releases of this software


def test_a_published_release(assess: Assess, privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(small.read_text())
    document["assess"] = {"release": "published", "thresholds": {"k": 1}}
    document["decision"] = {"problem": "min-risk", "utility_at_least": 3}
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    early = assess(small, output=tmp_path / "early")
    assert early.code == 2
    assert f"there is no release at output.path '{tmp_path / 'out'}'" in " ".join(early.err.split())
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err
    done = assess(small, output=tmp_path / "assessed")
    assert done.code == 0, done.err
    data = pd.read_parquet(ran.data)
    sizes = data.groupby(["age", "sex", "city"], dropna=False).size()
    found = done.figures("release")
    assert found["records", None] == len(data) == 60
    assert found["classes", None] == len(sizes)
    assert found["k", None] == sizes.min()
    assert found["prosecutor_mean", None] == pytest.approx(len(sizes) / 60)
    values = data.groupby(["age", "sex", "city"], dropna=False)["diagnosis"].nunique()
    assert found["p_sensitive", "diagnosis"] == values.min()
    assert not (done.place / "released-records").exists(), "it does not say which record is which"
    # It is the release that is judged, and its run that is named.
    assert f"release {ran.manifest['run_id']}" in (done.place / "report.html").read_text()
    # The directory of the release is no place for what is never published.
    inside = assess(small, output=tmp_path / "out" / "assessed")
    assert inside.code == 2
    assert "--output" in inside.err


def test_a_policy_that_releases_nothing_can_be_assessed_only(
    assess: Assess, privrisk: Privrisk, world: World, tmp_path: Path
) -> None:
    policy = world.policy("least")
    assert "decision" not in yaml.safe_load(policy.read_text())
    ran = assess(policy, "--dry-run")
    assert ran.code == 0, ran.err
    assert "release: none, the table alone" in ran.out
    assert not ran.place.exists()
    released = privrisk(str(policy), root=tmp_path)
    assert released.code == 2
    assert "decision: is required" in released.err
    published = assess(world.policy("published", assess={"release": "published"}), output=tmp_path / "x")
    assert published.code == 2
    assert "there is no output.path" in published.err
    # What is measured takes no part in what is released.
    assert not (tmp_path / "x").exists()


# --------------------------------------------------------------------------------------------------- refusals


def test_what_is_refused(assess: Assess, world: World, tmp_path: Path) -> None:
    table = world.root / "table"
    for place in (table, table / "inside"):
        ran = assess(world.policy("alone"), output=place)
        assert ran.code == 2
        assert "--output" in ran.err
    lacking = world.policy("lacks", assess={"release": {**world.release, "columns": {"age": "year"}}})
    ran = assess(lacking, output=tmp_path / "a")
    assert ran.code == 2
    assert "assess.release.columns.age: the release has no column 'year' (did you mean 'years'?)" in ran.err
    assert "assess.release.columns.city" in ran.err
    strange = world.masked.replace({"years": {"old": f"{PLANTED}1"}})
    strange.to_parquet(tmp_path / "strange.parquet", index=False)
    ran = assess(
        world.policy("strange", assess={"release": {**world.release, "path": str(tmp_path / "strange.parquet")}}),
        output=tmp_path / "b",
    )
    assert ran.code == 2
    assert "the column 'years' holds 1 distinct values that are no node of the hierarchy of 'age'" in ran.err
    assert PLANTED not in ran.err
    # A released value that is not above the record's own was not made from it.
    swapped = world.masked.assign(key=world.masked["key"].to_numpy()[::-1])
    swapped.to_parquet(tmp_path / "swapped.parquet", index=False)
    ran = assess(
        world.policy("swapped", assess={"release": {**world.release, "path": str(tmp_path / "swapped.parquet")}}),
        output=tmp_path / "c",
    )
    assert ran.code == 2
    assert "do not generalize the record's own" in ran.err
    numbers = {"intervals": {"ward": {"masked": "pay"}, "income": {"masked": "paid"}}, "adversary": None}
    ran = assess(world.policy("numbers", assess={"release": world.release, **numbers}), output=tmp_path / "d")
    assert ran.code == 2
    assert "assess.intervals.income.masked: the release has no column 'paid'" in ran.err


def test_assess_of_a_release_with_unreadable_columns_refuses_only_used_ones(
    assess: Assess, world: World, tmp_path: Path
) -> None:
    timed = world.masked.assign(at=dt.time(8, 30))
    timed.to_parquet(tmp_path / "timed.parquet", index=False)
    for named, intervals, code in (
        ({}, {}, 0),
        ({"record_id": "at"}, {}, 2),
        ({}, {"income": {"masked": "at"}}, 2),
    ):
        given = {**world.release, "path": str(tmp_path / "timed.parquet"), **named}
        ran = assess(
            world.policy("timed", assess={"release": given, "intervals": intervals, "adversary": None}),
            output=tmp_path / str(code),
        )
        assert ran.code == code, ran.err
        assert ("column 'at' is of type time64[us], which cannot be read" in " ".join(ran.err.split())) == (code == 2)


@pytest.mark.thorough("tests/stages/assessing/test_values.py")
def test_numbers_written_as_text(assess: Assess, world: World, tmp_path: Path) -> None:
    """CSV columns are texts: numbers in them are compared as numbers where that is asked."""
    table, release = world.table.copy(), world.masked.copy()
    table.to_csv(tmp_path / "table.csv", index=False)
    release.to_csv(tmp_path / "masked.csv", index=False)
    options = {"format": "csv", "options": {"header": True}}
    asked = {
        "release": {**world.release, "path": str(tmp_path / "masked.csv"), **options},
        "intervals": {"income": {"masked": "pay", "p": 15}, "ward": {"masked": "pay"}},
        "sensitive": {"income": {"distance": "ordered"}, "ward": {"distance": "ordered"}},
    }
    source = {**world.document["table"], "path": str(tmp_path / "table.csv"), **options}
    ran = assess(world.policy("texts", table=source, assess=asked))
    assert ran.code == 0, ran.err
    rows, pairs = rows_of(world.table), world.pairs
    pay = [after["pay"] for _, after in pairs]
    expected = naive.intervals([before["income"] for before, _ in pairs], pay, pay, 15, "income")
    found = ran.figures("release")
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert (found["rid", "ward"], found["interval_missing", "ward"]) == (None, ROWS)
    closeness = naive.attribute(rows, NAMES, "income", incomes(rows), distance="ordered")
    # Where nothing is missing there is no place for it in the order.
    closeness |= naive.attribute(rows, NAMES, "ward", sorted(WARDS), distance="ordered")
    for column in ("income", "ward"):
        assert ran.figures()["t_closeness", column] == pytest.approx(closeness["t_closeness", column])


def test_nothing_leaks(assess: Assess, world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table, release = world.table.copy(), world.masked.copy()
    table.loc[5, ["id", "who", "diagnosis", "label"]] = [f"{PLANTED}{i}" for i in range(4)]
    table["city"] = table["city"].replace("Kiel", f"{PLANTED}Town")
    release["town"] = release["town"].replace({"south": "Ulm", "north": f"{PLANTED}Town"})
    release.loc[release["key"] == "p5", "key"] = f"{PLANTED}0"
    table.to_parquet(tmp_path / "table.parquet", index=False)
    release.to_parquet(tmp_path / "masked.parquet", index=False)
    columns = world.columns(city={"role": "quasi-identifier", "hierarchy": {"flat": True}})
    source = {"path": str(tmp_path / "table.parquet"), "record_id": "id", "entity_id": "who"}
    given = {"path": str(tmp_path / "masked.parquet"), "columns": world.release["columns"]}
    policy = world.policy("canary", table=source, columns=columns, assess={"release": given, "label": "label"})
    ran = assess(policy, "--explain", "--log-format", "json", output=tmp_path / "place")
    assert ran.code == 0, ran.err
    captured = capfd.readouterr()
    assert PLANTED not in ran.out + ran.err + captured.out + captured.err
    held = {path.name for path in ran.place.iterdir() if path.is_file() and PLANTED.encode() in path.read_bytes()}
    assert held == {"assessment.json", "report.html"}, "worst classes, for the vault"
    lines = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert {line["stage"] for line in lines} == {
        "read",
        "encode",
        "count",
        "measure",
        "compare",
        "identify",
        "attack",
        "tell",
        "judge",
    }
    # Without worst classes there are none.
    again = assess(policy, "--set=assess.worst=0", output=ran.place)
    assert again.code == 0, again.err
    assert not [path.name for path in ran.place.iterdir() if path.is_file() and PLANTED.encode() in path.read_bytes()]
    # A value outside its hierarchy is counted, and listed where only the officer looks.
    outside = assess(world.policy("outside", table=source), output=tmp_path / "outside")
    assert outside.code == 2
    assert "columns.city.hierarchy: 1 value(s) in" in outside.err
    captured = capfd.readouterr()
    assert PLANTED not in outside.out + outside.err + captured.out + captured.err


# -------------------------------------------------------------------- suppressed records and cells of a release


def with_suppressed(world: World, records: int) -> tuple[pd.DataFrame, list[naive.Row]]:
    """The masked table with the first records suppressed whole, some by label and some by missing cells."""
    table = world.masked.copy()
    names = ["years", "sex", "town"]
    table.loc[: records - 1, names] = "*"
    table.loc[: records - 1 : 2, names] = None
    rows = [{**row, **{name: row[name] or "*" for name in NAMES}} for row in released(table)]
    return table, rows


def test_records_suppressed_whole_are_no_class_of_their_own(assess: Assess, world: World) -> None:
    records = 2
    table, rows = with_suppressed(world, records)
    path = world.root / f"suppressed-{records}.parquet"
    table.to_parquet(path, index=False)
    lost = [row for row in rows if all(row[name] == "*" for name in NAMES)]
    kept = [row for row in rows if any(row[name] != "*" for name in NAMES)]
    assert len(lost) >= records
    given = {"release": {**world.release, "path": str(path)}, "label": "label", "k": 3}
    apart = assess(world.policy(f"apart-{records}", assess=given))
    assert apart.code == 0, apart.err
    expected = naive.identity(kept, NAMES, k=3, thresholds=THRESHOLDS)
    expected |= {("records", None): len(rows), ("suppressed_records", None): len(lost)}
    expected |= naive.special(kept, NAMES, size=3, fraction=0.1)
    expected |= naive.Adversary().attacks(groups(kept, NAMES))
    # What is lost is lost, whoever is left out.
    expected |= naive.sizes_utility(rows, NAMES, k=3, label="label", suppressed=("*",) * 3)
    # But the mean size is of the classes that are counted.
    expected["c_avg", None] = len(kept) / expected["classes", None] / 3
    expected |= naive.cells(rows, NAMES, TREES)
    expected["kl_divergence", None] = naive.divergence(rows_of(world.table), rows, NAMES, TREES)
    found = apart.figures("release")
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    of_class = naive.attribute(kept, NAMES, "ward", DOMAINS["ward"], distance="equal")
    for name in ("p_sensitive", "l_entropy", "alpha", "homogeneity_share", "majority_share_above"):
        assert found[name, "ward"] == pytest.approx(of_class[name, "ward"])
    told = apart.records("released-records").set_index("id")
    assert len(told) == len(rows)
    assert set(told.index[told["class_size"].isna()]) == {row["key"] for row in lost}
    assert told.loc[[row["key"] for row in lost]].isna().all(axis=None)
    assert told["class_size"].min() == found["k", None]
    page = (apart.place / "report.html").read_text()
    assert f"{len(lost)} of 48 records are suppressed whole" in page

    compatible = assess(world.policy(f"compatible-{records}", assess={**given, "suppressed": "compatible"}))
    assert compatible.code == 0, compatible.err
    sizes = {key: len(held) for key, held in naive.grouped(rows, NAMES).items()}
    fellows = [len(rows) if row in lost else sizes[tuple(row[n] for n in NAMES)] + len(lost) for row in rows]
    found = compatible.figures("release")
    assert found["k", None] == min(fellows) > 1
    assert found["uniques", None] == 0
    assert found["prosecutor_mean", None] == pytest.approx(math.fsum(1 / size for size in fellows) / len(rows))
    assert found["records_below_k", None] == sum(size < 3 for size in fellows)
    assert found["suppressed_records", None] == len(lost)
    assert found["p_reid_mean", None] == pytest.approx(naive.Adversary().attacks(Counter(fellows))["p_reid_mean", None])
    told = compatible.records("released-records").set_index("id")
    assert told["class_size"].to_dict() == {row["key"]: size for row, size in zip(rows, fellows, strict=True)}


def test_what_is_lost_is_no_class_to_who_knows_the_other_columns(assess: Assess, world: World, tmp_path: Path) -> None:
    """Two diagnoses in each ward and two wards of each diagnosis, but for a record that is suppressed."""
    held = [("F", d, w) for d in "ab" for w in ("eye", "ear")] + [("M", "a", "eye")]
    table = pd.DataFrame(held, columns=["sex", "diagnosis", "ward"])
    table.to_parquet(tmp_path / "table.parquet", index=False)
    table.assign(sex=["F"] * 4 + ["*"]).to_parquet(tmp_path / "masked.parquet", index=False)
    asked = {"release": {"path": str(tmp_path / "masked.parquet")}, "adversary": None, "special_uniques": None}
    columns = {name: world.document["columns"][name] for name in ("sex", "diagnosis", "ward")}
    source = {"path": str(tmp_path / "table.parquet")}
    ran = assess(world.policy("lost", table=source, columns=columns, assess={**asked, "records": False}))
    assert ran.code == 0, ran.err
    for column in ("diagnosis", "ward"):
        assert ran.figures("table")["l_distinct_joint", column] == 1
        found = ran.figures("release")
        assert (found["l_distinct_joint", column], found["l_entropy_joint", column]) == (2, pytest.approx(2))


@pytest.mark.parametrize("wild", [tuple(NAMES), ("age", "city")])
def test_suppressed_cells_of_a_masked_table_may_be_any_value(
    assess: Assess, world: World, wild: tuple[str, ...]
) -> None:
    """As local suppression leaves them: alone by equality, in a crowd by what they may be; weights go along."""
    table = world.masked.copy()
    of = [int(key[1:]) for key in table["key"]]
    table["years"] = [("young", "old")[i % 2] if i % 7 else (None if i % 4 else "*") for i in of]
    table["town"] = [None if i % 5 == 0 else ("north", "south")[i % 3 // 2] for i in of]
    table["sex"] = ["*" if i % 3 == 0 else "F" for i in of]
    table.loc[0, ["years", "sex", "town"]] = "*"
    path = world.root / f"local-{len(wild)}.parquet"
    table.to_parquet(path, index=False)
    columns = world.columns(
        weight={"role": "weight"},
        **{name: {**world.document["columns"][name], "nulls": "wildcard"} for name in wild},
    )
    source = {**world.document["table"], "weight": "weight"}
    given = {"path": str(path), "columns": world.release["columns"], "record_id": "key"}
    asked = {"release": given, "suppressed": "compatible" if len(wild) == 3 else "apart", "k": 3}
    original = world.table.assign(sex="F")
    original["age"] = [("3", "7")[i % 2] for i in range(ROWS)]
    original["city"] = [("Bonn", "Ulm")[i % 3 // 2] for i in range(ROWS)]
    original.to_parquet(world.root / "alike.parquet", index=False)
    source["path"] = str(world.root / "alike.parquet")
    ran = assess(world.policy(f"local-{len(wild)}", table=source, columns=columns, assess=asked))
    assert ran.code == 0, ran.err
    weight = dict(zip(world.table["id"], world.table["weight"], strict=True))
    rows = [
        {**row, **{name: row[name] or "*" for name in NAMES}, "weight": weight[row["key"]]} for row in released(table)
    ]
    lost = sum(all(row[name] == "*" for name in NAMES) for row in rows)
    assert lost
    if len(wild) < 3:
        rows = [row for row in rows if any(row[name] != "*" for name in NAMES)]
    expected = naive.identity(rows, NAMES, k=3, thresholds=THRESHOLDS, wild=wild)
    expected |= naive.weighted(rows, NAMES, "weight", wild=wild)
    expected["records", None] = ROWS
    found = ran.figures("release")
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-7)
    assert naive.identity(rows, NAMES, k=3, thresholds=[])["k", None] < found["k", None]
    told = ran.records("released-records")
    assert told["class_size"].min() == found["k", None]
    assert told["class_size"].isna().sum() == (0 if len(wild) == 3 else lost)
    mean = (told["individual_risk"].dropna()).mean()
    assert mean == pytest.approx(found["individual_risk_mean", "negative binomial, sampling weights"])


def test_persons_are_not_counted_where_suppressed_records_are_compatible_with_all(assess: Assess, world: World) -> None:
    table = {**world.document["table"], "entity_id": "who"}
    asked = {"release": world.release, "suppressed": "compatible"}
    ran = assess(world.policy("compatible-persons", table=table, assess=asked))
    assert ran.code == 2
    assert "assess.suppressed: compatible and table.entity_id together" in ran.err


@pytest.mark.thorough("test_records_suppressed_whole_are_no_class_of_their_own")
def test_a_column_generalized_to_the_root_throughout_suppresses_nobody(assess: Assess, world: World) -> None:
    table = world.masked.assign(sex="*")
    table.to_parquet(world.root / "root.parquet", index=False)
    given = {**world.release, "path": str(world.root / "root.parquet")}
    sets = {"sex alone": ["sex"], "all three": NAMES}
    ran = assess(world.policy("root", assess={"release": given, "sets": sets}))
    assert ran.code == 0, ran.err
    found = ran.figures("release", "sex alone")
    assert (found["k", None], found["classes", None], found["suppressed_records", None]) == (ROWS, 1, ROWS)


# ------------------------------------------------------------------------------------------------- the worst set


def test_every_sentence_is_about_the_worst_set(assess: Assess, world: World) -> None:
    sets = {"mild": ["sex"], "sharp": ["age", "sex", "city"]}
    ran = assess(world.policy("worst-set", assess={"sets": sets, "sampling_fraction": 0.2, "thresholds": {"k": 2}}))
    assert ran.code == 1
    found, mild = ran.figures(set_name="sharp"), ran.figures(set_name="mild")
    assert found["k", None] == 1 < mild["k", None]
    assert found["uniques", None] > 0 == mild["uniques", None]
    told = ran.document["paragraph"]
    assert "no record is unique" not in told
    assert (
        f"{found['uniques', None]} of {ROWS} records are unique in their quasi-identifiers by the set 'sharp'" in told
    )
    assert "and it is 1 by the set 'sharp'" in told
    assert "(k = 1) by the set 'sharp'" in told
    assert f"would attack {found['attacked_records', None]} records" in told
    assert found["attacked_records", None] > mild["attacked_records", None]
    hits = max(value for (name, _), value in found.items() if name == "expected_reidentifications")
    assert f"{hits:.4g} records would be re-identified if all were tried by the set 'sharp'" in told
    assert "'mild'" not in told
