"""Persons of classes, against sets of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import persons_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.classes.diversity import distinct_values
from privrisk_spark.kernels.recoding.full_domain import united
from privrisk_spark.kernels.recoding.persons import Persons

Pairs = list[tuple[int, int]]
CLASSES = 6


def sets_of(pairs: Pairs, n_classes: int = CLASSES) -> list[set[int]]:
    """Who is in each class, by the letter."""
    found: list[set[int]] = [set() for _ in range(n_classes)]
    for owner, person in pairs:
        found[owner].add(person)
    return found


pairs_of_any = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, 7)), max_size=25)
"""A person in several distinct records, or given twice in one, or not there, is usual."""


def counts(persons: Persons) -> list[int]:
    return persons.count.tolist()


@given(pairs_of_any)
def test_each_person_of_a_class_counts_once(pairs: Pairs) -> None:
    persons = persons_of(pairs, CLASSES)
    assert counts(persons) == [len(one) for one in sets_of(pairs)]
    several = {who for who in range(8) if sum(who in one for one in sets_of(pairs)) > 1}
    assert len(persons.owner) == sum(len(one & several) for one in sets_of(pairs)), "only who is in several is listed"


@given(pairs_of_any, st.lists(st.integers(0, 3), min_size=CLASSES, max_size=CLASSES), st.data())
def test_unions_and_parts_of_classes_hold_the_persons_of_theirs(
    pairs: Pairs, of: list[int], data: st.DataObject
) -> None:
    """Twice: what was united is united again, and what was left out does not come back."""
    persons, sets = persons_of(pairs, CLASSES), sets_of(pairs)
    for n_classes in (4, 2):
        united: list[set[int]] = [set() for _ in range(n_classes)]
        for j, one in enumerate(sets):
            united[of[j]] |= one
        persons = persons.united(np.array(of[: len(sets)], dtype=np.int64), n_classes)
        assert counts(persons) == [len(one) for one in united]
        kept = data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes))
        persons = persons.where(np.array(kept))
        sets = [one for one, keep in zip(united, kept, strict=True) if keep]
        assert counts(persons) == [len(one) for one in sets]
        of = data.draw(st.lists(st.integers(0, 1), min_size=len(sets), max_size=len(sets)))


@given(pairs_of_any)
def test_numbers_given_beside_the_others_are_the_same(pairs: Pairs) -> None:
    """As they are collected: who is in one distinct record alone only as a number."""
    sets = sets_of(pairs)
    several = {who for who in range(8) if sum(who in one for one in sets) > 1}
    alone = np.array([len(one - several) for one in sets], dtype=np.int64)
    rest = [(i, who * 1000) for i, one in enumerate(sets) for who in one & several][::-1]
    beside = Persons.beside(alone, *np.array(rest, dtype=np.int64).reshape(-1, 2).T)
    whole = persons_of(pairs, CLASSES)
    of = np.array([0, 1, 0, 2, 1, 0])
    assert counts(beside) == counts(whole)
    assert counts(beside.united(of, 3)) == counts(whole.united(of, 3))
    assert beside.n == len(several)


def test_one_in_several_distinct_records_of_a_class_counts_once_there() -> None:
    persons = persons_of([(0, 5), (0, 5), (1, 5), (1, 6), (2, 5)], 4)
    assert counts(persons) == [1, 2, 1, 0]
    assert counts(persons.united(np.array([0, 0, 0, 0]), 1)) == [2]
    assert counts(persons.united(np.array([1, 0, 1, 0]), 3)) == [2, 1, 0], "a class may be empty"
    assert counts(persons_of([], 2)) == [0, 0]
    assert counts(persons_of([], 2).united(np.array([0, 0]), 1)) == [0]


@pytest.mark.parametrize(("owner", "person"), [(-1, 0), (2, 0), (0, -1)])
def test_numbers_that_are_none_are_refused(owner: int, person: int) -> None:
    with pytest.raises(InputError, match="must have a number, at least 0"):
        persons_of([(0, 0), (owner, person)], 2)


@given(pairs_of_any, st.lists(st.integers(0, 3), min_size=CLASSES, max_size=CLASSES), st.lists(st.integers(0, 2)))
def test_as_values_a_union_has_as_many_as_it_has_persons(pairs: Pairs, of: list[int], more: list[int]) -> None:
    pairs = [*pairs, *((j, 8 + j) for j in range(CLASSES))]  # every class has somebody
    persons = persons_of(pairs, CLASSES)
    rows = persons.count + np.resize(np.array([*more, 0]), CLASSES)
    runs = persons.as_values(rows)
    assert (runs.rows == rows).all()
    n = max(of) + 1
    of_those = np.array(of)
    there = np.unique(of_those)
    joined = united(runs, np.searchsorted(there, of_those), len(there))
    sets = sets_of(pairs)
    expected = [len(set().union(*(sets[j] for j in range(CLASSES) if of[j] == c))) for c in range(n) if c in of]
    assert distinct_values(joined).tolist() == expected


def test_a_record_that_is_nobodys_is_refused() -> None:
    with pytest.raises(InputError, match="must be somebody's"):
        persons_of([(0, 1)], 2).as_values(np.array([1, 1]))
