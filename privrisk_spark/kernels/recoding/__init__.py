"""One recoding of a whole table, so that all its classes are large enough: k-anonymity and what may be asked besides.

``full_domain`` groups a table at level vectors, each from the classes of a finer one; ``metrics`` are what is
minimised; ``problem`` is what is asked, and what a search answers; ``whole_lattice`` has the searches of lattices that
can be walked; ``local`` recodes classes of records, each by a level vector of its own.
"""
