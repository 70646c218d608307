"""Exponential sampling as published beside a release with a proof (Fouad 2012, chapter 6)."""
