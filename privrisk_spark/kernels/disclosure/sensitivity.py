"""Sensitivity Φ of a disclosed record: what its identification would cost (LSFB06 §2; F12 §2.2, §3.2).

Over the disclosed attributes ``j`` (those whose node is not ⊥) of record ``r``:

==================  ===================================  ===============================
form                Φ                                    source
==================  ===================================  ===============================
``constant``        c, also when all is suppressed       the k-anonymity view, Thm 2.6.1
``linear``          Σ w_j(node), or Σ w_{j,r} · h_j      LSFB06 Φ1 and Φ3, F12 eq 2.1, 2.2
``record``          w_r · number of disclosed            LSFB06 Φ2
``multiplicative``  exp(Σ w_{j,r} · h_j)                 LSFB06 Φ5, F12 eq 2.4
``interaction``     Σ w_{j,r} · h_j + w_r · Σ_S w_S      LSFB06 Φ4, F12 eq 2.3
==================  ===================================  ===============================

``S`` runs over given sets of two or more attributes that are disclosed whole; see :func:`interaction`. F12 prints
``y_j = ⊥`` in eqs 2.2-2.4 where ``y_j ≠ ⊥`` is meant. ``h_j(node)`` is the weight of the node relative to an attribute
weight of 1, so personal weights scale the whole hierarchy of an attribute.

Every form is non-increasing in every level: node weights do not increase upwards, and a level that rises can only
suppress an attribute, which takes a non-negative term away, that of a set too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray

SensitivityForm = Literal["constant", "linear", "record", "multiplicative", "interaction"]


def harmonic_weights(
    parent: IntArray,
    depth: IntArray,
    n_leaves: int,
    leaf_weights: FloatArray,
    given: Mapping[int, float] | None = None,
) -> FloatArray:
    """Weights of inner nodes as modified harmonic means of their children (F12 §3.2).

    ``w_p = 1 / Σ_children 1/w_c``, and 0 at the root. The factor "number of children" of an ordinary harmonic mean is
    absent on purpose: with it a parent could weigh more than its lightest child. With equal leaf weights ``w`` a node
    gets ``w / n(v)``.

    Parameters
    ----------
    parent : ndarray of int32, shape (n_nodes,)
        Leaves first, the root last and its own parent.
    depth : ndarray of int32, shape (n_nodes,)
    leaf_weights : ndarray of float64, shape (n_leaves,)
        Non-negative; infinity allowed. A leaf of weight 0 makes all its ancestors 0.
    given : mapping of node to weight, optional
        Weights of single nodes in place of their mean; the nodes above are means of these.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
    """
    n_nodes = len(parent)
    resistance = np.zeros(n_nodes)
    with np.errstate(divide="ignore"):
        resistance[:n_leaves] = 1.0 / leaf_weights
    fixed = given or {}
    for d in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero(depth == d)
        for node in fixed:
            if depth[node] == d:
                resistance[node] = np.inf if fixed[node] == 0 else 1.0 / fixed[node]
        np.add.at(resistance, parent[nodes], resistance[nodes])
    with np.errstate(divide="ignore"):
        weights = 1.0 / resistance
    weights[:n_leaves] = leaf_weights
    weights[n_nodes - 1] = 0.0
    return weights


def override_weights(
    attribute: str,
    weights: FloatArray,
    given: Mapping[int, float],
    *,
    parent: IntArray,
    labels: Sequence[str | None],
) -> FloatArray:
    """Replace the weights of single nodes, keeping weights non-increasing upwards.

    Parameters
    ----------
    attribute : str
        For messages.
    weights : ndarray of float64, shape (n_nodes,)
    given : mapping of node to weight
        Weights relative to the attribute's weight of 1, non-negative.
    parent : ndarray of int32, shape (n_nodes,)
    labels : sequence of str or None, length n_nodes
        For messages.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)

    Raises
    ------
    InputError
        If a node would weigh more than one of its children, or the root more than 0.
    """
    result = weights.copy()
    for node, weight in given.items():
        result[node] = weight
    root = len(parent) - 1
    if result[root] != 0:
        raise InputError(f"risk.sensitivity.node_weights.{attribute}: the root must weigh 0. Got {result[root]:g}.")
    rising = np.flatnonzero(result[parent] > result * (1 + 1e-12))
    if len(rising):
        child = int(rising[0])
        above = int(parent[child])
        raise InputError(
            f"risk.sensitivity.node_weights.{attribute}: weights must not increase upwards, but node "
            f"'{labels[above]}' weighs {result[above]:g} and one of its children {result[child]:g}."
        )
    return result


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Φ as a function of the disclosed nodes.

    Attributes
    ----------
    form : {"constant", "linear", "record", "multiplicative", "interaction"}
    weights : tuple of k ndarrays of float64, shape (n_nodes_i,)
        Weight of each node, 0 at the root; the shared part ``h_j`` (times ``w_j`` where weights are not personal).
    constant : float
        ``c`` of the constant form.
    sets : tuple of s tuples of int
        Attributes whose joint disclosure weighs more, of the form ``interaction``.
    set_weights : tuple of s float
        ``w_S``, non-negative; infinity allowed.
    """

    form: SensitivityForm
    weights: tuple[FloatArray, ...]
    constant: float = 1.0
    sets: tuple[tuple[int, ...], ...] = ()
    set_weights: tuple[float, ...] = ()

    def own(
        self, personal: FloatArray | None, record_weight: FloatArray | None
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Those of a record's own weights, personal ones and ``w_r``, that the form looks at."""
        return (
            personal if self.form in ("linear", "multiplicative", "interaction") else None,
            record_weight if self.form in ("record", "interaction") else None,
        )

    def phi(
        self,
        nodes: Sequence[IntArray],
        *,
        personal: FloatArray | None = None,
        record_weight: FloatArray | None = None,
    ) -> FloatArray:
        """Sensitivity of disclosed records.

        Parameters
        ----------
        nodes : sequence of k ndarrays of int32, shape (n,)
            Disclosed node of each attribute.
        personal : ndarray of float64, shape (n, k), optional
            ``w_{j,r}``, multiplies the node weights; ``0 · inf`` is 0.
        record_weight : ndarray of float64, shape (n,), optional
            ``w_r`` of the forms ``record`` and ``interaction``; 1 when absent.

        Returns
        -------
        ndarray of float64, shape (n,)
            Non-negative; summed from the first attribute to the last.
        """
        n = len(nodes[0])
        if self.form == "constant":
            return np.full(n, self.constant)
        total = np.zeros(n)
        for j, (node, weight) in enumerate(zip(nodes, self.weights, strict=True)):
            if self.form == "record":
                total += node != len(weight) - 1
                continue
            term = weight[node]
            if personal is not None:
                scale = personal[:, j]
                term = scaled(term, scale)
            total += term
        if self.form == "record":
            weight_of_record = np.ones(n) if record_weight is None else record_weight
            return scaled(total, weight_of_record)
        if self.form == "multiplicative":
            with np.errstate(over="ignore"):
                return np.exp(total)
        if self.form == "interaction":
            disclosed = np.column_stack([n != len(w) - 1 for n, w in zip(nodes, self.weights, strict=True)])
            of_set = np.array(self.set_weights, dtype=np.float64)
            return total + interaction(
                disclosed, self.sets, of_set if record_weight is None else scaled(of_set, record_weight[:, None])
            )
        return total


def interaction(disclosed: BoolArray, sets: Sequence[Sequence[int]], weights: FloatArray) -> FloatArray:
    """Additional sensitivity of disclosing attributes together (LSFB06 Φ4, F12 eq 2.3).

    The sum of the weights of those sets of attributes that are disclosed whole, however coarsely. As weights are not
    negative, it never rises when an attribute is suppressed. It is not modular in the levels.

    Parameters
    ----------
    disclosed : ndarray of bool, shape (n, k)
        Whether the attribute's node is not ⊥.
    sets : sequence of s sequences of int
        Two or more attributes each; K of them for interactions of order K. No set twice.
    weights : ndarray of float64, shape (s,) or (n, s)
        ``w_{j,h,...}`` of each set, or ``w_{j,h,...,r}`` of each record and set; infinity allowed.

    Returns
    -------
    ndarray of float64, shape (n,)
        Non-negative; summed from the first set to the last.

    Raises
    ------
    InputError
        If a set is no set of two or more attributes or given twice, or a weight is negative.
    """
    n, k = disclosed.shape
    members = [tuple(sorted(set(given))) for given in sets]
    for given, unique in zip(sets, members, strict=True):
        if len(unique) < 2 or len(unique) < len(given) or unique[0] < 0 or unique[-1] >= k:
            raise InputError(
                f"risk.sensitivity.interactions: a set must name two or more of the {k} attributes, each once. "
                f"Got {list(given)!r}."
            )
    if len(set(members)) < len(members):
        raise InputError("risk.sensitivity.interactions: a set of attributes is given twice.")
    if not (weights >= 0).all():
        raise InputError("risk.sensitivity.interactions: weights must not be negative.")
    total = np.zeros(n)
    for s, attributes in enumerate(members):
        total += np.where(disclosed[:, attributes].all(axis=1), weights[..., s], 0.0)
    return total


def normalized(
    personal: FloatArray, *, total: float, at_most: bool, attribute: Sequence[float] | None = None
) -> FloatArray:
    """Scale each record's weights ``w_j · w'_{j,r}`` to sum to ``total``, or only those that exceed it (F12 §2.2).

    Parameters
    ----------
    personal : ndarray of float64, shape (n, k)
        Non-negative; infinity allowed.
    total : float
        ``c > 0``.
    at_most : bool
        Scale down only the records whose sum exceeds ``total``.
    attribute : sequence of k float, optional
        ``w_j``, finite; 1 by default.

    Returns
    -------
    ndarray of float64, shape (n, k)
        A record whose weights are all 0, or one of them infinite, keeps them.
    """
    sums = np.zeros(len(personal))
    for j in range(personal.shape[1]):
        sums += scaled(personal[:, j], np.float64(1.0 if attribute is None else attribute[j]))
    factor = np.divide(total, sums, out=np.ones_like(sums), where=sums > 0)
    factor[np.isposinf(sums)] = 1.0
    if at_most:
        factor = np.minimum(factor, 1.0)
    return scaled(personal, factor[:, None])


def scaled(weights: FloatArray, factor: FloatArray | np.float64) -> FloatArray:
    """Product of weights and factors, any shapes that broadcast, where ``0 · inf`` is 0."""
    with np.errstate(invalid="ignore"):
        product = weights * factor
    return np.where((weights == 0) | (factor == 0), 0.0, product)
