from __future__ import annotations

from collections import Counter

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.background import certain_if_told
from privrisk_spark.extensions.attack.kernels.inference import (
    Inferred,
    at_values,
    certain_for_others,
    guessed,
    marginal_guess,
    of_known_values,
    without_own_row,
)
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

CLASSES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=6)
"""The values of the members of each class."""

INPATIENTS = {
    "130** <30": ["Heart", "Heart", "Viral", "Viral"],
    "1485* >=40": ["Cancer", "Heart", "Viral", "Viral"],
    "130** 3*": ["Cancer"] * 4,
}
"""The 4-anonymous table of Machanavajjhala et al. 2006: Bob is in the last class, Umeko in the first."""


def runs_of(classes: list[list[int]], persons: list[int] | None = None) -> SensitiveRuns:
    counts = [sorted(Counter(members).items()) for members in classes]
    return SensitiveRuns(
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([value for of in counts for value, _ in of], dtype=np.int32),
        np.array([count for of in counts for _, count in of], dtype=np.int64),
        None if persons is None else np.array(persons, dtype=np.int64),
    )


def of_names(classes: dict[str, list[str]]) -> SensitiveRuns:
    names = sorted({value for members in classes.values() for value in members})
    return runs_of([[names.index(value) for value in members] for members in classes.values()])


def is_close(found: Inferred, expected: list[tuple[object, object]]) -> None:
    np.testing.assert_allclose(found.certain, [float(certain) for certain, _ in expected], atol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.right, [float(right) for _, right in expected], atol=1e-12)  # type: ignore[arg-type]


@given(CLASSES)
def test_guesses_are_those_of_loops(classes: list[list[int]]) -> None:
    found = guessed(runs_of(classes))
    is_close(found, [naive.homogeneity(members) for members in classes])
    assert found.people.tolist() == found.candidates.tolist() == [len(members) for members in classes]


@given(CLASSES)
def test_own_rows_are_taken_away(classes: list[list[int]]) -> None:
    runs = runs_of(classes)
    is_close(without_own_row(runs, "worst"), [naive.without_own_row(members, max) for members in classes])
    is_close(without_own_row(runs, "drawn"), [naive.without_own_row(members, naive.mean) for members in classes])


@given(CLASSES, st.data())
def test_people_who_are_taken_for_members(classes: list[list[int]], data: st.DataObject) -> None:
    """Who is looked for need not be in the class: a value that the class lacks is never guessed."""
    m = len(classes)
    people = data.draw(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=5), min_size=m, max_size=m))
    found = guessed(runs_of(classes), runs_of(people))
    expected = [
        (
            naive.mean(int(naive.is_certain(members) and value in members) for value in those),
            naive.mean(naive.guess_is_right(members, value) for value in those),
        )
        for members, those in zip(classes, people, strict=True)
    ]
    is_close(found, expected)
    assert found.people.tolist() == [len(those) for those in people]


@given(CLASSES)
def test_members_alone_are_their_own_truth(classes: list[list[int]]) -> None:
    one, other = guessed(runs_of(classes)), guessed(runs_of(classes), runs_of(classes))
    assert one.certain.tobytes() == other.certain.tobytes()
    assert one.right.tobytes() == other.right.tobytes()


@given(CLASSES, st.data())
def test_refining_classes_never_lowers_what_is_certain(classes: list[list[int]], data: st.DataObject) -> None:
    finer = []
    for members in classes:
        cut = data.draw(st.integers(0, len(members)))
        finer += [part for part in (members[:cut], members[cut:]) if part]
    coarse, fine = runs_of(classes), runs_of(finer)
    for of in (guessed, lambda runs: without_own_row(runs, "worst")):
        assert of(fine).disclosed.correct >= of(coarse).disclosed.correct - 1e-9
    assert guessed(fine).guessed.correct >= guessed(coarse).guessed.correct - 1e-9


@given(CLASSES)
def test_knowing_more_is_never_worse(classes: list[list[int]]) -> None:
    runs = runs_of(classes)
    plain, drawn, worst = guessed(runs), without_own_row(runs, "drawn"), without_own_row(runs, "worst")
    for less, more in ((plain, drawn), (drawn, worst)):
        assert (more.certain >= less.certain - 1e-12).all()
        assert (more.right >= less.right - 1e-12).all()
    for one in (plain, drawn, worst):
        assert (one.right >= one.certain - 1e-12).all()


def test_bob_has_cancer() -> None:
    """4 of 12 inpatients; the guesses find 2 of 4, 2 of 4 and 4 of 4."""
    found = guessed(of_names(INPATIENTS))
    assert found.certain.tolist() == [0, 0, 1]
    assert found.right.tolist() == [0.5, 0.5, 1]
    assert (found.disclosed.tried, found.disclosed.correct, found.guessed.correct) == (12, 4, 8)
    # Of 5 with cancer, 3 with heart disease and 4 with a viral infection the marginal says cancer.
    baseline = marginal_guess(of_names(INPATIENTS), np.array([5, 3, 4]))
    assert baseline.tolist() == [0, 0.25, 1]
    assert (baseline * found.people).sum() == 5


