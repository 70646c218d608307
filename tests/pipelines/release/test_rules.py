"""Decisions by a rule, end to end, held against a literal reading of LSFB06 §3 and F12 Algorithm 1."""

from __future__ import annotations

import csv
import itertools
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from naive_records import ROOT as TOP
from naive_records import Node, count, generalized, leaves_of
from product import Privrisk, Ran

from privrisk_spark.kernels.numeric.fingerprint import of_bytes

TREES = {
    "place": {"*": ["lone", {"north": ["anna", "hanna"]}, {"south": ["carla", "karla"]}]},
    "sex": {"*": ["f", "m"]},
    "job": {"*": {"office": ["clerk", "typist"], "field": ["farmer"]}},
    "team": {"*": ["red", "blue", "green"]},
}
LEAVES = {name: leaves_of(tree["*"]) for name, tree in TREES.items()}
WEIGHTS = {"place": 0.9, "sex": 0.25, "job": 0.5, "team": 0.25}
PICK = random.Random(23)
Row = dict[str, str]


def row(i: int, *, missing: bool = True) -> Row:
    place = PICK.choice([*LEAVES["place"], "carla"])
    return {
        "id": f"planted-{i}",
        "place": place,
        "sex": PICK.choice(["f", "m", "m"]),
        # Attributes are not independent.
        "job": PICK.choice(["clerk", "farmer"]) if place == "carla" else PICK.choice(["clerk", "typist"]),
        "team": PICK.choice(["red", "red", "blue", "green", *([""] if missing else [])]),
        "f": PICK.choice(["0.5", "1", "2"]),
    }


ROWS = [row(i) for i in range(40)]
REGISTER = [row(i, missing=False) for i in range(90)]
NARROW = [one for one in REGISTER if one["place"] != "carla"] + REGISTER[:5] * 3
RULES = [
    {"name": "as it is"},
    {"name": "coarse", "levels": {"place": 1, "job": 1}},
    {"name": "no place", "suppress": ["place"]},
    {"levels": {"place": 1, "team": 1}},
    {"name": "nothing", "suppress": ["place", "sex", "job", "team"]},
]
LEVELS = [(0, 0, 0, 0), (1, 0, 1, 0), (2, 0, 0, 0), (1, 0, 0, 1), (2, 1, 2, 1)]


def write(path: Path, rows: Sequence[Row]) -> str:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


Make = Callable[..., Path]


@pytest.fixture
def policy(tmp_path: Path) -> Make:
    """``policy(rows=…, **parts)``: a policy file over a table."""
    write(tmp_path / "register.csv", REGISTER)
    write(tmp_path / "narrow.csv", NARROW)

    def make(rows: Sequence[Row] = ROWS, **parts: Any) -> Path:
        pd.DataFrame(rows).astype({"f": float}).replace({"": None}).to_parquet(tmp_path / "table.parquet")
        personal = {"personal": {"factor": "f"}} if parts.pop("personal", False) else {}
        document: dict[str, Any] = {
            "version": 1,
            "run": {"name": "ruled"},
            "table": {"path": str(tmp_path / "table.parquet"), "record_id": "id"},
            "columns": {
                "id": {"role": "identifier"},
                **{n: {"role": "quasi-identifier", "hierarchy": {"tree": tree}} for n, tree in TREES.items()},
                "f": {"role": "weight"} if personal else {"role": "insensitive", "action": "drop"},
            },
            "risk": {"sensitivity": {"form": "multiplicative", "weights": WEIGHTS, **personal}},
            "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
            **parts,
        }
        path = tmp_path / "policy.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    return make


def known(tmp_path: Path, name: str) -> dict[str, Any]:
    return {
        "kind": "table",
        "path": str(tmp_path / f"{name}.csv"),
        "format": "csv",
        "options": {"sep": ";", "header": True},
        "columns": {attribute: attribute for attribute in TREES},
    }


def several(tmp_path: Path, kind: str) -> dict[str, Any]:
    priors = {"register": 0.25, "narrow": 0.75}
    more = [{"name": n, **({"prior": q} if kind == "bayes" else {})} for n, q in priors.items()]
    return {"kind": kind, "members": [{**known(tmp_path, one["name"]), **one} for one in more]}


