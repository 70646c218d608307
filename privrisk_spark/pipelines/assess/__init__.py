"""An assessment, from sources to verdicts, in the order of its stages: ``run`` has them all.

What a stage returns is a frozen value of ``opened``, ``counted`` or ``measured``; every Spark action of an assessment
is there, or in a function named ``collect_`` or ``write_`` that is called from there.
"""
