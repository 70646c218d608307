"""A ledger that knows the sums alone: it opens, its events stay as they are, and the next charge may bind otherwise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from ledgers import InFile, OnServer, publish, reserve

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger import sqlite
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.losses import ReleaseEvents, Sampling

Place = InFile | OnServer
SAMPLED = ReleaseEvents(
    Sampling(1081074828, 32, Fraction("0.7"), Fraction("5e-10")), None, Fraction(0), Fraction(1), Fraction("1e-9")
)


@pytest.fixture
def old(place: Place, ledger: Ledger) -> Place:
    """r1 is committed, r2 reserved; then what schema 4 added is taken away."""
    reserve(ledger)
    publish(ledger)
    reserve(ledger, "r2")
    if isinstance(place, InFile):
        place.run(
            "DROP TRIGGER events_no_replace",
            "ALTER TABLE events DROP COLUMN composed_epsilon",
            "ALTER TABLE events DROP COLUMN unit",
            sqlite._triggers(3)["events_no_replace"],
            "PRAGMA user_version = 3",
        )
    else:
        place.run(
            "ALTER TABLE events DROP COLUMN composed_epsilon, DROP COLUMN unit",
            "ALTER TABLE events ADD CONSTRAINT events_within_cap CHECK (spent_epsilon_after::numeric <= "
            "cap_epsilon::numeric AND spent_delta_after::numeric <= cap_delta::numeric)",
            "ALTER TABLE schema_version DISABLE TRIGGER schema_version_append_only",
            "UPDATE schema_version SET version = 3",
            "ALTER TABLE schema_version ENABLE ALWAYS TRIGGER schema_version_append_only",
        )
    return place


def test_it_is_read_as_it_is_and_goes_on_by_either_accounting(old: Place, ledger: Ledger):
    before, balance = old.content(), ledger.balance("adult")
    assert [run.composed_epsilon for run in balance.runs] == [None, None]
    assert old.content() == before
    events = old.run("SELECT run_id, state, chain FROM events ORDER BY sequence")
    ledger.create()
    for name in ("r3", "r4", "r5"):
        made = reserve(ledger, name, losses=lambda mechanism: SAMPLED)
    assert made.spent_epsilon > made.cap_epsilon >= made.composed_epsilon
    assert old.run("SELECT run_id, state, chain FROM events ORDER BY sequence")[:5] == events
    assert publish(ledger, "r2").state == "committed"
    with pytest.raises(BudgetError, match="spent 5, cap 4, left 0"):
        reserve(ledger, "r6", epsilon="0.1")
