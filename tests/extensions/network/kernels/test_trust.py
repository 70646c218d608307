from __future__ import annotations

import naive_sharing
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import graph_of

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.diffusion import Series
from privrisk_spark.extensions.network.kernels.trust import (
    Exposure,
    Rule,
    propagated_trust,
    trust_by_likeness,
    trust_by_rules,
)

FORMS = [
    Exposure(),
    Exposure("exponential", scale=2.0),
    Exposure("step", threshold=1.0, below=3.0, above=0.5),
    Exposure("table", table=((-1.0, 4.0), (0.0, 1.0), (2.5, 0.0))),
]


@pytest.mark.parametrize("exposure", FORMS, ids=lambda one: one.form)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_exposure_never_rises_with_trust(exposure: Exposure, trusts: list[float]) -> None:
    found = exposure.of(np.array(sorted(trusts)))
    assert (np.diff(found) <= 0).all()
    assert (found >= 0).all()
    assert np.isfinite(found).all()


def test_values_of_the_forms() -> None:
    trust = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    reciprocal, exponential, step, table = (exposure.of(trust).tolist() for exposure in FORMS)
    assert reciprocal == [4, 2, 1, 0.5, 0.25]
    assert exponential == pytest.approx(np.exp(-trust / 2).tolist())
    assert step == [3, 3, 3, 0.5, 0.5]
    assert table == [4, 4, 1, 1, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"form": "step", "below": 0.0, "above": 1.0},
        {"form": "step", "below": 1.0, "above": -1.0},
        {"form": "exponential", "scale": 0.0},
        {"form": "table"},
        {"form": "table", "table": ((0.0, 1.0), (1.0, 2.0))},
        {"form": "table", "table": ((0.0, 1.0), (1.0, -1.0))},
        {"form": "table", "table": ((1.0, 1.0), (0.0, 0.5))},
        {"form": "table", "table": ((np.nan, 1.0),)},
    ],
)
def test_what_rises_or_is_negative_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError, match=r"sharing\.exposure"):
        Exposure(**wrong)


def test_the_first_rule_that_holds_decides_and_the_unknown_equals_nothing() -> None:
    """F12 §7.4.1: 1 with the same age and hobby, else -1."""
    left = {"age": np.array([1, 1, -1, 2]), "hobby": np.array([5, 5, 5, 6])}
    right = {"age": np.array([1, 2, -1, 2]), "hobby": np.array([5, 5, 5, 6])}
    thesis = [Rule(("age", "hobby"), 1.0)]
    assert trust_by_rules(thesis, -1.0, left, right, 4).tolist() == [1, -1, -1, 1]
    two = [Rule(("age",), 2.0), Rule(("hobby",), 0.5)]
    assert trust_by_rules(two, 0.0, left, right, 4).tolist() == [2, 0.5, 0.5, 2]


def test_trust_walks_on() -> None:
    """User 0 trusts 1, whose only friend is 2: half of it stays, a quarter is at 2, an eighth is back at 1."""
    edges = [(1, 2)]
    stated = np.array([[0.0], [1.0], [0.0]])
    found = propagated_trust(graph_of(3, edges), stated, Series.geometric(0.5, 1e-10))
    np.testing.assert_allclose(found.values[:, 0], [0, 2 / 3, 1 / 3], atol=1e-9)
    walk = naive_sharing.walk(3, edges)
    series = sum(0.5**k * 0.5 * np.linalg.matrix_power(walk, k)[1] for k in range(50))
    np.testing.assert_allclose(found.values[:, 0], series, atol=1e-9)
    diffused = propagated_trust(graph_of(3, edges), stated, Series.poisson(0.7, 1e-10))
    np.testing.assert_allclose(diffused.values[:, 0], naive_sharing.kernel(3, edges, "stochastic", 0.7)[1], atol=1e-9)
    one_way = propagated_trust(graph_of(3, edges, directed=True), stated, Series.walk(1))
    assert one_way.values[:, 0].tolist() == [0, 0, 1]


def test_who_is_like_the_listed_is_trusted() -> None:
    """Three who are all alike, up to the border; whoever shares less with them is another."""
    known = np.ones((3, 3))
    asked = np.array([[1.0, 1.0, 1.0], [0.9, 0.9, 0.9], [0.0, 0.0, 0.0]])
    assert trust_by_likeness(known, asked, 0.5).tolist() == [1, -1, -1]


@pytest.mark.parametrize("outliers", [0.1, 0.3, 0.6])
def test_no_more_of_the_listed_are_taken_for_others_than_asked(outliers: float) -> None:
    points = np.random.default_rng(1).normal(size=(60, 3))
    known = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=2))
    found = trust_by_likeness(known, known, outliers)
    assert (found == -1).mean() <= outliers
    assert set(found.tolist()) <= {1.0, -1.0}
