"""Attacks end to end: found as two loops over the written files find, refusals by name, and nothing that leaks."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import naive_linkage
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from canaries import plans
from product import Privrisk, production_batches, release
from shared import without_charts
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.reading import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["plans"]

Row = dict[str, Any]

TREES: dict[str, Any] = {
    "age": {"intervals": {"widths": [5, 20], "domain": [20, 59]}},
    "sex.1": {"flat": {"values": ["F", "M"]}},
    "city": {"tree": {"*": {"south": ["Ulm"], "north": {"coast": ["Kiel"], "inland": ["Bonn", "Köln"]}}}},
}
"""A dot in a name, and leaves at different depths."""

QUASI = tuple(TREES)


def table(n: int = 90) -> list[Row]:
    """Records, some alike, some with missing values."""
    cities = ["Ulm", "Kiel", "Bonn", "Köln", None]
    return [
        {
            "who": f"p{i}",
            "age": None if i % 31 == 3 else str(20 + (i * i + i // 7) % 40),
            "sex.1": "FM"[i % 2],
            "city": cities[(i * 3 + i // 11) % 5],
            "sick": "abc"[i % 3],
        }
        for i in range(n)
    ]


@dataclass(frozen=True)
class Ended:
    """How a run of ``privrisk attack`` ended."""

    code: int
    out: str
    err: str
    directory: Path

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "attack.json").read_text()))

    def measure(self, name: str, attack: str, cells: str = "nearest", **parameters: object) -> Any:
        """Value of a figure, by exactly these parameters."""
        wanted = {"method": "distance", "attack": attack, "cells": cells, **parameters}
        (found,) = [m for m in self.document["measures"] if m["name"] == name and m["parameters"] == wanted]
        return found["value"]

    def of(self, name: str, **parameters: object) -> Any:
        """Value of a figure of any method, by exactly these parameters."""
        (found,) = [m for m in self.document["measures"] if m["name"] == name and m["parameters"] == parameters]
        return found["value"]

    def pairs(self, attack: str, cells: str = "nearest") -> pd.DataFrame:
        return pd.read_parquet(self.directory / "pairs" / f"{attack}-{cells}").set_index("record_id").sort_index()


Make = Callable[..., Path]
Attack = Callable[..., Ended]


def written(root: Path, rows: Sequence[Row], name: str = "policy", **changes: Any) -> Path:
    """A policy file over a table of these rows, below a directory where its release goes, too."""
    pq.write_table(pa.Table.from_pylist(list(rows)), root / f"{name}.parquet")
    document = {
        "version": 1,
        "run": {"name": name},
        "table": {"path": str(root / f"{name}.parquet"), "record_id": "who"},
        "columns": {
            "who": {"role": "identifier"},
            **{q: {"role": "quasi-identifier", "hierarchy": tree} for q, tree in TREES.items()},
            "sick": {"role": "sensitive"},
        },
        "dictionary": {"kind": "self", "consistency": "compatible"},
        "decision": {"utility_at_least": 3, "infeasible": "suppress"},
        "output": {"path": str(root / "out"), "vault": str(root / "vault")},
        **changes,
    }
    path = root / f"{name}.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}, sort_keys=False))
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Make:
    """``policy(rows, changes)``: a policy file over a table of these rows."""

    def make(rows: Sequence[Row], name: str = "policy", **changes: Any) -> Path:
        return written(tmp_path, rows, name, **changes)

    return make


@dataclass(frozen=True)
class Released:
    """A release by risk of :func:`table`, which tests share and none changes."""

    root: Path
    path: Path
    data: Path
    ended: Ended

    def policy(self, place: Path, asked: Row) -> Path:
        """Another policy of the same release, with what is attacked."""
        document = {**yaml.safe_load(self.path.read_text()), "attack": asked}
        place.write_text(yaml.safe_dump(document, sort_keys=False))
        return place


@pytest.fixture(scope="module")
def released(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Released]:
    """It, and the attack on it by all readings of a cell."""
    root = tmp_path_factory.mktemp("released")
    path = written(root, table())
    with production_batches(spark), without_charts():
        ran = release(str(path), root=root)
        assert ran.code == 0, ran.err
        yield Released(root, path, ran.data, attacked(path, root / "attack"))


def attacked(path: Path, place: Path, *arguments: str) -> Ended:
    """``privrisk attack`` in the session there is."""
    result = CliRunner().invoke(app, ["attack", str(path), f"--output={place}", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr, place)


NEAREST = ("--set=attack.cells=[nearest]",)
"""What most tests look at: to search a second time by another reading takes as long again."""


@pytest.fixture
def attack(privrisk: Privrisk, tmp_path: Path) -> Attack:
    """``attack(policy, *arguments)`` in the session of ``privrisk``, by the nearest reading if not by those it says."""
    del privrisk

    def run(path: Path, *arguments: str, output: str = "attack", readings: Sequence[str] = NEAREST) -> Ended:
        return attacked(path, tmp_path / output, *readings, *arguments)

    return run


def hierarchies(path: Path) -> dict[str, Hierarchy]:
    columns = load([path]).quasi_identifiers
    return {name: build(column.hierarchy, name) for name, column in columns.items()}


def node(tree: Hierarchy, label: str | None) -> int:
    """Node a value or a released label names; a missing one is the root."""
    return tree.root if label is None else tree.labels.index(label)


DIFFERENCES = {"nearest": naive_linkage.level_difference, "uniform": naive_linkage.drawn_difference}


def remembered(difference: Callable[[Hierarchy, int, int], float]) -> Callable[[Hierarchy, int, int], float]:
    """The same, looked up once for a pair of nodes: rows have few different ones."""
    known: dict[tuple[int, int, int], float] = {}

    def of(tree: Hierarchy, mine: int, theirs: int) -> float:
        pair = id(tree), mine, theirs
        if pair not in known:
            known[pair] = difference(tree, mine, theirs)
        return known[pair]

    return of


def two_loops(
    path: Path,
    rows: Sequence[Row],
    shown: dict[str, Row],
    columns: Sequence[str] = QUASI,
    *,
    cells: str = "nearest",
) -> dict[str, float]:
    """Records found by both attacks, of the original rows and the protected row of each, by labels."""
    trees = {name: tree for name, tree in hierarchies(path).items() if name in columns}

    def forms(some: Sequence[Row]) -> list[tuple[int, ...]]:
        return [tuple(node(tree, row[name]) for name, tree in trees.items()) for row in some]

    people = forms(rows)
    protected = forms([shown[row["who"]] for row in rows])
    found, difference = {}, remembered(DIFFERENCES[cells])
    for name, known, searched in (("person", people, protected), ("row", protected, people)):
        distinct = Counter(searched)
        files = list(distinct)
        weights = [1 / len(trees)] * len(trees)
        links = naive_linkage.linked(list(trees.values()), weights, known, files, list(distinct.values()), difference)
        found[name] = sum(
            1 / tied for (_, tied, near), own in zip(links, searched, strict=True) if files.index(own) in near
        )
    return found


def shown_by(root: Path, path: Path, rows: Sequence[Row]) -> dict[str, Row]:
    """Released labels of each record, by the levels in the vault."""
    decisions = pd.read_parquet(root / "vault" / "decisions").set_index("who")
    trees = hierarchies(path)
    shown = {}
    for row in rows:
        of = {}
        for name, tree in trees.items():
            code = tree.n_leaves if row[name] is None else tree.code_of[row[name]]
            of[name] = tree.labels[tree.ancestor[code, decisions.loc[row["who"], f"level_{name}"]]]
        shown[row["who"]] = of
    return shown


GUARANTEES: dict[str, dict[str, Any]] = {
    "by risk": {},
    "k-anonymous": {
        "decision": None, "guarantee": {"kind": "k-anonymity", "k": 4, "suppression_limit": 0.1},
        "risk": {"model": "II"},
    },
    "mondrian": {
        "decision": None, "guarantee": {"kind": "k-anonymity", "k": 4, "method": "mondrian"}, "risk": {"model": "II"}
    },
}  # fmt: skip


FORMS: dict[str, tuple[str, ...]] = {
    "k-anonymous": ("--set=output.format=csv",),
    "mondrian": ("--set=output.partition_by=[sick]",),
}
"""In which form a release is, besides Parquet in one directory."""


def read(data: Path) -> list[Row]:
    """Rows of a release, in whatever form it is."""
    if list(data.glob("*.csv")):
        files = [pd.read_csv(file, dtype=str, keep_default_na=False) for file in sorted(data.glob("*.csv"))]
        return [dict(row) for row in pd.concat(files).to_dict("records")]
    return list(pq.read_table(data).to_pylist())


@pytest.mark.parametrize(
    "guarantee",
    [
        "by risk",
        "k-anonymous",
        pytest.param("mondrian", marks=pytest.mark.thorough("the same steps as for k-anonymous")),
    ],
)
def test_a_release_is_attacked_as_two_loops_attack_its_files(
    privrisk: Privrisk, policy: Make, attack: Attack, tmp_path: Path, released: Released, guarantee: str
) -> None:
    rows = table()
    if GUARANTEES[guarantee]:
        path = policy(rows, **GUARANTEES[guarantee])
        ran = privrisk(str(path), *FORMS[guarantee])
        assert ran.code == 0, ran.err
        root, data, ended = tmp_path, ran.data, attack(path, *FORMS[guarantee], readings=())
    else:
        root, path, data, ended = released.root, released.path, released.data, released.ended
    shown = shown_by(root, path, rows)
    there = [tuple(row[name] for name in QUASI) for row in read(data)]
    assert Counter(there) == Counter(tuple(row[name] for name in QUASI) for row in shown.values())
    assert ended.code == 0, ended.err
    expected = {
        (name, cells): correct
        for cells in DIFFERENCES
        for name, correct in two_loops(path, rows, shown, cells=cells).items()
    }
    for (name, cells), correct in expected.items():
        assert ended.measure("correct_links", name, cells) == pytest.approx(correct, abs=1e-9)
        assert ended.measure("links_tried", name, cells) == len(rows)
        assert ended.measure("random_guess_share", name, cells) == pytest.approx(1 / len(rows))
        assert 0 < correct < len(rows)
    assert f": {max(expected.values()):,.1f} of {len(rows)} records are found" in ended.document["attacks"][0]
    assert ended.document["paragraph"] == ended.document["attacks"][0]


def test_what_is_predicted_of_rows_is_found_of_them(released: Released) -> None:
    """The people who are consistent with a released row are those at no distance: 1/ρ is found, in every tenth."""
    path, ended = released.path, released.ended
    predicted = ended.measure("predicted_share", "row", prediction="identification")
    assert ended.measure("correct_link_share", "row") == pytest.approx(predicted, abs=1e-12)
    of = {"method": "distance", "attack": "row", "cells": "nearest", "prediction": "identification"}
    groups = {parameters["group"] for parameters in (m["parameters"] for m in ended.document["measures"])
              if "group" in parameters and of.items() <= parameters.items()}  # fmt: skip
    assert len(groups) > 3
    for group in groups:
        of = {"prediction": "identification", "group": group}
        assert ended.measure("correct_link_share", "row", **of) == pytest.approx(
            ended.measure("predicted_share", "row", **of), abs=1e-12
        )
    # A planned attack succeeds with its prior over the people it approaches; here it pays for all who fit a row.
    prior = load([path]).assess.adversary.prior
    planned = ended.measure("predicted_share", "row", prediction="planned")
    assert prior * predicted < planned <= prior
    # A person's row is found with 1/f at most, whatever is known of the person.
    assert ended.measure("correct_link_share", "person") <= ended.measure(
        "predicted_share", "person", prediction="prosecutor"
    )


@pytest.mark.parametrize("suppressed", ["keep", "drop"])
def test_nobody_of_a_k_anonymous_release_is_found_more_than_one_in_k(
    privrisk: Privrisk, policy: Make, attack: Attack, suppressed: str
) -> None:
    guarantee = {"kind": "k-anonymity", "k": 5, "suppression_limit": 0.2, "suppressed": suppressed, "metric": "classes"}
    rows = [{**row, "city": row["city"] or "Ulm", "age": row["age"] or "20"} for row in table(120)]
    path = policy(rows, decision=None, risk={"model": "II"}, guarantee=guarantee)
    ran = privrisk(str(path))
    assert ran.code == 0, ran.err
    ended = attack(path, readings=())
    assert ended.code == 0, ended.err
    for cells in DIFFERENCES:
        assert ended.measure("correct_link_share", "person", cells) <= 1 / 5
    assert (ended.pairs("person")["tied_rows"] >= 5).all()
    gone = len(rows) - ran.manifest["rows"]
    assert (gone > 0) == (suppressed == "drop")
    assert ended.measure("absent_records", "person") == gone
    assert ended.measure("links_tried", "row") == len(rows) - gone
    assert ended.measure("links_tried", "person") == len(rows)


def masked(tmp_path: Path, rows: Sequence[Row], name: str = "masked", **renamed: str) -> Row:
    given = [{renamed.get(key, key): value for key, value in row.items()} for row in rows]
    pq.write_table(pa.Table.from_pylist(given), tmp_path / f"{name}.parquet")
    columns = {key: value for key, value in renamed.items() if key != "who"}
    return {"path": str(tmp_path / f"{name}.parquet"), "record_id": renamed.get("who", "who"), "columns": columns}


def test_an_untouched_table_gives_away_whoever_is_alone_and_ties_the_others(
    policy: Make, attack: Attack, tmp_path: Path
) -> None:
    """Without missing values each record is linked to its like: as many are found as there are different ones."""
    rows = [row for row in table(150) if row["age"] and row["city"]]
    path = policy(rows, attack={"protected": masked(tmp_path, rows), "correct_links_at_most": 1.0}, output=None)
    ended = attack(path)
    assert ended.code == 0, ended.err
    assert not ended.document["notes"][0].startswith("Each row of a person")
    alike = Counter(tuple(row[name] for name in QUASI) for row in rows)
    for name in ("person", "row"):
        assert ended.measure("correct_links", name) == pytest.approx(len(alike), abs=1e-9)
        pairs = ended.pairs(name)
        assert pairs["own_row_is_nearest"].all()
        for row in rows:
            assert pairs.loc[row["who"], "tied_rows"] == alike[tuple(row[q] for q in QUASI)]
        alone = sum(n == 1 for n in alike.values())
        assert ended.measure("correct_links", name, candidates_alike="1") == alone > 0


def test_a_table_of_other_software_with_other_names_and_lost_rows(policy: Make, attack: Attack, tmp_path: Path) -> None:
    rows = table(80)
    trees = hierarchies(policy(rows))
    shown = {
        row["who"]: {
            name: tree.labels[
                tree.ancestor[tree.n_leaves if row[name] is None else tree.code_of[row[name]], min(i % 3, tree.height)]
            ]
            for i, (name, tree) in enumerate(trees.items(), start=n)
        }
        for n, row in enumerate(rows)
    }
    there = [{"who": who, **of} for who, of in shown.items()]
    given = masked(tmp_path, there, who="id of row", city="town")
    path = policy(rows, attack={"protected": given})
    ended = attack(path)
    assert ended.code == 0, ended.err
    expected = two_loops(path, rows, shown)
    for name in ("person", "row"):
        assert ended.measure("correct_links", name) == pytest.approx(expected[name], abs=1e-9)
    path = policy(rows, attack={"protected": masked(tmp_path, there[:50], "fewer")})
    ended = attack(path)
    assert ended.measure("absent_records", "person") == 30
    assert ended.measure("links_tried", "row") == 50
    assert not ended.pairs("person").loc[[row["who"] for row in rows[50:]], "own_row_is_nearest"].any()


def test_attack_of_a_table_with_unreadable_columns_refuses_only_used_ones(
    policy: Make, attack: Attack, tmp_path: Path
) -> None:
    rows = table(20)
    given = masked(tmp_path, [{**row, "seen": dt.time(8, 30)} for row in rows])
    ended = attack(policy(rows, attack={"protected": given, "correct_links_at_most": 1.0}))
    assert ended.code == 0, ended.err
    for used in ({"record_id": "seen"}, {"columns": {"city": "seen"}}):
        ended = attack(policy(rows, attack={"protected": given | used}))
        assert ended.code == 2
        assert "attack.protected.path: " in ended.err
        assert "column 'seen' is of type time64[us], which cannot be read" in " ".join(ended.err.split())


def test_what_the_intruder_knows_is_a_part_of_the_columns(policy: Make, attack: Attack, tmp_path: Path) -> None:
    """A column he does not know need not be there, and may hold anything."""
    rows = table(60)
    there = [{"who": row["who"], "sex.1": row["sex.1"], "city": row["city"]} for row in rows]
    given = masked(tmp_path, there)
    known = {"intruder": {"columns": ["city", "sex.1"]}, "weights": {"city": 3}}
    path = policy(rows, attack={"protected": given, **known})
    ended = attack(path)
    assert ended.code == 0, ended.err
    assert ended.document["known"] == {"sex.1": "by levels of its hierarchy", "city": "by levels of its hierarchy"}
    assert ended.document["weights"] == {"sex.1": 0.25, "city": 0.75}
    expected = two_loops(path, rows, {row["who"]: row for row in rows}, ("sex.1", "city"))
    assert ended.measure("correct_links", "person") == pytest.approx(expected["person"], abs=1e-9)


def test_numbers_are_nearer_than_levels_tell(policy: Make, attack: Attack, tmp_path: Path) -> None:
    """Everybody's age is off by one: by levels 24 is as far from 25 as from 44, as a number it is next to it."""
    rows = [{"who": f"p{i}", "age": str(20 + i * 3), "sex.1": "F", "city": "Ulm", "sick": "a"} for i in range(13)]
    there = [{**row, "age": str(int(row["age"]) + 1)} for row in rows]
    given = {"protected": masked(tmp_path, there)}
    path = policy(rows, attack={**given, "numbers": ["age"]})
    by_numbers = attack(path)
    assert by_numbers.measure("correct_links", "person") == by_numbers.measure("correct_links", "row") == len(rows)
    by_levels = two_loops(path, rows, {row["who"]: row for row in there})
    assert by_levels["person"] <= (len(rows) + 1) / 2
    assert by_numbers.document["known"]["age"] == "as a number"


