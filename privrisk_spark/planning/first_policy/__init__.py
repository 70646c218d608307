"""A first policy for a table nobody has written one for: what its columns are, and what is proposed of each."""
