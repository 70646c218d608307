from __future__ import annotations

from collections import Counter
from fractions import Fraction

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels import minimality
from privrisk_spark.extensions.attack.kernels.minimality import Credibility, Parts, credibility
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

Class = tuple[list[int], list[int]]
"""Sizes of the parts, and the values of the rows."""


def parts_of(classes: list[Class]) -> Parts:
    counts = [sorted(Counter(values).items()) for _, values in classes]
    held = SensitiveRuns(
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([value for of in counts for value, _ in of], dtype=np.int32),
        np.array([count for of in counts for _, count in of], dtype=np.int64),
    )
    owner = np.repeat(np.arange(len(classes)), [len(sizes) for sizes, _ in classes])
    return Parts(owner, np.array([size for sizes, _ in classes for size in sizes], dtype=np.int64), held)


def told(parts: Parts, found: Credibility) -> list[dict[tuple[int, int], float]]:
    """Credibility by class, part of the class and value."""
    result: list[dict[tuple[int, int], float]] = [{} for _ in range(parts.held.n_classes)]
    first = np.searchsorted(parts.owner, np.arange(parts.held.n_classes))
    for part, run, after in zip(found.part.tolist(), found.run.tolist(), found.after.tolist(), strict=True):
        c = int(parts.owner[part])
        result[c][part - int(first[c]), int(parts.held.value[run])] = after
    return result


@st.composite
def classes_of(draw: st.DrawFn) -> list[Class]:
    result = []
    for _ in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda of: sum(of) <= 6))
        n = sum(sizes)
        result.append((sizes, draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))))
    return result


@given(classes_of(), st.sampled_from([(1, 2), (1, 3), (2, 3), (1, 1)]), st.integers(1, 2))
@settings(deadline=None)
def test_credibility_small_classes_equals_enumeration_of_all_tables(
    classes: list[Class], limit: tuple[int, int], k: int
) -> None:
    alpha = Fraction(*limit)
    parts = parts_of(classes)
    found, expected = credibility(parts, alpha=float(alpha), k=k), naive.credibility(classes, alpha, k)
    if found is None or expected is None:
        assert found is expected
        return
    assert found.exact
    for mine, of in zip(told(parts, found), expected, strict=True):
        assert mine == pytest.approx({key: float(value) for key, value in of.items()}, abs=1e-11)


def test_credibility_several_values_conditions_on_a_violation_by_any_of_them() -> None:
    """Four with two values: the parts of two violate 1/2 if equal values meet, in 2 of 6 orders, whichever they are.

    By a violation of its own the first value would be taken to be in both rows of a part, and so the other one.
    """
    found = credibility(parts_of([([2, 2], [0, 0, 1, 1])]), alpha=0.5)
    assert found is not None
    np.testing.assert_allclose(found.after, 0.5, atol=1e-12)
    assert not found.believed(0.5, 2).any()


def test_credibility_of_a_value_that_must_be_in_the_small_part() -> None:
    """Wong et al. 2007: two of six are ill; among four two are allowed, so both are in the part of two."""
    parts = parts_of([([2, 4], [9, 9, 1, 2, 3, 4])])
    found = credibility(parts, alpha=0.5)
    assert found is not None
    assert told(parts, found)[0][0, 9] == pytest.approx(1, abs=1e-12)
    assert found.believed(0.5, 2).tolist() == [True, False]


@pytest.mark.parametrize(
    ("classes", "alpha", "k"),
    [
        ([([2, 4], [9, 9, 1, 2, 3, 4])], 0.5, 3),  # a part is too small
        ([([2, 2], [0, 1, 2, 3])], 0.5, 1),  # no order violates
        ([([2, 2], [0, 0, 0, 1])], 0.5, 1),  # every order violates
        ([([2, 4], [9, 9, 1, 2, 3, 4]), ([2, 2], [0, 0, 0, 1])], 0.5, 1),  # every order of another class does
        ([([3], [0, 0, 1])], 0.7, 1),  # the finer scheme has the same class
    ],
)
def test_credibility_of_a_violation_that_is_certain_or_impossible_is_none(
    classes: list[Class], alpha: float, k: int
) -> None:
    assert credibility(parts_of(classes), alpha=alpha, k=k) is None


def test_credibility_beyond_the_exact_steps_is_heuristic_and_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same classes with and without the count of all orders; what is unlikely is told as exactly."""
    generator = np.random.default_rng(3)
    worst = []
    for _ in range(40):
        sizes = generator.integers(3, 7, 3).tolist()
        classes = [(sizes, generator.choice(6, sum(sizes), p=[0.35, 0.25, 0.1, 0.1, 0.1, 0.1]).tolist())]
        parts = parts_of(classes)
        exact = credibility(parts, alpha=0.6)
        with monkeypatch.context() as patch:
            patch.setattr(minimality, "EXACT_STEPS", 0)
            near = credibility(parts, alpha=0.6)
        if exact is None or near is None:
            assert exact is near
            continue
        assert exact.exact
        assert not near.exact
        worst.append(float(np.abs(exact.after - near.after).max()))
    assert len(worst) > 20
    assert max(worst) < 0.05


def test_credibility_improbable_violations_are_told() -> None:
    """3,000 of 10,000 are ill, and only a part of 4,000 of whom 0.7 are would have violated: improbable beyond floats.

    That is 2,800 or more of the 4,000; the 6,000 cannot. The least number is by far the most probable one: the ratio of
    C(4000, 2801) C(6000, 199) to C(4000, 2800) C(6000, 200) is (1200/2801)(200/5801) = 0.0148.
    """
    values = [0] * 3000 + list(range(1, 7001))
    parts = parts_of([([4000, 6000], values)])
    found = credibility(parts, alpha=0.6999)
    assert found is not None
    assert 2800.01 < told(parts, found)[0][0, 0] * 4000 < 2800.02


def test_credibility_expected_holders_are_as_many_as_there_are() -> None:
    generator = np.random.default_rng(11)
    classes = [
        (sizes, generator.integers(0, 6, sum(sizes)).tolist())
        for sizes in (generator.integers(3, 6, generator.integers(1, 4)).tolist() for _ in range(12))
    ]
    parts = parts_of(classes)
    found = credibility(parts, alpha=0.99)
    assert found is not None
    holders = np.bincount(found.run, found.after * parts.rows[found.part])
    np.testing.assert_allclose(holders, parts.held.count, rtol=1e-9)


def test_parts_that_are_none_are_refused() -> None:
    held = parts_of([([2, 2], [0, 0, 1, 1])]).held
    for owner, rows, rule in (
        ([0], [0], "at least 1 row"),
        ([1, 0], [1, 1], "in the order of their classes"),
        ([0, 0], [2, 3], "as many rows as the class"),
    ):
        with pytest.raises(InputError, match=rule):
            Parts(np.array(owner), np.array(rows), held)
    parts = parts_of([([2, 2], [0, 0, 1, 1])])
    for alpha, k in ((0.0, 1), (1.1, 1), (0.5, 0)):
        with pytest.raises(InputError, match="alpha must be"):
            credibility(parts, alpha=alpha, k=k)
    with pytest.raises(InputError, match="steps are needed"):
        credibility(parts_of([([10**6, 1], [0] * 10**5 + [1] * (9 * 10**5 + 1))]), alpha=0.95)
