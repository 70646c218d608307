"""Randomness that is a function of a key: the same numbers for the same record, wherever and whenever it is evaluated.

``keyed`` is the pseudo-random function, ``coins`` draws exact coins and integers from its words (Canonne, Kamath and
Steinke 2020), ``discrete_gaussian`` (the same) and ``discrete_laplace`` (Ghosh, Roughgarden and Sundararajan 2009) are
the two kinds of noise with their laws and calibrations.
"""
