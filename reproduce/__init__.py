"""Published experiments, run again: each claim of a paper next to the number found.

Run ``python -m reproduce NAME|all --output DIR``. ``run`` is the runner. Each experiment's package declares an
``EXPERIMENT`` for it, and ``generated`` makes the tables they need. Codes of sources (F12, X15) are spelled out in
``docs/references.bib``.
"""

NAMES = ("examples", "dictionaries", "deciding", "recoding", "adversary", "privacy", "compare", "sharing")
"""Every experiment, in the order in which ``all`` runs them: chapter by chapter, the quick ones first."""
