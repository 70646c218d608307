"""Fujishige-Wolfe: the minimum of a submodular function on a product of chains, as the point of least norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def minimize(function: Callable[[tuple[int, ...]], float], heights: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """Least minimizer of a submodular function of level vectors, and the minimum (Fujishige and Isotani 2011).

    The chains are a ring family over the elements ``(i, s)``: a set that lacks an element below one it has is charged
    ``K`` for each. ``K`` exceeds every gain of one level.
    """
    elements = [(i, s) for i, h in enumerate(heights) for s in range(1, h + 1)]
    n = len(elements)
    if n == 0:
        return (0,) * len(heights), function((0,) * len(heights))
    everywhere = [function(x) for x in np.ndindex(*(h + 1 for h in heights))]
    price = max(everywhere) - min(everywhere) + 1
    empty = function((0,) * len(heights))

    def extended(chosen: list[int]) -> float:
        x = [0] * len(heights)
        for e in chosen:
            i, s = elements[e]
            x[i] = max(x[i], s)
        return function(tuple(x)) - empty + price * (sum(x) - len(chosen))

    def vertex(direction: np.ndarray) -> np.ndarray:
        """Edmonds' greedy: the vertex of the base polytope that is least in a direction."""
        order = np.argsort(direction, kind="stable").tolist()
        values = [0.0] + [extended(order[: j + 1]) for j in range(n)]
        found = np.empty(n)
        found[order] = np.diff(values)
        return found

    point = vertex(np.zeros(n))
    corral, share = [point], np.ones(1)
    for _ in range(1000):
        best = vertex(point)
        if point @ point <= point @ best + 1e-10 * max(1.0, float(np.abs(corral).max()) ** 2):
            break
        corral.append(best)
        share = np.append(share, 0.0)
        while True:
            # The point of least norm of the affine hull.
            vertices = np.array(corral)
            system = np.ones((len(corral) + 1,) * 2)
            system[0, 0] = 0
            system[1:, 1:] = vertices @ vertices.T
            affine = np.linalg.lstsq(system, np.eye(len(corral) + 1)[0], rcond=None)[0][1:]
            if (affine > 1e-12).all():
                share = affine
                break
            falling = affine <= 1e-12
            step = min(1.0, float((share[falling] / np.maximum(share - affine, 1e-300)[falling]).min()))
            share = share + step * (affine - share)
            kept = share > 1e-12
            corral = [v for v, k in zip(corral, kept, strict=True) if k]
            share = share[kept] / share[kept].sum()
        point = share @ np.array(corral)
    # Every set {v : point_v <= level} is a candidate; rounding decides which level is 0.
    candidates = [tuple([0] * len(heights))]
    order = np.argsort(point, kind="stable").tolist()
    x = [0] * len(heights)
    for e in order:
        i, s = elements[e]
        x[i] = max(x[i], s)
        candidates.append(tuple(x))
    values = [function(c) for c in candidates]
    least = int(np.argmin(values))
    return candidates[least], values[least]
