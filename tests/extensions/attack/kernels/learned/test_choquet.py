from __future__ import annotations

import naive_learned
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import measures

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.choquet import ChoquetIntegral, shapley

SUBJECTS = np.array([0, 0.45, 0.45, 0.5, 0.3, 0.9, 0.9, 1.0])
"""Mathematics and physics at 0.45 each, 0.5 together; literature 0.3, with either 0.9 (Grabisch 1996): sets as bits."""


def test_marks_of_three_students() -> None:
    """By mathematics, physics, literature; the best in all is no longer behind one whose marks are uneven.

    (18, 16, 10): 10 of all, 6 more of the first two, 2 more of the first: 10 + 6 · 0.5 + 2 · 0.45 = 13.9.
    (10, 12, 18): 10 + 2 · 0.9 + 6 · 0.3 = 13.6. (14, 15, 15): 14 + 1 · 0.9 = 14.9.
    """
    marks = np.array([[18, 16, 10], [10, 12, 18], [14, 15, 15]], dtype=np.float64)
    np.testing.assert_allclose(ChoquetIntegral(SUBJECTS).distance(marks), [13.9, 13.6, 14.9], atol=1e-12)


def test_what_the_measure_of_the_students_says() -> None:
    """m(MP) = 0.5 - 0.9 = -0.4; m(ML) = 0.9 - 0.75 = 0.15; m(MPL) = 1 - 0.5 - 1.8 + 1.2 = -0.1.

    Shapley of M, the sum of m(A) / |A|: 0.45 - 0.2 + 0.075 - 0.1 / 3 = 0.29167; of L: 0.3 + 0.15 - 0.1 / 3 = 0.41667.
    """
    np.testing.assert_allclose(shapley(SUBJECTS), [7 / 24, 7 / 24, 5 / 12], atol=1e-15)
    np.testing.assert_allclose(ChoquetIntegral(SUBJECTS).weights_of_columns(), shapley(SUBJECTS), atol=1e-15)


@given(st.integers(1, 4).flatmap(measures))
def test_what_a_measure_says_is_what_all_orders_and_sets_say(measure: np.ndarray) -> None:
    sets = naive_learned.of_sets(measure)
    np.testing.assert_allclose(shapley(measure), naive_learned.shapley(sets), atol=1e-12)


@given(st.integers(1, 4).flatmap(measures), st.data())
def test_the_integral_is_a_sum_of_least_differences(measure: np.ndarray, data: st.DataObject) -> None:
    """Σ_A m(A) min_{i ∈ A} d_i, over the Möbius transform."""
    one = ChoquetIntegral(measure)
    vector = np.array(data.draw(st.lists(st.integers(0, 9), min_size=one.n, max_size=one.n)), dtype=np.float64)
    added = naive_learned.moebius(naive_learned.of_sets(measure))
    expected = sum(of * min(vector[i] for i in members) for members, of in added.items() if members)
    assert float(one.distance(vector)) == pytest.approx(expected, abs=1e-12)


def test_eight_attributes_are_the_most() -> None:
    one = ChoquetIntegral(np.arange(256) / 255)
    expected = naive_learned.choquet(naive_learned.of_sets(one.measure))
    vectors = np.random.default_rng(3).random((40, 8)) * [1, 2, 4, 8, 16, 1e-3, 1e3, 0]
    np.testing.assert_allclose(one.distance(vectors), [expected(d) for d in vectors.tolist()], rtol=1e-13)
    with pytest.raises(InputError, match=r"at most 8 attributes. Got 9"):
        ChoquetIntegral(np.arange(512) / 511)


@pytest.mark.parametrize(
    ("measure", "rule"),
    [
        ([0.0, 1.0, 1.0], "2\\^n in all"),
        ([1.0], "2\\^n in all"),
        ([0.1, 0.5, 0.5, 1.0], "0 of no attribute and 1 of all"),
        ([0.0, 0.5, 0.5, 0.9], "0 of no attribute and 1 of all"),
        ([0.0, 1.1, 0.5, 1.0], "less of a set than of one inside"),
        ([0.0, np.nan, 0.5, 1.0], "less of a set than of one inside"),
    ],
)
def test_what_is_no_measure_is_refused(measure: list[float], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        ChoquetIntegral(np.array(measure))
