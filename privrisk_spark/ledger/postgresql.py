"""The PostgreSQL database behind the privacy-budget ledger: its schema, its append-only rule, its transactions.

Everything lies in the database schema ``privrisk_ledger``. Writers of one lineage wait for each other on an
advisory lock, which needs no privilege, so that the role of the pipeline has SELECT and INSERT and nothing
else. The database does not rely on that lock: events of a lineage are numbered without gaps and no number is given
twice, a run has each state once, and a trigger refuses every UPDATE, DELETE and TRUNCATE. Two writers that both read
the same remainder both write the same number, and one of them fails. Whether an event follows from those before it is
decided by `privrisk_spark.ledger.account.replay`, which every reader and writer calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from privrisk_spark.errors import EngineError, InputError, PrivriskError
from privrisk_spark.extras import require
from privrisk_spark.ledger.storage import metadata

__all__ = ["LedgerServer"]

_SCHEMA: Final = "privrisk_ledger"
_SCHEMA_VERSION: Final = 1
_WAIT_SECONDS: Final = 30

_GRANTS: Final = (
    f"GRANT USAGE ON SCHEMA {_SCHEMA} TO {{role}};",
    f"GRANT SELECT ON ALL TABLES IN SCHEMA {_SCHEMA} TO {{role}};",
    f"GRANT INSERT ON {_SCHEMA}.events TO {{role}};",
)
"""All a role needs to run releases; it cannot change or remove an event, nor the rules."""

_BODIES: Final = {
    "refuse_change": """
BEGIN
  RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
END""",
    "follow": f"""
BEGIN
  IF NEW.sequence IS DISTINCT FROM
     (SELECT coalesce(max(sequence), 0) + 1 FROM {_SCHEMA}.events WHERE lineage = NEW.lineage) THEN
    RAISE EXCEPTION 'the event does not follow the last one of its lineage'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END""",
}
"""Functions of the triggers."""
_CONSTRAINTS: Final = {"events_one_per_number", "events_one_per_state"}
# Name, table, when it fires, and its function; a type is what pg_trigger keeps: before, and statement or row.
_TRIGGERS: Final = (
    ("events_append_only", "events", 58, "refuse_change"),
    ("events_follow", "events", 7, "follow"),
    ("schema_version_append_only", "schema_version", 58, "refuse_change"),
)
_FIRES: Final = {58: "BEFORE UPDATE OR DELETE OR TRUNCATE", 7: "BEFORE INSERT"}


class LedgerServer:
    """A ledger in a PostgreSQL database; see `privrisk_spark.ledger.storage.Storage` for what the methods promise.

    Parameters
    ----------
    url : sqlalchemy.URL
        With the driver ``postgresql+psycopg``. It may hold a password and appears in no message.

    Raises
    ------
    InputError
        If psycopg is not installed.
    """

    grants: tuple[str, ...] = _GRANTS

    def __init__(self, url: sa.URL) -> None:
        defaults = {
            "connect_timeout": 10,
            # A server that is gone without a word is noticed within a minute.
            "keepalives_idle": 10,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
            "application_name": "privrisk ledger",
        }
        require("psycopg", "ledger.url")
        self._engine = sa.create_engine(
            url,
            poolclass=NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            use_native_hstore=False,
            execution_options={"schema_translate_map": {None: _SCHEMA}},
            connect_args={name: value for name, value in defaults.items() if name not in url.query}
            # Poolers that hand a connection on after each transaction know no prepared statements.
            | {"prepare_threshold": None, "client_encoding": "utf8"},
        )

    def exists(self) -> bool:
        """Tell whether the database holds a ledger."""
        with self._begun(read_only=True) as connection:
            return _is_there(connection)

    def create(self) -> None:
        """Create an empty ledger if there is none."""
        with self._begun(read_only=True) as connection:
            if _is_there(connection):
                return
        with self._begun(read_only=False) as connection:
            _lock(connection, _SCHEMA)
            if _is_there(connection):
                return
            try:
                _create_schema(connection)
            except sa.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in {"42501", "42P06", "42P07", "42710"}:
                    raise
                raise InputError(
                    f"ledger.url: the database has no ledger yet, and its schema {_SCHEMA} cannot be made by this role "
                    f"({_primary(error)}); let the database's owner run 'privrisk ledger create' and grant what it "
                    "prints."
                ) from None

    @contextmanager
    def transaction(
        self, lineage: str | None, *, read_only: bool, tables: Collection[str] = ()
    ) -> Iterator[sa.Connection]:
        """Open the database for one transaction; a writer waits for the others of its lineage, and of its table."""
        with self._begun(read_only=read_only) as connection:
            if lineage is not None and not read_only:
                # Taken before anything is read: under READ COMMITTED every later statement sees what others committed.
                # All writers take the lock of the lineage first, so none waits in a ring. Tables share one lock: a
                # table may have more files than a transaction may have locks.
                for name in (lineage, *(["tables of all lineages"] if tables else [])):
                    _lock(connection, f"{_SCHEMA} {name}")
            _check_schema(connection)
            yield connection

    @contextmanager
    def _begun(self, *, read_only: bool) -> Iterator[sa.Connection]:
        try:
            connection = self._engine.connect()
        except (sa.exc.SQLAlchemyError, OSError, UnicodeError) as error:
            # Nothing of the driver's text is repeated: a URL that was mistyped may have put its password anywhere.
            raise _unreachable(error) from None
        try:
            with connection, connection.execution_options(postgresql_readonly=read_only).begin():
                _settle(connection)
                yield connection
        except (sa.exc.SQLAlchemyError, OSError) as error:
            # The cause may quote a row; it is not chained.
            raise _failure(error) from None


def _settle(connection: sa.Connection) -> None:
    """Set, for this transaction, what must not depend on how the server or the role is configured."""
    settings = {
        "lock_timeout": f"{_WAIT_SECONDS}s",
        "statement_timeout": f"{2 * _WAIT_SECONDS}s",
        # A writer that was stopped in the middle is cut off and its lock released.
        "idle_in_transaction_session_timeout": f"{2 * _WAIT_SECONDS}s",
        # Rows hidden by a row policy are an error, not a smaller sum.
        "row_security": "off",
    }
    chosen = [sa.func.set_config(name, value, sa.true()) for name, value in settings.items()]
    connection.execute(sa.select(*chosen))
    # A reservation that was acknowledged survives a crash; stricter settings stay.
    connection.exec_driver_sql(
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )


def _lock(connection: sa.Connection, name: str) -> None:
    """Wait for the advisory lock of a name; it ends with the transaction. Equal locks of two names only cost time."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.cast(number, sa.BigInteger))))


