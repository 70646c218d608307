from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.numeric.covariance import CrossMoments, product_total

VALUES = st.one_of(st.floats(-1e100, 1e100), st.sampled_from([0.0, -0.0, 0.1, 5e-324, -5e-324, 2.0**53]))


@given(st.lists(st.tuples(st.one_of(VALUES, st.just(1.7e308)), VALUES), max_size=8))
@settings(max_examples=300)
def test_products_are_added_exactly(pairs: list[tuple[float, float]]) -> None:
    one, other = (np.array([pair[i] for pair in pairs], dtype=np.float64) for i in (0, 1))
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction())
    assert Fraction(product_total(one, other), 2**2148) == exact
    assert product_total(other, one) == product_total(one, other)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=2, max_size=8))
@settings(max_examples=200)
def test_means_and_covariances_are_correctly_rounded(rows: list[tuple[float, ...]]) -> None:
    moments = CrossMoments.of(np.array(rows))
    exact = [[Fraction(value) for value in column] for column in zip(*rows, strict=True)]
    means = [sum(column, Fraction()) / len(rows) for column in exact]
    assert moments.means.tolist() == [float(mean) for mean in means]
    for i in range(3):
        for j in range(3):
            about = sum(((a - means[i]) * (b - means[j]) for a, b in zip(exact[i], exact[j], strict=True)), Fraction())
            assert moments.covariance[i, j] == float(about / (len(rows) - 1))


def test_covariances_are_those_of_numpy_even_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(500, 3)) @ generator.normal(size=(3, 3)) + 5
    whole = CrossMoments.of(values)
    np.testing.assert_allclose(whole.covariance, np.cov(values.T), rtol=1e-12)
    np.testing.assert_allclose(whole.correlation, np.corrcoef(values.T), rtol=1e-12)
    monkeypatch.setattr("privrisk_spark.kernels.numeric.covariance._CHUNK", 7)
    assert CrossMoments.of(values) == whole


def test_records_that_lack_a_value_are_left_out() -> None:
    """(1, 2), (3, 6): means 2 and 4, variances 2 and 8, covariance 4."""
    moments = CrossMoments.of(np.array([[1, 2], [math.nan, 7], [3, 6], [5, math.nan]]))
    assert moments.n == 2
    assert moments.means.tolist() == [2, 4]
    assert moments.covariance.tolist() == [[2, 4], [4, 8]]
    np.testing.assert_allclose(moments.correlation, [[1, 1], [1, 1]], rtol=1e-15)
    assert moments.correlation.max() <= 1


def test_an_attribute_of_one_value_is_correlated_with_none() -> None:
    moments = CrossMoments.of(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]]))
    assert moments.covariance[0].tolist() == [0, 0]
    assert moments.correlation.tolist() == [[1, 0], [0, 1]]


def test_of_fewer_than_two_records_there_is_no_covariance() -> None:
    assert CrossMoments.empty(2).covariance.tolist() == [[0, 0], [0, 0]]
    assert CrossMoments.empty(2).means.tolist() == [0, 0]
    assert CrossMoments.of(np.array([[3.0, 4.0]])).covariance.tolist() == [[0, 0], [0, 0]]


def test_what_has_no_covariance_is_refused() -> None:
    with pytest.raises(InputError, match="infinite"):
        CrossMoments.of(np.array([[math.inf, 1.0]]))
    with pytest.raises(InputError, match="one column per attribute"):
        CrossMoments.of(np.zeros(3))
    with pytest.raises(InputError, match="too large"):
        _ = CrossMoments.of(np.array([[1e200], [-1e200]])).covariance
