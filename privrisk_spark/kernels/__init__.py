"""The mathematics: numpy arrays in, numpy arrays out; no engine, no I/O, no logging, no global randomness.

One package a chapter, each importing only those before it:

arrays
    Names of the array types.
numeric
    Exact sums, packing, histograms, cuts: arithmetic that knows nothing of privacy.
random
    Keyed pseudo-random functions, exact coins, discrete noise.
lattice
    Generalization lattice of a record.
counting
    How many dictionary rows fit a node.
disclosure
    What a node discloses: utility, sensitivity, risk, and what a decision optimizes.
search
    Which node to disclose, record by record or for a whole table.
classes
    Equivalence classes and the criteria on them.
measures
    Figures of a table or a release.
dp
    Differentially private admission, draw and crowd threshold.
masking
    Perturbative masking: groups' means, others' values, noise; what an intruder who knows the method is left with.
adversary
    The adversary as a Markov decision process.
as_published
    Algorithms 6 and 7 of Fouad (2012) as printed, for comparison.
"""
