from __future__ import annotations

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.background import excluding
from privrisk_spark.extensions.attack.kernels.inference import guessed
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

UMEKO = SensitiveRuns(
    np.array([0, 2, 5, 6]), np.array([1, 2, 0, 1, 2, 0], dtype=np.int32), np.array([2, 2, 1, 1, 2, 4])
)
"""The classes of Machanavajjhala et al. 2006: 0 cancer, 1 heart disease, 2 viral infection; Umeko is in the first."""


def runs_of(classes: list[list[int]]) -> SensitiveRuns:
    counts = [sorted((value, members.count(value)) for value in set(members)) for members in classes]
    return SensitiveRuns(
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([value for of in counts for value, _ in of], dtype=np.int32),
        np.array([count for of in counts for _, count in of], dtype=np.int64),
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    values = draw(st.integers(1, 5))
    member = st.integers(0, values - 1)
    return draw(st.lists(st.lists(member, min_size=1, max_size=8), min_size=1, max_size=4)), values


@given(tables(), st.integers(0, 5))
@settings(deadline=None)
def test_every_choice_of_false_values(drawn: tuple[list[list[int]], int], known: int) -> None:
    classes, values = drawn
    for against, of in (("worst", max), ("drawn", naive.mean)):
        found = excluding(runs_of(classes), known, against, values=values)  # type: ignore[arg-type]
        expected = [naive.excluding(members, known, values, of) for members in classes]
        np.testing.assert_allclose(found.certain, [float(one) for one, _ in expected], atol=1e-12)
        np.testing.assert_allclose(found.right, [float(one) for _, one in expected], atol=1e-12)


@given(tables())
@settings(deadline=None)
def test_more_false_values_are_never_worse(drawn: tuple[list[list[int]], int]) -> None:
    classes, values = drawn
    runs = runs_of(classes)
    plain = guessed(runs)
    for against in ("worst", "drawn"):
        last = excluding(runs, 0, against, values=values)  # type: ignore[arg-type]
        np.testing.assert_allclose(last.certain, plain.certain, atol=1e-15)
        np.testing.assert_allclose(last.right, plain.right, atol=1e-12)
        for known in range(1, values + 2):
            more = excluding(runs, known, against, values=values)  # type: ignore[arg-type]
            assert (more.certain >= last.certain - 1e-12).all()
            assert (more.right >= last.right - 1e-12).all()
            last = more
        assert (last.certain == 1).all()  # all that is false is known


def test_umeko_has_a_viral_infection() -> None:
    """Who knows that it is not the heart is certain of her class of two values, and not of that of three."""
    found = excluding(UMEKO, 1, "worst", values=3)
    assert found.certain.tolist() == [1, 0, 1]
    assert found.disclosed.correct == 8
    # A random one of the two false values is that of her class half of the time.
    assert excluding(UMEKO, 1, "drawn", values=3).certain.tolist() == [0.5, 0, 1]
    assert excluding(UMEKO, 2, "drawn", values=3).certain.tolist() == [1, 1, 1]


def test_persons_with_several_values() -> None:
    runs = SensitiveRuns(np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array([3, 1]), np.array([3]))
    for known in (0, 1):
        found = excluding(runs, known, "worst", values=4)
        assert (found.people.tolist(), found.certain.tolist(), found.right.tolist()) == ([3], [1.0], [1.0])


def test_what_is_no_knowledge_is_refused() -> None:
    with pytest.raises(InputError, match="at least 0 false values"):
        excluding(UMEKO, -1, "worst", values=3)
    with pytest.raises(InputError, match="more values than the 2"):
        excluding(UMEKO, 1, "worst", values=2)
    (nothing,) = Classes.none(1, 1).held
    for against in ("worst", "drawn"):
        assert excluding(nothing, 1, against, values=0).disclosed.tried == 0  # type: ignore[arg-type]
