"""What PostgreSQL adds: roles, rules the database keeps by itself, and connections that break."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
import traceback
import uuid
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from ledgers import OnServer, commit, compete, publish, reserve, would_cost

from privrisk_spark.errors import BudgetError, EngineError, InputError, PrivriskError
from privrisk_spark.ledger import postgresql
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import digest_of

CANARY = "hunter2-canary"


@pytest.fixture
def place(on_server: OnServer) -> OnServer:
    return on_server


@pytest.fixture
def role(place: OnServer) -> str:
    """A role with nothing but the right to connect."""
    name = f"role_{uuid.uuid4().hex}"
    place.run(f"CREATE ROLE {name} LOGIN PASSWORD '{CANARY}'")
    return name


def as_role(place: OnServer, role: str) -> Ledger:
    return Ledger(place.server.url(place.database, role, CANARY))


def test_a_role_that_may_read_and_append_can_do_all_and_change_nothing(ledger: Ledger, place: OnServer, role: str):
    ledger.create()
    place.run(*(grant.format(role=role) for grant in ledger.grants))
    pipeline = as_role(place, role)
    for run in ("r1", "r2", "r3"):
        assert reserve(pipeline, run).fresh
    publish(pipeline)
    pipeline.void(lineage="adult", run_id="r2", reason="x", nothing_left_the_zone=True)
    assert pipeline.balance("adult").spent_epsilon == 2
    before = place.content()
    with psycopg.connect(
        host="127.0.0.1", port=place.server.port, user=role, password=CANARY, dbname=place.database, autocommit=True
    ) as connection:
        for statement in (
            "UPDATE privrisk_ledger.events SET epsilon = '0'",
            "DELETE FROM privrisk_ledger.events",
            "TRUNCATE privrisk_ledger.events",
            "DROP TABLE privrisk_ledger.events",
            "ALTER TABLE privrisk_ledger.events DISABLE TRIGGER ALL",
            "CREATE OR REPLACE FUNCTION privrisk_ledger.follow() RETURNS trigger LANGUAGE sql AS 'SELECT NULL'",
            "INSERT INTO privrisk_ledger.schema_version VALUES (2)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert place.content() == before


def test_a_role_that_may_not_create_is_told_who_does(place: OnServer, role: str):
    pipeline = as_role(place, role)
    with pytest.raises(InputError, match=r"permission denied .* let the database's owner run 'privrisk ledger create'"):
        reserve(pipeline)
    assert not place.exists()
    assert would_cost(pipeline).fresh, "an absent ledger counts as empty"


def test_a_role_without_grants_is_told_them(ledger: Ledger, place: OnServer, role: str):
    reserve(ledger)
    for act in (reserve, would_cost):
        with pytest.raises(InputError, match="GRANT USAGE ON SCHEMA privrisk_ledger TO") as caught:
            act(as_role(place, role))
        assert caught.value.exit_code == 2


def test_rows_hidden_by_a_policy_are_an_error_and_not_a_smaller_sum(ledger: Ledger, place: OnServer, role: str):
    reserve(ledger, epsilon="3")
    place.run(
        *(grant.format(role=role) for grant in ledger.grants),
        "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY mine ON events TO {role} USING (run_id = 'none')",
    )
    pipeline = as_role(place, role)
    for act in (lambda: reserve(pipeline, "r2", epsilon="3"), lambda: pipeline.balance("adult")):
        with pytest.raises(InputError, match="row-level security"):
            act()


@pytest.mark.parametrize("statement", ["UPDATE events SET epsilon = '0'", "DELETE FROM events", "TRUNCATE events"])
@pytest.mark.parametrize("replicates", [False, True])
def test_not_even_the_owner_changes_an_event(ledger: Ledger, place: OnServer, statement: str, replicates: bool):
    reserve(ledger)
    before = place.content()
    prelude = ["SET session_replication_role = replica"] if replicates else []
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        place.run(*prelude, statement)
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        place.run("DELETE FROM schema_version")
    assert place.content() == before


LINE = {
    "lineage": "adult", "sequence": 3, "run_id": "r2", "state": "reserved", "epsilon": "0.5", "delta": "0",
    "cap_epsilon": "4", "cap_delta": "1e-7", "spent_epsilon_before": "2", "spent_epsilon_after": "2.5",
    "spent_delta_before": "2e-9", "spent_delta_after": "0.000000002", "mechanism": "{}",
    "mechanism_digest": digest_of("{}"), "nothing_left_the_zone": False, "created_at": "now", "asked": "{}",
    "chain": "0" * 64,
}  # fmt: skip


@pytest.mark.parametrize("changes", [{"sequence": 2}, {"sequence": 4}, {"sequence": None}, {"run_id": "r1"}])
def test_the_database_refuses_another_number_and_a_state_that_a_run_has(
    ledger: Ledger, place: OnServer, changes: dict[str, Any]
):
    reserve(ledger)
    reserve(ledger, "r0")
    before, line = place.content(), LINE | changes
    marks = ", ".join(f"%({name})s" for name in line)
    with place.server.connect(place.database) as connection, pytest.raises(psycopg.IntegrityError):
        connection.execute(f"INSERT INTO events ({', '.join(line)}) VALUES ({marks})", line)
    assert place.content() == before
    assert ledger.balance("adult").spent_epsilon == 2


def test_writers_that_forget_the_lock_still_never_overspend(ledger: Ledger, place: OnServer):
    """The numbers of a lineage's events serialize them: of two that read the same remainder, one fails."""
    ledger.create()
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(8), context.Queue()
    workers = [
        context.Process(target=compete, args=(place.url, worker, barrier, results, False)) for worker in range(8)
    ]
    for worker in workers:
        worker.start()
    outcomes = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert sum(won for won, _, _, _ in outcomes) == 13
    assert sum(shared for _, _, shared, _ in outcomes) == 1
    assert sum(lost for _, _, _, lost in outcomes) > 0, "none of them raced, so nothing was shown"
    assert ledger.balance("adult").spent_epsilon == Decimal("3.9")


