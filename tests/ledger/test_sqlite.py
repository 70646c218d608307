from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledgers import InFile, reserve, would_cost

from privrisk_spark.errors import EngineError, InputError
from privrisk_spark.ledger import sqlite
from privrisk_spark.ledger.ledger import Ledger

COPY = (
    "REPLACE INTO events SELECT {sequence}, lineage, {run_id}, state, '0', delta, cap_epsilon, cap_delta, "
    "spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, "
    "mechanism_digest, snapshot, nothing_left_the_zone, reason, created_at, asked, key_commitment, "
    "place, release_digest, table_identity, chain, composed_epsilon, unit, files FROM events"
)


@pytest.fixture
def place(file: InFile) -> InFile:
    return file


@pytest.fixture
def path(place: InFile) -> Path:
    return place.path


def test_the_file_is_private(ledger: Ledger, path: Path):
    reserve(ledger)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger.db"]


def test_an_existing_directory_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    reserve(Ledger(f"sqlite:///{tmp_path}/ledger.db"))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    # Root may write anything, so that a read-only file shows only to another user.
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        if os.getuid() == 0:
            os.seteuid(0)
        directory.chmod(0o755)


def test_a_read_only_ledger_fails_closed(unprivileged: Path):
    path = unprivileged / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}")
    reserve(ledger)
    path.chmod(0o444)
    unprivileged.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(65534)
    with pytest.raises(EngineError, match="readonly database") as caught:
        reserve(ledger, "r2")
    assert caught.value.exit_code == 3
    assert ledger.balance("adult").spent_epsilon == 1
    with pytest.raises(EngineError, match="denied"):
        reserve(Ledger(f"sqlite:///{unprivileged}/new/ledger.db"))


@pytest.mark.parametrize("content", [b"not a database at all" * 400, None])
def test_a_corrupt_ledger_fails_closed(ledger: Ledger, path: Path, content: bytes | None):
    reserve(ledger)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 3000 if content is None else content)
    for act in (lambda: reserve(ledger, "r2"), lambda: would_cost(ledger), lambda: ledger.balance("adult")):
        with pytest.raises(EngineError):
            act()


@pytest.mark.parametrize("content", [b"", "foreign"])
def test_another_file_is_never_taken_for_an_empty_ledger(
    ledger: Ledger, place: InFile, path: Path, content: bytes | str
):
    path.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        place.run("CREATE TABLE events (sequence INTEGER)")
    with pytest.raises(InputError, match="not a privacy-budget ledger"):
        reserve(ledger)
    with pytest.raises(InputError, match="not a privacy-budget ledger"):
        would_cost(ledger)


def test_a_newer_schema_is_refused(ledger: Ledger, place: InFile):
    reserve(ledger)
    place.run("PRAGMA user_version = 6")
    with pytest.raises(InputError, match="schema 6"):
        ledger.balance("adult")


def test_a_locked_ledger_fails_closed(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch):
    reserve(ledger)
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(EngineError, match="locked"):
        reserve(ledger, "r2")
    holder.rollback()
    holder.close()
    assert len(ledger.balance("adult").runs) == 1


def test_a_failed_insert_reserves_nothing_and_shows_no_parameters(ledger: Ledger, place: InFile, monkeypatch):
    reserve(ledger)
    refuse = "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    monkeypatch.setattr(sqlite, "_TRIGGERS", sqlite._TRIGGERS | {"full": refuse})
    place.run(refuse)
    with pytest.raises(EngineError, match="disk full") as caught:
        reserve(ledger, "r2", mechanism={"canary": "c4n4ry"})
    assert "c4n4ry" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert len(ledger.balance("adult").runs) == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@db/x",
        "mysql://u:hunter2@db/x",
        "sqlite://hunter2",
        "sqlite+pysqlite:///hunter2",
        "hunter2.db",
        "",
    ],
)
def test_other_databases_are_refused_without_echo(url: str):
    with pytest.raises(InputError) as caught:
        Ledger(url)
    assert str(caught.value) == (
        "ledger.url must start with sqlite:/// or postgresql+psycopg://, or be env:NAME of a variable that does."
    )


@pytest.mark.parametrize("name", ["", ":memory:", "file:x.db", "x.db?mode=ro", "vault/", "a\0b"])
def test_a_url_must_name_a_plain_file(name: str):
    with pytest.raises(InputError, match="must name a file"):
        Ledger(f"sqlite:///{name}")


def test_a_path_with_reserved_characters_is_taken_literally(tmp_path: Path):
    path = tmp_path / "100% #safe" / "led ger.db"
    reserve(Ledger(f"sqlite:///{path}"))
    assert path.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET epsilon = '0'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events",
        COPY.format(sequence="sequence + 9", run_id="run_id"),
        COPY.format(sequence="sequence", run_id="'other'"),
    ],
)
def test_events_cannot_be_changed(ledger: Ledger, path: Path, statement: str):
    reserve(ledger)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert ledger.balance("adult").spent_epsilon == 1


def test_an_amount_that_is_none_is_not_believed(ledger: Ledger, place: InFile):
    reserve(ledger)
    place.tamper("UPDATE events SET epsilon = '1/3' WHERE sequence = 1")
    with pytest.raises(EngineError, match="does not follow"):
        ledger.balance("adult")


def test_ledger_url_by_env_with_a_relative_path_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LEDGER", "sqlite:///ledger.db")
    with pytest.raises(InputError, match="a relative path"):
        Ledger("env:LEDGER")
    monkeypatch.setenv("LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    Ledger("env:LEDGER").create()
    assert (tmp_path / "ledger.db").is_file()
