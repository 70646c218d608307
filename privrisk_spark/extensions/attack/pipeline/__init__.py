"""An attack on a protected table, from sources to findings, in the order of its stages: ``run`` has them all.

What a stage returns is a frozen value of ``opened``, ``protected`` or ``links``; every Spark action of an attack is
there, or in a function named ``collect_`` or ``write_`` that is called from there.
"""
