"""The frontier of mean risk and utility against linear programs, and the frontier's own properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from reproduce.recoding.mean_frontier import MeanFrontier, lower_hull

CHOICES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), min_size=1, max_size=7)
TABLES = st.lists(st.tuples(CHOICES, st.integers(1, 9)), min_size=1, max_size=5)


def arrays(choices: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    utility, risk = np.array(choices, dtype=np.float64).T
    return utility, risk


@settings(max_examples=150, deadline=None)
@given(TABLES, st.floats(0, 6))
def test_it_is_the_linear_program(table: list[tuple[list[tuple[int, int]], int]], floor: float) -> None:
    times = np.array([weight for _, weight in table], dtype=np.float64)
    found = MeanFrontier.of((arrays(choices) for choices, _ in table), times)
    share = times / times.sum()
    cost, gain = [], []
    one_each = np.zeros((len(table), sum(len(choices) for choices, _ in table)))
    at = 0
    for i, (choices, _) in enumerate(table):
        utility, risk = arrays(choices)
        cost += (share[i] * risk).tolist()
        gain += (share[i] * utility).tolist()
        one_each[i, at : at + len(choices)] = 1
        at += len(choices)
    program = linprog(cost, A_ub=[[-of for of in gain]], b_ub=[-floor], A_eq=one_each, b_eq=np.ones(len(table)))
    if program.status == 2:
        assert found.least_risk(floor * (1 + 1e-9) + 1e-9) == np.inf
    else:
        assert found.least_risk(floor) == pytest.approx(program.fun, abs=1e-7)


@given(CHOICES)
def test_corners_are_choices_with_rising_slopes(choices: list[tuple[int, int]]) -> None:
    utility, risk = lower_hull(*arrays(choices))
    assert {*zip(utility.tolist(), risk.tolist(), strict=True)} <= set(choices)
    assert (np.diff(utility) > 0).all()
    assert (np.diff(risk) > 0).all()
    assert (np.diff(np.diff(risk) / np.diff(utility)) > 0).all()
    assert risk[0] == min(r for _, r in choices)
    assert utility[-1] == max(u for u, _ in choices)


def test_a_table_of_two_records_by_hand() -> None:
    # One record gains 1 at a price of 1, then 1 at 3; the other 2 at 4, so 1 at 2. Three rows of the first, one of the
    # second: slopes 1, 2, 3 in this order.
    first = (np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]))
    second = (np.array([0.0, 2.0, 1.0]), np.array([0.0, 4.0, 9.0]))
    found = MeanFrontier.of(iter([first, second]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(found.utility, [0, 0.75, 1.25, 2.0])
    np.testing.assert_allclose(found.risk, [0, 0.75, 1.75, 4.0])
    assert found.least_risk(1.0) == 1.25
    assert found.least_risk(-1.0) == 0
    assert found.least_risk(2.5) == np.inf
