"""What an attacker's dictionary does to risk (Lebanon et al. 2006, Fig. 1; Fouad 2012, Figs 3.1, 3.3, 3.5 and 3.6).

``growth`` measures risk as the dictionary grows, ``rules`` every rule of a small lattice, ``claims`` says what was
claimed of either.
"""
