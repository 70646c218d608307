"""Published experiments run again: what was claimed beside what is found.

``run`` is the one runner; ``deciding``, ``privacy`` and ``adversary`` each declare an ``EXPERIMENT`` for it, and
``generated`` makes the tables they need. Codes of sources (F12, X15) are spelled out in ``docs/references.bib``.
"""
