"""How many rows of an attacker's dictionary fit a node: ``ρ = (C_1 ⊗ … ⊗ C_k) n``.

``consistent`` holds the plans that keep the counts in arrays (dense, sorted), with ``cell_index``; ``cells`` the steps
of the distributed plans (shuffle, iceberg), ``given_counts`` what they hand back; ``similarity`` the consistency by
Jaro similarity (Fouad 2012 §3.1; Lebanon et al. 2006 §5).
"""
