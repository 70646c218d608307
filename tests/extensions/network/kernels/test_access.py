"""Access control against all matrices A, and against HiGHS."""

from __future__ import annotations

from fractions import Fraction

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels.access import (
    LAST,
    Access,
    Entries,
    Problem,
    lagrangian,
    least_loss,
    most_utility,
    most_utility_of_each,
    solve,
)
from reproduce.sharing.exact_access import exact_least_loss, exact_most_utility

AMOUNT = st.sampled_from([0.0, 0.1, 0.3, 1.0, 1.5, 2.0, 7.0])


@st.composite
def several(draw: st.DrawFn, most: int = 5) -> Entries:
    rows = draw(st.lists(st.tuples(AMOUNT, AMOUNT, st.integers(0, 3)), max_size=most))
    loss, utility, tops = (np.array([row[i] for row in rows]) for i in range(3))
    return Entries(loss.astype(float), utility.astype(float), tops.astype(np.int8))


def exactly(values: np.ndarray, levels) -> Fraction:
    return sum((Fraction(v) * int(x) for v, x in zip(values.tolist(), levels, strict=True)), Fraction())


def all_of(entries: Entries) -> list[tuple[tuple[int, ...], Fraction, Fraction]]:
    return [
        (levels, exactly(entries.loss, levels), exactly(entries.utility, levels))
        for levels in naive_sharing.all_levels(entries.tops.tolist())
    ]


def test_loss_is_that_of_the_thesis() -> None:
    """``L(A)`` with three indices is the sum over entries (i, j, k) of ``f(T_ij) Φ_ik A_ijk``."""
    rng = np.random.default_rng(0)
    f, phi, a = rng.random((3, 3)), rng.random((3, 2)), rng.integers(0, 4, (3, 3, 2))
    entries = Entries((f[:, :, None] * phi[:, None, :]).ravel(), np.ones(18), np.full(18, 3, dtype=np.int8))
    assert float(exactly(entries.loss, a.ravel())) == pytest.approx(naive_sharing.loss(f, phi, a))


@given(several(), st.sampled_from([0.0, 0.1, 1.0, 3.0]))
@settings(max_examples=150, deadline=None)
def test_lagrangian_is_the_best_of_all_and_shows_the_least(entries: Entries, trade_off: float) -> None:
    found = lagrangian(entries, trade_off).tolist()
    cost = [
        (float(exactly(entries.loss - trade_off * entries.utility, levels)), levels) for levels, _, _ in all_of(entries)
    ]
    least = min(value for value, _ in cost)
    tied = [levels for value, levels in cost if value <= least + 1e-12]
    assert tuple(found) in tied
    assert sum(found) == min(map(sum, tied))


def check(found: Access, entries: Entries) -> tuple[Fraction, Fraction]:
    """Its figures are right, and at most one entry is not whole; exact loss and utility."""
    assert ((found.levels >= 0) & (found.levels <= entries.tops)).all()
    loss, utility = exactly(entries.loss, found.levels), exactly(entries.utility, found.levels)
    assert (found.loss, found.utility) == (float(loss), float(utility))
    assert ((found.levels > 0) & (found.levels < entries.tops)).sum() <= 1
    return loss, utility


@given(several(), st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5, 6.0, 50.0]))
@settings(max_examples=250, deadline=None)
def test_most_utility_is_within_one_level_of_the_best(entries: Entries, most_loss: float) -> None:
    found = most_utility(entries, most_loss)
    loss, utility = check(found, entries)
    assert loss <= Fraction(most_loss)
    best = max(u for _, spent, u in all_of(entries) if spent <= Fraction(most_loss))
    assert Fraction(found.bound) >= best >= utility
    assert Fraction(found.gap) >= Fraction(found.bound) - utility - Fraction(1, 10**12)
    assert found.gap <= max(entries.utility, default=0)
    assert exact_most_utility(entries, most_loss + 1e-9).utility == pytest.approx(float(best), abs=1e-6)


@given(several(), st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5, 6.0, 50.0]))
@settings(max_examples=250, deadline=None)
def test_least_loss_is_within_one_level_of_the_best(entries: Entries, least_utility: float) -> None:
    reaching = [spent for _, spent, u in all_of(entries) if u >= Fraction(least_utility)]
    if not reaching:
        for solve in (least_loss, exact_least_loss):
            with pytest.raises(InputError, match="ask for less"):
                solve(entries, least_utility)
        return
    found = least_loss(entries, least_utility)
    loss, utility = check(found, entries)
    assert utility >= Fraction(least_utility)
    assert Fraction(found.bound) <= min(reaching) <= loss
    assert Fraction(found.gap) >= loss - Fraction(found.bound) - Fraction(1, 10**12)
    assert found.gap <= max(entries.loss, default=0)