def test_texts_that_are_spelled_otherwise_are_near(policy: Make, attack: Attack, tmp_path: Path) -> None:
    """Every town of the protected table has lost a letter; by levels all others are as far, as a text one is near."""
    towns = ["Heidelberg", "Mannheim", "Darmstadt", "Wiesbaden"]
    rows = [{**row, "city": towns[i % 4]} for i, row in enumerate(table(24))]
    shorter = [{**row, "city": row["city"][:-1]} for row in rows]
    flat = {"flat": {"values": [*towns, *(town[:-1] for town in towns)]}}
    columns = {"who": {"role": "identifier"}, "city": {"role": "quasi-identifier", "hierarchy": flat},
               "age": {"role": "insensitive", "action": "drop"}, "sex.1": {"role": "insensitive", "action": "drop"},
               "sick": {"role": "sensitive"}}  # fmt: skip
    given = {"protected": masked(tmp_path, shorter)}
    path = policy(rows, columns=columns, attack={**given, "texts": ["city"]})
    by_levels = two_loops(path, rows, {row["who"]: row for row in shorter}, ["city"])
    assert by_levels["person"] / 24 == pytest.approx(1 / 24)
    by_texts = attack(path)
    assert by_texts.code == 0, by_texts.err
    assert by_texts.measure("correct_link_share", "person") == pytest.approx(1 / 6)
    assert by_texts.document["known"] == {"city": "as a text"}