# ------------------------------------------------------------------------------------------------ literally


def nodes_of(one: Row) -> tuple[Node, ...]:
    return tuple(LEAVES[name][one[name]] if one[name] else TOP for name in TREES)


class Literal:
    """The definitions over rows of a table and of a dictionary."""

    def __init__(self, rows: Sequence[Row], theta: Sequence[Row], meaning: str, *, personal: bool = False) -> None:
        self.rows, self.meaning, self.personal = rows, meaning, personal
        self.theta = [nodes_of(one) for one in theta]

    def rho(self, disclosed: Sequence[Node]) -> int:
        return count(disclosed, self.theta, self.meaning, ["suppress"] * len(TREES))

    def factor(self, one: Row) -> float:
        return float(one["f"]) if self.personal else 1.0

    def weights(self, one: Row, disclosed: Sequence[Node]) -> list[float]:
        """Weight of a node: that of its attribute by its leaves; ⊥ weighs nothing."""
        return [
            0.0
            if node == TOP
            else w * self.factor(one) / sum(leaf[: len(node)] == node for leaf in LEAVES[name].values())
            for (name, w), node in zip(WEIGHTS.items(), disclosed, strict=True)
        ]

    def risk(self, one: Row, disclosed: Sequence[Node]) -> float:
        absent = self.rho(nodes_of(one)) == 0
        return math.exp(sum(self.weights(one, disclosed))) / (self.rho(disclosed) + absent)

    def shown(self, one: Row, cells: Sequence[int]) -> list[Node]:
        return [node if j in cells else TOP for j, node in enumerate(nodes_of(one))]

    def exposures(self, one: Row) -> dict[int, float]:
        """ln γ of the cells that are not missing."""
        found = {}
        for j, node in enumerate(nodes_of(one)):
            if node != TOP:
                alone = max(self.rho(self.shown(one, [j])), 1)
                found[j] = self.weights(one, nodes_of(one))[j] + math.log(len(self.theta)) - math.log(alone)
        return found

    def least_exposed(self, cells: int, rule: str) -> list[list[int]]:
        """Cells of each record that are disclosed."""
        gammas = [self.exposures(one) for one in self.rows]
        if rule == "disclose-per-record":
            return [sorted(g, key=lambda j, g=g: (g[j], j))[:cells] if len(g) >= cells else [] for g in gammas]
        place = [
            int(of_bytes(np.frombuffer(text, dtype=np.uint8), np.array([0, len(text)]))[0])
            for text in (one["id"].encode() for one in self.rows)
        ]
        order = sorted((g[j], j, place[i], i) for i, g in enumerate(gammas) for j in g)
        groups = [order] if rule == "disclose-in-all" else [[c for c in order if c[1] == j] for j in range(len(TREES))]
        chosen = {(i, j) for group in groups for _, j, _, i in group[:cells]}
        return [[j for j in range(len(TREES)) if (i, j) in chosen] for i in range(len(self.rows))]


def decisions_of(ran: Ran) -> pd.DataFrame:
    assert ran.code == 0, ran.err
    return pd.read_parquet(ran.root / "vault" / "decisions").set_index("id")


def check_cells(found: pd.DataFrame, literal: Literal, cells: Sequence[Sequence[int]]) -> None:
    for one, shown in zip(literal.rows, cells, strict=True):
        decision = found.loc[one["id"]]
        disclosed = literal.shown(one, shown)
        levels = [int(decision[f"level_{name}"]) for name in TREES]
        assert [generalized(node, level) for node, level in zip(nodes_of(one), levels, strict=True)] == disclosed
        assert decision["risk"] == pytest.approx(literal.risk(one, disclosed), rel=1e-12)
        assert decision["utility"] == sum(map(len, disclosed))
        absent = literal.rho(nodes_of(one)) == 0
        assert decision["consistent"] == literal.rho(disclosed) + absent


# ------------------------------------------------------------------------------------------------ Δ2


