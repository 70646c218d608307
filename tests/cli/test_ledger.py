"""``privrisk ledger …`` from the outside, on both databases; none of it starts Spark."""

from __future__ import annotations

import copy
import datetime as dt
import fcntl
import json
import math
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from ledgers import InFile, OnServer
from policies import DP, DROP, RISK, changed
from typer.testing import CliRunner, Result

from privrisk_spark.cli.app import app
from privrisk_spark.ledger import budget
from privrisk_spark.ledger.accounting import RESTS_ON, composed
from privrisk_spark.ledger.calibrated import calibrated_of
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import Request
from privrisk_spark.planning.cost import run_cost
from privrisk_spark.policy import reading
from privrisk_spark.policy.reading import parse
from privrisk_spark.runs.keystore import release_key
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.witnesses import Witness, record_witness

Place = InFile | OnServer

DAY = dt.date(2026, 11, 1)

COSTED = changed(DP, ("columns.zip.hierarchy", {"flat": {"values": ["89073", "53111"]}}), ("guarantee.frequent", DROP))


@pytest.fixture
def policy(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy of cost 1 and 1e-9, under a cap of 4 and 1e-7."""
    monkeypatch.setenv("COLUMNS", "200")
    document = copy.deepcopy(COSTED)
    document["output"] = {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")}
    document["ledger"]["url"] = "${CENSUS_LEDGER}"
    monkeypatch.setenv("CENSUS_LEDGER", place.url)
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def privrisk(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["ledger", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def printed(*arguments: object, code: int = 0) -> Any:
    result = privrisk(*arguments, "--json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout)


def test_a_plan_writes_nothing_and_counts_the_releases_that_fit(policy: Path, place: Place):
    planned = printed("plan", policy, "--run-id", "r1")
    assert planned == {
        "lineage": "census",
        "run_id": "r1",
        "state": "new",
        "refusal": None,
        "epsilon": {"spent": "0", "cap": "4", "left": "4", "cost": "1", "left_after": "3"},
        "delta": {"spent": "0", "cap": "1E-7", "left": "1E-7", "cost": "1E-9", "left_after": "9.9E-8"},
        "releases_that_fit": 4,
        "accounting": "basic",
        "tighter": planned["tighter"],
    }
    assert not place.exists()
    told = privrisk("plan", policy, "--run-id", "r1")
    assert told.exit_code == 0
    assert "left after  3        9.9E-8" in told.stdout
    assert "4 releases like this one fit in what is left, this one included." in told.stdout


def test_ledger_of_a_policy_with_undecided_columns_is_read(policy: Path, place: Place):
    """The release may have been made by its proposals: the run id is that of the release."""
    decided = reading.load([policy], date=DAY)
    document = yaml.safe_load(policy.read_text()) | {"undecided": ["zip"]}
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    planned = printed("plan", policy, "--date", DAY)
    assert planned["run_id"] == decided.run_id(DAY)


def test_a_tighter_figure_of_all_counted_runs_stands_beside_the_sums(policy: Path, place: Place):
    """By the same accounting as a manifest's, at the sum of the deltas; a run not charged is not in it."""
    loaded = reading.load([policy], overrides=[], date=DAY)
    one = calibrated_of(run_cost(loaded, "r", DAY).mechanism).events

    def epsilon(runs: int) -> float:
        return math.ceil(composed([one] * runs, runs * one.delta) * 1e5) / 1e5

    assert 0 < epsilon(1) < 1
    assert epsilon(1) < epsilon(2) < 2 * epsilon(1)
    planned = printed("plan", policy, "--run-id", "r1")["tighter"]
    said = {"status": "tested", "binds": False, "rests_on": RESTS_ON}
    assert planned == {"epsilon": epsilon(1), "delta": "1E-9", "runs": 1, **said}
    for run in ("r1", "r2", "r3"):
        assert privrisk("reserve", policy, "--run-id", run).exit_code == 0
    assert printed("plan", policy, "--run-id", "r3")["tighter"]["runs"] == 3, "charged already"
    assert printed("plan", policy, "--run-id", "r4")["tighter"]["runs"] == 4
    voided = privrisk("void", policy, "--run-id", "r3", "--reason", "no table", "--nothing-left-the-zone")
    assert voided.exit_code == 0, voided.stderr
    assert printed("show", policy)["tighter"] == {
        "epsilon": epsilon(2), "delta": "2E-9", "runs": 2, **said
    }  # fmt: skip
    shown = privrisk("show", policy).stdout
    assert f"2 releases cost epsilon {epsilon(2):g} at delta 2E-9 (tested; the sums bind)" in shown
    # A run whose mechanism the ledger does not hold counts by its claim.
    amounts = {"epsilon": "0.1", "delta": "1e-10", "cap_epsilon": "4", "cap_delta": "1e-7"}
    Ledger(place.url).reserve(Request(lineage="census", run_id="old", **amounts, mechanism={"digest": "x"}))
    after = printed("show", policy)["tighter"]
    assert (after["runs"], after["delta"]) == (3, "2.1E-9")
    assert epsilon(2) < after["epsilon"] <= 2.1


def test_a_policy_may_have_the_cap_bind_on_the_tight_composition(policy: Path, place: Place):
    """Under a cap of 2 the sums admit two runs; the tight composition admits more, says so, and refuses at its end."""
    cap = ("--set", "ledger.cap.epsilon=2")
    tight = (*cap, "--set", "ledger.accounting=pld")
    loaded = reading.load([policy], overrides=["ledger.cap.epsilon=2", "ledger.accounting=pld"], date=DAY)
    one = calibrated_of(run_cost(loaded, "r", DAY).mechanism).events

    def epsilon(runs: int) -> float:
        return math.ceil(composed([one] * runs, Decimal("1e-7")) * 1e5) / 1e5

    fits = next(runs for runs in range(2, 99) if epsilon(runs + 1) > 2)
    assert fits > 2
    assert printed("plan", policy, *cap, "--run-id", "r0")["releases_that_fit"] == 2
    for left in range(fits, 0, -1):
        run = f"r{left}"
        planned = printed("plan", policy, *tight, "--run-id", run)
        assert (planned["accounting"], planned["releases_that_fit"]) == ("pld", left)
        assert planned["tighter"]["epsilon"] == epsilon(fits - left + 1)
        made = privrisk("reserve", policy, *tight, "--run-id", run)
        assert made.exit_code == 0, made.stderr
    assert f"epsilon {epsilon(fits):g} of 2 at delta 1E-7 (tested; this binds)" in made.stdout
    assert privrisk("reserve", policy, *tight, "--run-id", "more").exit_code == 1
    assert printed("plan", policy, *tight, "--run-id", "more", code=1)["releases_that_fit"] == 0
    assert privrisk("reserve", policy, *cap, "--run-id", "more").exit_code == 1
    for asked in ((policy, *tight), ("--url", place.url, "--lineage", "census")):
        shown = printed("show", *asked)
        assert shown["epsilon"]["spent"] == str(fits)
        assert shown["tighter"] == {
            "epsilon": epsilon(fits), "delta": "1E-7", "runs": fits, "status": "tested", "binds": True,
            "rests_on": RESTS_ON,
        }  # fmt: skip
        assert {run["accounting"] for run in shown["runs"]} == {"pld"}
        text = privrisk("show", *asked).stdout
        assert "(tested; this binds)" in text
        assert RESTS_ON[:40] in text
    assert loaded.digest() != reading.load([policy], overrides=["ledger.cap.epsilon=2"], date=DAY).digest()


def test_a_reservation_is_that_of_the_release_and_free_the_second_time(policy: Path, place: Place):
    first = privrisk("reserve", policy, "--run-id", "r1")
    assert first.exit_code == 0, first.stderr
    assert "Reserved epsilon 1 and delta 1E-9 for run id r1 of lineage census" in first.stdout
    again = privrisk("reserve", policy, "--run-id", "r1")
    assert again.exit_code == 0
    assert "reserved already; nothing was charged" in again.stdout
    planned = printed("plan", policy, "--run-id", "r1")
    assert (planned["state"], planned["epsilon"]["left_after"], planned["releases_that_fit"]) == ("reserved", "3", 3)
    other = privrisk("reserve", policy, "--run-id", "r1", "--set", "guarantee.epsilon.admit=0.2")
    assert other.exit_code == 1
    assert "reserved with other parameters; use a new run id" in other.stderr
    assert "What differs: epsilon, guarantee.epsilon, mechanism.digest" in " ".join(other.stderr.split())
    assert Ledger(place.url).balance("census").spent_epsilon == 1


def test_a_run_that_does_not_fit_is_refused_with_1_and_still_explained(policy: Path, place: Place):
    for run in ("r1", "r2", "r3", "r4"):
        assert privrisk("reserve", policy, "--run-id", run).exit_code == 0
    planned = printed("plan", policy, "--run-id", "r5", code=1)
    assert (planned["state"], planned["epsilon"]["left_after"], planned["releases_that_fit"]) == ("refused", None, 0)
    assert "asked 1, spent 4, cap 4, left 0" in planned["refusal"]
    told = privrisk("plan", policy, "--run-id", "r5")
    assert told.exit_code == 1
    assert "0 releases like this one fit" in told.stdout
    assert "does not allow the run" in told.stderr
    assert privrisk("reserve", policy, "--run-id", "r5").exit_code == 1
    raised = privrisk("plan", policy, "--run-id", "r5", "--set", "ledger.cap.epsilon=9")
    assert raised.exit_code == 1
    assert "lowered but not raised" in raised.stderr


def test_what_is_shown(policy: Path, place: Place, tmp_path: Path):
    empty = privrisk("show", policy)
    assert empty.exit_code == 0
    assert "No run was ever reserved." in empty.stdout
    assert not place.exists()
    for run in ("r1", "r2", "r3"):
        privrisk("reserve", policy, "--run-id", run)
    begin(place, tmp_path / "out")
    of = {"lineage": "census", "run_id": "r1"}
    Ledger(place.url).pin(**of, snapshot="s1")
    Ledger(place.url).commit(**of, release="d1")
    privrisk("void", policy, "--run-id", "r3", "--reason", "a column is missing", "--nothing-left-the-zone")
    for arguments in ([policy], ["--url", place.url, "--lineage", "census"], ["--url", "env:CENSUS_LEDGER",
                                                                               "--lineage", "census"]):  # fmt: skip
        shown = printed("show", *arguments)
        assert shown["epsilon"] == {"spent": "2", "cap": "4", "left": "2"}
        assert shown["delta"] == {"spent": "2E-9", "cap": "1E-7", "left": "9.8E-8"}
        assert [(run["run_id"], run["state"], run["counted"]) for run in shown["runs"]] == [
            ("r1", "committed", True),
            ("r2", "reserved", True),
            ("r3", "void", False),
        ]
        assert (shown["runs"][0]["snapshot"], shown["runs"][0]["release_digest"]) == ("s1", "d1")
        assert shown["runs"][0]["place"] == str(tmp_path / "out")
        assert shown["runs"][2]["reason"] == "a column is missing"
    told = privrisk("show", policy).stdout
    for line in ("  left   2        9.8E-8", "r1      committed  yes      1        1E-9", "r3      void       no"):
        assert line in told
    (listed,) = printed("show", "--url", place.url)
    assert listed["lineage"] == "census"
    assert (
        "census   3     2              4    2     2E-9         1E-7  9.8E-8"
        in privrisk("show", "--url", place.url).stdout
    )
    unknown = privrisk("show", "--url", place.url, "--lineage", "sensus")
    assert unknown.exit_code == 2
    assert "did you mean 'census'?" in unknown.stderr


def begin(place: Place, output: Path, run_id: str = "r1") -> None:
    """As an attempt does before it reads anything."""
    Ledger(place.url).bind(lineage="census", run_id=run_id, key="k", place=str(output.resolve()))


def test_void_keeps_the_budget_unless_the_statement_is_made(policy: Path, place: Place, tmp_path: Path):
    for run in ("r1", "r2"):
        privrisk("reserve", policy, "--run-id", run)
        release_key(tmp_path / "vault", run)
    kept = privrisk("void", policy, "--run-id", "r1", "--reason", "cluster down")
    assert kept.exit_code == 0, kept.stderr
    assert "its budget stays spent" in kept.stdout
    assert Ledger(place.url).balance("census").spent_epsilon == 2
    back = privrisk("void", policy, "--run-id", "r2", "--reason", "never started", "--nothing-left-the-zone")
    assert "its budget was given back" in back.stdout
    assert Ledger(place.url).balance("census").spent_epsilon == 1
    assert not list((tmp_path / "vault" / "keys").iterdir()), "the keys are destroyed"
    for arguments in (["r1", "--nothing-left-the-zone"], ["r9"]):
        refused = privrisk("void", policy, "--reason", "x", "--run-id", *arguments)
        assert refused.exit_code == 1
    assert privrisk("reserve", policy, "--run-id", "r2").exit_code == 1
    assert privrisk("void", policy, "--run-id", "r2").exit_code == 2, "a reason is asked"


@pytest.mark.parametrize("trace", ["releases/r1/manifest.json", "releases/r1/data/part", ".staging-r1~0a/data/part"])
@pytest.mark.parametrize("asked", ["out", "elsewhere"])
def test_a_statement_that_the_runs_own_place_belies_is_refused(
    policy: Path, place: Place, tmp_path: Path, trace: str, asked: str
):
    """The place is the one the ledger has the run at, whatever output.path somebody asks with."""
    privrisk("reserve", policy, "--run-id", "r1")
    begin(place, tmp_path / "out")
    left = tmp_path / "out" / trace
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    void = ("void", policy, "--run-id", "r1", "--reason", "x", f"--set=output.path={tmp_path / asked}")
    refused = privrisk(*void, "--nothing-left-the-zone")
    assert refused.exit_code == 1
    assert f"'{tmp_path / 'out'}' holds files of run id r1" in " ".join(refused.stderr.split())
    kept = privrisk(*void)
    assert kept.exit_code == 0, kept.stderr
    assert Ledger(place.url).balance("census").spent_epsilon == 1


@pytest.mark.parametrize("statement", [[], ["--nothing-left-the-zone"]])
def test_what_is_committed_is_never_given_back_whatever_place_is_asked(
    policy: Path, place: Place, tmp_path: Path, statement: list[str]
):
    """It may be visible from its commit on; where, another output path does not tell."""
    privrisk("reserve", policy, "--run-id", "r1")
    begin(place, tmp_path / "out")
    of = {"lineage": "census", "run_id": "r1"}
    Ledger(place.url).pin(**of, snapshot="s1")
    Ledger(place.url).commit(**of, release="d1")
    elsewhere = f"--set=output.path={tmp_path / 'elsewhere'}"
    refused = privrisk("void", policy, "--run-id", "r1", "--reason", "x", elsewhere, *statement)
    assert refused.exit_code == 1
    assert "r1 is committed: what was published cannot be voided" in refused.stderr
    assert Ledger(place.url).balance("census").spent_epsilon == 1


def test_a_place_that_is_not_on_this_machine_cannot_bear_a_statement_out(policy: Path, place: Place, tmp_path: Path):
    privrisk("reserve", policy, "--run-id", "r1")
    begin(place, tmp_path / "gone")
    refused = privrisk("void", policy, "--run-id", "r1", "--reason", "x", "--nothing-left-the-zone")
    assert refused.exit_code == 1
    assert "is not on this machine" in refused.stderr
    assert privrisk("void", policy, "--run-id", "r1", "--reason", "x").exit_code == 0
    assert Ledger(place.url).balance("census").spent_epsilon == 1


@pytest.mark.parametrize("directory", ["out", "vault"])
def test_nothing_is_given_back_while_a_run_is_at_work(policy: Path, place: Place, tmp_path: Path, directory: str):
    privrisk("reserve", policy, "--run-id", "r1")
    begin(place, tmp_path / "out")
    for name in ("out", "vault"):
        (tmp_path / name).mkdir(exist_ok=True)
    arguments = ("void", policy, "--run-id", "r1", "--reason", "x", "--nothing-left-the-zone")
    with (tmp_path / directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = privrisk(*arguments)
        assert refused.exit_code == 1
        assert "a run is at work" in refused.stderr
    assert privrisk(*arguments).exit_code == 0, "a lock nobody holds keeps nobody"
    assert Ledger(place.url).balance("census").spent_epsilon == 0


def witness(place: Place, root: Path, run_id: str = "r1") -> None:
    """As a run does, after the ledger holds it to its key and place."""
    made = Ledger(place.url).bind(lineage="census", run_id=run_id, key="k", place=str(root / "out"))
    kept = Witness("census", run_id, str(root / "out"), events=made.events, head=made.head)
    record_witness(DirectoryVault(root / "vault"), kept)


def test_a_whole_ledger_is_told_as_such_and_a_rewritten_event_by_its_number(policy: Path, place: Place):
    for run in ("r1", "r2"):
        assert privrisk("reserve", policy, "--run-id", run).exit_code == 0
    for arguments in ([policy], ["--url", "env:CENSUS_LEDGER"]):
        told = privrisk("verify", *arguments)
        assert (told.exit_code, told.stdout) == (0, "Lineage census: 2 events, each has its hash.\n")
    assert printed("verify", policy) == {"events": {"census": 2}, "broken": {}, "findings": [], "looked": []}
    place.tamper("UPDATE events SET created_at = 'then' WHERE sequence = 2")
    told = privrisk("verify", policy)
    assert told.exit_code == 1
    assert "Lineage census is broken: event 2 of the ledger is not what was written" in told.stdout
    assert "restore the ledger from its backup" in told.stdout
    assert "lineages that are not whole: 1, contradictions: 0" in " ".join(told.stderr.split())
    assert list(printed("verify", policy, code=1)["broken"]) == ["census"]
    assert privrisk("verify").exit_code == 2


def test_lineages_that_are_whole_are_shown_beside_one_that_is_not(policy: Path, place: Place):
    """One event that was written past the program kept everybody from seeing what was spent."""
    privrisk("reserve", policy, "--run-id", "r1")
    privrisk("reserve", policy, "--run-id", "r1", "--set=ledger.lineage=other", "--set=table.path=other.csv")
    place.tamper("UPDATE events SET created_at = 'then' WHERE lineage = 'other'")
    shown = privrisk("show", "--url", "env:CENSUS_LEDGER")
    assert shown.exit_code == 3
    assert "census" in shown.stdout
    assert "1 lineages of the ledger are not whole: other" in " ".join(shown.stderr.split())
    assert privrisk("show", policy).exit_code == 0
    assert privrisk("reserve", policy, "--run-id", "r2").exit_code == 0


def test_a_ledger_that_is_not_there_is_not_told_as_whole(tmp_path: Path):
    told = privrisk("verify", "--url", f"sqlite:///{tmp_path}/gone.db")
    assert told.exit_code == 2
    assert "there is no ledger at" in " ".join(told.stderr.split())


def test_a_ledger_is_held_against_places(policy: Path, place: Place, tmp_path: Path):
    """A run that was charged, bound and never released is told; an event that is lost contradicts."""
    privrisk("reserve", policy, "--run-id", "r1")
    (tmp_path / "out").mkdir()
    witness(place, tmp_path)
    arguments = ("reconcile", "--ledger", place.url, tmp_path / "out", tmp_path / "vault")
    told = privrisk(*arguments)
    assert told.exit_code == 0, told.stderr
    assert f"without a release: run id r1 (lineage census, '{tmp_path / 'out'}'): the run is charged" in told.stdout
    place.tamper("DELETE FROM events WHERE sequence = 2")
    lost = privrisk(*arguments)
    assert lost.exit_code == 1
    assert "rolled back: run id r1 (lineage census" in lost.stdout
    assert "Restore it from its latest backup" in lost.stderr
    found = printed(*arguments, code=1)["findings"]
    assert [(one["kind"], one["run_id"], one["contradicts"]) for one in found] == [
        ("rolled back", "r1", True), ("without a release", "r1", False)
    ]  # fmt: skip
    nowhere = privrisk("reconcile", "--ledger", place.url, tmp_path / "nowhere")
    assert nowhere.exit_code == 2
    assert "is no directory" in nowhere.stderr


@pytest.mark.parametrize("command", ["reserve", "plan"])
def test_nothing_is_charged_to_a_ledger_that_has_forgotten(policy: Path, place: Place, tmp_path: Path, command: str):
    privrisk("reserve", policy, "--run-id", "r1")
    witness(place, tmp_path)
    place.tamper("DELETE FROM events WHERE sequence = 2")
    refused = privrisk(command, policy, "--run-id", "r2")
    assert refused.exit_code == 1
    assert "output.vault knows event 2 of it, from run id r1" in " ".join(refused.stderr.split())
    assert len(Ledger(place.url).balance("census").runs) == 1


def test_a_lineage_follows_its_table_only_by_a_statement(policy: Path, place: Place, tmp_path: Path):
    privrisk("reserve", policy, "--run-id", "r1")
    other = f"--set=table.path={tmp_path / 'other.csv'}"
    for command in ("reserve", "plan"):
        refused = privrisk(command, policy, "--run-id", "r2", other)
        assert refused.exit_code == 1
        assert "ledger.lineage census is of another table" in " ".join(refused.stderr.split())
    moved = privrisk("move", policy, other, "--reason", "a new disk")
    assert moved.exit_code == 0, moved.stderr
    assert privrisk("reserve", policy, "--run-id", "r2", other).exit_code == 0
    assert Ledger(place.url).balance("census").spent_epsilon == 2


def test_a_table_of_another_lineage_is_charged_beside_it_only_by_a_statement(policy: Path, place: Place):
    privrisk("reserve", policy, "--run-id", "r1")
    other = "--set=ledger.lineage=twice"
    for command in ("reserve", "plan"):
        refused = privrisk(command, policy, "--run-id", "r1", other)
        assert refused.exit_code == 1
        told = " ".join(refused.stderr.split())
        assert "twice: the policy's table, or a file of it, is that of the lineage 'census'" in told
    beside = privrisk("move", policy, other, "--beside", "Census", "--reason", "two studies")
    assert beside.exit_code == 0, beside.stderr
    assert privrisk("reserve", policy, "--run-id", "r1", other).exit_code == 0
    assert ": two studies" in privrisk("show", policy, other).stdout
    (stated,) = printed("show", policy, other)["statements"]
    assert (stated["state"], stated["reason"]) == ("moved", "two studies")


@pytest.mark.parametrize("path", ["in", "in/../in/table.csv", "linked.csv", "soft.csv", "soft"])
def test_reserve_of_a_file_by_another_path_under_a_second_lineage_is_refused(policy: Path, tmp_path: Path, path: str):
    (tmp_path / "in").mkdir()
    table = tmp_path / "in" / "table.csv"
    table.write_text("age\n1\n")
    (tmp_path / "linked.csv").hardlink_to(table)
    (tmp_path / "soft.csv").symlink_to(table)
    (tmp_path / "soft").symlink_to(tmp_path / "in")
    made = privrisk("reserve", policy, "--run-id", "r1", f"--set=table.path={table}")
    assert made.exit_code == 0, made.stderr
    again = ("--run-id", "r2", f"--set=table.path={tmp_path / path}")
    for command in ("reserve", "plan"):
        refused = privrisk(command, policy, *again, "--set=ledger.lineage=twice")
        assert refused.exit_code == 1
        assert "a file of it, is that of the lineage 'census'" in " ".join(refused.stderr.split())
    assert privrisk("reserve", policy, *again).exit_code == 0, "under its own lineage it is the same table"
    table.unlink()
    table.write_text("age\n2\n")
    assert privrisk("reserve", policy, "--run-id", "r3", f"--set=table.path={table}").exit_code == 0, "written anew"


@pytest.mark.parametrize("path", ["tabl?.csv", "[t]able.csv", "tabl\\\\e.csv", "{table,other}.csv", "*.csv"])
def test_reserve_of_a_pattern_is_refused(policy: Path, place: Place, tmp_path: Path, path: str):
    refused = privrisk("reserve", policy, "--run-id", "r1", f"--set=table.path={tmp_path}/{path}")
    assert refused.exit_code == 2
    assert "table.path: must name one file or directory under dp" in " ".join(refused.stderr.split())
    assert not place.exists()


def test_a_lineage_protects_rows_or_persons(policy: Path, place: Place):
    privrisk("reserve", policy, "--run-id", "r1")
    for command in ("reserve", "move"):
        asked = ("--run-id", "r2") if command == "reserve" else ("--reason", "x")
        refused = privrisk(command, policy, *asked, "--set=table.entity_id=pid", "--set=columns.pid.role=identifier")
        assert refused.exit_code == 1, refused.stderr
        assert "ledger.lineage census protects 'row'" in " ".join(refused.stderr.split())


def test_what_is_lost_for_good_is_accepted_by_statement(policy: Path, place: Place, tmp_path: Path):
    privrisk("reserve", policy, "--run-id", "r1")
    (tmp_path / "out").mkdir()
    witness(place, tmp_path)
    place.tamper("DELETE FROM events WHERE sequence > 0")
    arguments = ("reconcile", "--ledger", place.url, tmp_path / "out", tmp_path / "vault")
    told = privrisk(*arguments)
    assert told.exit_code == 1
    assert (
        f"Looked at '{tmp_path / 'out'}': neither a private release nor a charge, so it knows nothing." in told.stdout
    )
    assert f"Looked at '{tmp_path / 'vault'}': 0 private releases, 1 charges kept." in told.stdout
    assert privrisk("reserve", policy, "--run-id", "r2").exit_code == 1
    for half in (("--accept", "census"), ("--reason", "x")):
        assert privrisk(*arguments, *half).exit_code == 2
    accepted = privrisk(*arguments, "--accept", "Census", "--reason", "no backup")
    assert accepted.exit_code == 0, accepted.stderr
    assert "Accepted 1 runs of lineage Census whose events are lost." in accepted.stdout
    assert "nothing published and its cost not known; lower ledger.cap by it" in accepted.stdout
    assert "accepted: run id r1 (lineage census" in accepted.stdout
    assert privrisk("reserve", policy, "--run-id", "r2").exit_code == 0
    assert ": no backup" in privrisk("show", policy).stdout
    again = printed(*arguments, "--accept", "census", "--reason", "again")
    assert [one["kind"] for one in again["findings"]] == ["accepted", "without a release"]


def test_void_of_a_run_whose_release_was_withdrawn_gives_nothing_back(policy: Path, place: Place, tmp_path: Path):
    privrisk("reserve", policy, "--run-id", "r1")
    out = tmp_path / "out"
    Ledger(place.url).bind(lineage="census", run_id="r1", key="k", place=str(out))
    (out / "withdrawn").mkdir(parents=True)
    stone = {"sequence": 1, "run_id": "r1", "release_digest": "d", "withdrawn": "2026-12-01"}
    (out / "withdrawn" / "r1.json").write_text(json.dumps(stone))
    refused = privrisk("void", policy, "--run-id", "r1", "--reason", "x", "--nothing-left-the-zone")
    assert refused.exit_code == 1
    assert "holds files of run id r1" in " ".join(refused.stderr.split())
    assert Ledger(place.url).balance("census").spent_epsilon == 1


def test_void_and_move_do_not_believe_a_ledger_that_was_cut(policy: Path, place: Place, tmp_path: Path):
    """Cut back to its reservation a run that is published could be given back."""
    privrisk("reserve", policy, "--run-id", "r1")
    witness(place, tmp_path)
    place.tamper("DELETE FROM events WHERE sequence = 2")
    for arguments in (("void", "--run-id", "r1", "--nothing-left-the-zone"), ("move", "--set=table.path=other.csv")):
        refused = privrisk(arguments[0], policy, *arguments[1:], "--reason", "x")
        assert refused.exit_code == 1
        assert "output.vault knows event 2 of it, from run id r1" in " ".join(refused.stderr.split())
    assert Ledger(place.url).balance("census").spent_epsilon == 1


def test_create_prints_what_to_grant(policy: Path, place: Place):
    for arguments in ((policy,), ("--url", "env:CENSUS_LEDGER")):
        made = privrisk("create", *arguments)
        assert made.exit_code == 0, made.stderr
        assert place.exists()
        assert ("GRANT INSERT ON privrisk_ledger.events TO pipeline;" in made.stdout) == (place.kind == "postgresql")


@pytest.mark.parametrize("command", ["reserve", "create"])
def test_ledger_file_made_in_the_vault_marks_the_vault(policy: Path, tmp_path: Path, command: str):
    made = privrisk(command, policy, f"--set=ledger.url=sqlite:///{tmp_path}/vault/ledger.db")
    assert made.exit_code == 0, made.stderr
    assert (tmp_path / "vault" / "ledger.db").is_file()
    DirectoryVault(tmp_path / "vault").check()


def test_reserve_in_a_vault_of_another_program_is_refused_and_charges_nothing(policy: Path, tmp_path: Path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "thesis.txt").write_text("x")
    refused = privrisk("reserve", policy, f"--set=ledger.url=sqlite:///{tmp_path}/vault/ledger.db")
    assert refused.exit_code == 2
    assert "output.vault: has other content" in " ".join(refused.stderr.split())
    assert [path.name for path in (tmp_path / "vault").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "either a policy file"),
        (["show", "{policy}", "--url", "sqlite:///x.db"], "either a policy file"),
        (["show", "{policy}", "--lineage", "x"], "a policy names its lineage itself"),
        (["show", "--url", "sqlite:///x.db", "--set", "a=b"], "changes a policy"),
        (["show", "--url", "hunter2.db"], "ledger.url must start with"),
        (["plan", "{policy}", "--run-id", "a/b"], "--run-id: must be 1 to 128"),
        (["plan", "{policy}", "--set", "guarantee.crowd=12"], "guarantee.crowd: must be at least"),
        (["plan", "{policy}", "--set", "guarantee.schemes=[[9, 1]]"], "exceeds the height"),
        (["plan", "{policy}", "--set", "columns.zip.hierarchy.flat.values=[]"], "columns.zip.hierarchy"),
        (["plan", "nowhere.yaml"], "there is no policy file"),
        (["plan", "{policy}", "--date", "tomorrow"], "--date"),
    ],
)
def test_mistakes_end_with_2(file: InFile, tmp_path: Path, arguments: list[str], message: str):
    document = copy.deepcopy(COSTED)
    document["ledger"]["url"] = file.url
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    result = privrisk(*(str(policy) if argument == "{policy}" else argument for argument in arguments))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "hunter2" not in result.stderr
    assert not file.exists()


