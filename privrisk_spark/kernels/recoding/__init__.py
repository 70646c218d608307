"""One recoding of a whole table, so that all its classes are large enough: k-anonymity and what may be asked besides.

``full_domain`` groups a table at level vectors, each from the classes of a finer one; ``metrics`` are what is
minimised; ``problem`` is what is asked, and what a search answers; ``whole_lattice`` and ``bounded`` have the searches
of lattices that can be walked, ``k_optimize``, ``top_down`` and ``datafly`` those that hold no array of a lattice, and
``floors`` what they leave out; ``searches`` has all by name. ``local`` recodes classes of records, each
by a level vector of its own.
"""
