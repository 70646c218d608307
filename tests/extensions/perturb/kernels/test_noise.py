from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.noise import additive, correlated, covariance_factor
from privrisk_spark.kernels.numeric.covariance import CrossMoments

SIGMA = np.array([[4.0, 3.0, -0.1], [3.0, 9.0, 0.0], [-0.1, 0.0, 0.01]])
N = 40_000


def drawn(seed: int, k: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, k))


def near(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether covariances of N normal records are within five standard errors."""
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    return bool((np.abs(found - expected) < 5 * scale * np.sqrt(2 / N)).all())


def test_additive_noise_by_hand() -> None:
    assert additive(np.array([1.0, 2.0, np.nan]), np.array([0.5, -1.0, 3.0]), 2.0).tolist()[:2] == [2.0, 0.0]
    assert np.isnan(additive(np.array([np.nan]), np.array([1.0]), 2.0)).all()
    assert additive(np.array([1.5]), np.array([9.0]), 0.0).tolist() == [1.5]


@given(st.integers(0, 2**32), st.floats(0, 3))
@settings(max_examples=30)
def test_additive_noise_moves_with_place_and_scale(seed: int, deviation: float) -> None:
    generator = np.random.default_rng(seed)
    values, normals = generator.normal(size=(2, 20))
    masked = additive(values, normals, deviation)
    np.testing.assert_allclose(additive(values * 4 + 7, normals, deviation * 4), masked * 4 + 7, atol=1e-12)


def test_correlated_noise_has_the_stated_covariance() -> None:
    """Of the masked (1 + c) Σ, of the rescaled Σ; each check refuses the other's."""
    values = drawn(1, 3) @ np.linalg.cholesky(SIGMA).T + [10.0, -5.0, 0.0]
    moments = CrossMoments.of(values)
    normals = drawn(2, 3)
    plain = correlated(values, normals, moments.covariance, 0.5)
    kept = correlated(values, normals, moments.covariance, 0.5, keep_moments=True, means=moments.means)
    assert near(np.cov(plain.T), 1.5 * moments.covariance)
    assert near(np.cov(kept.T), moments.covariance)
    assert not near(np.cov(plain.T), moments.covariance)
    assert not near(np.cov(kept.T), 1.5 * moments.covariance)
    assert near(np.cov((plain - values).T), 0.5 * moments.covariance)
    for masked in (plain, kept):
        assert (np.abs(masked.mean(axis=0) - moments.means) < 5 * np.sqrt(0.5 * np.diag(SIGMA) / N)).all()
        np.testing.assert_allclose(np.corrcoef(masked.T), np.corrcoef(values.T), atol=0.02)


def test_correlated_noise_by_hand() -> None:
    """Σ = 4, 2; 2, 5: L = 2, 0; 1, 2. With c = 1/4 and z = (1, 2), noise (1, 5/2). Rescaled by √(5/4) about 0."""
    sigma = np.array([[4.0, 2.0], [2.0, 5.0]])
    assert covariance_factor(sigma).tolist() == [[2, 0], [1, 2]]
    masked = correlated(np.array([[10.0, 20.0]]), np.array([[1.0, 2.0]]), sigma, 0.25)
    assert masked.tolist() == [[11.0, 22.5]]
    kept = correlated(
        np.array([[10.0, 20.0]]), np.array([[1.0, 2.0]]), sigma, 0.25, keep_moments=True, means=np.zeros(2)
    )
    np.testing.assert_allclose(kept, masked / 1.25**0.5)


def test_a_record_is_masked_alike_in_any_company() -> None:
    values, normals = drawn(3, 3), drawn(4, 3)
    whole = correlated(values, normals, SIGMA, 0.3)
    for part in (slice(0, 1), slice(5, 12), slice(3, None, 7)):
        assert correlated(values[part], normals[part], SIGMA, 0.3).tobytes() == whole[part].tobytes()


def test_missing_values_stay_and_the_others_are_masked() -> None:
    values = np.array([[1.0, np.nan, 3.0]])
    masked = correlated(values, np.ones((1, 3)), SIGMA, 0.3)
    assert np.isnan(masked).tolist() == [[False, True, False]]
    assert masked[0, 2] != 3.0


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 5))
@settings(max_examples=100)
def test_factors_of_semidefinite_matrices(seed: int, k: int, rank: int) -> None:
    """Of attributes that are linear functions of others too, in units of any size."""
    generator = np.random.default_rng(seed)
    half = generator.normal(size=(k, rank)) * 10.0 ** generator.integers(-6, 7, (k, 1))
    sigma = half @ half.T
    factor = covariance_factor(sigma)
    scale = np.sqrt(np.diag(sigma))
    assert (np.triu(factor, 1) == 0).all()
    assert (np.abs(factor @ factor.T - sigma) <= 1e-4 * np.outer(scale, scale)).all()


def test_what_rounding_leaves_of_a_variance_is_not_divided_by() -> None:
    """The second attribute is the first up to 1e-15, and has 1e-6 of the third, which rounding may have put there."""
    sigma = np.array([[1, 1, 0], [1, 1 + 1e-15, 1e-6], [0, 1e-6, 1]])
    assert covariance_factor(sigma).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: additive(np.zeros(2), np.zeros(3), 1.0), "one normal number"),
        (lambda: additive(np.zeros(2), np.zeros(2), -1.0), "at least 0"),
        (lambda: additive(np.zeros(2), np.zeros(2), np.nan), "at least 0"),
        (lambda: correlated(np.zeros((2, 2)), np.zeros((2, 3)), np.eye(2), 0.1), "one normal number"),
        (lambda: correlated(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(3), 0.1), "one row of covariances"),
        (lambda: correlated(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), -0.1), "share"),
        (lambda: correlated(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), 0.1, keep_moments=True), "one mean"),
        (lambda: covariance_factor(np.array([[1.0, 2.0], [2.0, 1.0]])), "semidefinite"),
        (lambda: covariance_factor(np.array([[0.0, 1.0], [1.0, 1.0]])), "semidefinite"),
        (lambda: covariance_factor(np.array([[1.0, 0.5], [0.4, 1.0]])), "symmetric"),
        (lambda: covariance_factor(np.array([[-1.0]])), "at least 0"),
        (lambda: covariance_factor(np.array([[np.nan]])), "finite"),
    ],
)
def test_what_is_no_noise_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