@pytest.mark.parametrize("committed", [False, True])
def test_a_connection_lost_in_the_middle_fails_closed(
    ledger: Ledger, place: OnServer, monkeypatch: pytest.MonkeyPatch, committed: bool
):
    """Whether or not the server had committed before it was lost, the caller gets an error, and a retry pays once."""
    reserve(ledger, "r0")
    append = ledger._append

    def break_off(connection: Any, *arguments: Any) -> None:
        append(connection, *arguments)
        driver = connection.connection.driver_connection
        pid = driver.info.backend_pid
        if committed:
            # The answer to the program's own COMMIT is what gets lost.
            driver.commit()
            driver.execute("SELECT 1")
        place.run(f"SELECT pg_terminate_backend({pid}, 10000)")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_append", break_off)
        with pytest.raises(EngineError, match="nothing may be drawn") as caught:
            reserve(ledger, "r1", mechanism={"canary": CANARY})
    assert caught.value.exit_code == 3
    assert "Run again with the same run id: it is charged at most once" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert ledger.balance("adult").spent_epsilon == (2 if committed else 1)
    assert reserve(ledger, "r1", mechanism={"canary": CANARY}).fresh == (not committed)
    assert ledger.balance("adult").spent_epsilon == 2


def test_a_server_that_is_down_fails_closed_and_an_acknowledged_reservation_survives_its_crash(
    ledger: Ledger, place: OnServer
):
    reserve(ledger)
    place.server.stop(signal.SIGQUIT)
    try:
        for act in (
            lambda: reserve(ledger, "r2"),
            lambda: would_cost(ledger),
            lambda: ledger.balance("adult"),
            lambda: commit(ledger),
            lambda: ledger.void(lineage="adult", run_id="r1", reason="x"),
        ):
            # What accepts the first connection may be a process of the server that is about to end.
            with pytest.raises(EngineError, match=r"nothing listens there|it ended the connection"):
                act()
    finally:
        place.server.start()
    assert not reserve(ledger).fresh
    assert ledger.balance("adult").spent_epsilon == 1


