"""Figures of a table or a release, each named and explained in ``catalogue`` (``measure``, ``entries``).

``identity`` (prosecutor, k), ``population_sizes`` (journalist, marketer, k-map), ``weighted_sizes`` (the same by
sampling weights), all by ``thresholds``; ``population_risk`` (Benedetti and Franconi 1998), ``population_uniques``
(Zayatz 1991, Pitman, slide negative binomial), ``special_uniques`` (SUDA), ``interval_disclosure``, ``loss`` (C_avg,
discernibility, precision, NCP), ``classification`` (Iyengar 2002) and ``divergence`` (Kullback-Leibler, non-uniform
entropy).
"""
