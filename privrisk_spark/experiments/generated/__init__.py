"""SYNTHETIC tables, registries and populations, each a function of its seed.

``clustered`` stands in for the tables of Fouad (2012), ``registry`` for the voter registry of Xia et al. (2015);
``population`` is a census-like table with its register and hierarchies, and ``country`` where its people live.
"""
