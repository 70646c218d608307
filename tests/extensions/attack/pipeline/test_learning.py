"""Attacks that estimate or learn from the two files, end to end, on tables whose truth is known."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

Row = dict[str, Any]

COLUMNS = ("town", "job", "pet", "noise")
VALUES = {name: [f"{name}{i}" for i in range(8)] for name in COLUMNS}

Run = Callable[[Sequence[Row], Sequence[Row], Row], tuple[int, Row]]


@pytest.fixture
def run(privrisk: Privrisk, tmp_path: Path) -> Run:
    """``run(rows, shown, attack)``: exit code and document of an attack on a table of the same ids."""
    del privrisk

    def attack(rows: Sequence[Row], shown: Sequence[Row], asked: Row) -> tuple[int, Row]:
        for name, table in (("table", rows), ("shown", shown)):
            pq.write_table(pa.Table.from_pylist(list(table)), tmp_path / f"{name}.parquet")
        document = {
            "version": 1,
            "run": {"name": "attacked"},
            "table": {"path": str(tmp_path / "table.parquet"), "record_id": "who"},
            "columns": {
                "who": {"role": "identifier"},
                **{c: {"role": "quasi-identifier", "hierarchy": {"flat": {"values": VALUES[c]}}} for c in COLUMNS},
            },
            "attack": {"protected": {"path": str(tmp_path / "shown.parquet"), "record_id": "who"}, **asked},
        }
        path = tmp_path / "policy.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        result = CliRunner().invoke(app, ["attack", str(path), f"--output={tmp_path / 'attack'}"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 1), result.stderr
        report = (tmp_path / "attack" / "report.html").read_text()
        assert "who" in report
        return result.exit_code, json.loads((tmp_path / "attack" / "attack.json").read_text())

    return attack


def files(n: int, agreeing: Row, seed: int = 3) -> tuple[list[Row], list[Row]]:
    """A table, and one in which each value is the same with its column's probability, else another one."""
    of = random.Random(seed)
    rows = [{"who": f"p{i}", **{c: of.choice(VALUES[c]) for c in COLUMNS}} for i in range(n)]
    shown = [
        {c: v if c == "who" or of.random() < agreeing[c] else of.choice([x for x in VALUES[c] if x != v])
         for c, v in row.items()} for row in rows
    ]  # fmt: skip
    return rows, shown


def value(document: Row, name: str, **parameters: object) -> float:
    (found,) = [m for m in document["measures"] if m["name"] == name and m["parameters"] == parameters]
    return float(found["value"])


def one_to_one(document: Row) -> tuple[float, float, float]:
    """Fewest right links, links, and most right ones."""
    at = {"method": "probabilistic", "attack": "person", "assignment": "one-to-one"}
    low, links, high = (value(document, name, **at) for name in ("correct_links_low", "links", "correct_links_high"))
    return low, links, high


def of_match_weights(document: Row, parameters: Row) -> dict[tuple[Any, ...], Row]:
    """Measures of the search by match weights, all of which have some parameters besides."""
    found = {}
    for measure in document["measures"]:
        if measure["parameters"]["method"] == "probabilistic":
            besides = {k: v for k, v in measure["parameters"].items() if k not in parameters}
            assert measure["parameters"] == {**besides, **parameters}
            found[(measure["name"], *sorted(besides.items()))] = measure
    return found