@pytest.mark.thorough("tests/extensions/attack/kernels/test_knowledge.py")
def test_an_intruder_who_knows_less_or_has_it_wrong(policy: Make, attack: Attack, tmp_path: Path) -> None:
    """Found is what two loops find of what he knows, and the same however the table lies."""
    rows = [row for row in table(80) if row["age"] and row["city"]]
    trees = hierarchies(policy(rows))
    given = {"protected": masked(tmp_path, rows)}
    coarse = attack(policy(rows, attack={**given, "intruder": {"levels": {"age": 1, "city": 3}}}))
    assert coarse.code == 0, coarse.err
    known = [
        {**row, "age": trees["age"].labels[trees["age"].ancestor[trees["age"].code_of[row["age"]], 1]], "city": None}
        for row in rows
    ]
    path = tmp_path / "policy.yaml"
    for name, correct in two_loops(path, known, {row["who"]: row for row in rows}).items():
        assert coarse.measure("correct_links", name) == pytest.approx(correct, abs=1e-9)
    assert coarse.document["known"]["age"] == "by levels of its hierarchy, known up to the level 'width 5'"
    assert "age up to the level 'width 5', city up to " in coarse.document["notes"][0]

    errors = {"intruder": {"errors": {"missing": 0.2, "wrong": 0.1}, "seed": 3}}
    path = policy(rows, "wrong", attack={**given, **errors})
    wrong = attack(path, output="wrong")
    assert wrong.code == 0, wrong.err
    exact = two_loops(path, rows, {row["who"]: row for row in rows})
    assert wrong.measure("correct_links", "person") < 0.8 * exact["person"]
    place = Path(load([path]).table.path or "")
    again = pq.read_table(place).to_pylist()[::-1]
    place.unlink()
    place.mkdir()
    for part in range(3):
        pq.write_table(pa.Table.from_pylist(again[part::3]), place / f"{part}.parquet")
    shuffled = attack(path, output="shuffled")
    assert shuffled.document["measures"] == wrong.document["measures"]
    assert "20 % of the values he lacks and 10 % of the values he has wrong" in wrong.document["notes"][0]


