"""Searches and models compared, on one table after another.

Source: M. R. Fouad, Privacy Risk and Scalability of Differentially-Private Data Anonymization, PhD thesis, Purdue
University 2012 (F12), chapters 3 to 5. Its risk is that of G. Lebanon, M. Scannapieco, M. R. Fouad and E. Bertino,
Beyond k-Anonymity: A Decision Theoretic Framework for Assessing Privacy Risk, Privacy in Statistical Databases 2006
(LSFB06).
"""
