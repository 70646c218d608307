from __future__ import annotations

import multiprocessing
import uuid
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledgers import (
    MECHANISM,
    InFile,
    OnServer,
    commit,
    compete,
    pin,
    publish,
    reserve,
    stop_after_reserve,
    stop_before_commit,
    would_cost,
)

from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.ledger import Ledger

Place = InFile | OnServer
NOT_BELIEVED = "event [12] of the ledger (does not follow|is not what was written)"


def count(place: Place) -> int:
    return int(place.run("SELECT count(*) FROM events")[0][0])


def test_a_first_reservation_charges_the_lineage(ledger: Ledger):
    result = reserve(ledger)
    assert result.fresh
    assert (result.state, result.spent_epsilon, result.spent_delta) == (
        "reserved",
        Decimal(1),
        Decimal("1e-9"),
    )


def test_a_retry_costs_nothing(ledger: Ledger, place: Place):
    reserve(ledger)
    retry = reserve(Ledger(place.url), mechanism=dict(reversed(MECHANISM.items())), epsilon="1.0")
    assert not retry.fresh
    assert retry.spent_epsilon == 1
    assert count(place) == 1


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
    publish(ledger)
    assert ledger.balance("adult").cap_epsilon == 3
    # The release of the old policy is still there to be returned.
    assert reserve(ledger).state == "committed"


def test_commit_is_idempotent_and_keeps_its_snapshot(ledger: Ledger, place: Place):
    reserve(ledger)
    first = publish(ledger, snapshot="2026-11-21")
    assert commit(ledger) == first == publish(ledger, snapshot="2026-11-21")
    assert (first.state, first.snapshot, first.spent_epsilon) == ("committed", "2026-11-21", 1)
    assert count(place) == 4
    found = reserve(ledger)
    assert (found.fresh, found.state, found.snapshot) == (False, "committed", "2026-11-21")
    with pytest.raises(BudgetError, match="table changed"):
        pin(ledger, snapshot="2026-11-22")
    with pytest.raises(BudgetError, match="committed to another release"):
        commit(ledger, release="e")
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


def test_void_gives_back_what_never_left_the_zone(ledger: Ledger, place: Place):
    reserve(ledger, "r0", epsilon="0.1")
    reserve(ledger, epsilon="3.9")
    arguments = {"lineage": "adult", "run_id": "r1", "reason": "a column is missing"}
    balance = ledger.void(**arguments, nothing_left_the_zone=True)
    assert (balance.spent_epsilon, balance.spent_delta) == (Decimal("0.1"), Decimal("1e-9"))
    assert balance.runs[1].reason == "a column is missing"
    assert ledger.void(**arguments, nothing_left_the_zone=True) == balance
    assert count(place) == 3
    with pytest.raises(BudgetError, match="voided and cannot be reserved again"):
        reserve(ledger, epsilon="3.9")
    with pytest.raises(BudgetError, match="voided and cannot be committed"):
        commit(ledger)
    assert reserve(ledger, "r2", epsilon="3.9").fresh


def test_closing_an_unknown_run_is_refused_and_makes_no_ledger(ledger: Ledger, place: Place):
    for act in (
        lambda: commit(ledger, "r9"),
        lambda: ledger.void(lineage="adult", run_id="r9", reason="x"),
    ):
        with pytest.raises(BudgetError, match="run id r9 is not reserved"):
            act()
        assert not place.exists()
    reserve(ledger)
    with pytest.raises(BudgetError, match="run id r9 is not reserved"):
        commit(ledger, "r9")


def test_a_dry_run_leaves_no_trace(ledger: Ledger, place: Place):
    assert would_cost(ledger).spent_epsilon == 1
    assert ledger.balance("adult").cap_epsilon is None
    assert not place.exists()
    reserve(ledger)
    before = place.content()
    assert would_cost(ledger, "r2", "3").spent_epsilon == 4
    assert not would_cost(ledger).fresh
    with pytest.raises(BudgetError, match="left 3"):
        would_cost(ledger, "r2", "3.1")
    assert place.content() == before


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
def test_malformed_requests_are_input_errors(ledger: Ledger, place: Place, changed: dict):
    with pytest.raises(InputError):
        reserve(ledger, **changed)
    assert not place.exists()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
def test_any_history_agrees_with_a_plain_sum(ledger: Ledger, history: list[tuple[str, int, Decimal]]):
    lineage = uuid.uuid4().hex
    runs: dict[str, tuple[str, Decimal]] = {}
    for act, number, epsilon in history:
        run = f"r{number}"
        state, cost = runs.get(run, ("new", Decimal(0)))
        spent = sum((c for s, c in runs.values() if s != "refund"), Decimal(0))
        try:
            if act == "reserve":
                fresh = reserve(ledger, run, epsilon=str(epsilon), cap_epsilon="3", lineage=lineage).fresh
                assert fresh == (state == "new")
                assert (state == "new" and spent + epsilon <= 3) or cost == epsilon
                runs.setdefault(run, ("reserved", epsilon))
            elif act == "commit":
                of = {"lineage": lineage, "run_id": run}
                ledger.bind(**of, key="k", place="/out")
                ledger.pin(**of, snapshot="s")
                ledger.commit(**of, release="d")
                assert state in ("reserved", "committed")
                runs[run] = ("committed", cost)
            else:
                refund = act == "refund"
                ledger.void(lineage=lineage, run_id=run, reason="x", nothing_left_the_zone=refund)
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
        assert ledger.balance(lineage).spent_epsilon == expected


