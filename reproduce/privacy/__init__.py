"""Exponential sampling as published, which guarantees nothing, beside a release with a proof.

Source: M. R. Fouad, Privacy Risk and Scalability of Differentially-Private Data Anonymization, PhD thesis, Purdue
University 2012 (F12), chapter 6.
"""
