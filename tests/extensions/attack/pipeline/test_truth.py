"""Attacks by what is known of whose the rows are: nothing, or the persons who have several of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive_linkage
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.reading import load

Row = dict[str, Any]

TREES: dict[str, Any] = {
    "age": {"intervals": {"widths": [5, 20], "domain": [20, 59]}},
    "home.town": {"tree": {"*": {"south": ["Ulm"], "north": {"coast": ["Kiel"], "inland": ["Bonn", "Köln"]}}}},
}
"""A dot in a name."""

QUASI = tuple(TREES)


def table(n: int = 60) -> list[Row]:
    towns = ["Ulm", "Kiel", "Bonn", "Köln", None]
    return [
        {
            "who": f"p{i}",
            "person": f"h{i // 3}",
            "age": None if i % 31 == 3 else str(20 + (i * i + i // 7) % 40),
            "home.town": towns[(i * 3 + i // 11) % 5],
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

    def pairs(self, key: str) -> pd.DataFrame:
        return pd.read_parquet(self.directory / "pairs" / key)


Run = Callable[..., Ended]


@pytest.fixture
def run(privrisk: Privrisk, tmp_path: Path) -> Run:
    """``run(rows, attack, table=…)``: an attack; a release before it if ``released``."""

    def attack(rows: Sequence[Row], asked: Row, *, released: bool = False, **changes: Any) -> Ended:
        pq.write_table(pa.Table.from_pylist(list(rows)), tmp_path / "table.parquet")
        document = {
            "version": 1,
            "run": {"name": "attacked"},
            "table": {"path": str(tmp_path / "table.parquet"), "record_id": "who", **changes.pop("table", {})},
            "columns": {
                "who": {"role": "identifier"},
                "person": {"role": "identifier"},
                **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
            },
            "risk": {"model": "II"},
            "guarantee": {"kind": "k-anonymity", "k": 3, "suppression_limit": 0.2, "metric": "classes"},
            "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
            "attack": asked,
            **changes,
        }
        path = tmp_path / "policy.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}, sort_keys=False))
        if released:
            ran = privrisk(str(path))
            assert ran.code == 0, ran.err
        result = CliRunner().invoke(app, ["attack", str(path), f"--output={tmp_path / 'attack'}"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stderr, tmp_path / "attack")

    return attack


def written(tmp_path: Path, rows: Sequence[Row], name: str = "shown", parts: int = 1) -> Row:
    """A protected table of other software, without ids."""
    place = tmp_path / name
    place.mkdir(exist_ok=True)
    for part in range(parts):
        pq.write_table(pa.Table.from_pylist(list(rows[part::parts])), place / f"{part}.parquet")
    return {"path": str(place)}


def trees_of(tmp_path: Path) -> dict[str, Hierarchy]:
    columns = load([tmp_path / "policy.yaml"]).quasi_identifiers
    return {name: build(column.hierarchy, name) for name, column in columns.items()}


def form(row: Row, trees: dict[str, Hierarchy]) -> tuple[int, ...]:
    return tuple(tree.root if row[q] is None else tree.labels.index(row[q]) for q, tree in trees.items())


def coarser(rows: Sequence[Row]) -> list[Row]:
    """Rows of other software: towns without the north, ages in fives in every second row."""
    shown = []
    for i, row in enumerate(rows):
        low = None if row["age"] is None else 20 + (int(row["age"]) - 20) // 5 * 5
        age = "*" if low is None else f"[{low},{low + 5})" if i % 2 else row["age"]
        town = {"Kiel": "coast", "Bonn": "inland", None: "*"}.get(row["home.town"], row["home.town"])
        shown.append({"age": age, "home.town": town})
    return shown


def test_pairs_without_truth_are_those_of_two_loops_and_none_is_called_right(run: Run, tmp_path: Path) -> None:
    rows = table()
    shown = coarser(rows)[::-1]
    asked = {"protected": written(tmp_path, shown), "methods": ["distance"], "cells": ["nearest"]}
    ended = run(rows, asked)
    assert ended.code == 0, ended.err
    trees = trees_of(tmp_path)
    people, protected = ([form(row, trees) for row in of] for of in (rows, shown))
    named = ended.pairs("person-nearest").set_index("record_id")
    begun = ended.pairs("row-nearest")
    assert len(named) == len(rows)
    assert begun["rows"].sum() == len(shown)
    for begins, known, searched in (("person", people, protected), ("row", protected, people)):
        alike = Counter(searched)
        files = sorted(alike)
        links = naive_linkage.linked(list(trees.values()), [0.5, 0.5], known, files, [alike[one] for one in files])
        of = {"method": "distance", "attack": begins, "cells": "nearest"}
        assert ended.measure("links_tried", **of) == len(known)
        assert ended.measure("links_to_one_candidate", **of) == sum(tied == 1 for _, tied, _ in links)
        assert ended.measure("correct_links_at_most", **of) == pytest.approx(sum(1 / tied for _, tied, _ in links))
        assert ended.measure("link_distance", **of, quantile=1.0) == pytest.approx(max(d for d, _, _ in links))
        assert ended.measure("random_guess_share", **of) == pytest.approx(1 / len(searched))
        for i, (distance, tied, near) in enumerate(links):
            if begins == "person":
                pair = named.loc[rows[i]["who"]]
                best = tuple(trees[q].labels[node] for q, node in zip(QUASI, files[min(near)], strict=True))
                assert tuple(pair[[f"row_{q}" for q in QUASI]]) == best
                assert pair["rows"] == alike[files[min(near)]]
            else:
                (pair,) = [one for _, one in begun.iterrows() if all(one[f"row_{q}"] == shown[i][q] for q in QUASI)]
                alike_people = [row["who"] for row, one in zip(rows, people, strict=True) if one == files[min(near)]]
                assert pair["record_id"] == min(alike_people)
                assert pair["rows"] == Counter(protected)[protected[i]]
            assert pair["distance"] == pytest.approx(distance)
            assert pair["tied_rows"] == tied
    names = {one["name"] for one in ended.document["measures"]}
    assert not names & {"correct_links", "correct_link_share", "predicted_share", "absent_records"}
    assert "it is not known which links are right" in ended.document["paragraph"].lower()
    said = " ".join(ended.document["notes"])
    assert "no link is called right" in said
    assert "Links of which it is not known" in (ended.directory / "report.html").read_text()
    assert "rows alike" not in said
    again = run(rows[::-1], {**asked, "protected": written(tmp_path, shown[::-1], "dealt", parts=4)})
    assert again.document["measures"] == ended.document["measures"]
    for key, by in (("person-nearest", ["record_id"]), ("row-nearest", [f"row_{q}" for q in QUASI])):
        other = again.pairs(key).sort_values(by, ignore_index=True)
        before = (named.reset_index() if by == ["record_id"] else begun).sort_values(by, ignore_index=True)
        pd.testing.assert_frame_equal(other, before)


def test_ids_are_needed_on_neither_side(run: Run, tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name not in ("who", "person")} for row in table(20)]
    columns = {q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()}
    ended = run(rows, {"protected": written(tmp_path, coarser(rows))}, table={"record_id": None}, columns=columns)
    assert ended.code == 0, ended.err
    assert ended.measure("links_tried", method="distance", attack="person", cells="uniform") == 20
    assert ended.pairs("person-uniform")["record_id"].is_unique


@pytest.mark.thorough("tests/extensions/attack/stages/test_probabilistic.py")
def test_match_weights_without_truth_say_which_are_links(run: Run, tmp_path: Path) -> None:
    """Classes of the rule are counted, and their links are scored in bits."""
    rows = table()
    asked = {
        "protected": written(tmp_path, coarser(rows)), "methods": ["all"], "cells": ["nearest"],
        "probabilistic": {"false_links": 0.1},
    }  # fmt: skip
    ended = run(rows, asked)
    assert ended.code == 0, ended.err
    assert sorted(ended.document["methods"]) == ["distance", "probabilistic"]
    said = " ".join(ended.document["notes"])
    for method in ("learned", "transparency", "homogeneity", "composition", "membership"):
        assert f"'{method}', as it is not known of which record each row is" in said
    for begins in ("person", "row"):
        of = {"method": "probabilistic", "attack": begins}
        classes = [ended.measure("links_tried", **of, **{"class": c}) for c in ("linked", "clerical", "not linked")]
        assert sum(classes) == ended.measure("links_tried", **of) == len(rows)
        best, upper = ended.measure("link_weight", **of, quantile=1.0), ended.measure("upper_threshold", **of)
        assert best > upper
        assert classes[0] > 0
    one_to_one = {"method": "probabilistic", "attack": "person", "assignment": "one-to-one"}
    assert 0 < ended.measure("links", **one_to_one) <= len(rows)
    named = [(one["name"], sorted(one["parameters"].items())) for one in ended.document["measures"]]
    assert len(named) == len({str(one) for one in named})


def test_what_needs_the_truth_is_refused_by_name_without_it(run: Run, tmp_path: Path) -> None:
    rows = table(20)
    protected = {"protected": written(tmp_path, coarser(rows))}
    need = "needs to know of which record each row is; name the column of the ids in attack.protected.record_id"
    for more, said in (
        ({"methods": ["distance", "learned"]}, f"attack.methods.1: 'learned' {need}"),
        ({"methods": ["membership"]}, f"attack.methods.0: 'membership' {need}"),
        ({"correct_links_at_most": 0.5}, f"attack.correct_links_at_most: {need}"),
        ({"values_certain_at_most": 0.5}, f"attack.values_certain_at_most: {need}"),
    ):
        ended = run(rows, {**protected, **more})
        assert ended.code == 2
        assert said in " ".join(ended.err.split()), ended.err


Named = tuple[str, tuple[int, ...]]
"""A person, and what a row of the person holds."""


def found_one_by_one(
    begun: Sequence[Named], searched: Sequence[Named], trees: Sequence[Hierarchy]
) -> tuple[float, float]:
    """Persons found, and rows linked to a row of the same person: every row looks at every other, literally."""
    missed: dict[str, float] = {}
    right = 0.0
    for person, known in begun:
        apart = [
            sum(naive_linkage.level_difference(tree, a, b) for tree, a, b in zip(trees, known, cells, strict=True))
            for _, cells in searched
        ]
        tied = [owner for (owner, _), d in zip(searched, apart, strict=True) if d <= min(apart) + 1e-9]
        probability = tied.count(person) / len(tied)
        right += probability
        missed[person] = missed.get(person, 1.0) * (1 - probability)
    return sum(1 - one for one in missed.values()), right


PERSONS = {"record_id": "who", "entity_id": "person"}


def check(
    ended: Ended, begins: str, begun: Sequence[Named], searched: Sequence[Named], trees: Sequence[Hierarchy]
) -> None:
    assert ended.code == 0, ended.err
    of = {"method": "distance", "attack": begins, "cells": "nearest"}
    persons, right = found_one_by_one(begun, searched, trees)
    assert ended.measure("links_tried", **of) == len({person for person, _ in begun})
    assert ended.measure("correct_links", **of) == pytest.approx(persons, abs=1e-6)
    assert ended.measure("linked_rows", **of) == len(begun)
    assert ended.measure("correctly_linked_rows", **of) == pytest.approx(right, abs=1e-6)
    if begins == "person":
        # 1 - Π (1 - c/f) over the rows of each person who is tried and there.
        alike, whose = Counter(row for _, row in searched), Counter(searched)
        missed: dict[str, float] = {}
        for person, row in searched:
            if person in {one for one, _ in begun}:
                missed[person] = missed.get(person, 1.0) * (1 - whose[person, row] / alike[row])
        predicted = sum(1 - one for one in missed.values()) / len(missed)
        assert ended.measure("predicted_share", **of, prediction="prosecutor") == pytest.approx(predicted, abs=1e-8)
    there = {person for person, _ in searched}
    assert ended.measure("absent_persons", **of) == len({person for person, _ in begun} - there)


@pytest.mark.parametrize(
    "known", ["persons", pytest.param("records", marks=pytest.mark.thorough("the same steps by other ids"))]
)
def test_persons_are_found_as_a_literal_program_finds_them(run: Run, tmp_path: Path, known: str) -> None:
    """A table of other software; rows of some persons are lost, and strangers are in it. Then in parts, in disorder."""
    rows = table(75)
    shown = [{**of, "id": row["who"], "whose": row["person"]} for row, of in zip(rows, coarser(rows), strict=True)][7:]
    shown.append({**shown[-1], "id": "x", "whose": "stranger"})
    protected = written(tmp_path, shown) | ({"entity_id": "whose"} if known == "persons" else {"record_id": "id"})
    asked = {"protected": protected, "methods": ["distance"], "cells": ["nearest"]}
    ended = run(rows, asked, table=PERSONS)
    assert ended.code == 0, ended.err
    trees = trees_of(tmp_path)
    people = [(row["person"], form(row, trees)) for row in rows]
    theirs = [(row["whose"], form(row, trees)) for row in shown]
    check(ended, "person", people, theirs, list(trees.values()))
    if known == "persons":
        check(ended, "row", theirs, people, list(trees.values()))
    else:
        # Whose id nobody in the original table has is not tried.
        check(ended, "row", theirs[:-1], people, list(trees.values()))
    assert " persons are found" in ended.document["paragraph"]
    assert "a person is found if one of the rows is linked rightly" in " ".join(ended.document["notes"])
    pairs = ended.pairs("person-nearest")
    assert set(pairs["entity"]) == {row["person"] for row in rows}
    assert pairs["rows"].sum() == len(rows)
    if known == "persons":
        dealt = {**protected, **written(tmp_path, shown[::-1], "dealt", parts=4)}
        again = run(rows[::-1], {**asked, "protected": dealt}, table=PERSONS)
        assert again.document["measures"] == ended.document["measures"]
    assert {m["parameters"].get("prediction") for m in ended.document["measures"]} == {None, "prosecutor"}
    assert all(m["unit"] != "records" for m in ended.document["measures"] if "group" in m["parameters"])


@pytest.mark.thorough("test_persons_are_found_as_a_literal_program_finds_them")
def test_a_person_is_found_more_often_than_each_row(run: Run, tmp_path: Path) -> None:
    """Three rows of each of two persons, all in one class of six: each row with 3/6, one of three with 7/8."""
    rows = [{"who": f"p{i}", "person": f"h{i % 2}", "age": "30", "home.town": "Ulm"} for i in range(6)]
    shown = [{"age": "[20,40)", "home.town": "Ulm", "person": row["person"]} for row in rows]
    asked = {"protected": {**written(tmp_path, shown), "entity_id": "person"}, "cells": ["nearest"]}
    ended = run(rows, {**asked, "correct_links_at_most": 0.5}, table=PERSONS)
    assert ended.code == 1
    for begins in ("person", "row"):
        of = {"method": "distance", "attack": begins, "cells": "nearest"}
        assert ended.measure("correct_link_share", **of) == pytest.approx(7 / 8)
        assert ended.measure("correctly_linked_rows", **of) == pytest.approx(3)
        assert ended.measure("correct_links", **of, rows_of_person="2 to 4") == pytest.approx(7 / 4)
    assert "By the rows of a person" in (ended.directory / "report.html").read_text()


def test_persons_of_a_release_of_ours(run: Run, tmp_path: Path) -> None:
    """The vault tells which row is whose; persons are drawn with all of their rows."""
    rows = table(75)
    asked = {"methods": ["distance", "probabilistic"], "cells": ["nearest"], "intruder": {"share": 0.4, "seed": 5}}
    ended = run(rows, asked, released=True, table=PERSONS)
    assert ended.code == 0, ended.err
    decisions = pd.read_parquet(tmp_path / "vault" / "decisions").set_index("who")
    trees = trees_of(tmp_path)
    people, theirs = [], []
    for row in rows:
        people.append((row["person"], form(row, trees)))
        shown = []
        for name, tree in trees.items():
            code = tree.n_leaves if row[name] is None else tree.code_of[row[name]]
            shown.append(
                tree.labels.index(tree.labels[tree.ancestor[code, decisions.loc[row["who"], f"level_{name}"]]])
            )
        theirs.append((row["person"], tuple(shown)))
    tried = set(ended.pairs("person-nearest")["entity"])
    assert 4 < len(tried) < 18
    for begins, begun, searched in (("person", people, theirs), ("row", theirs, people)):
        check(ended, begins, [one for one in begun if one[0] in tried], searched, list(trees.values()))
    of = {"method": "probabilistic", "attack": "person"}
    classes = [ended.measure("links_tried", **of, **{"class": c}) for c in ("linked", "clerical", "not linked")]
    assert sum(classes) == ended.measure("linked_rows", **of) == 3 * len(tried)
    rows_right = [ended.measure("correct_links", **of, **{"class": c}) for c in ("linked", "clerical", "not linked")]
    assert sum(rows_right) == pytest.approx(ended.measure("correctly_linked_rows", **of), abs=1e-6)


@pytest.mark.thorough(
    "tests/extensions/attack/pipeline/test_learning.py learns them of rows; "
    "tests/extensions/attack/stages/test_learned.py"
)
def test_distances_are_learned_from_some_persons_and_find_others(run: Run, tmp_path: Path) -> None:
    """Standard weights find of the persons held out what a loop over their rows finds; nobody is in both samples."""
    rows = table(75)
    shown = [{**of, "id": row["who"]} for row, of in zip(rows, coarser(rows), strict=True)]
    asked = {"protected": {**written(tmp_path, shown), "record_id": "id"}, "methods": ["distance", "learned"]}
    learned = {"training": 1, "held_out": 24, "distances": ["weighted_mean"]}
    ended = run(rows, {**asked, "cells": ["nearest"], "learned": learned}, table=PERSONS)
    assert ended.code == 0, ended.err
    of = {"method": "learned", "attack": "person", "distance": "weighted_mean"}
    assert ended.measure("links_tried", **of) == 24, "persons, not rows"
    assert ended.measure("linked_rows", **of) == 72
    assert ended.measure("links_tried", **of, records="training") == 3
    # All 25 persons by the standard weights, less the one who was learned from.
    pairs = ended.pairs("person-nearest")
    pairs["missed"] = (1 - (pairs["own_rows_nearest"] / pairs["tied_rows"]).clip(upper=1)) ** pairs["rows"]
    found = 1 - pairs.groupby("entity")["missed"].prod()
    standard = ended.measure("correct_links", **of, records="held_out_standard")
    assert standard in [pytest.approx(sum(found) - one, abs=1e-6) for one in found]
    assert ended.measure("correctly_linked_rows", **of) <= 72
    again = run(rows[::-1], {**asked, "cells": ["nearest"], "learned": learned}, table=PERSONS)
    assert again.document["measures"] == ended.document["measures"]


def test_an_intruder_who_knows_a_row_of_each_person(run: Run, tmp_path: Path) -> None:
    """His table has one row a person, by the persons' ids; strangers are among them."""
    rows = table(75)
    shown = [{**of, "whose": row["person"]} for row, of in zip(rows, coarser(rows), strict=True)]
    his = [{**row, "voter": row["person"]} for row in rows[1::3]] + [{**rows[0], "voter": "nobody"}]
    his_table = {**written(tmp_path, his, "voters"), "record_id": "voter", "entity_id": "voter"}
    protected = {**written(tmp_path, shown), "entity_id": "whose"}
    asked = {"protected": protected, "cells": ["nearest"], "intruder": {"table": his_table}}
    ended = run(rows, asked, table={"record_id": None, "entity_id": "person"})
    assert ended.code == 0, ended.err
    trees = trees_of(tmp_path)
    people = [(row["voter"], form(row, trees)) for row in his]
    theirs = [(row["whose"], form(row, trees)) for row in shown]
    check(ended, "person", people, theirs, list(trees.values()))
    check(ended, "row", theirs, people, list(trees.values()))


