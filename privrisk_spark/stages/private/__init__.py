"""Differentially private admission, recoding and crowd threshold; and draws as published, without a guarantee."""
