"""Modified-Aggregate, Algorithm 8 of F12, as it was published: layer by layer of Φ. For comparison only.

Step 5 maximizes over ``Φ(x) = τ_i``. This is no constraint of a lattice, and hardly any level vector satisfies it. Two
readings:

* ``equality``: by the letter. A layer without a level vector has no solution; if none has one, nothing is shown.
* ``layer``: over ``τ_i <= Φ(x) < τ_{i+1}``, with τ_i for Φ in the objective. Status: *proved* to have an ``f`` of at
  least ``1/(1 + ε)`` of the greatest.
"""

from __future__ import annotations

from typing import Literal

from privrisk_spark.kernels.sharing.modified_aggregate import Consistency, Pairs, Shown

Reading = Literal["equality", "layer"]


def algorithm8(
    pairs: Pairs,
    *,
    trade_off: float,
    kappa: float,
    epsilon: float,
    consistency: Consistency = "all",
    reading: Reading = "layer",
) -> Shown:
    """Algorithm 8 by enumeration; ``ξ = 0`` is an infinite risk, as published.

    Parameters
    ----------
    pairs : Pairs
        Of at most 2^20 level vectors each.
    trade_off, kappa : float
        As of :func:`~privrisk_spark.kernels.sharing.modified_aggregate.modified_aggregate`.
    epsilon : float
        Ratio of the layers less one, positive.
    consistency : {"all", "any"}
    reading : {"equality", "layer"}

    Returns
    -------
    Shown
        ``bound`` is infinite and ``proved`` False; ``visited`` counts the layers with a level vector.
    """
    raise NotImplementedError
