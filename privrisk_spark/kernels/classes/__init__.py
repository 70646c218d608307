"""Equivalence classes, and the criteria on them.

``classes`` holds them as arrays.
``criteria`` says of every criterion which number it holds against a bound (``bounds``) and what a search may rely on.
The numbers are those of ``diversity`` (p-sensitivity, ℓ-diversity, (α, k)) and ``closeness`` (t-closeness, β-likeness,
δ-disclosure), one a class, and of ``concealment`` ((1,k), (k,1), (k,k), k-concealment, k-confusion), one a record, over
the graph of ``consistency``; ``tally`` adds them up over classes.
"""