@pytest.mark.parametrize(
    "ours", [True, pytest.param(False, marks=pytest.mark.thorough("the same steps on a table as it is"))]
)
def test_an_intruder_with_a_table_of_his_own(
    policy: Make, attack: Attack, tmp_path: Path, released: Released, ours: bool
) -> None:
    """He has some of the people and strangers beside them, older values, and other names of the columns."""
    rows = table()
    shown = shown_by(released.root, released.path, rows) if ours else {row["who"]: row for row in rows}
    his = [{**row, "age": "20" if i % 7 == 0 else row["age"]} for i, row in enumerate(rows[:40])]
    strangers = [{**row, "who": f"stranger {i}"} for i, row in enumerate(rows[40:50])]
    held = masked(tmp_path, [*his, *strangers], "voters", who="voter", city="town")
    protected = {} if ours else {"protected": masked(tmp_path, rows)}
    asked = {**protected, "intruder": {"table": held}}
    path = released.policy(tmp_path / "his.yaml", asked) if ours else policy(rows, attack=asked)
    ended = attack(path)
    assert ended.code == 0, ended.err
    trees = hierarchies(path)

    def form(row: Row) -> tuple[int, ...]:
        return tuple(node(tree, row[name]) for name, tree in trees.items())

    files = {"person": Counter(form(row) for row in shown.values()), "row": Counter(map(form, [*his, *strangers]))}
    his_form = {row["who"]: form(row) for row in [*his, *strangers]}
    begun = {"person": list(his_form), "row": [row["who"] for row in rows]}
    for name, distinct in files.items():
        candidates = list(distinct)
        own = {who: form(shown[who]) for who in shown} if name == "person" else his_form
        known = his_form if name == "person" else {who: form(shown[who]) for who in shown}
        links = naive_linkage.linked(
            list(trees.values()), [1 / 3] * 3, [known[who] for who in begun[name]], candidates, list(distinct.values())
        )
        right = sum(
            1 / tied
            for who, (_, tied, near) in zip(begun[name], links, strict=True)
            if who in own and candidates.index(own[who]) in near
        )
        assert ended.measure("correct_links", name) == pytest.approx(right, abs=1e-9)
        assert ended.measure("links_tried", name) == len(begun[name])
        # Who draws a candidate cannot find whom the file lacks: 40 people are in both.
        guess = 40 / len(begun[name]) / sum(distinct.values())
        assert ended.measure("random_guess_share", name) == pytest.approx(guess)
    text = (ended.directory / "report.html").read_text()
    assert "The intruder has a table of his own" in text
    assert "of everybody in the original table" not in text
    assert ended.measure("absent_records", "person") == 10
    assert ended.measure("absent_records", "row") == len(rows) - 40
    assert ended.document["notes"][0].startswith("The intruder has a table of his own")


