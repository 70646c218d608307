from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.measures import special_uniques
from privrisk_spark.kernels.measures.special_uniques import ScoreTally, SpecialUniques, weights_of_sizes
from privrisk_spark.kernels.numeric.moments import Moments


def coded(rows):
    """Codes and counts of the distinct rows, and where each row is."""
    of_column = [{value: i for i, value in enumerate(sorted(set(column)))} for column in zip(*rows, strict=True)]
    codes = [tuple(code[value] for code, value in zip(of_column, row, strict=True)) for row in rows]
    counter = Counter(codes)
    distinct = sorted(counter)
    place = {row: i for i, row in enumerate(distinct)}
    counts = np.array([counter[row] for row in distinct], dtype=np.int64)
    return np.array(distinct, dtype=np.int32), counts, [place[row] for row in codes]


def found_in(rows, most=None):
    codes, counts, place = coded(rows)
    return SpecialUniques.of(codes, counts, most or codes.shape[1]), place


def minimal_sample_uniques(rows, i, most):
    """Sets of attributes on which row i is alone and on no proper subset of which it is, by the definition."""

    def alone(attributes):
        return sum(all(row[a] == rows[i][a] for a in attributes) for row in rows) == 1

    k = len(rows[0])
    return [
        attributes
        for size in range(1, most + 1)
        for attributes in combinations(range(k), size)
        if alone(attributes)
        and not any(alone(part) for smaller in range(1, size) for part in combinations(attributes, smaller))
    ]


# Tables 4.1 and 4.5 of Benschop, Machingauta and Welch, "Statistical Disclosure Control: A Practice Guide".
GUIDE = [
    ("Urban", "Female", "Secondary incomplete", "Employed"),
    ("Urban", "Female", "Secondary incomplete", "Employed"),
    ("Urban", "Female", "Primary incomplete", "Non-LF"),
    ("Urban", "Male", "Secondary complete", "Employed"),
    ("Rural", "Female", "Secondary complete", "Unemployed"),
    ("Urban", "Male", "Secondary complete", "Employed"),
    ("Urban", "Female", "Primary complete", "Non-LF"),
    ("Urban", "Male", "Post-secondary", "Unemployed"),
    ("Urban", "Female", "Secondary incomplete", "Non-LF"),
    ("Urban", "Female", "Secondary incomplete", "Non-LF"),
]


@pytest.mark.parametrize("most", [3, 4])
def test_practice_guide(most):
    """The guide takes M = 3; record 5 has {Rural}, worth 3·2·1, and three sets of two, worth 2·1 each."""
    found, place = found_in(GUIDE, most)
    assert found.scores[place].tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found.numbers[place[4]].tolist()[:3] == [1, 3, 0]
    tally = ScoreTally.of(found)
    assert (tally.records, tally.uniques, tally.pairs, tally.special) == (10, 4, 3, 4)
    assert (tally.total, tally.most) == (34, 12)
    # DIS = n1 p / (n1 p + 2 n2 (1 - p)) at p = 1/100.
    assert tally.match_probability(0.01) == pytest.approx(4 * 0.01 / (4 * 0.01 + 6 * 0.99))


def test_practice_guide_disclosure():
    """The guide's DIS-SUDA values, which come from the other score of sdcMicro.

    There a set of s out of k = 4 attributes is worth (2^(k-s) - 1) s! (k-s)! / k!: 7/4 and 1/2 for one and for two. In
    quarters the records have 7, 7 + 3·2, 7 and 7 + 2·2. DIS-SUDA does not depend on the unit of the scores.
    """
    scores = np.array([7, 13, 7, 11], dtype=np.int64)
    powers = np.array([float(score) ** -1.2 for score in scores])  # Q = 1 + (8 - 4) / 20
    inverse = Moments.of(powers, np.ones(4, dtype=np.int64))
    tally = replace(ScoreTally.empty(4, 3), records=10, uniques=4, pairs=3, special=4, inverse=inverse)
    assert tally.disclosure(scores, 0.01).round(4).tolist() == [0.0051, 0.0107, 0.0051, 0.0088]
    assert tally.disclosure(scores * 9, 0.01)[0] < tally.disclosure(scores * 10, 0.01)[0]