def test_a_policy_without_a_budget_is_told_so(tmp_path: Path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(RISK, sort_keys=False, default_flow_style=False))
    for command in (["plan"], ["show"], ["reserve"], ["void", "--run-id", "r", "--reason", "x"]):
        result = privrisk(command[0], policy, *command[1:])
        assert result.exit_code == 2
        assert "only guarantee.kind 'dp' spends a budget" in result.stderr


def test_a_server_that_is_down_ends_with_3(tmp_path: Path):
    document = copy.deepcopy(COSTED)
    document["ledger"]["url"] = "postgresql+psycopg://owner:hunter2@127.0.0.1:1/d"
    pytest.importorskip("psycopg")
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    for command in ("plan", "show", "reserve", "create"):
        result = privrisk(command, policy)
        assert result.exit_code == 3
        assert "nothing listens there" in result.stderr
        assert "hunter2" not in result.stderr + result.stdout


def test_a_bug_ends_with_3_and_names_a_line_but_no_text(policy: Path, monkeypatch: pytest.MonkeyPatch, place: Place):
    def fail(*_: object, **__: object) -> None:
        raise ValueError("hunter2")

    monkeypatch.setattr(budget, "forecast", fail)
    result = privrisk("plan", policy)
    assert result.exit_code == 3
    assert "ValueError where none was expected. At " in result.stderr
    assert re.search(r"test_ledger.py:\d+ fail$", result.stderr.strip())
    assert "hunter2" not in result.stderr


@pytest.mark.spark
def test_the_cost_is_that_of_the_pipeline(tmp_path: Path):
    """What a release reserves, with hierarchies as Spark's stage builds them: digests must agree to the last bit."""
    table = pytest.importorskip("privrisk_spark.tables.opening")
    from privrisk_spark.planning.calibration import mechanism
    from privrisk_spark.planning.cost import cost_of

    policy = parse(COSTED)
    hierarchies = table.hierarchies_from_policy(policy)
    plan = mechanism(policy, hierarchies)
    asked = cost_of(policy, plan, "r", plan.digest(policy, hierarchies), date=DAY)
    assert run_cost(policy, "r", DAY) == asked


def test_the_commands_need_no_spark(file: InFile, tmp_path: Path):
    document = copy.deepcopy(COSTED)
    document["ledger"]["url"] = file.url
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'great_expectations'): sys.modules[name] = None\n"
        "from privrisk_spark.cli.app import main\nmain()\n"
    )
    for command in ("plan", "reserve", "show"):
        done = subprocess.run(
            [sys.executable, "-c", program, "ledger", command, str(policy)],
            check=False, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
