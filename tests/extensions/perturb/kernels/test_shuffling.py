from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.shuffling import Dealing, dealt, normal_scores, shuffled, spearman
from privrisk_spark.kernels.numeric.covariance import CrossMoments

N = 20_000
SIGMA = np.array([[1, 0.6, 0.7, 0.2], [0.6, 1, 0.3, -0.4], [0.7, 0.3, 1, 0.1], [0.2, -0.4, 0.1, 1]])


def file(seed: int) -> np.ndarray:
    """Two confidential and two known attributes with a Gaussian copula, none normal."""
    scores = np.random.default_rng(seed).normal(size=(N, 4)) @ np.linalg.cholesky(SIGMA).T
    return np.column_stack([np.exp(scores[:, 0]), scores[:, 1] ** 3, scores[:, 2], np.tanh(scores[:, 3])])


@st.composite
def files(draw: st.DrawFn):
    n, k, q = draw(st.integers(0, 20)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = generator.integers(0, draw(st.sampled_from([1, 2, 5, 1000])), (n, k + q)).astype(np.float64)
    return values[:, :k], values[:, k:], generator.normal(size=(n, k))


@given(files())
@settings(max_examples=200)
def test_each_attribute_keeps_its_values(given_file) -> None:
    """Whatever the file: ties, attributes of one value, fewer records than attributes. Scales do not matter."""
    confidential, known, normals = given_file
    masked = shuffled(confidential, known, normals)
    assert np.sort(masked, axis=0).tolist() == np.sort(confidential, axis=0).tolist()
    other = shuffled(confidential * 4 + 1, known * 8 - 3, normals)
    assert other.tolist() == (masked * 4 + 1).tolist()


def test_rank_correlations_are_kept_and_no_more_is_told() -> None:
    values = file(1)
    masked = shuffled(values[:, :2], values[:, 2:], np.random.default_rng(2).normal(size=(N, 2)))
    before = stats.spearmanr(values).statistic
    after = stats.spearmanr(np.hstack([masked, values[:, 2:]])).statistic
    assert np.abs(after - before).max() < 0.03
    # Given the known attributes, masked and confidential scores are independent: nothing but noise is left.
    scores = stats.norm.ppf((stats.rankdata(np.hstack([values, masked]), axis=0) - 0.5) / N)
    known = scores[:, 2:4]
    rest = scores - known @ np.linalg.lstsq(known, scores, rcond=None)[0]
    assert np.abs(np.corrcoef(rest[:, [0, 1]].T, rest[:, [4, 5]].T)[:2, 2:]).max() < 5 / N**0.5
    # A file shuffled without the known attributes keeps the first of these but not those with them.
    alone = shuffled(values[:, :2], values[:, :0], np.random.default_rng(2).normal(size=(N, 2)))
    without = stats.spearmanr(np.hstack([alone, values[:, 2:]])).statistic
    assert abs(without[0, 1] - before[0, 1]) < 0.03
    assert abs(without[0, 2] - before[0, 2]) > 0.3


def test_the_conditional_law_by_hand() -> None:
    """Of product-moment 0.8 with one known attribute: B = 0.8, L = 0.6. Spearman's is (6 / π) asin(0.4)."""
    r = 6 / np.pi * np.arcsin(0.4)
    dealing = Dealing.of(np.array([[1, r], [r, 1]]), 1)
    np.testing.assert_allclose(dealing.slopes, [[0.8]], rtol=1e-12)
    np.testing.assert_allclose(dealing.factor, [[0.6]], rtol=1e-12)
    np.testing.assert_allclose(dealing.scores(np.array([[2.0]]), np.array([[-1.0]])), [[1.0]], rtol=1e-12)


def test_the_law_of_scores_has_the_correlations_asked_for() -> None:
    """B R_ss Bᵀ + L Lᵀ = R_xx and B R_ss = R_xs."""
    dealing = Dealing.of(6 / np.pi * np.arcsin(SIGMA / 2), 2)
    slopes, factor = dealing.slopes, dealing.factor
    np.testing.assert_allclose(slopes @ SIGMA[2:, 2:] @ slopes.T + factor @ factor.T, SIGMA[:2, :2], atol=1e-9)
    np.testing.assert_allclose(slopes @ SIGMA[2:, 2:], SIGMA[:2, 2:], atol=1e-9)


def test_a_known_attribute_that_tells_all_keeps_the_order() -> None:
    """The confidential one twice among the known, once reversed."""
    values = np.random.default_rng(3).permutation(50).astype(np.float64)[:, None]
    known = np.hstack([values * 2, -values])
    assert shuffled(values, known, np.random.default_rng(4).normal(size=(50, 1))).tolist() == values.tolist()


def test_attributes_that_are_settled_by_the_known_ones_are_no_noise() -> None:
    """The first and the third are known, up to sign; what rounding leaves of their variances is no covariance."""
    first = np.array([0.0, 0, -4, -2, -1, -3])
    other = np.array([1.331306441958338, -1.0137535704119844, -0.22802982590802673, -0.09116155198757529,
                      1.8503670125547864, -1.9099865155919333])  # fmt: skip
    known = np.column_stack([[3.0, 3, 0, 1, 3, 1], first])
    confidential = np.column_stack([first, other, first])
    masked = shuffled(confidential, known, np.random.default_rng(1).normal(size=(6, 3)))
    assert masked[:, [0, 2]].tolist() == confidential[:, [0, 2]].tolist()


def test_scores_of_a_record_are_the_same_in_any_company() -> None:
    dealing = Dealing.of(6 / np.pi * np.arcsin(SIGMA / 2), 2)
    known, normals = np.random.default_rng(5).normal(size=(2, 100, 2))
    whole = dealing.scores(known, normals)
    assert dealing.scores(known[7:20], normals[7:20]).tobytes() == whole[7:20].tobytes()


def test_values_are_dealt_by_rank_of_score() -> None:
    assert dealt(np.array([5.0, 1.0, 3.0]), np.array([0.2, 0.9, -1.0])).tolist() == [3, 5, 1]
    assert dealt(np.array([5.0, 1.0, 3.0]), np.zeros(3)).tolist() == [1, 3, 5]


def test_normal_scores_by_hand() -> None:
    """Two records: quantiles of 1/4 and 3/4; both alike: of 1/2."""
    np.testing.assert_allclose(normal_scores(np.array([1.0, 2.0]), 2), [-0.6744897501960817, 0.6744897501960817])
    assert normal_scores(np.array([1.5, 1.5]), 2).tolist() == [0, 0]


@given(files())
@settings(max_examples=50)
def test_rank_correlations_are_those_of_exact_moments(given_file) -> None:
    confidential, _, _ = given_file
    if len(confidential) > 1:
        ranks = stats.rankdata(confidential, axis=0)
        np.testing.assert_allclose(spearman(ranks), CrossMoments.of(ranks).correlation, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: shuffled(np.zeros((3, 0)), np.zeros((3, 1)), np.zeros((3, 0))), "confidential attribute"),
        (lambda: shuffled(np.zeros((3, 1)), np.zeros((2, 1)), np.zeros((3, 1))), "as many records"),
        (lambda: shuffled(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 2))), "one normal number"),
        (lambda: shuffled(np.full((3, 1), np.nan), np.zeros((3, 1)), np.zeros((3, 1))), "finite"),
        (lambda: Dealing.of(np.eye(2), 3), "one rank correlation"),
        (lambda: Dealing.of(np.array([[1, 2.0], [2, 1]]), 1), "between -1 and 1"),
        (lambda: Dealing.of(np.array([[1, 0.5], [0.4, 1]]), 1), "symmetric"),
        (lambda: Dealing.of(np.array([[1, np.nan], [np.nan, 1]]), 1), "between -1 and 1"),
    ],
)
def test_what_cannot_be_shuffled_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
