"""A planned attack on a table by a voter registry: the case study of a paper, run again.

Source: W. Xia, R. Heatherly, M. Kantarcioglu, Y. Vorobeychik, Z. Wan and B. Malin, Process-Driven Data Privacy, CIKM
2015 (X15), section 7.
"""
