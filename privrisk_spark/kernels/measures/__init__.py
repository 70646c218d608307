"""Figures of a table or a release, each named and explained in ``catalogue``.

``identity`` (prosecutor, journalist, marketer, k-map), ``population_risk`` (Benedetti and Franconi 1998),
``population_uniques`` (Zayatz 1991, Pitman, slide negative binomial), ``special_uniques`` (SUDA),
``interval_disclosure``, ``loss`` (C_avg, discernibility, precision, NCP) and ``divergence`` (Kullback-Leibler,
non-uniform entropy).
"""