def test_sdcmicro_book_example():
    """Eight records of sdcMicro's test_suda2.R, of which the last four have scores 4, 2, 6 and 8.

    By hand, with (k - s)! for k = 4: the last is {60s}, 3! = 6, and {male, university}, 2! = 2; {middleschool} is 6;
    the fifth is {20s, university} and {female, university}; the sixth is {female, highschool}.
    """
    rows = [
        ("20s", "male", "50k+", "highschool"),
        ("20s", "male", "50k+", "highschool"),
        ("20s", "male", "50k-", "highschool"),
        ("20s", "male", "50k-", "highschool"),
        ("20s", "female", "50k-", "university"),
        ("20s", "female", "50k-", "highschool"),
        ("20s", "female", "50k-", "middleschool"),
        ("60s", "male", "50k-", "university"),
    ]
    found, place = found_in(rows)
    assert found.scores[place].tolist() == [0, 0, 0, 0, 4, 2, 6, 8]
    assert minimal_sample_uniques(rows, 7, 4) == [(0,), (1, 3)]


def test_sdcmicro_contributions():
    """Three records of the same file: the attributes have 50, 37.5 and 37.5 per cent of the scores."""
    found, place = found_in([(2, 0, 0), (1, 3, 6), (1, 0, 0)])
    assert found.scores[place].tolist() == [2, 4, 2]
    assert ScoreTally.of(found).shares == (0.5, 0.375, 0.375)
    assert ScoreTally.of(found).contributions == (4, 3, 3)


def test_weights():
    assert weights_of_sizes(4, 4) == (6, 2, 1, 1)
    assert weights_of_sizes(4, 3) == (6, 2, 1)
    assert weights_of_sizes(15, 3) == (14 * 13 * 12, 13 * 12, 12)
    assert weights_of_sizes(1, 1) == (1,)
    for k in range(1, 15):
        assert weights_of_sizes(k, k) == tuple(math.factorial(k - s) for s in range(1, k + 1))


# --- naive twin

tables = st.integers(1, 5).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, 3)] * k), min_size=1, max_size=14))


@given(tables, st.data())
def test_brute_force(rows, data):
    k = len(rows[0])
    most = data.draw(st.integers(1, k))
    found, place = found_in(rows, most)
    worth = weights_of_sizes(k, most)
    for i, at in enumerate(place):
        expected = minimal_sample_uniques(rows, i, most)
        assert found.numbers[at].tolist() == [sum(len(s) == size for s in expected) for size in range(1, most + 1)]
        assert found.scores[at] == sum(worth[len(s) - 1] for s in expected)
        assert found.contributions[at].tolist() == [
            sum(worth[len(s) - 1] for s in expected if a in s) for a in range(k)
        ]


@given(tables, st.integers(0, 2**32))
def test_order_of_records_attributes_and_codes(rows, seed):
    pick = random.Random(seed)
    k = len(rows[0])
    columns = pick.sample(range(k), k)
    renamed = [dict(enumerate(pick.sample(range(100), 4))) for _ in range(k)]
    other = [tuple(renamed[a][row[a]] for a in columns) for row in rows]
    first, place = found_in(rows)
    second, other_place = found_in(other)
    assert first.numbers[place].tolist() == second.numbers[other_place].tolist()
    assert first.contributions[place][:, columns].tolist() == second.contributions[other_place].tolist()
    codes, counts, _ = coded(rows)
    shuffled = np.array(pick.sample(range(len(codes)), len(codes)))
    third = SpecialUniques.of(codes[shuffled], counts[shuffled], k)
    assert third.numbers.tolist() == first.numbers[shuffled].tolist()


def test_a_second_copy_of_every_record_leaves_no_unique():
    found, _ = found_in(GUIDE * 2)
    assert not found.scores.any()
    tally = ScoreTally.of(found)
    assert (tally.special, tally.uniques, tally.pairs) == (0, 0, 4)
    assert tally.match_probability(0.1) is None
    assert tally.disclosure(found.scores, 0.1).tolist() == [0.0] * len(found.counts)


@pytest.mark.parametrize(("word", "dense"), [(63, 0), (63, 10**9), (12, 0), (1, 0)])
def test_ways_to_group_agree(monkeypatch, word, dense):
    """Counted or sorted, and sorted by one key or by one that is numbered anew when it gets too wide."""
    rng = np.random.default_rng(1)
    codes = np.unique(rng.integers(0, [2, 3, 5, 9, 30], (300, 5)).astype(np.int32), axis=0)
    counts = rng.integers(1, 3, len(codes))
    expected = SpecialUniques.of(codes, counts, 5)
    assert (expected.numbers.sum(axis=0)[1:4] > 0).all()
    monkeypatch.setattr(special_uniques, "_WORD", word)
    monkeypatch.setattr(special_uniques, "_DENSE", dense)
    found = SpecialUniques.of(codes, counts, 5)
    assert found.numbers.tolist() == expected.numbers.tolist()
    assert found.contributions.tolist() == expected.contributions.tolist()


