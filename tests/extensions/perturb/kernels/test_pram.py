from __future__ import annotations

from fractions import Fraction

import naive_masking
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.pram import invariant, perturbed, transition_checked


@st.composite
def chains(draw: st.DrawFn):
    """Rows and marginals of whole parts, zeros among them."""
    c = draw(st.integers(1, 5))
    row = st.lists(st.integers(0, 6), min_size=c, max_size=c).filter(any)
    return [draw(row) for _ in range(c)], draw(row)


def matrix_of(rows: list[list[int]]) -> np.ndarray:
    return np.array([[Fraction(part, sum(row)) for part in row] for row in rows], dtype=np.float64)


def test_rows_are_made_to_sum_to_one() -> None:
    checked = transition_checked(np.array([[0.3333333333, 0.6666666667], [0.5, 0.5]]))
    assert checked.sum(axis=1).tolist() == [1, 1]


@given(chains())
@settings(max_examples=300)
def test_invariant_pram_keeps_the_marginal(chain) -> None:
    """π R = π, and R is that of the paper in fractions."""
    rows, marginal = chain
    shares = [Fraction(part, sum(marginal)) for part in marginal]
    found = invariant(matrix_of(rows), np.array(marginal, dtype=np.float64))
    pi = np.array(shares, dtype=np.float64)
    np.testing.assert_allclose(pi @ found, pi, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    exact = naive_masking.invariant([[Fraction(part, sum(row)) for part in row] for row in rows], shares)
    np.testing.assert_allclose(found, np.array(exact, dtype=np.float64), atol=1e-12)


def test_invariant_pram_by_hand() -> None:
    """π = 3/5, 2/5 and P = 9/10, 1/10; 1/5, 4/5: π P = 31/50, 19/50, Q = 27/31, 4/31; 3/19, 16/19."""
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    r = np.array([[0.9 * 27 / 31 + 0.1 * 3 / 19, 0.9 * 4 / 31 + 0.1 * 16 / 19],
                  [0.2 * 27 / 31 + 0.8 * 3 / 19, 0.2 * 4 / 31 + 0.8 * 16 / 19]])  # fmt: skip
    np.testing.assert_allclose(invariant(p, np.array([60.0, 40.0])), r, rtol=1e-14)


@given(chains(), st.lists(st.floats(2.0**-53, 1 - 2.0**-53), min_size=1, max_size=30), st.data())
@settings(max_examples=200)
def test_records_are_perturbed_by_inversion(chain, uniforms: list[float], data) -> None:
    rows, _ = chain
    matrix = matrix_of(rows)
    codes = data.draw(st.lists(st.integers(-1, len(rows) - 1), min_size=len(uniforms), max_size=len(uniforms)))
    found = perturbed(np.array(codes, dtype=np.int32), matrix, np.array(uniforms)).tolist()
    assert found == [
        naive_masking.perturbed(code, transition_checked(matrix).tolist(), u)
        for code, u in zip(codes, uniforms, strict=True)
    ]
    assert all(after == -1 if code < 0 else matrix[code, after] > 0 for code, after in zip(codes, found, strict=True))


def test_the_ends_of_intervals_belong_to_the_next_category() -> None:
    matrix = np.array([[0.25, 0.0, 0.75, 0.0]] * 4)
    uniforms = np.array([2.0**-53, 0.25 - 2.0**-54, 0.25, 1 - 2.0**-53])
    assert perturbed(np.zeros(4, dtype=np.int32), matrix, uniforms).tolist() == [0, 0, 2, 2]


def test_rounding_draws_no_category_of_probability_0() -> None:
    """Ten tenths add up to less than 1."""
    matrix = np.zeros((11, 11))
    matrix[:, :10] = 0.1
    assert np.cumsum(matrix[0])[-1] < 1
    assert perturbed(np.array([3], dtype=np.int32), matrix, np.array([1 - 2.0**-53])).tolist() == [9]


def law_is(p: np.ndarray, drawn: np.ndarray) -> bool:
    counts = np.bincount(drawn, minlength=len(p))
    return bool(stats.chisquare(counts, p * len(drawn)).pvalue > 1e-4)


def test_the_law_is_the_row_and_no_other() -> None:
    matrix = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    uniforms = np.random.default_rng(8).uniform(size=30_000)
    for code in range(3):
        drawn = perturbed(np.full(30_000, code, dtype=np.int32), matrix, uniforms)
        assert law_is(matrix[code], drawn)
        assert not law_is(matrix[(code + 1) % 3], drawn)
        assert not law_is(matrix.T[code] / matrix.T[code].sum(), drawn)


def test_invariant_keeps_the_marginal_of_many_records() -> None:
    generator = np.random.default_rng(9)
    codes = generator.choice(3, 50_000, p=[0.7, 0.2, 0.1]).astype(np.int32)
    counts = np.bincount(codes).astype(np.float64)
    matrix = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    uniforms = generator.uniform(size=50_000)
    kept = np.bincount(perturbed(codes, invariant(matrix, counts), uniforms))
    changed = np.bincount(perturbed(codes, matrix, uniforms)).astype(np.float64)
    assert (np.abs(kept - counts) < 1_000).all()
    assert (np.abs(changed - counts) > 2_000).any()


@given(chains())
@settings(max_examples=100)
def test_names_of_categories_do_not_matter(chain) -> None:
    rows, marginal = chain
    order = np.arange(len(rows))[::-1]
    matrix, pi = matrix_of(rows), np.array(marginal, dtype=np.float64)
    other = matrix[np.ix_(order, order)]
    np.testing.assert_allclose(invariant(other, pi[order]), invariant(matrix, pi)[np.ix_(order, order)], atol=1e-12)


TWO = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: transition_checked(np.zeros((2, 3))), "square"),
        (lambda: transition_checked(np.zeros((0, 0))), "square"),
        (lambda: transition_checked(np.array([[1.5, -0.5], [0, 1]])), "at least 0"),
        (lambda: transition_checked(np.array([[np.nan, 1], [0, 1]])), "finite"),
        (lambda: transition_checked(np.array([[1, 0], [0.5, 0.4]])), "Row 1"),
        (lambda: invariant(TWO, np.array([1.0])), "one count"),
        (lambda: invariant(TWO, np.zeros(2)), "not all 0"),
        (lambda: invariant(TWO, np.array([-1.0, 2.0])), "at least 0"),
        (lambda: perturbed(np.array([2], dtype=np.int32), TWO, np.array([0.5])), "categories"),
        (lambda: perturbed(np.array([-2], dtype=np.int32), TWO, np.array([0.5])), "categories"),
        (lambda: perturbed(np.array([1], dtype=np.int32), TWO, np.array([0.5, 0.5])), "one uniform"),
    ],
)
def test_what_is_no_chain_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
