from __future__ import annotations

import itertools

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.sensitivity import interaction


@pytest.mark.parametrize("order", [2, 3, 4])
def test_interactions_are_the_sum_over_disclosed_subsets(order: int) -> None:
    rng = np.random.default_rng(order)
    n, k = 40, 4
    disclosed = rng.uniform(size=(n, k)) < 0.7
    sets = list(itertools.combinations(range(k), order))
    for weights in (rng.uniform(size=len(sets)), rng.uniform(size=(n, len(sets)))):
        found = interaction(disclosed, sets, weights)
        for r in range(n):
            shown = set(np.flatnonzero(disclosed[r]).tolist())
            of_record = weights[r] if weights.ndim == 2 else weights
            want = sum(w for members, w in zip(sets, of_record.tolist(), strict=True) if set(members) <= shown)
            assert found[r] == pytest.approx(want)
        for j in range(k):
            less = disclosed.copy()
            less[:, j] = False
            assert (interaction(less, sets, weights) <= found).all()


def test_an_infinite_weight_counts_only_where_its_set_is_disclosed() -> None:
    found = interaction(np.array([[True, True], [True, False]]), [(1, 0)], np.array([np.inf]))
    assert found.tolist() == [np.inf, 0]


@pytest.mark.parametrize("sets", [[(0,)], [(0, 0)], [(0, 2)], [(-1, 0)], [(0, 1), (1, 0)]])
def test_what_is_no_set_of_attributes_is_refused(sets: list[tuple[int, ...]]) -> None:
    with pytest.raises(InputError, match="interactions"):
        interaction(np.ones((1, 2), dtype=np.bool_), sets, np.ones(len(sets)))


def test_negative_weights_are_refused() -> None:
    for weight in (-1.0, np.nan):
        with pytest.raises(InputError, match="negative"):
            interaction(np.ones((1, 2), dtype=np.bool_), [(0, 1)], np.array([weight]))
