"""Experiments on recoding: every algorithm of k-anonymization on the same tables, by metric, k, time, loss and risk.

:mod:`.algorithms` runs them, :mod:`.risks` says what their releases are worth to three attackers and against a release
by risk, :mod:`.monotone` whether the papers' monotonicity holds, :mod:`.plots` and :mod:`.results` tell it.
"""
