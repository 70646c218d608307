"""Releases of one table that compose: against an attacker who literally holds all released cells of every record."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from product import Privrisk, Ran

CITIES = {"Ulm": "south", "Bonn": "north", "Kiel": "north", "Trier": "west"}
UNDER = {"*": 4, "south": 1, "north": 2, "west": 1}
"""Leaves under each node of the cities; of an age, 5 or 20 years, or 60."""
WEIGHTS = {"age": 1.0, "city": 2.0}

Record = tuple[int, str]
Levels = tuple[int, int]
Asked = tuple[int, int, int]
"""Least utility, and what a level of an age and of a city is worth."""


def nodes(record: Record) -> tuple[list[tuple[int, int]], list[str]]:
    """Nodes of an age, as ranges, and of a city, by level."""
    age, city = record
    ranges = [(age, age), *((age // width * width, age // width * width + width - 1) for width in (5, 20)), (0, 59)]
    return ranges, [city, CITIES[city], "*"]


def fits(row: Record, cell: tuple[tuple[int, int], str]) -> bool:
    (low, high), node = cell
    return low <= row[0] <= high and node in nodes(row)[1]


def cell_of(record: Record, levels: Levels) -> tuple[tuple[int, int], str]:
    ages, cities = nodes(record)
    return ages[levels[0]], cities[levels[1]]


class Attacker:
    """Holds the table of now, and every released cell of each record; counts who is consistent with all of them."""

    def __init__(self, rows: dict[str, Record], past: list[tuple[dict[str, Record], dict[str, Levels]]]) -> None:
        self.rows, self.past = rows, past

    def cells(self, identity: str, levels: Levels | None) -> list[tuple[tuple[int, int], str]]:
        """Cells of a record; of an earlier release only what it says of values that are the same now."""
        now = self.rows[identity]
        found = [cell_of(now, (3, 2))]
        for rows, released in self.past:
            if identity in rows:
                then = rows[identity]
                age = released[identity][0] if then[0] == now[0] else 3
                city = released[identity][1] if then[1] == now[1] else 2
                found.append(cell_of(now, (age, city)))
        return found if levels is None else [*found, cell_of(now, levels)]

    def risk(self, identity: str, levels: Levels | None) -> float:
        cells = self.cells(identity, levels)
        consistent = sum(all(fits(row, cell) for cell in cells) for row in self.rows.values())
        (low, high) = min((cell[0] for cell in cells), key=lambda one: one[1] - one[0])
        city = min((cell[1] for cell in cells), key=lambda node: UNDER.get(node, 0))
        phi = 0.0 if high - low == 59 else WEIGHTS["age"] / (high - low + 1)
        phi += 0.0 if city == "*" else WEIGHTS["city"] / UNDER.get(city, 1)
        return phi / consistent

    def best(self, identity: str, asked: Asked) -> tuple[float, float]:
        """Least risk among disclosures of at least some utility, and the greatest utility at that risk."""
        found = []
        for levels in itertools.product(range(4), range(3)):
            utility = asked[1] * (3 - levels[0]) + asked[2] * (2 - levels[1])
            if utility >= asked[0]:
                found.append((self.risk(identity, levels), utility))
        least = min(risk for risk, _ in found)
        return least, max(utility for risk, utility in found if risk <= least * (1 + 1e-12))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a table, and the policy that releases it."""

    def writing(rows: dict[str, Record], day: int, **more: Any) -> Path:
        table = tmp_path / f"table-{day}.csv"
        lines = [f"{identity};{age};{city}" for identity, (age, city) in rows.items()]
        random.Random(day).shuffle(lines)
        table.write_text("\n".join(["id;age;city", *lines]) + "\n")
        document = yaml.safe_load(f"""
version: 1
run: {{name: composed, date: 2026-11-{day:02}}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 20], domain: [0, 59]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel], west: [Trier]}}}}}}}}
risk: {{sensitivity: {{weights: {{age: 1, city: 2}}}}}}
decision: {{problem: min-risk, utility_at_least: 2}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
""")
        policy = tmp_path / f"policy-{day}.yaml"
        policy.write_text(yaml.safe_dump(document | more, sort_keys=False))
        return policy

    return writing


