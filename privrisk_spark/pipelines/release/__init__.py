"""A release, from sources to publication, in the order of its stages.

Every kind of guarantee is a module that reads from top to bottom as its stages: ``by_risk``, ``private`` and
``as_published``. What they share is beside them, in the order of use: ``opened``, ``encoded``, ``written``,
``published``; ``run`` is the entry. A stage is a function that takes the frozen values of earlier stages and returns
the next; every Spark action of a release is in one of them, or in a function named ``collect_``, ``measure_`` or
``write_`` that one of them calls.
"""
