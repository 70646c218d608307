"""The cap binds on the tight composition where the policy says so: what is admitted, refused, kept, and repeated."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from ledgers import MECHANISM, InFile, OnServer, commit, compete_tightly, publish, reserve
from policies import DP, changed

from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger.accounting import composed
from privrisk_spark.ledger.composition import charged_events, composed_epsilon
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.losses import Claimed
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.reading import parse

Place = InFile | OnServer
PLAN = mechanism(
    parse(
        changed(
            DP,
            ("guarantee.crowd", None),
            ("guarantee.frequent", None),
            ("columns.zip.hierarchy", {"tree": {"*": ["1", "2"]}}),
        )
    )
)
STORED = {"parameters": PLAN.parameters, "digest": "ab", "version": "1"}
ONE = PLAN.events


def tightly(ledger: Ledger, run_id: str, **other: Any):
    return reserve(ledger, run_id, **({"mechanism": STORED, "accounting": "pld", "cap_epsilon": "2"} | other))


def figure(times: int, delta: str = "1e-7") -> Decimal:
    found = composed_epsilon([ONE] * times, Fraction(delta))
    assert found is not None
    return found


def test_pld_admits_what_the_sums_refuse_and_refuses_at_its_own_limit(ledger: Ledger, place: Place):
    for number in (1, 2):
        reserve(ledger, f"r{number}", mechanism=STORED, cap_epsilon="2")
    with pytest.raises(BudgetError, match="left 0;"):
        reserve(ledger, "r3", mechanism=STORED, cap_epsilon="2")
    made = tightly(ledger, "r3")
    assert made.composed_epsilon == figure(3) <= 2
    assert made.spent_epsilon == 3
    admitted = 3
    while figure(admitted + 1) <= 2:
        admitted += 1
        made = tightly(ledger, f"r{admitted}")
        assert made.composed_epsilon == figure(admitted)
    assert admitted >= 5
    with pytest.raises(BudgetError, match=r"ledger.accounting 'pld'\) all runs cost .* now and .* with it, at") as no:
        tightly(ledger, "beyond")
    assert f"{figure(admitted)} now and epsilon {figure(admitted + 1)} with it" in str(no.value)
    # The sums of all runs bind whoever asks for the sums, and every run goes on to its end.
    with pytest.raises(BudgetError, match=f"spent {admitted}, cap 2, left 0"):
        reserve(ledger, "basic", mechanism=STORED, cap_epsilon="2")
    assert publish(ledger, "r5").state == "committed"
    assert not tightly(ledger, "r5").fresh
    balance = ledger.balance("adult")
    assert [run.composed_epsilon is None for run in balance.runs] == [True, True] + [False] * (admitted - 2)
    # What is given back is left again.
    ledger.void(lineage="adult", run_id="r4", reason="never begun", nothing_left_the_zone=True)
    assert tightly(ledger, "again").composed_epsilon == figure(admitted)
    assert Ledger(place.url).balance("adult").spent_epsilon == admitted


def test_a_run_that_the_sums_admit_is_never_refused_by_the_tight_composition(ledger: Ledger):
    for number in range(3):
        made = tightly(ledger, f"r{number}", epsilon="0.1", delta="0", mechanism=MECHANISM, cap_epsilon="0.3")
        assert made.composed_epsilon == Decimal("0.1") * (number + 1)
    with pytest.raises(BudgetError, match=r"cap 0\.3"):
        tightly(ledger, "r3", epsilon="0.1", delta="0", mechanism=MECHANISM, cap_epsilon="0.3")


def test_runs_whose_laws_are_not_known_count_by_their_claim(ledger: Ledger):
    reserve(ledger, "old", epsilon="0.7", delta="1e-9")
    reserve(ledger, "other claim", epsilon="0.5", delta="1e-9", mechanism=STORED)
    tightly(ledger, "new")
    old, other, new = charged_events(ledger.balance("adult").runs)
    assert old.sampling == Claimed(Fraction("0.7"), Fraction("1e-9"))
    assert other.sampling == Claimed(Fraction("0.5"), Fraction("1e-9"))
    assert new == ONE
    # One claim alone costs what it says; with others, never less than they cost without it.
    assert 0.7 <= composed([old], 1e-9) <= 0.7001
    assert 0.6999 <= composed([old], 2e-9) <= 0.7, "a little less at more delta"
    assert composed([new], 1e-7) < composed([old, new], 1e-7) < composed([old, other, new], 1e-7)


def test_claims_compose_as_the_worst_law_of_a_claim():
    """Two (epsilon, 0) claims are two randomized responses: their product, literally."""
    one = replace(ONE, **vars(type(ONE).claimed(Fraction(1, 2), Fraction(0))))
    p, q = 1 / (1 + 2.718281828459045**-0.5), 1 / (1 + 2.718281828459045**0.5)
    for epsilon in (0.2, 0.6, 0.9):
        a = 2.718281828459045**epsilon
        literal = max(p * p - a * q * q, 0) + 2 * max(p * q - a * p * q, 0)
        assert composed([one] * 2, literal * (1 - 1e-6)) >= epsilon
        assert composed([one] * 2, literal * 1.01) <= epsilon + 2e-3


def test_the_figure_is_of_the_lower_cap_of_delta_and_of_no_order():
    assert figure(3, "1e-7") < figure(3, "1e-8")
    other = type(ONE).claimed(Fraction("0.2"), Fraction("1e-10"))
    orders = ([ONE, other, ONE], [other, ONE, ONE], [ONE, ONE, other])
    assert len({composed_epsilon(order, Fraction("1e-7")) for order in orders}) == 1
    figures = [figure(times) for times in range(1, 9)]
    assert figures == sorted(figures)
    assert composed_epsilon([ONE], Fraction("1e-10")) is None, "its delta alone is more"
    assert composed_epsilon([], Fraction(0)) == 0


@pytest.mark.parametrize(
    "change",
    ["composed_epsilon = NULL", "composed_epsilon = '0.1'", "composed_epsilon = '1e9'", "composed_epsilon = 'x'"],
)
def test_a_figure_that_was_changed_is_noticed(ledger: Ledger, place: Place, change: str):
    for number in range(3):
        tightly(ledger, f"r{number}")
    place.tamper(f"UPDATE events SET {change} WHERE sequence = 3")
    with pytest.raises(EngineError):
        ledger.balance("adult")


def test_two_processes_at_once_never_exceed_the_tight_cap(ledger: Ledger, place: Place):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=compete_tightly, args=(place.url, worker, json.dumps(STORED), barrier, results))
        for worker in range(2)
    ]
    for worker in workers:
        worker.start()
    won = sum(results.get(timeout=240) for _ in workers)
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert figure(won) <= 2 < figure(won + 1)
    figures = [run.composed_epsilon for run in ledger.balance("adult").runs]
    assert figures == [figure(times) for times in range(1, won + 1)]


def test_a_committed_run_does_not_bind_the_sums_again(ledger: Ledger):
    for number in range(4):
        tightly(ledger, f"r{number}")
        publish(ledger, f"r{number}")
    assert commit(ledger, "r0").spent_epsilon == 4
    ledger.note(lineage="adult", run_id="n", what="risk", place="/o")
    assert ledger.balance("adult").spent_epsilon == 4