def test_columns_of_persons_that_fit_nothing_are_refused(run: Run, tmp_path: Path) -> None:
    rows = table(30)
    shown = [{**of, "whose": row["person"], "id": row["who"]} for row, of in zip(rows, coarser(rows), strict=True)]
    place = written(tmp_path, shown)
    nameless = written(tmp_path, [{**row, "whose": None} if i % 7 == 0 else row for i, row in enumerate(shown)], "none")
    others = written(tmp_path, [{**row, "whose": f"x{row['whose']}"} for row in shown], "others")
    for protected, of_table, said in (
        ({**place, "entity_id": "whose"}, {}, "attack.protected.entity_id: holds the persons of table.entity_id"),
        ({**place, "entity_id": "who"}, PERSONS, "attack.protected.entity_id: the release has no column 'who'"),
        ({**nameless, "entity_id": "whose"}, PERSONS, "every row must name its person, and 5 rows name none"),
        ({**others, "entity_id": "whose"}, PERSONS, "attack.protected: nobody who is tried is in it; its entity_id"),
        # An id of a record that repeats is an accident, whoever's the rows are.
        ({**place, "record_id": "whose"}, PERSONS, "attack.protected.record_id: every row must have an id of its own"),
    ):
        ended = run(rows, {"protected": protected}, table=of_table)
        assert ended.code == 2, said
        assert said in " ".join(ended.err.split()), ended.err
    ended = run(rows, {"protected": {**place, "entity_id": "whose"}, "methods": ["homogeneity"]}, table=PERSONS)
    assert ended.code == 2
    assert "'homogeneity' needs to know of which record each row is" in " ".join(ended.err.split())
