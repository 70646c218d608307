from __future__ import annotations

import math
from fractions import Fraction

import naive_attribute_attacks as naive
import naive_linkage
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linked_files import file_of, files
from scipy import integrate

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile, ConsistentCells
from privrisk_spark.extensions.attack.kernels.membership import Bound, dealt, dealt_in_blocks, held_out, membership

GROUPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=7).filter(
    lambda groups: any(m for m, _, _ in groups) and any(o for _, o, _ in groups)
)
"""Members, others and a score of each group of people who are alike."""


def columns_of(groups: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    members, others, score = (np.array(column, dtype=np.float64) for column in zip(*groups, strict=True))
    return members, others, score


@given(GROUPS)
def test_points_area_and_advantage_by_pairs_of_people(groups: list[tuple[int, int, int]]) -> None:
    members, others, score = columns_of(groups)
    found = membership(members, others, score)
    of_members = [Fraction(s) for m, _, s in groups for _ in range(m)]
    of_others = [Fraction(s) for _, o, s in groups for _ in range(o)]
    assert found.area == pytest.approx(float(naive.area(of_members, of_others)), abs=1e-12)
    assert found.advantage == pytest.approx(float(naive.advantage(of_members, of_others)), abs=1e-12)
    turned = naive.advantage([-one for one in of_members], [-one for one in of_others])
    assert found.reversed_advantage == pytest.approx(float(turned), abs=1e-12)
    assert (found.members, found.others) == (len(of_members), len(of_others))
    assert (np.diff(found.true_positives) >= 0).all()
    assert (np.diff(found.score) < 0).all()


@given(GROUPS)
def test_no_set_of_people_does_better_than_the_share(groups: list[tuple[int, int, int]]) -> None:
    members, others, score = columns_of(groups)
    best = membership(members, others)
    every = naive.best_advantage([m for m, _, _ in groups], [o for _, o, _ in groups])
    assert best.advantage == pytest.approx(float(every), abs=1e-12)
    other = membership(members, others, score)
    assert other.advantage <= best.advantage + 1e-12
    assert other.area <= best.area + 1e-12
    for false, true in zip(other.false_positives, other.true_positives, strict=True):
        assert true <= np.interp(false, best.false_positives, best.true_positives) + 1e-12


@given(GROUPS, st.integers(1, 5))
def test_people_alike_may_be_told_apart_or_not(groups: list[tuple[int, int, int]], times: int) -> None:
    """Groups of one share are one, and as many times the people change nothing."""
    members, others, _ = columns_of(groups)
    one = membership(members, others)
    many = membership(np.tile(members * times, 2), np.tile(others * times, 2))
    np.testing.assert_allclose(one.true_positives, many.true_positives, atol=1e-12)
    assert one.score.tolist() == many.score.tolist()


@given(files(), st.data())
def test_rows_are_dealt_to_the_nearest_people(given, data: st.DataObject) -> None:
    """Row by row, to each of the nearest people by two loops the same part."""
    trees, weights, people, alike, known = given
    rows = data.draw(st.lists(st.integers(1, 5), min_size=len(known), max_size=len(known)))
    found = dealt(file_of(trees, weights, people, alike), np.array(known, dtype=np.int32), np.array(rows))
    expected = [Fraction(0)] * len(people)
    for n, (_, tied, nearest) in zip(rows, naive_linkage.linked(trees, weights, known, people, alike), strict=True):
        for j in nearest:
            expected[j] += Fraction(n, tied)
    np.testing.assert_allclose(found, [float(one) for one in expected], atol=1e-12)
    assert found @ np.array(alike) == pytest.approx(sum(rows))


@given(files(), st.data())
def test_rows_are_dealt_in_blocks_to_the_people_of_a_search_there(given, data: st.DataObject) -> None:
    """Each row by itself: in equal parts to those of its block, and where that is complete as to everybody."""
    trees, weights, people, alike, known = given
    file, codes = file_of(trees, weights, people, alike), np.array(known, dtype=np.int32)
    rows = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(known), max_size=len(known))))
    weighty = [j for j in range(len(trees)) if file.weights[j]]
    by = tuple(sorted(data.draw(st.sets(st.sampled_from(weighty), min_size=1))))
    blocked = BlockedFile(file, ConsistentCells(by))
    got, linked, complete = dealt_in_blocks(blocked, codes, rows)
    found, sure = blocked.told(codes)
    assert (linked.rows.tolist(), linked.first.tolist()) == (found.rows.tolist(), found.first.tolist())
    np.testing.assert_allclose(linked.distance, found.distance, atol=1e-12)
    assert complete.tolist() == sure.tolist()
    one_by_one = np.zeros(len(people))
    own = np.arange(len(people))
    for i, n in enumerate(rows):
        alone = dealt_in_blocks(blocked, codes[i : i + 1], rows[i : i + 1])[0]
        held = blocked.holds(np.repeat(codes[i : i + 1], len(own), axis=0), own, found.at(np.full(len(own), i)))
        np.testing.assert_allclose(alone, held * n / found.rows[i], atol=1e-12)
        if complete[i]:
            np.testing.assert_allclose(alone, dealt(file, codes[i : i + 1], rows[i : i + 1]), atol=1e-12)
        one_by_one += alone
    np.testing.assert_allclose(got, one_by_one, atol=1e-12)
    assert got @ np.array(alike) == pytest.approx(rows.sum())


