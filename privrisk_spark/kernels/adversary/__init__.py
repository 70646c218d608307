"""The adversary as a Markov decision process (Xia et al. 2015).

``process`` solves the attack, ``risk`` says what it means for records, ``deterrence`` which fine or group size prevents
it.
"""
