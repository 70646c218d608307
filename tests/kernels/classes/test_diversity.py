from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    CRITERIA,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENTROPY_DIVERSITY,
    EQUAL_CLOSENESS,
    HOMOGENEITY,
    K_ANONYMITY,
    K_MAP,
    P_SENSITIVITY,
    RECURSIVE_C,
)
from privrisk_spark.kernels.classes.diversity import (
    SensitiveRuns,
    distinct_values,
    entropy_diversity,
    greatest_l,
    greatest_share,
    least_c,
)
from privrisk_spark.kernels.classes.tally import ClassTally, worst_classes

Class = dict[int, int]

CLASSES = st.lists(
    st.dictionaries(st.integers(0, 7), st.integers(1, 6), min_size=1, max_size=6), min_size=1, max_size=8
)


def runs_of(classes: list[Class]) -> SensitiveRuns:
    runs = [(s, c) for one in classes for s, c in sorted(one.items())]
    return SensitiveRuns(
        np.cumsum([0, *[len(one) for one in classes]]).astype(np.int64),
        np.array([s for s, _ in runs], dtype=np.int32),
        np.array([c for _, c in runs], dtype=np.int64),
    )


def of_rows(rows: list[tuple[object, str]]) -> SensitiveRuns:
    """Classes in order of appearance, from rows of (quasi-identifier, sensitive value)."""
    names = sorted({s for _, s in rows})
    return runs_of(
        [dict(Counter(names.index(s) for q, s in rows if q == key)) for key in dict.fromkeys(q for q, _ in rows)]
    )


def keys_of(m: int) -> np.ndarray:
    return np.arange(m, dtype=np.int32)[:, None]


RASCHIA = [
    *[("130** <30", s) for s in ("Heart", "Heart", "Viral", "Viral")],
    *[("1485* >=40", s) for s in ("Cancer", "Heart", "Viral", "Viral")],
    *[("130** [30,40)", "Cancer")] * 5,
]
TORRA = [
    (("Barcelona", 30), "Cancer"),
    (("Barcelona", 30), "Cancer"),
    (("Tarragona", 60), "AIDS"),
    (("Tarragona", 60), "AIDS"),
]


def tally(criterion, values, rows, asked, most=10):
    return ClassTally.of(criterion, values, rows, keys_of(len(rows)), asked=asked, most=most)


def test_release_of_thirteen_rows() -> None:
    """Raschia 2023: the 4-anonymous release of 13 rows; its third class is all Cancer."""
    runs = of_rows(RASCHIA)
    k = tally(K_ANONYMITY, runs.rows, runs.rows, 4)
    assert (k.achieved, k.passed, k.passes(5), k.rows, k.classes) == (4, True, False, 13, 3)
    distinct = tally(DISTINCT_DIVERSITY, distinct_values(runs), runs.rows, 2)
    assert distinct_values(runs).tolist() == [2, 3, 1]
    assert (distinct.achieved, distinct.failing_classes, distinct.failing_rows) == (1, 1, 5)
    assert distinct.failing_share == 5 / 13  # homogeneity attack
    assert [(one.key, one.value, one.rows) for one in distinct.worst] == [((2,), 1, 5), ((0,), 2, 4), ((1,), 3, 4)]
    # (1/2, 1/2): 2; (1/4, 1/4, 1/2): 1.5 bits
    np.testing.assert_allclose(entropy_diversity(runs), [2, 2**1.5, 1], rtol=1e-15)
    assert entropy_diversity(runs)[2] == 1.0
    assert greatest_share(runs).tolist() == [0.5, 0.5, 1.0]
    assert tally(ALPHA, greatest_share(runs), runs.rows, 0.5).failing_share == 5 / 13
    # sorted counts 2 2 | 2 1 1 | 5
    assert least_c(runs, 2).tolist() == [1.0, 1.0, math.inf]
    assert least_c(runs, 1).tolist() == [0.5, 0.5, 1.0]
    assert greatest_l(runs, 2.0).tolist() == [2, 2, 1]  # 2 < 2·(1 + 1), but not 2 < 2·1
    assert greatest_l(runs, 1.0).tolist() == [1, 1, 0]


