"""One recoding of a whole table, so that all its classes are large enough: k-anonymity and what may be asked besides.

``full_domain`` groups a table at level vectors, each from the classes of a finer one; ``metrics`` are what is
minimised; ``exhaustive`` looks at every node and is what every other search is held against.
"""
