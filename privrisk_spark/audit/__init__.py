"""Adversarial trials of a differentially private mechanism."""
