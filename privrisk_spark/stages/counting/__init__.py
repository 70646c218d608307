"""Consistent dictionary rows are counted: by arrays (dense, sorted) or by joins (shuffle, iceberg)."""
