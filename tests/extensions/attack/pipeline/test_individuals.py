"""Attacks on a release whose individuals have several records, some of which are left out: each counts once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import naive_attribute_attacks as naive
import naive_linkage
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, production_batches, release
from shared import without_charts
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.extensions.attack.kernels.individuals import LEARNED
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.policy.reading import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
QUASI = ("age", "city")
TREES: dict[str, Any] = {
    "age": {"intervals": {"widths": [10, 20, 40], "domain": [20, 59]}},
    "city": {"tree": {"*": {"south": ["Ulm", "Augsburg"], "north": ["Bonn", "Kiel"]}}},
}
ILLNESSES: Row = {"tree": {"*": {"lungs": ["asthma", "flu"], "heart": ["angina", "infarct"]}}}
GROUP = {"asthma": "lungs", "flu": "lungs", "angina": "heart", "infarct": "heart", None: None}


def table() -> list[Row]:
    """30 individuals with one to four records each; in the north most have the flu, next to something else."""
    cities, ills = ["Ulm", "Augsburg", "Bonn", "Kiel"], ["flu", "asthma", "angina", "infarct"]
    rows = []
    for person in range(30):
        for record in range(1 + person % 4):
            city = cities[(person // 4 + (record // 3)) % 4]
            ill = ills[(person + record * (1 + person % 3)) % 4]
            if city in ("Bonn", "Kiel") and record == 0:
                ill = "flu"
            age = 20 + (person * 7 + record // 2 * 11) % 40
            rows.append({"who": f"p{len(rows)}", "person": f"h{person}", "age": str(age), "city": city, "ill": ill})
    rows[7]["ill"] = None
    return rows


@dataclass(frozen=True)
class Ended:
    code: int
    err: str
    directory: Path

    @property
    def document(self) -> Row:
        return dict(json.loads((self.directory / "attack.json").read_text()))

    def measure(self, name: str, **parameters: object) -> Any:
        (found,) = [m for m in self.document["measures"] if m["name"] == name and m["parameters"] == parameters]
        return found["value"]


@dataclass(frozen=True)
class Released:
    root: Path
    rows: list[Row]
    document: Row

    def attack(self, place: Path, asked: Row, **changes: Any) -> Ended:
        path = place / "policy.yaml"
        path.write_text(yaml.safe_dump({**self.document, "attack": asked, **changes}, sort_keys=False))
        result = CliRunner().invoke(app, ["attack", str(path), f"--output={place / 'attack'}"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stderr, place / "attack")

    def shown(self) -> dict[str, tuple[str, ...]]:
        """Labels of each record that the written files hold."""
        manifest = json.loads((self.root / "out" / "manifest.json").read_text())
        files = pq.read_table(self.root / "out" / manifest["data"]["path"]).to_pylist()
        there = {tuple(row[q] for q in QUASI) for row in files}
        decisions = pd.read_parquet(self.root / "vault" / "decisions").set_index("who")
        columns = load([self.root / "policy.yaml"]).quasi_identifiers
        trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
        forms = {
            row["who"]: tuple(
                tree.labels[tree.ancestor[tree.code_of[row[name]], decisions.loc[row["who"], f"level_{name}"]]]
                for name, tree in trees.items()
            )
            for row in self.rows
        }
        found = {who: form for who, form in forms.items() if form in there}
        assert Counter(found.values()) == Counter(tuple(row[q] for q in QUASI) for row in files)
        return found


@pytest.fixture(scope="module")
def released(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Released:
    """3-anonymous by individuals; some records are left out."""
    root, rows = tmp_path_factory.mktemp("released"), table()
    pq.write_table(pa.Table.from_pylist(rows), root / "table.parquet")
    guarantee = {"kind": "k-anonymity", "k": 3, "suppression_limit": 0.25, "metric": "classes", "suppressed": "drop"}
    document = {
        "version": 1,
        "run": {"name": "individuals"},
        "table": {"path": str(root / "table.parquet"), "record_id": "who", "entity_id": "person"},
        "columns": {
            "who": {"role": "identifier"},
            "person": {"role": "identifier"},
            **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
            "ill": {"role": "sensitive"},
        },
        "risk": {"model": "II"},
        "guarantee": guarantee,
        "assess": {"sensitive": {"ill": {"distance": "hierarchical", "hierarchy": ILLNESSES}}},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
    }
    path = root / "policy.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    with production_batches(spark), without_charts():
        ran = release(str(path), root=root)
    assert ran.code == 0, ran.err
    made = Released(root, rows, document)
    assert 0 < len(made.shown()) < len(rows)
    return made


def held_of(
    rows: Sequence[Row], shown: dict[str, tuple[str, ...]], value: Callable[[Row], Any], *, missing: bool = False
) -> tuple[list[str], list[naive.Held]]:
    """Who holds which values in which classes, as the naive programs take them; a missing one only if asked for."""
    number = {form: i for i, form in enumerate(sorted(set(shown.values())))}
    codes = {one: i for i, one in enumerate(sorted({value(row) for row in rows}, key=str))}
    people: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if row["who"] in shown and (missing or value(row) is not None):
            people[row["person"]][number[shown[row["who"]]]].add(codes[value(row)])
    return list(people), [{place: frozenset(held) for place, held in one.items()} for one in people.values()]


VALUES = ["homogeneity", "external", "background", "skewness", "similarity"]
OUTCOME: dict[str, tuple[str, str, Row]] = {
    "homogeneity": ("homogeneity", "certain", {}),
    "guess": ("homogeneity", "guessed", {}),
    "external": ("external", "certain", {}),
    "background": ("background", "certain", {"false_values": 1}),
    "skewness": ("skewness", "exposed", {"gain_above": 1.2}),
}


@pytest.mark.parametrize("share", [1.0, pytest.param(0.5, marks=pytest.mark.thorough("the same steps, of fewer"))])
def test_attack_on_values_counts_each_released_individual_once(
    privrisk: Privrisk, released: Released, tmp_path: Path, share: float
) -> None:
    del privrisk
    asked = {"methods": [*VALUES, "distance"], "gain_above": 1.2, "cells": ["nearest"], "intruder": {"share": share}}
    ended = released.attack(tmp_path, {**asked, "values_certain_at_most": 0.01})
    assert ended.code == 1, ended.err
    shown = released.shown()
    names, people = held_of(released.rows, shown, lambda row: row["ill"])
    tried = set(pd.read_parquet(ended.directory / "pairs" / "person-nearest")["entity"])
    assert (tried >= set(names)) == (share == 1)
    learned = naive.learned_of_individuals(people, Fraction(6, 5))
    known = [of for name, of in zip(names, learned, strict=True) if name in tried]
    everybody, shares = held_of(released.rows, shown, lambda row: row["ill"], missing=True)
    gained = naive.learned_of_individuals(shares, Fraction(6, 5))
    with_missing = [of for name, of in zip(everybody, gained, strict=True) if name in tried]
    for column, name in enumerate(LEARNED):
        # Only skewness compares with the table's shares, of which that of missing values is one.
        expected = with_missing if name == "skewness" else known
        total = float(sum(of[column] for of in expected))
        if name == "marginal":
            found = ended.measure("baseline_share", method="homogeneity", column="ill")
            assert found == pytest.approx(total / len(expected), abs=1e-6)
            continue
        method, outcome, more = OUTCOME[name]
        of = {"method": method, "column": "ill", **more}
        assert ended.measure("people_tried", **of, outcome=outcome) == len(expected)
        assert ended.measure(f"values_{outcome}", **of) == pytest.approx(total, abs=1e-6), name
    _, alike = held_of(released.rows, shown, lambda row: GROUP[row["ill"]])
    together = [of[0] for name, of in zip(names, naive.learned_of_individuals(alike, Fraction(1)), strict=True)
                if name in tried]  # fmt: skip
    assert ended.measure("values_certain", method="similarity", column="ill") == sum(together)
    # The fixture tells one from the other.
    totals = [sum(of[column] for of in learned) for column in range(len(LEARNED))]
    assert 0 < totals[0] < totals[3] < len(names)
    assert totals[0] < totals[4]
    most = max(m["value"] for m in ended.document["measures"] if m["name"] == "values_certain_share_high")
    assert f"upper limit of certain values, {100 * most:.3g} %, exceeds the 1 %" in ended.document["paragraph"]


def test_attack_on_values_by_an_intruder_with_a_table_counts_all_in_the_classes(
    privrisk: Privrisk, released: Released, tmp_path: Path
) -> None:
    """He asks for those whom he has; the classes that they are in hold others, too."""
    del privrisk
    his = {f"h{n}" for n in range(0, 30, 2)}
    pq.write_table(
        pa.Table.from_pylist([row for row in released.rows if row["person"] in his]), tmp_path / "his.parquet"
    )
    intruder = {"table": {"path": str(tmp_path / "his.parquet"), "record_id": "who", "entity_id": "person"}}
    ended = released.attack(tmp_path, {"methods": ["homogeneity", "external"], "intruder": intruder})
    assert ended.code == 0, ended.err
    names, people = held_of(released.rows, released.shown(), lambda row: row["ill"])
    learned = naive.learned_of_individuals(people, Fraction(6, 5))
    of_his = [of for name, of in zip(names, learned, strict=True) if name in his]
    for method in ("homogeneity", "external"):
        expected = float(sum(of[LEARNED.index(method)] for of in of_his))
        told = {"method": method, "column": "ill"}
        assert ended.measure("people_tried", **told, outcome="certain") == len(of_his)
        assert ended.measure("values_certain", **told) == pytest.approx(expected, abs=1e-6)


def test_attack_on_values_of_a_table_with_rows_of_strangers_counts_records(
    privrisk: Privrisk, released: Released, tmp_path: Path
) -> None:
    """Whose individuals the strangers are is not known, and their values are in the classes, too."""
    del privrisk
    rows = [{**row, "age": "*", "ill": "flu"} for row in released.rows]
    rows += [
        {**rows[0], "who": f"stranger {i}", "city": city, "ill": "angina"} for i, city in enumerate(("Ulm", "Bonn"))
    ]
    table = pa.Table.from_pylist(rows).drop(["person"])
    pq.write_table(table, tmp_path / "strangers.parquet")
    protected = {"path": str(tmp_path / "strangers.parquet"), "record_id": "who"}
    ended = released.attack(tmp_path, {"methods": ["homogeneity"], "protected": protected})
    assert ended.code == 0, ended.err
    of = {"method": "homogeneity", "column": "ill"}
    known = sum(row["ill"] is not None for row in released.rows)
    assert ended.measure("records_tried", **of, outcome="certain") == known
    # Only where no stranger is do all rows hold the flu; what is true of a record is another matter.
    flu = sum(row["ill"] == "flu" and row["city"] not in ("Ulm", "Bonn") for row in released.rows)
    assert ended.measure("values_certain", **of) == flu


def test_attack_by_links_counts_individuals_of_released_records(
    privrisk: Privrisk, released: Released, tmp_path: Path
) -> None:
    """Every record looks at every released row, and every released row at every record, literally."""
    del privrisk
    asked = {"methods": ["distance", "transparency", "probabilistic"], "cells": ["nearest"]}
    ended = released.attack(tmp_path, {**asked, "correct_links_at_most": 0.001})
    assert ended.code == 1, ended.err
    shown, whose = released.shown(), {row["who"]: row["person"] for row in released.rows}
    columns = load([released.root / "policy.yaml"]).quasi_identifiers
    trees = [build(column.hierarchy, name) for name, column in columns.items()]
    people = [(row["person"], [tree.code_of[row[q]] for tree, q in zip(trees, QUASI, strict=True)])
              for row in released.rows]  # fmt: skip
    rows = [(whose[who], [tree.labels.index(label) for tree, label in zip(trees, form, strict=True)])
            for who, form in shown.items()]  # fmt: skip
    for begins, begun, searched in (("person", people, rows), ("row", rows, people)):
        missed: dict[str, float] = {}
        for person, known in begun:
            apart = [
                sum(naive_linkage.level_difference(tree, a, b) for tree, a, b in zip(trees, known, cells, strict=True))
                for _, cells in searched
            ]
            tied = [owner for (owner, _), d in zip(searched, apart, strict=True) if d <= min(apart) + 1e-9]
            missed[person] = missed.get(person, 1.0) * (1 - tied.count(person) / len(tied))
        of = {"method": "distance", "attack": begins, "cells": "nearest"}
        assert ended.measure("links_tried", **of) == len(missed)
        assert ended.measure("correct_links", **of) == pytest.approx(sum(1 - one for one in missed.values()), abs=1e-6)
        assert ended.measure("linked_rows", **of) == len(begun)
        assert ended.measure("links_not_tried", **of) == 0
        absent = {person for person, _ in begun} - {person for person, _ in searched}
        assert ended.measure("absent_persons", **of) == len(absent)
    assert len({whose[who] for who in shown}) < len(set(whose.values()))
    # What is found by levels is of records, and says so.
    levels = {"method": "transparency", "attack": "person"}
    assert ended.measure("links_tried", **levels) == len(released.rows)
    said = ended.document["attacks"]
    assert all(("records are found" in one) == ("by the levels" in one) for one in said)
    assert {one["unit"] for one in ended.document["measures"] if one["name"] == "absent_persons"} == {"persons"}
    of_all = {"method", "attack", "cells", "confidence"}
    high = max(
        one["value"]
        for one in ended.document["measures"]
        if one["name"] == "correct_link_share_high" and set(one["parameters"]) <= of_all
    )
    assert f"upper limit of links, {100 * high:.3g} %, exceeds" in ended.document["paragraph"]


def test_attack_by_composition_counts_individuals_with_a_certain_record(
    privrisk: Privrisk, released: Released, tmp_path: Path
) -> None:
    """A second table shows other classes of the same records; a stranger is in it."""
    del privrisk
    second = [
        {"id": row["who"], "age": "*", "town": row["city"] if i % 5 else "*", "ill": row["ill"]}
        for i, row in enumerate(released.rows[10:])
    ]
    second.append({"id": "stranger", "age": "*", "town": "Ulm", "ill": "flu"})
    pq.write_table(pa.Table.from_pylist(second), tmp_path / "second.parquet")
    other = {"path": str(tmp_path / "second.parquet"), "record_id": "id", "columns": {"city": "town"}}
    # Of a third table no value is known: it tells nothing.
    nothing = pa.Table.from_pylist(
        [{**row, "ill": None} for row in second], schema=pa.table({key: [""] for key in second[0]}).schema
    )
    pq.write_table(nothing, tmp_path / "nothing.parquet")
    third = other | {"path": str(tmp_path / "nothing.parquet")}
    ended = released.attack(tmp_path, {"methods": ["composition", "homogeneity"], "also": [other, third]})
    assert ended.code == 0, ended.err
    shown, whose = released.shown(), {row["who"]: row["person"] for row in released.rows}
    forms = [shown, {row["id"]: (row["age"], row["town"]) for row in second}]
    ills = {row["who"]: row["ill"] for row in released.rows} | {"stranger": "flu"}
    numbers = [{form: i for i, form in enumerate(sorted(set(of.values())))} for of in forms]
    codes = {ill: i for i, ill in enumerate(sorted(set(ills.values()), key=str))}
    releases: list[list[naive.Held]] = []
    for of, number in zip(forms, numbers, strict=True):
        held: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for who, form in of.items():
            if ills[who] is not None:
                held[whose.get(who, who)][number[form]].add(codes[ills[who]])
        releases.append([{place: frozenset(some) for place, some in one.items()} for one in held.values()])
    after: list[set[str]] = [set(), set()]
    seen: list[set[str]] = [set(), set()]
    for row in [one for one in released.rows if one["ill"] is not None]:
        places = [number.get(of.get(row["who"]), -1) for of, number in zip(forms, numbers, strict=True)]
        for r, certain in enumerate(naive.certain_after(releases, places)):
            if certain:
                after[r].add(row["person"])
            if max(places[: r + 1]) >= 0:
                seen[r].add(row["person"])
    for r in range(2):
        of = {"method": "composition", "column": "ill", "releases": r + 1}
        assert ended.measure("people_tried", **of, outcome="certain") == len(seen[r])
        assert ended.measure("values_certain", **of) == len(after[r])
    for name, more in {"people_tried": {"outcome": "certain"}, "values_certain": {}}.items():
        told = [ended.measure(name, method="composition", column="ill", releases=n, **more) for n in (2, 3)]
        assert told[0] == told[1]
    assert len(after[1]) > len(after[0]) == ended.measure("values_certain", method="homogeneity", column="ill")


def test_attack_on_membership_counts_individuals(privrisk: Privrisk, released: Released, tmp_path: Path) -> None:
    """Who has a released record is a member; the score is what all records of an individual get."""
    del privrisk
    ended = released.attack(tmp_path, {"methods": ["membership"], "intruder": {"columns": ["age"]}})
    assert ended.code == 0, ended.err
    shown = {who: form[0] for who, form in released.shown().items()}
    tree = build(load([released.root / "policy.yaml"]).quasi_identifiers["age"].hierarchy, "age")
    of_label = dict(zip(tree.labels, range(tree.n_nodes), strict=True))

    def fits(row: Row, label: str) -> bool:
        return of_label[label] in tree.ancestor[tree.code_of[row["age"]]].tolist()

    got = {row["who"]: Fraction(0) for row in released.rows}
    for label in shown.values():
        fit = [row["who"] for row in released.rows if fits(row, label)]
        for who in fit:
            got[who] += Fraction(1, len(fit))
    members = {row["person"] for row in released.rows if row["who"] in shown}
    score: dict[str, Fraction] = defaultdict(Fraction)
    for row in released.rows:
        score[row["person"]] += got[row["who"]]
    others = set(score) - members
    assert ended.measure("members", method="membership") == len(members)
    assert ended.measure("others", method="membership") == len(others) > 0
    inside, outside = ([score[one] for one in sorted(some)] for some in (members, others))
    advantage, area = naive.advantage(inside, outside), naive.area(inside, outside)
    assert ended.measure("membership_advantage", method="membership") == pytest.approx(float(advantage))
    assert ended.measure("membership_area", method="membership") == pytest.approx(float(area))
    fewest = naive.advantage([-one for one in inside], [-one for one in outside])
    found = ended.measure("membership_advantage", method="membership", taken="fewest")
    assert found == pytest.approx(float(fewest))
    assert f"fewest for members has an advantage of {found:.3g}" in " ".join(ended.document["attacks"])
    assert 0 < advantage < 1
    assert f"of {len(members)} members and {len(others)} others" in " ".join(ended.document["attacks"])
