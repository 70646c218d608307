"""Chapter 7 of Fouad's thesis (2012) run again: sharing in a generated social network, claimed beside found.

``sample`` is a network in memory and pairs of its users. ``aggregate`` is Fig. 7.3, ``proposition`` Proposition 7.5.1,
``trusting`` what decisions owe to a kind of trust, ``limits`` the three problems of access control, and ``diffusing``
three ways to compute what leaks. ``claims`` judges what the thesis says by what these found.
"""
