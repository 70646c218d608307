from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.coding import rounded, top_bottom

VALUES = st.lists(st.integers(-(10**6), 10**6).map(lambda value: value / 8), min_size=1, max_size=20)


def test_top_and_bottom_coding_by_hand() -> None:
    values = np.array([-5.0, 0.0, 3.0, 10.0, 11.0, np.nan])
    assert top_bottom(values, 0.0, 10.0)[:5].tolist() == [0, 0, 3, 10, 10]
    assert top_bottom(values, 0.0, 10.0, low_code=-1.0, high_code=12.5)[:5].tolist() == [-1, 0, 3, 10, 12.5]
    assert top_bottom(values, high=3.0)[:5].tolist() == [-5, 0, 3, 3, 3]
    assert top_bottom(values, low=3.0)[:5].tolist() == [3, 3, 3, 10, 11]
    assert np.isnan(top_bottom(values, 0.0, 10.0)[5])
    assert values[0] == -5


@given(VALUES, st.integers(-100, 100), st.integers(0, 100))
@settings(max_examples=100)
def test_coding_twice_is_coding_once_and_keeps_the_order(values: list[float], low: int, more: int) -> None:
    given_values = np.array(values)
    once = top_bottom(given_values, low, low + more)
    assert once.tolist() == [min(max(value, low), low + more) for value in values]
    assert top_bottom(once, low, low + more).tolist() == once.tolist()


def test_rounding_by_hand() -> None:
    """Halfway to even multiples: 2.5 is 2, 7.5 is 10 (2 · 5), 12.5 is 10; a tenth is a tenth."""
    assert rounded(np.array([2.5, 7.5, 12.5, -2.5, 3.0]), 5.0).tolist() == [0, 10, 10, 0, 5]
    assert rounded(np.array([0.15, 0.25, 0.31, 0.3000001]), 0.1).tolist() == [0.2, 0.2, 0.3, 0.3]
    assert rounded(np.array([1.0, 2.0, 3.0]), 2.0, origin=1.0).tolist() == [1, 1, 3]
    assert np.isnan(rounded(np.array([np.nan]), 5.0)).all()


@given(VALUES, st.sampled_from([0.01, 0.1, 0.25, 0.3, 1.0, 5.0, 1000.0]))
@settings(max_examples=200)
def test_values_are_rounded_to_the_nearest_multiple(values: list[float], base: float) -> None:
    unit = Fraction(str(base))
    for value, masked in zip(values, rounded(np.array(values), base).tolist(), strict=True):
        # Python rounds fractions halves to even.
        assert masked == float(round(Fraction(value) / unit) * unit)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (top_bottom, "threshold must be given"),
        (lambda v: top_bottom(v, 3.0, 2.0), "must not exceed"),
        (lambda v: top_bottom(v, 3.0, high_code=2.0), "needs its threshold"),
        (lambda v: top_bottom(v, np.nan), "must be numbers"),
        (lambda v: top_bottom(v, 1.0, low_code=np.nan), "must be numbers"),
        (lambda v: rounded(v, 0.0), "above 0"),
        (lambda v: rounded(v, np.inf), "above 0"),
        (lambda v: rounded(v, 1.0, origin=np.nan), "origin"),
        (lambda v: rounded(v, 1e-20), "2\\^53"),
    ],
)
def test_what_is_no_coding_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call(np.array([1.0, 2.0]))
