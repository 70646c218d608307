"""The generalization lattice of a record: a product of chains of levels (Fouad 2012, Lemma 4.3.2)."""
