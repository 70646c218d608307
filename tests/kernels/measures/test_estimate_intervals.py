"""The standard deviation of estimates against what they do over samples of known populations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privrisk_spark.kernels.measures.estimate_intervals import sampling_deviation, sampling_interval
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.population_uniques import pitman, zayatz


def sizes_of(sample: np.ndarray) -> SizeHistogram:
    return SizeHistogram.of(sample[sample > 0].astype(np.int64))


@pytest.mark.parametrize("model", [zayatz, pitman])
@pytest.mark.parametrize("skew", [0.8, 1.3])
def test_as_far_as_estimates_are_apart(model, skew: float) -> None:
    """Samples of one population without replacement."""
    pick = np.random.default_rng(3)
    shares = 1 / np.arange(1, 3001) ** skew
    people = pick.multinomial(20_000, shares / shares.sum())

    def estimate(sizes: SizeHistogram, population: int) -> float | None:
        return model(sizes, population).uniques

    found, told = [], []
    for _ in range(60):
        sizes = sizes_of(pick.multivariate_hypergeometric(people, 2_000))
        value, deviation = estimate(sizes, 20_000), sampling_deviation(estimate, sizes, 20_000)
        assert value is not None
        assert deviation is not None
        found.append(value)
        told.append(deviation)
        low, high = sampling_interval(estimate, sizes, 20_000) or (math.nan, math.nan)
        assert 0 <= low <= value <= high <= 20_000
    assert 0.6 < np.mean(told) / np.std(found, ddof=1) < 1.7


def test_linear_estimates_have_the_variance_of_their_sum() -> None:
    """Classes of one record among those of two: given n, of a x + 2 y = n only one is free (derived in the module)."""
    sizes = SizeHistogram.of_counts({1: 40, 2: 30})
    deviation = sampling_deviation(lambda of, _: float(of.classes_of(1)), sizes, 1000)
    # g is 1 for singles and 0 for pairs: 40 - 40² / (40 + 4 · 30) = 30.
    assert deviation == pytest.approx(math.sqrt(30))
    # The number of records is known, and does not vary.
    assert sampling_deviation(lambda of, _: float(of.records), sizes, 1000) == pytest.approx(0, abs=1e-6)


def test_interpolated_where_there_are_many_sizes() -> None:
    sizes = SizeHistogram.of_counts({f: 1 + 200 // f for f in range(1, 200)})
    smooth = sampling_deviation(
        lambda of, _: sum(n * math.sqrt(f) for f, n in zip(of.sizes, of.numbers, strict=True)), sizes, 10**6
    )
    f, number = np.array(sizes.sizes, dtype=float), np.array(sizes.numbers, dtype=float)
    exact = (number * f).sum() - (number * f**1.5).sum() ** 2 / (number * f**2).sum()
    assert smooth == pytest.approx(math.sqrt(exact), rel=0.01)


def test_none_where_nothing_is_known() -> None:
    assert sampling_interval(lambda *_: None, SizeHistogram.of_counts({1: 5}), 10) is None
    assert sampling_deviation(lambda *_: 1.0, SizeHistogram.of_counts({3: 1}), 10) is None
    broken = sampling_deviation(lambda of, _: 1.0 if of.classes == 5 else None, SizeHistogram.of_counts({1: 5}), 10)
    assert broken is None
