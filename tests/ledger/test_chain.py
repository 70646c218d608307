"""The events of a lineage are chained by hash: what was rewritten, removed or put in is not believed, by its number."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from ledgers import InFile, OnServer, bind, publish, reserve

from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.ledger.chain import first_link, link
from privrisk_spark.ledger.ledger import Ledger, Reservation

Place = InFile | OnServer


def rows(place: Place, lineage: str = "adult") -> list[dict[str, Any]]:
    if isinstance(place, InFile):
        names = [row[1] for row in place.run("PRAGMA table_info(events)")]
    else:
        names = [row[0] for row in place.run(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'privrisk_ledger' "
            "AND table_name = 'events' ORDER BY ordinal_position"
        )]  # fmt: skip
    found = place.run(f"SELECT {', '.join(names)} FROM events WHERE lineage = '{lineage}' ORDER BY sequence")
    return [dict(zip(names, row, strict=True)) for row in found]


def naive(events: list[dict[str, Any]]) -> list[str]:
    """The chain, written down a second time."""

    def sha256(document: object) -> str:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    hashes = [sha256(["privrisk ledger, events of the lineage", events[0]["lineage"]])]
    for event in events:
        content = {k: v for k, v in event.items() if v is not None and k not in ("chain", "sequence")}
        content["nothing_left_the_zone"] = event["nothing_left_the_zone"] in (1, True)
        hashes.append(sha256([hashes[-1], content]))
    return hashes[1:]


def test_each_hash_covers_its_event_and_the_hash_before_it(ledger: Ledger, place: Place):
    reserve(ledger, asked={"policy": "ä"}, table="t")
    reserve(ledger, lineage="another")
    made = publish(ledger)
    events = rows(place)
    assert [event["chain"] for event in events] == naive(events)
    assert (made.events, made.head) == (4, events[-1]["chain"])
    assert reserve(ledger, asked={"policy": "ä"}, table="t").head == made.head
    again = reserve(ledger, "r2")
    assert (again.events, again.head) == (5, rows(place)[-1]["chain"])
    void = ledger.void(lineage="adult", run_id="r2", reason="x", nothing_left_the_zone=True)
    assert void.spent_epsilon == 1
    assert [event["chain"] for event in rows(place)] == naive(rows(place))


def test_every_column_of_an_event_is_covered(ledger: Ledger, place: Place):
    reserve(ledger, table="t")
    publish(ledger)
    for event in rows(place):
        usual = link("p", event)
        for name, value in event.items():
            if name in ("sequence", "chain"):
                continue
            other = (not value) if name == "nothing_left_the_zone" else f"{value}x"
            assert link("p", {**event, name: other}) != usual, name
        assert link("q", event) != usual
    assert first_link("a") != first_link("b")


@pytest.mark.parametrize(
    ("change", "event"),
    [
        ("UPDATE events SET created_at = 'then' WHERE sequence = 3", 3),
        ("UPDATE events SET reason = 'another' WHERE sequence = 6", 6),
        ("UPDATE events SET place = '/elsewhere' WHERE sequence = 2", 2),
        ("UPDATE events SET key_commitment = 'another' WHERE sequence = 2", 2),
        ("UPDATE events SET chain = NULL WHERE sequence = 4", 4),
        ("UPDATE events SET chain = repeat_('0') WHERE sequence = 4", 4),
    ],
)
def test_an_event_that_was_rewritten_is_named_by_its_number(ledger: Ledger, place: Place, change: str, event: int):
    reserve(ledger)
    publish(ledger)
    reserve(ledger, "r2")
    ledger.void(lineage="adult", run_id="r2", reason="x")
    place.tamper(change.replace("repeat_('0')", f"'{'0' * 64}'"))
    with pytest.raises(EngineError, match=f"event {event} of the ledger is not what was written"):
        ledger.balance("adult")
    with pytest.raises(EngineError, match=f"event {event} of the ledger"):
        reserve(ledger, "r3")
    accounts, broken = ledger.histories()
    assert (accounts, broken["adult"].event) == ({}, event)


def test_a_chain_that_was_taken_away_whole_is_not_believed(ledger: Ledger, place: Place):
    reserve(ledger, table="t")
    publish(ledger)
    place.tamper("UPDATE events SET chain = NULL")
    with pytest.raises(EngineError, match="event 1 of the ledger is not what was written"):
        ledger.balance("adult")


def test_a_lineage_that_is_whole_is_told_beside_one_that_is_broken(ledger: Ledger, place: Place):
    reserve(ledger)
    reserve(ledger, lineage="another")
    place.tamper("UPDATE events SET created_at = 'then' WHERE lineage = 'adult'")
    accounts, broken = ledger.histories()
    assert (list(accounts), list(broken)) == (["another"], ["adult"])


# ------------------------------------------------------------------------------------------------ names of lineages


@pytest.mark.parametrize("name", ["Adult", " adult ", "ADULT", "aDULT  "])
def test_spellings_of_a_lineage_are_one_account(ledger: Ledger, name: str):
    reserve(ledger, epsilon="3")
    with pytest.raises(BudgetError, match="left 1"):
        reserve(ledger, "r2", epsilon="2", lineage=name)
    assert ledger.balance(name).spent_epsilon == 3
    assert ledger.lineages() == ("adult",)
    assert bind(ledger).place == "/out"


def test_composed_and_decomposed_letters_are_one_name(ledger: Ledger):
    reserve(ledger, lineage="Mu\u0308nchen", epsilon="3")
    assert ledger.lineages() == ("m\u00fcnchen",)
    assert ledger.balance("M\u00dcNCHEN").spent_epsilon == 3


def test_a_name_of_nothing_but_space_is_refused(ledger: Ledger):
    with pytest.raises(InputError, match="lineage must be"):
        reserve(ledger, lineage="\u2003")


# -------------------------------------------------------------------------------------------- the table of a lineage


def test_a_lineage_is_of_the_table_it_was_first_used_for(ledger: Ledger):
    reserve(ledger, table="one")
    assert reserve(ledger, "r2", table="one").fresh
    assert not reserve(ledger, table="one").fresh
    for act in (lambda: reserve(ledger, "r3", table="two"), lambda: note(ledger, "n", table="two")):
        with pytest.raises(BudgetError, match=r"ledger.lineage adult is of another table than the policy's"):
            act()
    assert ledger.balance("adult").spent_epsilon == 2
    ledger.move(lineage="Adult", table="two", reason="a new bucket")
    ledger.move(lineage="adult", table="two", reason="again")
    assert reserve(ledger, "r3", table="two").events == 4
    assert reserve(ledger, "r4", table="one").fresh, "it may lie at both"


def test_a_lineage_without_a_table_cannot_be_moved(ledger: Ledger, place: Place):
    with pytest.raises(BudgetError, match="not bound to a table yet"):
        ledger.move(lineage="adult", table="two", reason="x")
    assert not place.exists()


# ----------------------------------------------------------------------------------------- releases without a charge


def note(ledger: Ledger, run_id: str = "n1", **other: Any) -> Reservation:
    return ledger.note(**{"lineage": "adult", "run_id": run_id, "what": "risk", "place": "/out"} | other)


def test_a_release_that_is_not_private_is_noted_and_costs_nothing(ledger: Ledger, place: Place):
    reserve(ledger, epsilon="4")
    note(ledger)
    note(ledger)
    balance = ledger.balance("adult")
    assert [(run.run_id, run.state, run.counted, run.place) for run in balance.runs] == [
        ("r1", "reserved", True, None), ("n1", "noted", False, "/out")
    ]  # fmt: skip
    assert (balance.spent_epsilon, balance.cap_epsilon) == (4, 4)
    assert balance.runs[1].reason == "released with guarantee.kind 'risk', which no budget covers"
    assert len(rows(place)) == 2


def test_a_noted_run_is_no_charge_to_draw_by(ledger: Ledger):
    note(ledger)
    with pytest.raises(BudgetError, match="run id n1 is that of a release that is not private"):
        reserve(ledger, "n1")
    with pytest.raises(BudgetError, match="is not private"):
        bind(ledger, "n1")
    with pytest.raises(BudgetError, match="is not private"):
        ledger.void(lineage="adult", run_id="n1", reason="x")
    reserve(ledger)
    with pytest.raises(BudgetError, match=r"run id r1 of ledger.lineage adult is charged"):
        note(ledger, "r1")


def test_the_first_event_of_a_lineage_may_be_a_note(ledger: Ledger):
    note(ledger, table="one")
    assert ledger.balance("adult").spent_epsilon == 0
    with pytest.raises(BudgetError, match=r"of another table"):
        reserve(ledger, table="two")
    assert reserve(ledger, table="one").fresh
