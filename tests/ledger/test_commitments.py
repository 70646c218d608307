"""What a run is held to after its charge, on both databases: key and place, what was read, what is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ledgers import MECHANISM, InFile, OnServer, bind, commit, pin, publish, reserve

from privrisk_spark.errors import BudgetError, EngineError, InputError, InternalError, ReleasedError
from privrisk_spark.ledger.ledger import Ledger, Reservation
from privrisk_spark.ledger.request import Request

Place = InFile | OnServer

ASKED = {"columns.age": "a1", "date": "2026-11-01", "guarantee.epsilon": "e1"}


def request(run_id: str = "r1", **changes: Any) -> Request:
    amounts = {"epsilon": "1", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"}
    return Request(
        **{"lineage": "adult", "run_id": run_id, **amounts, "mechanism": MECHANISM, "asked": ASKED} | changes
    )


def test_every_step_may_be_taken_again_and_writes_nothing_then(ledger: Ledger, place: Place):
    steps: list[tuple[Callable[[], Any], str]] = [
        (lambda: ledger.reserve(request()), "reserved"),
        (lambda: bind(ledger), "bound"),
        (lambda: pin(ledger), "pinned"),
        (lambda: commit(ledger), "committed"),
    ]
    for number, (_, state) in enumerate(steps):
        for step, _ in steps[: number + 1]:
            step()
        made = steps[number][0]()
        assert (made.state, made.place, made.spent_epsilon) == (state, "/out" if number else None, 1)
        assert len(place.run("SELECT 1 FROM events")) == number + 1
    (run,) = ledger.balance("adult").runs
    assert (run.key, run.place, run.snapshot, run.release, run.asked) == ("k", "/out", "s", "d", ASKED)
    assert run.closed_at is not None


@pytest.mark.parametrize("later", [0, 1, 2])
def test_another_key_or_place_is_refused_from_the_first_on(ledger: Ledger, later: int):
    reserve(ledger)
    bind(ledger)
    for step in (pin, commit)[:later]:
        step(ledger)
    with pytest.raises(BudgetError, match="was begun with another release key"):
        bind(ledger, key="another")
    with pytest.raises(BudgetError, match=r"begun for output\.path '/out'.* Got '/elsewhere'"):
        bind(ledger, place="/elsewhere")
    with pytest.raises(BudgetError) as caught:
        bind(ledger, key="canary-commitment")
    assert "canary" not in str(caught.value)
    assert caught.value.exit_code == 1


def test_what_was_read_first_and_what_is_committed_bind(ledger: Ledger):
    reserve(ledger)
    bind(ledger)
    pin(ledger)
    with pytest.raises(BudgetError, match="The table changed since the run id 'r1' first read it"):
        pin(ledger, snapshot="t")
    commit(ledger)
    with pytest.raises(BudgetError, match="The table changed"):
        pin(ledger, snapshot="t")
    with pytest.raises(BudgetError, match="committed to another release"):
        commit(ledger, release="e")


def test_no_step_comes_before_the_one_before_it(ledger: Ledger, place: Place):
    """That would be a bug of ours, and it stops the run."""
    reserve(ledger)
    for step in (pin, commit):
        with pytest.raises(InternalError):
            step(ledger)
    bind(ledger)
    with pytest.raises(InternalError, match="before the ledger held what it read"):
        commit(ledger)
    assert len(place.run("SELECT 1 FROM events")) == 2


def test_a_void_ends_a_run_at_any_step(ledger: Ledger):
    for number, steps in enumerate(((), (bind,), (bind, pin))):
        run = f"v{number}"
        reserve(ledger, run)
        for step in steps:
            step(ledger, run)
        ledger.void(lineage="adult", run_id=run, reason="x")
        for step in (bind, pin, commit):
            with pytest.raises(BudgetError, match="was voided and cannot be"):
                step(ledger, run)
    reserve(ledger)
    publish(ledger)
    with pytest.raises(BudgetError, match="committed: what was published cannot be voided"):
        ledger.void(lineage="adult", run_id="r1", reason="x", nothing_left_the_zone=True)


def test_what_is_examined_is_the_run_as_the_ledger_knows_it(ledger: Ledger):
    reserve(ledger)
    bind(ledger, place="/where it is")
    seen = []

    def refuse(run: Any) -> None:
        seen.append(run.place)
        raise BudgetError("no")

    arguments = {"lineage": "adult", "run_id": "r1", "reason": "x", "nothing_left_the_zone": True}
    with pytest.raises(BudgetError, match="no"):
        ledger.void(**arguments, examine=refuse)
    assert seen == ["/where it is"]
    assert ledger.balance("adult").runs[0].state == "bound"
    assert ledger.void(**arguments, examine=lambda run: None).spent_epsilon == 0


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"asked": ASKED | {"columns.age": "a2"}}, "columns.age"),
        ({"asked": {**ASKED, "contents of columns.age.hierarchy.file": "h"}}, "contents of columns.age.hierarchy.file"),
        ({"asked": {"date": "2026-11-02"}}, "columns.age, date, guarantee.epsilon"),
        ({"mechanism": {**MECHANISM, "k": 32}}, "mechanism.k"),
        ({"epsilon": "2", "delta": "2e-9"}, "epsilon, delta"),
    ],
)
def test_a_request_that_differs_is_refused_by_name(ledger: Ledger, changed: dict[str, Any], names: str):
    ledger.reserve(request())
    for act in (ledger.reserve, ledger.would_cost):
        with pytest.raises(BudgetError, match="reserved with other parameters; use a new run id") as caught:
            act(request(**changed))
        assert str(caught.value).endswith(f"What differs: {names}.")
    publish(ledger)
    with pytest.raises(ReleasedError, match="is released already, with other parameters") as caught:
        ledger.confirm(request(**changed), place="/out", release="d")
    assert str(caught.value).endswith(f"What differs: {names}.")


def test_a_release_that_is_there_is_held_against_the_ledger(ledger: Ledger, place: Place):
    with pytest.raises(BudgetError, match=r"which ledger\.lineage adult does not know"):
        ledger.confirm(request(), place="/out", release="d")
    assert not place.exists(), "nothing is charged for a look"
    ledger.reserve(request("r0"))
    with pytest.raises(BudgetError, match=r"which ledger\.lineage adult does not know"):
        ledger.confirm(request(), place="/out", release="d")
    ledger.reserve(request())
    for step in (bind, pin):
        with pytest.raises(BudgetError, match="the ledger lacks what happened since"):
            ledger.confirm(request(), place="/out", release="d")
        step(ledger)
    commit(ledger)
    before = place.content()
    assert ledger.confirm(request(), place="/out", release="d").state == "committed"
    with pytest.raises(BudgetError, match="at '/out'; that at '/other' is another"):
        ledger.confirm(request(), place="/other", release="d")
    with pytest.raises(BudgetError, match="is not the one the ledger knows"):
        ledger.confirm(request(), place="/out", release="e")
    assert place.content() == before


def test_another_version_of_the_program_finds_the_release_but_does_not_draw(ledger: Ledger):
    old, new = ({"mechanism": {"digest": "d", "version": version}} for version in ("1", "2"))
    ledger.reserve(request(**old))
    with pytest.raises(BudgetError, match=r"What differs: mechanism\.version\."):
        ledger.reserve(request(**new))
    publish(ledger)
    assert ledger.confirm(request(**new), place="/out", release="d").state == "committed"


def test_a_voided_run_has_no_release(ledger: Ledger):
    ledger.reserve(request())
    ledger.void(lineage="adult", run_id="r1", reason="x")
    with pytest.raises(BudgetError, match="which was voided; withdraw it"):
        ledger.confirm(request(), place="/out", release="d")


@pytest.mark.parametrize("place_text", ["", "/a\nb", "/" + "x" * 4096])
def test_a_place_is_printable(ledger: Ledger, place_text: str):
    reserve(ledger)
    with pytest.raises(InputError, match=r"output\.path must be printable"):
        bind(ledger, place=place_text)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET place = NULL WHERE state = 'bound'",
        "UPDATE events SET key_commitment = NULL WHERE state = 'bound'",
        "UPDATE events SET snapshot = NULL WHERE state = 'pinned'",
        "UPDATE events SET snapshot = 't' WHERE state = 'pinned'",
        "UPDATE events SET release_digest = NULL WHERE state = 'committed'",
        "UPDATE events SET asked = NULL WHERE state = 'reserved'",
        "UPDATE events SET asked = 'x' WHERE state = 'reserved'",
        "DELETE FROM events WHERE state = 'pinned'",
    ],
)
def test_a_tampered_commitment_is_not_believed(ledger: Ledger, place: Place, change: str):
    reserve(ledger)
    publish(ledger)
    place.tamper(change)
    with pytest.raises(EngineError, match=r"event \d of the ledger (does not follow|is not what was written)"):
        ledger.balance("adult")


def withdraw(ledger: Ledger, run_id: str = "r1", **other: Any) -> Reservation:
    return ledger.withdraw(**{"lineage": "adult", "run_id": run_id, "reason": "x", "place": "/out"} | other)


def test_withdraw_keeps_the_charge_and_ends_the_run(ledger: Ledger, place: Place):
    reserve(ledger)
    for step in (bind, pin):
        with pytest.raises(BudgetError, match=r"so no release of it was published. Close it with"):
            withdraw(ledger)
        step(ledger)
    commit(ledger)
    with pytest.raises(BudgetError, match=r"was begun for output.path '/out'"):
        withdraw(ledger, place="/elsewhere")
    done = withdraw(ledger)
    assert (done.state, done.epsilon, done.spent_epsilon) == ("withdrawn", 1, 1)
    before = place.content()
    assert withdraw(ledger).head == done.head
    assert place.content() == before
    (run,) = ledger.balance("adult").runs
    assert (run.state, run.counted, run.release, run.reason) == ("withdrawn", True, "d", "x")
    with pytest.raises(BudgetError, match="the release of run id r1 was withdrawn"):
        reserve(ledger)
    assert reserve(ledger, "r2").spent_epsilon == 2


def test_withdraw_of_a_note_costs_nothing_and_of_a_void_run_is_refused(ledger: Ledger):
    ledger.note(lineage="adult", run_id="n1", what="risk", place="/out")
    assert withdraw(ledger, "n1").epsilon == 0
    assert [(run.state, run.counted) for run in ledger.balance("adult").runs] == [("withdrawn", False)]
    reserve(ledger)
    ledger.void(lineage="adult", run_id="r1", reason="x")
    with pytest.raises(BudgetError, match="run id r1 is void"):
        withdraw(ledger)
    with pytest.raises(BudgetError, match=r"run id r9 is not in ledger.lineage adult.*reconcile --accept"):
        withdraw(ledger, "r9")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET epsilon = '0' WHERE state = 'withdrawn'",
        "UPDATE events SET release_digest = 'e' WHERE state = 'withdrawn'",
        "UPDATE events SET reason = NULL WHERE state = 'withdrawn'",
        "DELETE FROM events WHERE state = 'committed'",
    ],
)
def test_withdraw_that_was_tampered_with_is_not_believed(ledger: Ledger, place: Place, change: str):
    reserve(ledger)
    publish(ledger)
    withdraw(ledger)
    place.tamper(change)
    with pytest.raises(EngineError, match="of the ledger"):
        ledger.balance("adult")
