"""Arithmetic that knows nothing of privacy: exact, in any order and any parts.

``packing`` and ``histogram`` count equal integer vectors, ``distinct`` finds them, ``fingerprint`` tells rows apart;
``fold`` is the contract of what is measured by parts and added up; ``moments`` and ``exact_sums`` add float64 exactly,
``bins`` adds counts; ``rational`` encloses e^x; ``min_cut`` is Dinic's maximum flow
(Dinic 1970).
"""
