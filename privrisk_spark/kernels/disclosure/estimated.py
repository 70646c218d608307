"""Estimated dictionaries: what the risk against an estimate says about the dictionary the attacker has.

The owner decides against an estimate ``θ̂`` and the attacker holds ``θ``. Write ``a ⪯ b`` for "b is a, or an ancestor of
a", and ``θ̂ ≪ θ`` when every row of ``θ̂`` has a row of ``θ`` with the same id whose values are all equal or more general
(F12 Definition 2.5.1).

Bounding theorem (LSFB06 Theorem 1; F12 Theorem 2.5.1): if ``θ̂ ≪ θ`` and ``θ̂`` contains the records, then
``R(δ, θ) <= R(δ, θ̂)`` for every rule ``δ``.

Proof. Let ``t̂ ⪯ t`` be a value and its counterpart, and ``t̂`` consistent with the disclosed ``y`` in the sense of
``compatible``. If ``t̂ ⪯ y`` then ``t`` and ``y`` lie on one path to the root, so one of them generalizes the other; if
``y ⪯ t̂`` then ``y ⪯ t``. Either way ``t`` is consistent with ``y``. Ids are unique, so different rows of ``θ̂`` have
different counterparts and ``|ρ(y, θ̂)| <= |ρ(y, θ)|``; where rows stand for several people, if no counterpart stands
for fewer. A record in ``θ̂`` has ``|ρ(y, θ̂)| > 0``, so ``1/|ρ|`` and ``Φ/|ρ|`` can only fall.

What the proof needs is not decoration:

* Under ``subsumes`` it fails where ``t`` is strictly above ``y``: the row drops out of ``ρ(y, θ)``.
* A record that ``θ̂`` lacks is counted as a row of its own there; ``θ`` may hold one coarse row for it instead.
* Risk model III is no longer bounded: ``N`` grows with ``θ``, and ``ln(N/ρ)`` with it.

Status: *proved* for the models I and II under ``compatible``; under any consistency when no counterpart is coarser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import identification_risk
from privrisk_spark.kernels.numeric.distinct import distinct_rows


def more_general(at_depth: IntArray, estimate: IntArray, true: IntArray) -> BoolArray:
    """Whether ``t̂ ⪯ t``: the true value is the estimated one or an ancestor of it.

    Parameters
    ----------
    at_depth : ndarray of int32, shape (n_nodes, height + 1)
        Ancestor-or-self of each node at each depth from the root, -1 below it; the root is the last node.
    estimate, true : ndarray of int32, shape (n,)
        Dictionary codes: nodes, or ``n_nodes`` for a value outside the hierarchy.

    Returns
    -------
    ndarray of bool, shape (n,)
        A value outside the hierarchy is below ⊥ alone. Two of them may be different texts, so they do not count as
        equal. A code that is no dictionary code is treated like a value outside.
    """
    n_nodes = len(at_depth)
    depth = (at_depth >= 0).sum(axis=1) - 1
    inside = (estimate >= 0) & (estimate < n_nodes) & (true >= 0) & (true < n_nodes)
    above = at_depth[np.where(inside, estimate, 0), depth[np.where(inside, true, 0)]]
    result: BoolArray = (inside & (above == true)) | (true == n_nodes - 1)
    return result


def order_facts(
    at_depth: Sequence[IntArray],
    n_estimate: LongArray,
    n_true: LongArray,
    missing: BoolArray,
    estimate: IntArray,
    true: IntArray,
    *,
    fewer: BoolArray | None = None,
) -> dict[str, int]:
    """Count what speaks for and against ``θ̂ ≪ θ``, id by id; facts of disjoint sets of ids add up.

    Parameters
    ----------
    at_depth : sequence of k ndarrays of int32
        See :func:`more_general`.
    n_estimate, n_true : ndarray of int64, shape (n,)
        Rows of each id in the two dictionaries.
    missing : ndarray of bool, shape (n,)
        The id is missing; such rows match nothing.
    estimate, true : ndarray of int32, shape (n, k)
        Dictionary codes, meaningful where an id has one row in both; an attribute that a dictionary lacks is the root.
    fewer : ndarray of bool, shape (n,), optional
        The row of ``θ`` stands for fewer people than that of ``θ̂``; meaningful where an id has one row in both.

    Returns
    -------
    dict of str to int
        ``estimate_rows``, ``true_rows``; ``estimate_null_ids``, ``true_null_ids``; ``estimate_duplicate_ids`` and
        ``true_duplicate_ids``, rows beyond the first of an id; ``unmatched``, rows of ``θ̂`` whose id ``θ`` lacks;
        ``ambiguous``, rows of ``θ̂`` whose id occurs in ``θ`` but not once in both, which are not compared;
        ``not_more_general``, rows of ``θ̂`` whose counterpart is not more general; ``coarser``, those that have a
        counterpart with a strictly more general value; ``a<i>``, rows not more general on
        attribute i; ``fewer_people``, if asked for, rows whose counterpart stands for fewer.
    """
    matched = ~missing & (n_estimate > 0) & (n_true > 0)
    once = matched & (n_estimate == 1) & (n_true == 1)
    facts = {
        "estimate_rows": n_estimate.sum(),
        "true_rows": n_true.sum(),
        "estimate_null_ids": n_estimate[missing].sum(),
        "true_null_ids": n_true[missing].sum(),
        "estimate_duplicate_ids": np.maximum(n_estimate[~missing] - 1, 0).sum(),
        "true_duplicate_ids": np.maximum(n_true[~missing] - 1, 0).sum(),
        "unmatched": n_estimate[~missing & (n_true == 0)].sum(),
        "ambiguous": n_estimate[matched & ~once].sum(),
    }
    general = np.ones(len(once), dtype=np.bool_)
    coarser = np.zeros(len(once), dtype=np.bool_)
    of_attribute = {}
    for i, axis in enumerate(at_depth):
        here = more_general(axis, estimate[:, i], true[:, i])
        of_attribute[f"a{i}"] = (once & ~here).sum()
        general &= here
        coarser |= here & (estimate[:, i] != true[:, i])
    facts |= {"not_more_general": (once & ~general).sum(), "coarser": (once & coarser).sum(), **of_attribute}
    if fewer is not None:
        facts["fewer_people"] = (once & fewer).sum()
    return {name: int(value) for name, value in facts.items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Risk of records at given level vectors.

    Attributes
    ----------
    risk : ndarray of float64, shape (n,)
        In the unit of the risk model.
    consistent : ndarray of int64, shape (n,)
        ``ρ``; a record the dictionary lacks counts itself.
    absent : ndarray of bool, shape (n,)
        The dictionary has no row consistent with the original record.
    """

    risk: FloatArray
    consistent: LongArray
    absent: BoolArray


