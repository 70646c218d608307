"""SYNTHETIC tables and registries, each a function of its seed.

``clustered`` stands in for the tables of Fouad (2012), ``registry`` for the voter registry of Xia et al. (2015).
"""
