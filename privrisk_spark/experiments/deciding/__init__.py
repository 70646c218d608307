"""Searches and models compared (Fouad 2012, chapters 3 to 5)."""
