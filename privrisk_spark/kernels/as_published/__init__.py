"""Exponential sampling as Fouad (2012, chapter 6) published it, without a guarantee; for comparison only.

``algorithm6`` and ``algorithm7`` are the draws, and ``frequent_elements`` finds the t-frequent elements both need.
"""