def test_membership_of_members_who_score_low_has_an_advantage_in_the_other_direction() -> None:
    """Ten members get nothing, two others get nothing, eight get a row."""
    found = membership(np.array([10.0, 0.0]), np.array([2.0, 8.0]), np.array([0.0, 1.0]))
    assert (found.advantage, found.reversed_advantage) == (0, 0.8)


def test_suppressed_people_by_hand() -> None:
    """Of 4 alike all are released, of 4 others 2, of 2 nobody: 6 members. 4/6 of them are told at no false one."""
    found = membership(np.array([4.0, 2, 0]), np.array([0.0, 2, 2]))
    assert found.score.tolist() == [1, 0.5, 0]
    np.testing.assert_allclose(found.true_positives, [0, 4 / 6, 1, 1], atol=1e-15)
    np.testing.assert_allclose(found.false_positives, [0, 0, 0.5, 1], atol=1e-15)
    assert found.advantage == pytest.approx(4 / 6, abs=1e-15)
    assert found.area == pytest.approx(0.5 * (4 / 6 + 1) / 2 + 0.5, abs=1e-15)
    nothing = membership(np.array([3.0, 6]), np.array([1.0, 2]))
    assert (nothing.advantage, nothing.area, len(nothing.score)) == (0, 0.5, 1)


@pytest.mark.parametrize("epsilon", [0.0, math.log(3), 2.5])
def test_randomized_response_reaches_its_bound(epsilon: float) -> None:
    """Members say so with probability e^ε/(1 + e^ε), others the opposite: the exact law of an ε-DP coin."""
    yes = math.exp(epsilon)
    found = membership(np.array([yes, 1.0]), np.array([1.0, yes]))
    bound = Bound(epsilon, 0.0)
    assert found.within(bound).all()
    assert found.advantage == pytest.approx(bound.advantage, abs=1e-12)
    assert found.area == pytest.approx(bound.area, abs=1e-12)
    planted = membership(np.array([1.01 * yes, 1.0]), np.array([1.0, yes]))
    assert not planted.within(bound).all()
    assert planted.advantage > bound.advantage
    assert planted.area > bound.area


def test_two_coins_are_two_epsilons() -> None:
    """Two randomized responses of ε = ln 2 keep to 2 ε and not to ε; to ε with the δ that is their exact excess."""
    members = np.array([4.0, 2, 2, 1])
    found = membership(members, members[::-1])
    assert found.within(Bound(2 * math.log(2), 0)).all()
    assert not found.within(Bound(math.log(2), 0)).all()
    # δ(ε) = Σ max(P - e^ε Q, 0) = (4 - 2 · 1)/9.
    assert found.within(Bound(math.log(2), 2 / 9)).all()
    assert not found.within(Bound(math.log(2), 0.22)).all()


@given(st.floats(0, 8), st.floats(0, 1))
def test_bounds_are_those_of_their_points(epsilon: float, delta: float) -> None:
    bound = Bound(epsilon, delta)
    false = np.linspace(0, 1, 2001)
    most = bound.positives(false)
    assert (np.diff(most) >= -1e-12).all()
    assert float((most - false).max()) <= bound.advantage + 1e-9
    meet = (1 - delta) / (1 + math.exp(epsilon))
    assert float(bound.positives(np.array([meet]))[0]) - meet == pytest.approx(bound.advantage, abs=1e-9)
    assert bound.area == pytest.approx(float(integrate.trapezoid(most, false)), abs=1e-3)


