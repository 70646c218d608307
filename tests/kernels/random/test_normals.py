from __future__ import annotations

import numpy as np
from scipy import stats

from privrisk_spark.kernels.random.normals import normals


def test_words_become_numbers_of_the_normal_law() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 200_000, dtype=np.uint64)
    assert stats.kstest(normals(words), "norm").pvalue > 0.01
    assert stats.kstest(normals(words) * 1.02, "norm").pvalue < 0.01


def test_the_ends_are_finite_and_opposite() -> None:
    low, middle, high = normals(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64))
    assert high == -low
    assert np.isfinite(low)
    assert 8 < high < 8.4
    assert 0 < middle < 1e-15
