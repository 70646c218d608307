"""Consistency of released with original records: (1,k)-, (k,1)- and (k,k)-anonymity, k-concealment, k-confusion.

A released record is *consistent* with an original one if in every attribute its node generalizes the original's value.
Where records are generalized one by one (local recoding), equal released records are few, and yet a record may hide
among many. With both tables of the same ``N`` rows (Gionis, Mazza and Tassa, k-anonymization revisited, ICDE 2008;
Tassa, Mazza and Gionis, k-concealment, Transactions on Data Privacy 5, 2012):

* (1,k)-anonymity: every original row is consistent with at least k released rows;
* (k,1)-anonymity: every released row is consistent with at least k original rows; (k,k)-anonymity: both;
* k-concealment: every original row has at least k *matches*, released rows that it is paired with in a perfect matching
  of consistent rows. An attacker who knows the whole original table can rule out consistent rows that are no match.
  k-anonymity implies k-concealment, which implies (1,k)-anonymity; (k,k)-anonymity does not imply it.
* k-confusion (Stokes and Torra, n-confusion: a generalization of k-anonymity, PAIS 2012; Reidentification and
  k-anonymity, arXiv:1112.1978): whatever method of reidentification is used, it gives every original record at least k
  released rows with a probability of at least some ``t > 0``. Methods are a parameter of that definition. Here one is a
  probability for every consistent pair (:func:`confusion`). A sound method gives no pair that may be true the
  probability 0; so over all sound methods of an attacker who knows the original record alone the confusion is the
  number of consistent rows, and of one who knows the whole original table it is the number of matches.

Equal rows are held once, with how often they occur. Everything here is exact.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import TOLERANCE
from privrisk_spark.kernels.classes.consistency import ConsistencyGraph, rows_per_original, summed

_MOST_ROWS = 2**31 - 1
"""Rows of a table whose maximum flow is sought: SciPy's capacities are int32."""


def released_as(graph: ConsistencyGraph, original: IntArray, released: IntArray, rows: LongArray) -> LongArray:
    """Lay out which records were released as which: a perfect matching, known to whoever holds both tables.

    Parameters
    ----------
    original, released : ndarray of int32, shape (n_pairs,)
        Numbers of the records of each pair; a pair may occur more than once.
    rows : ndarray of int64, shape (n_pairs,)
        Rows of the pair.

    Returns
    -------
    ndarray of int64, shape (n_edges,)
        Rows on each edge.

    Raises
    ------
    InputError
        If a released record is not consistent with its own original.
    """
    pair = original.astype(np.int64) * len(graph.released_rows) + released
    edge = np.searchsorted(graph.pair, pair)
    there = edge < len(graph.pair)
    if not there.all() or (graph.pair[edge] != pair).any():
        raise InputError("Consistency graph: a released record does not generalize the record it was made of.")
    return summed(edge, rows, len(graph.pair))