def tables() -> list[dict[str, Record]]:
    """One table on three days: rows come and go, values change and change back."""
    rng = random.Random(11)
    first = {f"p{i}": (rng.randrange(60), rng.choice(list(CITIES))) for i in range(30)}
    second = {identity: record for identity, record in first.items() if identity not in ("p0", "p1")}
    second |= {f"n{i}": (rng.randrange(60), rng.choice(list(CITIES))) for i in range(6)}
    second |= {f"p{i}": ((first[f"p{i}"][0] + 7) % 60, first[f"p{i}"][1]) for i in (2, 3, 4)}
    second["p5"] = (first["p5"][0], "Trier" if first["p5"][1] != "Trier" else "Ulm")
    third = second | {"p2": first["p2"], "p0": first["p0"], "n6": (30, "Kiel")}
    return [first, second, third]


def decisions(ran: Ran) -> pd.DataFrame:
    assert ran.code == 0, ran.err
    return pd.read_parquet(ran.root / "vault" / "decisions").set_index("id").sort_index()


def levels_of(found: pd.DataFrame) -> dict[str, Levels]:
    return {
        identity: (int(age), int(city))
        for identity, age, city in zip(found.index, found["level_age"], found["level_city"], strict=True)
    }


def shown(ran: Ran) -> list[str]:
    return [entry["sha256"] for entry in ran.manifest["data"]["files"]]


def test_three_releases_are_what_brute_force_over_all_released_cells_finds(
    privrisk: Privrisk, write: Write, tmp_path: Path
) -> None:
    past: list[tuple[dict[str, Record], dict[str, Levels]]] = []
    manifests: list[str] = []
    for day, (rows, asked) in enumerate(zip(tables(), [(1, 0, 1), (2, 1, 0), (3, 1, 1)], strict=True), 1):
        wanted = {
            "decision": {"problem": "min-risk", "utility_at_least": asked[0]},
            "utility": {"measure": "depth", "weights": {"age": asked[1], "city": asked[2]}},
        }
        ran = privrisk(str(write(rows, day, history=[str(tmp_path / "vault")], **wanted)), root=tmp_path)
        found = decisions(ran)
        attacker, chosen = Attacker(rows, past), levels_of(found)
        alone = Attacker(rows, [])
        assert set(chosen) == set(rows)
        for identity, levels in chosen.items():
            risk, utility = attacker.best(identity, asked)
            assert found.risk[identity] == pytest.approx(risk, rel=1e-9)
            assert found.risk[identity] == pytest.approx(attacker.risk(identity, levels), rel=1e-9)
            assert found.utility[identity] == utility
            if past:
                assert found.risk_alone[identity] == pytest.approx(alone.risk(identity, levels), rel=1e-9)
                assert found.risk_out[identity] == pytest.approx(attacker.risk(identity, None), rel=1e-9)
        assert [one["run_id"] for one in ran.manifest["history"]] == manifests
        manifests.append(ran.manifest["run_id"])
        if past:
            section = ran.summary["history"]
            before = {identity for known, _ in past for identity in known}
            moved = {i for known, _ in past for i in known if i in rows and known[i] != rows[i]}
            assert section["records"] == len(before & set(rows))
            assert section["changed"] == len(moved)
            assert section["raised"] == int((found.risk > found.risk_out * (1 + 1e-12)).sum()) > 0
            assert section["risk_composed"]["mean"] == pytest.approx(found.risk.mean())
            assert "After earlier releases" in (tmp_path / "vault" / "report.html").read_text()
            assert "together with" in ran.manifest["guarantee"]["statement"]
        past.append((rows, chosen))
    assert len(past) == 3
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file():
            assert str(tmp_path / "vault").encode() not in file.read_bytes(), "no place of a vault is public"


def test_an_empty_history_releases_what_none_releases_and_the_same_again_adds_nothing(
    privrisk: Privrisk, write: Write, tmp_path: Path
) -> None:
    rows = tables()[0]
    without = privrisk(str(write(rows, 1)), root=tmp_path)
    assert not (tmp_path / "vault" / "history").exists()
    single, plain = decisions(without), shown(without)
    assert "history" not in without.manifest
    began = privrisk(str(write(rows, 2, history=[])), root=tmp_path)
    assert shown(began) == plain
    pd.testing.assert_frame_equal(decisions(began), single)
    assert began.manifest["history"] == []
    first = str(began.manifest["run_id"])
    again = privrisk(str(write(rows, 3, history=[str(tmp_path / "vault")])), root=tmp_path)
    assert shown(again) == plain
    found = decisions(again)
    pd.testing.assert_frame_equal(found[list(single)], single, check_exact=False, rtol=1e-12)
    assert (found.risk == found.risk_alone).all()
    assert (found.risk == found.risk_out).all()
    assert again.summary["history"]["raised"] == 0
    # By its manifest alone the same release is found; by the name of a vault all are.
    manifest = tmp_path / "out" / "releases" / first / "manifest.json"
    named = privrisk(str(write(rows, 4, history=[str(manifest)])), root=tmp_path)
    assert [one["run_id"] for one in named.manifest["history"]] == [first]
    assert shown(named) == plain


