from __future__ import annotations

import math

import naive_probabilistic
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight, NumberAgreement
from privrisk_spark.hierarchies.hierarchy import Hierarchy

DAYS = Hierarchy.from_paths(
    "day",
    [("1 May 06", "May 06", "06"), ("2 May 06", "May 06", "06"), ("1 June 06", "June 06", "06"), ("7", "8", "9")],
)
OF = {label: node for node, label in enumerate(DAYS.labels)}


@given(hierarchies(max_leaves=7, max_depth=4), st.sets(st.integers(1, 4), max_size=3), st.booleans())
def test_levels_are_those_of_paths(tree: Hierarchy, depths: set[int], equal: bool) -> None:
    nodes = np.arange(tree.n_nodes, dtype=np.int32)
    near = tuple(sorted(depths, reverse=True))
    agreement = LevelAgreement(tree.at_depth, nodes, near, equal)
    found = agreement.of(nodes)
    expected = [[naive_probabilistic.level(tree, a, b, near, equal) for b in nodes] for a in nodes]
    assert found.dtype == np.uint8
    assert found.tolist() == expected
    assert (found == found.T).all()
    assert (agreement.cells, agreement.levels) == (tree.n_nodes, len(near) + 2 + equal)


def test_levels_by_hand() -> None:
    """Days of a month are near by either depth, days of a year by the lesser one; a year covers its days."""
    labels = ("1 May 06", "2 May 06", "1 June 06", "7", "May 06", "June 06", "06", "*")
    cells = np.array([OF[label] for label in labels], dtype=np.int32)
    known = np.array([OF["1 May 06"], OF["*"]], dtype=np.int32)
    assert LevelAgreement(DAYS.at_depth, cells).of(known).tolist() == [[0, 1, 1, 2, 0, 1, 0, 3], [3] * 8]
    assert LevelAgreement(DAYS.at_depth, cells, (2, 1)).of(known)[0].tolist() == [0, 1, 2, 3, 0, 2, 0, 4]
    assert LevelAgreement(DAYS.at_depth, cells, ()).of(known)[0].tolist() == [0, 1, 1, 1, 0, 1, 0, 2]
    assert LevelAgreement(DAYS.at_depth, cells, (), equal=True).of(known)[0].tolist() == [0, 2, 2, 2, 1, 2, 1, 3]


@pytest.mark.parametrize("near", [(0,), (1, 2), (1, 1), (2, 0)])
def test_depths_out_of_order_are_refused(near: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="must descend, to at least 1"):
        LevelAgreement(DAYS.at_depth, np.array([0], dtype=np.int32), near)


ENDS = np.array([[3, 3], [2, 4], [5, 9], [-math.inf, 1], [math.nan, math.nan], [-math.inf, math.inf]], dtype=np.float64)
"""Nodes that stand for 3, [2, 4], [5, 9], at most 1, a missing value and any number."""


def test_numbers_by_hand() -> None:
    """Of 3 and of [2, 4], within 0, 1 and 2: the thresholds belong to the nearer level."""
    nodes = np.arange(6, dtype=np.int32)
    agreement = NumberAgreement(ENDS[:, 0], ENDS[:, 1], nodes, (0.0, 1.0, 2.0))
    found = agreement.of(nodes)
    assert found[0].tolist() == [0, 0, 2, 2, 4, 4]
    assert found[1].tolist() == [0, 0, 1, 1, 4, 4]
    assert found[4].tolist() == found[5].tolist() == [4] * 6
    assert (found == found.T).all()
    assert (agreement.cells, agreement.levels) == (6, 4)


ENDS_OF = st.one_of(
    st.tuples(st.integers(-4, 4), st.integers(0, 3)).map(lambda of: (float(of[0]), float(of[0] + of[1]))),
    st.sampled_from([(math.nan, math.nan), (-math.inf, math.inf), (-math.inf, 0.0), (1.0, math.inf)]),
)


