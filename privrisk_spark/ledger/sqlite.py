"""The file behind the privacy-budget ledger: its schema, its append-only rule, its transactions.

SQLite keeps the events in one table. Triggers refuse every change of an event, so that an honest program
cannot rewrite history by mistake; whoever may write the file can still replace it, which is why its totals
are replayed (see `privrisk_spark.ledger.ledger`) and why it belongs in the vault and in its backup.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from privrisk_spark.errors import EngineError, InputError
from privrisk_spark.ledger.storage import metadata
from privrisk_spark.storage.directories import make_missing
from privrisk_spark.storage.documents import linked_when_whole, state_of

__all__ = ["LedgerFile"]

# Marks the file as ours ("PRLG"), so that another program's database is never taken for a ledger.
_APPLICATION_ID: Final = 0x50524C47
_SCHEMA_VERSION: Final = 1
_BUSY_SECONDS: Final = 30.0

_REFUSE: Final = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
# The third trigger also sees what INSERT OR REPLACE would delete without firing a DELETE trigger.
_TRIGGERS: Final = {
    "events_no_update": f"CREATE TRIGGER events_no_update BEFORE UPDATE ON events {_REFUSE}",
    "events_no_delete": f"CREATE TRIGGER events_no_delete BEFORE DELETE ON events {_REFUSE}",
    "events_follow": (
        "CREATE TRIGGER events_follow BEFORE INSERT ON events WHEN NEW.sequence IS NOT "
        "(SELECT coalesce(max(sequence), 0) + 1 FROM events WHERE lineage = NEW.lineage) OR EXISTS "
        "(SELECT 1 FROM events WHERE lineage = NEW.lineage AND run_id = NEW.run_id AND state = NEW.state) "
        f"{_REFUSE}"
    ),
}


class LedgerFile:
    """A ledger in one SQLite file; see `privrisk_spark.ledger.storage.Storage` for what the methods promise.

    Parameters
    ----------
    path : pathlib.Path
        The file: mode 0600 from its creation on, in a directory of mode 0700 if that is made too.

    Notes
    -----
    A transaction that writes is ``BEGIN IMMEDIATE``: SQLite has one writer at a time for all lineages.
    """

    grants: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Its place."""
        return self._path

    def exists(self) -> bool:
        """Tell whether there is a ledger file."""
        try:
            return state_of(self._path) is not None
        except OSError as error:
            raise _failure(error) from error

    def create(self) -> None:
        """Create an empty ledger if there is none."""
        if self.exists():
            return
        try:
            make_missing(self._path.parent)
            # Linked under its name only when whole, so that an empty file is always a lost ledger and never a new one.
            with linked_when_whole(self._path) as draft, _opened(draft, read_only=False) as connection:
                _create_schema(connection)
        except OSError as error:
            raise _failure(error) from error

    @contextmanager
    def transaction(
        self, lineage: str | None, *, read_only: bool, tables: Collection[str] = ()
    ) -> Iterator[sa.Connection]:
        """Open the file for one transaction."""
        del lineage, tables
        with _opened(self._path, read_only=read_only) as connection:
            _check_schema(connection)
            yield connection


@contextmanager
def _opened(path: Path, *, read_only: bool) -> Iterator[sa.Connection]:
    # mode=rw: open what is there, never create; an unwritable file opens for reading and refuses writes.
    uri = f"{path.absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        # EXTRA: a reservation that was acknowledged survives a power cut.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    try:
        with engine.begin() as connection:
            yield connection
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _failure(error) from error


def _create_schema(connection: sa.Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    for statement in _TRIGGERS.values():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {_SCHEMA_VERSION}")


def _check_schema(connection: sa.Connection) -> None:
    """Refuse a file that is not a ledger of this schema, or that is no longer append-only."""
    if connection.exec_driver_sql("PRAGMA application_id").scalar_one() != _APPLICATION_ID:
        raise InputError(
            "ledger.url names a file that is not a privacy-budget ledger; if it was one, restore it from its backup."
        )
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if version != _SCHEMA_VERSION:
        raise InputError(f"ledger.url names a ledger of schema {version}; this version reads schema {_SCHEMA_VERSION}.")
    found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    if {row.name: row.sql for row in found} != _TRIGGERS:
        raise EngineError(
            "the ledger is no longer append-only (its triggers were changed); restore it from its backup."
        )


def _failure(error: Exception) -> EngineError:
    # The driver's own text, without the statement and its parameters.
    cause = getattr(error, "orig", None) or error
    text = cause.strerror if isinstance(cause, OSError) else str(cause)
    return EngineError(
        f"the ledger could not be read or written ({text}); nothing was recorded and nothing may be drawn."
    )
