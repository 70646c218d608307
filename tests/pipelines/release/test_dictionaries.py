"""The main job against every kind of dictionary, by every plan, with a literal search over its definitions."""

from __future__ import annotations

import csv
import hashlib
import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from naive import jaro
from naive_records import ROOT as TOP
from naive_records import Node, best, count, generalized, leaves_of, levels_above
from product import Privrisk, Ran

PLACE = {"*": ["lone", {"north": ["anna", "hanna", {"far": ["berta"]}]}, {"south": ["carla", "karla"]}]}
SEX = {"*": ["f", "m"]}
JOB = {"*": {"office": ["clerk", "typist"], "field": ["farmer"]}}
TREES = {"place": PLACE, "sex": SEX, "job": JOB}
LEAVES = {name: leaves_of(tree["*"]) for name, tree in TREES.items()}
FLOOR = 3
PICK = random.Random(11)
ROWS = [
    {
        "id": f"planted-{i}",
        "person": f"somebody-{i // 2 if i % 3 else i}",
        "place": PICK.choice([*LEAVES["place"], ""]),
        "sex": PICK.choice(list(LEAVES["sex"])),
        "job": PICK.choice(list(LEAVES["job"])),
        "share": PICK.choice(["0.5", "1", "2.25", "100.000001"]),
        "note": PICK.choice("xyz"),
    }
    for i in range(60)
]
REGISTER = [
    {
        "who": f"known-{i // 2}",
        "town": PICK.choice([*LEAVES["place"], "north", "", "outside"]),
        "gender": PICK.choice(["f", "m", "m", ""]),
        "people": PICK.choice("0123"),
    }
    for i in range(90)
]
NARROW = [{"town": row["place"], "work": row["job"]} for row in ROWS[::2] for _ in range(2)]


def write(path: Path, rows: Sequence[dict[str, str]]) -> str:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


@pytest.fixture
def policy(tmp_path: Path) -> Callable[..., Path]:
    """``policy(**parts)``: a policy file over the table, parts merged over it."""
    table = write(tmp_path / "table.csv", ROWS)
    write(tmp_path / "register.csv", REGISTER)
    write(tmp_path / "narrow.csv", NARROW)

    def make(**parts: Any) -> Path:
        document: dict[str, Any] = {
            "version": 1,
            "run": {"name": "known"},
            "table": {"path": table, "format": "csv", "options": {"sep": ";", "header": True}, "record_id": "id"},
            "columns": {
                "id": {"role": "identifier"},
                "person": {"role": "identifier"},
                **{n: {"role": "quasi-identifier", "hierarchy": {"tree": tree}} for n, tree in TREES.items()},
                "share": {"role": "insensitive", "action": "drop"},
                "note": {"role": "sensitive"},
            },
            "decision": {"utility_at_least": FLOOR, "infeasible": "suppress"},
            "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
        }
        for key, value in parts.items():
            document[key] = {**document[key], **value} if isinstance(document.get(key), dict) else value
        path = tmp_path / "policy.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    return make


def source(tmp_path: Path, name: str) -> dict[str, Any]:
    return {"path": str(tmp_path / f"{name}.csv"), "format": "csv", "options": {"sep": ";", "header": True}}


def columns_of(name: str) -> dict[str, Any]:
    if name == "register":
        town = {"column": "town", "mapping": None}
        return {"place": {"column": town["column"]}, "sex": "gender"}
    return {"place": "town", "job": "work"}


# ------------------------------------------------------------------------------------------------ literally


def record_of(row: dict[str, str]) -> tuple[Node, ...]:
    return tuple(LEAVES[name].get(row[name], TOP) if row[name] else TOP for name in TREES)


def theta_of(name: str) -> list[tuple[Node | None, ...]]:
    """The dictionary as nodes; None where it lacks the attribute. 'north' is a node, but no leaf: it is outside."""

    def node(attribute: str, value: str) -> Node:
        if value in ("", "*"):
            return TOP
        return LEAVES[attribute].get(value, ("nowhere",))

    if name == "self":
        return [record_of(row) for row in ROWS]
    if name == "register":
        return [(node("place", r["town"]), node("sex", r["gender"]), None) for r in REGISTER]
    return [(node("place", r["town"]), None, node("job", r["work"])) for r in NARROW]