def test_tables_of_cities_and_ages() -> None:
    """Torra 2020: four rows, where all are exposed; with a fifth, a heart attack, the class of Tarragona is not."""
    four, five = of_rows(TORRA), of_rows([*TORRA, (("Tarragona", 60), "Heart attack")])
    for runs, k, exposed in ((four, 2, 1.0), (five, 2, 2 / 5)):
        assert tally(K_ANONYMITY, runs.rows, runs.rows, 2).achieved == k
        assert tally(DISTINCT_DIVERSITY, distinct_values(runs), runs.rows, 2).failing_share == exposed
    # HYU knows his own heart attack; by the share alone 2 of 3 have AIDS
    assert greatest_share(five).tolist() == [1.0, 2 / 3]
    assert tally(ALPHA, greatest_share(five), five.rows, 0.6).failing_share == 1.0
    aids = np.array([True, False, False])  # in alphabetical order
    assert greatest_share(five, aids).tolist() == [0.0, 2 / 3]


def test_entropy_of_the_3_diverse_inpatients() -> None:
    """Machanavajjhala et al. 2006: each class has four patients of three diseases, one of them twice: "2.8-diverse"."""
    diseases = (("heart", "viral", "cancer", "cancer"), ("cancer", "heart", "viral", "viral"))
    runs = of_rows([(i, s) for i, one in enumerate((*diseases, diseases[0])) for s in one])
    found = tally(ENTROPY_DIVERSITY, entropy_diversity(runs), runs.rows, 2.8)
    assert found.achieved == pytest.approx(2**1.5, rel=1e-15)
    assert found.passed
    assert not found.passes(2.83)
    assert distinct_values(runs).tolist() == [3, 3, 3]


@given(CLASSES, st.integers(1, 5), st.sampled_from([0.3, 0.5, 1.0, 1.5, 2.0, 3.0]))
def test_numbers_are_those_of_the_definitions(classes: list[Class], l: int, c: float) -> None:  # noqa: E741
    runs = runs_of(classes)
    for j, one in enumerate(classes):
        n = sum(one.values())
        falling = sorted(one.values(), reverse=True)
        assert runs.rows[j] == n
        assert distinct_values(runs)[j] == len(one)
        entropy = -math.fsum(Fraction(x, n) * math.log(Fraction(x, n)) for x in falling)
        assert entropy_diversity(runs)[j] == pytest.approx(math.exp(entropy), rel=1e-14)
        assert greatest_share(runs)[j] == max(falling) / n
        tail = sum(falling[l - 1 :])
        assert least_c(runs, l)[j] == (falling[0] / tail if tail else math.inf)
        lengths = [i for i in range(1, len(one) + 1) if falling[0] < Fraction(c) * sum(falling[i - 1 :])]
        assert greatest_l(runs, c)[j] == max(lengths, default=0)


def test_shares_are_of_persons_where_they_hold_several_values() -> None:
    """Ten patients, all with HIV: each has the flu, too, in the second class, and five of them in the third."""
    held = [{0: 10}, {0: 10, 1: 10}, {0: 10, 1: 5}, {0: 5, 1: 5}]
    pairs, ten = runs_of(held), np.full(4, 10, dtype=np.int64)
    runs = SensitiveRuns(pairs.class_start, pairs.value, pairs.count, ten)
    assert greatest_share(runs).tolist() == [1.0, 1.0, 1.0, 0.5]
    assert greatest_share(runs, np.array([False, True])).tolist() == [0.0, 1.0, 0.5, 0.5]
    assert HOMOGENEITY.numbers(runs).tolist() == [1, 1, 1, 2]
    assert distinct_values(runs).tolist() == [1, 2, 2, 2]
    # Nobody is left who certainly has no HIV, but in the last class.
    assert greatest_l(runs, 3.0).tolist() == [1, 1, 1, 2]
    assert least_c(runs, 2).tolist() == [math.inf, math.inf, math.inf, 1.0]
    np.testing.assert_allclose(entropy_diversity(runs)[1], 2)
    some = runs.where(np.array([False, True, False, True]))
    assert greatest_share(some).tolist() == [1.0, 0.5]
    for wrong in (ten[:3], ten - 1, ten + 1):
        with pytest.raises(InputError, match="persons"):
            SensitiveRuns(pairs.class_start, pairs.value, pairs.count, wrong)


