"""The SYNTHETIC census-like table of ``privrisk synthesize``, with its register and hierarchies.

Each is a function of the seed. ``country`` is where its people live.
"""
