from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import aggregates

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
)
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral
from privrisk_spark.extensions.attack.kernels.learned.families import BilinearFamily, Kind, family_of

every_kind = pytest.mark.parametrize("kind", get_args(Kind))


def parameters_of(one: Aggregate) -> np.ndarray:
    if isinstance(one, ChoquetIntegral):
        return one.measure[1:]
    if isinstance(one, Bilinear):
        return np.concatenate([one.matrix[i, i:] for i in range(one.n)])
    assert isinstance(one, WeightedMean | OrderedWeightedAverage)
    return one.weights


@st.composite
def cases(draw: st.DrawFn, kind: Kind) -> tuple[Aggregate, np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 4))
    r = draw(st.integers(1, 5))
    both = [
        np.array(draw(st.lists(st.integers(0, 8), min_size=n * r, max_size=n * r)), dtype=np.float64).reshape(n, r) / 4
        for _ in range(2)
    ]
    return draw(aggregates(kind, n)), both[0], both[1]


@every_kind
@given(st.data())
def test_distances_are_linear_in_their_parameters(kind: Kind, data: st.DataObject) -> None:
    one, columns, _ = data.draw(cases(kind))
    family = family_of(kind, one.n)
    theta = parameters_of(one)
    seen = family.told_apart(columns)
    np.testing.assert_allclose(family.features(seen) @ theta, one.distance(columns.T), atol=1e-12)
    again = family.aggregate(theta)
    assert type(again) is type(one)
    np.testing.assert_allclose(parameters_of(again), theta, atol=1e-9)


@every_kind
@given(st.data())
def test_parameters_of_every_distance_are_in_the_set(kind: Kind, data: st.DataObject) -> None:
    one, _, _ = data.draw(cases(kind))
    family, theta = family_of(kind, one.n), parameters_of(one)
    low, high = family.limits()
    assert (theta >= low - 1e-9).all()
    assert (theta <= high + 1e-9).all()
    matrix, least, most = family.rows()
    assert (matrix @ theta >= least - 1e-9).all()
    assert (matrix @ theta <= most + 1e-9).all()
    assert not len(family.cuts(theta))


@every_kind
@given(st.data())
def test_no_gap_is_below_the_least(kind: Kind, data: st.DataObject) -> None:
    one, others, own = data.draw(cases(kind))
    family = family_of(kind, one.n)
    gap = one.distance(others.T) - one.distance(own.T)
    assert (gap >= family.least_gap(family.told_apart(others), family.told_apart(own)) - 1e-9).all()


def test_least_gaps_that_are_reached() -> None:
    """Of roots (1, 0) less (0, 1): all weight on the second column; a form along (0, 1) has -1."""
    others, own = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    assert family_of("weighted_mean", 2).least_gap(others, own).tolist() == [-1.0]
    assert family_of("choquet", 2).least_gap(others, own).tolist() == [-1.0]
    assert family_of("bilinear", 2).least_gap(others, own).tolist() == [-1.0]


@every_kind
@given(st.data())
def test_what_is_told_apart_decides(kind: Kind, data: st.DataObject) -> None:
    """Ordered differences of any order are one; in a monotone family less of all is never farther."""
    one, columns, _ = data.draw(cases(kind))
    family = family_of(kind, one.n)
    seen = family.told_apart(columns)
    np.testing.assert_allclose(one.distance(seen.T), one.distance(columns.T), atol=1e-12)
    if kind == "ordered_weighted_average":
        assert (family.told_apart(columns[::-1]) == seen).all()
    if family.monotone:
        assert (one.distance(np.minimum(seen, seen[:, :1]).T) <= one.distance(seen.T) + 1e-12).all()
    assert family.monotone == (kind != "bilinear")


@given(st.integers(2, 4), st.data())
def test_cuts_leave_out_what_is_no_form_alone(n: int, data: st.DataObject) -> None:
    family = BilinearFamily(n)
    size = n * (n + 1) // 2
    theta = np.array(data.draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size)), dtype=np.float64) / 8
    cuts = family.cuts(theta)
    assert (cuts @ theta < 0).all()
    form = data.draw(aggregates("bilinear", n))
    assert (cuts @ parameters_of(form) >= -1e-9).all()
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = theta
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    assert bool(len(cuts)) == bool(np.linalg.eigvalsh(matrix)[0] < -1e-7)


def test_a_step_of_a_form_goes_down_its_slope() -> None:
    """By the parameter q_12 the distance has the slope 2 u_1 u_2; down it goes, off the diagonal, and stays a form."""
    family = BilinearFamily(2)
    mean = family.parameters(Bilinear(np.eye(2) / 2))
    moved = family.moved(mean, np.array([0.0, -0.2, 0.0]))
    np.testing.assert_allclose(moved, [0.5, -0.1, 0.5], atol=1e-15)
    far = family.moved(mean, np.array([0.0, -9.0, 0.0]))
    np.testing.assert_allclose(far, [0.5, -0.5, 0.5], atol=1e-12)


@given(st.integers(1, 3), st.data())
def test_a_measure_that_rounding_broke_is_mended(n: int, data: st.DataObject) -> None:
    theta = np.array(data.draw(st.lists(st.integers(-2, 10), min_size=2**n - 1, max_size=2**n - 1))) / 8
    one = family_of("choquet", n).aggregate(theta)
    assert isinstance(one, ChoquetIntegral)
    assert (one.measure[1:-1] >= np.clip(theta, 0, 1)[:-1]).all()


def test_a_measure_of_nine_columns_cannot_be_learned() -> None:
    with pytest.raises(InputError, match=r"at most 8 columns. Got 9"):
        family_of("choquet", 9)