def test_a_held_lineage_is_given_up_and_a_stalled_writer_is_cut_off(
    ledger: Ledger, place: OnServer, monkeypatch: pytest.MonkeyPatch
):
    reserve(ledger, "r0")
    monkeypatch.setattr(postgresql, "_WAIT_SECONDS", 0.25)
    stalled = Ledger(place.url)
    append, inserted, outcome = stalled._append, threading.Event(), []

    def stall(*arguments: Any) -> None:
        append(*arguments)
        inserted.set()
        time.sleep(1.5)

    monkeypatch.setattr(stalled, "_append", stall)

    def write_slowly() -> None:
        with pytest.raises(EngineError) as caught:
            reserve(stalled, "slow", epsilon="3")
        outcome.append(str(caught.value))

    thread = threading.Thread(target=write_slowly)
    thread.start()
    assert inserted.wait(timeout=30)
    with pytest.raises(EngineError, match="another writer holds the lineage"):
        reserve(ledger, "r1", epsilon="3")
    assert reserve(ledger, lineage="another", epsilon="3").fresh, "other lineages do not wait"
    thread.join(timeout=30)
    assert len(outcome) == 1
    assert reserve(ledger, "r1", epsilon="3").fresh
    assert [run.run_id for run in ledger.balance("adult").runs] == ["r0", "r1"]


def test_a_failed_insert_shows_no_parameters(ledger: Ledger, place: OnServer):
    reserve(ledger)
    place.run("ALTER TABLE events ADD CONSTRAINT full_disk CHECK (run_id <> 'r2')")
    with pytest.raises(EngineError, match="full_disk") as caught:
        reserve(ledger, "r2", mechanism={"canary": CANARY})
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert len(ledger.balance("adult").runs) == 1


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE events DISABLE TRIGGER events_follow",
        "ALTER TABLE events ENABLE REPLICA TRIGGER events_append_only",
        "DROP TRIGGER events_append_only ON events",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "ALTER TABLE events DROP CONSTRAINT events_one_per_state",
        "ALTER TABLE events DROP CONSTRAINT events_one_per_number",
    ],
)
def test_lifted_rules_are_noticed(ledger: Ledger, place: OnServer, change: str):
    reserve(ledger)
    place.run(change)
    for act in (lambda: reserve(ledger, "r2"), lambda: ledger.balance("adult")):
        with pytest.raises(EngineError, match="no longer append-only"):
            act()


def test_a_missing_event_is_noticed(ledger: Ledger, place: OnServer):
    """One that changes no total: the numbers show it."""
    reserve(ledger)
    publish(ledger)
    reserve(ledger, "r2")
    place.tamper("DELETE FROM events WHERE sequence = 2")
    with pytest.raises(EngineError, match="does not follow"):
        ledger.balance("adult")


def test_a_newer_or_foreign_schema_is_refused(ledger: Ledger, place: OnServer):
    place.run("CREATE SCHEMA privrisk_ledger", "CREATE TABLE privrisk_ledger.events (x int)")
    with pytest.raises(InputError, match=r"cannot be made by this role \(relation"):
        reserve(ledger)
    place.run("DROP TABLE events")
    reserve(ledger)
    place.run("INSERT INTO schema_version VALUES (6)")
    with pytest.raises(InputError, match="schema 6; this version reads schema 1"):
        reserve(ledger)


def test_settings_of_the_connection_do_not_weaken_the_ledger(place: OnServer):
    options = "-c default_transaction_isolation=serializable -c synchronous_commit=off -c search_path=nowhere"
    ledger = Ledger(f"{place.url}?options={options.replace(' ', '%20').replace('=', '%3D')}")
    seen = []
    append = ledger._append

    def look(connection: Any, *arguments: Any) -> None:
        for name in ("transaction_isolation", "synchronous_commit", "search_path"):
            seen.append(connection.exec_driver_sql(f"SHOW {name}").scalar_one())
        append(connection, *arguments)

    ledger._append = look  # type: ignore[method-assign]
    assert reserve(ledger).fresh
    assert seen == ["read committed", "on", "nowhere"]
    reader = Ledger(f"{place.url}?options=-c%20default_transaction_read_only%3Don")
    assert reader.balance("adult").spent_epsilon == 1