def test_bounds_of_great_epsilon_are_none() -> None:
    assert Bound(1e6, 0.0).advantage == Bound(0.0, 1.0).advantage == 1
    assert Bound(1e6, 0.0).positives(np.array([0.0, 1e-3])).tolist() == [0, 1]
    assert Bound(0.0, 0.0).area == 0.5


def test_what_is_no_attack_is_refused() -> None:
    for members, others, rule in (
        ([-1.0], [1.0], "at least 0 of each"),
        ([1.0], [1.0, 2.0], "at least 0 of each"),
        ([0.0], [1.0], "people who are in"),
        ([1.0], [0.0], "people who are in"),
        ([], [], "people who are in"),
    ):
        with pytest.raises(InputError, match=rule):
            membership(np.array(members), np.array(others))
    with pytest.raises(InputError, match="must be a number"):
        membership(np.array([1.0]), np.array([1.0]), np.array([math.nan]))
    for epsilon, delta in ((-1.0, 0.0), (1.0, -0.1), (1.0, 1.1), (math.nan, 0.0)):
        with pytest.raises(InputError, match="epsilon must be"):
            Bound(epsilon, delta)


@given(GROUPS, GROUPS)
def test_a_threshold_is_chosen_by_some_and_counted_on_others(
    chosen: list[tuple[int, int, int]], tried: list[tuple[int, int, int]]
) -> None:
    n = max(len(chosen), len(tried))
    (members, others, score), (more, rest, _) = (
        columns_of([*some, *[(0, 0, i % 4) for i in range(len(some), n)]]) for some in (chosen, tried)
    )
    found = held_out(members, others, more, rest, score)
    assert found is not None

    def shares(of: np.ndarray, rest_of: np.ndarray, least: float) -> tuple[float, float]:
        said = score >= least
        return float(of[said].sum() / of.sum()), float(rest_of[said].sum() / rest_of.sum())

    def advantage(least: float) -> float:
        true, false = shares(members, others, least)
        return true - false

    known = {s for m, o, s in zip(members, others, score, strict=True) if m + o}
    best = max([np.inf, *sorted(known, reverse=True)], key=lambda least: (round(advantage(least), 9), least))
    assert (found.true_positives, found.false_positives) == pytest.approx(shares(more, rest, best))
    assert -1 <= found.low <= found.advantage <= found.high <= 1
    # On those who choose it, it is the best there is.
    own = held_out(members, others, members, others, score)
    assert own is not None
    assert own.advantage == pytest.approx(membership(members, others, score).advantage)


def test_limits_hold_where_nothing_can_be_told() -> None:
    """Members and others are alike: a threshold of some score seems to tell those who choose it, and no others.

    Of 300 trials the limits must miss the true advantage, which is 0, in 5 % at most; where the score is the truth of
    the people it is counted on, they miss it always.
    """
    generator = np.random.default_rng(5)
    missed = seeming = 0
    for _ in range(300):
        counts = [np.bincount(generator.integers(0, 200, 100), minlength=200).astype(np.float64) for _ in range(4)]
        score = counts[0] / np.maximum(counts[0] + counts[1], 1)
        found, same = held_out(*counts, score), held_out(counts[0], counts[1], counts[0], counts[1], score)
        assert found is not None
        assert same is not None
        missed += not found.low <= 0 <= found.high
        seeming += not same.low <= 0 <= same.high
    assert missed <= 15
    assert seeming == 300


def test_limits_by_hand() -> None:
    """All 20 members and none of 30 others are said to be members: 0.0125^(1/20), and likewise of 30."""
    one, score = (np.array([20.0, 0.0]), np.array([0.0, 30.0])), np.array([1.0, 0.0])
    found = held_out(*one, *one, score)
    assert found is not None
    assert (found.advantage, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.0125 ** (1 / 20) - (1 - 0.0125 ** (1 / 30)))
    # Of an expected 19.5 of 20.5 members 18 of 20 are sure.
    half = held_out(*one, np.array([19.5, 1.0]), np.array([0.0, 30.0]), score)
    sure = held_out(*one, np.array([18.0, 2.0]), np.array([0.0, 30.0]), score)
    assert half is not None
    assert sure is not None
    assert half.low == pytest.approx(sure.low)


def test_too_few_people_tell_nothing() -> None:
    some, nobody = np.array([1.0]), np.array([0.4])
    assert held_out(some, some, some, nobody, some) is None
    assert held_out(nobody, some, some, some, some) is None
