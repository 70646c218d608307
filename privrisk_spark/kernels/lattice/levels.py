"""Levels of a value generalization hierarchy whose leaves lie at different depths.

Steps up from a leaf and levels counted from the root are the same where all leaves are equally deep. Where they are
not, two leaves may be at one common ancestor after unequal numbers of steps; counted from the root it has one level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, LevelArray

__all__ = ["counted_from_root", "steps_up"]


def counted_from_root(steps: IntArray) -> tuple[IntArray, LevelArray]:
    """Count the levels of a tree from its root, where they are steps from each leaf.

    Parameters
    ----------
    steps : ndarray of int32, shape (n_codes, h + 1)
        Node of each code after so many steps up, by one number wherever it is met; the root from some step on.

    Returns
    -------
    ancestors : ndarray of int32, shape (n_codes, h + 1)
        Node of each code at each level: the code's own first node below the level of its parent.
    missing : ndarray of int8, shape (n_codes,)
        Levels a code lacks: at level ``x`` it is ``max(x - missing, 0)`` steps up.

    Raises
    ------
    InputError
        If not all codes come to one root.
    """
    if len(steps) and (steps[:, -1] != steps[0, -1]).any():
        raise InputError("Levels can be counted from the root only where all codes come to one.")
    height = steps.shape[1] - 1
    missing = height - np.count_nonzero(steps != steps[:, -1:], axis=1)
    up = np.maximum(np.arange(height + 1) - missing[:, None], 0)
    return np.take_along_axis(steps, up, axis=1), missing.astype(np.int8)


def steps_up(levels: npt.NDArray[np.integer[Any]], missing: LevelArray) -> LevelArray:
    """Count levels as steps from each leaf, where they are counted from the root.

    Parameters
    ----------
    levels : ndarray of integers, shape (n,)
    missing : ndarray of int8, shape (n,)
        Levels each leaf lacks, as :func:`counted_from_root` returns them.

    Returns
    -------
    ndarray of int8, shape (n,)
    """
    steps: LevelArray = np.maximum(levels.astype(np.int16) - missing, 0).astype(np.int8)
    return steps
