from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import deciles, found


def test_ties_count_fractionally() -> None:
    """Two people alone, six among three, four not found: 2 + 6/3 = 4 of 12."""
    one = found(np.array([1.0, 1 / 3, 0.0]), np.array([2, 6, 4]))
    assert (one.tried, one.correct, one.share) == (12, 4.0, pytest.approx(1 / 3, abs=1e-15))
    limits = stats.binomtest(4, 12).proportion_ci(0.95, method="exact")
    assert (one.low, one.high) == (pytest.approx(limits.low, abs=1e-12), pytest.approx(limits.high, abs=1e-12))


def test_fractions_are_rounded_outward() -> None:
    one = found(np.array([0.5]), np.array([3]))
    assert one.correct == 1.5
    low = stats.binomtest(1, 3).proportion_ci(0.95, method="exact").low
    high = stats.binomtest(2, 3).proportion_ci(0.95, method="exact").high
    assert (one.low, one.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


def test_expected_people_are_no_more_than_there_are() -> None:
    """Of 40 people each is there with 1/4: 10 are tried, 5 found; and the limits are those of 10."""
    one = found(np.array([1.0, 0.0]), np.array([20, 20]) / 4)
    assert (one.tried, one.correct, one.share) == (10, 5.0, 0.5)
    assert (one.low, one.high) == (
        found(np.array([0.5]), np.array([10])).low,
        found(np.array([0.5]), np.array([10])).high,
    )
    odd = found(np.array([1.0]), np.array([1.4]))
    assert (odd.tried, odd.correct, odd.share, odd.high) == (1, 1.4, 1.0, 1.0)
    assert found(np.array([1.0]), np.array([0.3])).tried == 0
    assert deciles(np.array([0.1, 0.2]), np.array([0.5, 1.5])).tolist() == [1, 6]


def test_nobody_and_everybody() -> None:
    assert found(np.zeros(0), np.zeros(0, dtype=np.int64)) == found(np.array([0.5]), np.array([0]))
    nobody, everybody = found(np.array([0.0]), np.array([20])), found(np.array([1.0]), np.array([20]))
    assert (nobody.low, everybody.high) == (0.0, 1.0)
    assert nobody.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-12)
    assert everybody.low == pytest.approx(0.025 ** (1 / 20), abs=1e-12)


def test_what_is_no_probability_is_refused() -> None:
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match=r"in \[0, 1\]"):
            found(np.array([wrong]), np.array([1]))


def test_the_interval_holds_the_law_it_claims_and_not_another() -> None:
    """Of 2,000 samples of 50 people of whom 30 % are found, at least 95 % of the intervals hold 0.3; of 0.5 few do."""
    generator = np.random.default_rng(17)
    hits = generator.binomial(50, 0.3, 2000)
    limits = [found(np.array([1.0, 0.0]), np.array([h, 50 - h])) for h in hits]
    assert np.mean([one.low <= 0.3 <= one.high for one in limits]) >= 0.95
    assert np.mean([one.low <= 0.5 <= one.high for one in limits]) < 0.3


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40)), min_size=1, max_size=40))
def test_tenths_by_counting_people(drawn: list[tuple[int, int]]) -> None:
    predicted = np.array([1 / size for size, _ in drawn])
    people = np.array([n for _, n in drawn])
    tenths = deciles(predicted, people)
    everybody = np.repeat(predicted, people)
    for value, tenth in zip(predicted, tenths, strict=True):
        middle = ((everybody < value).sum() + (everybody <= value).sum()) / 2 / len(everybody)
        assert tenth == min(math.floor(10 * middle + 1e-12), 9)


def test_ten_equal_tenths() -> None:
    assert deciles(np.arange(10) / 10, np.full(10, 7)).tolist() == list(range(10))