def weight(name: str, node: Node) -> float:
    """Leaf weight 1 under the modified harmonic mean: 1 / n(v); ⊥ weighs nothing."""
    return 0.0 if node == TOP else 1 / sum(leaf[: len(node)] == node for leaf in LEAVES[name].values())


Rho = Callable[[Sequence[Node]], int]


def decisions(rhos: Sequence[Rho], risk_of: Callable[[Sequence[float]], float], *, tree: bool = True) -> dict[str, Any]:
    """Least risk of every record by looking at all its level vectors."""
    found = {}
    for row in ROWS:
        record = record_of(row)
        absent = [int(rho(record) == 0) for rho in rhos]

        def at(levels: tuple[int, ...], record: Any = record, absent: Any = absent) -> tuple[float, float, int]:
            disclosed = [generalized(node, level) for node, level in zip(record, levels, strict=True)]
            counts = [rho(disclosed) + missing for rho, missing in zip(rhos, absent, strict=True)]
            if not tree:
                counts = [max(count, 1) for count in counts]
            phi = sum(weight(name, node) for name, node in zip(TREES, disclosed, strict=True))
            return risk_of([phi / count for count in counts]), sum(map(len, disclosed)), min(counts)

        options = [(levels, *at(levels)[:2]) for levels in levels_above(record)]
        allowed = [option for option in options if option[2] >= FLOOR]
        chosen = best(allowed) if allowed else tuple(len(node) for node in record)
        found[row["id"]] = (chosen, *at(chosen))
    return found


def rho_of(name: str, consistency: str) -> Rho:
    theta = theta_of(name)
    return lambda disclosed: count(disclosed, theta, consistency, ["suppress"] * 3)


def same(ran: Ran, wanted: dict[str, Any]) -> None:
    assert ran.code == 0, ran.err
    got = pd.read_parquet(ran.root / "vault" / "decisions").set_index("id")
    assert set(got.index) == set(wanted)
    for record, (levels, risk, utility, consistent) in wanted.items():
        row = got.loc[record]
        assert tuple(row[f"level_{name}"] for name in TREES) == levels, record
        assert row["risk"] == pytest.approx(risk, rel=1e-12)
        assert row["utility"] == utility
        assert row["consistent"] == consistent
    assert ran.summary["risk_after"]["mean"] == pytest.approx(np.mean([w[1] for w in wanted.values()]), rel=1e-12)


def digest(ran: Ran) -> list[str]:
    return [hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(ran.data.iterdir())]


# ------------------------------------------------------------------------------------------------ tests


@pytest.mark.parametrize(
    ("name", "consistency", "plans"),
    [("self", "subsumes", ["dense", "sorted"]), ("register", "compatible", ["dense", "shuffle"])],
)
def test_every_plan_makes_the_same_release(
    privrisk: Privrisk, policy: Any, tmp_path: Path, name: str, consistency: str, plans: list[str]
) -> None:
    """Counts of every kind of dictionary by each plan are those of a double loop (tests/stages/counting)."""
    known: dict[str, Any] = {"kind": "self", "consistency": consistency}
    if name != "self":
        known = {"kind": "table", **source(tmp_path, name), "consistency": consistency, "columns": columns_of(name)}
    wanted = decisions([rho_of(name, consistency)], lambda risks: risks[0])
    seen = []
    for plan in plans:
        root = tmp_path / plan
        root.mkdir()
        ran = privrisk(str(policy(dictionary=known, counting={"plan": plan})), "--run-id", "one", root=root)
        same(ran, wanted)
        assert ran.summary["plan"] == plan
        seen.append(digest(ran))
    assert seen[0] == seen[1]


