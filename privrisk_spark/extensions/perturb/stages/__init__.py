"""Masking a table: records held with their numbers, put in order, masked in segments, and written as tuples."""
