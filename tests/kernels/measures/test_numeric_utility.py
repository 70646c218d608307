"""Utility of masked numbers against numpy's statistics."""

from __future__ import annotations

import math

import naive_assess as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.numeric_utility import (
    NumericMeans,
    NumericSpread,
    column_utility,
    correlation_change,
    eigenvalue_change,
)


def found(x: np.ndarray, y: np.ndarray) -> tuple[NumericMeans, NumericSpread]:
    means = NumericMeans.of(x, y)
    return means, NumericSpread.of(x, y, means)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, (9, 3), elements=st.integers(-50, 50).map(float), unique=True),
    arrays(np.float64, (9, 3), elements=st.integers(-50, 50).map(float), unique=True),
    st.sets(st.tuples(st.integers(0, 8), st.integers(0, 2), st.booleans()), max_size=4),
    st.sampled_from([0.0, 1e6]),
)
def test_the_statistics_of_numpy(x: np.ndarray, y: np.ndarray, holes: set[tuple[int, int, bool]], far: float) -> None:
    """Values far from 0 lose no digits, as deviations are from the mean. Holes are of one side or the other."""
    x, y = x / 8 + far, y / 8 + far
    for i, j, masked in holes:
        (y if masked else x)[i, j] = math.nan
    means, spread = found(x, y)
    expected = naive.numeric(x.tolist(), y.tolist())
    each = column_utility(means, spread)
    for name in ("il1s", "mean_shift", "variance_ratio"):
        assert [getattr(one, name) for one in each] == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
    assert correlation_change(spread) == pytest.approx(expected["correlation_change"], abs=1e-9)
    assert eigenvalue_change(spread) == pytest.approx(expected["eigenvalue_change"], abs=1e-9)


def test_worked_example() -> None:
    """1, 2, 3 masked as 1, 2, 6: S = 1, so IL1s = (3/3)/√2; the mean moves by 1, the variance from 2/3 to 14/3."""
    means, spread = found(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [6.0]]))
    (one,) = column_utility(means, spread)
    assert one.il1s == pytest.approx(1 / math.sqrt(2))
    assert one.mean_shift == pytest.approx(1.0)
    assert one.variance_ratio == pytest.approx(7.0)
    assert correlation_change(spread) is None
    assert eigenvalue_change(spread) is None


def test_what_must_stay_stays() -> None:
    """A column masked by an affine function keeps its correlations; what is not masked loses nothing."""
    x = np.array([[1.0, 4.0], [2.0, -1.0], [3.0, 0.5], [7.0, 2.0]])
    means, spread = found(x, x * 3 + 1)
    assert correlation_change(spread) == pytest.approx(0, abs=1e-15)
    assert eigenvalue_change(spread) == pytest.approx(0, abs=1e-15)
    means, spread = found(x, x)
    assert [(one.il1s, one.mean_shift, one.variance_ratio) for one in column_utility(means, spread)] == [(0, 0, 1)] * 2
    # Turning one of two columns about moves their correlation from r to -r.
    _, turned = found(x, x * [1, -1])
    assert correlation_change(turned) == pytest.approx(2 * abs(np.corrcoef(x, rowvar=False)[0, 1]))


def test_constant_and_missing_columns_have_none() -> None:
    means, spread = found(np.array([[1.0, math.nan], [1.0, 2.0]]), np.array([[1.0, 1.0], [2.0, math.nan]]))
    assert [one.il1s for one in column_utility(means, spread)] == [None, None]
    assert correlation_change(spread) is None
    with pytest.raises(InputError, match="same columns"):
        NumericMeans.of(np.zeros((2, 1)), np.zeros((2, 2)))
