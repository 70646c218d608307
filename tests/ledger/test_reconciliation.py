"""A ledger that was deleted, rolled back or cut still follows from itself; vaults and outputs know better."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ledgers import MECHANISM, InFile, OnServer, publish, reserve

from privrisk_spark.errors import BudgetError, CheckError, InputError
from privrisk_spark.ledger.chain import first_link, link
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.reconciliation import reconcile
from privrisk_spark.ledger.request import Request
from privrisk_spark.ledger.storage import events
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.witnesses import Witness, look, record_witness
from privrisk_spark.storage.documents import write_json

Place = InFile | OnServer


class Run:
    """A released run: its output, its vault, and its charge."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.root, self.ledger = root, ledger
        self.out, self.vault = (root / "out").resolve(), (root / "vault").resolve()
        for place in (self.out, self.vault):
            place.mkdir(parents=True, exist_ok=True)
        DirectoryVault(self.vault).claim()

    def charge(self, run_id: str, lineage: str = "adult", cap: str = "4") -> Charge:
        request = Request(
            lineage=lineage, run_id=run_id, epsilon="1", delta="1e-9", cap_epsilon=cap, cap_delta="1e-7",
            mechanism=MECHANISM,
        )  # fmt: skip

        def witness(made: Any) -> None:
            cost = str(made.epsilon), str(made.delta)
            record_witness(
                DirectoryVault(self.vault),
                Witness(made.lineage, made.run_id, str(self.out), made.events, made.head, *cost),
            )

        keys = VaultKey(self.vault, run_id)
        return Charge(self.ledger, request, str(self.out), keys, look(self.out, self.vault), witness)

    def release(self, run_id: str, lineage: str = "adult") -> None:
        charge = self.charge(run_id, lineage)
        charge.begin(charge.reserve())
        charge.pin("s")
        cost = {"accounting": {"basic": {"epsilon": "1", "delta": "1E-9"}}}
        manifest = {"run_id": run_id, "guarantee": {"kind": "dp", "parameters": cost}, "lineage": lineage}

        def show() -> None:
            (self.out / "releases" / run_id).mkdir(parents=True)
            write_json(self.out / "releases" / run_id / "manifest.json", manifest)

        charge.publish(release_digest(manifest), show)

    def findings(self) -> list[tuple[str, str]]:
        accounts, _ = self.ledger.histories()
        seen, places = look(self.out, self.vault), [str(self.out), str(self.vault)]
        return [(one.kind, one.run_id) for one in reconcile(accounts, seen, places)]


@pytest.fixture
def run(tmp_path: Path, ledger: Ledger) -> Run:
    return Run(tmp_path / "run", ledger)


def forget(place: Place, events: str) -> None:
    """Cut events off the end, as a backup that is restored does; what is left follows from itself."""
    place.tamper(f"DELETE FROM events WHERE {events}")


def remove(place: Place) -> None:
    if isinstance(place, InFile):
        place.path.unlink()
    else:
        place.remove()


def test_a_ledger_that_holds_all_is_agreed_with(run: Run):
    run.release("r1")
    run.release("r2")
    assert run.findings() == []
    assert run.charge("r3").reserve().fresh


@pytest.mark.parametrize("events", ["sequence > 4", "sequence > 5", "sequence > 7"])
def test_a_ledger_that_was_cut_is_not_spent_by(run: Run, place: Place, ledger: Ledger, events: str):
    run.release("r1")
    run.release("r2")
    forget(place, events)
    ledger.balance("adult")
    with pytest.raises(BudgetError, match=r"output.vault knows event 8 of it, from run id r2, and the ledger does not"):
        run.charge("r3").reserve()
    assert ("rolled back", "r2") in run.findings()
    assert ("rolled back", "r1") not in run.findings()