def matching_edges(graph: ConsistencyGraph, flow: LongArray | None = None) -> BoolArray:
    """Which edges are part of a perfect matching of the rows.

    Parameters
    ----------
    graph : ConsistencyGraph
        With as many original as released rows; where rows were taken out of the release, they must be given as a record
        of ⊥ in every attribute.
    flow : ndarray of int64, shape (n_edges,), optional
        A perfect matching, as rows on each edge (:func:`released_as`). If not given, one is sought, which takes much
        longer.

    Returns
    -------
    ndarray of bool, shape (n_edges,)

    Raises
    ------
    InputError
        If the tables differ in rows, ``flow`` is no perfect matching, there is none, or one is to be sought in a table
        of 2^31 rows or more.

    Notes
    -----
    A matching of rows is a flow from original to released records. From one perfect matching every other is reached by
    cycles that go forward over any edge and back over edges in use. So an edge is in some perfect matching exactly if
    it is in use or on such a cycle, that is, if its ends are in one strongly connected component of the graph of both
    kinds of arcs (edges in use have arcs both ways). Rows of one record are interchangeable: then each of its rows is
    matched with each row of the other.
    """
    # SciPy takes half a second to import, which only matchings are worth: policies name these criteria, too.
    from scipy import sparse
    from scipy.sparse import csgraph

    n, m = len(graph.original_rows), len(graph.released_rows)
    rows, others = (sum(part.tolist()) for part in (graph.original_rows, graph.released_rows))
    if rows != others:
        raise InputError(
            f"k-concealment: {rows} original and {others} released rows; give rows that were taken out of the release "
            "as a record that is ⊥ in every attribute."
        )
    if flow is None:
        flow = _perfect_matching(graph, rows)
    elif flow.shape != graph.released.shape or (flow < 0).any():
        raise InputError("k-concealment: the matching must give each edge a number of rows of at least 0.")
    left = summed(graph.original, flow, n)
    right = summed(graph.released, flow, m)
    if not (np.array_equal(left, graph.original_rows) and np.array_equal(right, graph.released_rows)):
        raise InputError("k-concealment: the matching given does not match every row once.")
    used = flow > 0
    u, v = graph.original, graph.released.astype(np.int64) + n
    tail, head = np.concatenate([u, v[used]]), np.concatenate([v, u[used]])
    arcs = sparse.csr_array((np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(n + m, n + m))
    _, component = csgraph.connected_components(arcs, directed=True, connection="strong")
    return np.asarray(component[u] == component[v])


def matches(graph: ConsistencyGraph, flow: LongArray | None = None) -> LongArray:
    """Matches of each original record, rows of the release; the least is the k of k-concealment.

    Parameters
    ----------
    graph, flow
        As in :func:`matching_edges`.

    Returns
    -------
    ndarray of int64, shape (n,)
        At least 1.

    Raises
    ------
    InputError
        As :func:`matching_edges`.
    """
    return rows_per_original(graph.where(matching_edges(graph, flow)))


def confusion(graph: ConsistencyGraph, probability: FloatArray, threshold: float = 0.0) -> LongArray:
    """Confusion of each original record under one method of reidentification.

    Parameters
    ----------
    graph : ConsistencyGraph
        Of the pairs the method may link; they need not be consistent ones.
    probability : ndarray of float64, shape (n_edges,)
        Probability that the method links the original record to *one* row of the released record.
    threshold : float
        ``t`` in [0, 1): only rows with a probability above 0 and of at least ``t`` confuse.

    Returns
    -------
    ndarray of int64, shape (n,)
        Released rows that confuse. The least over records, and over the methods considered, is the k of k-confusion,
        or of (k, t)-confusion with a threshold of at most 1/k.

    Raises
    ------
    InputError
        If a probability or the threshold is out of range, or the probabilities of a record are more than 1 in all.
    """
    if not 0 <= threshold < 1:
        raise InputError(f"k-confusion: the threshold must be at least 0 and below 1, not {threshold}.")
    if probability.shape != graph.released.shape or not ((probability >= 0) & (probability <= 1)).all():
        raise InputError("k-confusion: every pair needs a probability in [0, 1].")
    rows = graph.released_rows[graph.released]
    n = len(graph.original_rows)
    if (np.bincount(graph.original, weights=probability * rows, minlength=n) > 1 + 1e-9).any():
        raise InputError("k-confusion: the probabilities of a record must sum to at most 1.")
    confuses = (probability > 0) & (probability >= threshold - TOLERANCE)
    return summed(graph.original[confuses], rows[confuses], n)


def _perfect_matching(graph: ConsistencyGraph, rows: int) -> LongArray:
    """Find a perfect matching as a maximum flow."""
    from scipy import sparse
    from scipy.sparse import csgraph

    if rows > _MOST_ROWS:
        raise InputError(
            f"k-concealment: a matching of {rows} rows cannot be sought; say which row was released as which."
        )
    n, m = len(graph.original_rows), len(graph.released_rows)
    if not rows:
        return np.zeros(0, dtype=np.int64)
    source, sink = n + m, n + m + 1
    u, v = graph.original, graph.released.astype(np.int64)
    tail = np.concatenate([np.full(n, source), u, n + np.arange(m)])
    head = np.concatenate([np.arange(n), n + v, np.full(m, sink)])
    capacity = np.concatenate(
        [graph.original_rows, np.minimum(graph.original_rows[u], graph.released_rows[v]), graph.released_rows]
    )
    network = sparse.csr_array((capacity.astype(np.int32), (tail, head)), shape=(n + m + 2, n + m + 2))
    network.indices, network.indptr = network.indices.astype(np.int32), network.indptr.astype(np.int32)
    result = csgraph.maximum_flow(network, source, sink)
    if int(result.flow_value) != rows:
        raise InputError(
            "k-concealment: no perfect matching: the released rows cannot all be generalizations of the original ones."
        )
    arcs = result.flow.tocoo()
    forward = (arcs.row < n) & (arcs.col >= n) & (arcs.col < n + m) & (arcs.data > 0)
    return released_as(
        graph, arcs.row[forward], (arcs.col[forward] - n).astype(np.int32), arcs.data[forward].astype(np.int64)
    )