def test_what_is_attacked_is_no_part_of_a_release(policy: Make) -> None:
    """The run id of a release is the same, whatever is tried on it later."""
    plain, tried = (load([policy(table(9), attack=given)]) for given in (None, {"texts": ["city"]}))
    assert plain.digest() == tried.digest()


@pytest.mark.thorough("tests/extensions/attack/stages deals the rows otherwise")
def test_a_sample_is_the_same_however_the_table_lies(policy: Make, attack: Attack, tmp_path: Path) -> None:
    rows = table(300)
    asked = {"protected": masked(tmp_path, rows), "intruder": {"share": 0.3, "seed": 7}}
    path = policy(rows, attack=asked)
    first = attack(path)
    tried = set(first.pairs("person").index)
    assert 50 < len(tried) < 130
    assert set(first.pairs("row").index) == tried
    assert first.measure("links_tried", "row") == len(tried)
    place = Path(load([path]).table.path or "")
    again = pq.read_table(place).to_pylist()[::-1]
    place.unlink()
    place.mkdir()
    for part in range(5):
        pq.write_table(pa.Table.from_pylist(again[part::5]), place / f"{part}.parquet")
    shuffled = attack(path, output="shuffled")
    assert shuffled.document["measures"] == first.document["measures"]
    pd.testing.assert_frame_equal(shuffled.pairs("row"), first.pairs("row"))
    other = attack(path, "--set=attack.intruder.seed=8", output="other")
    assert set(other.pairs("person").index) != tried
    few = attack(path, "--share=0.1", output="few")
    assert set(few.pairs("person").index) < tried
    assert "are a sample" in " ".join(few.document["notes"])


