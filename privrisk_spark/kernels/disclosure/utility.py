"""Utility of a disclosed record: a sum of per-attribute, per-node numbers, non-increasing upwards.

With ``depth(v)`` the edges from node ``v`` to the root, ``n(v)`` the leaves under it and ``m = n(⊥)``:

=============  ======================  =======================================================
measure        d(v)                    source
=============  ======================  =======================================================
``depth``      depth(v)                F12 §3.2: the generalization steps still possible
``leaves``     1 / n(v)                F12 eq 4.5; ⊥ keeps the non-zero utility 1/m
``log-leaves`` ln(m / n(v))            F12 eq 4.6, in nats
``xiao-tao``   1 - (n(v) - 1) / m      one minus the loss of Xiao and Tao, SIGMOD 2006
``lm``         1 - (n(v) - 1)/(m - 1)  one minus the loss LM of Iyengar, KDD 2002; 1 when m = 1
=============  ======================  =======================================================

Losses enter as ``1 - loss``, which keeps every utility non-negative.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray

UtilityMeasure = Literal["depth", "leaves", "log-leaves", "xiao-tao", "lm"]

UNITS: dict[str, str] = {
    "depth": "generalization steps",
    "leaves": "inverse leaves",
    "log-leaves": "nats",
    "xiao-tao": "retained share",
    "lm": "retained share",
}


def node_utility(
    measure: UtilityMeasure,
    depth: npt.NDArray[np.int32],
    n_under: npt.NDArray[np.int64],
    *,
    weight: float = 1.0,
) -> FloatArray:
    """Utility ``weight · d(v)`` of every node of one attribute.

    Parameters
    ----------
    measure : str
        One of the measures of this module.
    depth : ndarray of int32, shape (n_nodes,)
        Edges to the root.
    n_under : ndarray of int64, shape (n_nodes,)
        Leaves under each node; the largest is ``m``.
    weight : float
        Weight of the attribute, finite and non-negative.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        In the unit :data:`UNITS` gives for the measure.
    """
    n = n_under.astype(np.float64)
    m = n.max()
    if measure == "depth":
        d = depth.astype(np.float64)
    elif measure == "leaves":
        d = 1.0 / n
    elif measure == "log-leaves":
        d = np.log(m / n)
    elif measure == "xiao-tao":
        d = 1.0 - (n - 1.0) / m
    else:
        d = np.ones_like(n) if m == 1 else 1.0 - (n - 1.0) / (m - 1.0)
    result: FloatArray = weight * d
    return result
