"""Entries of the catalogue, some families a module."""