@given(CLASSES, st.sampled_from([0.5, 1.0, 2.0]))
def test_greatest_l_and_least_c_agree(classes: list[Class], c: float) -> None:
    runs = runs_of(classes)
    for l in range(1, 8):  # noqa: E741
        assert (~RECURSIVE_C.fails(least_c(runs, l), c) == (greatest_l(runs, c) >= l)).all()


@given(CLASSES, st.permutations(range(8)))
def test_codes_of_the_values_do_not_matter(classes: list[Class], code: list[int]) -> None:
    one, two = runs_of(classes), runs_of([{code[s]: c for s, c in each.items()} for each in classes])
    for number in (distinct_values, entropy_diversity, greatest_share, lambda runs: least_c(runs, 2)):
        assert number(one).tobytes() == number(two).tobytes()


@given(CLASSES, CLASSES)
def test_merging_classes_cannot_reduce(one: list[Class], two: list[Class]) -> None:
    """k and distinct l of a union are at least those of its parts; entropy's is at least the least (concavity)."""
    m = min(len(one), len(two))
    one, two = one[:m], two[:m]
    union = runs_of([dict(Counter(a) + Counter(b)) for a, b in zip(one, two, strict=True)])
    first, second = runs_of(one), runs_of(two)
    assert (union.rows >= np.maximum(first.rows, second.rows)).all()
    assert (distinct_values(union) >= np.maximum(distinct_values(first), distinct_values(second))).all()
    least = np.minimum(entropy_diversity(first), entropy_diversity(second))
    assert (entropy_diversity(union) >= least * (1 - 1e-13)).all()
    assert (greatest_share(union) <= np.maximum(greatest_share(first), greatest_share(second)) + 1e-15).all()


def numbers_of(runs: SensitiveRuns) -> list:
    return [
        (K_ANONYMITY, runs.rows, 4.0),
        (DISTINCT_DIVERSITY, distinct_values(runs), 2.0),
        (ENTROPY_DIVERSITY, entropy_diversity(runs), 1.7),
        (RECURSIVE_C, least_c(runs, 2), 1.0),
        (ALPHA, greatest_share(runs), 0.5),
    ]


def part(classes: list[Class], which: list[int], most: int) -> list:
    runs = runs_of([classes[j] for j in which])
    keys = np.array([[j % 3, j] for j in which], dtype=np.int32).reshape(-1, 2)
    numbers = numbers_of(runs)
    return [ClassTally.of(c, v, runs.rows, keys, asked=asked, most=most) for c, v, asked in numbers]


@given(CLASSES, st.data(), st.integers(0, 4))
@settings(max_examples=60)
def test_any_division_into_tasks_gives_the_same_bits(classes: list[Class], data: st.DataObject, most: int) -> None:
    m = len(classes)
    task = data.draw(st.lists(st.integers(0, 2), min_size=m, max_size=m))
    order = data.draw(st.permutations(range(m)))
    whole = part(classes, list(range(m)), most)
    merged = part(classes, [], most)
    for t in data.draw(st.permutations(range(3))):
        mine = part(classes, [j for j in order if task[j] == t], most)
        # through the text that a task would send
        mine = [from_json(type(one), json.loads(json.dumps(as_json(one), allow_nan=False))) for one in mine]
        merged = [one.plus(other) for one, other in zip(merged, mine, strict=True)]
    assert merged == whole
    assert [as_json(one) for one in merged] == [as_json(one) for one in whole]


