"""The texts of each privacy model, one module per model."""