def risk_of(
    disclosure: Disclosure,
    counts: Counts,
    codes: IntArray,
    levels: npt.NDArray[np.integer],
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> Evaluation:
    """Risk of records whose disclosure is given: ``ℓ(δ(x), θ)`` for any dictionary, not the one decided against.

    Parameters
    ----------
    counts : Counts
        Of ``θ``. As in :func:`privrisk_spark.kernels.search.table_search.decide`, a record with no consistent row at
        level 0 is added: its ``ρ`` is one more at every level.
    codes : ndarray of int32, shape (n, k)
        Leaf codes; the code after the last leaf is ⊥.
    levels : ndarray of integer, shape (n, k)
        Level of each value; cut at the value's depth.
    personal : ndarray of float64, shape (n, k), optional
    record_weight : ndarray of float64, shape (n,), optional

    Returns
    -------
    Evaluation
        Of a record alone: it does not depend on the others.
    """
    k = codes.shape[1]
    depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(disclosure.code_depth)])
    cut = np.minimum(levels, depths).astype(np.int32)
    absent = _consistent(counts, codes, np.zeros_like(cut), depths) == 0
    consistent = _consistent(counts, codes, cut, depths) + absent
    nodes = [disclosure.ancestor[i][codes[:, i], cut[:, i]] for i in range(k)]
    phi = disclosure.sensitivity.phi(nodes, personal=personal, record_weight=record_weight)
    risk = np.empty(len(codes))
    for added in (False, True):
        rows = absent == added
        risk[rows] = identification_risk(
            disclosure.model, phi[rows], consistent[rows], dictionary_rows=counts.dictionary_rows + added
        )
    return Evaluation(risk, consistent, absent)


def _consistent(counts: Counts, codes: IntArray, levels: IntArray, depths: IntArray) -> LongArray:
    """``ρ`` at a level vector per record, one look-up per distinct vector of levels and depths."""
    result = np.zeros(len(codes), dtype=np.int64)
    if not len(codes):
        return result
    first, member = distinct_rows([*levels.T, *depths.T])
    order = np.argsort(member, kind="stable")
    bounds = np.flatnonzero(np.diff(member[order])) + 1
    for row, rows in zip(first, np.split(order, bounds), strict=True):
        columns = [np.ascontiguousarray(codes[rows, i]) for i in range(codes.shape[1])]
        result[rows] = counts.consistent(columns, [int(x) for x in levels[row]], [int(d) for d in depths[row]])
    return result


def looseness(estimated: FloatArray, true: FloatArray) -> FloatArray:
    """Ratio ``ℓ(y, θ̂) / ℓ(y, θ)`` of each record: 1 is tight, less than 1 breaks the bound.

    Parameters
    ----------
    estimated, true : ndarray of float64, shape (n,)
        Non-negative; may be infinite.

    Returns
    -------
    ndarray of float64, shape (n,)
        Equal risks, both zero or both infinite included, give 1; a risk that vanishes gives infinity.
    """
    same = estimated == true
    plain = ~same & (true > 0) & np.isfinite(true)
    with np.errstate(over="ignore"):
        ratio: FloatArray = np.divide(estimated, true, out=np.full(len(same), np.inf), where=plain)
    ratio[same] = 1.0
    ratio[~same & np.isposinf(true)] = 0.0
    return ratio


def nested_counts(
    axes: Sequence[Axis], vectors: IntArray, of_bucket: LongArray, *, plan: Literal["dense", "sorted"]
) -> Iterator[Counts]:
    """Counts of growing samples of one dictionary, made one at a time.

    Parameters
    ----------
    axes : sequence of k Axis
    vectors : ndarray of int32, shape (m, k)
        Distinct dictionary codes.
    of_bucket : ndarray of int64, shape (m, S)
        Rows of each vector by share bucket; sample ``s`` holds the buckets up to ``s``.
    plan : {"dense", "sorted"}

    Yields
    ------
    Counts
        ``S`` of them.
    """
    sizes = np.cumsum(of_bucket, axis=1)
    for s in range(of_bucket.shape[1]):
        there = sizes[:, s] > 0
        if plan == "dense":
            yield DenseCounts.roll_up(axes, vectors[there], sizes[there, s])
        else:
            yield SortedCounts.group(axes, vectors[there], sizes[there, s])