def _is_there(connection: sa.Connection) -> bool:
    # The catalogue answers whatever the role may see.
    found = connection.exec_driver_sql(
        "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = '{_SCHEMA}' AND c.relname = 'schema_version'"
    )
    return bool(found.scalar_one())


def _create_schema(connection: sa.Connection) -> None:
    found = connection.exec_driver_sql(f"SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = '{_SCHEMA}'")
    if not found.scalar_one():
        connection.exec_driver_sql(f"CREATE SCHEMA {_SCHEMA}")
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(f"CREATE TABLE {_SCHEMA}.schema_version (version integer NOT NULL)")
    connection.exec_driver_sql(f"INSERT INTO {_SCHEMA}.schema_version VALUES ({_SCHEMA_VERSION})")
    for function, body in _BODIES.items():
        connection.exec_driver_sql(
            f"CREATE FUNCTION {_SCHEMA}.{function}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog "
            f"AS $body${body}$body$"
        )
    for name, table, when, function in _TRIGGERS:
        each = "ROW" if when & 1 else "STATEMENT"
        connection.exec_driver_sql(
            f"CREATE TRIGGER {name} {_FIRES[when]} ON {_SCHEMA}.{table} FOR EACH {each} "
            f"EXECUTE FUNCTION {_SCHEMA}.{function}()"
        )
        # ALWAYS: not even a session that replicates writes past them.
        connection.exec_driver_sql(f"ALTER TABLE {_SCHEMA}.{table} ENABLE ALWAYS TRIGGER {name}")