@pytest.mark.parametrize(
    ("plan", "theta", "personal", "cells"),
    [("dense", "self", False, 2), ("sorted", "narrow", True, 3), ("shuffle", "narrow", False, 2)],
)
def test_each_record_discloses_its_least_exposed_cells(
    privrisk: Privrisk, policy: Make, tmp_path: Path, plan: str, theta: str, personal: bool, cells: int
) -> None:
    path = policy(
        personal=personal,
        counting={"plan": plan},
        dictionary={"kind": "self"} if theta == "self" else known(tmp_path, theta),
        decision={"problem": "disclose-per-record", "cells": cells},
    )
    rows, meaning = (ROWS, "subsumes") if theta == "self" else (NARROW, "compatible")
    literal = Literal(ROWS, rows, meaning, personal=personal)
    ran = privrisk(str(path))
    found = decisions_of(ran)
    check_cells(found, literal, literal.least_exposed(cells, "disclose-per-record"))
    assert (found["method"] == "minrisk").all()
    for one in ROWS:
        # What is left open is what the best choice of so many cells saves.
        there = [j for j, node in enumerate(nodes_of(one)) if node != TOP]
        best = min(literal.risk(one, literal.shown(one, c)) for c in itertools.combinations(there, cells))
        gap = found.loc[one["id"], "gap"]
        assert gap == pytest.approx(max(found.loc[one["id"], "risk"] - best, 0.0), abs=1e-12)
    guarantee, unproved = ran.manifest["guarantee"], int((found["gap"] > 0).sum())
    assert unproved > 0, "attributes are not independent"
    assert guarantee["status"] == "heuristic"
    assert f"for {unproved:,} records other values may have a lower risk" in guarantee["statement"]
    assert guarantee["parameters"]["cells"] == cells
    assert ran.summary["plan"] == plan
    assert ran.summary["facts"]["records whose decision is not proved"] == unproved


