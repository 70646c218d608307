from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privrisk_spark import ledger_file
from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.ledger import Ledger, Reservation
from privrisk_spark.ledger_account import decimal_of

COPY = (
    "REPLACE INTO events SELECT {sequence}, lineage, {run_id}, state, '0', delta, cap_epsilon, cap_delta, "
    "spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, "
    "mechanism_digest, snapshot, nothing_left_the_zone, reason, created_at FROM events"
)
MECHANISM = {"mode": "local", "k": 31, "keep": "1081074828/4294967296"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault" / "budget" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(f"sqlite:///{path}")


def reserve(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", delta: str = "1e-9", **other) -> Reservation:
    arguments = {"lineage": "adult", "cap_epsilon": "4", "cap_delta": "1e-7", "mechanism": MECHANISM} | other
    return ledger.reserve(run_id=run_id, epsilon=epsilon, delta=delta, **arguments)


def would_cost(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", **other) -> Reservation:
    arguments = {"lineage": "adult", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"} | other
    return ledger.would_cost(run_id=run_id, epsilon=epsilon, mechanism=MECHANISM, **arguments)


def count(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (found,) = connection.execute("SELECT count(*) FROM events").fetchone()
    connection.close()
    return found


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_first_reservation_charges_the_lineage_and_makes_a_private_file(ledger: Ledger, path: Path):
    result = reserve(ledger)
    assert result.fresh
    assert (result.state, result.spent_epsilon, result.spent_delta) == (
        "reserved",
        Decimal(1),
        Decimal("1e-9"),
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["ledger.db"]


def test_an_existing_directory_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    reserve(Ledger(f"sqlite:///{tmp_path}/ledger.db"))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_retry_costs_nothing(ledger: Ledger, path: Path):
    reserve(ledger)
    retry = reserve(Ledger(f"sqlite:///{path}"), mechanism=dict(reversed(MECHANISM.items())), epsilon="1.0")
    assert not retry.fresh
    assert retry.spent_epsilon == 1
    assert count(path) == 1


@pytest.mark.parametrize("changed", [{"mechanism": {"k": 32}}, {"epsilon": "0.5"}, {"delta": "1e-10"}])
def test_a_run_id_with_other_parameters_is_refused(ledger: Ledger, changed: dict):
    reserve(ledger)
    with pytest.raises(BudgetError, match="run id r1 was reserved with other parameters; use a new run id"):
        reserve(ledger, **changed)
    assert ledger.balance("adult").spent_epsilon == 1


def test_the_refusal_tells_asked_spent_cap_and_left(ledger: Ledger):
    reserve(ledger, epsilon="3.8")
    with pytest.raises(BudgetError) as caught:
        reserve(ledger, "r2", epsilon="0.5")
    assert "epsilon asked 0.5, spent 3.8, cap 4, left 0.2" in str(caught.value)
    assert "delta asked 1E-9, spent 1E-9, cap 1E-7, left 9.9E-8" in str(caught.value)
    assert caught.value.exit_code == 1
    assert len(ledger.balance("adult").runs) == 1


def test_delta_has_its_own_cap(ledger: Ledger):
    reserve(ledger, epsilon="0.1", delta="9e-8")
    with pytest.raises(BudgetError, match="left 1E-8"):
        reserve(ledger, "r2", epsilon="0.1", delta="1.1e-8")


def test_three_times_a_tenth_fills_a_cap_of_three_tenths(ledger: Ledger):
    assert 0.1 + 0.1 + 0.1 > 0.3  # what a ledger of floats would refuse
    for run in ("a", "b", "c"):
        last = reserve(ledger, run, epsilon="0.1", cap_epsilon="0.3")
    assert last.spent_epsilon == Decimal("0.3")
    with pytest.raises(BudgetError, match=r"cap 0\.3, left 0;"):
        reserve(ledger, "d", epsilon="1e-400", cap_epsilon="0.3")


@settings(max_examples=200)
@given(st.decimals(min_value=0, max_value=10**6, allow_nan=False, places=30))
def test_a_fraction_goes_back_to_its_decimal(number: Decimal):
    assert Fraction(decimal_of(Fraction(number))) == Fraction(number)
    assert Fraction(str(decimal_of(Fraction(number)))) == Fraction(number)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "commit", "void", "refund"]),
            st.integers(0, 3),
            st.decimals("0.001", "2", places=3),
        ),
        max_size=10,
    )
)
def test_any_history_agrees_with_a_plain_sum(tmp_path: Path, history: list[tuple[str, int, Decimal]]):
    with tempfile.TemporaryDirectory(dir=tmp_path) as directory:
        ledger = Ledger(f"sqlite:///{directory}/ledger.db")
        runs: dict[str, tuple[str, Decimal]] = {}
        for act, number, epsilon in history:
            run = f"r{number}"
            state, cost = runs.get(run, ("new", Decimal(0)))
            spent = sum((c for s, c in runs.values() if s != "refund"), Decimal(0))
            try:
                if act == "reserve":
                    fresh = reserve(ledger, run, epsilon=str(epsilon), cap_epsilon="3").fresh
                    assert fresh == (state == "new")
                    assert (state == "new" and spent + epsilon <= 3) or cost == epsilon
                    runs.setdefault(run, ("reserved", epsilon))
                elif act == "commit":
                    ledger.commit(lineage="adult", run_id=run, snapshot="s")
                    assert state in ("reserved", "committed")
                    runs[run] = ("committed", cost)
                else:
                    refund = act == "refund"
                    ledger.void(lineage="adult", run_id=run, reason="x", nothing_left_the_zone=refund)
                    assert state in ("reserved", "void", "refund")
                    if state == "reserved":
                        runs[run] = (act, cost)
            except BudgetError:
                if act == "reserve":
                    assert state in ("void", "refund") or cost != epsilon or spent + epsilon > 3
                elif act == "commit":
                    assert state in ("new", "void", "refund")
                else:
                    assert state in ("new", "committed") or (state, act) == ("void", "refund")
            expected = sum((c for s, c in runs.values() if s != "refund"), Decimal(0))
            assert ledger.balance("adult").spent_epsilon == expected


def test_lineages_do_not_share_a_budget(ledger: Ledger):
    reserve(ledger, epsilon="4")
    assert reserve(ledger, epsilon="4", lineage="cups").spent_epsilon == 4


@pytest.mark.parametrize("cap", [{"cap_epsilon": "5"}, {"cap_delta": "1.1e-7"}])
def test_a_cap_cannot_be_raised(ledger: Ledger, cap: dict):
    reserve(ledger)
    with pytest.raises(BudgetError, match="can be lowered but not raised") as caught:
        reserve(ledger, "r2", **cap)
    for number in ("4", "5") if "cap_epsilon" in cap else ("1E-7", "1.1E-7"):
        assert number in str(caught.value)


def test_a_lowered_cap_is_recorded_and_binds(ledger: Ledger):
    reserve(ledger)
    assert reserve(ledger, "r2", cap_epsilon="3").cap_epsilon == 3
    with pytest.raises(BudgetError, match="at most 3"):
        reserve(ledger, "r3")
    ledger.commit(lineage="adult", run_id="r1", snapshot="s")
    assert ledger.balance("adult").cap_epsilon == 3
    # The release of the old policy is still there to be returned.
    assert reserve(ledger).state == "committed"


def test_commit_is_idempotent_and_keeps_its_snapshot(ledger: Ledger, path: Path):
    reserve(ledger)
    first = ledger.commit(lineage="adult", run_id="r1", snapshot="2026-11-21")
    again = ledger.commit(lineage="adult", run_id="r1", snapshot="2026-11-21")
    assert first == again
    assert (first.state, first.snapshot, first.spent_epsilon) == ("committed", "2026-11-21", 1)
    assert count(path) == 2
    found = reserve(ledger)
    assert (found.fresh, found.state, found.snapshot) == (False, "committed", "2026-11-21")
    with pytest.raises(BudgetError, match="another snapshot"):
        ledger.commit(lineage="adult", run_id="r1", snapshot="2026-11-22")
    with pytest.raises(BudgetError, match="cannot be voided"):
        ledger.void(lineage="adult", run_id="r1", reason="regret", nothing_left_the_zone=True)


def test_void_keeps_the_budget_spent(ledger: Ledger):
    reserve(ledger)
    balance = ledger.void(lineage="adult", run_id="r1", reason="the cluster was shut down")
    assert balance.spent_epsilon == 1
    assert (balance.runs[0].state, balance.runs[0].counted) == ("void", True)
    with pytest.raises(BudgetError, match="cannot be taken back"):
        ledger.void(lineage="adult", run_id="r1", reason="second thoughts", nothing_left_the_zone=True)
    assert ledger.balance("adult").spent_epsilon == 1


def test_void_gives_back_what_never_left_the_zone(ledger: Ledger, path: Path):
    reserve(ledger, "r0", epsilon="0.1")
    reserve(ledger, epsilon="3.9")
    arguments = {"lineage": "adult", "run_id": "r1", "reason": "a column is missing"}
    balance = ledger.void(**arguments, nothing_left_the_zone=True)
    assert (balance.spent_epsilon, balance.spent_delta) == (Decimal("0.1"), Decimal("1e-9"))
    assert balance.runs[1].reason == "a column is missing"
    assert ledger.void(**arguments, nothing_left_the_zone=True) == balance
    assert count(path) == 3
    with pytest.raises(BudgetError, match="voided and cannot be reserved again"):
        reserve(ledger, epsilon="3.9")
    with pytest.raises(BudgetError, match="voided and cannot be committed"):
        ledger.commit(lineage="adult", run_id="r1", snapshot="s")
    assert reserve(ledger, "r2", epsilon="3.9").fresh


def test_closing_an_unknown_run_is_refused_and_makes_no_file(ledger: Ledger, path: Path):
    for act in (
        lambda: ledger.commit(lineage="adult", run_id="r9", snapshot="s"),
        lambda: ledger.void(lineage="adult", run_id="r9", reason="x"),
    ):
        with pytest.raises(BudgetError, match="run id r9 is not reserved"):
            act()
        assert not path.parent.exists()
    reserve(ledger)
    with pytest.raises(BudgetError, match="run id r9 is not reserved"):
        ledger.commit(lineage="adult", run_id="r9", snapshot="s")


def test_a_dry_run_leaves_no_trace(ledger: Ledger, path: Path):
    assert would_cost(ledger).spent_epsilon == 1
    assert ledger.balance("adult").cap_epsilon is None
    assert not path.parent.parent.exists()
    reserve(ledger)
    before = path.read_bytes()
    assert would_cost(ledger, "r2", "3").spent_epsilon == 4
    assert not would_cost(ledger).fresh
    with pytest.raises(BudgetError, match="left 3"):
        would_cost(ledger, "r2", "3.1")
    assert path.read_bytes() == before


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


def test_lost_triggers_are_noticed(ledger: Ledger, path: Path):
    reserve(ledger)
    alter(path, "DROP TRIGGER events_no_delete")
    with pytest.raises(EngineError, match="no longer append-only"):
        reserve(ledger, "r2")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET epsilon = '0.5' WHERE sequence = 1",
        "UPDATE events SET epsilon = '1/3' WHERE sequence = 1",
        "UPDATE events SET spent_epsilon_after = '0', epsilon = '0' WHERE sequence = 1",
        "UPDATE events SET mechanism = '{}' WHERE sequence = 2",
        "UPDATE events SET cap_epsilon = '9' WHERE sequence = 2",
        "UPDATE events SET state = 'committed' WHERE sequence = 2",
        "DELETE FROM events WHERE sequence = 1",
    ],
)
def test_a_tampered_history_is_not_believed(ledger: Ledger, path: Path, change: str):
    reserve(ledger)
    reserve(ledger, "r2")
    triggers = ledger_file._TRIGGERS
    alter(path, *(f"DROP TRIGGER {name}" for name in triggers), change, *triggers.values())
    with pytest.raises(EngineError, match="does not follow"):
        ledger.balance("adult")
    with pytest.raises(EngineError, match="does not follow"):
        reserve(ledger, "r3")
    assert count(path) <= 2