def test_hyu_learns_what_cio_has() -> None:
    """T20: two in Barcelona have cancer; of three in Tarragona two have AIDS, and HYU a heart attack."""
    runs = of_names({"Barcelona 30": ["Cancer"] * 2, "Tarragona 60": ["AIDS", "AIDS", "Heart"]})
    assert guessed(runs).disclosed.correct == 2
    worst, drawn = without_own_row(runs, "worst"), without_own_row(runs, "drawn")
    assert worst.disclosed.correct == pytest.approx(4, abs=1e-12)  # all but HYU
    assert drawn.certain.tolist() == [1, pytest.approx(1 / 3, abs=1e-15)]  # GHE and CIO, if it is HYU who looks


def test_marginals_that_tie_are_drawn() -> None:
    runs = runs_of([[0, 0, 1], [2], [3]])
    assert marginal_guess(runs, np.array([2, 2, 1])).tolist() == [0.5, 0, 0]
    assert marginal_guess(runs, np.array([0, 0, 0, 3, 1])).tolist() == [0, 0, 1]
    with pytest.raises(InputError, match="at least 1 row"):
        marginal_guess(runs, np.zeros(3, dtype=np.int64))


def test_persons_with_several_values() -> None:
    """Three persons, all with flu, one of them with asthma too: flu is certain of all; of others nothing is."""
    runs = runs_of([[0, 0, 0, 1], [0, 0, 1, 1]], [3, 3])
    found = guessed(runs)
    assert found.people.tolist() == [3, 3]
    assert found.certain.tolist() == [1, 0]
    assert found.right.tolist() == [1, pytest.approx(2 / 3, abs=1e-15)]
    for against in ("worst", "drawn"):
        more = without_own_row(runs, against)  # type: ignore[arg-type]
        assert more.certain[0] == 1
        assert ((more.certain >= found.certain) & (more.certain <= 1) & (more.right <= 1)).all()


@given(CLASSES, st.data())
def test_of_some_members_that_is_counted_which_is_certain_of_each(
    classes: list[list[int]], data: st.DataObject
) -> None:
    """Member by member: whose value is certain for another one, or once one false value is known."""
    drawn = [data.draw(st.lists(st.sampled_from(range(len(of))), min_size=1, unique=True)) for of in classes]
    runs, truth = runs_of(classes), runs_of([[of[i] for i in some] for of, some in zip(classes, drawn, strict=True)])
    others, told = certain_for_others(runs, truth), certain_if_told(runs, truth, 1, values=9)

    def without(of: list[int], i: int) -> bool:
        """All other rows but one are as the victim's, and a member can take that one away."""
        if len(of) == 1:
            return True
        return any(set(of[:j] + of[j + 1 :]) == {of[i]} for j in range(len(of)) if j != i)

    pairs = [(of, i) for of, some in zip(classes, drawn, strict=True) for i in some]
    assert others.tried == told.tried == len(pairs)
    assert others.correct == pytest.approx(sum(without(of, i) for of, i in pairs), abs=1e-9)
    assert told.correct == pytest.approx(sum(len(set(of)) <= 2 for of, _ in pairs), abs=1e-9)
    everybody = certain_for_others(runs, runs)
    assert everybody == without_own_row(runs, "worst").disclosed
    again = certain_for_others(runs, runs_of(classes))
    assert (again.tried, again.correct) == (everybody.tried, pytest.approx(everybody.correct, abs=1e-9))


def test_what_a_class_does_not_show_is_certain_of_nobody() -> None:
    """Values that were changed: who is looked for holds 7, and the class is sure of 0."""
    runs, truth = runs_of([[0, 0, 0]]), runs_of([[7, 0]])
    assert certain_for_others(runs, truth).correct == 1
    assert certain_if_told(runs, truth, 1, values=9).correct == 1
    with pytest.raises(InputError, match="looked for in 2 classes"):
        at_values(runs_of([[0], [1]]), runs, runs.count)


def test_missing_values_hide_nobody_and_are_not_inferred() -> None:
    """0 is flu, 1 gout, 2 a missing value: of the four people with flu three are in classes that show nothing else."""
    classes = runs_of([[0, 2, 2], [0, 0], [0, 1], [2, 2]])
    assert guessed(classes).disclosed.correct == 4  # the missing ones are taken for a value, and hide one with flu
    found = of_known_values(classes, classes, 2)
    assert found is not None
    shown, truth = found
    assert shown is truth
    assert (guessed(shown, truth).disclosed.correct, guessed(shown, truth).disclosed.tried) == (3, 5)
    # A table that shows no value of a class: of its people nothing is certain.
    hidden = of_known_values(runs_of([[2], [0, 2]]), runs_of([[0], [0, 2]]), 2)
    assert hidden is not None
    assert guessed(*hidden).certain.tolist() == [0.0, 1.0]
    assert of_known_values(classes, runs_of([[2], [2], [2], [2]]), 2) is None


def test_no_class() -> None:
    (runs,) = Classes.none(1, 1).held
    for found in (guessed(runs), without_own_row(runs, "worst"), without_own_row(runs, "drawn")):
        assert found.disclosed.tried == len(found.right) == 0
    assert len(marginal_guess(runs, np.array([1]))) == 0
    with pytest.raises(InputError, match="looked for in 1 classes"):
        guessed(runs, runs_of([[0]]))