@pytest.mark.parametrize("seed", range(4))
def test_integer_instances_against_highs(seed: int) -> None:
    """Sixty entries of whole numbers: the bound holds the optimum, and what is found is within a level of it."""
    rng = np.random.default_rng(seed)
    entries = Entries(
        rng.integers(1, 30, 60).astype(float), rng.integers(1, 30, 60).astype(float),
        rng.integers(1, 4, 60).astype(np.int8),
    )  # fmt: skip
    limit = float(rng.integers(100, 1500))
    greedy, exact = most_utility(entries, limit), exact_most_utility(entries, limit)
    assert greedy.utility <= exact.utility <= greedy.bound
    assert exact.gap == 0
    greedy, exact = least_loss(entries, limit), exact_least_loss(entries, limit)
    assert greedy.bound <= exact.loss <= greedy.loss


def test_what_costs_nothing_is_shown_and_what_is_worth_nothing_is_not() -> None:
    entries = Entries(np.array([0.0, 0.0, 1.0, 1.0]), np.array([2.0, 0.0, 0.0, 3.0]), np.array([2, 2, 2, 2], np.int8))
    assert most_utility(entries, 0.0).levels.tolist() == [2, 0, 0, 0]
    assert most_utility(entries, 1.0).levels.tolist() == [2, 0, 0, 1]
    assert least_loss(entries, 4.5).levels.tolist() == [2, 0, 0, 1]
    assert least_loss(entries, 0.0).levels.tolist() == [0, 0, 0, 0]
    places = entries.places()
    assert places.tolist() == [0, int(LAST), int(LAST), places[3]]


@given(st.lists(st.tuples(st.floats(0, 1e300), st.floats(0, 1e300)), min_size=2, max_size=8))
def test_places_are_in_the_order_of_the_ratios(rows: list[tuple[float, float]]) -> None:
    loss, utility = (np.array([row[i] for row in rows]) for i in range(2))
    entries = Entries(loss, utility, np.ones(len(rows), dtype=np.int8))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(utility > 0, utility / loss, -1.0)
    order = np.argsort(entries.places(), kind="stable")
    assert ratio[order].tolist() == sorted(ratio.tolist(), reverse=True)


@given(
    several(), st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5, 6.0, 50.0]), st.sampled_from(["most-utility", "least-loss"])
)
@settings(max_examples=250, deadline=None)
def test_solve_finds_the_best_of_all_levels(entries: Entries, limit: float, problem: Problem) -> None:
    of_all = [
        (float(a), float(b)) for _, a, b in all_of(entries) if (a <= limit if problem == "most-utility" else b >= limit)
    ]
    if not of_all:
        with pytest.raises(InputError, match="ask for less"):
            solve(entries, problem, limit)
        return
    found = solve(entries, problem, limit)
    loss, utility = exactly(entries.loss, found.levels), exactly(entries.utility, found.levels)
    assert (found.loss, found.utility, found.gap) == (float(loss), float(utility), 0)
    if problem == "most-utility":
        assert loss <= Fraction(limit)
        assert found.utility == found.bound == max(b for _, b in of_all)
    else:
        assert utility >= Fraction(limit)
        assert found.loss == found.bound == min(a for a, _ in of_all)


def test_solve_fills_what_the_first_entry_that_does_not_fit_leaves() -> None:
    """A city for 0.4 fits into a limit of 0.5, after an age for 0.6 that is worth more per loss and does not."""
    entries = Entries(np.array([0.6, 0.4]), np.array([6.0, 1.0]), np.ones(2, dtype=np.int8))
    assert solve(entries, "most-utility", 0.5).levels.tolist() == [0, 1]
    assert most_utility_of_each(*(of[None] for of in (entries.loss, entries.utility, entries.tops)), 0.5,
                                at_least=entries.loss[None])[0].tolist() == [[0, 1]]  # fmt: skip


@given(several(), st.sampled_from([0.0, 0.3, 1.0, 2.5, 6.0]), st.sampled_from([0.0, 1e-9, 0.5]))
@settings(max_examples=150, deadline=None)
def test_most_utility_of_each_keeps_the_limit_and_its_gap_reaches_the_best(
    entries: Entries, limit: float, open_share: float
) -> None:
    least = entries.loss * (1 - open_share)
    (levels,), (gap,) = most_utility_of_each(
        entries.loss[None], entries.utility[None], entries.tops[None], limit, at_least=least[None]
    )
    assert exactly(entries.loss, levels) <= Fraction(limit)
    worth = exactly(entries.utility, levels)
    best = [max(b for x, a, b in all_of(entries) if exactly(of, x) <= Fraction(limit)) for of in (entries.loss, least)]
    assert worth <= best[0] <= best[1] <= worth + Fraction(gap) + Fraction(1, 10**12)
    assert (gap == 0) == (worth == best[1])


def test_what_is_out_of_range_is_refused() -> None:
    one = Entries(np.ones(1), np.ones(1), np.ones(1, dtype=np.int8))
    for call in (lambda: most_utility(one, -1.0), lambda: least_loss(one, np.inf), lambda: lagrangian(one, -1.0)):
        with pytest.raises(InputError, match="sharing"):
            call()
    for wrong in ((np.array([-1.0]), np.ones(1)), (np.ones(1), np.array([np.inf])), (np.ones(2), np.ones(1))):
        with pytest.raises(InternalError):
            Entries(*wrong, np.ones(1, dtype=np.int8))
