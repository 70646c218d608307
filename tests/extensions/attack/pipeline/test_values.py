"""Attacks without a link, end to end: held against loops over the rows of the written files."""

from __future__ import annotations

import json
import math
import re
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
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.reading import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Run = Callable[..., "Ended"]

QUASI = ("age", "city")

TREES: dict[str, Any] = {
    "age": {"intervals": {"widths": [10, 40], "domain": [20, 59]}},
    "city": {"tree": {"*": {"south": ["Ulm", "Augsburg"], "north": ["Bonn", "Kiel"]}}},
}

ILL = ["HIV", "ache", "cold", "flu", "gout"]

ILLNESSES: dict[str, Any] = {"tree": {"*": {"lungs": ["asthma", "flu"], "heart": ["angina", "infarct"]}}}


def table(n: int = 80) -> list[Row]:
    cities, ills = ["Ulm", "Augsburg", "Bonn", "Kiel"], ["flu", "asthma", "angina", "infarct"]
    return [
        {
            "who": f"p{i}",
            "age": str(20 + (i * i + i // 7) % 40),
            "city": cities[(i * 3 + i // 11) % 4],
            "ill": None if i % 29 == 5 else ills[(i // 5 + i % 3) % 4],
            "person": f"h{i // 3}",
        }
        for i in range(n)
    ]


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


def written(root: Path, rows: Sequence[Row], asked: Row, **changes: Any) -> Path:
    """A policy over a table of these rows, with what is attacked; its release goes beside it."""
    held = pa.Table.from_pylist(list(rows))
    # A column without a value is one of texts.
    texts = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in held.schema]
    pq.write_table(held.cast(pa.schema(texts)), root / "table.parquet")
    document = {
        "version": 1,
        "run": {"name": "attacked"},
        "table": {"path": str(root / "table.parquet"), "record_id": "who"},
        "columns": {
            "who": {"role": "identifier"},
            **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
            "ill": {"role": "sensitive"},
            "person": {"role": "identifier"},
        },
        "risk": {"model": "II"},
        "guarantee": {"kind": "k-anonymity", "k": 3, "suppression_limit": 0.2, "metric": "classes"},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
        "attack": asked,
        **changes,
    }
    path = root / "policy.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}, sort_keys=False))
    return path


def attacked(path: Path, place: Path) -> Ended:
    """``privrisk attack`` in the session there is."""
    result = CliRunner().invoke(app, ["attack", str(path), f"--output={place}"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stderr, place)


@pytest.fixture
def run(privrisk: Privrisk, tmp_path: Path) -> Run:
    """``run(rows, attack, **policy)``: release, then attack."""

    def attack(rows: Sequence[Row], asked: Row, *, released: bool = True, **changes: Any) -> Ended:
        path = written(tmp_path, rows, asked, **changes)
        if released:
            ran = privrisk(str(path))
            assert ran.code == 0, ran.err
        return attacked(path, tmp_path / "attack")

    return attack


@dataclass(frozen=True)
class Released:
    """A release that tests share and none changes; each attacks it by its own policy."""

    root: Path
    rows: list[Row]
    document: Row

    def attack(self, place: Path, asked: Row, **changes: Any) -> Ended:
        """Attack it, from a directory of the test's own."""
        path = place / "policy.yaml"
        path.write_text(yaml.safe_dump({**self.document, "attack": asked, **changes}, sort_keys=False))
        return attacked(path, place / "attack")


Release = Callable[..., Released]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """``made(rows, **policy)``: a release of these rows."""

    def release_of(rows: list[Row], **changes: Any) -> Released:
        root = tmp_path_factory.mktemp("released")
        path = written(root, rows, {}, **changes)
        with production_batches(spark), without_charts():
            ran = release(str(path), root=root)
        assert ran.code == 0, ran.err
        return Released(root, rows, yaml.safe_load(path.read_text()))

    return release_of


@pytest.fixture(scope="module")
def anonymous(made: Release) -> Released:
    """Everybody of a table, in one scheme of 3-anonymity and a few suppressed rows."""
    return made(table(60))


@pytest.fixture(scope="module")
def without_some(made: Release) -> Released:
    """The same by another metric, of which the suppressed rows are left out."""
    guarantee = {"kind": "k-anonymity", "k": 4, "suppression_limit": 0.4, "metric": "loss", "suppressed": "drop"}
    return made(table(60), guarantee=guarantee)


def classes_of(tmp_path: Path) -> dict[tuple[Any, ...], list[Any]]:
    """Sensitive values of the released rows, by what they show."""
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    found = defaultdict(list)
    for row in pq.read_table(tmp_path / "out" / manifest["data"]["path"]).to_pylist():
        found[tuple(row[q] for q in QUASI)].append(row["ill"])
    return dict(found)


@pytest.mark.parametrize(
    "kind",
    [
        "k-anonymous",
        pytest.param("by risk", marks=pytest.mark.thorough("tests/extensions/attack/stages/test_classes.py")),
    ],
)
def test_values_are_inferred_as_loops_over_the_classes_infer_them(
    privrisk: Privrisk, anonymous: Released, made: Release, tmp_path: Path, kind: str
) -> None:
    del privrisk
    by_risk = {"guarantee": None, "decision": {"utility_at_least": 2}}
    of = anonymous if kind == "k-anonymous" else made(table(), **by_risk)
    asked = {"methods": ["homogeneity", "external", "background", "skewness", "similarity"], "gain_above": 1.5}
    model = {"ill": {"distance": "hierarchical", "hierarchy": ILLNESSES}}
    ended = of.attack(tmp_path, asked, assess={"sensitive": model})
    assert ended.code == 0, ended.err
    classes = classes_of(of.root)
    everybody = [value for values in classes.values() for value in values]
    of_all, n = Counter(everybody), len(everybody)
    # A missing value tells nothing, and nothing is inferred of those who have none.
    with_values = [[value for value in values if value is not None] for values in classes.values()]
    known = Counter(value for values in with_values for value in values)

    def measured(method: str, outcome: str, **more: object) -> float:
        return float(ended.measure(f"values_{outcome}", method=method, column="ill", **more))

    certain = sum(len(values) for values in with_values if len(set(values)) == 1)
    right = sum(max(Counter(values).values(), default=0) for values in with_values)
    assert measured("homogeneity", "certain") == pytest.approx(certain)
    assert measured("homogeneity", "guessed") == pytest.approx(right)
    baseline = ended.measure("baseline_share", method="homogeneity", column="ill")
    assert baseline == pytest.approx(max(known.values()) / known.total())
    assert right / known.total() > baseline

    def certain_without_one(values: list[Any], victim: int) -> bool:
        """Whether some other member is sure of the victim's value."""
        others = [i for i in range(len(values)) if i != victim]
        return any(len({value for i, value in enumerate(values) if i != own}) == 1 for own in others) or (
            not others or len(set(values)) == 1
        )

    external = sum(certain_without_one(values, i) for values in with_values for i in range(len(values)))
    assert measured("external", "certain") == pytest.approx(external)
    background = sum(len(values) for values in with_values if len(set(values)) <= 2)
    assert measured("background", "certain", false_values=1) == pytest.approx(background)
    exposed = sum(
        count
        for values in classes.values()
        for value, count in Counter(values).items()
        if count / len(values) > 1.5 * of_all[value] / n
    )
    assert measured("skewness", "exposed", gain_above=1.5) == pytest.approx(exposed)
    group = {"asthma": "lungs", "flu": "lungs", "angina": "heart", "infarct": "heart"}
    alike = sum(len(values) for values in with_values if len({group[value] for value in values}) == 1)
    assert measured("similarity", "certain") == pytest.approx(alike)
    assert certain <= alike
    assert ended.measure("people_tried", method="homogeneity", column="ill", outcome="certain") == known.total()
    assert "infarct" not in (ended.directory / "report.html").read_text()


@pytest.mark.parametrize(
    "suppressed",
    [pytest.param("keep", marks=pytest.mark.thorough("where rows are left out, more has to be thought of")), "drop"],
)
def test_whoever_knows_the_levels_links_classes(
    privrisk: Privrisk, made: Release, without_some: Released, tmp_path: Path, suppressed: str
) -> None:
    """A person's row is one of f; a suppressed row is one of those that nobody else's class explains."""
    del privrisk
    guarantee = {"kind": "k-anonymity", "k": 3, "suppression_limit": 0.3, "metric": "loss", "suppressed": "keep"}
    of_rows = without_some if suppressed == "drop" else made(table(50), guarantee=guarantee)
    rows = of_rows.rows
    readings = ("nearest", "uniform") if suppressed == "keep" else ("nearest",)
    ended = of_rows.attack(tmp_path, {"methods": ["transparency", "distance"], "cells": [*readings]})
    assert ended.code == 0, ended.err
    sizes = {shown: len(values) for shown, values in classes_of(of_rows.root).items()}
    lost = sizes.pop(("*", "*"), 0)
    gone = len(rows) - sum(sizes.values())
    assert (gone == lost) == (suppressed == "keep")
    assert gone
    found = len(sizes) + (1 if lost else 0)
    of = {"method": "transparency", "attack": "person"}
    assert ended.measure("correct_links", **of) == pytest.approx(found)
    assert ended.measure("links_tried", **of) == len(rows)
    assert ended.measure("absent_records", **of) == gone - lost
    row = {"method": "transparency", "attack": "row"}
    assert ended.measure("correct_links", **row) == pytest.approx(found)
    # Nobody who searches by distance does better.
    for cells in readings:
        by_distance = ended.measure("correct_links", method="distance", attack="person", cells=cells)
        assert by_distance <= found + 1e-9
    assert {path.name for path in (ended.directory / "pairs").iterdir()} == {
        f"{begins}-{cells}" for begins in ("person", "row") for cells in readings
    }


@pytest.mark.parametrize(
    "share", [pytest.param(1.0, marks=pytest.mark.thorough("half of them are tried by the same steps")), 0.5]
)
def test_releases_together_leave_fewer_values(
    privrisk: Privrisk, anonymous: Released, tmp_path: Path, share: float
) -> None:
    """A second release groups the same people otherwise: a value is one that both classes hold; of those tried."""
    del privrisk
    rows = anonymous.rows
    second = [
        {"id": row["who"], "age": "*", "town": row["city"] if i % 2 else "*", "ill": row["ill"]}
        for i, row in enumerate(rows[:50])
    ]
    pq.write_table(pa.Table.from_pylist(second), tmp_path / "second.parquet")
    other = {"path": str(tmp_path / "second.parquet"), "record_id": "id", "columns": {"city": "town"}}
    methods = ["composition", "homogeneity", "distance"]
    asked = {"methods": methods, "cells": ["nearest"], "also": [other], "intruder": {"share": share}}
    ended = anonymous.attack(tmp_path, asked)
    assert ended.code == 0, ended.err
    tried = set(pd.read_parquet(ended.directory / "pairs" / "person-nearest")["record_id"])
    assert len(tried) == 60 if share == 1 else 15 < len(tried) < 45
    decisions = pd.read_parquet(anonymous.root / "vault" / "decisions").set_index("who")
    shown = {who: tuple(decisions.loc[who, [f"level_{q}" for q in QUASI]]) for who in decisions.index}
    assert len(set(shown.values())) <= 2  # one scheme, and suppressed rows
    columns = load([tmp_path / "policy.yaml"]).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}

    def first_class(row: Row) -> tuple[Any, ...]:
        return tuple(
            tree.labels[tree.ancestor[tree.code_of[row[name]], level]]
            for (name, tree), level in zip(trees.items(), shown[row["who"]], strict=True)
        )

    values = classes_of(anonymous.root)
    others = defaultdict(set)
    for row in second:
        others[row["age"], row["town"]].add(row["ill"])
    there = {row["id"]: (row["age"], row["town"]) for row in second}
    alone = both = 0
    known = [row for row in rows if row["who"] in tried and row["ill"] is not None]
    for row in known:
        left = set(values[first_class(row)]) - {None}
        alone += left == {row["ill"]}
        left &= others[there[row["who"]]] if row["who"] in there else left
        both += left == {row["ill"]}
    of = {"method": "composition", "column": "ill"}
    assert ended.measure("values_certain", **of, releases=1) == alone
    assert ended.measure("values_certain", **of, releases=2) == both
    assert both > alone
    assert ended.measure("people_tried", **of, releases=2, outcome="certain") == len(known)


@pytest.mark.parametrize(
    ("cities", "ills", "exposed"),
    [
        # Among the four of Augsburg two may have HIV: so both are of Ulm.
        (["Ulm"] * 2 + ["Augsburg"] * 4, ["HIV", "HIV", "flu", "cold", "ache", "gout"], 2),
        # Ulm violates with two (1 of 10 ways), Augsburg with two of three (3 ways): 1/2 in Augsburg, which is not more.
        (["Ulm"] * 2 + ["Augsburg"] * 3, ["HIV", "HIV", "flu", "cold", "ache"], 0),
        # Two of Ulm have one illness, and which of the three that are there twice is not known.
        (["Ulm"] * 2 + ["Augsburg"] * 4, ["HIV", "HIV", "flu", "flu", "cold", "cold"], 0),
    ],
)
def test_minimality_given_that_the_finer_scheme_violates_equals_enumeration(
    run: Run, tmp_path: Path, cities: list[str], ills: list[str], exposed: int
) -> None:
    """Each member of a town is believed to hold a value with the share of the tables in which some town violates."""
    columns = {
        "who": {"role": "identifier"},
        "city": {"role": "quasi-identifier", "hierarchy": TREES["city"]},
        "ill": {"role": "sensitive"},
    }
    rows = [{"who": f"p{i}", "city": c, "ill": ill} for i, (c, ill) in enumerate(zip(cities, ills, strict=True))]
    also = [{"alpha": {"column": "ill", "alpha": 0.5}}]
    guarantee = {"kind": "k-anonymity", "k": 2, "metric": "classes", "also": also}
    ended = run(rows, {"methods": ["minimality"]}, columns=columns, guarantee=guarantee)
    assert ended.code == 0, ended.err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    released = pq.read_table(tmp_path / "out" / manifest["data"]["path"]).to_pylist()
    assert {row["city"] for row in released} == {"south"}
    values = [ILL.index(row["ill"]) for row in released]
    (believed,) = naive.credibility([([2, len(rows) - 2], values)], Fraction(1, 2), 2) or [{}]
    sizes = [2, len(rows) - 2]
    telling = {part for (part, _), share in believed.items() if share > Fraction(1, 2)}
    assert sum(sizes[part] for part in telling) == exposed
    of = {"method": "minimality", "column": "ill", "alpha": 0.5}
    assert ended.measure("values_exposed", **of) == exposed
    assert ended.measure("people_tried", **of, outcome="exposed") == len(rows)
    assert {one["status"] for one in ended.document["measures"]} == {"tested"}


def test_minimality_of_several_finer_schemes_is_an_estimate(run: Run) -> None:
    """Both town and sex were given up; what both tell together is not computed. Each tells of two, but not of whom.

    The two of Ulm have one illness, or the two women; each of four illnesses is held by two, so that none is believed.
    """
    towns, sexes = ["Ulm"] * 2 + ["Augsburg"] * 6, ["m"] * 2 + ["f"] * 2 + ["m"] * 4
    ills = ["HIV", "HIV", "flu", "flu", "cold", "cold", "ache", "ache"]
    columns = {
        "who": {"role": "identifier"},
        "city": {"role": "quasi-identifier", "hierarchy": TREES["city"]},
        "sex": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["f", "m"]}}},
        "ill": {"role": "sensitive"},
    }
    rows = [
        {"who": f"p{i}", "city": c, "sex": s, "ill": v}
        for i, (c, s, v) in enumerate(zip(towns, sexes, ills, strict=True))
    ]
    guarantee = {"kind": "k-anonymity", "k": 2, "metric": "classes"}
    alpha = {"alpha": {"column": "ill", "alpha": 0.5}}
    ended = run(rows, {"methods": ["minimality"]}, columns=columns, guarantee={**guarantee, "also": [alpha]})
    assert ended.code == 0, ended.err
    assert ended.measure("values_exposed", method="minimality", column="ill", alpha=0.5) == 0
    assert {one["status"] for one in ended.document["measures"]} == {"heuristic"}
    assert "This figure is an estimate." in ended.document["attacks"][0]
    t = {"t_closeness": {"column": "ill", "t": 0.9}}
    other = {**guarantee, "also": [alpha, t]}
    ended = run(rows, {"methods": ["minimality", "homogeneity"]}, columns=columns, guarantee=other)
    assert ended.code == 0, ended.err
    assert "Not tried: 'minimality', as guarantee.also has other conditions" in " ".join(ended.document["notes"])


def test_minimality_of_a_column_with_missing_values_that_do_not_count_is_not_tried(run: Run) -> None:
    columns = {
        "who": {"role": "identifier"},
        "city": {"role": "quasi-identifier", "hierarchy": TREES["city"]},
        "ill": {"role": "sensitive"},
    }
    ills = ["HIV", "HIV", "flu", "cold", "ache", None]
    rows = [{"who": f"p{i}", "city": "Ulm" if i < 2 else "Augsburg", "ill": ill} for i, ill in enumerate(ills)]
    also = [{"alpha": {"column": "ill", "alpha": 0.5}}]
    guarantee = {"kind": "k-anonymity", "k": 2, "metric": "classes", "also": also}
    ended = run(rows, {"methods": ["minimality", "homogeneity"]}, columns=columns, guarantee=guarantee)
    assert ended.code == 0, ended.err
    assert {one["parameters"]["method"] for one in ended.document["measures"]} == {"homogeneity"}
    assert "has missing values that the condition does not count" in " ".join(ended.document["notes"])


@pytest.mark.parametrize(
    "method", [pytest.param("mondrian", marks=pytest.mark.thorough("the same steps as for hilbert")), "hilbert"]
)
def test_whoever_makes_the_classes_again_is_left_with_their_rows(run: Run, tmp_path: Path, method: str) -> None:
    """Under local recoding as under one scheme: one of f rows, whoever the person is; no distance finds more."""
    rows = table(60)
    guarantee = {"kind": "k-anonymity", "k": 4, "method": method}
    readings = ("nearest", "uniform") if method == "mondrian" else ("nearest",)
    ended = run(rows, {"methods": ["transparency", "distance"], "cells": [*readings]}, guarantee=guarantee)
    assert ended.code == 0, ended.err
    of = {"method": "transparency", "attack": "person", "distance": "repetition"}
    # The people of each class find one row together.
    assert ended.measure("correct_links", **of) == pytest.approx(len(classes_of(tmp_path)))
    assert ended.measure("links_tried", **of) == len(rows)
    for cells in readings:
        by_distance = ended.measure("correct_links", method="distance", attack="person", cells=cells)
        assert by_distance <= len(classes_of(tmp_path)) + 1e-9
    if method == "mondrian":
        of_ages = {"methods": ["transparency", "distance"], "cells": ["nearest"], "intruder": {"columns": ["age"]}}
        less = run(rows, of_ages, released=False, guarantee=guarantee)
        assert "classes can be made again by who knows all quasi-identifiers alone" in " ".join(less.document["notes"])


@pytest.mark.thorough("tests/extensions/attack/stages/test_distance.py links by the same columns, without a release")
def test_an_intruder_may_know_a_sensitive_value_which_all_rows_show(
    privrisk: Privrisk, anonymous: Released, tmp_path: Path
) -> None:
    """Linked by age, town and illness, as two loops do it; without the illness less is found."""
    del privrisk
    rows = anonymous.rows
    asked = {"cells": ["nearest"], "methods": ["distance", "probabilistic", "transparency"]}
    known = {"columns": ["age", "ill", "city"]}
    ended = anonymous.attack(tmp_path, {**asked, "intruder": known})
    assert ended.code == 0, ended.err
    decisions = pd.read_parquet(anonymous.root / "vault" / "decisions").set_index("who")
    columns = load([tmp_path / "policy.yaml"]).quasi_identifiers
    trees = {name: build(column.hierarchy, name) for name, column in columns.items()}
    ills = Hierarchy.from_paths("ill", [(value,) for value in sorted({row["ill"] for row in rows} - {None})])
    people, protected = [], []
    for row in rows:
        ill = ills.root if row["ill"] is None else ills.code_of[row["ill"]]
        codes = {q: trees[q].code_of[row[q]] for q in QUASI}
        nodes = {q: trees[q].ancestor[codes[q], decisions.loc[row["who"], f"level_{q}"]] for q in QUASI}
        labels = {q: trees[q].labels.index(trees[q].labels[node]) for q, node in nodes.items()}
        people.append((codes["age"], codes["city"], ill))
        protected.append((labels["age"], labels["city"], ill))
    every = [trees["age"], trees["city"], ills]
    for begins, mine, theirs in (("person", people, protected), ("row", protected, people)):
        links = naive_linkage.linked(every, [1 / 3] * 3, mine, theirs, [1] * len(theirs))
        right = sum((i in near) / tied for i, (_, tied, near) in enumerate(links))
        of = {"method": "distance", "attack": begins, "cells": "nearest"}
        assert ended.measure("correct_links", **of) == pytest.approx(right, abs=1e-9)
    assert list(ended.document["known"]) == ["age", "city", "ill"]
    assert ended.document["known"]["ill"] == "as a category, equal or not"
    assert "'transparency', as suppressed rows still show what no scheme recodes: ill" in " ".join(
        ended.document["notes"]
    )
    of = {"method": "distance", "attack": "person", "cells": "nearest"}
    with_it = ended.measure("correct_links", **of)
    without = anonymous.attack(tmp_path, {"cells": ["nearest"], "methods": ["distance"]})
    assert with_it > 1.5 * without.measure("correct_links", **of)


def test_columns_that_cannot_be_compared_are_refused_by_name(run: Run) -> None:
    rows = [{**row, "note": "x", "cost": "12"} for row in table(20)]
    quasi = {q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()}
    columns = {
        "who": {"role": "identifier"},
        **quasi,
        "ill": {"role": "sensitive"},
        "note": {"role": "insensitive", "action": "drop"},
        "cost": {"role": "sensitive", "read": {"cast": "number"}, "release": {"round": 10}},
        "person": {"role": "identifier"},
    }
    for asked, said in (
        (
            {"columns": ["age", "note"]},
            "attack.intruder.columns.1: 'note' is never released, so that it can be compared",
        ),
        ({"columns": ["cost"]}, "attack.intruder.columns.0: 'cost' is released recoded (columns.cost.release)"),
        ({"columns": ["person"]}, "attack.intruder.columns.0: 'person' is never released"),
        (
            {"columns": ["age", "ill"]},
            "attack.methods.0: 'homogeneity' infers sensitive values, and the intruder knows",
        ),
    ):
        ended = run(rows, {"methods": ["homogeneity"], "intruder": asked}, released=False, columns=columns)
        assert ended.code == 2
        assert said in " ".join(ended.err.split()), ended.err


def test_members_are_told_from_others(privrisk: Privrisk, without_some: Released, tmp_path: Path) -> None:
    """Suppressed rows are left out: who has rare values is not there."""
    del privrisk
    rows = without_some.rows
    ended = without_some.attack(tmp_path, {"methods": ["membership"]})
    assert ended.code == 0, ended.err
    decisions = pd.read_parquet(without_some.root / "vault" / "decisions").set_index("who")
    trees = {q: build(column.hierarchy, q) for q, column in load([tmp_path / "policy.yaml"]).quasi_identifiers.items()}

    def shown(row: Row, of: str) -> tuple[int, ...]:
        """What a row would show at the levels of somebody's row."""
        codes = {q: tree.code_of[row[q]] for q, tree in trees.items()}
        return tuple(int(tree.ancestor[codes[q], decisions.loc[of, f"level_{q}"]]) for q, tree in trees.items())

    roots = tuple(tree.root for tree in trees.values())
    member = {row["who"]: shown(row, row["who"]) != roots for row in rows}
    assert ended.measure("members", method="membership") == sum(member.values())
    assert ended.measure("others", method="membership") == len(rows) - sum(member.values()) > 0
    # Every released row is dealt to the people it may be of.
    got = dict.fromkeys(member, Fraction(0))
    for row in rows:
        fit = [one["who"] for one in rows if shown(one, row["who"]) == shown(row, row["who"])]
        for who in fit if member[row["who"]] else []:
            got[who] += Fraction(1, len(fit))
    advantage = max(
        Fraction(sum(got[who] >= at for who, one in member.items() if one), sum(member.values()))
        - Fraction(sum(got[who] >= at for who, one in member.items() if not one), len(rows) - sum(member.values()))
        for at in set(got.values())
    )
    assert ended.measure("membership_advantage", method="membership") == pytest.approx(float(advantage))
    assert 0 < advantage <= 1
    held_out = {"method": "membership", "people": "held_out"}
    low, high = (ended.measure(f"membership_advantage_{end}", **held_out, confidence=0.95) for end in ("low", "high"))
    assert -1 <= low <= ended.measure("membership_advantage", **held_out) <= high <= 1
    assert re.search(r"\(95 % limits .* on the other half\.", " ".join(ended.document["attacks"]))
    text = (ended.directory / "report.html").read_text()
    assert "Who is in the protected table" in text


def test_a_table_of_suppressed_rows_tells_no_members(run: Run, tmp_path: Path) -> None:
    """Everybody is alone with what is known of him, and no row says anything."""
    rows = [{**row, "age": str(20 + i), "city": "Ulm"} for i, row in enumerate(table(40))]
    stars = [{"who": row["who"], "age": "*", "city": "*"} for row in rows[::2]]
    pq.write_table(pa.Table.from_pylist(stars), tmp_path / "stars.parquet")
    asked = {"methods": ["membership"], "protected": {"path": str(tmp_path / "stars.parquet"), "record_id": "who"}}
    ended = run(rows, asked, released=False)
    assert ended.code == 0, ended.err
    assert ended.measure("members", method="membership") == ended.measure("others", method="membership") == 20
    assert ended.measure("membership_advantage", method="membership") == 0
    assert ended.measure("membership_area", method="membership") == 0.5
    as_they_are = {**asked, "protected": {"path": str(tmp_path / "half.parquet"), "record_id": "who"}}
    pq.write_table(pa.Table.from_pylist(rows[::2]), tmp_path / "half.parquet")
    ended = run(rows, as_they_are, released=False)
    assert ended.measure("membership_advantage", method="membership") == ended.measure(
        "membership_area", method="membership"
    )
    assert ended.measure("membership_advantage", method="membership") == 1


@pytest.mark.thorough("test_members_are_told_from_others, of a release by k-anonymity")
def test_who_is_in_the_original_table_is_what_differential_privacy_hides(run: Run, tmp_path: Path) -> None:
    rows = [{**row, "age": str(20 + i % 3), "city": "Ulm", "who": f"p{i}"} for i, row in enumerate(table(80) * 20)]
    strangers = [{**row, "who": f"s{i}"} for i, row in enumerate(rows[:600])]
    pq.write_table(pa.Table.from_pylist([*rows[:500], *strangers]), tmp_path / "his.parquet")
    guarantee = {
        "kind": "dp", "mode": "local", "epsilon": {"admit": 0.5, "keep": 0.5}, "delta": 1e-6, "public_rows": 1600,
        "schemes": [[1, 0], [2, 1]], "objective": {"phi_min": 0.1}, "keep_fraction": 0.5,
    }  # fmt: skip
    ledger = {"url": f"sqlite:///{tmp_path}/ledger.db", "lineage": "attacked", "cap": {"epsilon": 4, "delta": 1e-5}}
    columns = {
        "who": {"role": "identifier"},
        **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
        "ill": {"role": "sensitive", "action": "drop"},
        "person": {"role": "identifier"},
    }
    private = {"guarantee": guarantee, "ledger": ledger, "risk": None, "columns": columns}
    asked = {"methods": ["distance", "membership"]}
    ended = run(rows, asked, **private)
    assert ended.code == 0, ended.err
    assert "of a differentially private one, in the original table" in " ".join(ended.document["notes"])
    # He begins with the rows that are released, however many could have been.
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert 0 < manifest["rows"] < len(rows) / 2
    of_rows = {"method": "distance", "attack": "row", "cells": "nearest"}
    assert ended.measure("links_tried", **of_rows) == manifest["rows"]
    his = {"table": {"path": str(tmp_path / "his.parquet"), "record_id": "who"}}
    ended = run(rows, {**asked, "intruder": his}, released=False, **private)
    assert ended.code == 0, ended.err
    assert ended.measure("members", method="membership") == 500
    assert ended.measure("others", method="membership") == 600
    # By basic composition ε = 1: (e - 1 + 2 δ)/(e + 1).
    bound = (math.e - 1 + 2e-6) / (math.e + 1)
    assert ended.measure("membership_advantage_bound", method="membership") == pytest.approx(bound)
    assert ended.measure("membership_advantage", method="membership") < 0.1, "members and strangers are alike"
    assert "Who is in the original table: of 500 members and 600 others" in " ".join(ended.document["attacks"])


def test_all_that_can_be_tried_is_tried_and_the_rest_is_said(
    privrisk: Privrisk, anonymous: Released, tmp_path: Path
) -> None:
    del privrisk
    ended = anonymous.attack(tmp_path, {"methods": ["all"]})
    assert ended.code == 0, ended.err
    assert set(ended.document["methods"]) >= {"distance", "transparency", "homogeneity", "external", "background"}
    notes = " ".join(ended.document["notes"])
    assert "Not tried: 'composition', as no other release is named" in notes
    assert "Not tried: 'similarity', as no hierarchy says" in notes
    assert "Not tried: 'membership', as everybody" in notes
    measures = ended.document["measures"]
    assert all(math.isfinite(one["value"]) for one in measures)
    named = [(one["name"], sorted(one["parameters"].items())) for one in measures]
    assert all(named.count(one) == 1 for one in named)


@pytest.mark.parametrize(
    "whose",
    [
        "a share",
        pytest.param(
            "a table of his own",
            marks=pytest.mark.thorough("tests/extensions/attack/pipeline/test_run.py has such an intruder"),
        ),
    ],
)
def test_nobody_is_counted_who_is_not_tried(run: Run, tmp_path: Path, whose: str) -> None:
    """Of a table as it is, row by row: who is drawn, or whom the intruder has, by what all rows of the class hold."""
    rows = [{**row, "age": str(20 + i % 4), "ill": row["ill"] or "flu"} for i, row in enumerate(table(60))]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "whole.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:25]), tmp_path / "some.parquet")
    intruder: Row = {"table": {"path": str(tmp_path / "some.parquet"), "record_id": "who"}}
    asked = {
        "methods": ["distance", "homogeneity", "external", "background", "skewness"],
        "protected": {"path": str(tmp_path / "whole.parquet"), "record_id": "who"},
        "intruder": {"share": 0.4} if whose == "a share" else intruder,
    }
    ended = run(rows, asked, released=False)
    assert ended.code == 0, ended.err
    tried = set(pd.read_parquet(ended.directory / "pairs" / "person-nearest")["record_id"])
    assert 10 < len(tried) < 40
    held: dict[Any, list[str]] = defaultdict(list)
    for row in rows:
        held[tuple(row[q] for q in QUASI)].append(row["ill"])
    every = Counter(row["ill"] for row in rows)

    def certain_for_others(of: list[str], own: str) -> bool:
        return len(of) == of.count(own) or (len(of) > 1 and of.count(own) == len(of) - 1)

    wanted: Counter[str] = Counter()
    for row in rows:
        if row["who"] in tried:
            of, own = held[tuple(row[q] for q in QUASI)], row["ill"]
            wanted["homogeneity"] += len(set(of)) == 1
            wanted["external"] += certain_for_others(of, own)
            wanted["background"] += len(set(of)) <= 2
            wanted["skewness"] += of.count(own) * len(rows) > 2 * every[own] * len(of)
    for method in asked["methods"][1:]:
        of = {"method": method, "column": "ill"}
        of |= {"background": {"false_values": 1}, "skewness": {"gain_above": 2.0}}.get(method, {})
        outcome = "exposed" if method == "skewness" else "certain"
        assert ended.measure("people_tried", **of, outcome=outcome) == len(tried), method
        assert ended.measure(f"values_{outcome}", **of) == pytest.approx(wanted[method]), method
    most = max(every.values())
    baseline = sum(every[row["ill"]] == most for row in rows if row["who"] in tried) / len(tried)
    if list(every.values()).count(most) == 1:
        assert ended.measure("baseline_share", method="homogeneity", column="ill") == pytest.approx(baseline)


def test_attack_of_a_table_with_padded_ids_states_what_was_not_tried(run: Run, tmp_path: Path) -> None:
    """Everybody is alone and released as they are; nine ids have a blank in front, so that eleven rows are tried."""
    rows = [{**row, "age": str(20 + i), "ill": "flu"} for i, row in enumerate(table(20))]
    padded = [{**row, "who": f" {row['who']}" if i < 9 else row["who"]} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(padded), tmp_path / "padded.parquet")
    protected = {"path": str(tmp_path / "padded.parquet"), "record_id": "who"}
    ended = run(rows, {"methods": ["distance", "homogeneity"], "cells": ["nearest"], "protected": protected},
                released=False)  # fmt: skip
    assert ended.code == 0, ended.err
    of = {"method": "distance", "attack": "row", "cells": "nearest"}
    assert [ended.measure(name, **of) for name in ("links_tried", "correct_links", "links_not_tried")] == [11, 11, 9]
    person = {**of, "attack": "person"}
    assert [ended.measure(name, **person) for name in ("links_tried", "correct_links", "links_not_tried")] == [
        20,
        11,
        0,
    ]
    of = {"method": "homogeneity", "column": "ill", "outcome": "certain"}
    assert [ended.measure(f"people_{what}", **of) for what in ("tried", "not_tried")] == [11, 9]
    assert "NOT TRIED: 9 of 20 rows of the protected table." in ended.document["paragraph"]
    assert "NOT TRIED: 9 of 20 people, not in the protected table." in " ".join(ended.document["attacks"])
    assert "9 of 20 rows of the protected table have an id that no record" in " ".join(ended.document["notes"])
    assert (ended.directory / "report.html").read_text().count("not tried: 9 of 20") == 3


@pytest.mark.thorough("test_members_are_told_from_others, where strangers are among others")
def test_strangers_alone_are_no_mistake(run: Run, tmp_path: Path) -> None:
    rows = table(30)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "whole.parquet")
    pq.write_table(pa.Table.from_pylist([{**row, "who": f"x{row['who']}"} for row in rows]), tmp_path / "his.parquet")
    asked = {
        "methods": ["distance", "homogeneity", "learned", "membership"],
        "protected": {"path": str(tmp_path / "whole.parquet"), "record_id": "who"},
        "intruder": {"table": {"path": str(tmp_path / "his.parquet"), "record_id": "who"}},
    }
    ended = run(rows, asked, released=False)
    assert ended.code == 0, ended.err
    of = {"method": "distance", "attack": "person", "cells": "nearest"}
    assert ended.measure("correct_links", **of) == ended.measure("random_guess_share", **of) == 0
    notes = " ".join(ended.document["notes"])
    assert "or nobody whom the intruder knows." in notes
    assert "Not tried: 'learned', as fewer than two people" in notes
    assert "Not tried: 'membership'" in notes


def test_too_many_certain_values_are_exit_code_one(run: Run, tmp_path: Path) -> None:
    rows = [{**row, "ill": "flu"} for row in table(30)]
    as_it_is = {"protected": {"path": str(tmp_path / "table.parquet"), "record_id": "who"}}
    missed = run(rows, {**as_it_is, "methods": ["homogeneity"], "values_certain_at_most": 0.5}, released=False)
    assert missed.code == 1
    said = "greatest upper limit of certain values, 100 %, exceeds the 50 % of whom a value may be certain"
    assert said in missed.document["paragraph"]


@pytest.mark.thorough("tests/extensions/attack/stages/test_classes.py, without a release")
def test_nothing_is_certain_of_a_column_without_a_value(run: Run, tmp_path: Path) -> None:
    """That a value is missing is no secret: of 30 people, one has a value, and it is certain of that one alone."""
    nothing = [{**row, "ill": None} for row in table(30)]
    as_it_is = {"protected": {"path": str(tmp_path / "table.parquet"), "record_id": "who"}}
    asked = {**as_it_is, "methods": ["distance", "homogeneity", "external"], "values_certain_at_most": 1.0}
    ended = run(nothing, asked, released=False)
    assert not [one for one in ended.document["measures"] if one["name"].startswith("values_")]
    assert any("'homogeneity', as the protected table has no sens" in note for note in ended.document["notes"])
    assert ended.code == 1
    assert "No certain values could be tried" in ended.document["paragraph"]
    one = [{**row, "ill": "flu" if i == 0 else None} for i, row in enumerate(nothing)]
    some = run(one, {**as_it_is, "methods": ["homogeneity"]}, released=False)
    assert some.code == 0, some.err
    assert some.measure("values_certain", method="homogeneity", column="ill") == 1


def test_bad_input_is_refused_by_name(privrisk: Privrisk, anonymous: Released, tmp_path: Path) -> None:
    del privrisk
    pq.write_table(pa.Table.from_pylist([{"id": "a", "age": "*"}]), tmp_path / "lacking.parquet")
    other = {"path": str(tmp_path / "lacking.parquet"), "record_id": "id"}
    for asked, said in (
        ({"methods": ["guess"]}, "attack.methods.0"),
        ({"methods": []}, "attack.methods"),
        ({"methods": ["distance", "distance"]}, "attack.methods.1: 'distance' is there already"),
        ({"methods": ["composition"]}, "attack.methods.0: 'composition' needs other releases"),
        ({"methods": ["similarity"]}, "attack.methods.0: 'similarity' needs a hierarchy of sensitive values"),
        ({"methods": ["transparency"], "intruder": {"levels": {"age": 1}}}, "attack.methods.0: 'transparency' takes"),
        ({"methods": ["transparency"], "levels": {"age": 1}}, "attack.levels: must have a level for each known column"),
        ({"methods": ["transparency"], "levels": {"age": 0, "city": 0}}, "has rows that nobody has at the levels"),
        ({"methods": ["composition"], "also": [other]}, "attack.also.0.columns.city: the release has no column 'city'"),
        ({"methods": ["membership"]}, "attack.methods: nothing of it can be tried: 'membership', as everybody"),
        ({"gain_above": 0.5}, "attack.gain_above"),
    ):
        ended = anonymous.attack(tmp_path, asked)
        assert ended.code == 2, (asked, ended.err)
        assert said in " ".join(ended.err.split()), (said, ended.err)
    kept_out = {"ill": {"role": "sensitive", "action": "drop"}}
    quasi = {q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()}
    columns = {"who": {"role": "identifier"}, **quasi, "person": {"role": "identifier"}, **kept_out}
    ended = anonymous.attack(tmp_path, {"methods": ["homogeneity"]}, columns=columns)
    assert ended.code == 2
    assert "attack.methods.0: 'homogeneity' needs a column with the role 'sensitive'" in " ".join(ended.err.split())
