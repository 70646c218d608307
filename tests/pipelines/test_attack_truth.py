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


def test_match_weights_without_truth_say_which_are_links(run: Run, tmp_path: Path) -> None:
    """Classes of the rule are counted, and their links are scored in bits."""
    rows = table()
    asked = {"protected": written(tmp_path, coarser(rows)), "methods": ["all"], "probabilistic": {"false_links": 0.1}}
    ended = run(rows, asked)
    assert ended.code == 0, ended.err
    assert ended.document["methods"] == ["distance", "probabilistic"]
    said = " ".join(ended.document["notes"])
    for method in ("learned", "transparency", "homogeneity", "composition", "membership"):
        assert f"'{method}', as it is not known whose each row is" in said
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
    need = "needs to know whose each row is; name the column of the ids in attack.protected.record_id"
    for more, said in (
        ({"methods": ["distance", "learned"]}, f"attack.methods.1: 'learned' {need}"),
        ({"methods": ["membership"]}, f"attack.methods.0: 'membership' {need}"),
        ({"correct_links_at_most": 0.5}, f"attack.correct_links_at_most: {need}"),
        ({"values_certain_at_most": 0.5}, f"attack.values_certain_at_most: {need}"),
    ):
        ended = run(rows, {**protected, **more})
        assert ended.code == 2
        assert said in " ".join(ended.err.split()), ended.err
