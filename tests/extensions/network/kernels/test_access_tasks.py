"""The network's limit found without collecting an entry, against the same problem in one place."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels import access_tasks
from privrisk_spark.extensions.network.kernels.access import Entries, Problem, least_loss, most_utility
from privrisk_spark.extensions.network.kernels.access_tasks import Amounts, Search
from privrisk_spark.kernels.numeric.fold import folded

AMOUNT = st.sampled_from([0.0, 0.1, 0.3, 1.0, 1.5, 2.0, 7.0])
ROWS = st.lists(st.tuples(AMOUNT, AMOUNT, st.integers(0, 3)), max_size=12)


def entries_of(rows: list[tuple[float, float, int]]) -> Entries:
    loss, utility, tops = (np.array([row[i] for row in rows]) for i in range(3))
    return Entries(loss.astype(float), utility.astype(float), tops.astype(np.int8))


def searched(tasks: list[tuple[Entries, np.ndarray]], problem: Problem, limit: float) -> tuple[Search, int]:
    search, passes = Search(problem, limit), 0
    while not search.done:
        amounts = [Amounts.of(entries, keys, search=search) for entries, keys in tasks]
        search = search.narrowed(folded(Amounts.empty(search), amounts))
        passes += 1
        assert passes <= 8
    return search, passes


@given(ROWS, st.sampled_from([0.1, 0.3, 1.0, 2.5, 6.0, 50.0]), st.data())
@settings(max_examples=300, deadline=None)
def test_tasks_find_what_one_place_finds(rows, limit: float, data) -> None:
    """In any order and any parts: the same entry is not whole, and the same levels are shown."""
    keys = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.uint64)
    # Keys that differ in their upper, middle and lowest bits alone.
    keys = keys << np.uint64(data.draw(st.sampled_from([0, 20, 60])))
    owner = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))), dtype=np.int64)
    entries = entries_of(rows)
    tasks = [(entries.part(np.flatnonzero(owner == t)), keys[owner == t]) for t in range(3)]
    order = np.argsort(keys)
    for problem, solve in (("most-utility", most_utility), ("least-loss", least_loss)):
        try:
            expected = solve(entries.part(order), limit)
        except InputError:
            with pytest.raises(InputError, match="ask for less"):
                searched(tasks, problem, limit)
            continue
        if problem == "least-loss" and expected.levels.tolist() == entries.tops[order].tolist():
            continue  # All there is: refused, but for rounding.
        search, _ = searched(tasks, problem, limit)
        levels, relaxed = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
        for t, task in enumerate(tasks):
            levels[owner == t], relaxed[owner == t] = search.levels(*task), search.relaxed(*task)
        spent, worth = levels @ entries.loss, levels @ entries.utility
        assert spent <= limit * (1 + 1e-12) if problem == "most-utility" else worth >= limit * (1 - 1e-12)
        # Rounding of the amounts may show a level less, or more: never by more than that of one entry.
        found = levels[order]
        assert np.abs(found - expected.levels).sum() <= 1
        whole = np.where(relaxed > 0, relaxed, levels)
        bound = whole @ (entries.utility if problem == "most-utility" else entries.loss)
        assert bound == pytest.approx(expected.bound, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("problem", ["most-utility", "least-loss"])
def test_a_large_network_of_few_ratios_takes_few_passes(problem: Problem) -> None:
    """Equal utilities and three trusts: keys decide, and the limit is kept but for one level."""
    rng = np.random.default_rng(1)
    m = 200_000
    loss, tops = rng.choice([0.25, 1.0, 3.0], m), rng.integers(1, 6, m).astype(np.int8)
    entries = Entries(loss, np.ones(m), tops)
    keys = rng.permutation(m).astype(np.uint64) * np.uint64(2**45)
    limit = 300_000.0
    search, passes = searched([(entries, keys)], problem, limit)
    assert passes <= 4
    levels = search.levels(entries, keys)
    assert ((levels > 0) & (levels < tops)).sum() <= 1
    if problem == "most-utility":
        assert limit - 3 < (levels * loss).sum() <= limit
    else:
        assert limit <= levels.sum() <= limit + 1
    every = np.argsort(keys)
    one = (most_utility if problem == "most-utility" else least_loss)(entries.part(every), limit)
    assert np.abs(levels[every].astype(int) - one.levels).sum() <= 1


def test_everything_is_shown_where_the_limit_allows_it() -> None:
    entries = Entries(np.array([1.0, 2.0]), np.array([1.0, 0.0]), np.array([3, 3], dtype=np.int8))
    keys = np.arange(2, dtype=np.uint64)
    search, passes = searched([(entries, keys)], "most-utility", 100.0)
    assert passes == 1
    assert search.levels(entries, keys).tolist() == [3, 0]
    assert search.relaxed(entries, keys).tolist() == [0, 0]


@given(st.floats(0, 1e300), st.floats(1e-300, 1e300))
def test_units_are_rounded_to_the_safe_side(amount: float, limit: float) -> None:
    entries = Entries(np.array([amount]), np.array([amount]), np.ones(1, dtype=np.int8))
    exact = Fraction(amount) / Fraction(limit) * access_tasks.LIMIT
    up = int(Search("most-utility", limit).units(entries)[0])
    down = int(Search("least-loss", limit).units(entries)[0])
    most = access_tasks.LIMIT + 1
    assert up == most if exact > access_tasks.LIMIT else exact <= up <= exact * (1 + Fraction(1, 2**51)) + 1
    assert down in (most, most - 1) if exact > access_tasks.LIMIT else exact >= down
    assert down >= min(exact * (1 - Fraction(1, 2**51)) - 1, most - 1)


def test_amounts_of_another_search_are_refused() -> None:
    search = Search("most-utility", 1.0)
    other = Amounts.empty(replace(search, limit=2.0))
    with pytest.raises(InternalError):
        search.narrowed(other)
    with pytest.raises(InternalError):
        search.levels(entries_of([]), np.zeros(0, dtype=np.uint64))
    with pytest.raises(InputError, match=r"sharing\.limit"):
        Search("most-utility", 0.0)
