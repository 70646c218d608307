"""Boxes of one record's lattice as machine code: its arrays, the bounds of a box, and the search over boxes."""