def test_codes_too_wide_for_one_key():
    """Twin records that differ in the last of six attributes only: alone on that one, and on no set without it."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2**31 - 2, (3000, 6)).astype(np.int32)
    twins = codes.copy()
    twins[:, 5] += 1
    found = SpecialUniques.of(np.concatenate([codes, twins]), np.ones(6000, dtype=np.int64), 6)
    assert found.numbers.tolist() == [[1, 0, 0, 0, 0, 0]] * 6000
    assert (found.contributions[:, :5] == 0).all()


# --- tallies


@given(tables, st.integers(0, 2**32), st.integers(1, 5))
def test_parts_of_the_records_change_no_bit(rows, seed, parts):
    found, _ = found_in(rows)
    part_of = np.random.default_rng(seed).integers(0, parts, len(found.counts))
    most = found.numbers.shape[1]
    empty = ScoreTally.empty(found.contributions.shape[1], most)
    total = empty
    for part in range(parts):
        here = part_of == part
        tally = ScoreTally.of(SpecialUniques(found.counts[here], found.numbers[here], found.contributions[here]))
        total = total.plus(from_json(ScoreTally, json.loads(json.dumps(as_json(tally)))))
    whole = ScoreTally.of(found)
    assert total == whole
    assert whole.plus(empty) == empty.plus(whole) == whole
    assert whole.records == len(rows) == sum(whole.by_score)
    assert whole.by_size == tuple(found.numbers.sum(axis=0).tolist())
    scores = found.scores
    assert (whole.total, whole.most) == (scores.sum(), scores.max())
    for bin_, records in enumerate(whole.by_score):
        assert records == found.counts[[int(score).bit_length() == bin_ for score in scores]].sum()
    disclosure = whole.disclosure(scores, 0.2)
    assert (disclosure[scores == 0] == 0).all()
    assert ((disclosure >= 0) & (disclosure <= 1)).all()
    assert (np.diff(disclosure[np.argsort(scores, kind="stable")]) >= -1e-15).all()


def test_equal_scores_all_get_the_match_probability():
    found, _ = found_in([(0, 0), (1, 1), (2, 2), (3, 3), (3, 3)])
    tally = ScoreTally.of(found)
    expected = tally.match_probability(0.3)
    assert expected == pytest.approx(3 * 0.3 / (3 * 0.3 + 2 * 0.7))
    assert tally.disclosure(found.scores, 0.3)[:3] == pytest.approx([expected] * 3)


def test_match_probability_by_simulation():
    """Of unique matches of sampled records to people, DIS is the share that is correct (Skinner and Elliot).

    A person drawn from the population matches uniquely if exactly one record of the sample is of the same class: the
    expected number of matches is Σ_(f=1) F, and of the correct ones n_1.
    """
    rng = np.random.default_rng(8)
    population = 1 + rng.negative_binomial(0.8, 0.2, 100_000)
    for fraction in (0.05, 0.3):
        sample = rng.binomial(population, fraction)
        single = sample == 1
        truth = single.sum() / population[single].sum()
        tally = replace(ScoreTally.empty(1, 1), uniques=int(single.sum()), pairs=int((sample == 2).sum()))
        assert tally.match_probability(fraction) == pytest.approx(truth, rel=0.05)
        # Pairs counted once.
        once = replace(ScoreTally.empty(1, 1), uniques=2 * int(single.sum()), pairs=int((sample == 2).sum()))
        assert once.match_probability(fraction) != pytest.approx(truth, rel=0.2)


def test_no_records():
    found = SpecialUniques.of(np.zeros((0, 3), dtype=np.int32), np.zeros(0, dtype=np.int64), 2)
    tally = ScoreTally.of(found)
    assert (tally.records, tally.total, tally.shares) == (0, 0, (0.0, 0.0, 0.0))
    assert tally.match_probability(0.5) is None


# --- errors

CODES = np.array([[0, 1], [1, 1]], dtype=np.int32)
ONES = np.ones(2, dtype=np.int64)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SpecialUniques.of(CODES, ONES[:1], 1), "one count per distinct record"),
        (lambda: SpecialUniques.of(CODES, ONES, 3), "must be 1 to 2. Got 3"),
        (lambda: SpecialUniques.of(CODES, ONES, 0), "must be 1 to 2. Got 0"),
        (lambda: SpecialUniques.of(CODES - 1, ONES, 1), "at least 0. Got -1"),
        (lambda: SpecialUniques.of(CODES, ONES - 1, 1), "at least 1. Got 0"),
        (lambda: weights_of_sizes(25, 25), "pass 2\\^63"),
        (lambda: replace(ScoreTally.empty(0, 0), uniques=1).match_probability(0.0), "above 0 and at most 1. Got 0.0"),
    ],
)
def test_errors(call, said):
    with pytest.raises(InputError, match=said):
        call()
