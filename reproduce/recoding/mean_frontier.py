"""The least mean risk of a table's records at each mean utility: what no way of disclosing them one by one beats.

Each record has its choices, level vectors with a risk and a utility. With a part of the rows of a record in one choice
and the rest in another, the means are a linear program, whose optima for all bounds of the mean utility are those of
``min r(x) - λ u(x)`` (Fouad 2012, eq 4.3) for all λ, record by record (Everett 1963; Sinha and Zoltners 1979): the
lower convex hull of each record's choices, and the segments of all hulls in the order of their slopes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class MeanFrontier:
    """Corners of the frontier; between two, records are divided.

    Attributes
    ----------
    utility, risk : ndarray of float64, shape (c,)
        Means, ascending both; the first is of the least risk there is.
    """

    utility: FloatArray
    risk: FloatArray

    @classmethod
    def of(cls, choices: Iterator[tuple[FloatArray, FloatArray]], times: FloatArray) -> MeanFrontier:
        """Merge the choices of all records.

        Parameters
        ----------
        choices : iterator of (ndarray of float64, ndarray of float64), each of shape (m,)
            Utilities and risks of each record's choices, at least one.
        times : ndarray of float64, shape (n,)
            Rows of each record.
        """
        total, least_utility, least_risk = float(times.sum()), 0.0, 0.0
        more_utility, more_risk = [np.zeros(0)], [np.zeros(0)]
        for (utilities, risks), weight in zip(choices, (times / total).tolist(), strict=True):
            utility, risk = lower_hull(utilities, risks)
            least_utility += weight * float(utility[0])
            least_risk += weight * float(risk[0])
            more_utility.append(weight * np.diff(utility))
            more_risk.append(weight * np.diff(risk))
        gained, added = np.concatenate(more_utility), np.concatenate(more_risk)
        order = np.argsort(added / gained, kind="stable")
        return cls(
            least_utility + np.concatenate([[0.0], np.cumsum(gained[order])]),
            least_risk + np.concatenate([[0.0], np.cumsum(added[order])]),
        )

    def least_risk(self, utility: float) -> float:
        """Least mean risk at a mean utility of at least so much; infinite where it cannot be reached."""
        if utility > self.utility[-1] * (1 + 1e-12):
            return float("inf")
        return float(np.interp(utility, self.utility, self.risk))


def lower_hull(utilities: FloatArray, risks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of the choices that are best for some λ >= 0, from the least risk to the greatest utility.

    Parameters
    ----------
    utilities, risks : ndarray of float64, shape (m,)
        At least one choice.

    Returns
    -------
    utility, risk : ndarray of float64, shape (c,)
        Strictly ascending both, with slopes that strictly ascend.
    """
    order = np.lexsort((risks, -utilities))
    # From the greatest utility down, only what has less risk than everything of more utility.
    utility, risk = utilities[order], risks[order]
    less = risk < np.concatenate([[np.inf], np.minimum.accumulate(risk)[:-1]])
    corners: list[tuple[float, float]] = []
    for u, r in zip(utility[less][::-1].tolist(), risk[less][::-1].tolist(), strict=True):
        while len(corners) > 1:
            (u0, r0), (u1, r1) = corners[-2:]
            if (r1 - r0) * (u - u0) < (r - r0) * (u1 - u0):
                break
            corners.pop()
        corners.append((u, r))
    found = np.array(corners, dtype=np.float64)
    return found[:, 0], found[:, 1]
