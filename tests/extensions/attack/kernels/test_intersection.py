from __future__ import annotations

from collections import Counter
from itertools import pairwise

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.individuals import Together
from privrisk_spark.extensions.attack.kernels.intersection import intersected
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

Group = tuple[tuple[int, ...], int, int]
"""Places in the releases, own value, people."""


def runs_of(classes: list[list[int]]) -> SensitiveRuns:
    counts = [sorted(Counter(members).items()) for members in classes]
    return SensitiveRuns(
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([value for of in counts for value, _ in of], dtype=np.int32),
        np.array([count for of in counts for _, count in of], dtype=np.int64),
    )


def columns_of(groups: list[Group], releases: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.array([places for places, _, _ in groups], dtype=np.int64).reshape(len(groups), releases),
        np.array([own for _, own, _ in groups], dtype=np.int32),
        np.array([people for _, _, people in groups], dtype=np.int64),
    )


Columns = tuple[np.ndarray, list[SensitiveRuns], np.ndarray, np.ndarray]


def given_to(releases: list[list[list[int]]], groups: list[Group]) -> Columns:
    """What the kernel takes of them."""
    places, own, people = columns_of(groups, len(releases))
    return places, [runs_of(classes) for classes in releases], own, people


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[list[int]]], list[Group]]:
    """Releases with their classes, and groups of people; values may have changed between releases."""
    members = st.lists(st.integers(0, 4), min_size=1, max_size=5)
    releases = draw(st.lists(st.lists(members, min_size=1, max_size=4), min_size=1, max_size=4))
    place = st.tuples(*(st.integers(-1, len(classes) - 1) for classes in releases))
    groups = draw(st.lists(st.tuples(place, st.integers(-1, 5), st.integers(1, 4)), max_size=8))
    return releases, groups


@given(histories())
def test_what_is_left_is_the_intersection_of_sets(drawn: tuple[list[list[list[int]]], list[Group]]) -> None:
    releases, groups = drawn
    found = intersected(*given_to(releases, groups))
    sets = [[set(members) for members in classes] for classes in releases]
    expected = [naive.left_after(sets, places) for places, _, _ in groups]
    for r, one in enumerate(found):
        left = [of[r] for of in expected]
        assert one.seen.tolist() == [some is not None for some in left]
        assert one.values.tolist() == [len(some or ()) for some in left]
        assert one.holds.tolist() == [own in (some or ()) for some, (_, own, _) in zip(left, groups, strict=True)]
        assert one.contradicted == sum(n for some, (_, _, n) in zip(left, groups, strict=True) if some == set())
        certain = sum(n for some, (_, own, n) in zip(left, groups, strict=True) if some == {own})
        assert one.disclosed.correct == certain


@given(histories())
def test_more_releases_never_disclose_less(drawn: tuple[list[list[list[int]]], list[Group]]) -> None:
    """Of people whose value is the same, hence one of every class they are in."""
    releases, groups = drawn
    same = [
        (places, own, people)
        for places, own, people in groups
        if all(p < 0 or own in classes[p] for classes, p in zip(releases, places, strict=True))
    ]
    found = intersected(*given_to(releases, same))
    for less, more in pairwise(found):
        assert (more.certain >= less.certain).all()
        assert (more.right >= less.right).all()
        assert more.contradicted == less.contradicted == 0


def counted(people: list[naive.Held], classes: int) -> tuple[SensitiveRuns, Together]:
    """Individuals of each class who hold each value, and two of them."""
    pairs = Counter((place, value) for one in people for place, held in one.items() for value in held)
    both = Counter((p, a, b) for one in people for p, held in one.items() for a in held for b in held if a < b)
    members = Counter(place for one in people for place in one)
    keys = sorted(pairs)
    columns = [np.array(column) for column in zip(*keys, strict=True)]
    runs = SensitiveRuns.of_entries(columns[0], columns[1], np.array([pairs[key] for key in keys]), classes)
    persons = np.array([members[place] for place in range(classes)])
    several = [np.array(column, dtype=np.int64) for column in zip(*both, strict=True)] or [np.zeros(0, dtype=int)] * 3
    return (
        SensitiveRuns(runs.class_start, runs.value, runs.count, persons),
        Together.of_pairs(*several, np.array(list(both.values()), dtype=np.int64)),
    )


@st.composite
def releases_of_individuals(draw: st.DrawFn) -> tuple[list[list[naive.Held]], list[tuple[int, ...]]]:
    """Releases whose classes have up to four individuals with up to three values, and classes of some records."""
    held = st.frozensets(st.integers(0, 3), min_size=1, max_size=3)
    releases = draw(
        st.lists(st.lists(st.lists(held, min_size=1, max_size=4), min_size=1, max_size=2), min_size=1, max_size=3)
    )
    place = st.tuples(*(st.integers(-1, len(classes) - 1) for classes in releases))
    people = [[{c: one} for c, members in enumerate(classes) for one in members] for classes in releases]
    return people, draw(st.lists(place, min_size=1, max_size=4))


