"""A ledger that let a note bind the cap and said nothing of what it protects: it opens and goes on by today's rules."""

from __future__ import annotations

import pytest
from ledgers import InFile, OnServer, publish, reserve

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger import sqlite
from privrisk_spark.ledger.account import replay
from privrisk_spark.ledger.chain import first_link, link
from privrisk_spark.ledger.ledger import Ledger

Place = InFile | OnServer


@pytest.fixture
def old(place: Place, ledger: Ledger) -> Place:
    """n1 is noted, under a cap, r1 committed, r2 reserved; then what schema 5 added is taken away."""
    ledger.note(lineage="adult", run_id="n1", what="risk", place="/out", table="one")
    rewrite(place, "UPDATE events SET cap_epsilon = '2', cap_delta = '1e-8' WHERE run_id = 'n1'")
    reserve(ledger, table="one")
    publish(ledger)
    reserve(ledger, "r2", table="one")
    if isinstance(place, InFile):
        place.run(
            "DROP TRIGGER events_no_replace",
            "ALTER TABLE events DROP COLUMN unit",
            sqlite._triggers(4)["events_no_replace"],
            "PRAGMA user_version = 4",
        )
    else:
        place.run(
            "ALTER TABLE events DROP COLUMN unit",
            "ALTER TABLE schema_version DISABLE TRIGGER schema_version_append_only",
            "UPDATE schema_version SET version = 4",
            "ALTER TABLE schema_version ENABLE ALWAYS TRIGGER schema_version_append_only",
        )
    return place


def rewrite(place: Place, change: str) -> None:
    """Change the first event as an earlier version would have written it: with its hash."""
    place.tamper(change)
    names = [row[0] for row in place.run("SELECT name FROM pragma_table_info('events')")] if isinstance(
        place, InFile
    ) else [row[0] for row in place.run(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'privrisk_ledger' "
        "AND table_name = 'events'"
    )]  # fmt: skip
    (row,) = place.run(f"SELECT {', '.join(names)} FROM events")
    event = dict(zip(names, row, strict=True))
    place.tamper(f"UPDATE events SET chain = '{link(first_link('adult'), event)}'")
    assert replay("adult", [event | {"chain": link(first_link("adult"), event)}]).cap_epsilon is None


def test_it_is_read_as_it_is_and_brought_up_to_date_by_the_first_writing(old: Place, ledger: Ledger):
    balance = ledger.balance("adult")
    assert [(run.run_id, run.state) for run in balance.runs] == [
        ("n1", "noted"), ("r1", "committed"), ("r2", "reserved")
    ]  # fmt: skip
    assert balance.cap_epsilon == 4, "the cap of the first charge, not that of a note"
    events = old.run("SELECT run_id, state, chain FROM events ORDER BY sequence")
    with pytest.raises(BudgetError, match="that of the lineage 'adult'"):
        ledger.would_cost(
            lineage="twice", run_id="r1", epsilon="1", delta="0", cap_epsilon="1", cap_delta="0", mechanism={},
            table="one",
        )  # fmt: skip
    ledger.create()
    assert reserve(ledger, "r3", table="one", unit="row").spent_epsilon == 3
    assert old.run("SELECT run_id, state, chain FROM events ORDER BY sequence")[:6] == events
    assert publish(ledger, "r2").state == "committed"
    with pytest.raises(BudgetError, match="protects 'row'"):
        reserve(ledger, "r4", unit="person id")
