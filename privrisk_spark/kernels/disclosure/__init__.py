"""What a node of a record's lattice discloses.

``disclosure`` puts it together, ``decisions`` is what is decided by it. ``utility`` (Fouad 2012 eqs 4.5, 4.6),
``sensitivity`` (Lebanon et al. 2006 §2; Fouad 2012 §2.2, §3.2), ``risk`` (Fouad 2012 §4.4.2, model III corrected),
``estimated`` (the bounding theorem: Lebanon et al. 2006 Theorem 1), ``linked`` (risk after record linkage, Fouad 2012
§2.7), and ``objective``: what a decision optimizes (Fouad 2012 eqs 4.1 to 4.3, 5.1) and its ties.
"""
