"""How many rows of an attacker's dictionary fit a node: ``ρ = (C_1 ⊗ … ⊗ C_k) n``.

``consistent`` holds the plans that keep the counts in arrays (dense, sorted), ``cells`` the steps of the distributed
plans (shuffle, iceberg), ``similarity`` the consistency by Jaro similarity (Fouad 2012 §3.1; Lebanon et al. 2006 §5).
"""