@pytest.mark.thorough("tests/extensions/attack/stages/test_blocks.py")
def test_above_exact_pairs_blocks_are_searched_and_their_recall_is_told(
    policy: Make, attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recall that is measured is that of a loop over the pairs of both searches; who fits a row loses nothing.

    Where no blocks will do, that is told before pairs are compared or records linked.
    """
    rows, few = table(160), {"exact_pairs": 40_000}
    path = policy(rows)
    trees = hierarchies(path)
    shown = [
        {**row, "city": trees["city"].labels[trees["city"].ancestor[trees["city"].code_of[row["city"]], 1]]}
        if row["city"] is not None and i % 3
        else row
        for i, row in enumerate(rows)
    ]
    methods = ["distance", "probabilistic", "membership"]
    there: Row = {"protected": masked(tmp_path, shown[:130]), "methods": methods}
    given = {**there, "intruder": {"errors": {"missing": 0.05, "wrong": 0.3}}}
    exact = attack(policy(rows, attack=given), output="exact", readings=())
    assert exact.code == 0, exact.err
    path = policy(rows, attack={**given, **few, "correct_links_at_most": 0.9})
    blocked = attack(path, output="some", readings=())
    assert blocked.code in (0, 1), blocked.err
    told = " ".join(blocked.document["attacks"])
    most, below = 0.0, []
    for begins in ("person", "row"):
        for cells in (*DIFFERENCES, "probabilistic"):
            of = {"method": "distance", "attack": begins, "cells": cells}
            if cells == "probabilistic":
                of = {"method": "probabilistic", "attack": begins}
            every, some = exact.pairs(begins, cells), blocked.pairs(begins, cells)
            recall = blocked.of("link_recall", **of)
            low, high = (blocked.of(f"link_recall_{end}", **of, confidence=0.95) for end in ("low", "high"))
            right = (some["own_row_is_nearest"] / some["tied_rows"]).sum()
            assert blocked.of("correct_links", **of) == pytest.approx(right, abs=1e-6)
            most = max(most, blocked.of("correct_link_share_high", **of, confidence=0.95) + 1 - low)
            assert 0 < low <= recall <= high <= 1
            below.append(recall < 1)
            if cells == "probabilistic":
                # The model is another one, of a sample: what blocks lose is held against a loop by stages' tests.
                assert blocked.of("people_compared", **of) < len(rows)
                assert right > 0.5 * (every["own_row_is_nearest"] / every["tied_rows"]).sum()
                continue
            same = (every["distance"] >= some["distance"] - 1e-9) & (every["tied_rows"] == some["tied_rows"])
            assert low <= same.mean() <= high
            assert blocked.of("links_proved_complete", **of) <= same.sum()
            assert all(some["own_row_is_nearest"] <= every["own_row_is_nearest"] | ~same)
    assert any(below), "errors part some people from their nearest rows"
    assert blocked.code == int(most > 0.9)
    assert "It was searched in blocks" in told
    page = (blocked.directory / "report.html").read_text()
    assert "lose no candidate" in page
    assert "drawn, with all rows of the two files" in page
    assert "rows are dealt to the nearest people of a block" in " ".join(blocked.document["notes"])
    # Who is known as he is fits his row: nothing is lost, and members are told as by everybody.
    certain = attack(policy(rows, attack={**there, **few, "methods": ["distance", "membership"]}), output="certain")
    alike = attack(policy(rows, attack={**there, "methods": ["membership"]}), output="alike")
    assert certain.measure("links_proved_complete", "row") == 130
    assert certain.measure("link_recall_low", "row", confidence=0.95) == 1
    assert certain.of("link_recall_low", method="membership", confidence=0.95) == 1
    assert certain.of("links_proved_complete", method="membership") == 130
    for name in ("membership_advantage", "membership_area"):
        assert certain.of(name, method="membership") == alike.of(name, method="membership")
    assert "it is proved of every row that nothing is lost" in " ".join(certain.document["attacks"])
    for work in ("estimates.collect_patterns", "links.collect_links"):
        monkeypatch.setattr(f"privrisk_spark.extensions.attack.pipeline.{work}", lambda *_: pytest.fail("it has begun"))
    for refused, said in (
        ({"blocking": "never", "methods": ["distance"]}, "more than 4e+04. Raise it, or attack a sample"),
        ({"blocking": "never", "methods": ["membership"]}, "more than 4e+04. Raise it."),
        (
            {"blocking": "principal_axis", "numbers": ["age"]},
            "Match weights are searched in blocks of consistent cells",
        ),
        ({"exact_pairs": 200, "methods": ["distance"]}, "No blocks will do (attack.blocking: automatic)"),
        ({"exact_pairs": 200, "methods": ["probabilistic"]}, "No blocks will do (attack.blocking: automatic)"),
        ({"blocking": "principal_axis"}, "attack.blocking: 'principal_axis' needs a known column"),
        ({"standardization": ["people", "people"]}, "attack.standardization.1: 'people' is there already"),
    ):
        ended = attack(policy(rows, attack={**there, **few, **refused}))
        assert ended.code == 2, (refused, ended.out)
        assert said in " ".join(ended.err.split()), said


@pytest.mark.parametrize("person", [None, "house"])
def test_attack_ids_as_texts_of_numbers_match_numeric_ids(
    policy: Make, attack: Attack, tmp_path: Path, person: str | None
) -> None:
    """A program such as pandas writes the ids 1 as 1.0 once one id is missing."""
    rows = [{**row, "who": i, "house": i // 2} for i, row in enumerate(table(40))]
    named = {} if person is None else {"entity_id": person}
    columns = {"house": {"role": "identifier"}}
    found = []
    for form in ("{}", "{}.0"):
        texts = [{**row, "who": form.format(row["who"]), "house": form.format(row["house"])} for row in rows]
        there = {**masked(tmp_path, texts, f"texts{len(found)}"), **named}
        path = policy(rows, attack={"protected": there, "intruder": {"table": there}})
        document = yaml.safe_load(path.read_text())
        document["columns"] |= columns
        document["table"] |= named
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        ended = attack(path)
        assert ended.code == 0, ended.err
        found.append(ended.document["measures"])
    assert found[0] == found[1]


def test_too_many_found_is_exit_code_one(policy: Make, attack: Attack, tmp_path: Path) -> None:
    rows = table(60)
    given = {"protected": masked(tmp_path, rows)}
    missed = attack(policy(rows, attack={**given, "correct_links_at_most": 0.5}))
    assert missed.code == 1
    assert "exceeds the 50 % that may be found" in " ".join(missed.out.split())
    assert json.loads((missed.directory / "status.json").read_text())["code"] == 1
    assert "MISSED" in (missed.directory / "report.html").read_text()
    nothing = attack(policy(rows, attack={**given, "methods": ["homogeneity"], "correct_links_at_most": 0.5}))
    assert nothing.code == 2
    assert "attack.correct_links_at_most: needs one of" in nothing.err
    there = masked(tmp_path, [{name: row[name] for name in ("who", *QUASI)} for row in rows], "values")
    asked = {"protected": there, "methods": ["distance", "homogeneity"], "values_certain_at_most": 0.9}
    unknown = attack(policy(rows, attack=asked))
    assert unknown.code == 1
    assert "No certain values could be tried: it is not known whether 90 % is met." in " ".join(unknown.out.split())


def test_bad_input_is_refused_by_name(
    policy: Make, attack: Attack, tmp_path: Path, released: Released, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "splink", None)
    rows = table(60)
    there = masked(tmp_path, rows)
    twice = masked(tmp_path, [*rows, rows[0]], "twice")
    unknown = masked(tmp_path, [{**row, "city": "Atlantis"} for row in rows], "unknown")
    lacking = masked(tmp_path, [{k: v for k, v in row.items() if k != "city"} for row in rows], "lacking")
    strangers = masked(tmp_path, [{**row, "who": f"x{row['who']}"} for row in rows], "strangers")
    empty = tmp_path / "empty.parquet"
    pq.write_table(pq.read_table(tmp_path / "masked.parquet").slice(0, 0), empty)
    for given, said in (
        ({}, "attack.protected: 'published', and there is no release at output.path"),
        (
            {"protected": {**there, "record_id": "nobody"}},
            "attack.protected.record_id: the release has no column 'nobody'",
        ),
        ({"protected": twice}, "attack.protected.record_id: every row must have an id of its own, and 1 have none"),
        ({"protected": unknown}, "attack.protected: the column 'city' holds 1 distinct values that are no node"),
        ({"protected": lacking}, "attack.protected.columns.city: the release has no column 'city'"),
        ({"protected": {**there, "path": str(empty)}}, "attack.protected: there are no rows"),
        ({"protected": {**there, "path": str(tmp_path / "none")}}, "attack.protected"),
        ({"protected": strangers}, "attack.protected: nobody who is tried is in it; its record_id must hold the ids"),
        (
            {"protected": there, "intruder": {"columns": ["who"]}},
            "attack.intruder.columns.0: 'who' is never released, so that it can be compared with nothing",
        ),
        (
            {"protected": there, "intruder": {"columns": ["sik"]}},
            "attack.intruder.columns.0: 'sik' is no column that is released (did you mean 'sick'?)",
        ),
        ({"protected": there, "weights": {"sick": 1}}, "attack.weights.sick: 'sick' is no column the intruder knows"),
        ({"protected": there, "weights": dict.fromkeys(QUASI, 0)}, "attack.weights: must leave one known column"),
        (
            {"protected": there, "numbers": ["city"]},
            "attack.numbers: every value of the hierarchy of 'city' must be",
        ),
        ({"protected": there, "numbers": ["sick"]}, "attack.numbers.0: 'sick' is no column the intruder knows"),
        ({"protected": there, "texts": ["sick"]}, "attack.texts.0: 'sick' is no column the intruder knows"),
        (
            {"protected": there, "texts": ["age"], "numbers": ["age"]},
            "attack.texts.0: 'age' is in attack.numbers, too",
        ),
        (
            {"protected": there, "intruder": {"levels": {"sick": 1}}},
            "attack.intruder.levels.sick: 'sick' is no column the intruder knows",
        ),
        (
            {"protected": there, "intruder": {"errors": {"missing": 0.6, "wrong": 0.5}}},
            "attack.intruder.errors: missing and wrong must add up to 1 at most",
        ),
        (
            {"protected": there, "intruder": {"table": there, "levels": {"age": 1}}},
            "attack.intruder.levels: is of what he knows of the original table",
        ),
        (
            {"protected": there, "intruder": {"table": {**there, "record_id": None}}},
            "attack.intruder.table.record_id",
        ),
        (
            {"protected": there, "intruder": {"table": twice}},
            "attack.intruder.table.record_id: every row must have an id of its own, and 1 have none",
        ),
        (
            {"protected": there, "intruder": {"table": unknown}},
            "attack.intruder.table: the column 'city' holds 1 distinct values that are no node",
        ),
        ({"protected": there, "cells": ["midpoint"]}, "attack.cells.0: 'midpoint' needs all known columns"),
        ({"protected": there, "cells": ["nearest", "nearest"]}, "attack.cells.1: 'nearest' is there already"),
        ({"protected": there, "intruder": {"share": 0}}, "attack.intruder.share"),
        ({"protected": there, "exact_pairs": 100}, "attack.intruder.share=0.0"),
        (
            {"protected": there, "methods": ["transparency"], "levels": {"age": 9, "sex.1": 0, "city": 0}},
            "attack.levels.age: must be a level of the hierarchy, 0 to 3. Got 9",
        ),
        (
            {"protected": there, "intruder": {"levels": {"city": 9}}},
            "attack.intruder.levels.city: must be a level of the hierarchy, 0 to",
        ),
        (
            {"protected": there, "values_certain_at_most": 0.1},
            "attack.values_certain_at_most: needs one of background, composition, external, homogeneity, similarity",
        ),
        ({"protected": there, "intruder": {"share": 1e-9}}, "attack.intruder.share: there are no rows"),
        ({"protected": "newest"}, "attack.protected"),
        (
            {"protected": there, "probabilistic": {"estimated": ["u", "u"]}},
            "attack.probabilistic.estimated.1: 'u' is there already; name it once",
        ),
        (
            {"protected": there, "intruder": {"columns": ["age"]}, "probabilistic": {"estimated": ["u"]}},
            "attack.probabilistic.estimated.0: 'u' can be estimated from 3 known columns on, and the intruder knows 1",
        ),
        (
            {"protected": there, "methods": ["probabilistic"], "probabilistic": {"engine": "splink"}},
            "attack.probabilistic.engine: needs the package 'splink', which is not installed. Fix: pip install",
        ),
    ):
        ended = attack(policy(rows, attack=given), readings=())
        assert ended.code == 2, (given, ended.out, ended.err)
        assert said in " ".join(ended.err.split()), said
        assert not (ended.directory / "attack.json").exists()
        assert "Atlantis" not in ended.out + ended.err
    nowhere = attacked(released.path, released.root / "out" / "attack")
    assert nowhere.code == 2
    assert "must be neither output.path nor inside" in " ".join(nowhere.err.split())


def test_decisions_of_another_release_are_refused(
    privrisk: Privrisk, policy: Make, attack: Attack, tmp_path: Path
) -> None:
    """The vault of a later run, and a table that has changed since."""
    rows = table(60)
    path = policy(rows)
    assert privrisk(str(path)).code == 0
    pq.write_table(
        pa.Table.from_pylist([{**row, "age": "20", "city": "Ulm"} for row in rows]), tmp_path / "policy.parquet"
    )
    changed = attack(path)
    assert changed.code == 2
    assert "the release has rows that the vault's decisions do not give" in " ".join(changed.err.split())
    policy(rows)
    said = "attack.protected: the vault no longer holds the decisions"
    decisions = tmp_path / "vault" / "decisions"
    decisions.rename(tmp_path / "taken away")
    gone = attack(path)
    assert (gone.code, said in " ".join(gone.err.split())) == (2, True)
    (tmp_path / "taken away").rename(decisions)
    other = policy(rows[:50], "other", output={"path": str(tmp_path / "elsewhere"), "vault": str(tmp_path / "vault")})
    later = CliRunner().invoke(app, ["release", str(other)])
    assert later.exit_code == 0, later.output
    gone = attack(path)
    assert (gone.code, said in " ".join(gone.err.split())) == (2, True)


@pytest.mark.alone
def test_nothing_of_the_records_is_told(
    policy: Make, attack: Attack, tmp_path: Path, plans: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    planted = "zQxCanaryPerson"
    rows = [{**row, "who": f"{planted}{i}", "sick": "zQxCanaryIllness"} for i, row in enumerate(table(40))]
    path = policy(rows, attack={"protected": masked(tmp_path, rows)})
    ended = attack(path)
    assert ended.code == 0, ended.err
    told = [ended.out, ended.err, caplog.text, *plans]
    told += [file.read_text() for file in ended.directory.glob("*.*") if file.suffix in (".html", ".json")]
    assert plans
    assert not re.search("zQxCanary|Kiel", " ".join(told))
    assert ended.pairs("person").index.str.startswith(planted).all()
