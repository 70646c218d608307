"""The three problems beside each other, small instances beside HiGHS, and how a network is connected."""

from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.network.kernels.access import Entries, lagrangian
from privrisk_spark.extensions.network.kernels.trust import Exposure
from reproduce.sharing import limits
from reproduce.sharing.limits import access_control, entries_of, quantiles, totals
from reproduce.sharing.sample import befriended, mixed

SAMPLE, FRIENDS = mixed(150, 4, 40, 2), befriended(60, 3, 2)
FOUND = access_control(SAMPLE, FRIENDS)


def test_an_entry_costs_what_it_shows_to_whom() -> None:
    entries = entries_of(SAMPLE, SAMPLE.common.astype(np.float64), Exposure())
    k = SAMPLE.levels.shape[1]
    for p in range(len(SAMPLE.u)):
        for j in range(k):
            e = p * k + j
            assert entries.loss[e] == pytest.approx(SAMPLE.sensitivity[p, j] / (1 + SAMPLE.common[p]))
            assert (entries.utility[e], entries.tops[e]) == (1, SAMPLE.levels[p, j])
    assert totals(entries) == pytest.approx((float((entries.loss * entries.tops).sum()), SAMPLE.levels.sum()))
    assert FOUND.entries == int((SAMPLE.levels > 0).sum())


def test_values_of_the_trade_off_tell_shares_apart() -> None:
    entries = Entries(np.array([1.0, 2.0, 8.0]), np.ones(3), np.array([3, 1, 0], dtype=np.int8))
    values = quantiles(entries, 3)
    assert values == pytest.approx((0.0, 1.0, 2.0), rel=1e-6)
    assert [int(lagrangian(entries, value).sum()) for value in values] == [0, 3, 4]


def test_limits_are_kept_and_the_curve_is_one() -> None:
    for one in FOUND.limited:
        if one.problem == "most-utility":
            assert one.loss <= one.share + 1e-12
        else:
            assert one.utility >= one.share - 1e-12
        assert 0 <= one.gap < 0.1
    for problem in ("most-utility", "least-loss"):
        some = [one for one in FOUND.limited if one.problem == problem]
        assert [one.utility for one in some] == sorted(one.utility for one in some)
        assert [one.loss for one in some] == sorted(one.loss for one in some)


def test_what_a_trade_off_finds_no_limit_beats() -> None:
    assert FOUND.traded[0].utility == FOUND.traded[0].loss == 0
    assert FOUND.traded[-1].utility == pytest.approx(1)
    assert {one.repeated for one in FOUND.traded} == {2}


def test_a_worse_trade_off_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the cheapest level of what is shown is left out, and the dearest shown for it."""

    def wrong(entries: Entries, trade_off: float) -> np.ndarray:
        levels = lagrangian(entries, trade_off)
        levels[np.where(levels > 0, entries.loss, np.inf).argmin()] = 0
        return levels

    monkeypatch.setattr(limits, "lagrangian", wrong)
    found = access_control(SAMPLE, FRIENDS)
    assert min(one.repeated for one in found.traded) < 2


def test_small_instances_are_short_of_the_best_by_no_more_than_the_gap() -> None:
    assert len(FOUND.small) + FOUND.refused == 2 * limits.INSTANCES
    assert all(-1e-9 <= one.short <= one.gap + 1e-9 for one in FOUND.small)
    assert any(one.short > 1e-6 for one in FOUND.small)
    assert any(one.gap > one.short + 1e-6 for one in FOUND.small)


def test_what_highs_refuses_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InternalError("HiGHS passed the limit")

    monkeypatch.setattr(limits, "exact_most_utility", refuse)
    found = access_control(SAMPLE, FRIENDS)
    assert found.refused == limits.INSTANCES
    assert {one.problem for one in found.small} == {"least-loss"}


def steps_from(user: int, links: list[tuple[int, int]]) -> dict[int, int]:
    """Steps to whom a user is connected, in both directions of a link."""
    steps, wave = {user: 0}, {user}
    while wave:
        beside = {b for a, b in links if a in wave} | {a for a, b in links if b in wave}
        wave = beside - set(steps)
        steps |= dict.fromkeys(wave, max(steps.values()) + 1)
    return steps


def test_connections_are_those_of_a_graph_of_links() -> None:
    entries = entries_of(FRIENDS, FRIENDS.common.astype(np.float64), Exposure())
    for one in FOUND.linked:
        shown = lagrangian(entries, one.trade_off).reshape(FRIENDS.levels.shape).sum(axis=1, dtype=int)
        enough = 2 * shown >= FRIENDS.levels.sum(axis=1, dtype=int)
        links = list(zip(FRIENDS.u[enough].tolist(), FRIENDS.v[enough].tolist(), strict=True))
        assert one.links == len(links)
        steps = {user: steps_from(user, links) for user in {user for link in links for user in link}}
        largest = max(map(len, steps.values()), default=0)
        assert one.largest == largest
        diameter = max((max(of.values()) for of in steps.values() if len(of) == largest), default=0)
        assert diameter / 2 <= one.diameter <= diameter
        assert one.utility == pytest.approx(shown.sum() / FRIENDS.levels.sum(dtype=int))