@given(CLASSES)
def test_a_tally_fails_what_its_bound_fails(classes: list[Class]) -> None:
    runs = runs_of(classes)
    for criterion, values, _ in numbers_of(runs):
        for asked in (0.25, 0.5, 1.0, 2.0, 3.0):
            found = tally(criterion, values, runs.rows, asked)
            naive = [bool(criterion.fails(np.array([float(v)]), asked)[0]) for v in values]
            assert found.failing_classes == sum(naive)
            assert found.failing_rows == sum(n for n, bad in zip(runs.rows.tolist(), naive, strict=True) if bad)
            assert found.passed == found.passes(asked) == (not any(naive))
            extreme = min(values) if criterion.direction == "at least" else max(values)
            assert found.achieved == extreme == found.worst[0].value


@pytest.mark.parametrize(
    ("criterion", "value", "asked", "fails"),
    [
        (K_ANONYMITY, 4, 4, False),
        (K_MAP, 3, 4, True),
        (ENTROPY_DIVERSITY, 3 - 1e-15 * 3, 3, False),  # rounding
        (ENTROPY_DIVERSITY, 2.999999, 3, True),
        (RECURSIVE_C, 3.0, 3, True),  # r_1 < c (…) is strict
        (RECURSIVE_C, 1 / 10, 0.1, True),
        (RECURSIVE_C, 2.999, 3, False),
        (ALPHA, 1 / 3, 0.3333333333333333, False),
        (ALPHA, 0.334, 1 / 3, True),
        (EQUAL_CLOSENESS, 0.375 + 6e-17, 0.375, False),
        (BETA_LIKENESS, math.inf, 1e300, True),
        (DELTA_DISCLOSURE, math.log(2), math.log(2), True),
        (DELTA_DISCLOSURE, math.log(2), 0.7, False),
    ],
)
def test_at_the_bound(criterion, value: float, asked: float, fails: bool) -> None:
    assert bool(criterion.fails(np.array([value], dtype=np.float64), asked)[0]) is fails


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=12, unique_by=lambda t: t[1:]
    ),
    st.integers(0, 5),
    st.sampled_from([K_ANONYMITY, EQUAL_CLOSENESS]),
)
def test_worst_classes_are_the_first_of_a_sort(table: list, most: int, criterion) -> None:
    values = np.array([v for v, *_ in table], dtype=np.float64)
    keys = np.array([k for _, *k in table], dtype=np.int32).reshape(-1, 2)
    sign = 1 if criterion.direction == "at least" else -1
    expected = sorted(range(len(table)), key=lambda i: (sign * table[i][0], table[i][1:]))[:most]
    assert worst_classes(criterion, values, keys, most).tolist() == expected


def test_without_classes() -> None:
    none = part([], [], 3)
    assert [one.achieved for one in none[:5]] == [math.inf, math.inf, math.inf, 0.0, 0.0]
    assert all(one.passed and one.passes(one.asked) and one.failing_share == 0.0 for one in none[:5])
    runs = runs_of([])
    for found in (distinct_values(runs), entropy_diversity(runs), least_c(runs, 2), greatest_l(runs, 1.0)):
        assert found.shape == (0,)
    assert greatest_share(runs).shape == (0,)


@pytest.mark.parametrize(
    ("start", "value", "count", "rule"),
    [
        ([0, 2], [1], [1], "begin with 0"),
        ([1, 2], [1, 2], [1, 1], "begin with 0"),
        ([0, 0, 1], [1], [1], "at least one sensitive value"),
        ([0, 2], [1, 1], [1, 1], "ascending"),
        ([0, 2], [2, 1], [1, 1], "ascending"),
        ([0, 1], [-1], [1], "at least 0"),
        ([0, 1], [1], [0], "at least 1"),
    ],
)
def test_wrong_runs_are_refused(start: list, value: list, count: list, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        SensitiveRuns(np.array(start, np.int64), np.array(value, np.int32), np.array(count, np.int64))


def test_wrong_questions_are_refused() -> None:
    runs = runs_of([{0: 1, 5: 1}])
    with pytest.raises(InputError, match="l must be"):
        least_c(runs, 0)
    for c in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="c must be"):
            greatest_l(runs, c)
    with pytest.raises(InputError, match="5 value codes"):
        greatest_share(runs, np.ones(5, dtype=np.bool_))
    for asked in (-1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="bound"):
            tally(K_ANONYMITY, runs.rows, runs.rows, asked)
    with pytest.raises(InputError, match="not NaN"):
        tally(ALPHA, np.array([math.nan]), runs.rows, 0.5)
    with pytest.raises(InputError, match="at least 1 row"):
        tally(ALPHA, np.array([0.5]), np.array([0]), 0.5)
    with pytest.raises(InputError, match="shapes"):
        ClassTally.of(ALPHA, np.array([0.5]), runs.rows, keys_of(2), asked=0.5)
    with pytest.raises(InternalError):
        tally(K_ANONYMITY, runs.rows, runs.rows, 2).plus(tally(K_ANONYMITY, runs.rows, runs.rows, 3))
    with pytest.raises(InternalError, match="counted"):
        K_ANONYMITY.numbers(runs)
    assert len(CRITERIA) == 19


