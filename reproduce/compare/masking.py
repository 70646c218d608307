"""A table of numbers, masked in every way, and what the masking alone tells who knows how it was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.extensions.perturb.kernels.candidates import rank_candidates
from privrisk_spark.extensions.perturb.kernels.coding import rounded, top_bottom
from privrisk_spark.extensions.perturb.kernels.microaggregation import centroids, mdav, univariate_optimal
from privrisk_spark.extensions.perturb.kernels.noise import additive, correlated
from privrisk_spark.extensions.perturb.kernels.rank_swapping import swap_width, swapped
from privrisk_spark.extensions.perturb.kernels.shuffling import shuffled
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from reproduce.generated.clustered import keyed_uniforms

GROUPS = (3, 5, 10, 20, 50)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Of the variance of each column, that of the noise."""
PERCENT = (1.0, 2.0, 5.0, 10.0, 20.0)
BASES = (0.25, 0.5, 1.0, 2.0)
"""In standard deviations."""
TAILS = (5, 10, 25)
"""Per cent of each column that are coded at either end."""


@dataclass(frozen=True, eq=False)
class Masked:
    """A table of numbers, masked.

    Attributes
    ----------
    values : ndarray of float64, shape (n, q)
        Row by row those of the original.
    told : ndarray of float64, shape (n,), or None
        Probability that each record is found by who knows all originals, the method and its parameters; None where
        this leaves all rows possible, as noise does.
    """

    family: str
    name: str
    values: FloatArray
    told: FloatArray | None = None


def masked(values: FloatArray, seed: int) -> Iterator[Masked]:
    """Mask a table in every way.

    Parameters
    ----------
    values : ndarray of float64, shape (n, q)
        At least two rows.
    seed : int
        Draws noise and swaps.
    """
    yield from _grouped(values)
    yield from _noisy(values, seed)
    yield from _swapped(values, seed)
    yield from _coded(values)
    half = values.shape[1] // 2
    if half:
        normals = _normals(seed, "shuffle", (len(values), half))
        dealt = shuffled(np.ascontiguousarray(values[:, :half]), np.ascontiguousarray(values[:, half:]), normals)
        yield Masked(
            "shuffling", f"shuffled, {half} of {values.shape[1]} columns", np.hstack([dealt, values[:, half:]])
        )


def _grouped(values: FloatArray) -> Iterator[Masked]:
    n, q = values.shape
    for k in (k for k in GROUPS if k <= n):
        groups = mdav(values / _deviation(values), k)
        yield _repeatable("microaggregation", f"MDAV, k = {k}", centroids(values, groups)[groups])
    for k in (k for k in GROUPS if k <= n):
        columns = []
        for j in range(q):
            groups = univariate_optimal(np.ascontiguousarray(values[:, j]), k)
            columns.append(centroids(values[:, j], groups)[groups])
        yield _repeatable("microaggregation by column", f"columns apart, k = {k}", np.column_stack(columns))


def _noisy(values: FloatArray, seed: int) -> Iterator[Masked]:
    n, q = values.shape
    deviation, covariance = _deviation(values), np.atleast_2d(np.cov(values.T, bias=True))
    for share in SHARES:
        normals = _normals(seed, f"noise {share:g}", (n, q))
        columns = [additive(values[:, j], normals[:, j], np.sqrt(share) * deviation[j]) for j in range(q)]
        yield Masked("noise", f"noise, {share:g} of the variance", np.column_stack(columns))
    for share in SHARES:
        normals = _normals(seed, f"correlated {share:g}", (n, q))
        yield Masked("correlated noise", f"correlated noise, {share:g}", correlated(values, normals, covariance, share))


def _swapped(values: FloatArray, seed: int) -> Iterator[Masked]:
    n, q = values.shape
    for percent in PERCENT:
        words = (keyed_uniforms(seed, f"swap {percent:g}", (n, q)) * 2.0**64).astype(np.uint64)
        swaps = np.empty_like(values)
        for j in range(q):
            order = np.argsort(values[:, j], kind="stable")
            swaps[order, j] = swapped(values[order, j], percent, words[:, j])
        width = np.full(q, swap_width(n, percent), dtype=np.int64)
        left = rank_candidates(values, swaps, width, np.arange(n))
        told = np.where(left.holds, 1.0 / np.maximum(left.rows, 1), 0.0)
        yield Masked("rank swapping", f"rank swapping, {percent:g} %", swaps, told)


def _coded(values: FloatArray) -> Iterator[Masked]:
    q, deviation = values.shape[1], _deviation(values)
    for base in BASES:
        columns = [rounded(values[:, j], float(f"{base * deviation[j]:.3g}")) for j in range(q)]
        yield _repeatable("rounding", f"rounded to {base:g} deviations", np.column_stack(columns))
    for tail in TAILS:
        low, high = np.quantile(values, [tail / 100, 1 - tail / 100], axis=0)
        columns = [top_bottom(values[:, j], float(low[j]), float(high[j])) for j in range(q)]
        yield _repeatable("top and bottom coding", f"{tail} % coded at each end", np.column_stack(columns))


def _repeatable(family: str, name: str, shown: FloatArray) -> Masked:
    """A masking without chance: who has the originals does it again, and takes one of the rows equal to his own."""
    first, member = distinct_rows([np.ascontiguousarray(column) for column in shown.T])
    return Masked(family, name, shown, 1.0 / np.bincount(member, minlength=len(first))[member])


def _normals(seed: int, label: str, shape: tuple[int, int]) -> FloatArray:
    drawn: FloatArray = scipy.special.ndtri(keyed_uniforms(seed, label, shape).clip(1e-12, 1 - 1e-12))
    return drawn


def _deviation(values: FloatArray) -> FloatArray:
    """Deviation of each column; 1 of a column of one value, so that dividing by it changes nothing."""
    deviation = values.std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)
