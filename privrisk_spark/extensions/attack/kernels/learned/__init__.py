"""The worst case of record linkage: an intruder who has seen true pairs and learns by which distance they are found.

``aggregates`` and ``choquet`` are distances of vectors of differences, ``searched`` finds what is nearest by one of
them, ``families`` says what may be learned of each, ``training`` looks at records whose own row is known, ``program``
has the mixed-integer and the linear programs, and ``fitting`` puts them together.

T20 states the program; V. Torra, G. Navarro-Arribas and D. Abril, "Supervised learning for record linkage through
weighted means and OWA operators" (2010), D. Abril, G. Navarro-Arribas and V. Torra, "Improving record linkage with
supervised learning for disclosure risk assessment" (2012), "Choquet integral for record linkage" (2012) and
"Supervised learning using a symmetric bilinear form for record linkage" (2015) solve it for each distance.
"""
