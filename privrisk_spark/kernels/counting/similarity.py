"""Consistency by resemblance of labels: Jaro similarity (F12 §3.1; LSFB06 §5).

With ``m`` characters of two labels matched (equal and at most ``max(len)//2 - 1`` positions apart, taken greedily from
left to right of the first label) and ``t`` half the number of matched characters that are out of order, rounded down,

    jaro = (m / len_1 + m / len_2 + (m - t) / m) / 3,

0 when nothing matches and 1 for two empty labels. Characters are Unicode code points; nothing is folded or normalized.

A dictionary value is consistent with a disclosed node if the labels reach a threshold, or if one of them is ⊥. It is a
relation between texts, not between subtrees: a value that resembles a node need not resemble its parent, so ``ρ`` may
fall when a value is generalized and no search that prunes is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.lattice.lattice import TOLERANCE

THRESHOLD = 0.8
"""Similarity from which labels are consistent, by default."""

_PAIRS_AT_ONCE = 2**22
"""Scores held at once. Does not change a result."""


def similar(
    labels_x: Sequence[str | None], labels_t: Sequence[str | None], threshold: float = THRESHOLD
) -> scipy.sparse.csr_array:
    """Which labels resemble which: ``jaro(x, t) >= threshold``.

    Parameters
    ----------
    labels_x : sequence of str or None, length n
        Labels of disclosed nodes. None, the label of a null, resembles None alone.
    labels_t : sequence of str or None, length m
        Labels of dictionary values.
    threshold : float
        In (0, 1], reached with a relative slack of 1e-12, so that rounding does not decide.

    Returns
    -------
    csr_array of int64, shape (n, m)
        1 where similar. Indices are sorted and no zero is stored.

    Raises
    ------
    InputError
        If the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"similarity: the threshold must be above 0 and at most 1. Got {threshold!r}.")
    distinct_x, rows = _distinct(labels_x)
    distinct_t, columns = _distinct(labels_t)
    found = _reaching(distinct_x, distinct_t, threshold * (1 - TOLERANCE))
    # Nulls go beyond the last distinct label, into a row and a column of their own.
    nulls = scipy.sparse.csr_array(np.ones((1, 1), dtype=np.int64))
    every = scipy.sparse.csr_array(scipy.sparse.block_diag([found, nulls], format="csr"))
    result = scipy.sparse.csr_array(scipy.sparse.csr_array(every[rows])[:, columns])
    result.sort_indices()
    return result


def node_similarity(labels: Sequence[str | None], threshold: float = THRESHOLD) -> scipy.sparse.csr_array:
    """``C_i`` of an attribute declared similar.

    Parameters
    ----------
    labels : sequence of str or None, length n_nodes
        Labels of a hierarchy's nodes; the last is ⊥, whatever its text.
    threshold : float
        In (0, 1].

    Returns
    -------
    csr_array of int64, shape (n_nodes, n_nodes + 1)
        Rows are disclosed nodes, columns dictionary codes. ⊥ is consistent with everything on either side, except that
        the last code, a value outside the hierarchy, is consistent with ⊥ alone: its label is not known.

    Raises
    ------
    InputError
        If the threshold is out of range.
    """
    below = similar(labels[:-1], labels[:-1], threshold)
    n = len(labels) - 1
    to_bottom = scipy.sparse.csr_array(np.ones((n, 1), dtype=np.int64))
    unknown = scipy.sparse.csr_array((n, 1), dtype=np.int64)
    bottom = scipy.sparse.csr_array(np.ones((1, n + 2), dtype=np.int64))
    result = scipy.sparse.csr_array(
        scipy.sparse.vstack([scipy.sparse.hstack([below, to_bottom, unknown]), bottom], format="csr")
    )
    result.sort_indices()
    return result


def _distinct(labels: Sequence[str | None]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Distinct labels in the order of their first appearance, and the number of each label; None is one beyond."""
    number: dict[str, int] = {}
    for label in labels:
        if label is not None:
            number.setdefault(label, len(number))
    numbers = [len(number) if label is None else number[label] for label in labels]
    return list(number), np.array(numbers, dtype=np.int64)


def _reaching(labels_x: list[str], labels_t: list[str], cutoff: float) -> scipy.sparse.csr_array:
    """Pairs of labels of at least that similarity, scored by blocks of rows."""
    from rapidfuzz import process
    from rapidfuzz.distance import Jaro

    shape = (len(labels_x), len(labels_t))
    rows: list[npt.NDArray[np.int64]] = []
    columns: list[npt.NDArray[np.int64]] = []
    step = max(1, _PAIRS_AT_ONCE // max(len(labels_t), 1))
    for begin in range(0, len(labels_x) if labels_t else 0, step):
        # 64 bits: the default of 32 could round a score up to the threshold. No score_cutoff: rapidfuzz 3.14 drops
        # scores equal to it but for rounding, and is no faster with one a little lower.
        scores = process.cdist(
            labels_x[begin : begin + step], labels_t, scorer=Jaro.similarity, dtype=np.float64, workers=1
        )
        row, column = np.nonzero(scores >= cutoff)
        rows.append(row + begin)
        columns.append(column)
    row = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    column = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
    return scipy.sparse.csr_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=shape)
