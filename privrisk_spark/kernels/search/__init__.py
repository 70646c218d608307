"""Which node of its lattice a record discloses.

``method`` says what is sought and how. For a whole table at once, nodes outside and records inside: ``table_search``
(exact, ARUBA, exhaustive) with ``records``, ``lattice_blocks`` and ``incumbents``, ``rules`` with ``cell_order``
(Lebanon et al. 2006; Fouad 2012 Algorithm 1); ``cells_asked`` says which counts they look up, ``dictionary_curves``
decides against growing dictionaries. For one record: ``record`` is the contract of every search, ``record_search`` runs
one for each distinct record; ``enumeration``, ``branch_and_bound`` with ``boxes``, ``node_search`` (Fouad 2012
Algorithms 2 and 3), ``genetic`` (Algorithm 4), ``relaxation`` (Algorithm 5), ``aggregate`` with ``closure`` and
``crossing`` (chapter 5). They see the dictionary by ``dictionary_view``, ``row_sets`` and ``evaluation``.
"""
