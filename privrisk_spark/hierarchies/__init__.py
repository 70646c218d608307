"""Value generalization hierarchies as integers: files, builders, texts and scales."""