@pytest.mark.thorough(
    "test_probabilities_of_agreement_are_found_without_a_known_pair; tests/extensions/attack/kernels assigns one to one"
)
def test_each_of_different_people_is_linked_to_the_own_row_and_no_other(run: Run, tmp_path: Path) -> None:
    """Of 60 different people 20 are not in the table that is shown: 40 links are right, whoever takes the others'.

    One column is wrong in every fifth row. Splink estimates the same m and u, and everything says that it did.
    """
    pytest.importorskip("splink", reason="splink is not installed")
    rows = [
        {"who": f"p{i}", **{c: VALUES[c][(i // 8**j) % 8] for j, c in enumerate(COLUMNS)}} for i in range(0, 3000, 50)
    ]
    shown = [row | ({"noise": VALUES["noise"][7]} if i % 5 == 0 else {}) for i, row in enumerate(rows[:40])]
    document = run(rows, shown, {"methods": ["probabilistic"]})[1]
    assert one_to_one(document) == (40, 40, 40)
    other = run(rows, shown, {"methods": ["probabilistic"], "probabilistic": {"engine": "splink"}})[1]
    mine, theirs = of_match_weights(document, {}), of_match_weights(other, {"engine": "splink"})
    assert mine.keys() == theirs.keys()
    at = (("attack", "person"), ("column", "noise"), ("level", "agrees"), ("method", "probabilistic"))
    assert mine[("m_probability", *at)]["value"] < 0.97
    for which, one in mine.items():
        assert theirs[which]["value"] == pytest.approx(one["value"], abs=1e-4), which
    report = (tmp_path / "attack" / "report.html").read_text()
    for said in ("by match weights that Splink estimated", "it is Splink, on DuckDB, that he lets estimate"):
        assert said in report
    assert any("by Splink on DuckDB" in note for note in other["notes"])
    assert not any("Splink" in note for note in document["notes"])


def test_probabilities_of_agreement_are_found_without_a_known_pair(run: Run) -> None:
    """400 people, of whom town and job mostly agree: m is estimated, u is one in eight; a noisy column says little."""
    agreeing = {"town": 0.97, "job": 0.9, "pet": 0.8, "noise": 0.125}
    rows, shown = files(400, agreeing)
    code, document = run(rows, shown, {"methods": ["probabilistic", "distance"], "cells": ["nearest"]})
    assert code == 0
    of = {"method": "probabilistic", "attack": "person"}
    for column, m in agreeing.items():
        at = {**of, "column": column, "level": "agrees"}
        assert value(document, "m_probability", **at) == pytest.approx(m, abs=0.12)
        assert value(document, "u_probability", **at) == pytest.approx(1 / 8, abs=0.02)
    weights = {c: value(document, "match_weight", **of, column=c, level="agrees") for c in COLUMNS}
    assert weights["town"] > weights["noise"] + 1
    tried = {c: value(document, "links_tried", **of, **{"class": c}) for c in ("linked", "clerical", "not linked")}
    assert sum(tried.values()) == 400
    low, links, high = one_to_one(document)
    assert 0 < low < value(document, "correct_links", **of) < high < links <= 400
    assert value(document, "correct_link_share", **of) > value(
        document, "correct_link_share", method="distance", attack="person", cells="nearest"
    )


@pytest.mark.thorough("tests/extensions/attack/stages/test_probabilistic.py")
def test_agreement_on_a_rare_town_weighs_more(run: Run, tmp_path: Path) -> None:
    """Best candidates by the model's own m, and by the frequency of each town instead of u, pair by pair."""
    of = random.Random(2)

    def town() -> str:
        return VALUES["town"][0 if of.random() < 0.6 else of.randint(1, 7)]

    others = COLUMNS[1:]
    rows = [{"who": f"p{i}", "town": town(), **{c: of.choice(VALUES[c]) for c in others}} for i in range(120)]
    shown = [
        {
            "who": row["who"],
            "town": row["town"] if of.random() < 0.85 else town(),
            **{c: row[c] if of.random() < 0.8 else of.choice(VALUES[c]) for c in others},
        }
        for row in rows
    ]
    asked = {"methods": ["probabilistic"], "probabilistic": {"term_frequencies": ["town"]}}
    document = run(rows, shown, asked)[1]
    at = {"method": "probabilistic", "attack": "person"}
    weights = {
        c: [value(document, "match_weight", **at, column=c, level=level) for level in ("agrees", "differs")]
        for c in COLUMNS
    }
    u = value(document, "u_probability", **at, column="town", level="agrees")
    towns = [row["town"] for row in (*rows, *shown)]

    def weight(person: Row, row: Row) -> float:
        total = sum(weights[c][person[c] != row[c]] for c in COLUMNS)
        agree = person["town"] == row["town"]
        return total + (math.log2(u / (towns.count(row["town"]) / len(towns))) if agree else 0.0)

    found = 0.0
    for i, person in enumerate(rows):
        scores = [weight(person, row) for row in shown]
        best = [j for j, score in enumerate(scores) if score >= max(scores) - 1e-7]
        found += (i in best) / len(best)
    assert value(document, "correct_links", **at) == pytest.approx(found, abs=1e-9)
    # What each best candidate lacks of the greatest weight there is, which is the same for all.
    pairs = pq.read_table(tmp_path / "attack" / "pairs" / "person-probabilistic").to_pylist()
    lacking = {pair["record_id"]: len(COLUMNS) * pair["distance"] for pair in pairs}
    greatest = [lacking[person["who"]] + max(weight(person, row) for row in shown) for person in rows]
    assert greatest == pytest.approx([greatest[0]] * len(rows), abs=1e-6)
    assert "agreement on a rare value weighs more than on a frequent one: town" in " ".join(document["notes"])


@pytest.mark.thorough("tests/extensions/attack/stages/test_learned.py; tests/extensions/attack/kernels/learned")
def test_what_decides_is_learned_and_holds_of_others(run: Run) -> None:
    """Only town, job and pet tell anything; the standard weights are misled by a column that is noise."""
    rows, shown = files(600, {"town": 1.0, "job": 1.0, "pet": 1.0, "noise": 0.0})
    asked = {
        "methods": ["distance", "learned"],
        "learned": {"training": 100, "held_out": 500, "distances": ["weighted_mean", "choquet"]},
    }
    code, document = run(rows, shown, asked)
    assert code == 0
    for kind in ("weighted_mean", "choquet"):
        of = {"method": "learned", "attack": "person", "distance": kind}
        standard = value(document, "correct_link_share", **of, records="held_out_standard")
        assert value(document, "correct_link_share", **of) > standard + 0.1
        assert value(document, "correct_links", **of, records="training") >= value(
            document, "correct_links", **of, records="training_standard"
        )
        assert value(document, "links_tried", **of) == 500
        weights = {c: value(document, "column_weight", **of, column=c) for c in COLUMNS}
        assert weights["noise"] < 0.05
        assert sum(weights.values()) == pytest.approx(1)
    assert document["attacks"][0].startswith("From a person to the row, by")
    assert "learned from 100 true pairs" in document["attacks"][0]
    again = run(rows[::-1], shown[::-1], asked)[1]
    assert again["measures"] == document["measures"]


def test_standard_weights_that_nothing_beats_are_an_attack_too(run: Run) -> None:
    """Nothing is learned of a table as it is: everybody is found already."""
    rows, shown = files(60, dict.fromkeys(COLUMNS, 1.0))
    asked = {"methods": ["learned"], "learned": {"distances": ["weighted_mean"], "training": 20, "held_out": 40}}
    code, document = run(rows, shown, {**asked, "correct_links_at_most": 0.5})
    assert code == 1
    of = {"method": "learned", "attack": "person", "distance": "weighted_mean"}
    assert value(document, "links_tried", **of) == 40
    assert value(document, "correct_links", **of) == value(document, "correct_links", **of, records="held_out_standard")
    assert document["methods"] == ["learned"]
    assert "learned from 20 true pairs, which are the standard ones" in document["attacks"][0]
    assert "exceeds the 50 % that may be found" in document["paragraph"]


def test_bad_input_is_refused_by_name(run: Run) -> None:
    rows, shown = files(20, dict.fromkeys(COLUMNS, 1.0))
    for asked, said in (
        (
            {"methods": ["learned"], "learned": {"distances": ["bilinear", "bilinear"]}},
            "learned.distances.1: 'bilinear'",
        ),
        ({"methods": ["learned"], "learned": {"training": 0}}, "attack.learned.training"),
        ({"methods": ["probabilistic"], "probabilistic": {"false_links": 0}}, "attack.probabilistic.false_links"),
        (
            {"methods": ["probabilistic"], "probabilistic": {"term_frequencies": ["city"]}},
            "attack.probabilistic.term_frequencies.0: 'city' is no column the intruder knows",
        ),
        (
            {"probabilistic": {"term_frequencies": ["pet"]}, "numbers": ["pet"]},
            "attack.probabilistic.term_frequencies.0: 'pet' is compared as a number",
        ),
        ({"methods": ["learned"], "intruder": {"share": 1e-9}}, "attack.intruder.share: there are no rows"),
    ):
        with pytest.raises(AssertionError, match=said.replace(".", r"\.")):
            run(rows, shown, asked)
