from __future__ import annotations

import numpy as np
import pytest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.lattice.levels import counted_from_root, steps_up

STEPS = np.array([[0, 4, 5, 6], [1, 5, 6, 6], [2, 6, 6, 6]], dtype=np.int32)
"""A leaf below 4 below 5, its uncle 1 below 5, and 2 directly below the root 6."""


def test_a_leaf_stays_itself_below_the_level_of_its_parent() -> None:
    ancestors, missing = counted_from_root(STEPS)
    assert ancestors.tolist() == [[0, 4, 5, 6], [1, 1, 5, 6], [2, 2, 2, 6]]
    assert missing.tolist() == [0, 1, 2]
    again, none = counted_from_root(ancestors)
    assert again.tolist() == ancestors.tolist()
    assert none.tolist() == [0, 0, 0]


def test_steps_lead_to_the_node_of_the_level() -> None:
    ancestors, missing = counted_from_root(STEPS)
    for level in range(4):
        steps = steps_up(np.full(3, level), missing)
        assert STEPS[np.arange(3), steps].tolist() == ancestors[:, level].tolist()


def test_levels_of_several_trees_are_not_counted_from_one_root() -> None:
    with pytest.raises(InputError, match="only where all codes come to one"):
        counted_from_root(np.array([[0, 2], [1, 3]], dtype=np.int32))
