"""A generated table of numbers, masked in every way, and how many of its records are found.

Of the shape of the files on which masking methods are compared in the literature (Census: 1,080 records of 13 numbers),
with known correlations: every pair of columns has the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from privrisk_spark.experiments.generated.clustered import keyed_uniforms
from privrisk_spark.kernels.linkage.evidence import Found, found
from privrisk_spark.kernels.linkage.points import Points, tie
from privrisk_spark.kernels.masking.coding import rounded
from privrisk_spark.kernels.masking.microaggregation import centroids, mdav
from privrisk_spark.kernels.masking.noise import additive
from privrisk_spark.kernels.masking.rank_swapping import swapped

FloatArray = npt.NDArray[np.float64]

CORRELATION = 0.5
GROUPS = (3, 5, 10, 20, 50)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Of the variance of each column, that of the noise."""
PERCENT = (1.0, 2.0, 5.0, 10.0, 20.0)
BASES = (0.25, 0.5, 1.0, 2.0)
"""In standard deviations."""


@dataclass(frozen=True, eq=False)
class Masked:
    """A table of numbers, masked.

    Attributes
    ----------
    family, name : str
    values : ndarray of float64, shape (n, q)
    """

    family: str
    name: str
    values: FloatArray


def generated(seed: int, rows: int, columns: int) -> FloatArray:
    """Normal numbers of unit variance, every two columns of correlation :data:`CORRELATION`."""
    drawn = ndtri(keyed_uniforms(seed, "numbers", (rows, columns + 1)).clip(1e-12, 1 - 1e-12))
    values: FloatArray = np.sqrt(CORRELATION) * drawn[:, :1] + np.sqrt(1 - CORRELATION) * drawn[:, 1:]
    return values


def masked(values: FloatArray, seed: int) -> Iterator[Masked]:
    """Mask a table in every way."""
    n, q = values.shape
    deviation = values.std(axis=0)
    for k in GROUPS:
        if k <= n:
            groups = mdav(values / deviation, k)
            yield Masked("microaggregation", f"MDAV, k = {k}", centroids(values, groups)[groups])
    for share in SHARES:
        normals = ndtri(keyed_uniforms(seed, f"noise {share:g}", (n, q)).clip(1e-12, 1 - 1e-12))
        columns = [additive(values[:, j], normals[:, j], np.sqrt(share) * deviation[j]) for j in range(q)]
        yield Masked("noise", f"noise, {share:g} of the variance", np.column_stack(columns))
    for percent in PERCENT:
        words = (keyed_uniforms(seed, f"swap {percent:g}", (n, q)) * 2.0**64).astype(np.uint64)
        swaps = np.empty_like(values)
        for j in range(q):
            order = np.argsort(values[:, j], kind="stable")
            swaps[order, j] = swapped(values[order, j], percent, words[:, j])
        yield Masked("rank swapping", f"rank swapping, {percent:g} %", swaps)
    for base in BASES:
        columns = [rounded(values[:, j], float(f"{base * deviation[j]:.3g}")) for j in range(q)]
        yield Masked("rounding", f"rounded to {base:g} deviations", np.column_stack(columns))


def lost(values: FloatArray, shown: FloatArray) -> float:
    """IL1s: mean of ``|x - x'| / (√2 S)`` over all cells, S the deviation of the column."""
    return float((np.abs(values - shown) / (np.sqrt(2) * values.std(axis=0))).mean())


def records_found(values: FloatArray, shown: FloatArray) -> Found:
    """Records whose own masked row is nearest, each file in its own standard deviations (T20); ties are fractional."""

    def standard(table: FloatArray) -> FloatArray:
        deviation = table.std(axis=0)
        scaled: FloatArray = (table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        return np.asarray(scaled / np.sqrt(table.shape[1]))

    mine, theirs = standard(values), standard(shown)
    file = Points(theirs, np.ones(len(theirs), dtype=np.int64))
    least, tied = file.linked(mine)
    own = file.distances(mine, np.arange(len(mine)))
    return found(np.where(own <= tie(least), 1.0 / tied, 0.0), np.ones(len(mine), dtype=np.int64))
