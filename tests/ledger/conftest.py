"""The ledger in each database, and what a test may do to it behind its back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgresql import Server

from privrisk_spark import ledger_file
from privrisk_spark.ledger import Ledger


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
        triggers = ledger_file._TRIGGERS
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


@pytest.fixture
def file(tmp_path: Path) -> InFile:
    return InFile(tmp_path / "vault" / "budget" / "ledger.db")


@pytest.fixture(scope="session")
def database(postgresql: Server) -> str:
    return postgresql.database()


@pytest.fixture
def on_server(postgresql: Server, database: str) -> Iterator[OnServer]:
    place = OnServer(postgresql, database)
    yield place
    place.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> InFile | OnServer:
    """A place for a ledger in each database; there is none yet."""
    return request.getfixturevalue("file" if request.param == "sqlite" else "on_server")


@pytest.fixture
def ledger(place: InFile | OnServer) -> Ledger:
    return Ledger(place.url)
