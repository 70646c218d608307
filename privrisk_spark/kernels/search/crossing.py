"""Where the aggregate model jumps: the ``λ`` of each record at which its release as it is stops being the best.

``ρ/Φ`` grows geometrically along the lattice and ``u`` only linearly, so hardly any level vector between the two ends
is ever the best: below its crossing a record is released as it is, above with one attribute at most.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.search.lattice_blocks import lattice_blocks
from privrisk_spark.kernels.search.records import Records, kinds_of, pick


def crossings(
    disclosure: Disclosure,
    objective: GreatestAggregate,
    attacker: Attacker,
    codes: IntArray,
    *,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> FloatArray:
    """The ``λ`` from which suppressing all but one attribute, or all, is worth more than a record as it is.

    Parameters
    ----------
    objective : GreatestAggregate
        Its λ does not matter.
    attacker, codes, personal, record_weight
        As of :func:`privrisk_spark.kernels.search.table_search.decide`.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``λ* = min (u(0)^κ - u(x)^κ) / (1/r(x) - 1/r(0))`` over the top, if its risk is positive or counts as such, and
        where it is 0 over the most general ``x`` of positive risk that keep one attribute; infinity where none of these
        has a lower risk than the record as it is. Any other ``x`` can only be better still from a smaller ``λ``, which
        is rare: see :mod:`privrisk_spark.kernels.search.aggregate`.
    """
    personal, record_weight = disclosure.sensitivity.own(personal, record_weight)
    first, kind = kinds_of(disclosure, attacker, codes, personal, record_weight)
    of_kind = np.zeros(len(first))
    for block in lattice_blocks(disclosure, codes[first]):
        rows = first[block.rows]
        records = Records(disclosure, attacker, block, codes[rows], pick(personal, rows), pick(record_weight, rows))
        of_kind[block.rows] = _of_block(records, objective)
    return of_kind[kind]


def _of_block(records: Records, objective: GreatestAggregate) -> FloatArray:
    lattice = records.block.lattice
    every, top = np.arange(len(records.codes)), lattice.n_nodes - 1
    least = np.full(len(every), np.inf)
    suppressed = _lower(least, records, objective, every, top)
    for height, stride in zip(lattice.heights, lattice.strides.tolist(), strict=True):
        rows = suppressed
        for level in range(height - 1, -1, -1):
            rows = _lower(least, records, objective, rows, top - (height - level) * stride)
    return least


def _lower(least: FloatArray, records: Records, objective: GreatestAggregate, rows: LongArray, node: int) -> LongArray:
    """Lower the crossings of some records to those with one node; return the records whose risk is 0 there."""
    risk = records.risk(rows, node)[0]
    weighed = records.weighed_risk(objective, rows, node, risk)
    profiles = records.block.profile[rows]
    kept, lost = (records.block.utility(records.levels(n), profiles) ** objective.kappa for n in (0, node))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = 1 / weighed - 1 / records.risk(rows, 0)[0]
        crossing = (kept - lost) / gain
    there = (weighed > 0) & (gain > 0)
    least[rows[there]] = np.minimum(least[rows[there]], crossing[there])
    return np.asarray(rows[risk == 0])
