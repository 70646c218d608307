"""Local recoding: a level vector per class of records, not one for the table.

``partition`` is what every algorithm gives and what is guaranteed of it; ``order`` has lowest common ancestors;
``mondrian``, ``relaxed``, ``hilbert`` and ``bang`` are the algorithms, in ``algorithms`` by name; ``first_cuts`` is
strict Mondrian on a table in parts.
"""
