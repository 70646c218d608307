"""``ρ`` of some records at every node of one lattice at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.lattice.lattice import Lattice


def consistent_everywhere(
    counts: Counts, code_depth: Sequence[IntArray], levels: Sequence[LongArray], codes: IntArray
) -> LongArray:
    """``ρ`` of each record at every combination of levels, which are cut at the depth of a record's values.

    Parameters
    ----------
    counts : Counts
        Dense or sorted.
    code_depth : sequence of k ndarrays of int32, shape (n_leaves_i + 1,)
    levels : sequence of k ndarrays of int64
        Of each hierarchy, ascending, its height the last: all of them, or some.
    codes : ndarray of int32, shape (n, k)
        Leaf codes; the last one is ⊥.

    Returns
    -------
    ndarray of int64, shape (n, n_nodes)
        Nodes in the order of the lattice that the levels span. Equal to
        :func:`privrisk_spark.kernels.counting.consistent.consistent_at` at each of them.

    Notes
    -----
    A dense count is addressed directly. A sorted one is gone through once per record: consistency with a vector begins
    at one level of each attribute and holds above it, so a vector is counted at one node and summed up from there.
    The work is ``n`` times the vectors plus the nodes, each times k.
    """
    if isinstance(counts, DenseCounts):
        return _addressed(counts, levels, codes)
    assert isinstance(counts, SortedCounts), "counts that stay distributed hold no vectors"
    return _summed_up(counts, code_depth, levels, codes)


def _addressed(counts: DenseCounts, levels: Sequence[LongArray], codes: IntArray) -> LongArray:
    address = np.zeros((len(codes), 1), dtype=np.int64)
    for i, offsets in enumerate(counts.offsets):
        address = (address[:, :, None] + offsets[codes[:, i]][:, None, levels[i]]).reshape(len(codes), -1)
    result: LongArray = np.asarray(counts.cube).take(address)
    return result


def _summed_up(
    counts: SortedCounts, code_depth: Sequence[IntArray], kept: Sequence[LongArray], codes: IntArray
) -> LongArray:
    lattice = Lattice(tuple(len(of_attribute) - 1 for of_attribute in kept))
    result = np.zeros((len(codes), *lattice.shape), dtype=np.int64)
    for group in counts.groups:
        begin = [
            _first_levels(axis, counts.chains[i], code_depth[i], group.vectors[:, i], group.depths[i], codes[:, i])
            for i, axis in enumerate(counts.axes)
        ]
        for r in range(len(codes)):
            at = np.zeros(len(group.counts), dtype=np.int64)
            for stride, some, (levels, of_record, of_vector) in zip(lattice.strides.tolist(), kept, begin, strict=True):
                # From the first level on that is kept.
                at += (np.searchsorted(some, levels[of_record[r]]) * stride).take(of_vector)
            # Sums of whole numbers below 2^53 are exact in any order.
            found = np.bincount(at, weights=group.counts, minlength=lattice.n_nodes)
            result[r] += found.astype(np.int64).reshape(lattice.shape)
    for i in range(len(lattice.shape)):
        np.cumsum(result, axis=1 + i, out=result)
    return result.reshape(len(codes), -1)


def _first_levels(
    axis: Axis, chain: IntArray, code_depth: IntArray, vectors: IntArray, own: int, codes: IntArray
) -> tuple[LongArray, LongArray, LongArray]:
    """Least level at which each distinct code is consistent with each distinct dictionary value of one depth.

    Returns
    -------
    levels : ndarray of int64, shape (n_codes, n_values)
    of_record, of_vector : ndarray of int64, shape (n,) and (m,)
        Place of each record's code and of each vector's value.
    """
    if not axis.known:
        none = np.zeros(len(codes), dtype=np.int64), np.zeros(len(vectors), dtype=np.int64)
        return np.zeros((1, 1), dtype=np.int64), *none
    leaf, of_record = np.unique(codes, return_inverse=True)
    value, of_vector = np.unique(vectors, return_inverse=True)
    depth = code_depth[leaf].astype(np.int64)[:, None]
    mine, theirs = chain[axis.ancestor[leaf, 0]], chain[value]
    shared = np.zeros((len(leaf), len(value)), dtype=np.int64)
    for d in range(1, own + 1):
        shared += mine[:, d, None] == theirs[None, :, d]
    # A value that is not as deep as the disclosed node is consistent with all below it, if anything is.
    open_below = axis.consistency == "compatible" or (axis.wildcard and own == 0)
    deepest = np.where(shared == own, depth, shared) if open_below else shared
    return np.maximum(depth - deepest, 0), of_record, of_vector
