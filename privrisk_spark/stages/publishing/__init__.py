"""Tuples become files in row order, are measured and checked, and become a release by a rename."""