@given(releases_of_individuals())
@settings(deadline=None)
def test_intersected_several_values_equals_all_possible_worlds(
    drawn: tuple[list[list[naive.Held]], list[tuple[int, ...]]],
) -> None:
    people, groups = drawn
    found = [counted(one, 1 + max(max(of) for of in one)) for one in people]
    n, places = len(groups), np.array(groups, dtype=np.int64).reshape(len(groups), len(people))
    own, one = np.zeros(n, dtype=np.int32), np.ones(n, dtype=np.int64)
    after = intersected(places, [runs for runs, _ in found], own, one, [of for _, of in found])
    expected = [naive.certain_after(people, of) for of in groups]
    assert [left.sure.tolist() for left in after] == [list(column) for column in zip(*expected, strict=True)]


def test_intersected_value_that_all_hold_next_to_others_is_certain() -> None:
    """All hold the flu, one of them a cold too: after one release the flu is certain, although two values are left."""
    people: list[naive.Held] = [{0: frozenset({0})}, {0: frozenset({0, 1})}]
    runs, together = counted(people, 1)
    given_places = np.array([[0]]), [runs], np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int64)
    (rows,) = intersected(*given_places)
    (individuals,) = intersected(*given_places, [together])
    assert (rows.disclosed.correct, individuals.disclosed.correct) == (0, 1)
    assert individuals.values.tolist() == [2]


def test_two_hospitals() -> None:
    """After figure 1 of Ganta et al. 2008: somebody has been in two hospitals, of which neither tells the illness.

    The class of four under 30 in the first has three illnesses, that of six under 35 in the second has four, and one
    is in both. All others of the first class are left with nothing if they are taken for patients of the second.
    """
    aids, heart, viral, cancer, tuberculosis, flu = range(6)
    first = [[aids, heart, viral, viral], [cancer, heart, viral, viral], [cancer] * 4]
    second = [[aids, tuberculosis, flu, tuberculosis, cancer, cancer], [cancer] * 3 + [tuberculosis, viral, viral]]
    groups = [((0, 0), aids, 1), ((0, -1), viral, 2), ((2, 1), cancer, 4), ((1, 1), viral, 1), ((-1, 0), flu, 1)]
    before, after = intersected(*given_to([first, second], groups))
    assert before.values.tolist() == [3, 3, 1, 3, 0]
    assert after.values.tolist() == [1, 3, 1, 2, 4]
    assert before.seen.tolist() == [True] * 4 + [False]
    assert (before.disclosed.correct, after.disclosed.correct, after.disclosed.tried) == (4, 5, 9)
    assert after.right.tolist() == [1, 1 / 3, 1, 1 / 2, 1 / 4]


def test_who_has_no_value_has_none_of_a_neighbour() -> None:
    """The last value of one class is not that of somebody without a value in the next one."""
    (left,) = intersected(*given_to([[[0, 1], [0, 0]]], [((0,), 1, 1), ((1,), -1, 1)]))
    assert left.holds.tolist() == [True, False]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    releases = [runs_of(generator.integers(0, 12, (15, 9)).tolist()) for _ in range(3)]
    places, own = generator.integers(-1, 15, (200, 3)), generator.integers(0, 12, 200).astype(np.int32)
    people = np.ones(200, dtype=np.int64)
    whole = intersected(places, releases, own, people)
    monkeypatch.setattr("privrisk_spark.extensions.attack.kernels.intersection._MOST_AT_ONCE", 40)
    for one, other in zip(whole, intersected(places, releases, own, people), strict=True):
        assert one.values.tolist() == other.values.tolist()
        assert one.holds.tolist() == other.holds.tolist()
    # 2 of 9 to 12 values are rare: three releases leave little.
    assert whole[2].values[(places >= 0).all(axis=1)].mean() < whole[0].values[places[:, 0] >= 0].mean()


def test_what_does_not_fit_is_refused() -> None:
    runs = [runs_of([[0, 1]])]
    one = np.array([1])
    with pytest.raises(InputError, match="in each of 1 releases"):
        intersected(np.zeros((1, 2), dtype=np.int64), runs, np.zeros(1, dtype=np.int32), one)
    for wrong in (1, -2):
        with pytest.raises(InputError, match="release 1 has no such class"):
            intersected(np.array([[wrong]]), runs, np.zeros(1, dtype=np.int32), one)
    assert intersected(np.zeros((1, 0), dtype=np.int64), [], np.zeros(1, dtype=np.int32), one) == []
    (nothing,) = Classes.none(1, 1).held
    empty = np.zeros(0, dtype=np.int64)
    (left,) = intersected(np.zeros((0, 1), dtype=np.int64), [nothing], empty.astype(np.int32), empty)
    assert left.disclosed.tried == left.contradicted == 0
    (left,) = intersected(np.array([[-1]]), [nothing], np.zeros(1, dtype=np.int32), one)
    assert (left.disclosed.correct, left.seen.tolist()) == (0, [False])