@given(st.lists(ENDS_OF, min_size=1, max_size=6), st.sampled_from([(0.0, 0.5), (0.0,), (1.0, 2.0, 5.0)]))
def test_numbers_are_those_of_gaps(ends: list[tuple[float, float]], within: tuple[float, ...]) -> None:
    low, high = np.array(ends).T
    nodes = np.arange(len(ends), dtype=np.int32)
    found = NumberAgreement(low, high, nodes, within).of(nodes)
    assert found.tolist() == [[naive_probabilistic.number_level(a, b, within) for b in ends] for a in ends]


def test_what_is_no_number_agreement_is_refused() -> None:
    one = np.array([0], dtype=np.int32)
    with pytest.raises(InputError, match="must not end before"):
        NumberAgreement(np.array([2.0]), np.array([1.0]), one)
    for within in ((), (-1.0,), (1.0, 1.0), (2.0, 1.0)):
        with pytest.raises(InputError, match="thresholds must ascend"):
            NumberAgreement(np.array([1.0]), np.array([1.0]), one, within)
    for nodes in ([1], [-1]):
        strange = np.array(nodes, dtype=np.int32)
        with pytest.raises(InputError, match="a node of its hierarchy"):
            NumberAgreement(np.array([1.0]), np.array([1.0]), strange)
        with pytest.raises(InputError, match="a node of its hierarchy"):
            NumberAgreement(np.array([1.0]), np.array([1.0]), one).of(strange)
    with pytest.raises(InputError, match="a node of its hierarchy"):
        LevelAgreement(DAYS.at_depth, np.array([DAYS.n_nodes], dtype=np.int32))
    with pytest.raises(InputError, match="a node of its hierarchy"):
        LevelAgreement(DAYS.at_depth, one).of(np.array([-1], dtype=np.int32))


def test_lost_weight_is_what_lacks_of_the_greatest() -> None:
    """Of weights 3, 1, -4 and 0: 0, 2, 7 and 3; where every level speaks against a link, 0 is the greatest."""
    cells = np.array([OF["1 May 06"], OF["1 June 06"], OF["7"], OF["*"]], dtype=np.int32)
    agreement = LevelAgreement(DAYS.at_depth, cells)
    known = np.array([OF["1 May 06"]], dtype=np.int32)
    lost = LostWeight(agreement, (3.0, 1.0, -4.0, 0.0))
    assert lost.of(known).tolist() == [[0, 2, 7, 3]]
    assert lost.cells == 4
    assert LostWeight(agreement, (-1.0, -2.0, -3.0, 0.0)).of(known).tolist() == [[1, 2, 3, 0]]
    for weights in ((3.0, 1.0, 0.0), (math.inf, 1.0, -4.0, 0.0)):
        with pytest.raises(InputError, match="one finite weight"):
            LostWeight(agreement, weights)


def test_what_fits_lacks_nothing_and_what_does_not_lacks_its_weight() -> None:
    """Equal, covering and suppressed cells fit, and numbers that do not disagree; a sibling and a stranger do not."""
    tree = Hierarchy.from_paths("a", [("u", "s"), ("m", "s"), ("k", "n")])
    nodes = np.array([0, tree.labels.index("s"), tree.root, 1, 2], dtype=np.int32)
    for equal, weights in ((False, (3.0, 1.0, -4.0, 0.0)), (True, (5.0, 3.0, 1.0, -4.0, 0.0))):
        misfit = LostWeight(LevelAgreement(tree.at_depth, nodes, (1,), equal), weights).misfit
        assert misfit.cells == 5
        lost = weights[0] - 1, weights[0] + 4
        assert misfit.of(np.array([0], dtype=np.int32)).tolist() == [[0, 0, 0, *lost]]
        assert not misfit.of(np.array([tree.root], dtype=np.int32)).any()
    ends = np.array([0.0, 0.4, 2.0, -math.inf])
    numbers = NumberAgreement(ends, np.array([0.0, 0.4, 2.0, math.inf]), np.arange(4, dtype=np.int32))
    found = LostWeight(numbers, (3.0, 1.0, -4.0, 0.0)).misfit.of(np.array([0], dtype=np.int32))
    assert found.tolist() == [[0, 0, 7, 0]]
