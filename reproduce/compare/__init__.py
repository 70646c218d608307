"""Every way to protect a table against every way to find its people: measured re-identification over information loss.

``protecting`` makes protected tables of a table over hierarchies and ``linking`` attacks them; ``masking`` masks a
table of numbers and ``numbers`` attacks it; ``learning`` is the intruder who has learned from true pairs. ``results``
finds what nothing else beats, ``claims`` what was claimed.
"""
