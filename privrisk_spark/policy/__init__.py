"""What a person writes: one frozen type a variant, read, layered, and checked once."""