def test_a_standby_is_refused_for_writing(ledger: Ledger, place: OnServer, monkeypatch: pytest.MonkeyPatch):
    reserve(ledger)
    append = ledger._append

    def as_on_a_standby(connection: Any, *arguments: Any) -> None:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        append(connection, *arguments)

    monkeypatch.setattr(ledger, "_append", as_on_a_standby)
    with pytest.raises(InputError, match="name the primary"):
        reserve(ledger, "r2")


def addresses(place: OnServer) -> dict[str, tuple[str, type[PrivriskError]]]:
    port = place.server.port
    right = f"postgresql+psycopg://owner:{CANARY}@127.0.0.1"
    return {
        "wrong password": (f"{right}:{port}/{place.database}", InputError),
        "wrong password in an option": (
            f"postgresql+psycopg://127.0.0.1:{port}/d?user=owner&password={CANARY}",
            InputError,
        ),
        "no such database": (f"{place.server.url('nowhere')}?application_name={CANARY}", InputError),
        "nothing listens": (f"{right}:1/d", EngineError),
        "unknown host": (f"postgresql+psycopg://owner:x@{CANARY}.invalid/d", EngineError),
        "an @ in the password": (f"postgresql+psycopg://owner:x@{CANARY}@127.0.0.1:1/d", PrivriskError),
        "a / in the password": (f"postgresql+psycopg://owner:1/{CANARY}@127.0.0.1:1/d", PrivriskError),
        "a ? in the password": (f"postgresql+psycopg://owner:x?{CANARY}@127.0.0.1:1/d", PrivriskError),
        "a % in the password": (f"postgresql+psycopg://owner:%zz{CANARY}@127.0.0.1:1/d", PrivriskError),
        "a port that is none": (f"postgresql+psycopg://owner@127.0.0.1:{CANARY}/d", InputError),
        "an unknown option": (f"{right}:{port}/d?{CANARY}=1", InputError),
        "a bad option": (f"{right}:{port}/d?sslmode={CANARY}", InputError),
        "encryption that is not there": (f"{right}:{port}/d?sslmode=require", InputError),
        "no database": (f"{right}:{port}", InputError),
        "another driver": (f"postgresql+asyncpg://owner:{CANARY}@127.0.0.1/d", InputError),
    }


def test_no_error_shows_the_url(place: OnServer, capfd: pytest.CaptureFixture[str]):
    for name, (url, kind) in addresses(place).items():
        with pytest.raises(kind) as caught:
            reserve(Ledger(url))
        assert isinstance(caught.value, EngineError | InputError), name
        assert "ledger" in str(caught.value), name
        assert CANARY not in "".join(traceback.format_exception(caught.value)), name
    named = Ledger(addresses(place)["wrong password"][0])
    assert CANARY not in repr(named) + repr(named._storage) + str(vars(named)) + str(vars(named._storage))
    captured = capfd.readouterr()
    assert CANARY not in captured.out + captured.err


def test_a_missing_driver_is_named(place: OnServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'privrisk-spark\[postgres\]'"):
        Ledger(place.url)


def test_a_lost_race_is_an_engine_error(ledger: Ledger, place: OnServer, monkeypatch: pytest.MonkeyPatch):
    """A writer whose lock did not hold is told to try again, and not that the budget is spent."""
    reserve(ledger, "r0")
    append = ledger._append

    def second(connection: Any, *arguments: Any) -> None:
        monkeypatch.setattr(ledger, "_append", append)
        with monkeypatch.context() as patch:
            patch.setattr(postgresql, "_lock", lambda connection, name: None)
            reserve(ledger, "first", epsilon="3")
        append(connection, *arguments)

    monkeypatch.setattr(ledger, "_append", second)
    with pytest.raises(EngineError, match=r"does not follow|another writer was first"):
        reserve(ledger, "second", epsilon="3")
    with pytest.raises(BudgetError):
        reserve(ledger, "second", epsilon="3")
    assert ledger.balance("adult").spent_epsilon == 4
