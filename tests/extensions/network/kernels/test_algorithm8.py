"""Algorithm 8 as it was published: its layers, and how far it is from the best."""

from __future__ import annotations

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.algorithm8 import algorithm8
from privrisk_spark.extensions.network.kernels.modified_aggregate import Pairs, modified_aggregate


@st.composite
def problems(draw: st.DrawFn) -> Pairs:
    heights = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    width = max(heights) + 1
    falls = st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=width, max_size=width)

    def chains() -> np.ndarray:
        found = np.zeros((1, len(heights), width))
        for i, h in enumerate(heights):
            found[0, i, : h + 1] = np.cumsum(draw(falls)[: h + 1])[::-1]
        return found

    friends = draw(st.lists(st.tuples(*(st.integers(0, h) for h in heights)), max_size=6))
    rows = np.array(friends, dtype=np.int8).reshape(-1, len(heights))
    return Pairs(np.array([heights], dtype=np.int8), chains(), chains(), np.array([0, len(friends)]), rows)


def f_of(pairs: Pairs, levels, trade_off: float, kappa: float, consistency: str) -> float:
    x = levels.tolist()
    phi, u = (sum(values[0, i, s] for i, s in enumerate(x)) for values in (pairs.weights, pairs.utilities))
    xi = naive_sharing.consistent(pairs.agreements.tolist(), pairs.heights[0].tolist(), x, consistency)
    return (trade_off * xi / phi if phi else 0.0) + u**kappa


@given(problems(), st.sampled_from([0.05, 0.5, 2.0]), st.sampled_from(["all", "any"]), st.sampled_from([0.5, 4.0]))
@settings(max_examples=150, deadline=None)
def test_the_layers_come_within_their_ratio_of_the_best(pairs, epsilon, consistency, trade_off) -> None:
    layered = algorithm8(pairs, trade_off=trade_off, kappa=1, epsilon=epsilon, consistency=consistency)
    best = modified_aggregate(pairs, trade_off=trade_off, consistency=consistency)
    assert layered.objective[0] == pytest.approx(f_of(pairs, layered.levels[0], trade_off, 1, consistency))
    assert layered.objective[0] <= best.objective[0] * (1 + 1e-9)
    assert layered.objective[0] >= best.objective[0] / (1 + epsilon) * (1 - 1e-9)
    assert not layered.proved.any()


def test_by_the_letter_hardly_a_layer_has_a_level_vector() -> None:
    """Φ of 2, 1 and 3 with ε = 1: layers at 1, 2, 4. What is best, at Φ = 3, lies in none."""
    weights = np.array([[[2.0, 0.0], [1.0, 0.0]]])
    utilities = np.array([[[5.0, 0.0], [1.0, 0.0]]])
    pairs = Pairs(np.array([[1, 1]], dtype=np.int8), weights, utilities, np.array([0, 0]), np.zeros((0, 2), np.int8))
    found = algorithm8(pairs, trade_off=1.0, kappa=1, epsilon=1.0, reading="equality")
    assert found.levels.tolist() == [[0, 1]]
    assert found.visited.tolist() == [2]
    assert algorithm8(pairs, trade_off=1.0, kappa=1, epsilon=1.0).levels.tolist() == [[0, 0]]
    assert modified_aggregate(pairs, trade_off=1.0).levels.tolist() == [[0, 0]]


def test_without_sensitivity_everything_is_shown_and_nothing_is_rejected() -> None:
    pairs = Pairs(np.array([[1]], dtype=np.int8), np.zeros((1, 1, 2)), np.ones((1, 1, 2)), np.array([0, 0]),
                  np.zeros((0, 1), np.int8))  # fmt: skip
    found = algorithm8(pairs, trade_off=1.0, kappa=1, epsilon=1.0)
    assert found.levels.tolist() == [[0]]
    assert not (found.levels == pairs.heights).all()


def test_what_it_cannot_do_is_refused() -> None:
    pairs = Pairs(np.full((1, 21), 1, dtype=np.int8), np.ones((1, 21, 2)), np.ones((1, 21, 2)), np.array([0, 0]),
                  np.zeros((0, 21), np.int8))  # fmt: skip
    with pytest.raises(InputError, match="enumerates"):
        algorithm8(pairs, trade_off=1.0, kappa=1, epsilon=1.0)
    with pytest.raises(InputError, match="epsilon"):
        algorithm8(pairs, trade_off=1.0, kappa=1, epsilon=0.0)
