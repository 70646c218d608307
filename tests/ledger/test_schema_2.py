"""A ledger whose events have no hashes: it opens, goes on as it is, and its old events are covered by the new ones."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ledgers import InFile, OnServer, bind, commit, pin, reserve

from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger.ledger import Ledger

Place = InFile | OnServer
HERE = Path(__file__).parent


def write_old(place: Place, lineage: str = "adult") -> None:
    """Of run ids r1 is committed, r2 bound, r3 voided and given back."""
    if isinstance(place, InFile):
        place.path.parent.mkdir(parents=True)
        os.close(os.open(place.path, os.O_CREAT, 0o600))
        with sqlite3.connect(place.path) as connection:
            text = (HERE / "schema_2_sqlite.sql").read_text()
            connection.executescript(text.replace("'adult'", f"'{lineage}'"))
        connection.close()
    else:
        text = (HERE / "schema_2_postgresql.sql").read_text().replace("'adult'", f"'{lineage}'")
        place.run(*text.split("\n--\n")[1:])


@pytest.fixture
def old(place: Place) -> Place:
    write_old(place)
    return place


def content(place: Place, columns: str) -> list[tuple[Any, ...]]:
    return place.run(f"SELECT {columns} FROM events ORDER BY sequence")


COLUMNS = (
    "sequence, lineage, run_id, state, epsilon, mechanism, asked, key_commitment, place, release_digest, created_at"
)


def test_it_is_read_as_it_is_and_brought_up_to_date_by_the_first_writing(old: Place, ledger: Ledger):
    before, whole = old.content(), content(old, COLUMNS)
    assert [run.state for run in ledger.balance("adult").runs] == ["committed", "bound", "void"]
    assert ledger.balance("adult").spent_epsilon == 2
    assert old.content() == before
    ledger.create()
    made = reserve(ledger, "r4")
    assert (made.fresh, made.events) == (True, 9)
    assert content(old, COLUMNS)[:8] == whole
    assert [row[0] is None for row in content(old, "chain")] == [True] * 8 + [False]
    assert not reserve(ledger, "r2", asked={"policy": "p"}).fresh
    bind(ledger, "r2")
    pin(ledger, "r2")
    assert commit(ledger, "r2").state == "committed", "a run that was begun under the old schema goes on"


def test_old_events_are_covered_by_the_first_new_one(old: Place, ledger: Ledger):
    ledger.create()
    reserve(ledger, "r4")
    old.tamper("UPDATE events SET place = '/elsewhere' WHERE state = 'bound' AND run_id = 'r1'")
    with pytest.raises(EngineError, match="event 9 of the ledger is not what was written"):
        ledger.balance("adult")


def test_a_lineage_keeps_its_spelling_and_is_found_by_every_other(place: Place, ledger: Ledger):
    write_old(place, "Adult")
    ledger.create()
    with pytest.raises(BudgetError, match="left 2"):
        reserve(ledger, "r4", epsilon="3")
    assert reserve(ledger, "r4").spent_epsilon == 3
    assert ledger.lineages() == ("Adult",)


def test_spellings_that_had_accounts_of_their_own_are_not_spent_by_any_more(place: Place, ledger: Ledger):
    if not isinstance(place, InFile):
        pytest.skip("the rule is the program's")
    write_old(place, "Adult")
    names = ", ".join(row[1] for row in place.run("PRAGMA table_info(events)") if row[1] not in ("sequence", "lineage"))
    place.run(f"INSERT INTO events (lineage, {names}) SELECT 'ADULT', {names} FROM events ORDER BY sequence")
    for name in ("adult", "Adult"):
        with pytest.raises(BudgetError, match=r"one name for several accounts, .*'ADULT', 'Adult'"):
            reserve(ledger, "r4", lineage=name)
    assert ledger.balance("Adult").spent_epsilon == 2, "each can still be looked at"
