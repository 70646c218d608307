from __future__ import annotations

from collections import Counter

import naive_attribute_attacks as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.inference import guessed
from privrisk_spark.extensions.attack.kernels.skewness import gains, similar
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

CLASSES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=6)


def runs_of(classes: list[list[int]]) -> SensitiveRuns:
    counts = [sorted(Counter(members).items()) for members in classes]
    return SensitiveRuns(
        np.cumsum([0, *map(len, counts)]).astype(np.int64),
        np.array([value for of in counts for value, _ in of], dtype=np.int32),
        np.array([count for of in counts for _, count in of], dtype=np.int64),
    )


@given(CLASSES, st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_gains_are_those_of_shares(classes: list[list[int]], factor: float) -> None:
    table = [value for members in classes for value in members]
    found = gains(runs_of(classes), TableDistribution(np.bincount(table, minlength=5).astype(np.int64)))
    every = [[naive.gain(members, table, value) for value in sorted(set(table))] for members in classes]
    np.testing.assert_allclose(found.greatest, [float(max(of)) for of in every], atol=1e-12)
    np.testing.assert_allclose(found.least, [float(min(of)) for of in every], atol=1e-12)
    exposed = sum(naive.gain(members, table, value) > factor for members in classes for value in members)
    assert (found.exposed(factor).correct, found.exposed(factor).tried) == (exposed, len(table))


@given(CLASSES, st.data())
def test_of_some_members_those_are_exposed_whose_value_gains(classes: list[list[int]], data: st.DataObject) -> None:
    some = [data.draw(st.lists(st.sampled_from(of), min_size=1, max_size=3)) for of in classes]
    table = [value for members in classes for value in members]
    found = gains(runs_of(classes), TableDistribution(np.bincount(table, minlength=5).astype(np.int64)))
    exposed = found.exposed(1.5, runs_of(some))
    wanted = sum(naive.gain(of, table, value) > 1.5 for of, drawn in zip(classes, some, strict=True) for value in drawn)
    assert (exposed.tried, exposed.correct) == (sum(map(len, some)), pytest.approx(wanted, abs=1e-9))


def test_one_percent_that_becomes_a_half_and_nearly_all() -> None:
    """Li et al. 2007, section 3: 1 % of 10,000 are positive; 1 of 2 in a class is 50 times that, 49 of 50 98."""
    runs = SensitiveRuns(
        np.array([0, 2, 4, 6]), np.array([0, 1] * 3, dtype=np.int32), np.array([25, 25, 1, 49, 9874, 26])
    )
    found = gains(runs, TableDistribution(np.array([9900, 100])))
    np.testing.assert_allclose(found.greatest[:2], [50, 98], atol=1e-9)
    assert found.exposed(49.0).correct == 25 + 49
    assert found.exposed(50.0).correct == 49  # a gain equal to the factor is not above it
    assert found.least[0] == pytest.approx(0.5 / 0.99, abs=1e-12)


def test_salaries_and_stomachs() -> None:
    """Li et al. 2007, table 4: a 3-diverse class of Bob's has gastric ulcer, gastritis and stomach cancer alone."""
    names = ["gastric ulcer", "gastritis", "stomach cancer", "flu", "bronchitis", "pneumonia"]
    disease = [[0, 1, 2], [1, 3, 4], [4, 5, 2]]
    stomach = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    runs = runs_of(disease)
    assert guessed(runs).disclosed.correct == 0
    found = guessed(similar(runs, stomach))
    assert found.certain.tolist() == [1, 0, 0], names
    assert found.right.tolist() == [1, pytest.approx(2 / 3), pytest.approx(2 / 3)]


@given(CLASSES, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_groups_are_values_renamed(classes: list[list[int]], group: list[int]) -> None:
    found = similar(runs_of(classes), np.array(group, dtype=np.int32))
    expected = runs_of([[group[value] for value in members] for members in classes])
    for name in ("class_start", "value", "count"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    # Coarser values are never less certain.
    assert (guessed(found).certain >= guessed(runs_of(classes)).certain).all()


def test_what_cannot_be_compared_is_refused() -> None:
    runs = runs_of([[0, 1], [1]])
    with pytest.raises(InputError, match="of at least 1"):
        gains(runs, TableDistribution(np.array([1, 2]))).exposed(0.5)
    with pytest.raises(InputError, match="more often than the whole table"):
        gains(runs, TableDistribution(np.array([1, 0])))
    with pytest.raises(InputError, match="1 value codes"):
        similar(runs, np.array([0], dtype=np.int32))
    persons = SensitiveRuns(runs.class_start, runs.value, runs.count, np.array([2, 1]))
    with pytest.raises(InputError, match="before persons are counted"):
        similar(persons, np.array([0, 0], dtype=np.int32))
    (nothing,) = Classes.none(1, 1).held
    found = gains(nothing, TableDistribution(np.array([1])))
    assert len(found.least) == found.exposed(2.0).tried == 0
    assert similar(nothing, np.array([0], dtype=np.int32)).n_classes == 0