def _compete(url: str, worker: int, barrier, results) -> None:
    ledger = Ledger(url)
    barrier.wait()
    won = 0
    for attempt in range(4):
        with suppress(BudgetError):
            won += reserve(ledger, f"w{worker}-{attempt}", epsilon="0.3", delta="0").fresh
    shared = reserve(ledger, "shared", epsilon="0", delta="1e-9").fresh
    results.put((won, shared))


def test_eight_concurrent_writers_never_overspend(ledger: Ledger, path: Path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(8), context.Queue()
    workers = [
        context.Process(target=_compete, args=(f"sqlite:///{path}", worker, barrier, results)) for worker in range(8)
    ]
    for worker in workers:
        worker.start()
    outcomes = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    # 32 reservations of 0.3 were asked; a cap of 4 holds 13. The shared run is charged once.
    assert sum(won for won, _ in outcomes) == 13
    assert sum(shared for _, shared in outcomes) == 1
    balance = ledger.balance("adult")
    assert (balance.spent_epsilon, balance.spent_delta, len(balance.runs)) == (
        Decimal("3.9"),
        Decimal("1e-9"),
        14,
    )


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
def test_another_file_is_never_taken_for_an_empty_ledger(ledger: Ledger, path: Path, content: bytes | str):
    path.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        alter(path, "CREATE TABLE events (sequence INTEGER)")
    with pytest.raises(InputError, match="not a privacy-budget ledger"):
        reserve(ledger)
    with pytest.raises(InputError, match="not a privacy-budget ledger"):
        would_cost(ledger)


def test_a_newer_schema_is_refused(ledger: Ledger, path: Path):
    reserve(ledger)
    alter(path, "PRAGMA user_version = 2")
    with pytest.raises(InputError, match="schema 2"):
        ledger.balance("adult")


def test_a_locked_ledger_fails_closed(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch):
    reserve(ledger)
    monkeypatch.setattr(ledger_file, "_BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(EngineError, match="locked"):
        reserve(ledger, "r2")
    holder.rollback()
    holder.close()
    assert len(ledger.balance("adult").runs) == 1


def test_a_failed_insert_reserves_nothing_and_shows_no_parameters(ledger: Ledger, path: Path, monkeypatch):
    reserve(ledger)
    refuse = "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    monkeypatch.setattr(ledger_file, "_TRIGGERS", ledger_file._TRIGGERS | {"full": refuse})
    alter(path, refuse)
    with pytest.raises(EngineError, match="disk full") as caught:
        reserve(ledger, "r2", mechanism={"canary": "c4n4ry"})
    assert "c4n4ry" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert len(ledger.balance("adult").runs) == 1


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@db/x", "sqlite://hunter2", "sqlite+pysqlite:///hunter2", "hunter2.db", ""]
)
def test_other_databases_are_refused_without_echo(url: str):
    with pytest.raises(InputError) as caught:
        Ledger(url)
    assert str(caught.value) == (
        "ledger.url must start with sqlite:///; other databases are not available in this version"
    )


@pytest.mark.parametrize("name", ["", ":memory:", "file:x.db", "x.db?mode=ro", "vault/", "a\0b"])
def test_a_url_must_name_a_plain_file(name: str):
    with pytest.raises(InputError, match="must name a file"):
        Ledger(f"sqlite:///{name}")


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 0.1},
        {"epsilon": 1},
        {"epsilon": True},
        {"epsilon": "-1"},
        {"epsilon": "1e999999999"},
        {"epsilon": "1e-401"},
        {"epsilon": Decimal("1e999999")},
        {"epsilon": Decimal("NaN")},
        {"epsilon": Decimal("sNaN")},
        {"epsilon": "inf"},
        {"epsilon": "1/3"},
        {"epsilon": "1_0"},
        {"epsilon": "٣"},
        {"epsilon": ""},
        {"epsilon": "1" * 101},
        {"delta": "1"},
        {"cap_delta": "1.0"},
        {"run_id": " "},
        {"run_id": "a\nb"},
        {"lineage": "x" * 201},
        {"mechanism": {"k": float("nan")}},
        {"mechanism": {"k": {1, 2}}},
    ],
)
def test_malformed_requests_are_input_errors(ledger: Ledger, path: Path, changed: dict):
    with pytest.raises(InputError):
        reserve(ledger, **changed)
    assert not path.exists()


def test_a_path_with_reserved_characters_is_taken_literally(tmp_path: Path):
    path = tmp_path / "100% #safe" / "led ger.db"
    reserve(Ledger(f"sqlite:///{path}"))
    assert path.exists()
