"""A ledger that was deleted, rolled back or cut still follows from itself; vaults and outputs know better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ledgers import MECHANISM, InFile, OnServer, publish, reserve

from privrisk_spark.errors import BudgetError, CheckError
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.reconciliation import reconcile
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.places import write_json
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.witnesses import Witness, look, record_witness

Place = InFile | OnServer


class Run:
    """A released run: its output, its vault, and its charge."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.root, self.ledger = root, ledger
        self.out, self.vault = (root / "out").resolve(), (root / "vault").resolve()
        for place in (self.out, self.vault):
            place.mkdir(parents=True, exist_ok=True)

    def charge(self, run_id: str, lineage: str = "adult") -> Charge:
        request: dict[str, Any] = {
            "lineage": lineage, "run_id": run_id, "epsilon": "1", "delta": "1e-9", "cap_epsilon": "4",
            "cap_delta": "1e-7", "mechanism": MECHANISM,
        }  # fmt: skip

        def witness(made: Any) -> None:
            record_witness(self.vault, Witness(made.lineage, made.run_id, str(self.out), made.events, made.head))

        keys = VaultKey(self.vault, run_id)
        return Charge(self.ledger, request, str(self.out), keys, look(self.out, self.vault), witness)

    def release(self, run_id: str, lineage: str = "adult") -> None:
        charge = self.charge(run_id, lineage)
        charge.begin(charge.reserve())
        charge.pin("s")
        manifest = {"run_id": run_id, "guarantee": {"kind": "dp"}}

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
    ledger.note(lineage="adult", run_id="n", what="risk", place=str(run.out), cap_epsilon="4", cap_delta="1e-7")
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
