"""Counterexamples to Theorem 6.4.1 of F12, with their figures."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.as_published.algorithm6 import drawing_epsilon, least_size
from reproduce.privacy import counterexamples as against


def literal_law(
    counts: list[int], above: list[bool], t: float, strength: float, rows: int, renormalized: bool
) -> list[float]:
    weights = {x: math.exp(strength * counts[x] / rows) for x in range(len(counts)) if above[x]}
    frequent = [x for x in weights if counts[x] >= t]
    total = sum(weights[x] for x in (frequent if renormalized else weights))
    return [weights[x] / total if x in frequent else 0.0 for x in range(len(counts))]


def literal_removed(above: npt.NDArray[np.bool_], beta: float, t: float) -> tuple[float, float]:
    """Both divergences at epsilon 1 by running over every sample and every draw."""
    laws = []
    for part in (above, above[1:]):
        m, counts = len(part), part.sum(axis=0).tolist()
        strength = (1 + math.log(beta)) / (12 * (1 - beta))
        law: dict[tuple[int, ...], float] = {(): 1.0}
        for row in part.tolist():
            elements = literal_law(counts, row, t, strength, m, True)
            after: dict[tuple[int, ...], float] = defaultdict(float)
            for output, p in law.items():
                after[output] += p * beta
                for x, q in enumerate(elements):
                    after[tuple(sorted((*output, x)))] += p * q * (1 - beta)
            law = after
        laws.append(law)
    outputs = set(laws[0]) | set(laws[1])
    one, other = ([(law.get(o, 0.0)) for o in sorted(outputs)] for law in laws)
    return (
        sum(max(p - math.e * q, 0.0) for p, q in zip(one, other, strict=True)),
        sum(max(q - math.e * p, 0.0) for p, q in zip(one, other, strict=True)),
    )


@pytest.mark.parametrize(("rows", "beta", "t"), [(4, 0.5, 2), (6, 0.9, 3), (5, 0.4, 3)])
def test_enumeration_against_a_literal_one(rows: int, beta: float, t: float) -> None:
    above = against.two_leaves(rows)
    found = against.removed(above, epsilon=1, beta=beta, t=t)
    assert (found.with_row, found.without_row) == pytest.approx(literal_removed(above, beta, t), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("rows", "t", "beta", "delta"),
    [(10, 5, 0.5, 0.758), (10, 5, 0.9, 0.188), (20, 10, 0.5, 0.941), (20, 10, 0.9, 0.341)],
)
def test_a_fixed_threshold_reveals_the_row(rows: int, t: int, beta: float, delta: float) -> None:
    found = against.removed(against.two_leaves(rows), epsilon=1, beta=beta, t=t)
    assert found.delta == pytest.approx(delta, abs=5e-4)


def test_a_random_threshold_is_far_from_the_footnote() -> None:
    found = against.removed(against.two_leaves(20), epsilon=1, beta=0.5, theta0=0.3)
    assert found.delta == pytest.approx(0.0462, abs=5e-5)
    # The element that changes status is not even above the removed row.
    assert found.without_row == found.delta > 50 * found.with_row
    assert against.footnote(20, 2) == 0.005


def test_the_mixture_over_thresholds() -> None:
    above = against.two_leaves(6)
    thetas = 0.3 + 0.7 * (np.arange(700) + 0.5) / 700
    laws = [against.output_law(above, epsilon=1, beta=0.5, t=theta * 6) for theta in thetas.tolist()]
    np.testing.assert_allclose(
        against.output_law(above, epsilon=1, beta=0.5, theta0=0.3), np.mean(laws, axis=0), atol=2e-3
    )
    assert against.output_law(above, epsilon=1, beta=0.5, theta0=0.3).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "levels", "delta", "hidden"),
    [
        (2_001, 100, 4.3e-2, 2.5e-5),
        (10_000, 50, 5.6e-3, 5.0e-7),
        (30_162, 300, 1.1e-2, 3.3e-7),
        (1_000_000, 300, 3.3e-4, 3.0e-10),
    ],
)
def test_twin_chains(rows: int, levels: int, delta: float, hidden: float) -> None:
    found = against.twin_chains(rows, levels, epsilon=1, beta=0.5, theta0=0.1)
    assert float(f"{found.delta:.1e}") == delta
    assert float(f"{against.footnote(rows, levels):.1e}") == hidden
    assert found.delta <= against.chain_bound(rows, levels, 0.1) * (1 + 1e-9)
    if levels < 0.02 * rows:
        assert found.delta == pytest.approx(against.chain_bound(rows, levels, 0.1), rel=2e-3)


def test_the_law_of_finest_levels_is_that_of_the_enumerated_output() -> None:
    # Three rows at the first level, two more at the second: counts 3, 5 and 2, 4.
    above = against.small_twin_chains(3, 5)
    law = against.output_law(above, epsilon=1, beta=0.5, theta0=0.1)
    pairs = np.zeros((3, 3))
    for output in itertools.product(range(10), repeat=5):
        if law[output]:
            first = 0 if output[0] else 1 if output[1] else 2
            second = 0 if output[2] else 1 if output[3] else 2
            pairs[first, second] += law[output]
    found = against._pair_law(np.array([3, 5]), np.array([2, 4]), 9, drawing_epsilon(1, 0.5, 4), 0.5, 0.1)
    np.testing.assert_allclose(found, pairs, rtol=1e-9)


@pytest.mark.parametrize(
    ("beta", "generalizations", "rows", "delta", "bad", "epsilon", "claimed"),
    [
        (0.37, 2_197, 1_958, 0.0234, 0.092, 2.06, 5.7e-4),
        (0.40, 12_960, 11_082, 0.0227, 0.23, 2.06, 1.1e-4),
        (0.50, 2_197, 3_280, 0.0041, 0.024, 1.66, 2.1e-4),
    ],
)
def test_long_chains(
    beta: float, generalizations: int, rows: int, delta: float, bad: float, epsilon: float, claimed: float
) -> None:
    found = against.long_chains(rows, generalizations, epsilon=1, beta=beta)
    assert found.delta == pytest.approx(delta, abs=5e-5)
    assert found.bad_outputs == pytest.approx(bad, rel=0.02)
    assert found.epsilon == pytest.approx(epsilon, abs=5e-3)
    assert float(f"{1e-6 + against.footnote(rows, generalizations):.1e}") == claimed < found.delta / 10
    # t = theta |D| for any theta above 0.9 meets the theorem's own conditions for delta = 1e-6.
    strength = drawing_epsilon(1, beta, 4)
    assert least_size(beta, strength, generalizations=generalizations, t_f=2, delta=1e-6) <= 0.9 * rows + 1


def test_long_chains_by_enumeration() -> None:
    # Two chains of two levels each: the other rows have four generalizations, the removed one the root alone.
    above = np.ones((6, 4), dtype=np.bool_)
    above[0, :3] = False
    law = against.output_law(above, epsilon=1, beta=0.5, t=1, rows=6)
    without = against.output_law(above[1:], epsilon=1, beta=0.5, t=1, rows=6)
    expected = against.divergence(law, without, 1).delta
    assert against.long_chains(6, 4, epsilon=1, beta=0.5).delta == pytest.approx(expected, rel=1e-9)


def test_both_readings_of_eq_6_2_fail_on_nine_rows() -> None:
    above = against.small_twin_chains(1, 3, 4)
    assert len(above) == 9
    kept, lost = (
        against.removed(above, epsilon=1, beta=0.38, theta0=0.05, reading=reading).delta
        for reading in ("renormalized", "lost")
    )
    assert kept == pytest.approx(0.063, abs=5e-4)
    assert lost == pytest.approx(0.029, abs=6e-4)
    assert min(kept, lost) > against.footnote(9, 2)


def test_what_is_not_enumerated() -> None:
    with pytest.raises(InputError, match="up to 16,777,216"):
        against.multiset_law(np.full((100, 5), 0.1))
    with pytest.raises(InputError, match="theta0 or a fixed t"):
        against.output_law(against.two_leaves(4), epsilon=1, beta=0.5)
    with pytest.raises(InputError, match="at least 50 rows"):
        against.twin_chains(49, 10, epsilon=1, beta=0.5, theta0=0.1)
