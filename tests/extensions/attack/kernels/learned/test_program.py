from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from privrisk_spark.extensions.attack.kernels.learned import program
from privrisk_spark.extensions.attack.kernels.learned.families import BilinearFamily, Kind, family_of
from privrisk_spark.extensions.attack.kernels.learned.program import Constraints, fewest_failures, least_hinge

MARGIN = 1e-3


def constraints_of(record: list[int], gaps: list[list[float]]) -> Constraints:
    """Of weighted means, with the least gap of each."""
    given_gaps = np.array(gaps, dtype=np.float64)
    n = given_gaps.shape[1]
    family = family_of("weighted_mean", n)
    return Constraints(family, np.array(record), csr_array(given_gaps), given_gaps.min(axis=1), np.zeros((0, n)))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Constraints, np.ndarray]:
    """Two weights, up to six records with a few constraints each."""
    m = draw(st.integers(1, 6))
    record = sorted(draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=12)))
    gap = st.integers(-8, 8).map(lambda x: x / 8)
    gaps = draw(st.lists(st.tuples(gap, gap), min_size=len(record), max_size=len(record)))
    stakes = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=m, max_size=m))
    return constraints_of(record, [list(one) for one in gaps]), np.array(stakes)


def corners(constraints: Constraints) -> list[float]:
    """First weights at which a constraint begins or ends to hold, and between: one of each piece."""
    a, b = constraints.gaps.toarray().T
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (MARGIN - b) / (a - b)
    ends = sorted({0.0, 1.0, *at[(at > 0) & (at < 1)].tolist()})
    return ends + [(x + y) / 2 for x, y in pairwise(ends)]


def failures(constraints: Constraints, stakes: np.ndarray, weight: float, slack: float) -> float:
    short = constraints.gaps @ np.array([weight, 1 - weight]) < MARGIN - slack
    return float(stakes[np.unique(constraints.record[short])].sum())


@given(programs())
@settings(max_examples=80)
def test_the_fewest_failures_are_those_of_every_piece(drawn: tuple[Constraints, np.ndarray]) -> None:
    constraints, stakes = drawn
    expected = min(failures(constraints, stakes, weight, 1e-9) for weight in corners(constraints))
    total = float(stakes.sum())
    found = fewest_failures(constraints, stakes, MARGIN, at_most=total, nodes=1000, seconds=60)
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert found.bound == pytest.approx(expected, abs=1e-6)
    assert found.parameters is not None
    assert failures(constraints, stakes, float(found.parameters[0]), 1e-5) == pytest.approx(expected, abs=1e-6)
    again = fewest_failures(constraints, stakes, MARGIN, at_most=expected, nodes=1000, seconds=60)
    assert again.bound == pytest.approx(expected, abs=1e-6)


def test_what_is_known_is_not_looked_for_again() -> None:
    """Two records want different weights: one fails. Who knows better is told so."""
    constraints = constraints_of([0, 1], [[1.0, -1.0], [-1.0, 1.0]])
    assert fewest_failures(constraints, np.ones(2), MARGIN, at_most=2, nodes=9, seconds=9).value == 1
    better = fewest_failures(constraints, np.ones(2), MARGIN, at_most=0, nodes=9, seconds=9)
    assert (better.parameters, better.bound) == (None, 0)


@given(programs())
@settings(max_examples=60)
def test_the_hinge_is_that_of_every_corner(drawn: tuple[Constraints, np.ndarray]) -> None:
    """Convex and piecewise linear in one weight: its least value is at a corner of some record's loss."""
    constraints, stakes = drawn
    gaps = constraints.gaps.toarray()

    def loss(weight: float) -> float:
        short = np.zeros(len(stakes))
        np.maximum.at(short, constraints.record, 0.25 - gaps @ np.array([weight, 1 - weight]))
        return float(stakes @ short)

    grid = [loss(i / 2000) for i in range(2001)]
    found = least_hinge(constraints, stakes, 0.25)
    assert found.parameters is not None
    assert found.value == pytest.approx(loss(float(found.parameters[0])), abs=1e-6)
    assert found.value <= min(grid) + 1e-6
    assert found.bound == found.value
    assert found.slack @ stakes == pytest.approx(found.value, abs=1e-6)


def test_records_without_a_stake_pull_at_nothing() -> None:
    constraints = constraints_of([0, 1], [[1.0, -1.0], [-1.0, 1.0]])
    found = least_hinge(constraints, np.array([1.0, 0.0]), 0.5)
    assert found.value == pytest.approx(0.0, abs=1e-9)
    assert found.parameters is not None
    assert found.parameters[0] >= 0.75 - 1e-6


def test_forms_are_descended_to_the_least_hinge() -> None:
    """Of all forms in two columns: (a, c; c, 1 - a) with c² <= a (1 - a), against a grid."""
    generator = np.random.default_rng(4)
    others, own = generator.random((2, 30)), generator.random((2, 30))
    family = BilinearFamily(2)
    gaps = family.features(others) - family.features(own)
    record = np.arange(30) // 2
    constraints = Constraints(family, record, csr_array(gaps), family.least_gap(others, own), np.zeros((0, 3)))
    stakes = np.ones(15)

    def loss(theta: np.ndarray) -> float:
        short = np.zeros(15)
        np.maximum.at(short, record, 0.1 - gaps @ theta)
        return float(short.sum())

    grid = min(
        loss(np.array([a, c * np.sqrt(a * (1 - a)), 1 - a]))
        for a in np.linspace(0, 1, 61)
        for c in np.linspace(-1, 1, 61)
    )
    found = least_hinge(constraints, stakes, 0.1)
    assert found.parameters is not None
    assert found.value == pytest.approx(loss(found.parameters), abs=1e-12)
    assert found.value <= grid * 1.01
    family.aggregate(found.parameters)
    again = least_hinge(constraints, stakes, 0.1, found.parameters)
    assert again.value <= found.value


@pytest.mark.parametrize("kind", ["weighted_mean", "choquet"])
@pytest.mark.parametrize("times", [0, 1, 6])
def test_beginning_with_what_matters_changes_no_value(kind: Kind, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any start, with all constraints at once and with few of them first."""
    generator = np.random.default_rng(12)
    family, record = family_of(kind, 3), np.sort(generator.integers(0, 25, 150))
    others, own = generator.random((3, 150)), generator.random((3, 25))[:, record]
    gaps = family.features(others) - family.features(own)
    none = np.zeros((0, gaps.shape[1]))
    constraints = Constraints(family, record, csr_array(gaps), family.least_gap(others, own), none)
    stakes = generator.integers(0, 3, 25).astype(np.float64)
    expected = least_hinge(constraints, stakes, 0.1)
    monkeypatch.setattr(program, "_TIMES", times)
    for corner in (0, 1):
        start = np.zeros(gaps.shape[1])
        start[corner] = start[-1] = 1.0
        found = least_hinge(constraints, stakes, 0.1, start)
        assert found.value == pytest.approx(expected.value, abs=1e-6)
        assert found.parameters is not None
        short = np.zeros(25)
        np.maximum.at(short, record, 0.1 - gaps @ found.parameters)
        np.testing.assert_allclose(found.slack[stakes > 0], short[stakes > 0], atol=1e-9)
