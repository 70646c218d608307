"""How far an estimate from class sizes would move with another sample: its standard deviation, by the delta method.

Estimates of population uniques are functions of how many classes ``n_f`` of each size ``f`` a sample has. If cells of
the population are drawn from independently, the ``n_f`` are about independent Poisson numbers, given that their records
add up to the sample. With ``g_f`` what the estimate loses if one class of size ``f`` less is in the sample, and the
population is as much smaller in proportion,

    Var = Σ n_f g_f² - (Σ n_f f g_f)² / Σ n_f f²,

the second term taking out what is due to the number of records, which is known. This is what chance in sampling does to
the estimate, and nothing is said of a model that is wrong: heuristic. Sizes beyond the smallest are taken at some
points, and interpolated between: ``g`` is smooth there.

Source: Rao, "Linear Statistical Inference and Its Applications", Wiley, 1973, section 6a (the delta method).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privrisk_spark.kernels.measures.identity import SizeHistogram

Estimate = Callable[[SizeHistogram, int], float | None]
"""Of class sizes and the size of the population; None if it cannot be computed."""

_ALL, _SOME = 12, 8
"""Sizes, the smallest, at each of which the estimate is taken again; and points among the others."""

_NORMAL = 1.959963984540054


def sampling_interval(estimate: Estimate, sizes: SizeHistogram, population: int) -> tuple[float, float] | None:
    """Return about the range of 95 % of the samples, around the estimate.

    Parameters
    ----------
    sizes : SizeHistogram
        Of the sample.
    population : int
        At least the records.

    Returns
    -------
    (float, float) or None
        In ``0 … population``; None if the estimate, or one near it, cannot be computed.
    """
    about, deviation = estimate(sizes, population), sampling_deviation(estimate, sizes, population)
    if about is None or deviation is None:
        return None
    return max(0.0, about - _NORMAL * deviation), min(float(population), about + _NORMAL * deviation)


def sampling_deviation(estimate: Estimate, sizes: SizeHistogram, population: int) -> float | None:
    """Return the standard deviation of the estimate over samples; parameters and None as there."""
    about, records = estimate(sizes, population), sizes.records
    if about is None or sizes.classes < 2:
        return None
    f, number = np.array(sizes.sizes, dtype=np.float64), np.array(sizes.numbers, dtype=np.float64)
    others = np.geomspace(_ALL, max(len(f) - 1, _ALL), _SOME).round().astype(np.int64)
    rest = sorted(set(others.tolist())) if len(f) > _ALL else []
    taken = [*range(min(_ALL, len(f))), *rest]
    change = []
    for at in taken:
        fewer = dict(zip(sizes.sizes, sizes.numbers, strict=True))
        fewer[sizes.sizes[at]] -= 1
        left = SizeHistogram.of_counts({size: many for size, many in fewer.items() if many})
        people = round(population * (left.records / records))
        without = estimate(left, max(people, left.records))
        if without is None:
            return None
        change.append(about - without)
    g = np.interp(f, f[taken], change)
    variance = math.fsum((number * g**2).tolist())
    due = math.fsum((number * f * g).tolist())
    variance -= due**2 / math.fsum((number * f**2).tolist())
    return math.sqrt(max(variance, 0.0))
