"""Every way to protect a table against every way to find its people: measured re-identification over information loss.

``protecting`` makes protected tables of a table over hierarchies, ``linking`` attacks them, ``numbers`` does both for a
table of numbers, ``results`` finds what nothing else beats.
"""
