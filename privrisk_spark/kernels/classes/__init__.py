"""Equivalence classes, and the criteria on them.

``classes`` holds them as arrays, ``every_node`` counts those of every level vector at once; ``diversity``
(p-sensitivity, ℓ-diversity, (α, k)), ``closeness`` (t-closeness, β-likeness, δ-disclosure), ``concealment`` ((1,k),
(k,1), (k,k), k-concealment, k-confusion) are one number a class, and ``tally`` adds them up over classes.
"""