class OfPersons(Literal):
    """Two rows a person: a person counts once."""

    def rho(self, disclosed: Sequence[Node]) -> int:
        fits = [count(disclosed, [one], self.meaning, ["suppress"] * len(TREES)) for one in self.theta]
        return len({i // 2 for i, fit in enumerate(fits) if fit})

    def exposures(self, one: Row) -> dict[int, float]:
        half = math.log(len(self.theta)) - math.log(len(self.theta) // 2)
        return {j: gamma - half for j, gamma in super().exposures(one).items()}


def test_persons_are_counted_once(privrisk: Privrisk, policy: Make, tmp_path: Path) -> None:
    path = policy(decision={"problem": "disclose-per-record", "cells": 2})
    document = yaml.safe_load(path.read_text())
    document["table"]["entity_id"] = "person"
    document["columns"]["person"] = {"role": "identifier"}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    frame = pd.DataFrame(ROWS).astype({"f": float}).replace({"": None})
    frame.assign(person=[f"somebody-{i // 2}" for i in range(len(ROWS))]).to_parquet(tmp_path / "table.parquet")
    literal = OfPersons(ROWS, ROWS, "subsumes")
    for plan in ("dense", "sorted"):
        (tmp_path / plan).mkdir()
        ran = privrisk(str(path), f"--set=counting.plan={plan}", root=tmp_path / plan)
        check_cells(decisions_of(ran), literal, literal.least_exposed(2, "disclose-per-record"))
        assert ran.summary["plan"] == plan


def test_under_independent_attributes_the_choice_is_proved(privrisk: Privrisk, policy: Make) -> None:
    """LSFB06 Theorem 2: every combination of values as often as its values say."""
    times = {
        "place": ["anna", "anna", "lone"],
        "sex": ["f", "m", "m", "m"],
        "job": ["clerk", "farmer"],
        "team": ["red"],
    }
    rows = [
        {"id": f"i{i}", **dict(zip(times, values, strict=True)), "f": "1"}
        for i, values in enumerate(itertools.product(*times.values()))
    ]
    ran = privrisk(str(policy(rows, decision={"problem": "disclose-per-record", "cells": 3})))
    found, literal = decisions_of(ran), Literal(rows, rows, "subsumes")
    for one in rows:
        best = min(literal.risk(one, literal.shown(one, c)) for c in itertools.combinations(range(4), 3))
        assert found.loc[one["id"], "risk"] == pytest.approx(best, rel=1e-12)
    assert not found["gap"].any()
    assert ran.manifest["guarantee"]["status"] == "proved"
    assert "no other 3 values of a record have a lower risk" in ran.manifest["guarantee"]["statement"]


def test_a_record_with_too_few_values_is_an_error_or_suppressed(
    privrisk: Privrisk, policy: Make, tmp_path: Path
) -> None:
    few = sum(one["team"] == "" for one in ROWS)
    assert few > 0
    refused = privrisk(str(policy(decision={"problem": "disclose-per-record", "cells": 4})))
    assert refused.code == 2
    assert (
        f"decision.cells: {few} of 40 records have fewer than 4 values, others being missing; all have 3" in refused.err
    )
    asked = {"problem": "disclose-per-record", "cells": 4, "infeasible": "suppress"}
    ran = privrisk(str(policy(decision=asked)), root=tmp_path / "suppressed")
    found, literal = decisions_of(ran), Literal(ROWS, ROWS, "subsumes")
    check_cells(found, literal, [[0, 1, 2, 3] if one["team"] else [] for one in ROWS])
    assert ran.manifest["guarantee"]["status"] == "proved", "there is one way to disclose all"
    assert "Records for which that is impossible are fully suppressed." in ran.manifest["guarantee"]["statement"]


# ------------------------------------------------------------------------------------------------ Δ1, Δ3


@pytest.mark.parametrize(
    ("rule", "plan", "theta", "personal", "cells"),
    [
        ("disclose-in-all", "dense", "self", False, 61),
        ("disclose-in-all", "sorted", "narrow", True, 70),
        ("disclose-per-attribute", "shuffle", "narrow", False, 13),
        ("disclose-per-attribute", "dense", "self", True, 21),
    ],
)
def test_the_least_exposed_cells_of_a_table_wherever_its_rows_lie(
    privrisk: Privrisk, policy: Make, tmp_path: Path, rule: str, plan: str, theta: str, personal: bool, cells: int
) -> None:
    path = policy(
        personal=personal,
        counting={"plan": plan},
        dictionary={"kind": "self"} if theta == "self" else known(tmp_path, theta),
        decision={"problem": rule, "cells": cells},
    )
    rows, meaning = (ROWS, "subsumes") if theta == "self" else (NARROW, "compatible")
    literal = Literal(ROWS, rows, meaning, personal=personal)
    wanted = literal.least_exposed(cells, rule)
    assert sum(map(len, wanted)) == cells * (1 if rule == "disclose-in-all" else len(TREES))
    usual = (tmp_path / "table.parquet").rename(tmp_path / "usual.parquet")
    (tmp_path / "table.parquet").mkdir()
    frame = pd.DataFrame(ROWS).astype({"f": float}).replace({"": None}).sample(frac=1, random_state=3)
    for part in range(7):
        frame.iloc[part::7].to_parquet(tmp_path / "table.parquet" / f"part-{part}.parquet", index=False)
    spread = privrisk(str(path), root=tmp_path / "seven")
    check_cells(decisions_of(spread), literal, wanted)
    guarantee = spread.manifest["guarantee"]
    assert guarantee["status"] == "heuristic"
    assert "for its mean this is a heuristic" in guarantee["statement"]
    if not personal:
        ran = privrisk(str(path), f"--set=table.path={usual}", root=tmp_path / "one")
        assert decisions_of(spread).sort_index().equals(decisions_of(ran).sort_index())
        assert [e["sha256"] for e in spread.manifest["data"]["files"]] == [
            e["sha256"] for e in ran.manifest["data"]["files"]
        ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("disclose-in-all", "decision.cells: must be at most {all:,}, the values the table has that are not missing"),
        (
            "disclose-per-attribute",
            "decision.cells: must be at most {team}, the values 'team' has that are not missing",
        ),
    ],
)
def test_more_cells_than_there_are_is_an_error(privrisk: Privrisk, policy: Make, rule: str, message: str) -> None:
    there = {"all": sum(bool(one[name]) for one in ROWS for name in TREES), "team": sum(bool(o["team"]) for o in ROWS)}
    asked = there["all"] + 1 if rule == "disclose-in-all" else there["team"] + 1
    ran = privrisk(str(policy(decision={"problem": rule, "cells": asked})))
    assert ran.code == 2
    assert message.format(**there) + f". Got {asked:,}." in ran.err


# ------------------------------------------------------------------------------------------------ listed rules


def table_risks(kind: str) -> tuple[list[list[float]], list[float]]:
    """Mean risk of each rule by dictionary, or expected over them; mean utility of each."""
    literals = [Literal(ROWS, theta, "compatible") for theta in (REGISTER, NARROW)]
    if kind == "self":
        literals = [Literal(ROWS, ROWS, "subsumes")]
    risks, utilities = [], []
    for levels in LEVELS:
        disclosed = [[generalized(n, x) for n, x in zip(nodes_of(one), levels, strict=True)] for one in ROWS]
        of = [sum(map(literal.risk, ROWS, disclosed)) / len(ROWS) for literal in literals]
        risks.append([0.25 * of[0] + 0.75 * of[1]] if kind == "bayes" else of)
        utilities.append(sum(sum(map(len, nodes)) for nodes in disclosed) / len(ROWS))
    return risks, utilities


@pytest.mark.parametrize(
    ("kind", "plan", "floor"),
    [("self", "shuffle", 3.5), ("bayes", "sorted", 3.5), ("minimax", "dense", 3.5)],
)
def test_the_best_listed_rule_is_applied_to_the_whole_table(
    privrisk: Privrisk, policy: Make, tmp_path: Path, kind: str, plan: str, floor: float
) -> None:
    path = policy(
        counting={"plan": plan},
        dictionary={"kind": "self"} if kind == "self" else several(tmp_path, kind),
        decision={"problem": "rules", "utility_at_least": floor, "rules": RULES},
    )
    risks, utilities = table_risks(kind)
    allowed = [i for i, utility in enumerate(utilities) if utility >= floor]
    assert 1 < len(allowed) < len(RULES)
    best = min(allowed, key=lambda i: max(risks[i]))
    ran = privrisk(str(path))
    found = decisions_of(ran)
    for one in ROWS:
        levels = [min(level, len(node)) for node, level in zip(nodes_of(one), LEVELS[best], strict=True)]
        assert [found.loc[one["id"], f"level_{name}"] for name in TREES] == levels
    section = ran.summary["rules"]["rules"]
    assert [rule["name"] for rule in section] == ["as it is", "coarse", "no place", "4", "nothing"]
    assert [rule["chosen"] for rule in section] == [i == best for i in range(len(RULES))]
    assert [rule["risk"] for rule in section] == pytest.approx([max(of) for of in risks], rel=1e-12)
    assert [rule["utility"] for rule in section] == pytest.approx(utilities, rel=1e-12)
    guarantee = ran.manifest["guarantee"]
    assert guarantee["status"] == "proved"
    assert guarantee["parameters"]["rule"] == section[best]["name"]
    assert guarantee["parameters"]["levels"] == dict(zip(TREES, LEVELS[best], strict=True))
    assert (found["method"] == "rules").all()
    if kind == "minimax":
        by_dictionary = [list(rule["risk_by_dictionary"].values()) for rule in section]
        assert by_dictionary == [pytest.approx(of, rel=1e-12) for of in risks]
        assert ran.summary["risk_after"]["mean"] > max(risks[best]), "the mean of the records' worst is a bound"
        assert "the largest of these is the least there is" in guarantee["statement"]
    else:
        assert ran.summary["risk_after"]["mean"] == pytest.approx(risks[best][0], rel=1e-12)


def test_equal_rules_go_to_the_more_useful_then_to_the_first(privrisk: Privrisk, policy: Make, tmp_path: Path) -> None:
    """Where everybody has one value of an attribute, what it is released as changes no count."""
    rows = [{**one, "team": "red"} for one in ROWS]
    rules = [{"name": "less", "suppress": ["team", "sex"]}, {"name": "more", "suppress": ["sex"]}]
    asked = {"problem": "rules", "utility_at_least": 0, "rules": rules}
    weights = {"form": "multiplicative", "weights": {"team": 0}}
    ran = privrisk(str(policy(rows, decision=asked, risk={"sensitivity": weights})))
    assert ran.code == 0, ran.err
    assert ran.manifest["guarantee"]["parameters"]["rule"] == "more"
    flat = privrisk(
        str(
            policy(
                rows,
                decision=asked,
                risk={"sensitivity": weights},
                utility={"measure": "depth", "weights": {"team": 0}},
            )
        ),
        root=tmp_path / "flat",
    )
    assert flat.manifest["guarantee"]["parameters"]["rule"] == "less"


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("decision", "more", "fault"),
    [
        (
            {"problem": "disclose-per-record", "cells": 5},
            {},
            "decision.cells: must be at most 4, the number of quasi-id",
        ),
        ({"problem": "disclose-per-record"}, {}, "decision.cells: is required"),
        (
            {"problem": "disclose-per-record", "cells": 1},
            {"risk": {"sensitivity": {"form": "linear"}}},
            "risk.sensitivity.form: must be 'multiplicative' or 'constant' with 'minrisk'",
        ),
        ({"problem": "disclose-in-all", "cells": 1}, {"risk": {"model": "III"}}, "risk.model: must be 'I' or 'II'"),
        (
            {"problem": "disclose-in-all", "cells": 1, "infeasible": "suppress"},
            {},
            "decision.infeasible: there is no such",
        ),
        (
            {"problem": "min-risk", "utility_at_least": 1, "method": "minrisk"},
            {},
            "it goes with problem 'disclose-per-r",
        ),
        (
            {"problem": "rules", "utility_at_least": 1, "rules": [{"levels": {"plce": 1}, "suppress": ["sx"]}]},
            {},
            "decision.rules.0.levels.plce: 'plce' is not a quasi-identifier (did you mean 'place'?)",
        ),
        (
            {"problem": "rules", "utility_at_least": 1, "rules": [{"levels": {"sex": 1}, "suppress": ["sex"]}]},
            {},
            "decision.rules.0.levels.sex: is suppressed by the same rule",
        ),
        ({"problem": "rules", "utility_at_least": 1, "rules": []}, {}, "decision.rules: must hold at least 1 item"),
        (
            {"problem": "rules", "utility_at_least": 1, "rules": [{"name": "2"}, {"suppress": ["sex"]}]},
            {},
            "decision.rules.1.name: '2' is the name of another rule",
        ),
        (
            {"problem": "rules", "utility_at_least": 1, "rules": [{"levels": {"sex": 2}}]},
            {},
            "decision.rules.0.levels.sex: must be at most 1, the height of the hierarchy. Got 2.",
        ),
        (
            {"problem": "rules", "utility_at_least": 1, "rules": [{"levels": {"sex": 1}}, {"suppress": ["sex"]}]},
            {},
            "decision.rules.1: repeats decision.rules.0; give each rule once.",
        ),
        (
            {"problem": "rules", "utility_at_least": 9, "rules": RULES},
            {},
            "decision.utility_at_least: must be at most 6",
        ),
        (
            {"problem": "rules", "utility_at_least": 5, "rules": RULES[2:]},
            {},
            "decision.utility_at_least: no rule has a mean utility of 5; the greatest is",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    privrisk: Privrisk, policy: Make, decision: dict[str, Any], more: dict[str, Any], fault: str
) -> None:
    ran = privrisk(str(policy(decision=decision, **more)))
    assert ran.code == 2
    assert fault in ran.err


def test_minrisk_takes_one_dictionary(privrisk: Privrisk, policy: Make, tmp_path: Path) -> None:
    asked = {"problem": "disclose-per-record", "cells": 2}
    ran = privrisk(str(policy(decision=asked, dictionary=several(tmp_path, "minimax"))))
    assert ran.code == 2
    assert "dictionary.kind: must be one dictionary with 'minrisk'" in ran.err
