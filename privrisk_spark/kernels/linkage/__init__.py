"""Record linkage: who a protected record is of, for an intruder who knows some attributes of people."""