def _check_schema(connection: sa.Connection) -> None:
    version = connection.exec_driver_sql(f"SELECT max(version) FROM {_SCHEMA}.schema_version").scalar_one()
    if version != _SCHEMA_VERSION:
        raise InputError(f"ledger.url names a ledger of schema {version}; this version reads schema {_SCHEMA_VERSION}.")
    triggers = connection.exec_driver_sql(
        "SELECT t.tgname, c.relname, t.tgtype, p.prosrc FROM pg_catalog.pg_trigger t "
        "JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid "
        f"WHERE n.nspname = '{_SCHEMA}' AND t.tgenabled = 'A' AND t.tgqual IS NULL"
    )
    rules = connection.exec_driver_sql(
        f"SELECT conname FROM pg_catalog.pg_constraint WHERE conrelid = '{_SCHEMA}.events'::regclass AND convalidated "
        "UNION SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
        f"WHERE i.indrelid = '{_SCHEMA}.events'::regclass AND i.indisunique AND i.indisvalid"
    )
    wanted = {(name, table, when, _BODIES[function]) for name, table, when, function in _TRIGGERS}
    if not {tuple(row) for row in triggers} >= wanted or not set(rules.scalars()) >= _CONSTRAINTS:
        raise EngineError(
            "the ledger is no longer append-only (its triggers or constraints were changed); restore it from its "
            "backup."
        )


_UNREACHABLE: Final[tuple[tuple[str, type[PrivriskError], str], ...]] = (
    ("Connection refused", EngineError, "nothing listens there"),
    ("No such file or directory", EngineError, "nothing listens on its socket"),
    ("closed the connection", EngineError, "it ended the connection"),
    ("Connection reset", EngineError, "it ended the connection"),
    ("timeout", EngineError, "it does not answer"),
    ("timed out", EngineError, "it does not answer"),
    ("translate host name", EngineError, "its host name is not known"),
    ("resolve host", EngineError, "its host name is not known"),
    ("starting up", EngineError, "it is starting"),
    ("shutting down", EngineError, "it is shutting down"),
    ("too many clients", EngineError, "it has too many connections"),
    ("connection slots", EngineError, "it has too many connections"),
    ("too many connections", EngineError, "it has too many connections"),
    ("password", InputError, "it does not accept the password"),
    ("authentication failed", InputError, "it does not accept the role"),
    ("pg_hba.conf", InputError, "it does not admit the role from this machine"),
    ("not permitted", InputError, "it does not admit the role"),
    ("permission denied", InputError, "it does not admit the role"),
    ("does not exist", InputError, "it knows no such database or role"),
    ("certificate", InputError, "its certificate is not accepted"),
    ("SSL", InputError, "no encrypted connection was agreed on"),
    ("connection option", InputError, "an option of the URL is unknown or not valid"),
    ("invalid", InputError, "an option of the URL is unknown or not valid"),
)


def _unreachable(error: Exception) -> PrivriskError:
    text = str(getattr(error, "orig", None) or error)
    if not isinstance(error, sa.exc.OperationalError | OSError):
        text = "connection option"
    found = (row[1:] for row in _UNREACHABLE if row[0] in text)
    kind, meaning = next(found, (EngineError, "the connection failed"))
    return kind(
        f"ledger.url: the PostgreSQL server cannot be used ({meaning}); nothing was recorded and nothing may be drawn."
    )


def _primary(error: Exception) -> str:
    """Return the server's own one line, without detail (which may quote a row), statement and parameters."""
    diagnosis = getattr(getattr(error, "orig", None), "diag", None)
    return getattr(diagnosis, "message_primary", None) or "the connection was lost"


def _failure(error: Exception) -> PrivriskError:
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    if state == "42501":
        grants = " ".join(_GRANTS).format(role="…")
        return InputError(f"ledger.url: its role may not do that ({_primary(error)}); let the owner run: {grants}")
    if state == "25006":
        return InputError("ledger.url names a server that only reads; name the primary.")
    if state == "55P03":
        text = f"another writer holds the lineage for more than {_WAIT_SECONDS} s"
    elif state in {"23505", "40001", "40P01"}:
        text = "another writer was first"
    else:
        text = _primary(error)
    # A connection that breaks during the commit leaves open whether it was recorded.
    return EngineError(
        f"the ledger could not be read or written ({text}); nothing may be drawn. Run again with the same run id: it "
        "is charged at most once."
    )