def test_a_cut_ledger_that_went_on_with_other_runs_is_not_spent_by(run: Run, place: Place, ledger: Ledger):
    """As many events as before, and another end."""
    run.release("r1")
    run.release("r2")
    forget(place, "sequence > 4")
    reserve(ledger, "other")
    publish(ledger, "other")
    with pytest.raises(BudgetError, match="event 8 of it, from run id r2"):
        run.charge("r3").reserve()
    # Without a place that its release is missing from, a charge is not told.
    assert run.findings() == [("rolled back", "r2"), ("unknown", "r2")]


def test_a_ledger_that_was_deleted_is_not_begun_again(run: Run, place: Place):
    run.release("r1")
    remove(place)
    for _ in range(2):
        with pytest.raises(BudgetError, match="knows event 4 of it, from run id r1"):
            run.charge("r2").reserve()
    assert run.ledger.lineages() == ()
    assert run.findings() == [("rolled back", "r1"), ("unknown", "r1")]


def test_a_release_is_known_by_its_output_when_the_vault_is_lost(run: Run, place: Place):
    run.release("r1")
    for file in (run.vault / "charges").iterdir():
        file.unlink()
    assert run.charge("r2").reserve().fresh
    remove(place)
    with pytest.raises(BudgetError, match="private release of run id r1, whose charge the ledger does not know"):
        run.charge("r2").reserve()
    assert run.findings() == [("unknown", "r1")]


def test_releases_of_other_lineages_stand_in_nobodys_way(run: Run, place: Place):
    run.release("r1", lineage="another")
    forget(place, "lineage = 'another'")
    assert run.charge("r2").reserve().fresh
    with pytest.raises(BudgetError, match="knows event 4 of it, from run id r1"):
        run.charge("r3", lineage="Another").reserve()


def test_the_vault_knows_of_a_run_before_anything_is_read_and_of_its_commit_before_anything_is_visible(run: Run):
    charge = run.charge("r1")
    charge.begin(charge.reserve())
    (witness,) = look(run.vault).witnesses
    assert (witness.run_id, witness.events) == ("r1", 2)
    charge.pin("s")

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        charge.publish("d", stop)
    (witness,) = look(run.vault).witnesses
    (account,) = run.ledger.histories()[0].values()
    assert (witness.events, witness.head) == (4, account.head)
    assert (witness.lineage, witness.place) == ("adult", str(run.out))


def test_charges_without_a_release_are_told_and_contradict_nothing(run: Run, ledger: Ledger):
    run.release("r1")
    charge = run.charge("r2")
    charge.begin(charge.reserve())
    reserve(ledger, "r3")
    ledger.void(lineage="adult", run_id="r3", reason="x")
    ledger.note(lineage="adult", run_id="n", what="risk", place=str(run.out))
    elsewhere = Run(run.root / "elsewhere", ledger)
    elsewhere.release("r4")
    assert run.findings() == [("without a release", "r2")]
    (told,) = reconcile(ledger.histories()[0], look(run.out), [str(run.out)])
    assert not told.contradicts
    assert "Run it again under its run id, which costs nothing, or void it." in told.what


def test_a_release_that_is_not_the_committed_one_is_told(run: Run):
    run.release("r1")
    file = run.out / "releases" / "r1" / "manifest.json"
    write_json(file, {**json.loads(file.read_text()), "rows": 1})
    assert run.findings() == [("another release", "r1")]


def test_a_release_of_a_voided_run_is_told(run: Run, ledger: Ledger):
    reserve(ledger)
    ledger.void(lineage="adult", run_id="r1", reason="x", nothing_left_the_zone=True)
    (run.out / "releases" / "r1").mkdir(parents=True)
    write_json(run.out / "releases" / "r1" / "manifest.json", {"run_id": "r1", "guarantee": {"kind": "dp"}})
    assert run.findings() == [("another release", "r1")]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"lineage": "adult"}'])
