"""A ledger that an earlier version wrote: it opens, nothing of it is lost, and no run of it is drawn for again."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ledgers import MECHANISM, InFile, OnServer, bind, publish, reserve

from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.ledger.ledger import Ledger

Place = InFile | OnServer
HERE = Path(__file__).parent
COLUMNS = (
    "lineage, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, "
    "spent_delta_before, spent_delta_after, mechanism, mechanism_digest, snapshot, nothing_left_the_zone, reason, "
    "created_at"
)
REQUEST: dict[str, Any] = {
    "lineage": "adult", "epsilon": "1", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7",
    "mechanism": MECHANISM, "asked": {"date": "2026-11-21"},
}  # fmt: skip


@pytest.fixture
def old(place: Place) -> Place:
    """r1 is committed, r2 reserved, r3 voided and given back."""
    if isinstance(place, InFile):
        place.path.parent.mkdir(parents=True)
        os.close(os.open(place.path, os.O_CREAT, 0o600))
        with sqlite3.connect(place.path) as connection:
            connection.executescript((HERE / "schema_1_sqlite.sql").read_text())
        connection.close()
    else:
        place.run(*(HERE / "schema_1_postgresql.sql").read_text().split("\n--\n")[1:])
    return place


def history(place: Place) -> list[tuple[Any, ...]]:
    return place.run(f"SELECT {COLUMNS} FROM events ORDER BY sequence")


def version(place: Place) -> int:
    statement = "PRAGMA user_version" if isinstance(place, InFile) else "SELECT max(version) FROM schema_version"
    return int(place.run(statement)[0][0])


def test_it_is_read_as_it_is(old: Place, ledger: Ledger):
    before = old.content()
    balance = ledger.balance("adult")
    assert [(run.run_id, run.state, run.asked, run.place) for run in balance.runs] == [
        ("r1", "committed", None, None), ("r2", "reserved", None, None), ("r3", "void", None, None)
    ]  # fmt: skip
    assert balance.spent_epsilon == 2
    assert ledger.would_cost(run_id="r4", **REQUEST).spent_epsilon == 3
    assert ledger.lineages() == ("adult",)
    assert old.content() == before
    assert version(old) == 1


def test_the_first_writing_brings_it_up_to_date_and_changes_no_event(old: Place, ledger: Ledger):
    before = history(old)
    assert reserve(ledger, "r4").fresh
    assert version(old) == 5
    assert history(old)[:5] == before
    assert publish(ledger, "r4").state == "committed"
    with pytest.raises(Exception, match="append-only"):
        old.run("DELETE FROM events")
    old.lift()
    with pytest.raises(EngineError, match="no longer append-only"):
        ledger.balance("adult")


def test_what_it_becomes_is_what_is_made_new(old: Place, ledger: Ledger, tmp_path: Path):
    ledger.create()
    if isinstance(old, InFile):
        reserve(ledger, "r4")
        new = InFile(tmp_path / "new.db")
        Ledger(new.url).create()
        catalogue = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        assert old.run(catalogue) == new.run(catalogue)
    else:
        new = OnServer(old.server, old.server.database())
        Ledger(new.url).create()
        for catalogue in (
            "SELECT column_name, data_type, collation_name FROM information_schema.columns "
            "WHERE table_schema = 'privrisk_ledger' ORDER BY table_name, ordinal_position",
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'privrisk_ledger'::regnamespace ORDER BY conname",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'privrisk_ledger' ORDER BY indexname",
            "SELECT proname, prosrc, proconfig FROM pg_proc WHERE pronamespace = 'privrisk_ledger'::regnamespace "
            "ORDER BY proname",
        ):
            assert old.run(catalogue) == new.run(catalogue)


def test_an_upgrade_that_fails_leaves_it_as_it_was(old: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    before = history(old)

    def stop(*_: object) -> None:
        raise EngineError("stopped")

    if isinstance(old, InFile):
        monkeypatch.setattr(ledger, "_append", stop)
    else:
        monkeypatch.setattr("privrisk_spark.ledger.postgresql._define", stop)
    with pytest.raises(EngineError, match="stopped"):
        reserve(ledger, "r4")
    assert (version(old), history(old)) == (1, before)
    monkeypatch.undo()
    assert reserve(ledger, "r4").fresh


def test_a_reserved_run_is_not_drawn_for_again(old: Place, ledger: Ledger):
    """Nobody can tell whether it was, with which key, and for which place."""
    assert not reserve(ledger, "r2").fresh
    with pytest.raises(BudgetError, match="kept no commitment to its key and its place"):
        bind(ledger, "r2")
    with pytest.raises(BudgetError, match="no place that the statement could be held against"):
        ledger.void(lineage="adult", run_id="r2", reason="x", nothing_left_the_zone=True)
    assert ledger.void(lineage="adult", run_id="r2", reason="x").spent_epsilon == 2


def test_a_reserved_run_whose_release_is_there_is_committed_once(old: Place, ledger: Ledger):
    """The program stopped between publication and commit, which came in this order then."""
    made = ledger.confirm({**REQUEST, "run_id": "r2"}, place="/out", release="d")
    assert (made.state, made.spent_epsilon) == ("committed", 2)
    assert ledger.confirm({**REQUEST, "run_id": "r2"}, place="/out", release="d") == made
    with pytest.raises(BudgetError, match="at '/out'; that at '/other' is another"):
        ledger.confirm({**REQUEST, "run_id": "r2"}, place="/other", release="d")
    with pytest.raises(BudgetError, match="is not the one the ledger knows"):
        ledger.confirm({**REQUEST, "run_id": "r2"}, place="/out", release="e")


def test_a_committed_run_stays_committed_wherever_its_release_is(old: Place, ledger: Ledger):
    assert ledger.confirm({**REQUEST, "run_id": "r1"}, place="/out", release="d").state == "committed"
    with pytest.raises(BudgetError, match="with other parameters"):
        ledger.confirm({**REQUEST, "run_id": "r1", "mechanism": {"k": 32}}, place="/out", release="d")
    with pytest.raises(BudgetError, match="voided"):
        ledger.confirm({**REQUEST, "run_id": "r3"}, place="/out", release="d")


def test_a_role_that_may_only_append_asks_its_owner(old: Place, ledger: Ledger):
    if isinstance(old, InFile):
        pytest.skip("a file has one owner")
    old.run(
        "CREATE ROLE appends LOGIN PASSWORD 'x'", *(grant.format(role="appends") for grant in ledger.grants)
    )  # fmt: skip
    try:
        pipeline = Ledger(old.server.url(old.database, "appends", "x"))
        assert pipeline.balance("adult").spent_epsilon == 2
        with pytest.raises(InputError, match=r"of schema 1, .* let the database's owner run 'privrisk ledger create'"):
            reserve(pipeline, "r4")
        ledger.create()
        assert reserve(pipeline, "r4").fresh, "grants stay"
        assert publish(pipeline, "r4").state == "committed"
    finally:
        old.run("DROP OWNED BY appends", "DROP ROLE appends")


def test_an_earlier_version_that_is_still_at_work_can_append_nothing(old: Place, ledger: Ledger):
    """It began its transaction before the upgrade, on PostgreSQL: the trigger wants what it does not know."""
    if isinstance(old, InFile):
        pytest.skip("in a file it would have to wait, and then read the new schema's number")
    ledger.create()
    names = COLUMNS.replace("snapshot, ", "").replace("reason, ", "")
    with pytest.raises(Exception, match="does not follow"):
        old.run(
            f"INSERT INTO events (sequence, {names}) SELECT 6, 'adult', 'r9', 'reserved', '1', '1E-9', '4', '1E-7', "
            "spent_epsilon_after, '3', spent_delta_after, '3E-9', mechanism, mechanism_digest, false, created_at "
            "FROM events WHERE sequence = 5"
        )
