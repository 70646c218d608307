from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.extensions.perturb.kernels.point_tree import farthest, give_back, nearest, take, tree_of


def squares_of(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    total = np.zeros(len(points))
    for i in range(points.shape[1]):
        total += (points[:, i] - centre[i]) * (points[:, i] - centre[i])
    return total


@st.composite
def cases(draw: st.DrawFn):
    p = draw(st.integers(1, 3))
    value = draw(st.sampled_from([st.integers(0, 2).map(float), st.floats(-1e6, 1e6)]))
    n = draw(st.integers(1, 70))
    seed = draw(st.integers(0, 2**32))
    few = draw(st.lists(st.lists(value, min_size=p, max_size=p), min_size=1, max_size=12))
    generator = np.random.default_rng(seed)
    points = np.array(few)[generator.integers(0, len(few), n)] + generator.integers(0, 2, (n, p)) * 0.1
    return points, generator


@given(cases())
@settings(max_examples=150)
def test_what_is_found_is_what_comparing_with_every_point_finds(case) -> None:
    """While points are taken out one by one, and put back, from centres inside and outside."""
    points, generator = case
    n, p = points.shape
    tree = tree_of(points)
    left = list(range(n))
    while left:
        for centre in (points[generator.integers(n)], generator.normal(size=p) * 3):
            squares = squares_of(points, centre)
            assert farthest(tree, centre) == max(left, key=lambda i: (squares[i], -i))
            wanted = int(generator.integers(1, 6))
            record, distance = nearest(tree, centre, wanted)
            expected = sorted(left, key=lambda i: (squares[i], i))[:wanted]
            assert record.tolist() == expected
            assert distance.tolist() == squares[expected].tolist()
        gone = int(generator.choice(left))
        take(tree, gone)
        if generator.integers(4) == 0:
            give_back(tree, gone)
        else:
            left.remove(gone)
    assert farthest(tree, np.zeros(p)) == -1
    assert len(nearest(tree, np.zeros(p), 3)[0]) == 0