def test_a_damaged_witness_is_no_missing_one(run: Run, content: str):
    run.release("r1")
    (file,) = (run.vault / "charges").iterdir()
    file.write_text(content)
    with pytest.raises(CheckError, match="is damaged"):
        run.charge("r2")


def test_what_the_vault_keeps_is_for_its_owner(run: Run):
    run.release("r1")
    (file,) = (run.vault / "charges").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "head" not in (run.out / "releases" / "r1" / "manifest.json").read_text()


# ---------------------------------------------------------------------------------------------- what every writer sees


def asked(run: Run) -> dict[str, Any]:
    return {"lineage": "adult", "seen": look(run.out, run.vault)}


@pytest.mark.parametrize("statement", ["sequence > 4", "sequence > 1", "sequence > 0", None])
def test_nothing_at_all_is_written_to_a_ledger_that_has_forgotten(
    run: Run, place: Place, ledger: Ledger, statement: str | None
):
    run.release("r1")
    run.release("r2")
    if statement is None:
        remove(place)
    else:
        forget(place, statement)
    note = {"run_id": "n1", "what": "risk", "place": str(run.out)}
    for act in (
        lambda: ledger.void(run_id="r1", reason="x", nothing_left_the_zone=True, **asked(run)),
        lambda: ledger.void(run_id="r2", reason="x", **asked(run)),
        lambda: ledger.note(**note, **asked(run)),
        lambda: ledger.would_note(**note, **asked(run)),
        lambda: ledger.move(table="two", reason="x", beside=["census"], **asked(run)),
    ):
        with pytest.raises(BudgetError, match="was deleted, cut, rolled back or replaced"):
            act()
    left = 0 if statement is None else int(statement[-1])
    assert left == 0 or len(place.run("SELECT sequence FROM events")) == left
    if statement is None:
        assert not ledger.lineages()


def test_a_note_leaves_what_a_charge_leaves(run: Run, place: Place, ledger: Ledger):
    noted = ledger.note(lineage="adult", run_id="n1", what="risk", place=str(run.out))
    record_witness(DirectoryVault(run.vault), Witness("adult", "n1", str(run.out), noted.events, noted.head, "0", "0"))
    assert run.findings() == []
    remove(place)
    with pytest.raises(BudgetError, match=r"output.vault knows event 1 of it, from run id n1"):
        run.charge("r1").reserve()


# ---------------------------------------------------------------------------------------------- what is lost for good


def accept(run: Run, lineage: str = "adult") -> list[tuple[str, float, bool]]:
    found = run.ledger.accept(lineage=lineage, reason="the disk burnt", seen=look(run.out, run.vault))
    return [(one.run_id, float(one.cost[0]), one.known) for one in found]


@pytest.mark.parametrize("lost", ["vault", "lineage", "nothing"])
def test_a_lost_ledger_goes_on_by_statement_charged_for_what_is_published(run: Run, place: Place, lost: str):
    """Without the vault, and where no manifest names its lineage, there was no way to go on."""
    run.release("r1")
    run.release("r2", "census")
    run.release("r3")
    remove(place)
    of = {"r1": "adult", "r2": "census", "r3": "adult"}
    for name, lineage in of.items():
        cost = {"accounting": {"basic": {"epsilon": "1.5", "delta": "1E-9"}}}
        manifest = {"run_id": name, "guarantee": {"kind": "dp", "parameters": cost}}
        if lost != "lineage":
            manifest["lineage"] = lineage
        write_json(run.out / "releases" / name / "manifest.json", manifest)
    if lost != "nothing":
        shutil.rmtree(run.vault)
    with pytest.raises(BudgetError, match=r"'privrisk ledger reconcile --accept' charges again"):
        run.charge("r4").reserve()
    # Whose lineage nobody knows is this one's: by the statement that is made.
    mine = ["r1", "r2", "r3"] if lost == "lineage" else ["r1", "r3"]
    assert accept(run) == [(name, 1.5, True) for name in mine]
    assert accept(run) == [], "once"
    balance = run.ledger.balance("adult")
    assert [(one.run_id, one.state, one.counted, one.reason) for one in balance.runs] == [
        (name, "accepted", True, "the disk burnt") for name in mine
    ]
    assert balance.spent_epsilon == sum(Decimal("1.5") for _ in mine)
    assert [one.state for one in balance.statements] == ["accepted"] * len(mine)
    run.vault.mkdir(exist_ok=True)
    if lost == "lineage":
        with pytest.raises(BudgetError, match=r"asked 1, spent 4.5, cap 4, left 0"):
            run.charge("r4").reserve()
    else:
        assert run.charge("r4").reserve().spent_epsilon == 4
    with pytest.raises(BudgetError, match="run id r1 was accepted into the ledger after its own events were lost"):
        run.charge("r1").reserve()
    kinds = {kind for kind, _ in run.findings()} - {"without a release"}
    assert kinds == {"nothing": {"rolled back", "unknown", "accepted"}, "vault": {"unknown"}, "lineage": set()}[lost]
    if lost != "lineage":
        assert accept(run, "census") == [("r2", 1.5, True)]
        assert not {kind for kind, _ in run.findings()} & {"rolled back", "unknown"}


