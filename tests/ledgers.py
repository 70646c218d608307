"""The ledger in each database, what a test may do to it behind its back, and requests that started processes make."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from time import sleep
from typing import Any

from postgresql import Server

from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger import postgresql, sqlite
from privrisk_spark.ledger.ledger import Ledger, Reservation
from privrisk_spark.ledger.request import Request

MECHANISM = {"mode": "local", "k": 31, "keep": "1081074828/4294967296"}


class InFile:
    """A ledger in an SQLite file."""

    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner, outside the program; return the rows of the last."""
        connection = sqlite3.connect(self.path)
        try:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
            connection.commit()
        finally:
            connection.close()
        return rows

    def exists(self) -> bool:
        return self.path.parent.exists()

    def content(self) -> object:
        return self.path.read_bytes()

    def tamper(self, change: str) -> None:
        """Rewrite history, and put the triggers back."""
        triggers = sqlite._TRIGGERS
        self.run(*(f"DROP TRIGGER {name}" for name in triggers), change, *triggers.values())

    def lift(self) -> None:
        self.run("DROP TRIGGER events_no_delete")


class OnServer:
    """A ledger in a PostgreSQL database."""

    kind = "postgresql"

    def __init__(self, server: Server, database: str) -> None:
        self.server, self.database = server, database
        self.url = server.url(database)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner, outside the program; return the rows of the last."""
        with self.server.connect(self.database) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def remove(self) -> None:
        """Drop the ledger, whoever still holds it: cheaper than a database for each test."""
        self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            "DROP SCHEMA IF EXISTS privrisk_ledger CASCADE",
        )

    def exists(self) -> bool:
        return bool(self.run("SELECT 1 FROM pg_namespace WHERE nspname = 'privrisk_ledger'"))

    def content(self) -> object:
        return self.run("SELECT * FROM events ORDER BY lineage, sequence")

    def tamper(self, change: str) -> None:
        """Rewrite history, and put the triggers back."""
        names = ("events_append_only", "events_follow")
        self.run(
            *(f"ALTER TABLE events DISABLE TRIGGER {name}" for name in names),
            change,
            *(f"ALTER TABLE events ENABLE ALWAYS TRIGGER {name}" for name in names),
        )

    def lift(self) -> None:
        self.run("ALTER TABLE events DISABLE TRIGGER events_append_only")


def reserve(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", delta: str = "1e-9", **other: Any) -> Reservation:
    arguments = {"lineage": "adult", "cap_epsilon": "4", "cap_delta": "1e-7", "mechanism": MECHANISM} | other
    return ledger.reserve(Request(run_id=run_id, epsilon=epsilon, delta=delta, **arguments))


def bind(ledger: Ledger, run_id: str = "r1", key: str = "k", place: str = "/out") -> Reservation:
    return ledger.bind(lineage="adult", run_id=run_id, key=key, place=place)


def pin(ledger: Ledger, run_id: str = "r1", snapshot: str = "s") -> Reservation:
    return ledger.pin(lineage="adult", run_id=run_id, snapshot=snapshot)


def commit(ledger: Ledger, run_id: str = "r1", release: str = "d") -> Reservation:
    return ledger.commit(lineage="adult", run_id=run_id, release=release)


def publish(ledger: Ledger, run_id: str = "r1", snapshot: str = "s") -> Reservation:
    """Take a reserved run to its end."""
    bind(ledger, run_id)
    pin(ledger, run_id, snapshot)
    return commit(ledger, run_id)


def would_cost(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", **other: Any) -> Reservation:
    arguments = {"lineage": "adult", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"} | other
    return ledger.would_cost(Request(run_id=run_id, epsilon=epsilon, mechanism=MECHANISM, **arguments))


def compete(url: str, worker: int, barrier: Barrier, results: Queue[tuple[int, int, bool, int]], locks: bool) -> None:
    """Reserve until the cap is reached; report what was won, what was refused, the shared run, and lost races."""
    if not locks:
        postgresql._lock = lambda connection, name: None
    ledger = Ledger(url)
    lost = 0

    def insist(run_id: str, epsilon: str, delta: str) -> bool:
        nonlocal lost
        while True:
            try:
                return reserve(ledger, run_id, epsilon=epsilon, delta=delta).fresh
            except EngineError:
                if locks:
                    raise
                lost += 1

    barrier.wait()
    won = refused = 0
    shared = insist("shared", "0", "1e-9")
    while not refused:
        try:
            won += insist(f"w{worker}-{won}", "0.3", "0")
        except BudgetError:
            refused += 1
    results.put((won, refused, shared, lost))


def stop_before_commit(url: str, inserted: Event) -> None:
    """Write a reservation, say so, and never come to the commit."""
    ledger = Ledger(url)
    append = ledger._append

    def appending(*arguments: Any) -> None:
        append(*arguments)
        inserted.set()
        sleep(600)

    ledger._append = appending  # type: ignore[method-assign]
    reserve(ledger, "killed", epsilon="3")


def stop_after_reserve(url: str, reserved: Event) -> None:
    """Reserve, say so, and never publish."""
    with suppress(BudgetError):
        reserve(Ledger(url), "killed", epsilon="3")
    reserved.set()
    sleep(600)


def compete_tightly(url: str, worker: int, mechanism: str, barrier: Barrier, results: Queue[int]) -> None:
    """Reserve under the tight composition until the cap is reached; report what was won."""
    ledger, won = Ledger(url), 0
    barrier.wait()
    with suppress(BudgetError):
        while True:
            reserve(ledger, f"w{worker}-{won}", mechanism=json.loads(mechanism), cap_epsilon="2", accounting="pld")
            won += 1
    results.put(won)