def test_the_lineages_of_a_ledger_are_listed(ledger: Ledger, place: Place):
    assert ledger.lineages() == ()
    assert not place.exists()
    for name in ("b", "a'; DROP TABLE events; -- %s", "ä"):
        reserve(ledger, lineage=name)
        reserve(ledger, "r2", lineage=name)
    assert ledger.lineages() == ("a'; drop table events; -- %s", "b", "ä")


def test_a_ledger_may_be_created_before_it_is_used(ledger: Ledger, place: Place):
    ledger.create()
    before = place.content()
    ledger.create()
    assert place.content() == before
    assert count(place) == 0
    assert reserve(ledger).fresh
    assert bool(ledger.grants) == (place.kind == "postgresql")


def test_a_url_may_come_from_the_environment(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEDGER_URL", place.url)
    reserve(Ledger("env:LEDGER_URL"))
    assert count(place) == 1
    monkeypatch.delenv("LEDGER_URL")
    with pytest.raises(InputError, match="environment variable that is not set"):
        Ledger("env:LEDGER_URL")


def test_lost_triggers_are_noticed(ledger: Ledger, place: Place):
    reserve(ledger)
    place.lift()
    with pytest.raises(EngineError, match="no longer append-only"):
        reserve(ledger, "r2")


@pytest.mark.parametrize(
    "change",
    [
        # What no total shows.
        "UPDATE events SET created_at = '2020-01-01' WHERE sequence = 1",
        'UPDATE events SET asked = \'{"policy":"another"}\' WHERE sequence = 2',
        "UPDATE events SET table_identity = 'another' WHERE sequence = 1",
        "UPDATE events SET chain = NULL WHERE sequence = 2",
        "UPDATE events SET epsilon = '0.5' WHERE sequence = 1",
        "UPDATE events SET spent_epsilon_after = '0', epsilon = '0' WHERE sequence = 1",
        "UPDATE events SET mechanism = '{}' WHERE sequence = 2",
        "UPDATE events SET cap_epsilon = '9' WHERE sequence = 2",
        "UPDATE events SET state = 'committed' WHERE sequence = 2",
        "DELETE FROM events WHERE sequence = 1",
    ],
)
def test_a_tampered_history_is_not_believed(ledger: Ledger, place: Place, change: str):
    reserve(ledger)
    reserve(ledger, "r2")
    place.tamper(change)
    with pytest.raises(EngineError, match=NOT_BELIEVED):
        ledger.balance("adult")
    with pytest.raises(EngineError, match=NOT_BELIEVED):
        reserve(ledger, "r3")
    assert count(place) <= 2


def test_eight_concurrent_writers_fill_the_cap_and_never_exceed_it(ledger: Ledger, place: Place):
    """All of them create the ledger, too, as there is none when they start."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(8), context.Queue()
    workers = [context.Process(target=compete, args=(place.url, worker, barrier, results, True)) for worker in range(8)]
    for worker in workers:
        worker.start()
    outcomes = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    # A cap of 4 holds 13 reservations of 0.3. The shared run is charged once.
    assert sum(won for won, _, _, _ in outcomes) == 13
    assert [refused for _, refused, _, _ in outcomes] == [1] * 8
    assert sum(shared for _, _, shared, _ in outcomes) == 1
    balance = ledger.balance("adult")
    assert (balance.spent_epsilon, balance.spent_delta, len(balance.runs)) == (Decimal("3.9"), Decimal("1e-9"), 14)
    assert count(place) == 14


def test_a_writer_killed_before_its_commit_leaves_nothing(ledger: Ledger, place: Place):
    context = multiprocessing.get_context("spawn")
    inserted = context.Event()
    reserve(ledger, "r0", epsilon="0.5")
    writer = context.Process(target=stop_before_commit, args=(place.url, inserted))
    writer.start()
    assert inserted.wait(timeout=60)
    assert ledger.balance("adult").spent_epsilon == Decimal("0.5"), "what is not committed is not seen"
    writer.kill()
    writer.join(timeout=60)
    # The next writer waits until the database has noticed, and finds the whole remainder.
    assert reserve(ledger, "r1", epsilon="3.5").fresh
    assert [run.run_id for run in ledger.balance("adult").runs] == ["r0", "r1"]


def test_a_run_killed_between_reserve_and_commit_stays_charged_once(ledger: Ledger, place: Place):
    context = multiprocessing.get_context("spawn")
    reserved = context.Event()
    writer = context.Process(target=stop_after_reserve, args=(place.url, reserved))
    writer.start()
    assert reserved.wait(timeout=60)
    writer.kill()
    writer.join(timeout=60)
    with pytest.raises(BudgetError, match="left 1;"):
        reserve(ledger, "other", epsilon="1.5")
    retry = reserve(ledger, "killed", epsilon="3")
    assert (retry.fresh, retry.state, retry.spent_epsilon) == (False, "reserved", 3)
    assert publish(ledger, "killed").state == "committed"
    assert count(place) == 4