def test_a_release_whose_run_was_accepted_is_found_again_and_not_made_anew(run: Run, place: Place):
    run.release("r1")
    remove(place)
    accept(run)
    charge = run.charge("r1")
    charge.confirm(release_digest(json.loads((run.out / "releases" / "r1" / "manifest.json").read_text())))
    with pytest.raises(BudgetError, match="was changed after publication"):
        charge.confirm("another")
    for act in (
        lambda: run.ledger.bind(lineage="adult", run_id="r1", key="k", place=str(run.out)),
        lambda: run.ledger.pin(lineage="adult", run_id="r1", snapshot="s"),
        lambda: run.ledger.commit(lineage="adult", run_id="r1", release="d"),
        lambda: run.ledger.void(lineage="adult", run_id="r1", reason="x", nothing_left_the_zone=True),
    ):
        with pytest.raises(BudgetError, match="was accepted into the ledger"):
            act()


def test_a_ledger_that_was_cut_goes_on_and_charges_nothing_twice(run: Run, place: Place):
    """r1 is whole, r2 still reserved in what is left, r3 forgotten."""
    for name in ("r1", "r2", "r3"):
        run.release(name)
    forget(place, "sequence > 5")
    assert accept(run) == [("r2", 0, True), ("r3", 1, True)]
    balance = run.ledger.balance("adult")
    assert balance.spent_epsilon == 3
    assert [(one.run_id, one.state) for one in balance.runs][:2] == [("r1", "committed"), ("r2", "reserved")]
    assert run.charge("r4").reserve().spent_epsilon == 4


def test_a_run_that_published_nothing_is_charged_as_its_vault_knows(run: Run, place: Place):
    charge = run.charge("r1")
    charge.begin(charge.reserve())
    record_witness(
        DirectoryVault(run.vault), Witness("adult", "r2", str(run.out), 9, "ab" * 32)
    )  # an earlier version told no cost
    remove(place)
    assert accept(run) == [("r1", 1, True), ("r2", 0, False)]
    assert run.ledger.balance("adult").spent_epsilon == 1


def test_what_was_given_back_for_a_release_is_charged_again(run: Run, place: Place, ledger: Ledger):
    run.release("r1")
    forget(place, "sequence > 1")
    ledger.void(lineage="adult", run_id="r1", reason="by a program that did not look", nothing_left_the_zone=True)
    assert accept(run) == [("r1", 1, True)]
    assert accept(run) == []
    assert ledger.balance("adult").spent_epsilon == 1
    assert {kind for kind, _ in run.findings()} == {"accepted"}


