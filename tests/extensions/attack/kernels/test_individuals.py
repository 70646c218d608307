from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.individuals import (
    LEARNED,
    Lessons,
    Together,
    learn,
    lessons,
    telling_values,
)
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

People = list[naive.Held]


@st.composite
def individuals(draw: st.DrawFn) -> People:
    """Up to eight individuals in up to three classes without gaps, with one to three values in each."""
    values = st.frozensets(st.integers(0, 3), min_size=1, max_size=3)
    people = draw(st.lists(st.dictionaries(st.integers(0, 2), values, min_size=1, max_size=3), min_size=1, max_size=8))
    number = {place: i for i, place in enumerate(sorted({place for one in people for place in one}))}
    return [{number[place]: held for place, held in sorted(one.items())} for one in people]


def counted(people: People) -> tuple[SensitiveRuns, Together]:
    """Who holds what, and what together, counted from the list."""
    pairs = Counter((place, value) for one in people for place, held in one.items() for value in held)
    both = Counter(
        (place, *pair) for one in people for place, held in one.items() for pair in combinations(sorted(held), 2)
    )
    members = Counter(place for one in people for place in one)
    keys = sorted(pairs)
    runs = SensitiveRuns.of_entries(
        np.array([place for place, _ in keys]),
        np.array([value for _, value in keys]),
        np.array([pairs[key] for key in keys]),
        len(members),
    )
    runs = SensitiveRuns(
        runs.class_start, runs.value, runs.count, np.array([members[place] for place in sorted(members)])
    )
    columns = [np.array(column, dtype=np.int64) for column in zip(*both, strict=True)] or [np.zeros(0, dtype=int)] * 3
    return runs, Together.of_pairs(*columns, np.array(list(both.values()), dtype=np.int64))


def lessons_of(people: People, factor: float) -> Lessons:
    every = [frozenset().union(*one.values()) for one in people]
    holders = np.array([sum(value in one for one in every) for value in range(4)])
    return lessons(*counted(people), holders, len(people), gain_above=factor)


def flat(people: People) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    held = [[(place, value) for place, of in one.items() for value in sorted(of)] for one in people]
    pairs = np.array([pair for one in held for pair in one], dtype=np.int64).reshape(-1, 2)
    return np.cumsum([0, *map(len, held)]), pairs[:, 0], pairs[:, 1]


@given(individuals(), st.sampled_from([(1, 1), (3, 2), (2, 1)]))
@settings(deadline=None)
def test_learn_several_values_equals_loops_over_individuals(people: People, factor: tuple[int, int]) -> None:
    expected = naive.learned_of_individuals(people, Fraction(*factor))
    found = learn(lessons_of(people, float(Fraction(*factor))), *flat(people))
    np.testing.assert_allclose(found, [[float(one) for one in of] for of in expected], atol=1e-12)


def test_learn_background_of_two_values_each_finds_who_lacks_the_telling_one() -> None:
    """All but the first hold the flu, the first holds a cold: who is known not to have a cold has the flu.

    Counts of values, as if each were of another individual, would show five values of four.
    """
    flu, cold, ache = 0, 1, 2
    people: People = [{0: frozenset({cold})}, *({0: frozenset({flu, ache})} for _ in range(3))]
    found = learn(lessons_of(people, 9.0), *flat(people))
    assert found[:, LEARNED.index("background")].tolist() == [1, 1, 1, 1]
    runs, together = counted(people)
    assert telling_values(runs, together).tolist() == [True, True, True]
    assert found[:, LEARNED.index("homogeneity")].tolist() == [0, 0, 0, 0]
    assert found[:, LEARNED.index("external")].tolist() == [0, 1, 1, 1]


def test_lessons_of_another_table_are_refused() -> None:
    people: People = [{0: frozenset({0, 1})}, {0: frozenset({1})}]
    runs, together = counted(people)
    for holders, total in ((np.array([1, 1]), 2), (np.array([1]), 2), (np.array([1, 2]), 1)):
        with pytest.raises(InputError, match="more often than the whole table"):
            lessons(runs, together, holders, total, gain_above=2.0)
    with pytest.raises(InputError, match="does not show it"):
        learn(lessons_of(people, 2.0), np.array([0, 1]), np.array([0]), np.array([3]))


def test_learn_nobody_returns_no_rows() -> None:
    people: People = [{0: frozenset({0})}]
    none = np.zeros(0, dtype=np.int64)
    assert learn(lessons_of(people, 2.0), np.zeros(1, dtype=np.int64), none, none).shape == (0, len(LEARNED))
