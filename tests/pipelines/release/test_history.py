"""Releases of one table that compose: against an attacker who literally holds all released cells of every record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from naive_releases import Attacker, Levels, Record, Write, decisions, levels_of, tables, writer
from product import Privrisk, Ran


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writer(tmp_path)


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
    rows = {f"zQxCanary{one}": row for one, row in tables()[0].items()}
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
    # What is remembered knows the records again, and does not hold their ids.
    remembered = [file for file in (tmp_path / "vault" / "history").rglob("*") if file.is_file()]
    assert len([file for file in remembered if file.suffix == ".parquet"]) >= 3
    for file in remembered:
        assert b"zQxCanary" not in file.read_bytes()
        if file.suffix == ".parquet":
            values = pd.read_parquet(file)
            assert next(iter(values)) == "record_digest"
            assert not [one for one in values.record_digest if "Canary" in one or len(one) != 32]
    (key,) = (tmp_path / "vault" / "keys").iterdir()
    assert (key.name, key.stat().st_mode & 0o777, key.stat().st_size) == ("~history.key", 0o600, 32)


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


@pytest.mark.thorough("tests/stages/deciding/test_history.py")
def test_every_search_makes_the_same_release(privrisk: Privrisk, write: Write, tmp_path: Path) -> None:
    first, second, _ = tables()
    decisions(privrisk(str(write(first, 1, history=[])), root=tmp_path))
    vault = str(tmp_path / "vault")
    usual = privrisk(str(write(second, 2, history=[vault])), "--run-id=usual", root=tmp_path)
    wanted, bytes_wanted = decisions(usual), shown(usual)
    manifest = json.loads((tmp_path / "out" / "releases" / "usual" / "manifest.json").read_text())
    earlier = manifest["history"][0]["run_id"]
    only = [str(tmp_path / "out" / "releases" / earlier / "manifest.json")]
    columns = [name for name in wanted if name != "method"]
    for day, method in enumerate(("exhaustive", "branch_and_bound", "btda"), 3):
        decision = {"problem": "min-risk", "utility_at_least": 2, "method": method}
        other = privrisk(str(write(second, day, history=only, decision=decision)), root=tmp_path)
        assert shown(other) == bytes_wanted, method
        found = decisions(other).loc[wanted.index]
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


def test_an_attempt_of_the_run_itself_is_no_earlier_release(privrisk: Privrisk, write: Write, tmp_path: Path) -> None:
    asked = str(write(tables()[0], 1, history=[str(tmp_path / "vault")]))
    first = privrisk(asked, root=tmp_path)
    wanted, manifest = shown(first), first.manifest
    planned = privrisk(asked, "--dry-run", "--run-id=another", root=tmp_path)
    assert f"composes with: {manifest['run_id']}" in planned.out
    # As if it had ended after it was remembered, and before anybody could see it.
    shutil.rmtree(tmp_path / "out")
    again = privrisk(asked, root=tmp_path)
    assert again.code == 0, again.err
    assert (shown(again), again.manifest["history"]) == (wanted, [])
    assert {**again.manifest, "sequence": 0} == {**manifest, "sequence": 0}
    assert len(list((tmp_path / "vault" / "history").iterdir())) == 1


def test_a_lineage_is_all_that_the_vault_remembers_of_a_name(privrisk: Privrisk, write: Write, tmp_path: Path) -> None:
    """Of a vault that serves two tables with other hierarchies, the releases of one."""
    first, second, _ = tables()
    columns = yaml.safe_load(write(first, 1).read_text())["columns"]
    ages = {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10, 20], "domain": [0, 59]}}}
    other = {"run": {"name": "other", "date": "2026-11-01"}, "columns": columns | {"age": ages}}
    lineage = {"lineage": "composed"}
    began = privrisk(str(write(first, 1, history=lineage)), root=tmp_path)
    assert decisions(began).shape[0] == len(first)
    run_id = began.manifest["run_id"]
    assert began.manifest["history"] == []
    decisions(privrisk(str(write(first, 2, history={"lineage": "other"}, **other)), root=tmp_path))
    ran = privrisk(str(write(second, 3, history=lineage)), root=tmp_path)
    found = decisions(ran)
    assert [one["run_id"] for one in ran.manifest["history"]] == [run_id]
    assert ran.summary["history"]["records"] == len(set(first) & set(second))
    manifest = str(tmp_path / "out" / "releases" / run_id / "manifest.json")
    named = privrisk(str(write(second, 4, history=[manifest])), root=tmp_path)
    assert shown(named) == shown(ran)
    pd.testing.assert_series_equal(decisions(named).risk, found.risk)
    mixed = privrisk(str(write(second, 5, history=[str(tmp_path / "vault")])), root=tmp_path)
    assert (mixed.code, "columns.age.hierarchy: must be the same hierarchy" in mixed.err) == (2, True)