def test_what_is_accepted_above_the_cap_refuses_everything(run: Run, place: Place):
    for name in ("r1", "r2", "r3", "r4"):
        run.release(name)
    (run.vault / "charges").rename(run.vault / "kept")
    remove(place)
    charge = run.charge("r5", cap="2")
    with pytest.raises(BudgetError, match="holds the private release of run id r1"):
        charge.reserve()
    (run.vault / "kept").rename(run.vault / "charges")
    accept(run)
    with pytest.raises(BudgetError, match="asked 1, spent 4, cap 2, left 0"):
        charge.reserve()


def test_a_manifest_without_its_cost_is_not_accepted_for_nothing(run: Run, place: Place):
    run.release("r1")
    manifest = {"run_id": "r1", "guarantee": {"kind": "dp"}}
    write_json(run.out / "releases" / "r1" / "manifest.json", manifest)
    remove(place)
    with pytest.raises(InputError, match=r"manifest of run id r1 at .* does not say what the release costs"):
        accept(run)
    assert run.ledger.balance("adult").runs == ()


def test_runs_of_one_id_in_two_lineages_are_told_apart_by_the_manifest(run: Run):
    """Both were begun for one place, and one published: what the vault has of others says nothing of it."""
    for lineage in ("births", "census"):
        begun = run.charge("r1", lineage)
        begun.begin(begun.reserve())
    run.release("r1")
    assert [kind for kind, _ in run.findings()] == []


@pytest.mark.parametrize("name", ["a\u200bb", "", 7, {"x": 1}])
def test_a_manifest_whose_lineage_is_no_name_hides_no_release(run: Run, place: Place, name: object):
    run.release("r1")
    shutil.rmtree(run.vault)
    file = run.out / "releases" / "r1" / "manifest.json"
    write_json(file, json.loads(file.read_text()) | {"lineage": name})
    remove(place)
    run.vault.mkdir()
    with pytest.raises(BudgetError, match="holds the private release of run id r1"):
        run.charge("r2").reserve()


@pytest.mark.parametrize(("column", "less"), [("epsilon", "0.001"), ("delta", "1E-12")])
def test_reconcile_of_a_ledger_with_another_cost_than_the_manifest_contradicts(
    run: Run, place: Place, ledger: Ledger, column: str, less: str
):
    """Whoever can write the ledger can recompute its chain; what is published still states its cost."""
    run.release("r1")
    assert run.findings() == []
    shutil.rmtree(run.vault / "charges")
    total = f"spent_{column}_after"
    place.tamper(f"UPDATE events SET {column} = '{less}', {total} = '{less}'")
    place.tamper(f"UPDATE events SET spent_{column}_before = '{less}' WHERE state <> 'reserved'")
    rechain(place)
    assert str(getattr(ledger.balance("adult"), f"spent_{column}")) == less, "the ledger follows from itself"
    assert run.findings() == [("another cost", "r1")]
    with pytest.raises(BudgetError, match=r"run id r1: the manifest of the published release states epsilon 1 and"):
        run.charge("r2").reserve()


def test_reconcile_of_a_manifest_without_its_cost_contradicts(run: Run, place: Place):
    run.release("r1")
    file = run.out / "releases" / "r1" / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["guarantee"]["parameters"]
    write_json(file, manifest)
    place.tamper(f"UPDATE events SET release_digest = '{release_digest(manifest)}' WHERE state = 'committed'")
    rechain(place)
    shutil.rmtree(run.vault / "charges")
    assert run.findings() == [("another cost", "r1")]


def rechain(place: Place) -> None:
    """Give every event of the ledger the hash that follows from what it is now."""
    names = [column.name for column in events.columns]
    head = first_link("adult")
    for row in place.run(f"SELECT {', '.join(names)} FROM events ORDER BY sequence"):
        event = dict(zip(names, row, strict=True))
        head = link(head, event)
        place.tamper(f"UPDATE events SET chain = '{head}' WHERE sequence = {event['sequence']}")
