"""Perturbative masking: values that differ from the true ones, by noise, by others' values, or by coarser ones (T20).

``noise`` (additive, correlated), ``covariance`` (the exact moments it takes), ``coding`` (top, bottom, rounding),
``microaggregation`` (MDAV, V-MDAV, univariate optimal; its loops are ``grouping``, on a ``point_tree``),
``rank_swapping`` (and ``partners``), ``shuffling`` and ``pram`` (post-randomization); ``candidates`` is what an
intruder who knows the method is left with.

No method here guarantees anything by itself, except that MDAV over all quasi-identifiers leaves groups of at least k
equal records. Randomness enters as numbers per record, drawn by key elsewhere; all sums over the columns of one record
are taken in the order of the columns, so that a record's masked values do not depend on which others share its batch.
"""
