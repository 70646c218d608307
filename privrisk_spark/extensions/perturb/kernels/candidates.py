"""What an intruder who knows how a file was masked is left with: the candidates in each attribute, intersected.

After rank swapping, a value lies within ``w`` ranks of the original one, in every attribute (Nin, Herranz and Torra
2008): the intruder ranks the published values, which are the original ones in another order, and takes the records
whose values are near enough.

After microaggregation of single attributes, or along an axis on which the intruder can project, groups are consecutive
on the axis. A record's centroid is then no further below its own value than the next centroid below, and no further
above than the next above: if ``c(h) < s`` and ``c(g) < c(h)``, group g comes before h, so no member of g exceeds one of
h, and ``s`` in g would give ``c(h) >= s``. Groups of MDAV are not consecutive on an axis: there the centroids about a
record's score are a guess.

What is masked without chance, value by value, leaves the records with the very value it gives.

Searched are windows, not all pairs: in each attribute the bounds are a run of the published values in their order. Rows
are put in the order of the attributes that bound every record to one value, which make cells, and then of one of the
others: what fits in all of these is one run, found by bisection. Where that is all, its rows are counted by a
difference of sums; else the rows of the shortest run are held against the bounds of the others. No candidate is
outside of any run, so that this finds what all pairs would (*proved*).

Status: *proved*: the masked record of a known one is always a candidate if the intruder knows its values without error;
*heuristic* for groups that are not consecutive on the axis.

References
----------
J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to decrease disclosure risk", Data & Knowledge Engineering 64
(2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.microaggregation import first_axis
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray

__all__ = ["Bounds", "Candidates", "axis_bounds", "axis_scores", "candidates", "comparisons",
           "rank_bounds", "rank_candidates", "value_bounds"]  # fmt: skip

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Bounds:
    """What the masked value of each known record can be in one attribute.

    Attributes
    ----------
    low, high : ndarray of float64, shape (m,)
        Ends; no value is within where ``low`` is above ``high``.
    told : ndarray of bool, shape (m,)
        Whether there are any ends: not where the intruder does not know the value.
    """

    low: FloatArray
    high: FloatArray
    told: BoolArray

    def at(self, places: LongArray) -> Bounds:
        """Bounds of some of the known records, in any order and as often as they are named."""
        return Bounds(self.low[places], self.high[places], self.told[places])


@dataclass(frozen=True, eq=False)
class Candidates:
    """Masked records that known ones may be.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
        Rows that are candidates of each known record; an intruder who draws one of them is right with probability
        ``1 / rows`` if it holds the true one.
    only : ndarray of int64, shape (m,)
        The candidate where there is just one, else -1.
    holds : ndarray of bool, shape (m,)
        Whether its own masked record is among the candidates; False where that is not given.
    """

    rows: LongArray
    only: LongArray
    holds: BoolArray


def rank_candidates(
    known: FloatArray, masked: FloatArray, widths: LongArray, own: LongArray | None = None
) -> Candidates:
    """Candidates after rank swapping (Nin, Herranz and Torra 2008).

    Parameters
    ----------
    known : ndarray of float64, shape (m, a)
        Original values the intruder knows, NaN where he does not.
    masked : ndarray of float64, shape (n, a)
        Published values; NaN where missing, which is near no known value.
    widths : ndarray of int64, shape (a,)
        Ranks a value may move, :func:`~.rank_swapping.swap_width` of each attribute.
    own : ndarray of int64, shape (m,), optional
        Masked record of each known one, -1 if it has none.

    Returns
    -------
    Candidates
        Equal values have all the ranks they take up. A value that is not in the file stands between two ranks.

    Raises
    ------
    InputError
        If the shapes do not fit or a width is negative.
    """
    _refuse_shapes(known, masked, own)
    if widths.shape != (known.shape[1],) or (widths < 0).any():
        raise InputError("Candidates: there must be one width of at least 0 per attribute.")
    bounds = [rank_bounds(known[:, j], masked[:, j], width) for j, width in enumerate(widths.tolist())]
    return candidates(bounds, masked, own=own)


def rank_bounds(known: FloatArray, masked: FloatArray, width: int) -> Bounds:
    """Values within some ranks of known ones.

    Parameters
    ----------
    known : ndarray of float64, shape (m,)
        NaN where not known.
    masked : ndarray of float64, shape (n,)
        Published values of the attribute, each as often as it occurs; NaN where missing.
    width : int
        At least 0.
    """
    ordered, told = np.sort(masked[~np.isnan(masked)]), ~np.isnan(known)
    low, high = np.full(len(known), np.inf), np.full(len(known), -np.inf)
    if len(ordered):
        first = np.searchsorted(ordered, known[told], side="left") - width
        last = np.searchsorted(ordered, known[told], side="right") - 1 + width
        # Beyond either end of the file there is no rank.
        low[told] = np.where(first < len(ordered), ordered[np.clip(first, 0, len(ordered) - 1)], np.inf)
        high[told] = np.where(last >= 0, ordered[np.clip(last, 0, len(ordered) - 1)], -np.inf)
    return Bounds(low, high, told)


def axis_bounds(known: FloatArray, masked: FloatArray) -> Bounds:
    """Values from the next centroid below known ones to the next above.

    Parameters
    ----------
    known : ndarray of float64, shape (m,)
        NaN where not known.
    masked : ndarray of float64, shape (n,)
        Centroids, or their scores; NaN where missing.
    """
    centres, told = np.unique(masked[~np.isnan(masked)]), ~np.isnan(known)
    low, high = np.full(len(known), np.inf), np.full(len(known), -np.inf)
    if len(centres):
        slack = _TOLERANCE * (1.0 + float(np.abs(centres).max()))
        below = np.searchsorted(centres, known[told] - slack, side="left") - 1
        above = np.searchsorted(centres, known[told] + slack, side="right")
        low[told] = np.where(below >= 0, centres[np.maximum(below, 0)] - slack, -np.inf)
        high[told] = np.where(above < len(centres), centres[np.minimum(above, len(centres) - 1)] + slack, np.inf)
    return Bounds(low, high, told)


def axis_scores(known: FloatArray, masked: FloatArray, rows: LongArray) -> tuple[FloatArray, FloatArray]:
    """Scores on the first principal axis of known records, in their standard deviations.

    Parameters
    ----------
    known : ndarray of float64, shape (m, a)
        Original values; NaN where not known.
    masked : ndarray of float64, shape (n, a)
        Published ones; NaN where missing.
    rows : ndarray of int64, shape (m,)
        Records with each known one, at least 1.

    Returns
    -------
    known : ndarray of float64, shape (m,)
    masked : ndarray of float64, shape (n,)
        NaN where a value is missing.
    """
    whole = ~np.isnan(known).any(axis=1)
    if not whole.any():
        return np.full(len(known), np.nan), np.full(len(masked), np.nan)
    covariance = np.atleast_2d(np.cov(known[whole].T, fweights=rows[whole], bias=True))
    deviation = np.sqrt(np.diag(covariance))
    deviation = np.where(deviation > 0, deviation, 1.0)
    axis = first_axis(covariance / np.outer(deviation, deviation)) / deviation
    return np.asarray(known @ axis), np.asarray(masked @ axis)


def value_bounds(expected: FloatArray) -> Bounds:
    """Values that known ones must have become, within 1e-9 of them.

    Parameters
    ----------
    expected : ndarray of float64, shape (m,)
        NaN where not known.
    """
    slack = _TOLERANCE * (1.0 + np.abs(expected))
    return Bounds(expected - slack, expected + slack, ~np.isnan(expected))


def candidates(
    bounds: Sequence[Bounds], masked: FloatArray, *, rows: LongArray | None = None, own: LongArray | None = None
) -> Candidates:
    """Masked records that are within the bounds of every attribute.

    Parameters
    ----------
    bounds : sequence of a Bounds
        Of m known records each.
    masked : ndarray of float64, shape (n, a)
        NaN where missing, which is within no bounds.
    rows : ndarray of int64, shape (n,), optional
        Rows with each masked record; 1 if not given.
    own : ndarray of int64, shape (m,), optional
        Masked record of each known one, -1 if it has none.
    """
    of = np.ones(len(masked), dtype=np.int64) if rows is None else rows
    m = len(bounds[0].low)
    found, only = np.zeros(m, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    low, high, told = _columns(bounds)
    for runs in _runs(bounds, masked):
        shortest, each = runs.sizes.argmin(axis=1), np.arange(len(runs.records))
        begin, end = runs.begin[each, shortest], runs.end[each, shortest]
        if len(runs.searched) < 2:
            (order,) = runs.orders
            before = np.append(0, np.cumsum(of[order]))
            found[runs.records] = before[end] - before[begin]
            single = found[runs.records] == 1
            only[runs.records[single]] = order[begin[single]]
            continue
        for i, j, first, last in zip(runs.records, shortest, begin, end, strict=True):
            at = runs.orders[j][first:last]
            for other in runs.searched:
                if other != runs.searched[j]:
                    value = masked[at, other]
                    at = at[(value >= low[i, other]) & (value <= high[i, other])]
            found[i] = of[at].sum()
            if found[i] == 1:
                only[i] = at[0]
    holds: BoolArray = np.zeros(m, dtype=np.bool_)
    if own is not None:
        there = own >= 0
        value = masked[own[there]]
        between = (value >= low[there]) & (value <= high[there])
        holds[there] = (between | ~told[there]).all(axis=1)
    return Candidates(found, only, holds)


def comparisons(bounds: Sequence[Bounds], masked: FloatArray) -> int:
    """Values that :func:`candidates` holds against bounds, at most.

    Parameters
    ----------
    bounds : sequence of a Bounds
        Of m known records each.
    masked : ndarray of float64, shape (n, a)
    """
    return sum(int(runs.sizes.min(axis=1).sum()) * max(0, len(runs.searched) - 1) for runs in _runs(bounds, masked))


@dataclass(frozen=True, eq=False)
class _Runs:
    """Known records that are told the same attributes, and the runs of masked records that may be theirs.

    Attributes
    ----------
    records : ndarray of int64, shape (r,)
    searched : tuple of int
        Attributes that bound some of them to more than one value.
    orders : tuple of ndarray of int64
        Masked records in the order of cells, and of each searched attribute in them; of cells alone where there is
        none.
    begin, end : ndarray of int64, shape (r, number of orders)
    """

    records: LongArray
    searched: tuple[int, ...]
    orders: tuple[LongArray, ...]
    begin: LongArray
    end: LongArray

    @property
    def sizes(self) -> LongArray:
        """Masked records of each run."""
        return self.end - self.begin


def _columns(bounds: Sequence[Bounds]) -> tuple[FloatArray, FloatArray, BoolArray]:
    low, high, told = (np.column_stack([getattr(one, of) for one in bounds]) for of in ("low", "high", "told"))
    return low, high, told


def _runs(bounds: Sequence[Bounds], masked: FloatArray) -> Iterator[_Runs]:
    """Runs of the known records, together for those that are told the same attributes."""
    low, high, told = _columns(bounds)
    if not len(masked):
        none_there = np.zeros((len(low), 1), dtype=np.int64)
        yield _Runs(np.arange(len(low)), (), (none_there[:0, 0],), none_there, none_there)
        return
    distinct = [np.unique(column[~np.isnan(column)]) for column in masked.T]
    codes = [
        np.where(np.isnan(column), -1, np.searchsorted(values, column)).astype(np.int64)
        for values, column in zip(distinct, masked.T, strict=True)
    ]
    for pattern in np.unique(told, axis=0):
        records = np.flatnonzero((told == pattern).all(axis=1))
        first = {
            j: np.searchsorted(distinct[j], low[records, j], side="left") for j in np.flatnonzero(pattern).tolist()
        }
        last = {j: np.searchsorted(distinct[j], high[records, j], side="right") - 1 for j in first}
        one_value = [j for j in first if (first[j] >= last[j]).all()]
        searched = tuple(j for j in first if j not in one_value)
        none = np.zeros(len(records), dtype=np.bool_)
        for j in first:
            none |= first[j] > last[j]
        cell, of_record = np.zeros(len(masked), dtype=np.int64), np.zeros(len(records), dtype=np.int64)
        inside = np.ones(len(masked), dtype=np.bool_)
        for j in one_value:
            # Cells are numbered anew, so that no number exceeds their count times the values of one attribute.
            width = len(distinct[j])
            inside &= codes[j] >= 0
            cells, cell = np.unique(cell * width + np.maximum(codes[j], 0), return_inverse=True)
            wanted = of_record * width + np.minimum(first[j], width - 1)
            of_record = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
            none |= cells[of_record] != wanted
        alike, any_value = np.zeros(len(masked), dtype=np.int64), np.zeros(len(records), dtype=np.int64)
        inner = [(len(distinct[j]), codes[j], first[j], last[j]) for j in searched] or [
            (1, alike, any_value, any_value)
        ]
        orders, begin, end = [], [], []
        for width, code, least, most in inner:
            there = np.flatnonzero(inside & (code >= 0))
            place = cell[there] * width + code[there]
            by_place = np.argsort(place, kind="stable")
            place = place[by_place]
            orders.append(there[by_place])
            begin.append(np.searchsorted(place, of_record * width + least, side="left"))
            until = np.searchsorted(place, of_record * width + most, side="right")
            end.append(np.where(none, begin[-1], np.maximum(until, begin[-1])))
        yield _Runs(records, searched, tuple(orders), np.column_stack(begin), np.column_stack(end))


def _refuse_shapes(known: FloatArray, masked: FloatArray, own: LongArray | None) -> None:
    if known.ndim != 2 or masked.ndim != 2 or known.shape[1] != masked.shape[1] or not known.shape[1]:
        raise InputError(f"Candidates: both files must have the same attributes. Got {known.shape} and {masked.shape}.")
    if own is not None and (own.shape != known.shape[:1] or (len(own) and int(own.max()) >= len(masked))):
        raise InputError("Candidates: there must be one masked record, or -1, per known one.")