def test_a_record_that_is_out_beyond_its_ceiling_is_suppressed_and_counted(
    privrisk: Privrisk, write: Write, tmp_path: Path
) -> None:
    rows = tables()[0]
    decisions(privrisk(str(write(rows, 1, history=[])), root=tmp_path))
    decision = {"problem": "max-utility", "risk_at_most": 0.05}
    asked = write(rows, 2, history=[str(tmp_path / "vault")], decision=decision, checks={"max_risk": 0.05})
    ran = privrisk(str(asked), root=tmp_path)
    found = decisions(ran)
    beyond = found[found.beyond]
    assert 0 < len(beyond) < len(found)
    assert (beyond.risk > 0.05).all()
    assert (beyond[["level_age", "level_city"]] == [3, 2]).all().all()
    assert (found[~found.beyond].risk <= 0.05).all()
    assert (found.beyond == (found.risk_out > 0.05 * (1 + 1e-12))).all()
    assert ran.summary["facts"]["records suppressed as already disclosed beyond the bound"] == len(beyond)
    assert ran.summary["facts"]["records suppressed as infeasible"] == 0
    assert "beyond it already" in ran.manifest["guarantee"]["statement"]


@pytest.mark.parametrize("method", ["exhaustive", "branch_and_bound", "btda"])
def test_every_search_makes_the_same_release(privrisk: Privrisk, write: Write, tmp_path: Path, method: str) -> None:
    first, second, _ = tables()
    decisions(privrisk(str(write(first, 1, history=[])), root=tmp_path))
    vault = str(tmp_path / "vault")
    usual = privrisk(str(write(second, 2, history=[vault])), "--run-id=usual", root=tmp_path)
    wanted, bytes_wanted = decisions(usual), shown(usual)
    manifest = json.loads((tmp_path / "out" / "releases" / "usual" / "manifest.json").read_text())
    earlier = manifest["history"][0]["run_id"]
    decision = {"problem": "min-risk", "utility_at_least": 2, "method": method}
    only = [str(tmp_path / "out" / "releases" / earlier / "manifest.json")]
    other = privrisk(str(write(second, 3, history=only, decision=decision)), root=tmp_path)
    assert shown(other) == bytes_wanted
    found = decisions(other).loc[wanted.index]
    columns = [name for name in wanted if name != "method"]
    pd.testing.assert_frame_equal(found[columns], wanted[columns], rtol=1e-12)


def test_what_does_not_compose_is_refused_by_name(privrisk: Privrisk, write: Write, tmp_path: Path) -> None:
    rows = tables()[0]
    vault = str(tmp_path / "vault")
    decisions(privrisk(str(write(rows, 1, history=[])), root=tmp_path))

    def refused(*parts: str, **more: Any) -> None:
        ran = privrisk(str(write(rows, 2, **{"history": [vault]} | more)), root=tmp_path)
        assert ran.code == 2
        for part in parts:
            assert part in ran.err

    columns = yaml.safe_load(write(rows, 2).read_text())["columns"]
    wider = {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10, 20], "domain": [0, 59]}}}
    run = "of its history"
    refused("columns.age.hierarchy: must be the same hierarchy", run, columns=columns | {"age": wider})
    refused("columns.age.role: must be 'quasi-identifier'", columns=columns | {"age": {"role": "insensitive"}}, risk={})
    refused("history.0", "remembers a release", "history: []", history=[str(tmp_path / "elsewhere")])
    stray = tmp_path / "manifest.json"
    stray.write_text('{"run_id": "x"}')
    refused("history.0", "no vault remembers", history=[str(stray)])
    aggregate = {"problem": "max-aggregate", "lambda": 0.5}
    refused("decision.problem", "'max-aggregate'", decision=aggregate)
    refused("decision.method", "'genetic'", decision={"utility_at_least": 2, "method": "genetic"})
    refused("counting.plan", "'shuffle'", counting={"plan": "shuffle"})
    table = yaml.safe_load(write(rows, 2).read_text())["table"] | {"record_id": None}
    refused("table.record_id", "is required with history", table=table)
    similar = {"kind": "self", "consistency": "similar", "similar": {"city": 0.8}}
    refused("dictionary.consistency", "follow no tree", dictionary=similar)
