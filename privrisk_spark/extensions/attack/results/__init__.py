"""The result of an attack."""