@pytest.mark.thorough("tests/planning/decisions/; test_every_plan_makes_the_same_release shuffles")
def test_without_room_for_cube_or_vectors_the_plan_is_shuffle(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    counting = {"dense_cells": 5, "sorted_vectors": 5}
    ran = privrisk(str(policy(counting=counting)), "--run-id", "one", "--explain")
    same(ran, decisions([rho_of("self", "subsumes")], lambda risks: risks[0]))
    assert ran.summary["plan"] == "shuffle"
    # How many distinct records there are is the vault's.
    assert "distinct vectors against a budget of 5" in (ran.root / "vault" / "report.html").read_text()
    assert "distinct vectors" not in (ran.data.parent / "report.html").read_text()
    assert "counting plan of the table itself: sorted" in ran.out
    assert "'shuffle' instead if the distinct vectors turn out too many" in ran.out
    counting = {"dense_cells": 5}
    ran = privrisk(str(policy(counting=counting)), "--run-id", "two", "--dry-run")
    assert "counting plan of the table itself: sorted (the cube does not fit" in ran.out
    assert "dense: needs" in ran.out
    forced = privrisk(str(policy(counting={"dense_cells": 5, "plan": "dense"})), "--run-id", "three")
    assert forced.code == 2
    assert "counting.plan: 'dense' needs" in forced.err


def test_bayes_and_minimax_minimize_over_the_dictionaries(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    members = [
        {"name": "own", "kind": "self"},
        {"name": "register", "kind": "table", **source(tmp_path, "register"), "columns": columns_of("register")},
        {"name": "narrow", "kind": "table", **source(tmp_path, "narrow"), "columns": columns_of("narrow")},
    ]
    priors = [0.2, 0.5, 0.3]
    rhos = [rho_of(name, "compatible") for name in ("self", "register", "narrow")]
    bayes = [member | {"prior": prior} for member, prior in zip(members, priors, strict=True)]
    expected = decisions(rhos, lambda risks: sum(q * r for q, r in zip(priors, risks, strict=True)))
    worst = decisions(rhos, max)
    assert {k: v[0] for k, v in expected.items()} != {k: v[0] for k, v in worst.items()}
    ran = privrisk(str(policy(dictionary={"kind": "bayes", "members": bayes})), "--run-id", "one")
    same(ran, expected)
    assert ran.summary["plan"] == "own: dense, register: dense, narrow: dense"
    assert ran.summary["facts"]["dictionary rows of register"] == 90
    assert ran.manifest["guarantee"]["parameters"]["priors"] == {"own": 0.2, "register": 0.5, "narrow": 0.3}
    given = policy(dictionary={"kind": "minimax", "members": members}, counting={"plan": "sorted"})
    same(privrisk(str(given), "--run-id", "two"), worst)


@pytest.mark.thorough("tests/stages/deciding/test_decide.py, without a release")
def test_similar_labels_are_searched_exhaustively(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    threshold = 0.7
    theta = theta_of("register")

    def label(node: Node) -> str:
        return node[-1] if node else "*"

    def rho(disclosed: Sequence[Node]) -> int:
        def fits(row: Sequence[Node | None]) -> bool:
            town, sex, _ = row
            if (
                disclosed[0] != TOP
                and town != TOP
                and (town == ("nowhere",) or jaro(label(disclosed[0]), label(town or TOP)) < threshold)
            ):
                return False
            return count([TOP, disclosed[1], TOP], [(TOP, sex, None)], "compatible", ["suppress"] * 3) == 1

        return sum(fits(row) for row in theta)

    known = {"kind": "table", **source(tmp_path, "register"), "columns": columns_of("register")}
    known |= {"consistency": "similar", "similar": {"place": threshold}}
    wanted = decisions([rho], lambda risks: risks[0], tree=False)
    for plan in ("dense", "shuffle"):
        root = tmp_path / plan
        root.mkdir()
        ran = privrisk(str(policy(dictionary=known, counting={"plan": plan})), "--run-id", "one", root=root)
        same(ran, wanted)
        assert ran.manifest["guarantee"]["parameters"]["similar"] == {"place": threshold}
        assert set(pd.read_parquet(ran.root / "vault" / "decisions")["method"]) == {"exhaustive"}
        assert "no theorem that leaves nodes out holds" in (ran.root / "vault" / "report.html").read_text()
    refused = privrisk(str(policy(dictionary=known, decision={"method": "exact"})), "--run-id", "two")
    assert refused.code == 2
    assert "not monotone" in refused.err


def test_persons_are_counted_once(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    def rho(disclosed: Sequence[Node]) -> int:
        nulls = ["suppress"] * 3
        return len({row["person"] for row in ROWS if count(disclosed, [record_of(row)], "subsumes", nulls)})

    table = {"entity_id": "person"}
    wanted = decisions([rho], lambda risks: risks[0])
    ran = privrisk(str(policy(table=table, checks={"min_class_size": 1})), "--run-id", "one")
    same(ran, wanted)
    assert ran.summary["plan"] == "dense"
    assert ran.summary["facts"]["dictionary persons"] == len({row["person"] for row in ROWS}) < len(ROWS)
    assert ran.manifest["guarantee"]["parameters"]["counted"] == "persons"
    # Classes of the release, by the labels the decisions disclose.
    classes: dict[Any, set[str]] = {}
    for row in ROWS:
        levels = wanted[row["id"]][0]
        disclosed = tuple(generalized(n, level) for n, level in zip(record_of(row), levels, strict=True))
        classes.setdefault(disclosed, set()).add(row["person"])
    fewest = min(map(len, classes.values()))
    assert ran.summary["facts"]["persons of the released class with the fewest"] == fewest
    refused = privrisk(str(policy(table=table, checks={"min_class_size": fewest + 1})), "--run-id", "two")
    assert refused.code == 1
    assert "persons" in refused.err
    # The distinct vectors turn out too many for the driver in the last.
    few = {"dense_cells": 5, "sorted_vectors": 5}
    for plan, counting in (("sorted", {"plan": "sorted"}), ("shuffle", few)):
        run_id = f"{plan}-{len(counting)}"
        other = privrisk(str(policy(table=table, counting=counting)), "--run-id", run_id)
        same(other, wanted)
        assert other.summary["plan"] == plan
        assert other.summary["facts"]["dictionary persons"] == len({row["person"] for row in ROWS})


@pytest.mark.thorough(
    "test_persons_are_counted_once and test_bayes_and_minimax_minimize_over_the_dictionaries, each by itself"
)
def test_persons_are_counted_in_each_of_several_dictionaries(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    def persons(rows: Sequence[Any], theta: Sequence[Any], who: str) -> Rho:
        nulls = ["suppress"] * 3

        def rho(disclosed: Sequence[Node]) -> int:
            return len({r[who] for r, t in zip(rows, theta, strict=True) if count(disclosed, [t], "compatible", nulls)})

        return rho

    members = [
        {"name": "own", "kind": "self"},
        {
            "name": "register",
            "kind": "table",
            **source(tmp_path, "register"),
            "columns": columns_of("register"),
            "entity_id": "who",
        },
        {"name": "narrow", "kind": "table", **source(tmp_path, "narrow"), "columns": columns_of("narrow")},
    ]
    own = persons(ROWS, [record_of(row) for row in ROWS], "person")
    register = persons(REGISTER, theta_of("register"), "who")
    wanted = decisions([own, register, rho_of("narrow", "compatible")], max)
    table = {"entity_id": "person"}
    given = policy(table=table, dictionary={"kind": "minimax", "members": members}, counting={"plan": "sorted"})
    ran = privrisk(str(given), "--run-id", "one")
    same(ran, wanted)
    facts = ran.summary["facts"]
    assert facts["dictionary persons of own"] == len({row["person"] for row in ROWS})
    assert facts["dictionary persons of register"] == len({row["who"] for row in REGISTER})


@pytest.mark.thorough("test_persons_are_counted_once and test_sampling_weights_stand_beside_the_rows, each by itself")
def test_persons_of_an_external_dictionary_and_rows_that_stand_for_several(
    privrisk: Privrisk, policy: Any, tmp_path: Path
) -> None:
    known = {"kind": "table", **source(tmp_path, "register"), "columns": columns_of("register")}
    theta = theta_of("register")

    def persons(disclosed: Sequence[Node]) -> int:
        pairs = zip(REGISTER, theta, strict=True)
        return len({row["who"] for row, t in pairs if count(disclosed, [t], "compatible", ["suppress"] * 3)})

    def people(disclosed: Sequence[Node]) -> int:
        pairs = zip(REGISTER, theta, strict=True)
        return sum(int(row["people"]) for row, t in pairs if count(disclosed, [t], "compatible", ["suppress"] * 3))

    for plan in ("dense", "shuffle"):
        given = policy(dictionary=known | {"entity_id": "who"}, counting={"plan": plan})
        ran = privrisk(str(given), "--run-id", f"one-{plan}")
        same(ran, decisions([persons], lambda risks: risks[0]))
        assert ran.summary["plan"] == plan
        assert ran.summary["facts"]["dictionary persons"] == len({row["who"] for row in REGISTER})
    wanted = decisions([people], lambda risks: risks[0])
    for plan in ("dense", "sorted"):
        given = policy(dictionary=known | {"weight": "people"}, counting={"plan": plan})
        ran = privrisk(str(given), "--run-id", f"two-{plan}")
        same(ran, wanted)
        assert ran.summary["facts"]["dictionary people"] == sum(int(row["people"]) for row in REGISTER)
    broken = privrisk(str(policy(dictionary=known | {"weight": "who"})), "--run-id", "three")
    assert broken.code == 2
    assert "dictionary.weight: must be a whole number" in broken.err
    assert "known-" not in broken.err


def test_sampling_weights_stand_beside_the_rows(privrisk: Privrisk, policy: Any, tmp_path: Path) -> None:
    given = policy(table={"weight": "share"}, columns={"share": {"role": "weight"}}, decision={"utility_at_least": 1})
    ran = privrisk(str(given), "--run-id", "one")
    assert ran.code == 0, ran.err
    levels = pd.read_parquet(ran.root / "vault" / "decisions").set_index("id")
    literal: dict[Any, list[float]] = {}
    for row in ROWS:
        disclosed = tuple(
            generalized(node, levels.loc[row["id"], f"level_{name}"])
            for name, node in zip(TREES, record_of(row), strict=True)
        )
        literal.setdefault(tuple(node[-1] if node else "*" for node in disclosed), []).append(float(row["share"]))
    classes = pd.read_parquet(ran.root / "vault" / "classes")
    assert list(classes.columns) == [*TREES, "rows", "population"]
    assert len(classes) == len(literal)
    for _, row in classes.iterrows():
        shares = literal[tuple(row[name] for name in TREES)]
        assert row["rows"] == len(shares)
        assert row["population"] == pytest.approx(sum(shares), rel=1e-12)
    facts = ran.summary["facts"]
    least = min(sum(shares) for shares in literal.values())
    assert facts["weighted population of the released class with the least (min F_k)"] == pytest.approx(least)
    assert facts["weighted population of all classes"] == pytest.approx(sum(float(r["share"]) for r in ROWS))
    rows = [dict(row) for row in ROWS]
    rows[7]["share"], rows[8]["share"] = "-1", str(2**62)
    write(tmp_path / "table.csv", rows)
    broken = privrisk(str(given), "--run-id", "two")
    assert broken.code == 2
    assert "columns.share: a weight must be a non-negative number below 1,000,000,000, and 2 rows" in broken.err


def test_the_cases_differ(tmp_path: Path) -> None:
    """The fixtures would not tell a dictionary from another if all decisions were alike."""
    found = [
        {k: v[0] for k, v in decisions([rho_of(name, "compatible")], lambda risks: risks[0]).items()}
        for name in ("self", "register", "narrow")
    ]
    assert all(a != b for a, b in itertools.combinations(found, 2))


def test_the_frequent_cells_of_a_public_dictionary_are_enough(
    privrisk: Privrisk, policy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under dp only t-frequent cells matter: iceberg, which counts no others, makes the release of the other plans."""
    monkeypatch.setenv("A_KEY", "5e" * 32)
    rows = [row | {"id": f"{row['id']}-{i}"} for i in range(30) for row in ROWS]
    write(tmp_path / "table.csv", rows)
    known = {"kind": "table", "public": True, **source(tmp_path, "register"), "columns": columns_of("register")}
    guarantee = {
        "kind": "dp", "mode": "public-dictionary", "epsilon": {"admit": 0, "keep": 1}, "delta": 1e-6,
        "public_rows": 1800, "schemes": [[0, 0, 2], [1, 0, 1], [2, 1, 0], [3, 0, 1]], "frequent": 6,
        "objective": {"lambda": 0.1, "phi_min": 0.1}, "key": "env:A_KEY",
    }  # fmt: skip
    seen = []
    for plan in ("dense", "iceberg"):
        root = tmp_path / plan
        root.mkdir()
        path = policy(
            dictionary=known,
            guarantee=guarantee,
            counting={"plan": plan},
            columns={"note": {"role": "insensitive", "action": "drop"}},
            ledger={"url": f"sqlite:///{root}/ledger.db", "lineage": "known", "cap": {"epsilon": 4, "delta": 1e-5}},
        )
        document = yaml.safe_load(path.read_text())
        del document["decision"]
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        ran = privrisk(str(path), "--run-id", "one", root=root)
        assert ran.code == 0, ran.err
        assert ran.summary["plan"] == plan
        decided = pd.read_parquet(root / "vault" / "decisions").set_index("id").sort_index()
        seen.append((digest(ran), decided.drop(columns=["method"])))
    assert seen[0][0] == seen[1][0]
    pd.testing.assert_frame_equal(seen[1][1], seen[0][1])
    assert seen[0][1].filter(like="level_").drop_duplicates().shape[0] > 3