# ------------------------------------------------------------------------------------------------ missing values

OF_KNOWN = {
    P_SENSITIVITY: (len, ()),
    DISTINCT_DIVERSITY: (len, ()),
    ENTROPY_DIVERSITY: (lambda one: math.exp(-sum(c / sum(one.values()) * math.log(c / sum(one.values()))
                                                  for c in one.values())) if one else 0, ()),
    RECURSIVE_C: (lambda one: max(one.values()) / (sum(one.values()) - max(one.values())) if len(one) > 1 else math.inf,
                  (2,)),
    ALPHA: (lambda one: max(one.values(), default=0) / max(sum(one.values()), 1), ()),
    HOMOGENEITY: (lambda one: len(one) or math.inf, ()),
}  # fmt: skip


@given(CLASSES, st.integers(0, 8))
def test_numbers_of_known_values_are_those_of_rows_without_missing_ones(classes: list[Class], missing: int) -> None:
    for criterion, (number, more) in OF_KNOWN.items():
        known = [{value: count for value, count in one.items() if value != missing} for one in classes]
        expected = [number(one) for one in known]
        assert criterion.numbers_of_known(runs_of(classes), missing, *more) == pytest.approx(expected), criterion.name
        counted = criterion.numbers_of_known(runs_of(classes), None, *more)
        assert counted == pytest.approx(criterion.numbers(runs_of(classes), *more)), criterion.name


def test_numbers_of_known_values_of_persons_are_shares_of_those_who_hold_one() -> None:
    # Of 5 persons 2 hold flu, 1 gout, 3 a missing value; 1 holds flu and a missing one.
    runs = replace(runs_of([{0: 2, 1: 1, 2: 3}]), persons=np.array([5]), known=np.array([3]))
    assert ALPHA.numbers_of_known(runs, 2).tolist() == [2 / 3]
    assert ALPHA.numbers_of_known(runs, None).tolist() == [0.6]
    assert DISTINCT_DIVERSITY.numbers_of_known(runs, 2).tolist() == [2]
    # All of two persons hold a missing value, and each a known one: no value is held by both.
    runs = replace(runs_of([{0: 1, 1: 1, 2: 2}]), persons=np.array([2]), known=np.array([2]))
    assert ALPHA.numbers_of_known(runs, 2).tolist() == [0.5]
    assert HOMOGENEITY.numbers_of_known(runs, 2).tolist() == [2]


def test_without_of_persons_needs_to_know_who_holds_a_known_value() -> None:
    runs = replace(runs_of([{0: 1, 1: 1}]), persons=np.array([2]))
    with pytest.raises(InternalError, match="who holds a known value"):
        runs.without(1)


def test_criteria_that_compare_with_the_table_count_missing_values() -> None:
    table = TableDistribution(np.array([3, 1]))
    for criterion in (EQUAL_CLOSENESS, BETA_LIKENESS, DELTA_DISCLOSURE):
        runs = runs_of([{0: 1, 1: 1}])
        assert (criterion.numbers_of_known(runs, 1, table) == criterion.numbers(runs, table)).all()
